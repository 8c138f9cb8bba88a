//! The targets that a command connected to or that were refused, and the bytes of each.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::target::Target;

/// The traffic between a command and one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetTraffic {
    pub target: Target,
    /// The number of bytes that were sent to the target. For TLS, these are encrypted bytes.
    pub sent: u64,
    /// The number of bytes that were received from the target. For TLS, these are encrypted bytes.
    pub received: u64,
    /// The number of connections that were made. Each plain HTTP request has a separate one.
    pub connections: u64,
    /// The times of the first and the last connection that was made or refused.
    pub times: [SystemTime; 2],
    /// The reason why the target was allowed. It is `None` if no connection was made.
    pub allowed: Option<String>,
    /// The reason of the last refusal. It is `None` if no connection was refused.
    pub refused: Option<String>,
}

/// The traffic with all targets of a command. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Traffic {
    targets: Arc<Mutex<Targets>>,
    most: usize,
}

#[derive(Debug, Default)]
struct Targets {
    order: Vec<Target>,
    known: HashMap<Target, TargetEntry>,
}

/// The entry of one target.
#[derive(Debug)]
struct TargetEntry {
    bytes: Arc<TargetCounters>,
    connections: u64,
    times: [SystemTime; 2],
    allowed: Option<String>,
    refused: Option<String>,
}

/// The counters of one target.
#[derive(Debug, Default)]
struct TargetCounters {
    sent: AtomicU64,
    received: AtomicU64,
}

/// A connection whose bytes are counted. Written bytes count as sent, and read bytes as received.
#[derive(Debug)]
pub(crate) struct Counted<S> {
    stream: S,
    bytes: Arc<TargetCounters>,
}

impl Traffic {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            targets: Arc::default(),
            most,
        }
    }

    /// Starts to count the bytes of a connection to a target. `ground` is the reason why the target is allowed. Returns `None` if
    /// the command has already connected to the largest allowed number of targets.
    pub(crate) fn count<S>(&self, target: &Target, stream: S, ground: &str) -> Option<Counted<S>> {
        let bytes = self.change(target, |entry| {
            entry.connections += 1;
            entry.allowed = Some(ground.to_owned());
            Arc::clone(&entry.bytes)
        })?;
        Some(Counted { stream, bytes })
    }

    /// Records that a connection to a target was refused.
    pub(crate) fn refuse(&self, target: &Target, why: String) {
        self.change(target, |entry| entry.refused = Some(why));
    }

    /// Returns the traffic with all targets, sorted by the first request for each.
    pub(crate) fn all(&self) -> Vec<TargetTraffic> {
        let targets = self.targets.lock();
        let of = |target: &Target| {
            let entry = targets.known.get(target)?;
            Some(TargetTraffic {
                target: target.clone(),
                sent: entry.bytes.sent.load(Ordering::Relaxed),
                received: entry.bytes.received.load(Ordering::Relaxed),
                connections: entry.connections,
                times: entry.times,
                allowed: entry.allowed.clone(),
                refused: entry.refused.clone(),
            })
        };
        targets.order.iter().filter_map(of).collect()
    }

    /// Changes the entry of a target, or adds one. If there are too many entries, the oldest one without a connection is removed
    /// first. Returns `None` if all have connections.
    fn change<T>(&self, target: &Target, change: impl FnOnce(&mut TargetEntry) -> T) -> Option<T> {
        let mut targets = self.targets.lock();
        let targets = &mut *targets;
        if !targets.known.contains_key(target) {
            if targets.order.len() >= self.most {
                targets.forget_one()?;
            }
            targets.order.push(target.clone());
        }
        let now = SystemTime::now();
        let entry = targets.known.entry(target.clone());
        let entry = entry.or_insert_with(|| TargetEntry {
            bytes: Arc::default(),
            connections: 0,
            times: [now; 2],
            allowed: None,
            refused: None,
        });
        entry.times[1] = now;
        Some(change(entry))
    }
}

impl Targets {
    /// Removes the oldest target without a connection. Returns `None` if all have connections.
    fn forget_one(&mut self) -> Option<()> {
        let unreached = |target: &Target| {
            let entry = self.known.get(target);
            entry.is_none_or(|entry| entry.connections == 0)
        };
        let index = self.order.iter().position(unreached)?;
        let target = self.order.remove(index);
        self.known.remove(&target);
        Some(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        this.bytes
            .received
            .fetch_add(read as u64, Ordering::Relaxed);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(written)) = polled {
            this.bytes.sent.fetch_add(written as u64, Ordering::Relaxed);
        }
        polled
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
