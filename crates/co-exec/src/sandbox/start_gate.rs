//! The gate at the start of a command: its launcher says that all is protected, or what has moved, and then waits until it may start the
//! command.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::plan::LOWEST_DESCRIPTOR;
use crate::inherited;

/// The message that all is protected, and the answer that the command may start. Another message is the path of what has moved.
const READY: &[u8] = b".";

/// The gate in the process that starts the launcher.
#[derive(Debug)]
pub(crate) struct StartGate {
    own: UnixStream,
    /// Closed on exec, except in the launcher that gets it.
    launchers: OwnedFd,
}

/// The gate in the launcher.
#[derive(Debug)]
pub(super) struct LauncherGate(UnixStream);

impl StartGate {
    /// Makes the gate of one command.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn new() -> io::Result<Self> {
        let (own, launchers) = UnixStream::pair()?;
        own.set_nonblocking(true)?;
        let launchers = rustix::io::fcntl_dupfd_cloexec(launchers, LOWEST_DESCRIPTOR)?;
        Ok(Self { own, launchers })
    }

    /// Returns the descriptor that the launcher must inherit under the same number.
    pub(super) fn inherited(&self) -> &OwnedFd {
        &self.launchers
    }

    pub(super) fn number(&self) -> RawFd {
        self.launchers.as_raw_fd()
    }

    /// Waits until all is protected. Then runs `prepare`, and lets the launcher start the command. Returns the path of what has
    /// moved; none if the command starts, or the launcher failed for another reason, which it prints.
    ///
    /// # Errors
    /// The launcher cannot be reached.
    pub(crate) async fn open(self, prepare: impl AsyncFnOnce()) -> io::Result<Option<PathBuf>> {
        drop(self.launchers);
        let mut gate = tokio::net::UnixStream::from_std(self.own)?;
        let mut message = Vec::new();
        while message != READY && gate.read_buf(&mut message).await? > 0 {}
        if message == READY {
            prepare().await;
            gate.write_all(READY).await?;
            return Ok(None);
        }
        Ok((!message.is_empty()).then(|| OsString::from_vec(message).into()))
    }
}

impl LauncherGate {
    /// Takes the inherited descriptor `number`.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn inherited(number: RawFd) -> io::Result<Self> {
        inherited::open(number).map(|gate| Self(gate.into()))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Says that all is protected, and waits until the command may start.
    ///
    /// # Errors
    /// It may not, because the process that started the launcher gave it up.
    pub(super) fn pass(mut self) -> io::Result<()> {
        self.0.write_all(READY)?;
        self.0.read_exact(&mut [0; READY.len()])
    }

    /// Says what has moved.
    pub(super) fn refuse(mut self, path: &Path) {
        // If nobody hears it, the message on standard error is left.
        let _told = self.0.write_all(path.as_os_str().as_bytes());
    }
}
