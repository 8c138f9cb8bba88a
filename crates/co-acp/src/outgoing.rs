//! The lines that wait for the agent, and the task that writes them.

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// The most messages that wait. A client has few requests open, so more messages wait only if the agent asks many questions and
/// reads no answer.
const QUEUE: usize = 64;

/// The reason why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("the agent no longer reads")]
    Closed,
    #[error("the agent does not read: {QUEUE} messages wait for it")]
    Stuck,
}

/// The way to the agent. Dropping it closes the agent's standard input.
#[derive(Debug)]
pub(crate) struct Outgoing {
    queue: mpsc::Sender<String>,
    _writer: AbortOnDropHandle<()>,
}

impl Outgoing {
    pub(crate) fn new(stream: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (queue, lines) = mpsc::channel(QUEUE);
        Self {
            queue,
            _writer: AbortOnDropHandle::new(tokio::spawn(write(stream, lines))),
        }
    }

    /// Queues a line, without its end.
    pub(crate) fn send(&self, line: String) -> Result<(), SendError> {
        self.queue.try_send(line).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendError::Stuck,
            mpsc::error::TrySendError::Closed(_) => SendError::Closed,
        })
    }
}

/// Writes lines until the agent reads no more.
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
