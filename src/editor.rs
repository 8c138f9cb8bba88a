//! What the rest of co tells the editor: handed over at once, sent when the editor has time.
//!
//! Knows nothing of RPC. What waits is coalesced (text joins text, a newer state replaces an older one) and a
//! run's output is not queued at all but taken from its bounded screen when a frame is made, so that an
//! editor that sits at a prompt for minutes costs no memory and stops nobody.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::protocol::{State, ToEditor};
use co_exec::{Feed, Patch, Screen};

/// Bytes of output in one frame at most; more would be felt as a delayed key.
const FRAME_BYTES: usize = 64 << 10;

/// Tells the editor something. Cheap to clone; never waits.
#[derive(Clone)]
pub struct Editor {
    shared: Arc<Shared>,
}

/// The writer's end.
pub struct Outbox {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Notify,
    urgent: Notify,
}

#[derive(Default)]
struct Queue {
    entries: VecDeque<QueueEntry>,
    live: Vec<LiveEntry>,
    next: u64,
    /// Whether something waits that is worth a frame.
    filled: bool,
    urgent: bool,
}

enum QueueEntry {
    Message(ToEditor),
    /// The rest of a live output, then the message that ends it.
    Finish {
        live: u64,
        then: ToEditor,
    },
}

struct LiveEntry {
    id: u64,
    target: Target,
    source: OutputSource,
    taken: Arc<Notify>,
}

/// What a live output is taken from.
#[derive(Clone)]
enum OutputSource {
    Screen(Arc<Screen>),
    Feed(Arc<Feed>),
}

impl OutputSource {
    async fn changed(&self) -> bool {
        match self {
            Self::Screen(screen) => screen.changed().await,
            Self::Feed(feed) => feed.changed().await,
        }
    }
}

/// Where a command's output is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A run in the shell buffer.
    Run(u64),
    /// A block in a chat.
    Block { session: u64, block: u64 },
}

/// An output that is being shown.
#[must_use = "an output that is never finished stays live"]
pub struct LiveOutput {
    id: u64,
    editor: Editor,
}

impl Editor {
    /// Returns the handle and what the writer drains.
    pub fn new() -> (Self, Outbox) {
        let shared = Arc::new(Shared::default());
        let editor = Self {
            shared: Arc::clone(&shared),
        };
        (editor, Outbox { shared })
    }

    /// Queues a message.
    pub fn tell(&self, message: ToEditor) {
        let (urgent, rides) = (is_urgent(&message), rides_along(&message));
        let mut queue = self.shared.queue();
        queue.push(message);
        if rides {
            return;
        }
        self.shared.fill(queue, urgent);
    }

    /// Shows what is on `screen` at `target` as it changes.
    pub fn show(&self, target: Target, screen: Arc<Screen>) -> LiveOutput {
        self.present(target, OutputSource::Screen(screen))
    }

    /// Shows what comes from `feed` in the terminal of `run`.
    pub fn show_terminal(&self, run: u64, feed: Arc<Feed>) -> LiveOutput {
        self.present(Target::Run(run), OutputSource::Feed(feed))
    }

    fn present(&self, target: Target, source: OutputSource) -> LiveOutput {
        let taken = Arc::new(Notify::new());
        let mut queue = self.shared.queue();
        queue.next += 1;
        let id = queue.next;
        queue.live.push(LiveEntry {
            id,
            target,
            source: source.clone(),
            taken: Arc::clone(&taken),
        });
        drop(queue);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            while source.changed().await {
                let next = taken.notified();
                shared.fill(shared.queue(), false);
                next.await;
            }
        });
        LiveOutput {
            id,
            editor: self.clone(),
        }
    }
}

impl LiveOutput {
    /// Ends it: what is still to be shown goes first, then `then`; whatever is told later comes after.
    pub fn finish(self, then: ToEditor) {
        let mut queue = self.editor.shared.queue();
        queue.entries.push_back(QueueEntry::Finish {
            live: self.id,
            then,
        });
        self.editor.shared.fill(queue, true);
    }
}

impl Outbox {
    /// Returns when there may be something to send.
    pub async fn filled(&self) {
        while !self.shared.queue().filled {
            self.shared.filled.notified().await;
        }
    }

    /// Returns when something was told that should not wait for the next frame's time.
    pub async fn urgent(&self) {
        while !self.shared.queue().urgent {
            self.shared.urgent.notified().await;
        }
    }

