//! Which program confines: the small one beside our own, or our own, which starts slower.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Support, name};

/// What the name of our own program begins with.
const OWN: &str = "co-nvim";

/// What the name of the small one begins with in its place.
const SMALL: &str = "co-launch";

/// The group of a file may write it.
const GROUP_WRITES: u32 = 0o020;

/// Who may write a file beside its owner.
const OTHERS_WRITE: u32 = 0o022;

/// How long the trials may take; each takes milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Shorter by default: there is another program to go on with, and whoever asks waits for both.
    pub small: Duration,
    pub own: Duration,
}

/// The program that starts confined commands, and what the kernel let it hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    own: PathBuf,
    /// The small one, or why it is not that.
    small: Result<Small, String>,
    pub support: Support,
    /// Neither gave an answer, so what the kernel can hold is not known.
    pub untold: bool,
}

/// The small program as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Small {
    path: PathBuf,
    mark: Mark,
}

/// Tells a file from any that is put in its place or written over it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    device: u64,
    inode: u64,
    /// The time of its last change, in seconds and nanoseconds; nobody can set it back.
    changed: (i64, i64),
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            small: Duration::from_secs(2),
            own: Duration::from_secs(10),
        }
    }
}

impl Chosen {
    /// The small one beside `exe`, or `exe` itself where that one is not ours, gives no answer or holds less.
    pub(super) fn try_out(exe: &Path, limits: Limits) -> Self {
        let tried = Small::beside(exe)
            .and_then(|small| Ok((Support::try_out(&small.path, limits.small)?, small)));
        let small = match tried {
            Ok((support, small)) if support.is_whole() => {
                return Self::new(exe, Ok(small), support);
            }
            other => other,
        };
        // An AppArmor profile, say, can allow one program what it refuses another.
        let own = Support::try_out(exe, limits.own);
        let untold = small.is_err() && own.is_err();
        let own = own.unwrap_or_else(Support::none);
        let chosen = match small {
            Ok((support, small)) if own.holds_more_than(&support) => {
                let (name, why) = (name(&small.path), support.reason());
                let why = format!("{name} holds less here ({why})");
                Self::new(exe, Err(why), own)
            }
            Ok((support, small)) => Self::new(exe, Ok(small), support),
            Err(why) => Self::new(exe, Err(why), own),
        };
        Self { untold, ..chosen }
    }

    /// The small one beside `exe` where there is one that is ours, on a kernel that holds `support`.
    pub(super) fn untried(exe: &Path, support: Support) -> Self {
        Self::new(exe, Small::beside(exe), support)
    }

    fn new(exe: &Path, small: Result<Small, String>, support: Support) -> Self {
        let chosen = Self {
            own: exe.to_owned(),
            small,
            support,
            untold: false,
        };
        if let Err(why) = &chosen.small {
            tracing::warn!("{} confines commands, slower: {why}", exe.display());
        }
        chosen
    }

    /// What to start now: a small one that was changed since it was looked at is not.
    pub(super) fn program(&self) -> &Path {
        self.small().map_or(&self.own, |small| &small.path)
    }

    /// For people: why it is not the small one that confines.
    pub(super) fn slower(&self) -> Option<String> {
        self.small().err().map(Cow::into_owned)
    }

    /// The name of what is started now.
    pub(super) fn name(&self) -> Cow<'_, str> {
        name(self.program())
    }

    fn small(&self) -> Result<&Small, Cow<'_, str>> {
        let small = self.small.as_ref().map_err(Cow::from)?;
        match small.path.symlink_metadata() {
            Ok(file) if Mark::of(&file) == small.mark => Ok(small),
            _ => Err(Cow::from(format!(
                "{} was changed after its trial, restart Neovim",
                name(&small.path)
            ))),
        }
    }
}

impl Small {
    /// The one that goes with `exe`.
    ///
    /// # Errors
    /// Where there is none, or not one of ours, and why.
    fn beside(exe: &Path) -> Result<Self, String> {
        let path = beside(exe).ok_or_else(|| format!("{} is not named {OWN}", exe.display()))?;
        let mark = is_ours(&path, exe)?;
        Ok(Self { path, mark })
    }
}

impl Mark {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

/// Where the small program that goes with `exe` would be: `co-launch-1.2` beside `co-nvim-1.2`.
fn beside(exe: &Path) -> Option<PathBuf> {
    let rest = exe.file_name()?.as_bytes().strip_prefix(OWN.as_bytes())?;
    let mut name = OsString::from(SMALL);
    name.push(OsStr::from_bytes(rest));
    Some(exe.with_file_name(name))
}

/// Whether nobody could have put `program` there who could not have changed `exe`: in a directory like
/// `/tmp` everybody may add a file.
///
/// # Errors
/// Where somebody could, and who.
fn is_ours(program: &Path, exe: &Path) -> Result<Mark, String> {
    let its = name(program);
    let small = program.symlink_metadata().map_err(|error| {
        if error.kind() == ErrorKind::NotFound {
            format!("there is no {its} beside it")
        } else {
            format!("{its} cannot be looked at ({error})")
        }
    })?;
    let own = exe
        .metadata()
        .map_err(|error| format!("{} cannot be looked at ({error})", exe.display()))?;
    if !small.is_file() {
        return Err(format!("{its} is no regular file"));
    }
    if small.uid() != own.uid() {
        return Err(format!("{its} belongs to user {}", small.uid()));
    }
    if small.mode() & OTHERS_WRITE & !own.mode() != 0 {
        return Err(format!("{its} can be written by others than its owner"));
    }
    if small.mode() & GROUP_WRITES != 0 && small.gid() != own.gid() {
        return Err(format!("{its} can be written by group {}", small.gid()));
    }
    Ok(Mark::of(&small))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

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
        assert_eq!(refused(&small), "there is no co-launch beside it");
        fs::write(&small, "").unwrap();
        fs::set_permissions(&exe, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&small, Permissions::from_mode(0o700)).unwrap();
        assert!(is_ours(&small, &exe).is_ok());
        symlink(&small, &link).unwrap();
        assert!(refused(&link).contains("no regular file"));
        assert!(refused(dir.path()).contains("no regular file"));
        fs::set_permissions(&small, Permissions::from_mode(0o775)).unwrap();
        assert!(refused(&small).contains("others"));
        fs::set_permissions(&exe, Permissions::from_mode(0o775)).unwrap();
        assert!(is_ours(&small, &exe).is_ok());
        if rustix::process::geteuid().is_root() {
            let group = fs::metadata(&small).unwrap().gid();
            chown(&small, None, Some(54_321)).unwrap();
            assert!(refused(&small).contains("group 54321"));
            chown(&exe, None, Some(54_321)).unwrap();
            assert!(is_ours(&small, &exe).is_ok());
            chown(&exe, None, Some(group)).unwrap();
            fs::set_permissions(&small, Permissions::from_mode(0o755)).unwrap();
            assert!(is_ours(&small, &exe).is_ok());
            chown(&small, Some(54_321), None).unwrap();
            assert!(refused(&small).contains("user 54321"));
        }
    }
}
