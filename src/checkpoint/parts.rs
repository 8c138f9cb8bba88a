//! The changed files in a form in which a person can accept or reject their parts, such as the changes of a trial.

use super::change::{Change, shown};
use super::round::OpenFile;
use super::store::Store;
use crate::protocol::{self, Excerpt, FileChange, fact_lines};

/// The largest number of bytes of all texts in one review. co sends them to Neovim in parts.
pub const MOST_REVIEW_BYTES: usize = 32 << 20;
/// The number of bytes that co adds to the length of each file's text when it computes the size of a review. So a review has at
/// most a few thousand files, which an editor can list.
const FILE_BYTES: usize = 8 << 10;

/// A changed file and its parts, for a review.
#[derive(Debug, Clone)]
pub struct ChangedFile {
    pub file: OpenFile,
    pub review: FileChange,
}

impl ChangedFile {
    fn of(change: &Change, store: &Store) -> Self {
        let file = OpenFile::of(change, store);
        Self {
            review: file.for_review(store),
            file,
        }
    }

    /// Returns the files of these changes. A file whose lines can be compared has several parts; any other file is one part.
    /// Returns an empty list if all files together are too large for a review.
    pub fn all<'a>(changes: impl Iterator<Item = &'a Change>, store: &Store) -> Vec<Self> {
        let mut room = MOST_REVIEW_BYTES;
        let files = changes.filter(|it| !it.is_directory()).map(|it| {
            let file = Self::of(it, store);
            // The first file that is too much ends the search.
            room = room.checked_sub(FILE_BYTES + file.review.text.as_str().len())?;
            Some(file)
        });
        files.collect::<Option<_>>().unwrap_or_default()
    }

    /// Returns these changes in the form in which a question shows them. `files` are the same changes for a review; empty if
    /// there are too many.
    pub fn for_question(changes: &[&Change], files: &[Self], store: &Store) -> protocol::Change {
        let mut excerpt = Excerpt::new(changes.iter().filter(|it| !it.is_directory()).count());
        let mut known = files.iter();
        let mut words = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            let path = shown(&change.path);
            if change.is_directory() {
                if let Some(word) = change.directory_word(changes.get(at + 1).copied()) {
                    words.push(Some(format!("{word} directory")));
                    excerpt.add_heading(&format!("{word} directory {path}"));
                }
                continue;
            }
            let file = match known.next() {
                Some(file) => file.review.clone(),
                None if excerpt.has_room() => Self::of(change, store).review,
                None => {
                    let summary = change.summary(store);
                    excerpt.add_path(&path, &summary.counts);
                    words.push(summary.without_lines);
                    continue;
                }
            };
            words.push(file.without_lines.clone());
            excerpt.add_path(&path, &file.counts());
            excerpt.add_lines(&file.text);
        }
        let facts = fact_lines(changes.iter().flat_map(|it| it.facts(store)));
        let files = files.iter().map(|it| it.review.clone()).collect();
        protocol::Change::new(facts, &excerpt, files).with_words(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Entry;

    #[test]
    fn a_review_has_all_files_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), 1 << 20).unwrap();
        let file = Entry::File {
            mode: 0o644,
            blob: Some(store.put(b"text\n").unwrap()),
        };
        let change = |number: usize| Change {
            path: format!("file{number}").into(),
            before: None,
            after: Some(file.clone()),
        };
        for (count, expected) in [(1_000, 1_000), (10_000, 0)] {
            let changes: Vec<_> = (0..count).map(change).collect();
            assert_eq!(ChangedFile::all(changes.iter(), &store).len(), expected);
        }
    }

    #[test]
    fn a_change_without_lines_is_one_part() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), 1 << 20).unwrap();
        let file = |bytes: &[u8], mode| {
            let blob = Some(store.put(bytes).unwrap());
            Some(Entry::File { mode, blob })
        };
        let link = Some(Entry::Link {
            target: "/etc/passwd".into(),
        });
        for (before, after, expected) in [
            (
                file(b"one\n", 0o644),
                link,
                "@\n!the file becomes a link to /etc/passwd, outside the workspace\n-one\n+link to /etc/passwd\n",
            ),
            (
                file(b"one\n", 0o644),
                file(b"one\n", 0o755),
                "@\n!mode 644 => 755\n one\n",
            ),
            (
                file(b"\0\n", 0o644),
                file(b"\0", 0o644),
                "@\n!no text: 2 bytes => 1 byte\n",
            ),
            (None, file(b"", 0o644), "@\n!a new empty file\n"),
        ] {
            let path = "a".into();
            let changes = [Change {
                path,
                before,
                after,
            }];
            let files = ChangedFile::all(changes.iter(), &store);
            assert_eq!(files[0].review.text.as_str(), expected);
            assert_eq!(files[0].review.parts, 1);
        }
    }
}
