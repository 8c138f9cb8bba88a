//! Locks on the directories of ignored files.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The directory of the ignored files.
pub(super) const FILES: &str = "files";

/// Returns true if an attempt to lock without waiting succeeded, and false if somebody else holds the lock. `locked` is the
/// result of the attempt.
///
/// # Errors
/// The file system does not support locks.
pub(super) fn is_held(locked: io::Result<()>) -> io::Result<bool> {
    match locked {
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {
            Ok(false)
        }
        locked => locked.map(|()| true),
    }
}

/// Returns true if an open directory is still the directory at a path.
pub(super) fn is_at(dir: &OwnedFd, path: &Path) -> bool {
    let opened = rustix::fs::fstat(dir);
    let there = fs::symlink_metadata(path);
    matches!((opened, there), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.dev(), b.ino()))
}
