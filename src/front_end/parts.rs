//! Cuts the text of a resumed chat into parts. Neovim gets the last part first, so that the person sees the end of the chat at
//! once. No part is so long that it delays keys.

use super::fence::fence_after;
use super::markdown::TranscriptText;
use crate::protocol::{CallRows, MessageRow, TextPart};

/// The largest size of a part in bytes.
const MOST_BYTES: usize = 64 << 10;

/// The largest number of line breaks in a part.
const MOST_ROWS: usize = 4_000;

/// The smallest number of bytes between two places of a text where a part may begin.
const APART: usize = 2 << 10;

/// The part of a text that was not taken yet. Parts are taken from its end.
#[derive(Debug)]
pub(super) struct TextParts {
    text: String,
    /// The number of line breaks in the text.
    rows: usize,
    /// The places where a part may begin without a change of how markdown is displayed: after a blank line, and outside code
    /// blocks.
    starts: Vec<PartStart>,
    /// The ranges of rows to fold, sorted by their first rows.
    folds: Vec<[usize; 2]>,
    answer: Option<usize>,
    messages: Vec<MessageRow>,
    calls: Vec<CallRows>,
}

/// A place where a part may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PartStart {
    byte: usize,
    /// The number of line breaks before the place.
    row: usize,
}

impl TextParts {
    pub(super) fn new(whole: TranscriptText) -> Self {
        let TranscriptText {
            text,
            mut folds,
            answer,
            messages,
            calls,
            rows,
            ..
        } = whole;
        folds.sort_unstable();
        Self {
            starts: part_starts(&text, &messages, &calls),
            text,
            rows,
            folds,
            answer,
            messages,
            calls,
        }
    }

    /// Returns the number of bytes that were not taken yet.
    pub(super) fn left(&self) -> usize {
        self.text.len()
    }

    /// Takes the last part from the text.
    pub(super) fn take_last(&mut self) -> TextPart {
        let PartStart { byte, row } = self.cut();
        let text = self.text.split_off(byte);
        // A fold, an answer or a message belongs to the part with the start of its line.
        let first = match self.text.is_empty() || self.text.ends_with('\n') {
            true => row,
            false => row + 1,
        };
        let folds = self.folds.partition_point(|fold| fold[0] < first);
        let messages = self.messages.partition_point(|message| message.row < first);
        let calls = self.calls.partition_point(|call| call.row < first);
        self.rows = row;
        self.starts.truncate(
            self.starts
                .partition_point(|start| start.byte < self.text.len()),
        );
        TextPart {
            text,
            // Neovim needs inner folds first.
            folds: self
                .folds
                .split_off(folds)
                .into_iter()
                .rev()
                .map(|fold| fold.map(|it| it - row))
                .collect(),
            answer: self
                .answer
                .take_if(|answer| *answer >= first)
                .map(|it| it - row),
            messages: self
                .messages
                .split_off(messages)
                .into_iter()
                .map(|message| MessageRow {
                    row: message.row - row,
                    ..message
                })
                .collect(),
            calls: self
                .calls
                .split_off(calls)
                .into_iter()
                .map(|call| CallRows {
                    row: call.row - row,
                    ..call
                })
                .collect(),
            above: self.left(),
        }
    }

    /// Returns the place where the part to take next begins.
    fn cut(&self) -> PartStart {
        let longest = self.longest();
        if longest.byte == 0 {
            return longest;
        }
        let end = self.text.len();
        let at = self
            .starts
            .partition_point(|start| start.byte < longest.byte);
        match self.starts.get(at) {
            // A much shorter part could show the person less than a screen.
            Some(start) if (end - start.byte) * 2 > end - longest.byte => *start,
            _ => self.before_call(longest),
        }
    }

    /// Returns the place `at`, or the start of the call that contains this place. A call is never split.
    fn before_call(&self, mut at: PartStart) -> PartStart {
        let above = self.calls.partition_point(|call| call.row <= at.row);
        let Some(call) = above.checked_sub(1).and_then(|it| self.calls.get(it)) else {
            return at;
        };
        if at.row > call.row + call.output {
            return at;
        }
        let before = self.text.as_bytes()[..at.byte].iter().enumerate().rev();
        for (byte, sign) in before {
            if *sign == b'\n' && at.row == call.row {
                return at;
            }
            at = PartStart {
                byte,
                row: at.row - usize::from(*sign == b'\n'),
            };
        }
        at
    }

    /// Returns the place where the longest allowed last part begins. This is the start of a line, unless the line is too long for
    /// a part.
    fn longest(&self) -> PartStart {
        let end = self.text.len();
        let least = end.saturating_sub(MOST_BYTES);
        let mut found = None;
        let mut row = self.rows;
        for byte in (least..=end).rev() {
            if byte == 0 {
                return PartStart { byte: 0, row: 0 };
            }
            if self.text.as_bytes()[byte - 1] == b'\n' {
                if byte < end {
                    found = Some(PartStart { byte, row });
                }
                if self.rows - row == MOST_ROWS {
                    break;
                }
                row -= 1;
            }
        }
        found.unwrap_or_else(|| PartStart {
            byte: (least..end)
                .find(|byte| self.text.is_char_boundary(*byte))
                .unwrap_or_default(),
            // If a line break ends the text, this is less than `self.rows`.
            row,
        })
    }
}

