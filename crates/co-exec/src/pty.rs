//! Terminals for commands that want one.

use std::io;
use std::os::fd::AsFd;

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use super::Size;
use super::streams::Ends;

/// Makes a terminal of that size.
pub(super) fn open(size: Size) -> io::Result<Ends> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let output = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&output)?;
    rustix::pty::unlockpt(&output)?;
    // Not by its path, which need not be this one's where /dev/pts is another's.
    let terminal = rustix::pty::ioctl_tiocgptpeer(&output, flags)?;
    resize(&output, size)?;
    Ok(Ends {
        stdin: terminal.try_clone()?,
        write: terminal,
        input: Some(output.try_clone()?),
        output,
    })
}

/// Tells the terminal, and through it the programs in it, how large it is.
pub(super) fn resize(terminal: impl AsFd, size: Size) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows.max(1),
        ws_col: size.columns.max(1),
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(rustix::termios::tcsetwinsize(terminal, size)?)
}
