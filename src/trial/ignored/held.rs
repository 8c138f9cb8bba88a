//! Locks on the directories of ignored files.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

/// The directory of the files.
pub(super) const FILES: &str = "files";

/// Opens a directory to lock it.
pub(super) fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Locks a directory without waiting. Returns whether it is locked.
///
/// # Errors
/// The file system has no locks.
pub(super) fn lock(dir: &OwnedFd, how: FlockOperation) -> io::Result<bool> {
    match flock(dir, how) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Unlocks a directory. To close it is not enough: a child of this process that starts just now has the descriptor too.
pub(super) fn unlock(dir: &OwnedFd) {
    let _unlocked = flock(dir, FlockOperation::Unlock);
}

/// Returns whether an open directory is still the one at a path.
pub(super) fn is_at(dir: &OwnedFd, path: &Path) -> bool {
    let opened = rustix::fs::fstat(dir);
    let there = fs::symlink_metadata(path);
    matches!((opened, there), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.dev(), b.ino()))
}
