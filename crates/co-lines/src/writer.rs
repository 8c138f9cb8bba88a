//! The lines that wait for another program, and the task that writes them.

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// The most messages that wait. A client has few requests open, so more messages wait only if the other program asks many
/// questions and reads no answer.
const QUEUE: usize = 64;

/// The reason why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("the {0} no longer reads")]
    Closed(&'static str),
    #[error("the {0} does not read: {QUEUE} messages wait for it")]
    Stuck(&'static str),
}

/// The way to the standard input of another program. Dropping it closes that input.
#[derive(Debug)]
pub struct LineWriter {
    queue: LineQueue,
    _writer: AbortOnDropHandle<()>,
}

/// The queue of a [`LineWriter`]. It takes nothing more when the writer is dropped.
#[derive(Debug, Clone)]
pub struct LineQueue {
    /// The word for the other program in an error.
    reader: &'static str,
    lines: mpsc::Sender<String>,
}

impl LineWriter {
    /// Makes a writer to the `reader`, such as an "agent". Call it within a tokio runtime.
    pub fn new(reader: &'static str, stream: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (lines, waiting) = mpsc::channel(QUEUE);
        Self {
            queue: LineQueue { reader, lines },
            _writer: AbortOnDropHandle::new(tokio::spawn(write(stream, waiting))),
        }
    }

    pub fn queue(&self) -> &LineQueue {
        &self.queue
    }
}

impl LineQueue {
    /// Queues a line, without its end.
    ///
    /// # Errors
    /// The other program does not read.
    pub fn send(&self, line: String) -> Result<(), SendError> {
        self.lines.try_send(line).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendError::Stuck(self.reader),
            mpsc::error::TrySendError::Closed(_) => SendError::Closed(self.reader),
        })
    }
}

/// Writes lines until the other program reads no more.
async fn write(mut stream: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<String>) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        let written = async {
            stream.write_all(line.as_bytes()).await?;
            stream.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}
