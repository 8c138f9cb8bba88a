//! Plans to take changes back, or to make the changes of a trial. Each change is merged into the current file, so that later
//! changes stay.

use std::collections::BTreeMap;
use std::io;
use std::mem::take;
use std::path::{Path, PathBuf};

use super::change::{Change, Entry};
use super::snapshot::entry_at;
use super::store::Store;
use crate::buffers::OpenBuffers;
use crate::protocol::{BufferChange, BufferText};
use crate::workspace::edits::disk;
use crate::workspace::edits::source::buffer_change;
use co_edit::{FileText, RebaseResult, apply_hunks, hunks, rebase};
use co_exec::beneath::{Dir, Node};

/// The reason why co does not change a file.
const CHANGED: &str = "it was changed later, in the same place";

/// Planned changes that take earlier changes back, or that make the changes of a trial. None of them has been made.
#[derive(Debug, Default, PartialEq)]
pub struct Undo {
    /// The planned changes of files, at most one for each path.
    pub changes: Vec<Change>,
    /// The planned changes of buffers with unsaved text. `Checkpoints::make` leaves them out.
    pub buffers: Vec<(BufferChange, Change)>,
    /// The files that stay as they are, each with the reason.
    pub kept: Vec<(PathBuf, String)>,
    /// True if a file stays because it has several hard links.
    pub keeps_linked: bool,
}

/// The result of making the changes of an [`Undo`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UndoResult {
    pub changes: Vec<Change>,
    /// The files that could not be changed, each with the reason.
    pub failed: Vec<(PathBuf, String)>,
}

impl Undo {
    /// Returns the plan that takes back `changes` in the workspace `root`. `changes` are in the order in which they were made,
    /// and `open` contains the buffers of the files.
    pub fn of<'a>(
        changes: impl DoubleEndedIterator<Item = &'a Change>,
        root: &Path,
        store: &Store,
        open: &OpenBuffers,
    ) -> Self {
        let mut by_path: BTreeMap<&Path, Vec<&Change>> = BTreeMap::new();
        for change in changes.rev() {
            by_path.entry(&change.path).or_default().push(change);
        }
        let mut undo = Self::default();
        let dir = Dir::open(root).map_err(|error| error.to_string());
        for (path, changes) in by_path {
            let buffer = open.get(&root.join(path)).filter(|buffer| buffer.modified);
            let result = match buffer {
                Some(buffer) => {
                    taken_back_in(buffer, &changes, store).map(|found| undo.buffers.extend(found))
                }
                None => (dir.as_ref().map_err(String::clone))
                    .and_then(|dir| taken_back(path, &changes, dir, store))
                    .map(|found| undo.changes.extend(found)),
            };
            if let Err(why) = result {
                undo.kept.push((path.to_owned(), why));
            }
        }
        if let Ok(dir) = &dir {
            undo.keep_linked(dir);
        }
        undo
    }

    /// Leaves out the changes that would replace a file with several hard links.
    fn keep_linked(&mut self, root: &Dir) {
        let node = |change: &Change| root.node(&change.path).ok().flatten();
        let inode = |node: Node| node.stamp.inode();
        let goes = |change: &&Change| matches!(change.after, None | Some(Entry::Dir { .. }));
        let gone = self.changes.iter().filter(goes).filter_map(node);
        // They go before a file is replaced.
        let gone: Vec<_> = gone.filter(Node::is_linked).map(inode).collect();
        for change in take(&mut self.changes) {
            let replaced = node(&change).filter(|_| change.is_of_content());
            let checked = replaced.map_or(Ok(()), |mut node| {
                let gone = gone.iter().filter(|it| **it == inode(node));
                node.names = node.names.saturating_sub(gone.count() as u64);
                disk::check_links(&node)
            });
            match checked {
                Ok(()) => self.changes.push(change),
                Err(why) => {
                    self.kept.push((change.path, why.to_string()));
                    self.keeps_linked = true;
                }
            }
        }
        self.kept.sort();
    }

    /// Returns the plan that makes `changes` in the workspace `root`. The changes have not been made in the workspace yet.
    /// [`Self::of`] explains the other arguments.
    pub fn making(changes: &[Change], root: &Path, store: &Store, open: &OpenBuffers) -> Self {
        let inverse: Vec<_> = changes.iter().map(Change::inverse).collect();
        Self::of(inverse.iter(), root, store, open)
    }

    /// Returns all changes, sorted by path.
    pub fn all(&self) -> Vec<&Change> {
        let buffers = self.buffers.iter().map(|(_, change)| change);
        let mut all: Vec<_> = self.changes.iter().chain(buffers).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }
}

