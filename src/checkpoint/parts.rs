//! The parts of a file that a chat changed, so that some of them can be taken back.

use std::ops::Range;
use std::path::Path;

use super::change::{Change, Entry};
use super::log::{By, Record};
use super::store::Store;
use super::undo::bytes_of;
use crate::protocol;
use crate::tool::edits::printable_hunk;
use co_edit::{FileText, Hunk, RebaseResult, apply_hunks, hunks, rebase};

/// The bytes that a file takes in a review besides its texts. So a review has some thousands of files at most, which an editor
/// can show.
const FILE_BYTES: usize = 1 << 10;

/// A file with all that a chat changed in it.
#[derive(Debug)]
pub struct ChangedFile {
    /// Takes all of it back.
    undo: Change,
    /// The text without the changes.
    pub text: String,
    /// The changes of that text, which make the text that the file has now.
    pub parts: Vec<Part>,
}

/// A part of a change.
#[derive(Debug)]
pub struct Part {
    /// The lines that it adds and removes in the text without the changes.
    pub hunk: Hunk,
    /// Its first line in the text that the file has now, from 1.
    pub line: usize,
    /// The indexes of the records of the calls that made it.
    pub records: Vec<usize>,
}

impl ChangedFile {
    /// Returns the parts of a file. `undo` takes back what `records` say. None if it has no lines to compare.
    pub fn of(undo: &Change, records: &[Record], store: &Store) -> Option<Self> {
        let (now, text) = texts(undo, store)?;
        let (now, text) = (now.as_str(), text.as_str());
        let touched = touched(&undo.path, records, now, store);
        let mut moved: isize = 0;
        let mut parts = Vec::new();
        for hunk in hunks(text, now) {
            let start = hunk.at.start.saturating_add_signed(moved);
            let lines = start..start + hunk.added();
            moved += hunk.added().cast_signed() - hunk.removed().cast_signed();
            let known = |it: &&TouchedLines| it.lines.as_ref().is_some_and(|it| meet(it, &lines));
            let unknown = |it: &&TouchedLines| it.lines.is_none();
            let mut by: Vec<_> = touched.iter().filter(known).map(|it| it.record).collect();
            if by.is_empty() {
                by.extend(touched.iter().filter(unknown).map(|it| it.record));
            }
            by.dedup();
            parts.push(Part {
                hunk,
                line: start + 1,
                records: by,
            });
        }
        (!parts.is_empty()).then(|| Self {
            undo: undo.clone(),
            text: text.to_owned(),
            parts,
        })
    }

    /// Returns the path in the workspace.
    pub fn path(&self) -> &Path {
        &self.undo.path
    }

    /// Returns the number of bytes that it takes in a review.
    pub fn size(&self) -> usize {
        let added = self.parts.iter().map(|it| it.hunk.text.len());
        FILE_BYTES + self.text.len() + added.sum::<usize>()
    }

    /// Returns the change with its parts for a review.
    pub fn for_review(&self) -> protocol::Change {
        let hunks = || self.parts.iter().map(|part| &part.hunk);
        protocol::Change {
            path: co_policy::printable(&self.path().display().to_string()),
            added: hunks().map(Hunk::added).sum(),
            removed: hunks().map(Hunk::removed).sum(),
            text: Some(self.text.clone()),
            hunks: hunks().map(printable_hunk).collect(),
            ..protocol::Change::default()
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

/// Lines of the present text that a call changed; none if they were changed again.
struct TouchedLines {
    record: usize,
    lines: Option<Range<usize>>,
}

fn touched(path: &Path, records: &[Record], now: &str, store: &Store) -> Vec<TouchedLines> {
    let mut touched = Vec::new();
    for (record, it) in records.iter().enumerate() {
        let of_file = it.changes.iter().filter(|change| change.path == path);
        for change in of_file.filter(|_| matches!(it.by, By::Call { .. })) {
            let (Some(old), Some(new)) =
                (decode(&change.before, store), decode(&change.after, store))
            else {
                continue;
            };
            let back = hunks(new.as_str(), old.as_str());
            let moved = rebase(new.as_str(), &back, now).into_iter();
            touched.extend(moved.map(|it| TouchedLines {
                record,
                lines: match it {
                    RebaseResult::Moved(hunk) => Some(hunk.at),
                    RebaseResult::Stale(_) => None,
                },
            }));
        }
    }
    touched
}

fn meet(one: &Range<usize>, other: &Range<usize>) -> bool {
    let touch = one.start <= other.end && other.start <= one.end;
    let overlap = one.start < other.end && other.start < one.end;
    overlap || touch && (one.is_empty() || other.is_empty())
}

/// Returns the text that a file has now, and the one that it gets; none if one is no text.
fn texts(undo: &Change, store: &Store) -> Option<(FileText, FileText)> {
    let (now, text) = (decode(&undo.before, store)?, decode(&undo.after, store)?);
    Some(FileText::alike([now, text]).into())
}

/// Returns the text of a file, which is empty if there is none; none if it is no text.
fn decode(entry: &Option<Entry>, store: &Store) -> Option<FileText> {
    let bytes = match entry {
        Some(entry @ Entry::File { .. }) => bytes_of(entry, store).ok()?,
        None => Vec::new(),
        Some(Entry::Link { .. } | Entry::Dir { .. }) => return None,
    };
    FileText::decode(&bytes).ok()
}
