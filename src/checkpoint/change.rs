//! The change of a path, in the form in which the log stores it.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use co_text::{MOST_NAMED, counted, one_line};

/// Returns some of the paths, and the number of the remaining paths, as a text.
pub fn named(mut paths: Vec<String>) -> String {
    let more = paths.len().saturating_sub(MOST_NAMED);
    paths.truncate(MOST_NAMED);
    let paths = paths.join(", ");
    match more {
        0 => paths,
        more => format!("{paths} and {} more", counted(more, "file")),
    }
}

/// Returns a path as text for a person. Two different paths never look the same: as in git, a path with invisible characters,
/// quotes or backslashes is quoted, and the bytes of these characters become octal numbers.
pub fn shown(path: &Path) -> String {
    let is_plain = |text: &str| !text.contains(['"', '\\']) && one_line(text) == text;
    if let Some(text) = path.to_str().filter(|text| is_plain(text)) {
        return text.to_owned();
    }
    let octal = |bytes: &[u8]| -> String { bytes.iter().map(|it| format!("\\{it:03o}")).collect() };
    let mut quoted = String::from("\"");
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            let text = c.to_string();
            match c {
                '\n' => quoted.push_str("\\n"),
                '\t' => quoted.push_str("\\t"),
                '"' | '\\' => quoted.extend(['\\', c]),
                _ if is_plain(&text) => quoted.push(c),
                _ => quoted.push_str(&octal(text.as_bytes())),
            }
        }
        quoted.push_str(&octal(chunk.invalid()));
    }
    quoted.push('"');
    quoted
}

/// The name of a copy of a file: the hash of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Blob([u8; HASH]);

/// The number of bytes of a hash.
pub(super) const HASH: usize = 32;

/// The error for a text that is not a hash in hexadecimal digits.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not the hash of a copy")]
pub struct NoHash(String);

impl Blob {
    pub(super) fn bytes(&self) -> [u8; HASH] {
        self.0
    }

    /// Returns the name of the copy of these bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl From<[u8; HASH]> for Blob {
    fn from(hash: [u8; HASH]) -> Self {
        Self(hash)
    }
}

impl TryFrom<String> for Blob {
    type Error = NoHash;

    fn try_from(text: String) -> Result<Self, NoHash> {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let byte = |pair: &[u8]| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok();
        let pairs = text.as_bytes().chunks_exact(2);
        let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
        let bytes = bytes.filter(|_| text.len() == 2 * HASH);
        let hash = bytes.and_then(|bytes| bytes.try_into().ok());
        hash.map(Self).ok_or(NoHash(text))
    }
}

impl From<Blob> for String {
    fn from(blob: Blob) -> Self {
        blob.to_string()
    }
}

impl fmt::Display for Blob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.0.iter();
        bytes.try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// A file, a link or a directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    File {
        mode: u32,
        /// The copy of the content; none if the file is too large or cannot be read.
        blob: Option<Blob>,
    },
    Link {
        target: PathBuf,
    },
    Dir {
        mode: u32,
    },
}

/// The change of one path. An entry is `None` if nothing exists at the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path relative to the workspace.
    pub path: PathBuf,
    pub before: Option<Entry>,
    pub after: Option<Entry>,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn no_two_paths_look_the_same() {
        for (path, expected) in [
            (&b"a/b c"[..], "a/b c"),
            ("d\u{e9}j\u{e0}".as_bytes(), "d\u{e9}j\u{e0}"),
            (b"a\nb\tc", r#""a\nb\tc""#),
            (b"\"a\"", r#""\"a\"""#),
            (b"a\\nb", r#""a\\nb""#),
            (b"\x1b[31m", r#""\033[31m""#),
            (b"x\xffy", r#""x\377y""#),
            ("x\u{fffd}y".as_bytes(), "x\u{fffd}y"),
            ("a\u{a0}".as_bytes(), r#""a\302\240""#),
        ] {
            assert_eq!(shown(Path::new(OsStr::from_bytes(path))), expected);
        }
    }
}
