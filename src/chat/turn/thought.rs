//! Shows a thought of the model while it arrives.

use super::super::events::ChatEvent;
use co_text::start_of;

/// The smallest number of waiting bytes of a thought that the chat shows at once. Fewer bytes wait until their line is complete.
const MAX_WAITING_BYTES: usize = 80;

/// The largest number of bytes of a line on the screen. A longer line is split, because each new piece replaces the whole last
/// line.
const MAX_LINE_BYTES: usize = 2_000;

/// A thought of the model that the chat shows while it arrives.
#[derive(Debug, Default)]
pub(in crate::chat) struct LiveThought {
    block: u64,
    /// The last line on the screen; `line` is its index.
    last: String,
    line: usize,
    /// The text of the thought that is not on the screen yet.
    waiting: String,
    /// True if a part of the thought is on the screen.
    begun: bool,
}

impl LiveThought {
    pub(in crate::chat) fn new(block: u64) -> Self {
        Self {
            block,
            ..Self::default()
        }
    }

    /// Adds a piece of the thought. Returns the events that show the piece; empty while a short piece waits for the end of its
    /// line.
    pub(in crate::chat) fn push(&mut self, piece: &str) -> Vec<ChatEvent> {
        let piece = match !self.begun && self.waiting.is_empty() {
            true => piece.trim_start(),
            false => piece,
        };
        self.waiting.push_str(piece);
        if !self.waiting.contains('\n') && self.waiting.len() < MAX_WAITING_BYTES {
            return Vec::new();
        }
        self.show()
    }

    /// Returns the events that show the waiting text. Spaces at the end of this text continue to wait, because the thought may
    /// end with them.
    fn show(&mut self) -> Vec<ChatEvent> {
        let kept = match self.waiting.trim_end().len() {
            _ if self.waiting.len() > MAX_LINE_BYTES => self.waiting.len(),
            0 => return Vec::new(),
            kept => kept,
        };
        let rest = self.waiting.split_off(kept);
        let shown = std::mem::replace(&mut self.waiting, rest);
        let lines = lines(&(std::mem::take(&mut self.last) + &shown));
        let from = self.line;
        self.line += lines.len().saturating_sub(1);
        self.last = lines.last().cloned().unwrap_or_default();
        let starts = !std::mem::replace(&mut self.begun, true);
        let starts = starts.then_some(ChatEvent::ThinkingStarted);
        let block = self.block;
        let shows = ChatEvent::Thinking { block, from, lines };
        starts.into_iter().chain([shows]).collect()
    }

    /// Returns the events that complete the thought; empty if the thought is empty.
    pub(in crate::chat) fn end(mut self) -> Vec<ChatEvent> {
        let mut events = self.show();
        if self.begun {
            events.push(ChatEvent::ThinkingEnded { block: self.block });
        }
        events
    }
}

/// Returns the lines of a text. Long lines are split.
fn lines(text: &str) -> Vec<String> {
    text.split('\n').flat_map(pieces).collect()
}

/// Splits a line into pieces of at most [`MAX_LINE_BYTES`] bytes. Returns at least one piece.
fn pieces(line: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while rest.len() > MAX_LINE_BYTES {
        let near = start_of(rest, MAX_LINE_BYTES).len();
        // After a space, if there is one in the second half.
        let space = rest[..near].rfind(' ').map(|at| at + 1);
        let end = space.filter(|at| *at > near / 2).unwrap_or(near);
        pieces.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
    pieces.push(rest.to_owned());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines that the screen shows once all pieces of a thought were sent, and the number of bytes sent for these
    /// lines.
    fn shown<'a>(thought: impl IntoIterator<Item = &'a str>) -> (Vec<String>, usize) {
        let mut live = LiveThought::new(1);
        let mut events: Vec<_> = thought.into_iter().flat_map(|it| live.push(it)).collect();
        events.extend(live.end());
        let mut screen = Vec::new();
        let mut bytes = 0;
        for event in events {
            if let ChatEvent::Thinking { from, lines, .. } = event {
                screen.truncate(from);
                bytes += lines.iter().map(String::len).sum::<usize>();
                screen.extend(lines);
            }
        }
        (screen, bytes)
    }

    #[test]
    fn a_thought_is_shown_without_space_around_it() {
        let pieces = ["\n ", "\nI th", "ink\n\n", " so. \n", "\n"];
        assert_eq!(shown(pieces).0, ["I think", "", " so."]);
        assert_eq!(shown(["  ", "\n"]).0, [""; 0]);
    }

    #[test]
    fn a_line_of_any_length_is_cut_and_sent_a_bounded_number_of_times() {
        let text = "a word, ".repeat(50_000) + &"é".repeat(100_000);
        let cut: Vec<_> = text.split_inclusive(' ').collect();
        let (lines, bytes) = shown(cut);
        assert_eq!(lines.concat(), text);
        assert!(lines.iter().all(|line| line.len() <= MAX_LINE_BYTES));
        assert!(bytes < 20 * text.len(), "{bytes} bytes");
        let spaces = " ".repeat(100_000);
        assert_eq!(shown(["x", &spaces, "y"]).0.concat(), format!("x{spaces}y"));
    }
}