impl Change {
    /// Returns the change that takes this change back.
    pub fn inverse(&self) -> Self {
        Self {
            path: self.path.clone(),
            before: self.after.clone(),
            after: self.before.clone(),
        }
    }

    /// Returns true if the change replaces the content of a file.
    fn is_of_content(&self) -> bool {
        let is_file = |it: &Entry| matches!(it, Entry::File { .. });
        let both = [&self.before, &self.after].map(|it| it.as_ref().is_some_and(is_file));
        both == [true, true] && !has_content_of(&self.before, &self.after)
    }

    /// Returns true if the change affects only a directory.
    pub fn is_directory(&self) -> bool {
        let is_file = |it: &Entry| !matches!(it, Entry::Dir { .. });
        !self.before.iter().chain(&self.after).any(is_file)
    }
}

/// Returns the change of a file that takes back `changes` of one path. `changes` begins with the last change. Returns `None` if
/// the path already has its earlier state.
fn taken_back(
    path: &Path,
    changes: &[&Change],
    root: &Dir,
    store: &Store,
) -> Result<Option<Change>, String> {
    let before = entry_at(root, path, store).map_err(|error| error.to_string())?;
    let mut after = before.clone();
    for change in changes {
        after = merged(change, after, store)?;
    }
    let change = Change {
        path: path.to_owned(),
        before,
        after,
    };
    Ok((change.before != change.after).then_some(change))
}

/// Returns the change of a buffer that takes back `changes` of its file. `changes` begins with the last change. Returns `None` if
/// the buffer already has its earlier text.
fn taken_back_in(
    buffer: &BufferText,
    changes: &[&Change],
    store: &Store,
) -> Result<Option<(BufferChange, Change)>, String> {
    if buffer.problem.is_some() {
        return Err("its buffer has unsaved changes and cannot be changed".to_owned());
    }
    let text = buffer.file_text().map_err(|error| error.to_string())?;
    let decoded = |entry: &Option<Entry>| match entry {
        Some(entry @ Entry::File { .. }) => {
            let bytes = bytes_of(entry, store).map_err(|error| error.to_string())?;
            text.decode_like(&bytes).map_err(|error| error.to_string())
        }
        _ => Err("its buffer has unsaved changes".to_owned()),
    };
    let mut new = text.clone();
    for change in changes {
        let versions = [new, decoded(&change.after)?, decoded(&change.before)?];
        let [now, base, target] = FileText::alike(versions);
        new = now;
        let merged = merged_text(base.as_str(), target.as_str(), new.as_str());
        new.apply_hunks(&hunks(new.as_str(), &merged.ok_or(CHANGED)?));
    }
    let [text, new] = FileText::alike([text, new]);
    let [last, ..] = changes else {
        return Ok(None);
    };
    if new.as_str() == text.as_str() {
        return Ok(None);
    }
    let entry = |text: &FileText| match &last.after {
        Some(Entry::File {
            mode,
            blob: Some(blob),
        }) => {
            let blob = store
                .put_like(blob, text)
                .map_err(|error| error.to_string())?;
            let (mode, blob) = (*mode, Some(blob));
            Ok(Some(Entry::File { mode, blob }))
        }
        _ => Err("co has no copy of it".to_owned()),
    };
    let change = Change {
        path: last.path.clone(),
        before: entry(&text)?,
        after: entry(&new)?,
    };
    let in_buffer = buffer_change(Path::new(&buffer.file), buffer.tick, &text, &new);
    let in_buffer = in_buffer.map_err(|error| error.to_string())?;
    Ok(Some((in_buffer, change)))
}

