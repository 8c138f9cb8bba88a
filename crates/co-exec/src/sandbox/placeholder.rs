//! Placeholders: files without effect in place of missing git files, so that a command cannot create these files.
//!
//! Mounts can protect only existing paths. All commands that need the same placeholder share it, including commands of other
//! backends. Each command holds a lock on the placeholder, and the last command removes it.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::FlockOperation;

use crate::beneath::{Dir, Node};
use crate::regular::SMALL_FILE_BYTES;

/// The sticky bit, which marks a placeholder. A killed backend leaves placeholders behind, and the mark distinguishes them from
/// files that must not be removed.
const MARK: u32 = 0o1000;
/// The most attempts to lock a placeholder that other commands keep removing.
const MAX_LOCK_TRIES: usize = 1000;
/// The prefix of the temporary name under which a placeholder is created.
const TEMPORARY: &str = ".co-";
const LOCK_RETRY_INTERVAL: Duration = Duration::from_micros(100);

/// The placeholders of one command. Dropping it removes the placeholders that no other command needs.
#[derive(Debug, Default)]
pub(crate) struct Placeholders(Vec<Placeholder>);

#[derive(Debug)]
struct Placeholder {
    place: EntryPlace,
    /// The lock on the placeholder, held while the command may run.
    held: OwnedFd,
    made: bool,
}

/// The place of a placeholder: a name in an open directory.
#[derive(Debug)]
struct EntryPlace {
    /// The open directory. Entries of the same directory share it, so that few descriptors are open.
    dir: Arc<Dir>,
    name: OsString,
}

impl Placeholders {
    /// Creates a placeholder at each canonical path that does not exist. Shares existing placeholders.
    ///
    /// # Errors
    /// A placeholder cannot be created. The error includes its path.
    pub(crate) fn place(paths: &[PathBuf]) -> Result<Self, (PathBuf, io::Error)> {
        let mut placed = Self::default();
        let mut last = None;
        for path in paths {
            let placeholder = EntryPlace::of(path, &mut last).and_then(EntryPlace::fill);
            let placeholder = placeholder.map_err(|error| (path.clone(), error))?;
            placed.0.extend(placeholder);
        }
        Ok(placed)
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for placeholder in self.0.drain(..) {
            let Placeholder { place, held, made } = placeholder;
            let last = lock(&held, FlockOperation::NonBlockingLockExclusive).is_ok();
            if last && place.is_still(&held) && place.is_neutral() && (made || place.is_marked()) {
                let EntryPlace { dir, name } = place;
                // The system removes a directory only if it is empty.
                let _ = dir.remove_file(&name).or_else(|_| dir.remove_dir(&name));
            }
        }
    }
}

impl EntryPlace {
    /// Opens the directory of a canonical path. Reuses `last`, the directory of the path before, if it is the same.
    fn of(real: &Path, last: &mut Option<(PathBuf, Arc<Dir>)>) -> io::Result<Self> {
        let above = real.parent().unwrap_or(real);
        let dir = match last.take() {
            Some((path, dir)) if path == above => dir,
            _ => Arc::new(Dir::open(above)?),
        };
        *last = Some((above.to_owned(), Arc::clone(&dir)));
        let name = real.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let name = name.to_owned();
        Ok(Self { dir, name })
    }

    /// Creates a placeholder here, or shares an existing one. Returns `None` if there is another file, or if nobody can create a
    /// file here.
    fn fill(self) -> io::Result<Option<Placeholder>> {
        for _ in 0..MAX_LOCK_TRIES {
            let made = match self.make() {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
                // Nobody can make the file there, so the command cannot either.
                Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => return Ok(None),
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied && !self.is_in_own() =>
                {
                    return Ok(None);
                }
                made => made.map(|()| true)?,
            };
            let held = match self.dir.open_to_lock(&self.name) {
                Ok(held) => held,
                // Another command removed it, and a third one may have made it again by now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                // A file that cannot be opened is no placeholder of ours.
                Err(_) => return Ok(None),
            };
            let locked = lock(&held, FlockOperation::NonBlockingLockShared);
            let removed = locked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
            if removed || !self.is_still(&held) {
                std::thread::sleep(LOCK_RETRY_INTERVAL);
                continue;
            }
            // On a file system without locks, co cannot know which commands need the placeholder, so it stays.
            let ours = made || self.is_neutral();
            let place = self;
            return Ok(ours.then_some(Placeholder { place, held, made }));
        }
        Err(io::Error::other("another process removes it each time"))
    }

