//! A confined command's private temporary directory, removed with whatever the command left in it.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};

/// What its name begins with.
const PREFIX: &str = "co-tmp-";
/// What nobody holds is nobody's after this time; one that was made just now may not be held yet.
const FRESH: Duration = Duration::from_secs(60);

/// A directory as such, however little may be done in it, and never where a link leads.
const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Each level takes a descriptor.
const DEPTH: usize = 100;

/// The directory, which only its owner may enter; it is removed when this is dropped.
#[derive(Debug)]
pub struct PrivateTmp {
    dir: tempfile::TempDir,
    /// Locked for as long as the directory is ours: see [`prune`].
    _held: OwnedFd,
}

impl PrivateTmp {
    pub(super) fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(parent: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        let held = open(dir.path())?;
        // On a file system without locks nobody else gets one either, and nothing is pruned.
        let _ = lock(&held);
        Ok(Self { dir, _held: held })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for PrivateTmp {
    fn drop(&mut self) {
        remove(self.path());
    }
}

/// Removes what backends that were killed have left. Nothing is told of what cannot be removed.
pub(in crate::exec) fn prune() {
    prune_in(&std::env::temp_dir(), FRESH);
}

fn prune_in(parent: &Path, fresh: Duration) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let named = |entry: &fs::DirEntry| {
        entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
    };
    for path in entries.filter(named).map(|entry| entry.path()) {
        if let Ok(held) = open(&path)
            && is_left(&held, fresh)
            && lock(&held).is_ok()
        {
            remove(&path);
        }
    }
}

/// Returns whether a directory is ours and nothing was made or removed in it lately.
fn is_left(dir: &OwnedFd, fresh: Duration) -> bool {
    let facts = fs::metadata(itself(dir));
    facts.is_ok_and(|facts| {
        let age = facts.modified().ok().and_then(|at| at.elapsed().ok());
        facts.uid() == rustix::process::geteuid().as_raw() && age.is_some_and(|age| age >= fresh)
    })
}

/// Opens a directory, never where a link leads.
fn open(path: &Path) -> io::Result<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, how, Mode::empty())?)
}

/// Takes the lock that whoever uses the directory has; it is given back when `dir` is closed, however that comes.
fn lock(dir: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::flock(
        dir,
        FlockOperation::NonBlockingLockExclusive,
    )?)
}

fn remove(path: &Path) {
    if fs::remove_dir_all(path).is_err() {
        open_up(path);
        // What is left then stays, as where the file system went read-only.
        let _ = fs::remove_dir_all(path);
    }
}

/// The name of what is open.
fn itself(dir: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", dir.as_raw_fd())
}

/// Gives its owner back the directories of a tree that a command closed: one that cannot be listed cannot be
/// emptied. By descriptors all the way: what a process of the command puts in a directory's place is not touched.
fn open_up(root: &Path) {
    if let Ok(root) = rustix::fs::open(root, DIRECTORY, Mode::empty()) {
        open_below(&root, DEPTH);
    }
}

/// What fails shows when the tree is removed.
fn open_below(dir: &OwnedFd, depth: usize) {
    let itself = itself(dir);
    let _ = fs::set_permissions(&itself, Permissions::from_mode(0o700));
    let entries = fs::read_dir(&itself).into_iter().flatten().flatten();
    if depth == 0 {
        return;
    }
    for entry in entries.filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir())) {
        if let Ok(inner) = rustix::fs::openat(dir, entry.file_name(), DIRECTORY, Mode::empty()) {
            open_below(&inner, depth - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn closed_directories_are_opened_and_links_let_be() {
        let outside = tempfile::tempdir().unwrap();
        let tmp = PrivateTmp::new().unwrap();
        let inner = tmp.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        std::os::unix::fs::symlink(outside.path(), tmp.path().join("link")).unwrap();
        let close = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o0)).unwrap();
        close(outside.path());
        close(&inner);
        close(&tmp.path().join("a"));
        open_up(tmp.path());
        assert_eq!([mode(&tmp.path().join("a")), mode(&inner)], [0o700, 0o700]);
        assert_eq!(mode(outside.path()), 0);
        fs::set_permissions(outside.path(), Permissions::from_mode(0o700)).unwrap();
        let path = tmp.path().to_owned();
        drop(tmp);
        assert!(!path.exists() && outside.path().exists());
    }
    #[test]
    fn nobody_else_may_enter_it() {
        let tmp = PrivateTmp::new().unwrap();
        assert_eq!(mode(tmp.path()), 0o700);
    }

    #[test]
    fn what_is_left_is_pruned_and_what_is_held_or_fresh_is_not() {
        let root = tempfile::tempdir().unwrap();
        let left = root.path().join("co-tmp-left");
        fs::create_dir_all(left.join("a")).unwrap();
        fs::set_permissions(left.join("a"), Permissions::from_mode(0o0)).unwrap();
        let elsewhere = root.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, root.path().join("co-tmp-link")).unwrap();
        let held = PrivateTmp::new_in(root.path()).unwrap();
        prune_in(root.path(), FRESH);
        assert!(left.exists());
        prune_in(root.path(), Duration::ZERO);
        assert!(!left.exists() && held.path().exists() && elsewhere.exists());
        assert!(root.path().join("co-tmp-link").is_symlink());
    }
}