/// Returns the entry `now` without the change. Later changes in `now` stay.
fn merged(change: &Change, now: Option<Entry>, store: &Store) -> Result<Option<Entry>, String> {
    let (base, target) = (&change.after, &change.before);
    for entry in [base, target, &now] {
        if matches!(entry, Some(Entry::File { blob: None, .. })) {
            return Err("co has no copy of it: it is too large, or cannot be read".to_owned());
        }
    }
    // What was made goes, whatever its mode is now.
    if now == *base || target.is_none() && has_content_of(&now, base) {
        return Ok(target.clone());
    }
    if now == *target {
        return Ok(now);
    }
    let (
        Some(Entry::File { mode: old_mode, .. }),
        Some(Entry::File { mode: new_mode, .. }),
        Some(Entry::File { mode, .. }),
    ) = (base, target, &now)
    else {
        return Err(CHANGED.to_owned());
    };
    let mode = if mode == old_mode { *new_mode } else { *mode };
    let read = |entry: &Option<Entry>| match entry {
        Some(Entry::File {
            blob: Some(blob), ..
        }) => store.get(blob).map_err(|error| error.to_string()),
        _ => Ok(Vec::new()),
    };
    let bytes = merged_bytes(&read(base)?, &read(target)?, &read(&now)?);
    let bytes = bytes.ok_or_else(|| CHANGED.to_owned())?;
    let blob = store.put(&bytes).map_err(|error| error.to_string())?;
    Ok(Some(Entry::File {
        mode,
        blob: Some(blob),
    }))
}

/// Returns true if two entries are equal apart from their modes.
pub(super) fn has_content_of(one: &Option<Entry>, other: &Option<Entry>) -> bool {
    match (one, other) {
        (Some(Entry::File { blob: one, .. }), Some(Entry::File { blob: other, .. })) => {
            one == other
        }
        (one, other) => matches!(
            (one, other),
            (Some(Entry::Dir { .. }), Some(Entry::Dir { .. }))
        ),
    }
}

/// Computes the difference between `base` and `target`, and applies it to `now`. `now` is another version of `base`. Returns
/// `None` if the changes overlap.
fn merged_bytes(base: &[u8], target: &[u8], now: &[u8]) -> Option<Vec<u8>> {
    if base == target {
        return Some(now.to_vec());
    }
    if [base, target, now].iter().any(|it| it.contains(&0)) {
        return merged_utf16(base, target, now);
    }
    // Each byte is a character, so that no encoding and no line break is lost.
    let text = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect::<String>();
    let merged = merged_text(&text(base), &text(target), &text(now))?;
    merged.chars().map(|it| u8::try_from(it).ok()).collect()
}

/// Works as [`merged_bytes`] does, for UTF-16. Returns `None` if one of the texts is binary.
fn merged_utf16(base: &[u8], target: &[u8], now: &[u8]) -> Option<Vec<u8>> {
    let (base, target) = (FileText::decode(base).ok()?, FileText::decode(target).ok()?);
    let mut file = FileText::decode(now).ok()?;
    let merged = merged_text(base.as_str(), target.as_str(), file.as_str())?;
    file.apply_hunks(&hunks(file.as_str(), &merged));
    file.encode().ok()
}

fn merged_text(base: &str, target: &str, now: &str) -> Option<String> {
    if now == target {
        return Some(now.to_owned());
    }
    let moved = rebase(base, &hunks(base, target), now).into_iter();
    let moved: Option<Vec<_>> = moved
        .map(|it| match it {
            RebaseResult::Moved(hunk) => Some(hunk),
            RebaseResult::Stale(_) => None,
        })
        .collect();
    Some(apply_hunks(now, &moved?))
}

/// Returns the mode of a file or a directory.
pub(super) fn mode(entry: &Option<Entry>) -> Option<u32> {
    match entry {
        Some(Entry::File { mode, .. } | Entry::Dir { mode }) => Some(*mode),
        Some(Entry::Link { .. }) | None => None,
    }
}

/// Returns the bytes of a file; empty for any other entry.
pub(super) fn bytes_of(entry: &Entry, store: &Store) -> io::Result<Vec<u8>> {
    match entry {
        Entry::File {
            blob: Some(blob), ..
        } => store.get(blob),
        Entry::File { blob: None, .. } => Err(io::Error::other("co has no copy of it")),
        Entry::Link { .. } | Entry::Dir { .. } => Ok(Vec::new()),
    }
}

/// Returns the text of a file; the empty text if there is no file. Returns `None` if the content is not text.
pub(super) fn decode(entry: &Option<Entry>, store: &Store) -> Option<FileText> {
    let bytes = match entry {
        Some(entry @ Entry::File { .. }) => bytes_of(entry, store).ok()?,
        None => Vec::new(),
        Some(Entry::Link { .. } | Entry::Dir { .. }) => return None,
    };
    FileText::decode(&bytes).ok()
}

#[cfg(test)]
mod tests;
