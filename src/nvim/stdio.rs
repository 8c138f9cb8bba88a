//! Reserves standard input and output for RPC, so that no other code writes to them and no child process inherits them.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, OFlags};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio_util::compat::Compat;

/// The stream of messages from Neovim.
pub(super) type NvimInput = Box<dyn AsyncRead + Send + Unpin>;
/// The stream of messages to Neovim.
pub(super) type NvimOutput = Box<dyn AsyncWrite + Send + Unpin>;
/// The stream of messages to Neovim, in the form that nvim-rs needs.
pub(super) type Pipe = Compat<NvimOutput>;

/// Moves the descriptors 0 and 1. Afterwards, child processes read from `/dev/null`, and stray prints go to standard error.
///
/// # Errors
/// The descriptors are neither pipes nor sockets, so Neovim did not start this process.
pub(super) fn take() -> io::Result<(NvimInput, NvimOutput)> {
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let null = rustix::fs::open(
        "/dev/null",
        OFlags::RDWR | OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok((reader(input)?, writer(output)?))
}

fn reader(fd: OwnedFd) -> io::Result<NvimInput> {
    Ok(match kind(&fd)? {
        FileType::Socket => Box::new(socket(fd)?),
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(fd)?),
        _ => return Err(not_neovim()),
    })
}

fn writer(fd: OwnedFd) -> io::Result<NvimOutput> {
    Ok(match kind(&fd)? {
        FileType::Socket => Box::new(socket(fd)?),
        FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(fd)?),
        _ => return Err(not_neovim()),
    })
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

fn kind(fd: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

fn not_neovim() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "standard input and output are not Neovim's pipes",
    )
}
