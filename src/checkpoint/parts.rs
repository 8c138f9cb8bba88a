//! The parts of a file that a chat changed, so that some of them can be taken back.

use std::path::Path;

use super::change::{Change, Entry, shown};
use super::store::Store;
use super::undo::bytes_of;
use crate::protocol::{self, Excerpt, FileChange, ReviewText, fact_lines};
use co_edit::{FileText, Hunk, apply_hunks, hunks, marked};

/// The most bytes of the texts of one review. Neovim gets them in parts.
pub const MOST_REVIEW_BYTES: usize = 32 << 20;
/// The bytes that a file takes in a review besides its text. So a review has some thousands of files at most, which an editor
/// can list.
const FILE_BYTES: usize = 8 << 10;

/// A file with all that was changed in it.
#[derive(Debug, Clone)]
pub struct ChangedFile {
    /// The change that takes all of it back.
    undo: Change,
    /// The text without the changes; empty if they have no lines that can be taken back one by one.
    text: String,
    /// The changes of that text, which make the text that the file has now. If it cannot be changed by lines, there is one part
    /// without lines.
    pub parts: Vec<Hunk>,
    /// The text for a review.
    review: ReviewText,
    added: usize,
    removed: usize,
    /// The change in words, if no line differs.
    without_lines: Option<String>,
    /// It has no lines that can be taken back without the others.
    is_whole: bool,
}

impl ChangedFile {
    /// Returns the parts of a file. `undo` takes the change back. None if it has no lines to compare.
    pub fn of(undo: &Change, store: &Store) -> Option<Self> {
        let (now, text) = texts(undo, store)?;
        let (now, text) = (now.as_str(), text.as_str());
        let parts = hunks(text, now);
        let facts = undo.inverse().facts(store);
        (!parts.is_empty()).then(|| Self {
            undo: undo.clone(),
            text: text.to_owned(),
            review: ReviewText::new(&facts, &marked(text, &parts)),
            added: parts.iter().map(Hunk::added).sum(),
            removed: parts.iter().map(Hunk::removed).sum(),
            parts,
            without_lines: None,
            is_whole: false,
        })
    }

    /// Returns the files of some changes: each in parts if it has lines to compare, else as one part. None if all together are
    /// too much for a review.
    pub fn all<'a>(changes: impl Iterator<Item = &'a Change>, store: &Store) -> Vec<Self> {
        let mut room = MOST_REVIEW_BYTES;
        let files = changes.filter(|it| !it.is_directory()).map(|it| {
            let file = Self::of_change(it, store);
            // The first file that is too much ends the search.
            room = room.checked_sub(file.size())?;
            Some(file)
        });
        files.collect::<Option<_>>().unwrap_or_default()
    }

    /// Returns some changes for a question. `files` are the files of the changes for a review; empty if there are too many.
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
                Some(file) => file.for_review(),
                None if excerpt.has_room() => Self::of_change(change, store).for_review(),
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
        let files = files.iter().map(Self::for_review).collect();
        protocol::Change::new(facts, &excerpt, files).with_words(words)
    }

    fn of_change(change: &Change, store: &Store) -> Self {
        let undo = change.inverse();
        Self::of(&undo, store).unwrap_or_else(|| Self::whole(&undo, store))
    }

    fn whole(undo: &Change, store: &Store) -> Self {
        let change = undo.inverse();
        let lines = change.changed_lines(store);
        let (old, hunks) = lines.map_or_else(Default::default, |it| (it.old, it.hunks));
        // One line begins the only part, above all of the text.
        let marked = marked(&old, &hunks);
        let mut marked: String = (marked.split_inclusive('\n').filter(|it| *it != "@\n")).collect();
        let facts = change.facts(store);
        if marked.is_empty() && facts.is_empty() {
            marked = "!a new empty file\n".to_owned();
        }
        let added = hunks.iter().map(Hunk::added).sum();
        let removed = hunks.iter().map(Hunk::removed).sum();
        Self {
            undo: undo.clone(),
            text: String::new(),
            parts: vec![Hunk {
                at: 0..0,
                text: String::new(),
            }],
            review: ReviewText::new(&facts, &format!("@\n{marked}")),
            added,
            removed,
            without_lines: (added + removed == 0).then(|| change.in_words(store)),
            is_whole: true,
        }
    }

    /// Returns the path in the workspace.
    pub fn path(&self) -> &Path {
        &self.undo.path
    }

    /// Returns the number of bytes that it takes in a review.
    pub fn size(&self) -> usize {
        FILE_BYTES + self.review.as_str().len()
    }

    /// Returns the change with its parts for a review.
    pub fn for_review(&self) -> FileChange {
        FileChange {
            path: shown(self.path()),
            added: self.added,
            removed: self.removed,
            without_lines: self.without_lines.clone(),
            parts: self.parts.len(),
            whole: self.is_whole,
            text: self.review.clone(),
            calls: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Returns the change that was made by all parts but those that stay. [`super::Undo`] takes it back.
    ///
    /// # Errors
    /// The file cannot have this text.
    pub fn without(&self, stay: &[Hunk], store: &Store) -> Result<Change, String> {
        let Change {
            path,
            before: now,
            after: undone,
        } = self.undo.clone();
        let before = match stay {
            [] => undone,
            stay => {
                let like = now.as_ref().or(undone.as_ref());
                let (now_text, undone_text) = texts(&self.undo, store).ok_or("it is no text")?;
                let mut file = match now {
                    Some(_) => now_text,
                    None => undone_text,
                };
                let text = apply_hunks(&self.text, stay);
                file.apply_hunks(&hunks(file.as_str(), &text));
                let bytes = file.encode().map_err(|error| error.to_string())?;
                let blob = store.put(&bytes).map_err(|error| error.to_string())?;
                let mode = match like {
                    Some(Entry::File { mode, .. }) => *mode,
                    _ => 0o644,
                };
                Some(Entry::File {
                    mode,
                    blob: Some(blob),
                })
            }
        };
        Ok(Change {
            path,
            before,
            after: now,
        })
    }
}

/// Returns the text that a file has now, and the one that it gets; none if one is no text.
fn texts(undo: &Change, store: &Store) -> Option<(FileText, FileText)> {
    let (now, text) = (decode(&undo.before, store)?, decode(&undo.after, store)?);
    Some(FileText::alike([now, text]).into())
}

/// Returns the text of a file, which is empty if there is none; none if it is no text.
pub(super) fn decode(entry: &Option<Entry>, store: &Store) -> Option<FileText> {
    let bytes = match entry {
        Some(entry @ Entry::File { .. }) => bytes_of(entry, store).ok()?,
        None => Vec::new(),
        Some(Entry::Link { .. } | Entry::Dir { .. }) => return None,
    };
    FileText::decode(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(files[0].review.as_str(), expected);
            assert_eq!(files[0].parts.len(), 1);
        }
    }
}
