//! Checks that the process may open enough files. Some libraries panic if they cannot open their files.

use std::os::fd::OwnedFd;

use rustix::io::fcntl_dupfd_cloexec;

/// The number of descriptors that co needs for the backend, a chat and a few commands. An idle backend has 14 files open.
const NEEDED_DESCRIPTORS: usize = 32;

/// The error if the limit of open files is too low.
#[derive(Debug, thiserror::Error)]
#[error(
    "co-nvim may open only {allowed} more files and needs {NEEDED_DESCRIPTORS}: raise the limit of open files (ulimit -n)"
)]
pub(super) struct TooFew {
    allowed: usize,
}

/// Opens the needed number of descriptors for a moment. The limit alone does not show how many are already in use.
pub(super) fn check() -> Result<(), TooFew> {
    let stdin = rustix::stdio::stdin();
    let opened: Vec<OwnedFd> = (0..NEEDED_DESCRIPTORS)
        .map_while(|_| fcntl_dupfd_cloexec(stdin, 0).ok())
        .collect();
    match opened.len() {
        NEEDED_DESCRIPTORS => Ok(()),
        allowed => Err(TooFew { allowed }),
    }
}
