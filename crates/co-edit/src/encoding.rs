//! The characters of a file as bytes.

use std::collections::HashSet;
use std::sync::Arc;

const UTF8_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
const UTF16_LE_MARK: &[u8] = &[0xff, 0xfe];
const UTF16_BE_MARK: &[u8] = &[0xfe, 0xff];

/// The start of an escape. An escape stands for one byte that is no part of a character, and ends with the byte's two
/// hexadecimal digits. In a text with escapes, a replacement character of the file is three escapes.
const ESCAPE: char = char::REPLACEMENT_CHARACTER;

/// A file cannot be read or written as text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    #[error("it is binary, not text")]
    Binary,
    #[error("it has NUL bytes, so it is binary or UTF-16 without a byte order mark")]
    Nul,
    #[error("it is not valid UTF-16, although it starts with the mark of UTF-16")]
    Utf16,
    #[error("its buffer has bytes that are no UTF-8")]
    Buffer,
    #[error("its encoding, {encoding}, has no character `{character}`: leave that character out")]
    Missing { encoding: String, character: char },
    #[error(
        "it is not UTF-8, and co does not know its encoding, so `{0}` cannot be added: add ASCII characters only, or ask the \
         person to open the file in Neovim with the right 'fileencoding', which co then uses"
    )]
    UnknownEncoding(char),
    #[error(
        "it is not UTF-8, and co does not know its encoding, so the change may break a character at `{0}`: keep the text beside \
         `\u{fffd}` as it is, or ask the person to open the file in Neovim with the right 'fileencoding', which co then uses"
    )]
    BrokenCharacter(String),
    #[error(
        "it has bytes that are no UTF-8. `\u{fffd}` stands for one of them and needs the two digits behind it, as in \
         `\u{fffd}E9`: copy them from the file, or leave them out with it"
    )]
    BadEscape,
}

/// The encoding of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8 {
        /// The file starts with the byte order mark.
        mark: bool,
        /// Bytes that are no UTF-8 stand as escapes.
        escapes: bool,
    },
    Utf16 {
        little: bool,
    },
    /// Not UTF-8. Each byte that is not ASCII stands as an escape.
    Unknown(Arc<[u8]>),
}

impl Encoding {
    /// Returns the encoding of a file, and its text.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, String), NotText> {
        if let Some(rest) = bytes.strip_prefix(UTF16_LE_MARK) {
            return utf16_text(rest, u16::from_le_bytes)
                .map(|text| (Self::Utf16 { little: true }, text));
        }
        if let Some(rest) = bytes.strip_prefix(UTF16_BE_MARK) {
            return utf16_text(rest, u16::from_be_bytes)
                .map(|text| (Self::Utf16 { little: false }, text));
        }
        if memchr::memchr(0, bytes).is_some() {
            return Err(NotText::Nul);
        }
        let (mark, rest) = match bytes.strip_prefix(UTF8_MARK) {
            Some(rest) => (true, rest),
            None => (false, bytes),
        };
        if let Ok(text) = str::from_utf8(rest) {
            let escapes = false;
            return Ok((Self::Utf8 { mark, escapes }, text.to_owned()));
        }
        if mark || is_mostly_utf8(rest) {
            let escapes = true;
            return Ok((Self::Utf8 { mark, escapes }, escape(rest)));
        }
        // Text has tabs, line breaks, form feeds and escapes, and no other control character.
        let is_control =
            |byte: &u8| byte.is_ascii_control() && !b"\t\n\r\x08\x0c\x1b".contains(byte);
        match bytes.iter().any(is_control) {
            true => Err(NotText::Binary),
            false => Ok((Self::Unknown(bytes.into()), escape_all(bytes))),
        }
    }

    /// Returns the bytes of a text.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u8>, NotText> {
        match self {
            Self::Utf8 { mark, escapes } => {
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
            Self::Utf16 { little: true } => Ok(utf16(UTF16_LE_MARK, text, u16::to_le_bytes)),
            Self::Utf16 { little: false } => Ok(utf16(UTF16_BE_MARK, text, u16::to_be_bytes)),
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

    /// Returns whether some bytes stand as escapes.
    pub(crate) fn has_escapes(&self) -> bool {
        match self {
            Self::Utf8 { escapes, .. } => *escapes,
            Self::Utf16 { .. } => false,
            Self::Unknown(_) => true,
        }
    }

    /// Makes a text in UTF-8 one with escapes.
    pub(crate) fn add_escapes(&mut self, text: &mut String) {
        if let Self::Utf8 { escapes, .. } = self
            && !*escapes
        {
            *escapes = true;
            *text = escape(text.as_bytes());
        }
    }

    /// Lets each of two unknown encodings have the characters of both.
    pub(crate) fn share_characters(one: &mut Self, other: &mut Self) {
        if let (Self::Unknown(one), Self::Unknown(other)) = (one, other) {
            let both: Arc<[u8]> = [&**one, &**other].join(&b'\n').into();
            *one = Arc::clone(&both);
            *other = both;
        }
    }

    /// Returns what a reader of a text must know of its escapes.
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

    /// Returns whether a place of a text is inside an escape.
    pub(crate) fn is_inside_escape(&self, text: &str, at: usize) -> bool {
        self.has_escapes() && is_inside_escape(text, at)
    }

    /// Checks that a place of a text is not inside a character.
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

/// Returns bytes as a text in which those that are no UTF-8 are escapes.
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

/// Returns bytes as a text in which all that are not ASCII are escapes.
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

/// Returns the bytes of a text with escapes.
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

/// Returns whether a place of a text with escapes is inside of one.
fn is_inside_escape(text: &str, at: usize) -> bool {
    text[..at].chars().rev().take(2).any(|it| it == ESCAPE)
}

/// Returns whether bytes are UTF-8 but for some: at least as many of its characters are not ASCII as bytes are no UTF-8. In
/// another encoding, few characters look like UTF-8.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut characters, mut others) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        characters += chunk.valid().chars().filter(|it| !it.is_ascii()).count();
        others += chunk.invalid().len();
    }
    characters >= others
}

/// Returns whether a byte may be the second one of a character in an encoding such as GBK or Shift-JIS, although it is ASCII.
fn may_end_character(byte: u8) -> bool {
    matches!(byte, 0x30..=0x7e)
}

/// Returns whether a place of a text in an unknown encoding may be inside a character of several bytes.
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

/// Returns the sequences of bytes that may be characters of an unknown encoding: some that are not ASCII, and the next one if it
/// may belong to them.
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

/// Checks that all characters of a text in an unknown encoding also stand in another one.
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

fn utf16_text(bytes: &[u8], read: fn([u8; 2]) -> u16) -> Result<String, NotText> {
    let (units, []) = bytes.as_chunks::<2>() else {
        return Err(NotText::Utf16);
    };
    let text: String = char::decode_utf16(units.iter().map(|unit| read(*unit)))
        .collect::<Result<_, _>>()
        .map_err(|_| NotText::Utf16)?;
    match text.contains('\0') {
        true => Err(NotText::Binary),
        false => Ok(text),
    }
}

fn utf16(mark: &[u8], text: &str, write: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let units = text.encode_utf16().flat_map(write);
    mark.iter().copied().chain(units).collect()
}