/// Returns the places in a text where a part may begin. Leaves out places that are too close to the one before.
fn part_starts(text: &str, messages: &[MessageRow], calls: &[CallRows]) -> Vec<PartStart> {
    let mut found = Vec::new();
    let mut noted = 0;
    let mut messages = messages.iter().peekable();
    let mut calls = calls.iter().peekable();
    let mut after_call = 0;
    let (mut byte, mut blank) = (0, true);
    let mut open = None;
    for (row, line) in text.split('\n').enumerate() {
        if messages.next_if(|message| message.row == row).is_some() {
            // A model may forget to close a block of code.
            open = None;
        }
        if let Some(call) = calls.next_if(|call| call.row == row) {
            (open, after_call) = (None, row + 1 + call.output);
        }
        if row < after_call {
            blank = true;
            byte += line.len() + 1;
            continue;
        }
        let may_begin = blank && open.is_none() && line.starts_with(|it: char| !it.is_whitespace());
        if may_begin && byte - noted >= APART {
            found.push(PartStart { byte, row });
            noted = byte;
        }
        open = fence_after(open, line);
        blank = line.is_empty();
        byte += line.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(rows: impl IntoIterator<Item = usize>) -> Vec<MessageRow> {
        let message = |row| MessageRow { row, at: None };
        rows.into_iter().map(message).collect()
    }

    /// Returns the parts of a text, the last one first.
    fn parts(whole: TranscriptText) -> Vec<TextPart> {
        let mut parts = TextParts::new(TranscriptText {
            rows: whole.text.matches('\n').count(),
            ..whole
        });
        let mut found = vec![parts.take_last()];
        while parts.left() > 0 {
            found.push(parts.take_last());
        }
        found
    }

    /// Checks that parts are short and make the text again. Returns their number.
    #[track_caller]
    fn check(text: &str) -> usize {
        let parts = parts(TranscriptText {
            text: text.to_owned(),
            ..TranscriptText::default()
        });
        let mut above = text.len();
        for part in &parts {
            above -= part.text.len();
            assert_eq!(part.above, above);
            assert!(part.text.len() <= MOST_BYTES, "{} bytes", part.text.len());
            let rows = part.text.matches('\n').count();
            assert!(rows <= MOST_ROWS, "{rows} rows");
        }
        let joined: String = parts.iter().rev().map(|part| part.text.as_str()).collect();
        assert!(joined == text, "the parts differ from the text");
        parts.len()
    }

    #[test]
    fn the_parts_make_the_text_and_none_is_long() {
        assert_eq!(check(""), 1);
        assert_eq!(check("a\n\nb"), 1);
        assert_eq!(check(&"\n".repeat(MOST_ROWS)), 1);
        assert_eq!(check(&"\n".repeat(MOST_ROWS * 2 + 1)), 3);
        assert_eq!(check(&"é".repeat(MOST_BYTES)), 2);
        assert_eq!(check(&format!("a\n{}\nb\n", "é".repeat(MOST_BYTES))), 4);
        let paragraphs = "A line.\nAnother one.\n\n".repeat(MOST_BYTES / 4);
        let rows = paragraphs.matches('\n').count();
        assert!(check(&paragraphs) < rows / MOST_ROWS + 10);
        check(&"word ".repeat(99).replace("d w", "d\nw").repeat(1_000));
    }

    #[test]
    fn rows_above_the_end_of_a_long_line_are_counted_right() {
        let text = format!("## You\n{}\n", "x".repeat(MOST_BYTES)).repeat(3);
        let parts = parts(TranscriptText {
            text,
            messages: messages([0, 2, 4]),
            folds: vec![[2, 3]],
            ..TranscriptText::default()
        });
        let mut folds = Vec::new();
        let mut found = 0;
        for TextPart {
            text,
            messages: begun,
            folds: more,
            ..
        } in parts
        {
            let rows: Vec<_> = text.split('\n').collect();
            assert!(begun.iter().all(|it| rows[it.row] == "## You"));
            found += begun.len();
            folds.extend(more);
        }
        assert_eq!(found, 3);
        assert_eq!(folds, [[0, 1]]);
    }

    #[test]
    fn a_part_does_not_begin_in_code() {
        let code = format!("````lua\n{}````\n\n", "```\n\nlocal x\n\n".repeat(400));
        let text = format!("Words.\n\n{code}").repeat(20);
        let parts = parts(TranscriptText {
            text,
            ..TranscriptText::default()
        });
        assert!(parts.len() > 1);
        for part in parts {
            assert!(part.text.starts_with("Words.") || part.text.starts_with("````lua"));
        }
    }

    #[test]
    fn a_message_begins_outside_of_code_that_was_not_closed() {
        let message = format!("## You\n\n```\n{}\n\n", "x\n\n".repeat(1_000));
        let rows = message.matches('\n').count();
        let text = message.repeat(30);
        let begun = messages((0..30).map(|message| message * rows));
        for part in parts(TranscriptText {
            text,
            messages: begun,
            ..TranscriptText::default()
        }) {
            assert!(part.text.starts_with("## You"));
            assert_eq!(part.messages[0].row, 0);
        }
    }

    #[test]
    fn rows_are_counted_from_the_part_that_has_the_first_one() {
        let line = "x".repeat(99) + "\n";
        let text = line.repeat(MOST_BYTES / 100 * 2);
        let rows = text.len() / 100;
        let parts = parts(TranscriptText {
            text,
            folds: vec![[rows - 2, rows - 1], [2, 4], [1, rows - 3]],
            answer: Some(3),
            messages: messages([0, 5, rows - 1]),
            rows,
            ..TranscriptText::default()
        });
        let of_last = parts[0].text.len() / 100;
        assert_eq!(parts[0].folds, [[of_last - 2, of_last - 1]]);
        assert_eq!(parts[0].messages, messages([of_last - 1]));
        assert_eq!(parts[0].answer, None);
        let first = parts.last().unwrap();
        assert_eq!(first.folds, [[2, 4], [1, rows - 3]]);
        assert_eq!(first.messages, messages([0, 5]));
        assert_eq!(first.answer, Some(3));
    }
}
