//! Converts between the bytes of a file and its characters.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::NotText;
use crate::named::NamedEncoding;
use crate::utf16;

const UTF8_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// The first character of an escape. An escape represents one byte that is not part of a valid character: it is this character
/// and the two hexadecimal digits of the byte. In a text with escapes, a U+FFFD of the file itself is written as three escapes.
const ESCAPE: char = char::REPLACEMENT_CHARACTER;

/// The encoding of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8 {
        /// True if the file starts with the byte order mark.
        mark: bool,
        /// True if bytes that are not valid UTF-8 are written as escapes.
        escapes: bool,
        /// True if Neovim read the file as latin-1, so that each byte is one character of the buffer.
        in_latin1: bool,
    },
    /// UTF-16 with a byte order mark.
    Utf16 { little: bool },
    /// The encoding that a buffer names in 'fileencoding'.
    Named(NamedEncoding),
    /// An encoding that is not UTF-8 and not known. Each byte that is not ASCII is written as an escape. The value has the
    /// original bytes.
    Unknown(Arc<[u8]>),
}

impl Encoding {
    /// Returns the encoding and the text of a file.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, String), NotText> {
        for little in [true, false] {
            if let Some(rest) = bytes.strip_prefix(utf16::mark(little)) {
                return Ok((Self::Utf16 { little }, utf16::text(rest, little)?));
            }
        }
        match bytes.strip_prefix(UTF8_MARK) {
            Some(rest) => Self::decode_unmarked(rest, true),
            None => Self::decode_unmarked(bytes, false),
        }
    }

    /// Returns the encoding and the text of a file that is not UTF-16. `bytes` are the bytes after the byte order mark. `mark` is
    /// true if the file has one.
    fn decode_unmarked(bytes: &[u8], mark: bool) -> Result<(Self, String), NotText> {
        if memchr::memchr(0, bytes).is_some() {
            return Err(NotText::Nul);
        }
        let utf8 = |escapes| Self::Utf8 {
            mark,
            escapes,
            in_latin1: false,
        };
        if let Ok(text) = str::from_utf8(bytes) {
            return Ok((utf8(false), text.to_owned()));
        }
        if mark || is_mostly_utf8(bytes) {
            return Ok((utf8(true), escape(bytes)));
        }
        // Text has tabs, line breaks, form feeds and escapes, and no other control character.
        let is_control =
            |byte: &u8| byte.is_ascii_control() && !b"\t\n\r\x08\x0c\x1b".contains(byte);
        match bytes.iter().any(is_control) {
            true => Err(NotText::Binary),
            false => Ok((Self::Unknown(bytes.into()), escape_all(bytes))),
        }
    }

    /// Returns the encoding and the text of a buffer of Neovim with this 'fileencoding'. `bytes` are the lines of the buffer.
    pub(crate) fn decode_buffer(
        bytes: &[u8],
        fileencoding: &str,
    ) -> Result<(Self, String), NotText> {
        if matches!(fileencoding, "" | "utf-8") {
            return Self::decode_unmarked(bytes, false);
        }
        let named = NamedEncoding::new(fileencoding);
        let text = str::from_utf8(bytes).map_err(|_| NotText::Buffer)?;
        if memchr::memchr(0, bytes).is_some() {
            return Err(NotText::Nul);
        }
        // Neovim takes for latin-1 what it cannot read otherwise, such as UTF-8 with a wrong byte.
        if named.is_latin1()
            && !text.is_ascii()
            && let Ok(file) = named.encode(text)
            && let Ok((Self::Utf8 { mark, escapes, .. }, text)) = Self::decode(&file)
        {
            let in_latin1 = true;
            let encoding = Self::Utf8 {
                mark,
                escapes,
                in_latin1,
            };
            return Ok((encoding, text));
        }
        Ok((Self::Named(named), text.to_owned()))
    }

    /// Decodes the bytes of another version of the file, and returns their encoding and their text. `self` is the encoding of the
    /// known version.
    pub(crate) fn decode_like(&self, bytes: &[u8]) -> Result<(Self, String), NotText> {
        match self {
            Self::Named(named) => {
                let (named, text) = named.decode(bytes)?;
                Ok((Self::Named(named), text))
            }
            _ => Self::decode(bytes),
        }
    }

    /// Encodes a text as the bytes of a file.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u8>, NotText> {
        match self {
            Self::Utf8 { mark, escapes, .. } => {
                let mut bytes = if *mark {
                    UTF8_MARK.to_owned()
                } else {
                    Vec::new()
                };
                match escapes {
                    true => bytes.append(&mut unescape(text)?),
                    false => bytes.extend(text.as_bytes()),
                }
                Ok(bytes)
            }
            Self::Utf16 { little } => {
                Ok([utf16::mark(*little), &utf16::bytes(text, *little)].concat())
            }
            Self::Named(named) => named.encode(text),
            Self::Unknown(original) => {
                if let Some(new) = text.chars().find(|it| !it.is_ascii() && *it != ESCAPE) {
                    return Err(NotText::UnknownEncoding(new));
                }
                let bytes = unescape(text)?;
                check_sequences(original, &bytes)?;
                Ok(bytes)
            }
        }
    }

    /// Returns true if the text may have escapes.
    pub(crate) fn has_escapes(&self) -> bool {
        match self {
            Self::Utf8 { escapes, .. } => *escapes,
            Self::Utf16 { .. } | Self::Named(_) => false,
            Self::Unknown(_) => true,
        }
    }

    /// Encodes a text as the lines of a Neovim buffer.
    pub(crate) fn encode_buffer(&self, text: &str) -> Result<Vec<u8>, NotText> {
        match self {
            Self::Utf8 {
                in_latin1: true, ..
            } => {
                let bytes = self.encode(text)?.into_iter();
                Ok(bytes.map(char::from).collect::<String>().into_bytes())
            }
            Self::Named(_) => Ok(text.as_bytes().to_owned()),
            _ => self.encode(text),
        }
    }

    /// Checks that a file in this encoding can store the text, as far as co knows.
    pub(crate) fn check(&self, text: &str) -> Result<(), NotText> {
        match self {
            Self::Named(named) => named.check(text),
            _ => self.encode(text).map(drop),
        }
    }

    /// Switches UTF-8 without escapes to UTF-8 with escapes, and rewrites the text. Does nothing for other encodings.
    pub(crate) fn add_escapes(&mut self, text: &mut String) {
        if let Self::Utf8 { escapes, .. } = self
            && !*escapes
        {
            *escapes = true;
            *text = escape(text.as_bytes());
        }
    }

    /// Makes each unknown encoding in the list accept the characters of all of them.
    pub(crate) fn share_characters(all: &mut [&mut Self]) {
        let unknown = all.iter().filter_map(|it| match it {
            Self::Unknown(original) => Some(&**original),
            _ => None,
        });
        let shared: Arc<[u8]> = unknown.collect::<Vec<_>>().join(&b'\n').into();
        for it in all {
            if let Self::Unknown(original) = it {
                *original = Arc::clone(&shared);
            }
        }
    }

    /// Returns a sentence that explains the escapes in a text to its reader, or `None` if the text has no escapes.
    pub(crate) fn note(&self, text: &str) -> Option<String> {
        match self {
            Self::Unknown(_) => Some(
                "it is not UTF-8, and its encoding is not known: \u{fffd} and two digits stand for each byte that is not ASCII"
                    .to_owned(),
            ),
            Self::Utf8 { escapes: true, .. } => match text.matches(ESCAPE).count() {
                0 => None,
                1 => Some("one byte is no UTF-8: \u{fffd} and two digits stand for it".to_owned()),
                some => Some(format!(
                    "{some} bytes are no UTF-8: \u{fffd} and two digits stand for each"
                )),
            },
            _ => None,
        }
    }

    /// Returns true if co and other programs count the same number of characters in this line.
    pub(crate) fn is_counted_alike(&self, line: &str) -> bool {
        match self {
            Self::Utf8 {
                in_latin1: true, ..
            } => line.is_ascii(),
            _ => !self.has_escapes() || !line.contains(ESCAPE),
        }
    }

    /// Returns true if the byte offset `at` is inside an escape.
    pub(crate) fn is_inside_escape(&self, text: &str, at: usize) -> bool {
        self.has_escapes() && is_inside_escape(text, at)
    }

    /// Checks that the byte offset `at` is not inside a character.
    pub(crate) fn check_cut(&self, text: &str, at: usize) -> Result<(), NotText> {
        let Self::Unknown(_) = self else {
            return Ok(());
        };
        match is_inside_escape(text, at) || is_inside_sequence(text, at) {
            true => {
                let start = text[..at].rfind(ESCAPE).unwrap_or(at);
                let sequence = text[start..].chars().take(4).collect();
                Err(NotText::BrokenCharacter(sequence))
            }
            false => Ok(()),
        }
    }
}

