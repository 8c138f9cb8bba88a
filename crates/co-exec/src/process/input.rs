//! The way to a running command's standard input.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::output::reader::AGAIN;
use crate::process::pty::{self, Size};
use crate::process::streams::Streams;

/// How many writes may wait for the command to read them, and how many bytes in them. What is larger than that is taken
/// where nothing waits.
const WAITING: usize = 256;
const WAITING_BYTES: usize = 1 << 20;
/// What ends the input of a terminal in its usual mode.
const END_OF_FILE: u8 = 4;

/// Writes to a running command's standard input. A cheap handle; never waits.
#[derive(Debug, Clone)]
pub struct Input {
    messages: mpsc::Sender<InputMessage>,
    /// Bytes that wait.
    waiting: Arc<AtomicUsize>,
    fd: Weak<AsyncFd<OwnedFd>>,
    terminal: bool,
}

/// Why nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    #[error(
        "the command does not read its input, and what waits for it is as much as may; try again later"
    )]
    Full,
    #[error("its standard input is closed")]
    Closed,
}

#[derive(Debug)]
struct InputMessage {
    bytes: Vec<u8>,
    /// Nothing comes after them.
    close: bool,
}

impl Input {
    /// Starts the task that writes; it ends with the input, or when `over` is told.
    pub(crate) fn start(fd: AsyncFd<OwnedFd>, streams: Streams, over: CancellationToken) -> Self {
        let fd = Arc::new(fd);
        let terminal = matches!(streams, Streams::Terminal(_));
        let (messages, inbox) = mpsc::channel(WAITING);
        let waiting = Arc::<AtomicUsize>::default();
        let input = Self {
            messages,
            waiting: Arc::clone(&waiting),
            fd: Arc::downgrade(&fd),
            terminal,
        };
        tokio::spawn(async move {
            tokio::select! {
                () = over.cancelled() => {}
                () = serve(&fd, inbox, &waiting, terminal) => {}
            }
        });
        input
    }

    /// Hands `bytes` over, to be written as the command reads them.
    ///
    /// # Errors
    /// Too much waits already, or nobody will ever read it.
    pub fn write(&self, bytes: Vec<u8>) -> Result<(), InputError> {
        self.put(bytes, false)
    }

    /// Ends the input after what was handed over. A terminal's is not ended: it is told that there is no more.
    ///
    /// # Errors
    /// Too much waits already, or it is closed.
    pub fn close(&self) -> Result<(), InputError> {
        self.put(Vec::new(), true)
    }

    /// Hands `bytes` over and, where `close` is set, ends the input after them: both, or none of it.
    ///
    /// # Errors
    /// Too much waits already, or nobody will ever read it.
    pub fn put(&self, bytes: Vec<u8>, close: bool) -> Result<(), InputError> {
        let length = bytes.len();
        let before = self.waiting.fetch_add(length, Ordering::AcqRel);
        let fits = before == 0 || before.saturating_add(length) <= WAITING_BYTES;
        let done = match fits {
            true => self.message(InputMessage { bytes, close }),
            false if self.messages.is_closed() => Err(InputError::Closed),
            false => Err(InputError::Full),
        };
        if done.is_err() {
            self.waiting.fetch_sub(length, Ordering::AcqRel);
        }
        done
    }

    /// Returns whether it is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Makes the terminal that large; a pipe has no size.
    pub fn resize(&self, size: Size) {
        if let (true, Some(fd)) = (self.terminal, self.fd.upgrade()) {
            // It fails where the command is gone.
            let _ = pty::resize(fd.get_ref(), size);
        }
    }

    fn message(&self, message: InputMessage) -> Result<(), InputError> {
        self.messages
            .try_send(message)
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => InputError::Full,
                mpsc::error::TrySendError::Closed(_) => InputError::Closed,
            })
    }
}

/// Writes what comes until the input ends or nobody reads it any more.
async fn serve(
    fd: &AsyncFd<OwnedFd>,
    mut inbox: mpsc::Receiver<InputMessage>,
    waiting: &AtomicUsize,
    terminal: bool,
) {
    while let Some(message) = inbox.recv().await {
        let mut written = write_all(fd, &message.bytes).await;
        waiting.fetch_sub(message.bytes.len(), Ordering::AcqRel);
        match message.close {
            true if terminal && written.is_ok() => written = write_all(fd, &[END_OF_FILE]).await,
            true => return,
            false => {}
        }
        if written.is_err() {
            return;
        }
    }
}

async fn write_all(fd: &AsyncFd<OwnedFd>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let mut ready = fd.writable().await?;
        let closed = ready.ready().is_write_closed();
        match ready.try_io(|fd| Ok(rustix::io::write(fd, bytes)?)) {
            Ok(Ok(count)) => bytes = &bytes[count..],
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => return Err(error),
            // A terminal that no program has open any more may take nothing, and yet always counts as ready.
            Err(_) if closed => tokio::time::sleep(AGAIN).await,
            Err(_) => {}
        }
    }
    Ok(())
}
