//! Reads the lines of files at the places that language servers return.

use std::path::{Path, PathBuf};

use super::attached;
use crate::buffers::OpenBuffers;
use crate::protocol::ServerPlace;

/// The largest number of bytes of a file that are read.
const LONGEST: usize = 4 << 20;
/// The largest number of bytes of a line in the result.
const LONGEST_LINE: usize = 500;

/// Reads lines of files: from the buffer of the file, or from the disk if it has no buffer. Consecutive places in one file need
/// only one read.
#[derive(Default)]
pub struct PlaceReader {
    open: OpenBuffers,
    file: PathBuf,
    text: String,
    /// The byte offsets at which the lines of the text start.
    starts: Vec<usize>,
}

impl PlaceReader {
    pub fn new(open: OpenBuffers) -> Self {
        Self {
            open,
            ..Self::default()
        }
    }

    /// Returns `count` lines of a file from a row on. Rows count from 0. The result is empty if the file has no such row or
    /// cannot be read. `real` is a canonical path. Blocks on files. Call it from `spawn_blocking`.
    pub fn lines(&mut self, real: &Path, row: usize, count: usize) -> impl Iterator<Item = &str> {
        if self.file != real {
            real.clone_into(&mut self.file);
            let buffer = self.open.get(real).filter(|it| it.problem.is_none());
            self.text = match buffer.map(|it| it.file_text()) {
                Some(text) => text.map_or_else(|_| String::new(), |it| it.as_str().to_owned()),
                None => attached::text_of(real, LONGEST).unwrap_or_default(),
            };
            let breaks = memchr::memchr_iter(b'\n', self.text.as_bytes());
            self.starts = std::iter::once(0).chain(breaks.map(|at| at + 1)).collect();
        }
        let from = self.starts.get(row).copied().unwrap_or(self.text.len());
        let lines = self.text[from..].lines();
        lines.map(|line| line.trim_end_matches('\r')).take(count)
    }
}

/// Returns the start of a long line. It ends at the end of a word, because the redactor would not recognize half of a secret.
pub fn bounded(line: &str) -> String {
    let start = co_text::start_of(line, LONGEST_LINE);
    if start == line {
        return line.to_owned();
    }
    let words = start.rsplit_once(char::is_whitespace);
    format!("{} …", words.map_or("", |(words, _)| words))
}

/// Returns the canonical paths of places. Leaves out places whose file does not exist. Blocks on files. Call it from
/// `spawn_blocking`.
pub fn real_paths(places: &[ServerPlace]) -> Vec<PathBuf> {
    let real = |place: &ServerPlace| attached::real_path(place.path());
    places.iter().map(real).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_in_any_order_and_through_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let file = dir.join("f");
        std::fs::write(&file, "one\r\ntwo\n\nfour").unwrap();
        std::os::unix::fs::symlink(&file, dir.join("link")).unwrap();
        let mut reader = PlaceReader::default();
        for (name, row, count, expected) in [
            ("f", 1, 2, &["two", ""][..]),
            ("f", 3, 9, &["four"]),
            ("f", 0, 1, &["one"]),
            ("f", 4, 5, &[]),
            ("link", 0, 1, &[]),
            ("gone", 0, 1, &[]),
        ] {
            let lines: Vec<_> = reader.lines(&dir.join(name), row, count).collect();
            assert_eq!(lines, expected, "{name} {row}");
        }
    }
}
