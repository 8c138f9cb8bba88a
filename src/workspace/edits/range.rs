//! The lines of a file that the person selected for a change.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::source::{EditPlace, EditableText};
use super::{EditRefused, Proposal};
use crate::buffers::OpenBuffers;
use crate::protocol::LineRange;
use co_edit::hunks;

/// The lines of a file that the person selected. Edits may change only these lines.
#[derive(Debug, Clone)]
pub struct EditRange {
    /// The canonical path of the file.
    file: PathBuf,
    /// The range of the lines, counted from 0.
    lines: Range<usize>,
    /// The text of the file to which the range of lines belongs.
    text: Option<String>,
}

impl EditRange {
    pub fn new(range: &LineRange) -> Self {
        Self {
            file: PathBuf::from(&range.file),
            lines: range.first.saturating_sub(1)..range.last,
            text: None,
        }
    }

    /// Returns the canonical path of the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Reads the text of the file to which the range of lines belongs. `open` contains the buffer of the file, if it is loaded.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    pub fn read(&mut self, open: &OpenBuffers) {
        let place = EditPlace {
            shown: self.file.display().to_string(),
            root: PathBuf::from("/"),
            real: self.file.clone(),
            is_link: false,
            obeyed: None,
        };
        let text = EditableText::of(&place, open).ok().flatten();
        self.text = text.map(|it| it.text.as_str().to_owned());
    }

    /// Checks that a proposal changes only these lines. Finds the lines again if they have moved.
    ///
    /// # Errors
    /// The proposal changes another file or other lines.
    pub fn check(&self, proposal: &Proposal) -> Result<(), EditRefused> {
        let refuse = |why: String| EditRefused(format!("cannot change {}: {why}", proposal.path));
        let Some(old) = proposal.old_text().filter(|_| proposal.file() == self.file) else {
            let file = self.file.file_name().unwrap_or_default().to_string_lossy();
            return Err(refuse(format!(
                "the person asked for a change of {} of {file} and of nothing else",
                named(&self.lines)
            )));
        };
        let lines = self.moved_to(old);
        let is_outside = |at: &&Range<usize>| at.start < lines.start || at.end > lines.end;
        match proposal.hunks().iter().map(|it| &it.at).find(is_outside) {
            None => Ok(()),
            Some(at) => Err(refuse(format!(
                "the person asked for a change of {} only, and this changes line {}: leave the other lines as they are",
                named(&lines),
                if at.start < lines.start {
                    at.start
                } else {
                    at.end.max(at.start + 1) - 1
                } + 1
            ))),
        }
    }

    /// Returns the range of these lines in another text of the file.
    fn moved_to(&self, text: &str) -> Range<usize> {
        let Range { start, end } = self.lines;
        let (mut first, mut last) = (start, end);
        for hunk in hunks(self.text.as_deref().unwrap_or(text), text) {
            let moved = hunk.added().cast_signed() - hunk.removed().cast_signed();
            let is_before = hunk.at.end < start || hunk.at.end == start && !hunk.at.is_empty();
            if is_before {
                first = first.saturating_add_signed(moved);
            }
            // Lines that are added at either end belong to them.
            if is_before || hunk.at.start <= end {
                last = last.saturating_add_signed(moved);
            }
        }
        first..last.max(first)
    }
}

fn named(lines: &Range<usize>) -> String {
    match lines.len() {
        1 => format!("line {}", lines.end),
        _ => format!("lines {} to {}", lines.start + 1, lines.end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_move_with_the_text() {
        let range = EditRange {
            file: PathBuf::new(),
            lines: 2..4,
            text: Some("1\n2\n3\n4\n5\n6\n".to_owned()),
        };
        for (text, expected) in [
            ("1\n2\n3\n4\n5\n6\n", 2..4),
            ("0\n1\n2\n3\n4\n5\n6\n", 3..5),
            ("2\n3\n4\n5\n6\n", 1..3),
            ("1\n2\n3\n4\n5\nx\n6\n", 2..4),
            ("1\n2\nthree\nand\n4\n5\n6\n", 2..5),
            ("1\n2\nx\n3\n4\n5\n6\n", 2..5),
            ("1\n2\n3\n4\nx\n5\n6\n", 2..5),
            ("1\n2\n5\n6\n", 2..2),
            ("one\ntwo\n3\n4\n5\n6\n", 2..4),
        ] {
            assert_eq!(range.moved_to(text), expected, "{text:?}");
        }
    }
}
