//! Limits the size of a message from Neovim.
//!
//! nvim-rs accepts messages of any size. It decodes an incomplete message again from its start after each piece that it reads, so
//! the time grows with the square of the size.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::stdio;

/// The largest size of one message in bytes. Lua sends no larger one.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// The number of bytes that were read since the last complete message. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct UnfinishedMessage(Arc<AtomicUsize>);

impl UnfinishedMessage {
    /// Resets the count after a complete message.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns true if more bytes were read than one message may have.
    pub(super) fn is_too_long(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MAX_MESSAGE_BYTES
    }
}

/// A reader that fails as soon as a message is too long.
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
