//! The queue of messages to Neovim. Senders never wait. When Neovim is idle, the writer takes one frame: the messages that go to
//! Neovim in one call.
//!
//! Queued messages are merged: text is appended to text, and a newer state replaces an older one. The output of commands is not
//! queued; it is taken from screens of bounded size when a frame is made. So the queue needs little memory even if Neovim waits
//! for a key for minutes. This module does not know RPC.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::protocol::{ChatState, ToEditor};
use co_exec::{Feed, Screen, ScreenPatch};

/// The largest size of text and output in one frame, in bytes. A larger frame would delay keys noticeably.
const FRAME_BYTES: usize = 64 << 10;

/// The number of bytes of text that cost Neovim as much time as one line break.
const LINE_BYTES: usize = 8;
const STYLE_BYTES: usize = 16;

/// The sender of messages to Neovim. Cloning is cheap, and sending never waits.
#[derive(Clone)]
pub struct Editor {
    shared: Arc<Shared>,
}

/// The receiver of the queue, for the writer.
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
    /// True if a message or output waits for the next frame.
    filled: bool,
    urgent: bool,
}

enum QueueEntry {
    Message(ToEditor),
    /// The rest of a command's output, and the message after it.
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

/// The source of a command's output.
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

/// The place in Neovim where a command's output is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The shell buffer, at this run.
    Run(u64),
    /// A block of a chat.
    Block { chat: u64, block: u64 },
}

/// An output that Neovim shows while it grows.
#[must_use = "an output that is never finished stays live"]
pub struct LiveOutput {
    id: u64,
    editor: Editor,
}

impl Editor {
    /// Makes the sender and the receiver of a queue.
    pub fn new() -> (Self, Outbox) {
        let shared = Arc::new(Shared::default());
        let editor = Self {
            shared: Arc::clone(&shared),
        };
        (editor, Outbox { shared })
    }

    /// Triggers a `User` autocommand in Neovim.
    pub fn fire(&self, name: &str, data: serde_json::Value) {
        self.tell(ToEditor::Event {
            name: name.to_owned(),
            data,
        });
    }

    /// Queues a message to Neovim.
    pub fn tell(&self, message: ToEditor) {
        let (urgent, waits) = (is_urgent(&message), may_wait(&message));
        let mut queue = self.shared.queue.lock();
        queue.push(message);
        if waits {
            return;
        }
        self.shared.fill(queue, urgent);
    }

    /// Shows the content of `screen` at `target`, and updates it as it changes.
    pub fn show(&self, target: Target, screen: Arc<Screen>) -> LiveOutput {
        self.present(target, OutputSource::Screen(screen))
    }

    /// Shows the bytes of `feed` in the terminal of `run`.
    pub fn show_terminal(&self, run: u64, feed: Arc<Feed>) -> LiveOutput {
        self.present(Target::Run(run), OutputSource::Feed(feed))
    }

    fn present(&self, target: Target, source: OutputSource) -> LiveOutput {
        let taken = Arc::new(Notify::new());
        let mut queue = self.shared.queue.lock();
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
                shared.fill(shared.queue.lock(), false);
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
    /// Ends the output. Neovim gets the rest of the output, and then the message `then`. Later messages follow.
    pub fn finish(self, then: ToEditor) {
        let mut queue = self.editor.shared.queue.lock();
        queue.entries.push_back(QueueEntry::Finish {
            live: self.id,
            then,
        });
        self.editor.shared.fill(queue, true);
    }
}

impl Outbox {
    /// Waits until a message or output may be ready to send.
    pub async fn filled(&self) {
        while !self.shared.queue.lock().filled {
            self.shared.filled.notified().await;
        }
    }

    /// Waits for an urgent message. The caller should send it at once, and not wait for the time of the next frame.
    pub async fn urgent(&self) {
        while !self.shared.queue.lock().urgent {
            self.shared.urgent.notified().await;
        }
    }