    /// Returns whether the directory belongs to this user. If it does, a command could make it writable.
    fn is_in_own(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        self.dir.itself().map_or(true, |dir| dir.owner.0 == own)
    }

    /// Creates a file or directory that has no effect, in one atomic step.
    fn make(&self) -> io::Result<()> {
        if self.takes_file() {
            let (unfinished, mut file) = self.dir.make_unfinished(TEMPORARY, 0o644)?;
            file.write_all(self.content().as_bytes())?;
            // On a file system without this bit, only the mark is missing.
            let _ = file.set_permissions(Permissions::from_mode(MARK | 0o644));
            unfinished.create(&self.name)
        } else {
            let made = self.dir.make_dir(&self.name)?;
            let _ = made.set_mode("", MARK | 0o755);
            Ok(())
        }
    }

    fn takes_file(&self) -> bool {
        ["config", "config.worktree", "commondir"]
            .iter()
            .any(|name| self.name == *name)
    }

    /// Returns the content of the placeholder. A `commondir` must name its own directory to have no effect.
    fn content(&self) -> &'static str {
        if self.name == "commondir" { ".\n" } else { "" }
    }

    fn is_neutral(&self) -> bool {
        if self.takes_file() {
            let read = self.dir.read(&self.name, SMALL_FILE_BYTES);
            read.is_ok_and(|bytes| bytes == self.content().as_bytes())
        } else {
            let opened = self.dir.dir(&self.name);
            opened.is_ok_and(|dir| dir.names().is_ok_and(|names| names.is_empty()))
        }
    }

    fn is_marked(&self) -> bool {
        self.node().is_some_and(|node| node.mode & MARK != 0)
    }

    /// Returns whether the open file `held` is still the file with this name.
    fn is_still(&self, held: &OwnedFd) -> bool {
        let open = Node::of(held).map(|open| open.stamp.inode());
        let there = self.node().map(|there| there.stamp.inode());
        open.is_ok_and(|open| there == Some(open))
    }

    fn node(&self) -> Option<Node> {
        self.dir.node(&self.name).ok().flatten()
    }
}

fn lock(held: &OwnedFd, how: FlockOperation) -> io::Result<()> {
    Ok(rustix::fs::flock(held.as_fd(), how)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};

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
                        assert!(placed.0.iter().all(|it| it.place.is_neutral()));
                    }
                });
            }
        });
        assert!(left(dir.path()).is_empty());
    }

    #[test]
    fn a_link_in_place_of_the_directory_leads_nowhere() {
        let [dir, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let git = dir.path().join("git");
        fs::create_dir(&git).unwrap();
        let placed = Placeholders::place(&names(&git)).unwrap();
        let theirs = Placeholders::place(&names(outside.path())).unwrap();
        std::mem::forget(theirs);
        fs::rename(&git, dir.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(outside.path(), &git).unwrap();
        let refused = Placeholders::place(&names(&git)).unwrap_err();
        assert_eq!(refused.0, git.join("commondir"));
        drop(placed);
        assert!(left(&dir.path().join("moved")).is_empty());
        let stay = ["commondir", "config.worktree", "hooks"];
        assert_eq!(left(outside.path()), stay);
    }

    #[test]
    fn links_at_the_names_of_unfinished_files_lead_nowhere() {
        let [dir, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let theirs = outside.path().join("rc");
        fs::write(&theirs, "theirs").unwrap();
        let mode = theirs.metadata().unwrap().permissions();
        let link = dir.path().join("link");
        let put_link = |place: &Path| {
            let _is_there = std::os::unix::fs::symlink(&theirs, &link);
            let _is_gone = fs::rename(&link, place);
        };
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    for name in left(dir.path()) {
                        if name.starts_with(TEMPORARY) {
                            put_link(&dir.path().join(name));
                        }
                    }
                }
            });
            for _ in 0..300 {
                let _refused = Placeholders::place(&names(dir.path()));
                for place in names(dir.path()).iter().filter(|it| it.is_symlink()) {
                    fs::remove_file(place).unwrap();
                }
            }
            ended.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
        assert_eq!(theirs.metadata().unwrap().permissions(), mode);
    }
}
