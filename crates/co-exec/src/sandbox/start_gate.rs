//! The gate at the start of a command. The launcher reports that everything is protected, or names a path that was moved. Then it
//! waits until it may start the command. The gate also passes the listening sockets of the command's own network to co.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::{AsyncWriteExt, Interest};

use super::plan::LOWEST_DESCRIPTOR;
use crate::inherited;

/// The message by which the launcher reports that everything is protected. co sends the same message back to start the command.
/// Any other message of the launcher is a path that was moved.
const READY: &[u8] = b".";

/// The most listening sockets of one command.
pub(super) const MAX_LISTENERS: usize = 64;

/// The size of the buffer for the descriptors of [`MAX_LISTENERS`] listening sockets.
const SPACE: usize = rustix::cmsg_space!(ScmRights(MAX_LISTENERS));

/// The gate, on the side of the process that starts the launcher.
#[derive(Debug)]
pub(crate) struct StartGate {
    own: UnixStream,
    /// The launcher's end. It is close-on-exec, except in the launcher that inherits it.
    launchers: OwnedFd,
}

/// The result of waiting at the gate.
#[derive(Debug)]
pub(crate) enum GateEnd {
    /// The command starts. Contains the listening sockets in the command's network namespace.
    Started(Vec<TcpListener>),
    /// A path was moved before it could be protected, so the command does not start.
    Moved(PathBuf),
    /// Some listening sockets were lost, because this process has too many open files. The command does not start.
    SocketsLost,
    /// The launcher failed for another reason, which it printed on standard error.
    Failed,
}

/// The gate, on the side of the launcher process.
#[derive(Debug)]
pub(super) struct LauncherGate(UnixStream);

impl StartGate {
    /// Creates the gate for one command.
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

    /// Waits until the launcher reports that everything is protected. Then runs `prepare`, and lets the launcher start the
    /// command. If fewer than `sockets` listening sockets arrived, the command does not start.
    ///
    /// # Errors
    /// The launcher cannot be reached.
    pub(crate) async fn open(
        self,
        sockets: usize,
        prepare: impl AsyncFnOnce(),
    ) -> io::Result<GateEnd> {
        drop(self.launchers);
        let mut gate = tokio::net::UnixStream::from_std(self.own)?;
        let (mut message, mut listeners) = (Vec::new(), Vec::new());
        while message != READY {
            let receive = || receive(gate.as_fd(), &mut message, &mut listeners);
            if gate.async_io(Interest::READABLE, receive).await? == 0 {
                break;
            }
        }
        if message == READY && listeners.len() != sockets {
            return Ok(GateEnd::SocketsLost);
        }
        if message == READY {
            prepare().await;
            gate.write_all(READY).await?;
            return Ok(GateEnd::Started(listeners));
        }
        Ok(match message.is_empty() {
            true => GateEnd::Failed,
            false => GateEnd::Moved(OsString::from_vec(message).into()),
        })
    }
}

impl LauncherGate {
    /// Opens the gate at the inherited descriptor `number`.
    ///
    /// # Errors
    /// The descriptor is not open.
    pub(super) fn inherited(number: RawFd) -> io::Result<Self> {
        inherited::open(number).map(|gate| Self(gate.into()))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Reports that everything is protected, sends the listening sockets, and waits until the command may start.
    ///
    /// # Errors
    /// The process that started the launcher does not allow the start.
    pub(super) fn pass(mut self, listeners: Vec<TcpListener>) -> io::Result<()> {
        let listeners: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); SPACE];
        let mut attached = SendAncillaryBuffer::new(&mut space);
        if !listeners.is_empty() && !attached.push(SendAncillaryMessage::ScmRights(&listeners)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        sendmsg(
            &self.0,
            &[IoSlice::new(READY)],
            &mut attached,
            SendFlags::empty(),
        )?;
        self.0.read_exact(&mut [0; READY.len()])
    }

    /// Reports a path that was moved.
    pub(super) fn refuse(mut self, path: &Path) {
        // If nobody hears it, the message on standard error is left.
        let _told = self.0.write_all(path.as_os_str().as_bytes());
    }
}

/// Receives a part of the launcher's message, and the attached sockets. Returns the number of received bytes.
fn receive(
    gate: BorrowedFd<'_>,
    message: &mut Vec<u8>,
    listeners: &mut Vec<TcpListener>,
) -> io::Result<usize> {
    let mut bytes = [0; 4096];
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(gate, &mut parts, &mut attached, RecvFlags::CMSG_CLOEXEC)?;
    for received in attached.drain() {
        if let RecvAncillaryMessage::ScmRights(sockets) = received {
            listeners.extend(sockets.map(TcpListener::from));
        }
    }
    message.extend_from_slice(&bytes[..received.bytes]);
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn end(sent: usize, wanted: usize) -> GateEnd {
        let gate = StartGate::new().unwrap();
        let launchers = LauncherGate(gate.launchers.try_clone().unwrap().into());
        let listeners = (0..sent).map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let passing = std::thread::spawn({
            let listeners = listeners.collect();
            move || launchers.pass(listeners).is_ok()
        });
        let end = gate.open(wanted, async || {}).await.unwrap();
        let started = matches!(end, GateEnd::Started(_));
        assert_eq!(passing.join().unwrap(), started);
        end
    }

    #[tokio::test]
    async fn a_command_starts_only_with_all_its_sockets() {
        let all = end(3, 3).await;
        assert!(
            matches!(&all, GateEnd::Started(listeners) if listeners.len() == 3),
            "{all:?}"
        );
        assert!(matches!(end(0, 0).await, GateEnd::Started(_)));
        assert!(matches!(end(2, 3).await, GateEnd::SocketsLost));
        assert!(matches!(end(0, 1).await, GateEnd::SocketsLost));
    }
}
