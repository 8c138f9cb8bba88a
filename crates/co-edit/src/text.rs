//! The text of a file, with the encoding and the line breaks that the file uses.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr_iter;
use memchr::memmem;

use crate::diff::{Hunk, hunks};
use crate::encoding::{Encoding, escapes_in};
use crate::error::NotText;
use crate::lines;

/// The line breaks of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Breaks {
    Lf,
    Crlf,
    /// Both `\n` and `\r\n`. The value has one entry for each line break: true for `\r\n`.
    Mixed(Vec<bool>),
}

/// The text of a file, with `\n` for each line break.
///
/// A byte that is not part of a valid character is written as an escape: U+FFFD and the two hexadecimal digits of the byte, such
/// as `\u{fffd}E9`. In a text with escapes, each U+FFFD begins an escape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    text: String,
    encoding: Encoding,
    breaks: Breaks,
    /// The error if a replacement began or ended within a character.
    cut: Option<NotText>,
}

impl FileText {
    /// Decodes the bytes of a file. The encoding is the first that fits: UTF-16 with a byte order mark, UTF-8, UTF-8 with a few
    /// invalid bytes, or an unknown encoding that includes ASCII.
    ///
    /// # Errors
    /// The bytes are not text.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotText> {
        Encoding::decode(bytes).map(Self::of)
    }

    /// Decodes the lines of a Neovim buffer with this 'fileencoding'.
    ///
    /// # Errors
    /// The lines are not text.
    pub fn of_buffer(bytes: &[u8], fileencoding: &str) -> Result<Self, NotText> {
        Encoding::decode_buffer(bytes, fileencoding).map(Self::of)
    }

    /// Decodes the bytes of another version of this file.
    ///
    /// # Errors
    /// The bytes are not text, or not in the encoding of this file.
    pub fn decode_like(&self, bytes: &[u8]) -> Result<Self, NotText> {
        self.encoding.decode_like(bytes).map(Self::of)
    }

    fn of((encoding, text): (Encoding, String)) -> Self {
        let breaks = Breaks::of(&text);
        let text = match breaks {
            Breaks::Lf => text,
            _ => text.replace("\r\n", "\n"),
        };
        Self {
            text,
            encoding,
            breaks,
            cut: None,
        }
    }

    /// Returns versions of a file in which the same byte has the same escape. Then lines of one version can be put into another
    /// version.
    pub fn alike<const N: usize>(mut files: [Self; N]) -> [Self; N] {
        if files.iter().any(|it| it.encoding.has_escapes()) {
            for file in &mut files {
                file.encoding.add_escapes(&mut file.text);
            }
            Encoding::share_characters(&mut files.each_mut().map(|it| &mut it.encoding));
        }
        files
    }

    /// Returns the bytes of the file.
    ///
    /// # Errors
    /// The encoding of the file lacks a character of the text, only Neovim can write the encoding, or a change may have broken a
    /// character.
    pub fn encode(&self) -> Result<Vec<u8>, NotText> {
        self.encoding.encode(&self.stored()?)
    }

    /// Returns the lines of a Neovim buffer with this text.
    ///
    /// # Errors
    /// As [`Self::encode`], except that an encoding that only Neovim can write is no error.
    pub fn encode_buffer(&self) -> Result<Vec<u8>, NotText> {
        self.encoding.encode_buffer(&self.stored()?)
    }

    /// Checks that the text can be stored, as far as co knows.
    ///
    /// # Errors
    /// As [`Self::encode`], except that an encoding that only Neovim can write is no error.
    pub fn check(&self) -> Result<(), NotText> {
        self.encoding.check(&self.stored()?)
    }

    /// Checks that the text can replace the older text of the file, as far as co knows. The text must not have escapes of another
    /// file, unless the older text has them too.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_after(&self, older: Option<&Self>) -> Result<(), NotText> {
        let older_text = older.map_or("", Self::as_str);
        if !self.encoding.has_escapes()
            && let Some(new) = escapes_in(&self.text).find(|it| !older_text.contains(it))
        {
            return Err(NotText::NewEscape(new.to_owned()));
        }
        // The person may have typed a character that cannot be stored.
        match older.is_none_or(|it| it.check().is_ok()) {
            true => self.check(),
            false => Ok(()),
        }
    }

    /// Returns the text with the line breaks of the file.
    fn stored(&self) -> Result<Cow<'_, str>, NotText> {
        match &self.cut {
            Some(cut) => Err(cut.clone()),
            None => Ok(self.breaks.restore(&self.text)),
        }
    }

    /// Returns a sentence that explains to a reader of the text how invalid bytes are written.
    pub fn encoding_note(&self) -> Option<String> {
        self.encoding.note(&self.text)
    }

    /// Returns the text, with `\n` for each line break.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Replaces a byte range of the text by another text. Old lines keep their line breaks; new lines get the break of the line
    /// where the range starts.
    pub fn replace(&mut self, range: Range<usize>, new: &str) {
        let new = typed(new);
        let start = range.start;
        let whole = range.clone();
        let (range, new) = trim(&self.text, range, &new);
        // The common part may end within a character that is replaced whole.
        if let Err(cut) = self.check_cut(&range).or_else(|_| self.check_cut(&whole)) {
            self.cut = Some(cut);
        }
        if let Breaks::Mixed(breaks) = &mut self.breaks {
            let line = count_breaks(&self.text[..start]);
            let like = breaks.get(line).or(breaks.last());
            let like = like.copied().unwrap_or_default();
            let before = count_breaks(&self.text[..range.start]);
            let removed = before..before + count_breaks(&self.text[range.clone()]);
            let added = std::iter::repeat_n(like, count_breaks(new));
            breaks.splice(removed, added);
        }
        self.text.replace_range(range, new);
    }

    /// Replaces all occurrences of a text, from top to bottom.
    pub(crate) fn replace_all(&mut self, old: &str, new: &str) {
        if self.is_plain() {
            self.text = self.text.replace(old, new);
            return;
        }
        let places = self.text.match_indices(old).map(|(at, _)| at);
        let places: Vec<_> = places.filter(|at| self.is_at(*at, old)).collect();
        for at in places.into_iter().rev() {
            self.replace(at..at + old.len(), new);
        }
    }

    /// Returns true if a text that was found at the byte offset `at` neither begins nor ends within an escape.
    pub(crate) fn is_at(&self, at: usize, found: &str) -> bool {
        let is_inside = |at| self.encoding.is_inside_escape(&self.text, at);
        !is_inside(at) && !is_inside(at + found.len())
    }

    /// Returns true if co and other programs count the same number of characters in this line. `line` is a byte range.
    pub(crate) fn is_counted_alike(&self, line: Range<usize>) -> bool {
        self.encoding.is_counted_alike(&self.text[line])
    }

    /// Returns true if a replacement can ignore escapes and mixed line breaks, because the text has neither.
    fn is_plain(&self) -> bool {
        !self.encoding.has_escapes() && !matches!(self.breaks, Breaks::Mixed(_))
    }

    fn check_cut(&self, range: &Range<usize>) -> Result<(), NotText> {
        self.encoding.check_cut(&self.text, range.start)?;
        self.encoding.check_cut(&self.text, range.end)
    }

    /// Replaces the whole text. The new text ends with a line break exactly if the old text does. If the old text was empty, the
    /// new text stays as given.
    pub fn rewrite(&mut self, new: &str) {
        let mut new = typed(new).into_owned();
        if !self.text.is_empty() && !new.is_empty() {
            match (self.text.ends_with('\n'), new.ends_with('\n')) {
                (true, false) => new.push('\n'),
                (false, true) => drop(new.pop()),
                _ => {}
            }
        }
        if self.is_plain() {
            self.text = new;
            return;
        }
        self.apply_hunks(&hunks(&self.text, &new));
    }

    /// Replaces lines. The hunks must be sorted by line and must not overlap.
    pub fn apply_hunks(&mut self, hunks: &[Hunk]) {
        let starts = line_starts(&self.text);
        for hunk in hunks.iter().rev() {
            self.replace(starts[hunk.at.start]..starts[hunk.at.end], &hunk.text);
        }
    }
}

