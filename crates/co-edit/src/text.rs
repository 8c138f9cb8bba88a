//! The text of a file, and the way in which the file stores it.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr_iter;
use memchr::memmem;

use crate::diff::{Hunk, hunks};
use crate::lines;

const UTF8_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
const UTF16_LE_MARK: &[u8] = &[0xff, 0xfe];
const UTF16_BE_MARK: &[u8] = &[0xfe, 0xff];

/// A file cannot be read or written as text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    #[error("it is binary, not text")]
    Binary,
    #[error("it is not valid UTF-16, although it starts with the mark of UTF-16")]
    Utf16,
    #[error("it is stored as latin-1, which has no character `{0}`: leave that character out")]
    NotLatin1(char),
}

/// The characters of a file as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf8WithMark,
    Utf16Le,
    Utf16Be,
    Latin1,
}

/// The line breaks of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Breaks {
    Lf,
    Crlf,
    /// For each line break, whether it is `\r\n`.
    Mixed(Vec<bool>),
}

/// The text of a file, with `\n` for each line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    text: String,
    encoding: Encoding,
    breaks: Breaks,
}

impl FileText {
    /// Reads the bytes of a file: UTF-8, UTF-16 with a byte order mark, or else latin-1.
    ///
    /// # Errors
    /// The bytes are not text.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotText> {
        let (encoding, text) = characters(bytes)?;
        if memchr::memchr(0, text.as_bytes()).is_some() {
            return Err(NotText::Binary);
        }
        let breaks = Breaks::of(&text);
        let text = match breaks {
            Breaks::Lf => text,
            _ => text.replace("\r\n", "\n"),
        };
        Ok(Self {
            text,
            encoding,
            breaks,
        })
    }

    /// Returns the bytes of the file.
    ///
    /// # Errors
    /// The encoding of the file has no such character.
    pub fn encode(&self) -> Result<Vec<u8>, NotText> {
        let text = self.breaks.restore(&self.text);
        Ok(match self.encoding {
            Encoding::Utf8 => text.into_owned().into_bytes(),
            Encoding::Utf8WithMark => [UTF8_MARK, text.as_bytes()].concat(),
            Encoding::Utf16Le => utf16(UTF16_LE_MARK, &text, u16::to_le_bytes),
            Encoding::Utf16Be => utf16(UTF16_BE_MARK, &text, u16::to_be_bytes),
            Encoding::Latin1 => {
                let byte = |c: char| u8::try_from(c).map_err(|_| NotText::NotLatin1(c));
                text.chars().map(byte).collect::<Result<_, _>>()?
            }
        })
    }

    /// Returns the text, with `\n` for each line break.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Replaces the bytes of a range by a text. The lines that stay keep their line breaks; new ones get that of the line
    /// where the range starts.
    pub fn replace(&mut self, range: Range<usize>, new: &str) {
        let new = typed(new);
        let start = range.start;
        let (range, new) = trim(&self.text, range, &new);
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

    /// Replaces each place where a text stands, from the start on.
    pub(crate) fn replace_all(&mut self, old: &str, new: &str) {
        if !matches!(self.breaks, Breaks::Mixed(_)) {
            self.text = self.text.replace(old, new);
            return;
        }
        let places: Vec<_> = self.text.match_indices(old).map(|(at, _)| at).collect();
        for at in places.into_iter().rev() {
            self.replace(at..at + old.len(), new);
        }
    }

    /// Replaces the whole text. A text that is not empty keeps its final line break, or keeps having none.
    pub fn rewrite(&mut self, new: &str) {
        let mut new = typed(new).into_owned();
        if !self.text.is_empty() && !new.is_empty() {
            match (self.text.ends_with('\n'), new.ends_with('\n')) {
                (true, false) => new.push('\n'),
                (false, true) => drop(new.pop()),
                _ => {}
            }
        }
        if !matches!(self.breaks, Breaks::Mixed(_)) {
            self.text = new;
            return;
        }
        self.apply_hunks(&hunks(&self.text, &new));
    }

    /// Replaces lines. The hunks must be in order and must not overlap.
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

    /// Returns a text with these line breaks in place of `\n`.
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

/// Returns a text that was typed, with `\n` for each line break.
pub(crate) fn typed(text: &str) -> Cow<'_, str> {
    match text.contains("\r\n") {
        true => text.replace("\r\n", "\n").into(),
        false => text.into(),
    }
}

/// Returns the start of each line, and the end of the text.
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

fn characters(bytes: &[u8]) -> Result<(Encoding, String), NotText> {
    if let Some(rest) = bytes.strip_prefix(UTF16_LE_MARK) {
        return Ok((Encoding::Utf16Le, from_utf16(rest, u16::from_le_bytes)?));
    }
    if let Some(rest) = bytes.strip_prefix(UTF16_BE_MARK) {
        return Ok((Encoding::Utf16Be, from_utf16(rest, u16::from_be_bytes)?));
    }
    let (encoding, rest) = match bytes.strip_prefix(UTF8_MARK) {
        Some(rest) => (Encoding::Utf8WithMark, rest),
        None => (Encoding::Utf8, bytes),
    };
    if let Ok(text) = str::from_utf8(rest) {
        return Ok((encoding, text.to_owned()));
    }
    // Text has tabs, line breaks, form feeds and escapes, and no other control character.
    let control = |byte: &&u8| byte.is_ascii_control() && !b"\t\n\r\x08\x0c\x1b".contains(byte);
    match bytes.iter().find(control) {
        Some(_) => Err(NotText::Binary),
        None => Ok((
            Encoding::Latin1,
            bytes.iter().copied().map(char::from).collect(),
        )),
    }
}

fn from_utf16(bytes: &[u8], read: fn([u8; 2]) -> u16) -> Result<String, NotText> {
    let (units, []) = bytes.as_chunks::<2>() else {
        return Err(NotText::Utf16);
    };
    char::decode_utf16(units.iter().map(|unit| read(*unit)))
        .collect::<Result<_, _>>()
        .map_err(|_| NotText::Utf16)
}

fn utf16(mark: &[u8], text: &str, write: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let units = text.encode_utf16().flat_map(write);
    mark.iter().copied().chain(units).collect()
}

/// Returns a replacement without the characters that it has in common with the range, at its start and its end.
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
