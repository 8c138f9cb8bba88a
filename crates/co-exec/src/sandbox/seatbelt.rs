//! macOS: the profile for `sandbox-exec`. Written from its documentation and untried on a real one.

use std::ffi::OsString;
use std::path::Path;

use super::names;
use super::toolchains::{TOOLCHAINS, Toolchain};

pub(super) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// What the profile is for.
pub(super) struct Request<'a> {
    pub home: &'a Path,
    pub own: &'a [std::path::PathBuf],
    pub workspace: &'a Path,
    pub tmp: &'a Path,
    pub writes: bool,
    pub network: bool,
}

/// The text of a profile: later rules win.
pub(super) fn profile(request: &Request<'_>) -> String {
    let mut lines = vec![
        "(version 1)".to_owned(),
        "(allow default)".to_owned(),
        "(deny file-write*)".to_owned(),
        "(deny file-link)".to_owned(),
        "(deny signal)".to_owned(),
        "(allow signal (target same-sandbox))".to_owned(),
        "(deny process-info* (target others))".to_owned(),
        "(deny mach-lookup (global-name \"com.apple.SecurityServer\"))".to_owned(),
        "(deny appleevent-send)".to_owned(),
        "(deny job-creation)".to_owned(),
    ];
    if request.network {
        lines.push("(deny network-outbound (remote unix-socket))".to_owned());
    } else {
        lines.push("(deny network*)".to_owned());
    }
    lines.push(format!(
        "(deny file-read* (subpath {}))",
        quoted(request.home)
    ));
    let below = |tool: &'static Toolchain| {
        let homes = tool.homes.iter().map(Path::new);
        homes.flat_map(|name| tool.places.iter().map(move |place| name.join(place)))
    };
    // The profile language has no wildcards for such paths.
    let tools = TOOLCHAINS
        .iter()
        .flat_map(below)
        .filter(|place| !place.to_string_lossy().contains('*'))
        .map(|place| request.home.join(place).components().collect());
    for path in tools.chain([request.workspace.to_owned(), request.tmp.to_owned()]) {
        lines.push(format!("(allow file-read* (subpath {}))", quoted(&path)));
    }
    lines.push(format!(
        "(allow file-write* (subpath {}))",
        quoted(request.tmp)
    ));
    if request.writes {
        lines.push(format!(
            "(allow file-write* (subpath {}))",
            quoted(request.workspace)
        ));
        let git = names::GIT_OBEYS.iter().map(|name| format!(".git/{name}"));
        for name in names::RUN_LATER.iter().map(ToString::to_string).chain(git) {
            let path = request.workspace.join(name);
            lines.push(format!("(deny file-write* (subpath {}))", quoted(&path)));
        }
    }
    let secrets = names::SECRETS.iter().map(|name| request.home.join(name));
    for path in secrets.chain(request.own.iter().cloned()) {
        lines.push(format!(
            "(deny file-read* file-write* (subpath {}))",
            quoted(&path)
        ));
    }
    for device in names::DEVICES {
        lines.push(format!("(allow file-write-data (literal \"{device}\"))"));
    }
    lines.join("\n")
}

/// The command line that runs `argv` under a profile.
pub(super) fn argv(profile: String, argv: Vec<OsString>) -> Vec<OsString> {
    let mut wrapped = vec![PROGRAM.into(), "-p".into(), profile.into(), "--".into()];
    wrapped.extend(argv);
    wrapped
}

/// A string of the profile's language.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(writes: bool, network: bool) -> String {
        profile(&Request {
            home: Path::new("/Users/me"),
            own: &["/Users/me/Library/co".into()],
            workspace: Path::new("/Users/me/a \"b\""),
            tmp: Path::new("/private/tmp/x"),
            writes,
            network,
        })
    }

    /// The position of a rule; later rules win.
    fn at(profile: &str, rule: &str) -> usize {
        profile
            .find(rule)
            .unwrap_or_else(|| panic!("{rule} is not in\n{profile}"))
    }

    #[test]
    fn read_only_writes_nothing_but_its_temporary_directory() {
        let profile = text(false, false);
        assert!(
            at(&profile, "(deny file-write*)")
                < at(&profile, "(allow file-write* (subpath \"/private/tmp/x\"))")
        );
        assert!(!profile.contains(r#"(allow file-write* (subpath "/Users/me"#));
        assert!(profile.contains("(deny network*)"));
    }

    #[test]
    fn names_are_quoted_and_secrets_come_last() {
        let profile = text(true, true);
        let workspace = at(
            &profile,
            r#"(allow file-write* (subpath "/Users/me/a \"b\""))"#,
        );
        assert!(
            workspace
                < at(
                    &profile,
                    r#"(deny file-write* (subpath "/Users/me/a \"b\"/.git/hooks"))"#
                )
        );
        assert!(
            workspace
                < at(
                    &profile,
                    r#"(deny file-read* file-write* (subpath "/Users/me/.ssh"))"#
                )
        );
        assert!(
            workspace
                < at(
                    &profile,
                    r#"(deny file-read* file-write* (subpath "/Users/me/Library/co"))"#
                )
        );
        assert!(!profile.contains("(deny network*)"));
        assert!(profile.contains("(deny network-outbound (remote unix-socket))"));
    }

    #[test]
    fn the_command_follows_the_profile() {
        let argv = argv("(version 1)".into(), vec!["/bin/ls".into(), "-l".into()]);
        assert_eq!(argv, [PROGRAM, "-p", "(version 1)", "--", "/bin/ls", "-l"]);
    }
}
