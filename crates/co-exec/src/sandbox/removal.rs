//! Removes the directories of ended commands in the background, including deep trees and unreadable directories.

use std::ffi::{CStr, CString};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use tokio_util::task::TaskTracker;

/// Opens a directory without permission to read it, and without following a symbolic link.
const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The removals in progress. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Removals(TaskTracker);

impl Removals {
    /// Removes a directory on a new thread. Drops `kept` after the removal.
    pub(super) fn start<T: Send + 'static>(&self, path: &Path, kept: T) {
        let under_way = self.0.token();
        let thread = std::thread::Builder::new().name("remove".to_owned());
        let own: PathBuf = path.to_owned();
        let removing = move || {
            remove_tree(&own);
            drop((kept, under_way));
        };
        if thread.spawn(removing).is_err() {
            remove_tree(path);
        }
    }

    /// Runs work on files on a new thread. [`Self::finished`] waits for it too.
    pub fn run(&self, work: impl FnOnce() + Send + 'static) {
        let under_way = self.0.token();
        let thread = std::thread::Builder::new().name("files".to_owned());
        // Without a thread, the work is left undone.
        let _spawned = thread.spawn(move || {
            work();
            drop(under_way);
        });
    }

    /// Waits until no removal is in progress, but no longer than `limit`.
    pub async fn finished(&self, limit: Duration) {
        self.0.close();
        // The next process removes the remaining files.
        let _ = tokio::time::timeout(limit, self.0.wait()).await;
    }
}

/// Removes a directory with its contents. Skips files that cannot be removed.
///
/// To use few descriptors and short paths, moves nested directories to the top first. If a process replaces a directory by a
/// symbolic link meanwhile, does not follow the link.
pub(super) fn remove_tree(root: &Path) {
    if let Ok(top) = rustix::fs::open(root, DIRECTORY, Mode::empty()) {
        let full = names(&top).filter(|name| !remove_one(&top, name));
        let mut tree = RemovalTree {
            full: full.collect(),
            top,
            moved: 0,
        };
        while let Some(name) = tree.full.pop() {
            tree.remove_dir(&name);
        }
    }
    let _ = fs::remove_dir(root);
}

struct RemovalTree {
    top: OwnedFd,
    /// The names of directories in `top` that are not empty yet.
    full: Vec<CString>,
    /// The number in the name of the last directory that was moved to `top`.
    moved: u64,
}

impl RemovalTree {
    /// Removes a directory in `top`. First moves its non-empty subdirectories to `top`.
    fn remove_dir(&mut self, name: &CStr) {
        let Ok(dir) = rustix::fs::openat(&self.top, name, DIRECTORY, Mode::empty()) else {
            return;
        };
        for inner in names(&dir) {
            if !remove_one(&dir, &inner) {
                // If this fails, `dir` stays.
                let _ = self.move_to_top(&dir, &inner);
            }
        }
        remove_one(&self.top, name);
    }

    fn move_to_top(&mut self, dir: &OwnedFd, name: &CStr) -> io::Result<()> {
        // Moving a directory writes to it, because it names its parent.
        make_accessible(&rustix::fs::openat(dir, name, DIRECTORY, Mode::empty())?)?;
        loop {
            self.moved += 1;
            let new = CString::new(format!("co-moved-{}", self.moved))?;
            match rustix::fs::renameat(dir, name, &self.top, &new) {
                // The command already uses this name.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
                Ok(()) => {
                    self.full.push(new);
                    return Ok(());
                }
            }
        }
    }
}

/// Removes a file or an empty directory. Returns true if that succeeded.
fn remove_one(dir: &OwnedFd, name: &CStr) -> bool {
    let remove = |how| rustix::fs::unlinkat(dir, name, how);
    match remove(AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => remove(AtFlags::REMOVEDIR).is_ok(),
        done => done.is_ok(),
    }
}

/// Makes a directory readable, and returns the names of its entries.
fn names(dir: &OwnedFd) -> impl Iterator<Item = CString> + use<> {
    // If this fails, the listing fails too.
    let _ = make_accessible(dir);
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = rustix::fs::openat(dir, c".", how, Mode::empty()).and_then(Dir::new);
    let entries = listed.into_iter().flatten();
    let names = entries.map_while(|entry| Some(entry.ok()?.file_name().to_owned()));
    names.filter(|name| !matches!(name.to_bytes(), b"." | b".."))
}

/// Makes a directory accessible for its owner, because a command may have changed its mode.
fn make_accessible(dir: &OwnedFd) -> io::Result<()> {
    let itself = format!("/proc/self/fd/{}", dir.as_raw_fd());
    fs::set_permissions(itself, Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(path: &Path) {
        fs::set_permissions(path, Permissions::from_mode(0o0)).unwrap();
    }

    #[test]
    fn closed_directories_are_removed_and_links_let_be() {
        let [tmp, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        fs::write(outside.path().join("file"), "").unwrap();
        close(outside.path());
        let root = tmp.path().join("root");
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("a/link")).unwrap();
        for name in ["a/b/c", "a/b", "a", ""] {
            close(&root.join(name));
        }
        remove_tree(&root);
        assert!(!root.exists());
        let mode = outside.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0);
        fs::set_permissions(outside.path(), Permissions::from_mode(0o700)).unwrap();
        assert!(outside.path().join("file").exists());
    }

    #[test]
    fn names_that_a_command_took_are_no_obstacle() {
        let tmp = tempfile::tempdir().unwrap();
        let root = tmp.path().join("root");
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::create_dir_all(root.join("co-moved-1/full")).unwrap();
        fs::create_dir(root.join("a/co-moved-2")).unwrap();
        fs::write(root.join("co-moved-3"), "").unwrap();
        remove_tree(&root);
        assert!(!root.exists());
    }
}
