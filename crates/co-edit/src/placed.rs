//! Edits at positions (line and character), as language servers send them.

use memchr::memchr_iter;

use crate::text::FileText;

/// The unit in which the characters of a line are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub enum CharacterUnit {
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "utf-16")]
    Utf16,
    #[serde(rename = "utf-32")]
    Utf32,
}

impl CharacterUnit {
    /// Returns the byte offset of a character in a line. If the line has fewer characters, returns the length of the line.
    pub fn bytes(self, line: &str, character: usize) -> usize {
        let mut before = 0;
        let found = line.char_indices().find(|(_, c)| {
            let is_it = before >= character;
            before += match self {
                Self::Utf8 => c.len_utf8(),
                Self::Utf16 => c.len_utf16(),
                Self::Utf32 => 1,
            };
            is_it
        });
        found.map_or(line.len(), |(at, _)| at)
    }
}

/// A text that replaces the text between two positions.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct PlacedEdit {
    /// The position of the first replaced character: its line and its place in the line, both from 0.
    pub start: (usize, usize),
    /// The position after the last replaced character.
    pub end: (usize, usize),
    pub text: String,
}

/// The reason why edits do not fit the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MisplacedEdit {
    #[error("an edit is at a line that it does not have")]
    NoSuchLine,
    #[error("edits of it overlap")]
    Overlapping,
    #[error("an edit is in a line with bytes that are no UTF-8, where its place is not certain")]
    Uncertain,
}

/// Applies edits to a file. All positions refer to the text before the edits.
///
/// # Errors
/// An edit does not fit the text. In this case the text is unchanged.
pub fn apply_placed(
    file: &mut FileText,
    edits: &[PlacedEdit],
    unit: CharacterUnit,
) -> Result<(), MisplacedEdit> {
    let text = file.as_str();
    let breaks = memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
    let lines: Vec<usize> = std::iter::once(0).chain(breaks).collect();
    let offset = |(line, character): (usize, usize)| {
        let start = *lines.get(line).ok_or(MisplacedEdit::NoSuchLine)?;
        let end = lines.get(line + 1).map_or(text.len(), |next| next - 1);
        if character > 0 && !file.is_counted_alike(start..end) {
            return Err(MisplacedEdit::Uncertain);
        }
        Ok(start + unit.bytes(&text[start..end], character))
    };
    let mut ranges = Vec::with_capacity(edits.len());
    for edit in edits {
        ranges.push((offset(edit.start)?..offset(edit.end)?, &edit.text));
    }
    // Texts that are added at the same place keep their order.
    ranges.sort_by_key(|(range, _)| (range.start, range.end));
    let apart = ranges.is_sorted_by(|(one, _), (next, _)| one.end <= next.start);
    if !apart || ranges.iter().any(|(range, _)| range.start > range.end) {
        return Err(MisplacedEdit::Overlapping);
    }
    for (range, text) in ranges.into_iter().rev() {
        file.replace(range, text);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(start: (usize, usize), end: (usize, usize), text: &str) -> PlacedEdit {
        PlacedEdit {
            start,
            end,
            text: text.to_owned(),
        }
    }

    fn applied(
        before: &str,
        edits: &[PlacedEdit],
        unit: CharacterUnit,
    ) -> Result<String, MisplacedEdit> {
        let mut file = FileText::decode(before.as_bytes()).unwrap();
        apply_placed(&mut file, edits, unit)?;
        Ok(String::from_utf8(file.encode().unwrap()).unwrap())
    }

    #[test]
    fn characters_are_counted_in_each_unit() {
        let name = "\u{e9}\u{1f600}x = x\r\n";
        for (unit, at) in [
            (CharacterUnit::Utf8, 6),
            (CharacterUnit::Utf16, 3),
            (CharacterUnit::Utf32, 2),
        ] {
            let edits = [
                placed((0, at + 4), (0, at + 5), "name"),
                placed((0, at), (0, at + 1), "name"),
            ];
            assert_eq!(
                applied(name, &edits, unit).unwrap(),
                "\u{e9}\u{1f600}name = name\r\n"
            );
        }
    }

    #[test]
    fn places_beyond_a_line_are_its_end_and_places_beyond_the_text_are_errors() {
        let check = |edits: &[PlacedEdit], expected: Result<&str, MisplacedEdit>| {
            let found = applied("ab\ncd\n", edits, CharacterUnit::Utf16);
            assert_eq!(found.as_deref(), expected.as_deref());
        };
        check(&[placed((0, 9), (0, 9), "!")], Ok("ab!\ncd\n"));
        check(&[placed((1, 0), (2, 0), "")], Ok("ab\n"));
        check(&[placed((0, 1), (1, 1), "-")], Ok("a-d\n"));
        let both = [placed((0, 0), (0, 0), "1"), placed((0, 0), (0, 0), "2")];
        check(&both, Ok("12ab\ncd\n"));
        check(
            &[placed((3, 0), (3, 0), "x")],
            Err(MisplacedEdit::NoSuchLine),
        );
        let both = [placed((0, 0), (0, 2), "x"), placed((0, 1), (0, 2), "y")];
        check(&both, Err(MisplacedEdit::Overlapping));
        check(
            &[placed((0, 2), (0, 0), "x")],
            Err(MisplacedEdit::Overlapping),
        );
    }
}
