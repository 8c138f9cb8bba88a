//! Bounds the length of a message: nvim-rs takes any, and decodes it again from the start with each piece that it
//! reads, so that the time grows with the square of the length.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::stdio;

/// The most bytes of one message. Lua refuses to send a longer one.
pub(super) const LARGEST: usize = 16 << 20;

/// Bytes that were read since a message was last complete.
#[derive(Debug, Clone, Default)]
pub(super) struct Unfinished(Arc<AtomicUsize>);

impl Unfinished {
    /// A message was complete.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns whether there are more of them than a message has.
    pub(super) fn is_too_long(&self) -> bool {
        self.0.load(Ordering::Relaxed) > LARGEST
    }
}

/// Reads until a message gets too long.
pub(super) struct Bounded {
    pub(super) input: stdio::Reader,
    pub(super) unfinished: Unfinished,
}

impl AsyncRead for Bounded {
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
