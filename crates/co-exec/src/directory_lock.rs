//! Locks on directories: as long as a process holds one, others know that its owner lives.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};

/// Opens a directory without following a link.
pub fn open(path: &Path) -> io::Result<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, how, Mode::empty())?)
}

/// Locks an open directory. The lock ends when `dir` is closed, also by a crash.
///
/// # Errors
/// Another process holds the lock, or the file system has no locks.
pub fn lock(dir: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::flock(
        dir,
        FlockOperation::NonBlockingLockExclusive,
    )?)
}

/// Locks an open directory against [`lock`] only; see there.
///
/// # Errors
/// Another process holds [`lock`], or the file system has no locks.
pub fn lock_shared(dir: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::flock(
        dir,
        FlockOperation::NonBlockingLockShared,
    )?)
}

/// Unlocks a directory that this process locked, also for its children that inherited `dir`.
///
/// # Errors
/// The file system has no locks.
pub fn unlock(dir: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::flock(dir, FlockOperation::Unlock)?)
}