    /// Takes the messages of the next frame.
    pub fn take_frame(&self) -> Vec<ToEditor> {
        let mut queue = self.shared.queue.lock();
        (queue.filled, queue.urgent) = (false, false);
        let mut frame = Frame::default();
        while let Some(entry) = queue.entries.pop_front() {
            match entry {
                QueueEntry::Message(message) => {
                    let rest = frame.push(message);
                    if let Some(rest) = rest {
                        queue.entries.push_front(QueueEntry::Message(rest));
                        queue.filled = true;
                        break;
                    }
                }
                QueueEntry::Finish { live, then } => {
                    if !queue.drain(live, &mut frame) {
                        queue.entries.push_front(QueueEntry::Finish { live, then });
                        // A person waits for the end, so the rest is urgent.
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
            // Outputs that found the frame full are first in the next one.
            queue.live.rotate_left(taken);
            queue.filled = true;
        }
        frame.messages
    }
}

impl Shared {
    /// Wakes the writer: at once if `urgent` is true, otherwise at the time of the next frame.
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
                Some(QueueEntry::Message(ToEditor::Append { chat, text })),
                ToEditor::Append {
                    chat: other,
                    text: more,
                },
            ) if *chat == other => text.push_str(&more),
            (Some(QueueEntry::Message(old)), new) if continues(old, &new) => append(old, new),
            (
                Some(QueueEntry::Message(old @ ToEditor::State { .. })),
                new @ ToEditor::State { .. },
            ) if chat_of(old) == chat_of(&new) => *old = new,
            (_, message) => self.entries.push_back(QueueEntry::Message(message)),
        }
    }

    /// Takes new output from each source while the frame has room. Returns the number of outputs that were read.
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

