//! Lines of both directions over a pair of pipes, with limits.

use std::io;
use std::pin::Pin;

use co_lines::{BoundedLine, LineReader, LineWriter};
use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::transport::UnaskedMemory;

/// Sends and receives messages over the standard input and output of a server.
pub(crate) struct Pipes {
    lines: LineReader<Pin<Box<dyn AsyncRead + Send>>>,
    /// The writer to the server's standard input. Dropping it closes this input.
    outgoing: Option<LineWriter>,
    unasked: UnaskedMemory,
    /// The number of bytes of memory that the lines so far took and that were already added to `unasked`.
    counted: u64,
    ended: CancellationToken,
}

impl Pipes {
    /// Makes the pipes. Cancels `ended` if the server stops reading its input. Call it within a tokio runtime.
    pub(crate) fn new(
        output: impl AsyncRead + Send + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
        unasked: UnaskedMemory,
        ended: CancellationToken,
    ) -> Self {
        let output: Pin<Box<dyn AsyncRead + Send>> = Box::pin(output);
        Self {
            lines: LineReader::new(output).stopping(),
            outgoing: Some(LineWriter::new("server", input)),
            unasked,
            counted: 0,
            ended,
        }
    }

    /// Queues a message to the server.
    fn put(&self, message: &TxJsonRpcMessage<RoleClient>) -> io::Result<()> {
        let line = serde_json::to_string(message)?;
        let outgoing = self.outgoing.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        outgoing.queue().send(line).map_err(io::Error::other)
    }
}

impl Transport<RoleClient> for Pipes {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sent = self.put(&message);
        let is_reply = matches!(
            message,
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
        );
        // Later calls would not reach the server either. If it does not read a reply, it does not wait for it.
        if sent.is_err() && !is_reply {
            self.ended.cancel();
        }
        std::future::ready(sent)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            // A line that is too large or is no text ends the connection.
            let (BoundedLine::Whole(line) | BoundedLine::Partial(line)) =
                self.lines.next().await.ok()??
            else {
                return None;
            };
            let line = str::from_utf8(&line).ok()?;
            let taken = self.lines.taken();
            if !self.unasked.add(taken - self.counted) {
                return None;
            }
            self.counted = taken;
            // Programs print other lines too, such as a greeting.
            if let Ok(message) = serde_json::from_str(line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.outgoing = None;
        Ok(())
    }
}
