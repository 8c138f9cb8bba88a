//! Limits the length of a message from Neovim.
//!
//! nvim-rs accepts any length and decodes a message again from its start with each piece that it reads, so its time grows
//! with the square of the length.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::stdio;

/// The most bytes of one message. Lua refuses to send a longer one.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// The count of bytes read since the last complete message.
#[derive(Debug, Clone, Default)]
pub(super) struct UnfinishedMessage(Arc<AtomicUsize>);

impl UnfinishedMessage {
    /// Starts a new count, because a message was complete.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns whether there are more bytes than one message may have.
    pub(super) fn is_too_long(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MAX_MESSAGE_BYTES
    }
}

/// A reader that fails once a message is too long.
pub(super) struct BoundedReader {
    pub(super) input: stdio::NvimInput,
    pub(super) unfinished: UnfinishedMessage,
}

impl AsyncRead for BoundedReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.input).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        self.unfinished.0.fetch_add(read, Ordering::Relaxed);
        Poll::Ready(match self.unfinished.is_too_long() {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => Ok(()),
        })
    }
}
