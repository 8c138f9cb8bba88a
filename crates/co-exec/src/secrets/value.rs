//! A secret value from a file.

use std::sync::Arc;

/// The least length of a secret value in bytes. A shorter text would match ordinary text.
const MIN_LENGTH: usize = 6;

/// The length in bytes from which on a text counts as data, not as a secret value.
const MAX_LENGTH: usize = 16 << 10;

/// The length below which a value of only letters counts as a plain word, such as `postgres`.
const PLAIN_WORD_LENGTH: usize = 12;

/// The length below which a value of only letters and digits must be a whole word in the text.
const WHOLE_WORD_LENGTH: usize = 16;

/// A secret value, and the places at which the redactor replaces it in a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SecretValue {
    pub text: Arc<str>,
    pub place: Place,
}

/// The places at which a value is replaced in a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Anywhere,
    /// The value is replaced only as a whole word, or after an option letter: `mysql -pS3cret`.
    Word,
    /// The value is replaced only after its key: `DB_PASSWORD=postgres`.
    Key(Arc<str>),
}

impl SecretValue {
    /// Returns the value for a key. Returns `None` if the text is too short, too long, or a plain word without a key.
    pub(super) fn new(key: &str, text: &str) -> Option<Self> {
        let is = |kind: fn(&char) -> bool| text.chars().all(|c| kind(&c));
        let place = match text.len() {
            ..MIN_LENGTH | MAX_LENGTH.. => return None,
            ..PLAIN_WORD_LENGTH if is(|c| c.is_alphabetic()) && key.is_empty() => return None,
            ..PLAIN_WORD_LENGTH if is(|c| c.is_alphabetic()) => {
                Place::Key(key.to_ascii_lowercase().into())
            }
            ..WHOLE_WORD_LENGTH if is(|c| c.is_alphanumeric()) => Place::Word,
            _ => Place::Anywhere,
        };
        Some(Self {
            text: text.into(),
            place,
        })
    }
}

impl Place {
    /// Returns whether the value at `start..end` of a text must be replaced.
    pub(super) fn is_at(&self, text: &str, start: usize, end: usize) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Word => starts_word(&text[..start]) && ends_word(&text[end..]),
            Self::Key(key) => follows(&text[..start], key) && ends_word(&text[end..]),
        }
    }
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn ends_word(after: &str) -> bool {
    !after.starts_with(in_word)
}

fn starts_word(before: &str) -> bool {
    let mut before = before.chars().rev();
    match before.next() {
        Some(c) if in_word(c) => {
            c.is_ascii_alphabetic()
                && before.next() == Some('-')
                && !before.next().is_some_and(in_word)
        }
        _ => true,
    }
}

/// Returns whether `before` ends with the key and a separator such as `=`.
fn follows(before: &str, key: &str) -> bool {
    let rest = before.trim_end_matches(|c| " \t\"'`=:>[](".contains(c));
    let start = rest.len().checked_sub(key.len());
    let last = start.and_then(|start| rest.get(start..));
    rest.len() < before.len() && last.is_some_and(|last| last.eq_ignore_ascii_case(key))
}
