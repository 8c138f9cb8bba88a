//! The environment of a command: an allowlist, forced values, and what never passes.

use std::ffi::{OsStr, OsString};

use super::{Caller, tree};

/// What passes from the host, whoever asks.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TERM",
    "SHELL",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
];

/// What passes for a person only: an agent of keys is not for a model.
const PERSONAL: &[&str] = &["SSH_AUTH_SOCK"];

/// What never passes, whatever the settings say: it makes a program run other code than its own,
/// changes how a shell reads a command, or leads into the editor.
const NEVER: &[&str] = &[
    "LD_*",
    "DYLD_*",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "IFS",
    "CDPATH",
    "GLOBIGNORE",
    "PS4",
    "BASH_FUNC_*",
    "NVIM*",
];

/// Set where there is no terminal to page, edit or ask in.
const FORCED: &[(&str, &str)] = &[
    ("PYTHONUNBUFFERED", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
];

/// Set for a person who has one: what the editor's terminal understands.
const FORCED_TERMINAL: &[(&str, &str)] = &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];

/// Set for a model that has one: the programs in it know what they may send.
const FORCED_AGENT_TERMINAL: &[(&str, &str)] = &[("TERM", "xterm-256color"), ("NO_COLOR", "1")];

/// Set for a model, which reads plain text.
const FORCED_AGENT: &[(&str, &str)] = &[("NO_COLOR", "1")];

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(super) type Variables = Vec<(OsString, OsString)>;

/// What an environment is made of.
pub(super) struct Sources<'a> {
    pub(super) host: &'a Variables,
    /// Settings: names and `PREFIX_*`.
    pub(super) allow: &'a [String],
    pub(super) caller: Caller,
    /// The login shell's PATH, where it was asked for.
    pub(super) path: Option<&'a str>,
    pub(super) extra: &'a [(String, String)],
    /// Its streams are a terminal.
    pub(super) terminal: bool,
    pub(super) marker: &'a str,
}

/// Returns the environment of a command.
pub(super) fn build(sources: Sources<'_>) -> Variables {
    let Sources {
        host,
        allow,
        caller,
        path,
        extra,
        terminal,
        marker,
    } = sources;
    let personal = if caller == Caller::Person {
        PERSONAL
    } else {
        &[]
    };
    let outer = value(host, tree::MARKER);
    let mut built: Variables = host
        .iter()
        .filter(|(name, _)| {
            let mut listed = ALLOWED.iter().chain(personal).copied();
            let mut set = allow.iter().map(String::as_str);
            listed.any(|pattern| covers(pattern, name)) || set.any(|pattern| covers(pattern, name))
        })
        .cloned()
        .collect();
    if let Some(path) = path {
        put(&mut built, "PATH", path.into());
    } else if value(&built, "PATH").is_none() {
        put(&mut built, "PATH", DEFAULT_PATH.into());
    }
    let agent = match caller {
        Caller::Agent if terminal => FORCED_AGENT_TERMINAL,
        Caller::Agent => FORCED_AGENT,
        Caller::Person => &[],
    };
    let forced = if terminal && caller == Caller::Person {
        FORCED_TERMINAL
    } else {
        FORCED
    };
    for (name, value) in forced.iter().chain(agent) {
        put(&mut built, name, value.into());
    }
    for (name, value) in extra {
        put(&mut built, name, value.into());
    }
    built.retain(|(name, _)| !NEVER.iter().any(|pattern| covers(pattern, name)));
    // Within another job of ours both markers hold, so that either end finds the process.
    let mut marker = OsString::from(marker);
    if let Some(outer) = outer {
        marker.push(" ");
        marker.push(outer);
    }
    put(&mut built, tree::MARKER, marker);
    built
}

/// The lists of variables, for the help.
#[derive(Debug, Clone, Copy)]
pub struct Lists {
    /// Passed to every command.
    pub passed: &'static [&'static str],
    /// Passed to a person's commands only.
    pub personal: &'static [&'static str],
    /// Never passed.
    pub never: &'static [&'static str],
}

/// The variables that pass and that never do.
pub const LISTS: Lists = Lists {
    passed: ALLOWED,
    personal: PERSONAL,
    never: NEVER,
};

