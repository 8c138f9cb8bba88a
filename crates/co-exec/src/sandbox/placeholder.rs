//! Placeholders: files without effect in place of missing git files, so that a command cannot make those files.
//!
//! Mounts can protect only existing paths. All commands that need a placeholder share it, also commands of other
//! processes. Each keeps a lock on it, and the last one removes it.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};

/// The sticky bit, which marks a placeholder. A killed process leaves placeholders behind, and other files must not
/// be removed.
const MARK: u32 = 0o1000;
/// The most attempts to lock a placeholder that other commands remove meanwhile.
const MAX_LOCK_TRIES: usize = 1000;
const LOCK_RETRY_INTERVAL: Duration = Duration::from_micros(100);

/// The placeholders of one command. Those that no other command needs are removed when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Placeholders(Vec<Placeholder>);

#[derive(Debug)]
struct Placeholder {
    path: PathBuf,
    /// Locked while the command may run.
    held: OwnedFd,
    made: bool,
}

impl Placeholders {
    /// Puts a placeholder at each path that does not exist, and shares existing placeholders.
    ///
    /// # Errors
    /// A placeholder cannot be made. The error comes with its path.
    pub(crate) fn place(paths: &[PathBuf]) -> Result<Self, (PathBuf, io::Error)> {
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
            if last && is_unchanged(&path, &held) && is_neutral(&path) && (made || is_marked(&path))
            {
                // The system removes a directory only if it is empty.
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
            }
        }
    }
}

/// Returns the placeholder at `path`; none if another file is there.
fn place(path: &Path) -> io::Result<Option<Placeholder>> {
    for _ in 0..MAX_LOCK_TRIES {
        let made = match make(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            // Nobody can make the file there, so the command cannot either.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_in_own(path) => {
                return Ok(None);
            }
            made => made.map(|()| true)?,
        };
        let held = match open(path) {
            Ok(held) => held,
            // Another command removed it, and a third one may have made it again by now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // A file that cannot be opened is no placeholder of ours.
            Err(_) => return Ok(None),
        };
        let locked = lock(&held, FlockOperation::NonBlockingLockShared);
        let removed = locked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        if removed || !is_unchanged(path, &held) {
            std::thread::sleep(LOCK_RETRY_INTERVAL);
            continue;
        }
        // On a file system without locks, co cannot know which commands need the placeholder, so it stays.
        let path = path.to_owned();
        let ours = made || is_neutral(&path);
        return Ok(ours.then_some(Placeholder { path, held, made }));
    }
    Err(io::Error::other("another process removes it each time"))
}

/// Returns whether the directory of `path` belongs to this user, whose commands could then make it writable.
fn is_in_own(path: &Path) -> bool {
    let dir = path.parent().and_then(|dir| dir.metadata().ok());
    dir.is_none_or(|dir| dir.uid() == rustix::process::geteuid().as_raw())
}

/// Makes a file or directory without effect under this name, in one step.
fn make(path: &Path) -> io::Result<()> {
    if is_file(path) {
        let dir = path.parent().unwrap_or(path);
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(dir)?;
        file.write_all(content(path).as_bytes())?;
        // On a file system without this bit, only the mark is missing.
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

/// A `commondir` that names its own directory has no effect.
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

/// Returns whether the open file is still the one at the path.
fn is_unchanged(path: &Path, held: &OwnedFd) -> bool {
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
            // The kernel does this when a process ends.
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
