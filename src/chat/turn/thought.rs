//! A thought of the model that is shown while it arrives.

use super::super::events::ChatEvent;

/// The most bytes that wait for the end of their line.
const MAX_WAITING_BYTES: usize = 80;

/// A thought of the model that is on the screen, but not complete.
#[derive(Debug, Default)]
pub(super) struct LiveThought {
    block: u64,
    text: String,
    /// The index of the last line on the screen.
    line: usize,
    /// The byte at which that line begins.
    line_start: usize,
    /// The bytes on the screen.
    shown: usize,
}

impl LiveThought {
    pub(super) fn new(block: u64) -> Self {
        Self {
            block,
            ..Self::default()
        }
    }

    /// Adds a piece. Returns the events that show it, none while a short piece waits for the end of its line.
    pub(super) fn push(&mut self, piece: &str) -> Vec<ChatEvent> {
        let piece = match self.text.is_empty() {
            true => piece.trim_start(),
            false => piece,
        };
        self.text.push_str(piece);
        let new = &self.text[self.shown..];
        if !new.contains('\n') && new.len() < MAX_WAITING_BYTES {
            return Vec::new();
        }
        let lines: Vec<String> = self.text[self.line_start..]
            .split('\n')
            .map(str::to_owned)
            .collect();
        let from = self.line;
        let starts = (self.shown == 0).then_some(ChatEvent::ThinkingStarted);
        self.shown = self.text.len();
        self.line += lines.len() - 1;
        self.line_start = self.shown - lines.last().map_or(0, String::len);
        let block = self.block;
        let shows = ChatEvent::Thinking { block, from, lines };
        starts.into_iter().chain([shows]).collect()
    }

    /// Returns the events that complete the thought; none if it is empty.
    pub(super) fn end(self) -> Vec<ChatEvent> {
        let text = self.text.trim_end().to_owned();
        if text.is_empty() {
            return Vec::new();
        }
        let starts = (self.shown == 0).then_some(ChatEvent::ThinkingStarted);
        let block = self.block;
        let whole = ChatEvent::Thought { block, text };
        starts.into_iter().chain([whole]).collect()
    }
}