/// Returns what a command has in its environment that the host has not, as `NAME=value`.
pub fn forced(caller: Caller, terminal: bool) -> Vec<String> {
    let built = build(Sources {
        host: &Vec::new(),
        allow: &[],
        caller,
        path: None,
        extra: &[],
        terminal,
        marker: "",
    });
    let own = built
        .iter()
        .filter(|(name, _)| name != "PATH" && name != tree::MARKER);
    own.map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .collect()
}

/// Returns the value of `name`.
pub(super) fn value(variables: &Variables, name: &str) -> Option<OsString> {
    let found = variables.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.clone())
}

fn put(variables: &mut Variables, name: &str, value: OsString) {
    variables.retain(|(key, _)| key != name);
    variables.push((name.into(), value));
}

fn covers(pattern: &str, name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix.as_bytes()),
        None => name == pattern.as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_for(caller: Caller, allow: &[&str], host: &[(&str, &str)]) -> Vec<String> {
        let host: Variables = host.iter().map(|(k, v)| (k.into(), v.into())).collect();
        let allow: Vec<String> = allow.iter().map(|&name| name.to_owned()).collect();
        let built = build(Sources {
            host: &host,
            allow: &allow,
            caller,
            path: None,
            extra: &[
                ("GIT_DIR".into(), "x".into()),
                ("LD_AUDIT".into(), "x".into()),
            ],
            terminal: false,
            marker: "m",
        });
        let show = |(k, v): (OsString, OsString)| format!("{}={}", k.display(), v.display());
        built.into_iter().map(show).collect()
    }

    fn has(built: &[String], entry: &str) -> bool {
        built.iter().any(|it| it == entry)
    }

    #[test]
    fn passes_the_allowlist_and_what_the_settings_name() {
        let host = [
            ("HOME", "/h"),
            ("LANG", "C.UTF-8"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
            ("CARGO_HOME", "/c"),
            ("LC_TIME", "C"),
            ("MY_KEY", "s"),
        ];
        let built = build_for(Caller::Agent, &["CARGO_HOME", "LC_*"], &host);
        for entry in [
            "HOME=/h",
            "LANG=C.UTF-8",
            "XDG_RUNTIME_DIR=/run/user/1",
            "PATH=/usr/local/bin:/usr/bin:/bin",
            "CARGO_HOME=/c",
            "LC_TIME=C",
            "GIT_DIR=x",
            "NO_COLOR=1",
        ] {
            assert!(has(&built, entry), "{entry} in {built:?}");
        }
        assert!(!built.iter().any(|it| it.starts_with("MY_KEY")));
    }

    #[test]
    fn never_passes_what_runs_other_code_or_reaches_the_editor() {
        let names = [
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "BASHOPTS",
            "IFS",
            "CDPATH",
            "GLOBIGNORE",
            "PS4",
            "BASH_FUNC_ls%%",
            "NVIM",
            "NVIM_LISTEN_ADDRESS",
        ];
        let host: Vec<_> = names.iter().map(|&name| (name, "x")).collect();
        for caller in [Caller::Agent, Caller::Person] {
            let built = build_for(caller, &names, &host);
            assert!(!built.iter().any(|it| it.starts_with("LD_AUDIT")));
            for name in names {
                assert!(!has(&built, &format!("{name}=x")), "{name}");
            }
        }
    }

    #[test]
    fn the_key_agent_is_for_a_person() {
        let host = [("SSH_AUTH_SOCK", "/s")];
        assert!(has(
            &build_for(Caller::Person, &[], &host),
            "SSH_AUTH_SOCK=/s"
        ));
        assert!(!has(
            &build_for(Caller::Agent, &[], &host),
            "SSH_AUTH_SOCK=/s"
        ));
    }

    #[test]
    fn forces_values_over_the_host() {
        let built = build_for(
            Caller::Person,
            &["PAGER"],
            &[("PAGER", "less"), ("CO_JOB", "outer")],
        );
        assert!(has(&built, "PAGER=cat") && !has(&built, "PAGER=less"));
        assert!(has(&built, "CO_JOB=m outer"));
        assert!(!has(&built, "NO_COLOR=1"));
    }
}
