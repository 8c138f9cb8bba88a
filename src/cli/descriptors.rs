//! Checks that the process may open as many files as it needs; libraries that cannot open theirs panic.

use std::os::fd::OwnedFd;

use rustix::io::fcntl_dupfd_cloexec;

/// Enough for the backend, a chat and a few commands; an idle backend has 14 files open.
const NEEDED: usize = 32;

/// Why nothing can be done.
#[derive(Debug, thiserror::Error)]
#[error(
    "co-nvim may open {allowed} more files and needs {NEEDED}: raise the limit of open files (ulimit -n) where it is started"
)]
pub(super) struct TooFew {
    allowed: usize,
}

/// Opens that many descriptors for a moment: the limit alone does not say how many are taken.
pub(super) fn check() -> Result<(), TooFew> {
    let stdin = rustix::stdio::stdin();
    let opened: Vec<OwnedFd> = (0..NEEDED)
        .map_while(|_| fcntl_dupfd_cloexec(stdin, 0).ok())
        .collect();
    match opened.len() {
        NEEDED => Ok(()),
        allowed => Err(TooFew { allowed }),
    }
}
