//! The queue of lines for another program, and the task that writes them.

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// The largest number of messages in the queue. A client has few open requests, so the queue is only full if the other program
/// asks many questions and reads no answer.
const QUEUE: usize = 64;

/// The reason why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("the {0} no longer reads")]
    Closed(&'static str),
    #[error("the {0} does not read: {QUEUE} messages wait for it")]
    Stuck(&'static str),
}

/// Writes lines to the standard input of another program. Dropping the writer closes this input.
#[derive(Debug)]
pub struct LineWriter {
    queue: LineQueue,
    _writer: AbortOnDropHandle<()>,
}

/// The queue of a [`LineWriter`]. Once the writer is dropped, the queue accepts no more lines.
#[derive(Debug, Clone)]
pub struct LineQueue {
    /// The word for the other program in an error message, such as "agent".
    reader: &'static str,
    lines: mpsc::Sender<String>,
}

impl LineWriter {
    /// Makes a writer to the program `reader`. `reader` is the word for the program in an error message, such as "agent". Call it
    /// within a tokio runtime.
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
    /// Queues a line, which has no line break.
    ///
    /// # Errors
    /// The other program does not read its input.
    pub fn send(&self, line: String) -> Result<(), SendError> {
        self.lines.try_send(line).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendError::Stuck(self.reader),
            mpsc::error::TrySendError::Closed(_) => SendError::Closed(self.reader),
        })
    }
}

/// Writes lines until the other program stops reading.
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