/// Returns bytes as a text, with escapes for the bytes that are not UTF-8.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for (number, piece) in chunk.valid().split(ESCAPE).enumerate() {
            if number > 0 {
                text.push_str(&escape_all(ESCAPE.to_string().as_bytes()));
            }
            text.push_str(piece);
        }
        text.push_str(&escape_all(chunk.invalid()));
    }
    text
}

/// Returns bytes as a text, with escapes for the bytes that are not ASCII.
fn escape_all(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte.is_ascii() {
            true => text.push(char::from(*byte)),
            false => {
                text.push(ESCAPE);
                text.extend(digits(*byte));
            }
        }
    }
    text
}

fn digits(byte: u8) -> [char; 2] {
    [byte >> 4, byte & 0xf].map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)]))
}

/// Returns the bytes that a text with escapes represents.
fn unescape(text: &str) -> Result<Vec<u8>, NotText> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut pieces = text.split(ESCAPE);
    bytes.extend(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2).ok_or(NotText::BadEscape)?;
        let is_digit = |it: u8| matches!(it, b'0'..=b'9' | b'A'..=b'F');
        let byte = u8::from_str_radix(digits, 16).ok();
        let byte = byte.filter(|it| !it.is_ascii() && digits.bytes().all(is_digit));
        bytes.push(byte.ok_or(NotText::BadEscape)?);
        bytes.extend(rest.as_bytes());
    }
    Ok(bytes)
}