impl Breaks {
    fn of(text: &str) -> Self {
        let crlf = memmem::find_iter(text.as_bytes(), "\r\n").count();
        match crlf {
            0 => Self::Lf,
            all if all == count_breaks(text) => Self::Crlf,
            _ => {
                let broken = lines(text).into_iter().filter(|line| line.ends_with('\n'));
                Self::Mixed(broken.map(|line| line.ends_with("\r\n")).collect())
            }
        }
    }

    /// Returns the text with the line breaks of the file instead of `\n`.
    fn restore<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self {
            Self::Lf => text.into(),
            Self::Crlf => text.replace('\n', "\r\n").into(),
            Self::Mixed(breaks) => {
                let mut whole = String::with_capacity(text.len() + breaks.len());
                let mut crlf = breaks.iter();
                for line in lines(text) {
                    match line.strip_suffix('\n') {
                        Some(line) if crlf.next() == Some(&true) => {
                            whole.push_str(line);
                            whole.push_str("\r\n");
                        }
                        _ => whole.push_str(line),
                    }
                }
                whole.into()
            }
        }
    }
}

/// Returns the text with `\n` for each `\r\n`.
pub(crate) fn typed(text: &str) -> Cow<'_, str> {
    match text.contains("\r\n") {
        true => text.replace("\r\n", "\n").into(),
        false => text.into(),
    }
}

/// Returns the byte offsets of the starts of all lines, and of the end of the text.
pub(crate) fn line_starts(text: &str) -> Vec<usize> {
    let mut at = 0;
    let ends = text.split_inclusive('\n').map(|line| {
        at += line.len();
        at
    });
    std::iter::once(0).chain(ends).collect()
}

fn count_breaks(text: &str) -> usize {
    memchr_iter(b'\n', text.as_bytes()).count()
}

/// Shrinks a replacement: leaves out the characters that the range and the new text have in common at their start and at their
/// end. Returns the smaller range and its new text.
fn trim<'a>(text: &str, range: Range<usize>, new: &'a str) -> (Range<usize>, &'a str) {
    let same = |pair: &(char, char)| pair.0 == pair.1;
    let length = |pair: (char, char)| pair.0.len_utf8();
    let old = &text[range.clone()];
    let start: usize = (old.chars().zip(new.chars()))
        .take_while(same)
        .map(length)
        .sum();
    let (old, new) = (&old[start..], &new[start..]);
    let end: usize = (old.chars().rev().zip(new.chars().rev()))
        .take_while(same)
        .map(length)
        .sum();
    (
        range.start + start..range.end - end,
        &new[..new.len() - end],
    )
}

#[cfg(test)]
mod tests;
