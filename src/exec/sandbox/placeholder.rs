//! Names that a command must not make: something without effect stands there while it runs.
//!
//! The mounts can hold only what exists. A placeholder is shared by all commands that need it, of this backend and of
//! others: each has a lock on it, and the last one removes it.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};

/// The sticky bit tells a placeholder from what somebody else made: a backend that was killed leaves them.
const MARK: u32 = 0o1000;
/// How often another command may remove one while it is taken.
const TRIES: usize = 1000;
const PAUSE: Duration = Duration::from_micros(100);

/// The placeholders of one command; when dropped, those go that no other command needs.
#[derive(Debug, Default)]
pub(super) struct Placeholders(Vec<Placeholder>);

#[derive(Debug)]
struct Placeholder {
    path: PathBuf,
    /// Locked for as long as the command may run.
    held: OwnedFd,
    made: bool,
}

impl Placeholders {
    /// Puts one at each path where nothing is, and shares those that are there.
    ///
    /// # Errors
    /// One cannot be made; the path comes with it.
    pub(super) fn place(paths: &[PathBuf]) -> Result<Self, (PathBuf, io::Error)> {
        let mut placed = Self::default();
        for path in paths {
            let placeholder = place(path).map_err(|error| (path.clone(), error))?;
            placed.0.extend(placeholder);
        }
        Ok(placed)
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for placeholder in self.0.drain(..) {
            let Placeholder { path, held, made } = placeholder;
            let last = lock(&held, FlockOperation::NonBlockingLockExclusive).is_ok();
            if last && stands(&path, &held) && is_neutral(&path) && (made || is_marked(&path)) {
                // A directory goes only while it is empty.
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
            }
        }
    }
}

/// Returns the placeholder at `path`; none where something else is.
fn place(path: &Path) -> io::Result<Option<Placeholder>> {
    for _ in 0..TRIES {
        let made = match make(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            // There the command cannot make it either.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => return Ok(None),
            made => made.map(|()| true)?,
        };
        let Ok(held) = open(path) else {
            // What cannot be opened is none of ours, and what is gone was another command's.
            if path.symlink_metadata().is_ok() {
                return Ok(None);
            }
            continue;
        };
        let locked = lock(&held, FlockOperation::NonBlockingLockShared);
        let removed = locked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        if removed || !stands(path, &held) {
            std::thread::sleep(PAUSE);
            continue;
        }
        // On a file system without locks nobody can tell who needs it, and it stays.
        let path = path.to_owned();
        let ours = made || is_neutral(&path);
        return Ok(ours.then_some(Placeholder { path, held, made }));
    }
    Err(io::Error::other("it goes as often as it is made"))
}

/// Makes what has no effect under this name, in one step.
fn make(path: &Path) -> io::Result<()> {
    if is_file(path) {
        let dir = path.parent().unwrap_or(path);
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(dir)?;
        file.write_all(content(path).as_bytes())?;
        // A file system that has no such bit loses the mark alone.
        let _ = fs::set_permissions(file.path(), Permissions::from_mode(MARK | 0o644));
        file.persist_noclobber(path)?;
    } else {
        fs::create_dir(path)?;
        let _ = fs::set_permissions(path, Permissions::from_mode(MARK | 0o755));
    }
    Ok(())
}

fn is_file(path: &Path) -> bool {
    path.ends_with("config") || path.ends_with("config.worktree") || path.ends_with("commondir")
}

/// A `commondir` that names its own directory moves nothing.
fn content(path: &Path) -> &'static str {
    if path.ends_with("commondir") {
        ".\n"
    } else {
        ""
    }
}

fn is_neutral(path: &Path) -> bool {
    if is_file(path) {
        crate::regular::text(path).is_ok_and(|text| text == content(path))
    } else {
        !path.is_symlink() && crate::repository::is_empty(path)
    }
}

fn is_marked(path: &Path) -> bool {
    let meta = path.symlink_metadata();
    meta.is_ok_and(|meta| meta.mode() & MARK != 0)
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, how, Mode::empty())?)
}

fn lock(held: &OwnedFd, how: FlockOperation) -> io::Result<()> {
    Ok(rustix::fs::flock(held.as_fd(), how)?)
}

/// Whether what is open is still what stands at the path.
fn stands(path: &Path, held: &OwnedFd) -> bool {
    let Ok(open) = rustix::fs::fstat(held) else {
        return false;
    };
    let there = path.symlink_metadata();
    there.is_ok_and(|it| (it.dev(), it.ino()) == (open.st_dev, open.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<PathBuf> {
        ["commondir", "config.worktree", "hooks"]
            .map(|name| dir.join(name))
            .to_vec()
    }

    fn left(dir: &Path) -> Vec<String> {
        let entries = dir.read_dir().unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_last_command_removes_them() {
        let dir = tempfile::tempdir().unwrap();
        let first = Placeholders::place(&names(dir.path())).unwrap();
        let second = Placeholders::place(&names(dir.path())).unwrap();
        assert_eq!(left(dir.path()), ["commondir", "config.worktree", "hooks"]);
        assert_eq!(
            fs::read_to_string(dir.path().join("commondir")).unwrap(),
            ".\n"
        );
        drop(first);
        assert_eq!(left(dir.path()), ["commondir", "config.worktree", "hooks"]);
        drop(second);
        assert!(left(dir.path()).is_empty());
    }

    #[test]
    fn what_a_killed_backend_left_is_removed_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let killed = Placeholders::place(&names(dir.path())).unwrap();
        for placeholder in &killed.0 {
            // As the kernel does when a process ends.
            lock(&placeholder.held, FlockOperation::Unlock).unwrap();
        }
        std::mem::forget(killed);
        drop(Placeholders::place(&names(dir.path())).unwrap());
        assert!(left(dir.path()).is_empty());
    }

    #[test]
    fn what_others_made_or_filled_stays() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("hooks")).unwrap();
        fs::write(dir.path().join("commondir"), "../elsewhere\n").unwrap();
        let placed = Placeholders::place(&names(dir.path())).unwrap();
        fs::write(dir.path().join("config.worktree"), "[core]\n").unwrap();
        drop(placed);
        assert_eq!(left(dir.path()), ["commondir", "config.worktree", "hooks"]);
    }

    #[test]
    fn many_commands_side_by_side_each_have_theirs() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let placed = Placeholders::place(&names(dir.path())).unwrap();
                        assert_eq!(placed.0.len(), 3);
                        assert!(names(dir.path()).iter().all(|path| is_neutral(path)));
                    }
                });
            }
        });
        assert!(left(dir.path()).is_empty());
    }
}