/// Returns the parts of a text that look like escapes.
pub(crate) fn escapes_in(text: &str) -> impl Iterator<Item = &str> {
    let places = text.match_indices(ESCAPE).map(|(at, _)| at);
    let escape = |at: usize| text.get(at..at + ESCAPE.len_utf8() + 2);
    places.filter_map(escape).filter(|it| unescape(it).is_ok())
}

/// Returns true if the byte offset `at` of a text with escapes is inside an escape.
fn is_inside_escape(text: &str, at: usize) -> bool {
    text[..at].chars().rev().take(2).any(|it| it == ESCAPE)
}

/// Returns true if nearly all of the bytes are valid UTF-8: they have at least as many non-ASCII characters as invalid bytes. In
/// another encoding, few bytes look like UTF-8.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut characters, mut others) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        characters += chunk.valid().chars().filter(|it| !it.is_ascii()).count();
        others += chunk.invalid().len();
    }
    characters >= others
}

/// Returns true if an ASCII byte may be the second byte of a character in an encoding such as GBK or Shift-JIS.
fn may_end_character(byte: u8) -> bool {
    matches!(byte, 0x30..=0x7e)
}

/// Returns true if the byte offset `at`, in a text of an unknown encoding, may be inside a character of several bytes.
fn is_inside_sequence(text: &str, at: usize) -> bool {
    let ends_with_escape = |text: &str| text.chars().rev().nth(2) == Some(ESCAPE);
    let (before, after) = text.split_at(at);
    let Some(next) = after.chars().next() else {
        return false;
    };
    if ends_with_escape(before) {
        return next == ESCAPE || u8::try_from(next).is_ok_and(may_end_character);
    }
    // GB18030 has digits within a character.
    let before = before.strip_suffix(|it: char| it.is_ascii_digit());
    next == ESCAPE && before.is_some_and(ends_with_escape)
}

/// Returns the byte sequences that may be characters of an unknown encoding. A sequence is a run of bytes that are not ASCII, and
/// the ASCII byte after the run if it may belong to the character.
fn sequences(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let start = rest.iter().position(|it| !it.is_ascii())?;
        let from = &rest[start..];
        let is_high = |at: usize| from.get(at).is_some_and(|it: &u8| !it.is_ascii());
        let mut end = 0;
        loop {
            while is_high(end) {
                end += 1;
            }
            let Some(last) = from.get(end).filter(|it| may_end_character(**it)) else {
                break;
            };
            end += 1;
            if !(last.is_ascii_digit() && is_high(end)) {
                break;
            }
        }
        rest = &from[end..];
        Some(&from[..end])
    })
}

/// Checks that each character of a text in an unknown encoding also occurs in the original text.
fn check_sequences(original: &[u8], bytes: &[u8]) -> Result<(), NotText> {
    if original == bytes {
        return Ok(());
    }
    let known: HashSet<_> = sequences(original).collect();
    let is_known = |it: &&[u8]| {
        // A sequence whose end was followed by a space or the like is whole.
        let whole = it.split_last().filter(|(last, _)| last.is_ascii());
        known.contains(it) || whole.is_some_and(|(_, whole)| known.contains(whole))
    };
    match sequences(bytes).find(|it| !is_known(it)) {
        Some(new) => Err(NotText::BrokenCharacter(escape_all(new))),
        None => Ok(()),
    }
}
