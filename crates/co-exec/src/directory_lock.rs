//! Locks directories. A process that holds the lock on a directory is alive, so other processes leave the directory alone.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};

/// Opens a directory. Fails if the last component of the path is a symbolic link.
pub fn open(path: &Path) -> io::Result<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, how, Mode::empty())?)
}

/// Takes an exclusive lock on an open directory. The lock ends when `dir` is closed, for example when the process crashes.
///
/// # Errors
/// Another process holds a lock, or the file system has no locks.
pub fn lock(dir: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::flock(
        dir,
        FlockOperation::NonBlockingLockExclusive,
    )?)
}

/// Takes a shared lock on an open directory, which conflicts only with [`lock`].
///
/// # Errors
/// Another process holds the exclusive lock, or the file system has no locks.
pub fn lock_shared(dir: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::flock(
        dir,
        FlockOperation::NonBlockingLockShared,
    )?)
}

/// Unlocks a directory that this process has locked. This also releases the lock of children that inherited `dir`.
///
/// # Errors
/// The file system has no locks.
pub fn unlock(dir: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::flock(dir, FlockOperation::Unlock)?)
}