    /// Takes what the next frame shows.
    pub fn take_frame(&self) -> Vec<ToEditor> {
        let mut queue = self.shared.queue();
        (queue.filled, queue.urgent) = (false, false);
        let mut frame = Frame::default();
        while let Some(entry) = queue.entries.pop_front() {
            match entry {
                QueueEntry::Message(message) => frame.messages.push(message),
                QueueEntry::Finish { live, then } => {
                    if !queue.drain(live, &mut frame) {
                        queue.entries.push_front(QueueEntry::Finish { live, then });
                        // The end is waited for: the rest goes as fast as it is taken.
                        (queue.filled, queue.urgent) = (true, true);
                        break;
                    }
                    queue.live.retain(|output| output.id != live);
                    frame.messages.push(then);
                }
            }
        }
        let taken = queue.take_live(&mut frame);
        if taken < queue.live.len() {
            // Those that found the frame full are first in the next one.
            queue.live.rotate_left(taken);
            queue.filled = true;
        }
        frame.messages
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it holds the lock; a poisoned queue is still a whole one.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the writer make a frame, without waiting for its time where that is `urgent`.
    fn fill(&self, mut queue: MutexGuard<'_, Queue>, urgent: bool) {
        queue.filled = true;
        queue.urgent |= urgent;
        drop(queue);
        self.filled.notify_one();
        if urgent {
            self.urgent.notify_one();
        }
    }
}

impl Queue {
    fn push(&mut self, message: ToEditor) {
        match (self.entries.back_mut(), message) {
            (
                Some(QueueEntry::Message(ToEditor::Append { session, text })),
                ToEditor::Append {
                    session: other,
                    text: more,
                },
            ) if *session == other => text.push_str(&more),
            (
                Some(QueueEntry::Message(old @ ToEditor::State { .. })),
                new @ ToEditor::State { .. },
            ) if session_of(old) == session_of(&new) => *old = new,
            (_, message) => self.entries.push_back(QueueEntry::Message(message)),
        }
    }

    /// Takes from each output while there is room; returns how many had their turn.
    fn take_live(&self, frame: &mut Frame) -> usize {
        let mut taken = 0;
        for output in &self.live {
            if frame.full() {
                break;
            }
            output.take(frame);
            taken += 1;
        }
        taken
    }

    /// Moves all that is left of an output into the frame; false where the frame is full before that.
    fn drain(&self, live: u64, frame: &mut Frame) -> bool {
        let Some(output) = self.live.iter().find(|output| output.id == live) else {
            return true;
        };
        while !frame.full() {
            if !output.take(frame) {
                return true;
            }
        }
        false
    }
}

impl LiveEntry {
    fn take(&self, frame: &mut Frame) -> bool {
        let message = match &self.source {
            OutputSource::Screen(screen) => screen.take().map(|patch| {
                frame.bytes += size(&patch);
                match self.target {
                    Target::Run(run) => ToEditor::RunOutput { run, patch },
                    Target::Block { session, block } => ToEditor::Block {
                        session,
                        block,
                        patch: Some(patch),
                        done: false,
                    },
                }
            }),
            OutputSource::Feed(feed) => feed.take().and_then(|data| {
                frame.bytes += data.len();
                match self.target {
                    Target::Run(run) => Some(ToEditor::RunData { run, data }),
                    Target::Block { .. } => None,
                }
            }),
        };
        self.taken.notify_one();
        let Some(message) = message else { return false };
        frame.messages.push(message);
        true
    }
}

#[derive(Default)]
struct Frame {
    messages: Vec<ToEditor>,
    bytes: usize,
}

impl Frame {
    fn full(&self) -> bool {
        self.bytes >= FRAME_BYTES
    }
}

fn size(patch: &Patch) -> usize {
    patch.lines.iter().map(|line| line.len() + 1).sum()
}

fn session_of(message: &ToEditor) -> Option<u64> {
    match message {
        ToEditor::State { session, .. } => Some(*session),
        _ => None,
    }
}

/// What needs no frame of its own: who asked for a run shows its line, and hears of it with its output or end.
fn rides_along(message: &ToEditor) -> bool {
    matches!(message, ToEditor::RunStarted { owner: None, .. })
}

/// What a person waits for.
fn is_urgent(message: &ToEditor) -> bool {
    matches!(
        message,
        ToEditor::Ready { .. }
            | ToEditor::Refused { .. }
            | ToEditor::Ask(_)
            | ToEditor::Settled { .. }
            | ToEditor::RunEnded { .. }
            | ToEditor::Choose { .. }
            | ToEditor::State {
                state: State::Idle,
                ..
            }
    )
}

#[cfg(test)]
mod tests;
