//! Writes to the standard input of a running command.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::process::pty::{self, TerminalSize};
use crate::process::streams::Streams;

/// The most writes that may wait until the command reads them.
const MAX_WAITING_WRITES: usize = 256;
/// The most bytes that may wait until the command reads them. A larger write is accepted if nothing else waits.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// The end-of-file character of a terminal.
const END_OF_FILE: u8 = 4;

/// A handle for the standard input of a running command. Cloning is cheap, and its methods never block.
#[derive(Debug, Clone)]
pub struct CommandInput {
    messages: mpsc::Sender<InputMessage>,
    /// The number of bytes that wait to be written.
    waiting: Arc<AtomicUsize>,
    fd: Weak<AsyncFd<OwnedFd>>,
    terminal: bool,
}

/// The reason why the input was refused.
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
    /// True to close the input after `bytes`.
    close: bool,
}

impl CommandInput {
    /// Starts the task that writes the input. The task ends when the input is closed or `over` is cancelled.
    pub(crate) fn start(fd: AsyncFd<OwnedFd>, streams: Streams, over: CancellationToken) -> Self {
        let fd = Arc::new(fd);
        let terminal = matches!(streams, Streams::Terminal(_));
        let (messages, inbox) = mpsc::channel(MAX_WAITING_WRITES);
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
                () = write_messages(&fd, inbox, &waiting, terminal) => {}
            }
        });
        input
    }

    /// Queues `bytes` for the command.
    ///
    /// # Errors
    /// Too much input waits already, or the input is closed.
    pub fn write(&self, bytes: Vec<u8>) -> Result<(), InputError> {
        self.put(bytes, false)
    }

    /// Closes the input after all queued bytes. A terminal gets an end-of-file character instead.
    ///
    /// # Errors
    /// Too much input waits already, or the input is closed.
    pub fn close(&self) -> Result<(), InputError> {
        self.put(Vec::new(), true)
    }

    /// Queues `bytes`. If `close` is true, also closes the input after them. Either all of this is done or nothing.
    ///
    /// # Errors
    /// Too much input waits already, or the input is closed.
    pub fn put(&self, bytes: Vec<u8>, close: bool) -> Result<(), InputError> {
        let length = bytes.len();
        let before = self.waiting.fetch_add(length, Ordering::AcqRel);
        let fits = before == 0 || before.saturating_add(length) <= MAX_WAITING_BYTES;
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

    /// Returns whether the input is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Sets the size of the terminal. Does nothing if the input is a pipe.
    pub fn resize(&self, size: TerminalSize) {
        if let (true, Some(fd)) = (self.terminal, self.fd.upgrade()) {
            // This fails if the command has ended.
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

/// Writes the queued bytes until the input is closed or the command stops reading.
async fn write_messages(
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
            // A terminal that no program has open may accept nothing, and yet always counts as ready.
            Err(_) if closed => tokio::time::sleep(pty::RETRY_INTERVAL).await,
            Err(_) => {}
        }
    }
    Ok(())
}