    /// Moves the rest of an output into the frame. Returns false if the frame became full first.
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
                    Target::Block { chat, block } => ToEditor::Block {
                        chat,
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
    /// Adds a message to the frame. Returns the part of the message that has no room.
    fn push(&mut self, message: ToEditor) -> Option<ToEditor> {
        let room = FRAME_BYTES.saturating_sub(self.bytes);
        let (first, rest) = split(message, room);
        if let Some(first) = first {
            self.bytes += match &first {
                ToEditor::Append { text, .. } => text_size(text),
                ToEditor::Block {
                    patch: Some(patch), ..
                } => size(patch),
                _ => 0,
            };
            self.messages.push(first);
        }
        rest
    }

    fn full(&self) -> bool {
        self.bytes >= FRAME_BYTES
    }
}

/// Splits a message with a long text, so that its first part has at most about `room` bytes. A message without a long text is not
/// split.
fn split(message: ToEditor, room: usize) -> (Option<ToEditor>, Option<ToEditor>) {
    match message {
        ToEditor::Append { chat, mut text } if fitting(&text, room) < text.len() => {
            let rest = text.split_off(fitting(&text, room));
            let first = (!text.is_empty()).then_some(ToEditor::Append { chat, text });
            (first, Some(ToEditor::Append { chat, text: rest }))
        }
        ToEditor::Block {
            chat,
            block,
            patch: Some(mut patch),
            done,
        } if size(&patch) > room && patch.styles.is_empty() => {
            let mut bytes = 0;
            let fitting = patch.lines.iter().take_while(|line| {
                bytes += line.len() + LINE_BYTES;
                bytes <= room
            });
            // A line stays whole, and a frame that is empty takes one.
            let least = usize::from(room == FRAME_BYTES);
            let count = fitting.count().max(least);
            if count >= patch.lines.len() {
                return (Some(block_of(chat, block, patch, done)), None);
            }
            let lines = patch.lines.split_off(count);
            let rest = ScreenPatch {
                skipped: patch.skipped,
                from: patch.from + count,
                lines,
                styles: Vec::new(),
            };
            let first = (count > 0).then(|| block_of(chat, block, patch, false));
            (first, Some(block_of(chat, block, rest, done)))
        }
        whole => (Some(whole), None),
    }
}

fn block_of(chat: u64, block: u64, patch: ScreenPatch, done: bool) -> ToEditor {
    ToEditor::Block {
        chat,
        block,
        patch: Some(patch),
        done,
    }
}

/// Returns true if `new` can be merged into `old`: both change the same block, and the lines of `new` follow those of `old`.
fn continues(old: &ToEditor, new: &ToEditor) -> bool {
    match (old, new) {
        (
            ToEditor::Block {
                chat,
                block,
                patch: Some(patch),
                done: false,
                ..
            },
            ToEditor::Block {
                chat: other_chat,
                block: other,
                patch: Some(more),
                ..
            },
        ) => {
            (chat, block, patch.skipped) == (other_chat, other, more.skipped)
                && (patch.from..=patch.from + patch.lines.len()).contains(&more.from)
                && patch.styles.is_empty()
                && more.styles.is_empty()
        }
        _ => false,
    }
}

/// Appends the lines of `new` to the message `old`. Both change the same block; see [`continues`].
fn append(old: &mut ToEditor, new: ToEditor) {
    if let (
        ToEditor::Block {
            patch: Some(patch),
            done,
            ..
        },
        ToEditor::Block {
            patch: Some(more),
            done: now_done,
            ..
        },
    ) = (old, new)
    {
        patch.lines.truncate(more.from - patch.from);
        patch.lines.extend(more.lines);
        *done = now_done;
    }
}

/// Returns the cost of a character for Neovim: the number of bytes of plain text that take Neovim as long.
fn char_size(char: char) -> usize {
    if char == '\n' {
        LINE_BYTES
    } else {
        char.len_utf8()
    }
}

fn text_size(text: &str) -> usize {
    text.chars().map(char_size).sum()
}

/// Returns the length in bytes of the longest start of a text whose cost for Neovim is at most `room`. See [`char_size`].
fn fitting(text: &str, room: usize) -> usize {
    let mut size = 0;
    let fits = |(_, char): &(usize, char)| {
        size += char_size(*char);
        size <= room
    };
    let last = text.char_indices().take_while(fits).last();
    last.map_or(0, |(at, char)| at + char.len_utf8())
}

/// Returns the cost of a patch for Neovim, in bytes of plain text. A line and a style cost as much as some bytes of text.
fn size(patch: &ScreenPatch) -> usize {
    let lines: usize = patch.lines.iter().map(|line| line.len() + LINE_BYTES).sum();
    lines + patch.styles.len() * STYLE_BYTES
}

fn chat_of(message: &ToEditor) -> Option<u64> {
    match message {
        ToEditor::State { chat, .. } => Some(*chat),
        _ => None,
    }
}

/// Returns true if a message may wait until another message is sent. Lua already shows the line of a run that it started, so the
/// message about this start is not urgent.
fn may_wait(message: &ToEditor) -> bool {
    matches!(
        message,
        ToEditor::RunStarted {
            owner: None,
            detail: None,
            ..
        }
    )
}

/// Returns true if the person is waiting for this message.
fn is_urgent(message: &ToEditor) -> bool {
    matches!(
        message,
        ToEditor::Ready { .. }
            | ToEditor::Refused { .. }
            | ToEditor::Question(_)
            | ToEditor::Settled { .. }
            | ToEditor::ReviewPart { .. }
            | ToEditor::RunEnded { .. }
            | ToEditor::Choose { .. }
            | ToEditor::ReadBuffers { .. }
            | ToEditor::ChangeBuffer { .. }
            | ToEditor::WithdrawRequest { .. }
            | ToEditor::EditorQuery { .. }
            | ToEditor::BeforeCommand { .. }
            | ToEditor::Replace { .. }
            | ToEditor::Earlier { .. }
            | ToEditor::State {
                state: ChatState::Idle,
                ..
            }
    )
}

#[cfg(test)]
mod tests;
