//! Opens pseudo-terminals.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

/// The pause before the next attempt to read or write a terminal that no program has open.
pub(crate) const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The size of a terminal, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct TerminalSize {
    pub columns: u16,
    pub rows: u16,
}

/// Opens a pseudo-terminal of this size. Returns the end for the command, then the end for this process.
pub(crate) fn open(size: TerminalSize) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let own = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&own)?;
    rustix::pty::unlockpt(&own)?;
    // Opened by descriptor: its path may name another terminal if another /dev/pts is mounted.
    let terminal = rustix::pty::ioctl_tiocgptpeer(&own, flags)?;
    resize(&own, size)?;
    Ok((terminal, own))
}

/// Sets the size of a terminal. The kernel sends SIGWINCH to its programs.
pub(crate) fn resize(terminal: impl AsFd, size: TerminalSize) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows.max(1),
        ws_col: size.columns.max(1),
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(rustix::termios::tcsetwinsize(terminal, size)?)
}
