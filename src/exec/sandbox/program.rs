//! Which program confines: the small one beside our own, or our own, which starts slower.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Support;

/// What our own binary's name begins with, and what the small one's does in its place.
const NAMES: (&str, &str) = ("co-nvim", "co-launch");

/// Who may write a file beside its owner.
const OTHERS_WRITE: u32 = 0o022;

/// How long the trials may take; each takes milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Shorter by default: there is another program to go on with, and whoever asks waits for both.
    pub small: Duration,
    pub own: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            small: Duration::from_secs(2),
            own: Duration::from_secs(10),
        }
    }
}

/// The program that starts confined commands, and what the kernel let it hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    pub program: PathBuf,
    pub support: Support,
}

impl Chosen {
    /// The first that answers of the one beside `exe` and `exe` itself.
    pub(super) fn try_out(exe: &Path, limits: Limits) -> Self {
        if let Some(program) = beside(exe).filter(|path| path.symlink_metadata().is_ok()) {
            match is_ours(&program, exe).and_then(|()| Support::try_out(&program, limits.small)) {
                Ok(support) => return Self { program, support },
                Err(why) => tracing::warn!(
                    "{} does not confine commands, {} does in its place, slower: {why}",
                    program.display(),
                    exe.display()
                ),
            }
        }
        Self {
            program: exe.to_owned(),
            support: Support::try_out(exe, limits.own).unwrap_or_else(Support::none),
        }
    }

    /// The one beside `exe` where there is one that is ours, on a kernel that holds `support`.
    pub(super) fn untried(exe: &Path, support: Support) -> Self {
        let beside = beside(exe).filter(|path| is_ours(path, exe).is_ok());
        Self {
            program: beside.unwrap_or_else(|| exe.to_owned()),
            support,
        }
    }
}

/// Where the small program that goes with `exe` would be: `co-launch-1.2` beside `co-nvim-1.2`.
fn beside(exe: &Path) -> Option<PathBuf> {
    let (own, small) = NAMES;
    let rest = exe.file_name()?.as_bytes().strip_prefix(own.as_bytes())?;
    let mut name = OsString::from(small);
    name.push(OsStr::from_bytes(rest));
    Some(exe.with_file_name(name))
}

/// Whether nobody could have put `program` there who could not have changed `exe`: in a directory like
/// `/tmp` everybody may add a file.
///
/// # Errors
/// Where somebody could, and who.
fn is_ours(program: &Path, exe: &Path) -> Result<(), String> {
    let (small, own) = program
        .symlink_metadata()
        .and_then(|small| Ok((small, exe.metadata()?)))
        .map_err(|error| error.to_string())?;
    if !small.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if small.uid() != own.uid() {
        return Err(format!("it belongs to user {}", small.uid()));
    }
    if small.mode() & OTHERS_WRITE & !own.mode() != 0 {
        return Err("others than its owner can write it".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_one_beside_has_the_same_version_in_its_name() {
        let check = |exe: &str, small: Option<&str>| {
            assert_eq!(beside(Path::new(exe)), small.map(PathBuf::from), "{exe}");
        };
        check("/a/co-nvim", Some("/a/co-launch"));
        check("/a/co-nvim-0.1.0", Some("/a/co-launch-0.1.0"));
        check("/co-nvim/other", None);
        check("/a/my-co-nvim", None);
        check("/proc/self/exe", None);
        check("/", None);
    }

    #[test]
    fn what_somebody_else_could_have_put_there_is_not_ours() {
        let dir = tempfile::tempdir().unwrap();
        let [exe, small, link] = ["co-nvim", "co-launch", "link"].map(|it| dir.path().join(it));
        let refused = |path: &Path| is_ours(path, &exe).unwrap_err();
        fs::write(&exe, "").unwrap();
        assert!(refused(&small).contains("No such file"));
        fs::write(&small, "").unwrap();
        fs::set_permissions(&exe, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&small, Permissions::from_mode(0o700)).unwrap();
        assert_eq!(is_ours(&small, &exe), Ok(()));
        symlink(&small, &link).unwrap();
        assert!(refused(&link).contains("no regular file"));
        assert!(refused(dir.path()).contains("no regular file"));
        fs::set_permissions(&small, Permissions::from_mode(0o775)).unwrap();
        assert!(refused(&small).contains("others"));
        fs::set_permissions(&exe, Permissions::from_mode(0o775)).unwrap();
        assert_eq!(is_ours(&small, &exe), Ok(()));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&small, Some(54_321), None).unwrap();
            assert!(refused(&small).contains("54321"));
        }
    }
}
