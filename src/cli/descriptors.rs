//! Checks that the process may open enough files; some libraries panic if they cannot open theirs.

use std::os::fd::OwnedFd;

use rustix::io::fcntl_dupfd_cloexec;

/// Enough for the backend, a chat and a few commands; an idle backend has 14 files open.
const NEEDED_DESCRIPTORS: usize = 32;

/// The limit of open files is too low.
#[derive(Debug, thiserror::Error)]
#[error(
    "co-nvim may open only {allowed} more files and needs {NEEDED_DESCRIPTORS}: raise the limit of open files (ulimit -n)"
)]
pub(super) struct TooFew {
    allowed: usize,
}

/// Opens the needed number of descriptors for a moment, because the limit does not show how many are in use.
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
