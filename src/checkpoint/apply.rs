//! Makes the changes of an [`super::undo::Undo`] on the disk. At every moment, each file has either its old or its new content.

use std::io;
use std::path::Path;

use super::change::{Change, Entry};
use super::snapshot::entry_at;
use super::store::Store;
use super::undo::{UndoResult, bytes_of, has_content_of};
use crate::workspace::edits::disk::{self, WriteOptions};
use co_exec::beneath::{Dir, Kind};

const CHANGED: &str = "it has changed meanwhile";

/// The permission bits that the owner of a directory needs to change its entries.
const OWNER: u32 = 0o700;

/// Makes the changes, which must be sorted by path. Leaves a change out if its file no longer has the state before the change.
pub(super) fn apply(
    changes: Vec<Change>,
    root: &Dir,
    store: &Store,
    options: WriteOptions<'_>,
) -> UndoResult {
    let mut done = UndoResult::default();
    let closed = open_directories(&changes, root, store);
    // Removed from the inside, then made from the outside.
    let mut made = Vec::new();
    for change in changes.into_iter().rev() {
        match remove(&change, root, store) {
            Ok(true) => made.push(change),
            Ok(false) => {}
            Err(error) => done.failed.push((change.path, error.to_string())),
        }
    }
    for change in made.into_iter().rev() {
        match make(&change, root, store, options) {
            Ok(()) => done.changes.push(change),
            Err(error) => done.failed.push((change.path, error.to_string())),
        }
    }
    // A directory that nobody may write gets its mode last.
    for change in done.changes.iter().rev() {
        if let Some(Entry::Dir { mode }) = &change.after
            && let Err(error) = root.set_mode(&change.path, *mode)
        {
            done.failed.push((change.path.clone(), error.to_string()));
        }
    }
    for change in closed.iter().rev() {
        if let Some(Entry::Dir { mode }) = &change.before
            && !done.changes.contains(change)
            && is_dir(root, &change.path)
            && let Err(error) = root.set_mode(&change.path, *mode)
        {
            done.failed.push((change.path.clone(), error.to_string()));
        }
    }
    done
}

/// Makes the directories in `changes` writable, so that their entries can be changed. Returns the changes of the directories that
/// were not writable.
fn open_directories(changes: &[Change], root: &Dir, store: &Store) -> Vec<Change> {
    let mut closed = Vec::new();
    for change in changes {
        if let Some(Entry::Dir { mode }) = change.before
            && mode & OWNER != OWNER
            && entry_at(root, &change.path, store).is_ok_and(|now| now == change.before)
            // If this fails, the changes in it fail.
            && root.set_mode(&change.path, mode | OWNER).is_ok()
        {
            closed.push(change.clone());
        }
    }
    closed
}

/// Removes the old file of a change that deletes the file or puts another kind of file in its place. Returns false if the change
/// removes a directory, but the directory stays because it contains other files.
fn remove(change: &Change, root: &Dir, store: &Store) -> io::Result<bool> {
    let path = change.path.as_path();
    let now = entry_at(root, &change.path, store)?;
    let is_dir = matches!(now, Some(Entry::Dir { .. }));
    if now != change.before && !(is_dir && has_content_of(&now, &change.before)) {
        return Err(io::Error::other(CHANGED));
    }
    match (&change.before, &change.after) {
        // One replaces the other at once.
        (
            Some(Entry::File { .. } | Entry::Link { .. }),
            Some(Entry::File { .. } | Entry::Link { .. }),
        )
        | (Some(Entry::Dir { .. }), Some(Entry::Dir { .. }))
        | (None, _) => {}
        (Some(before @ Entry::File { .. }), _) => {
            disk::remove(root, path, &bytes_of(before, store)?)?
        }
        (Some(Entry::Link { .. }), _) => root.remove_file(path)?,
        (Some(Entry::Dir { .. }), after) => match root.remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && after.is_none() => {
                return Ok(false);
            }
            removed => removed?,
        },
    }
    Ok(true)
}

/// Writes the new state of a change. Does not set the mode of a directory.
fn make(change: &Change, root: &Dir, store: &Store, options: WriteOptions<'_>) -> io::Result<()> {
    let path = change.path.as_path();
    let options = match change.after {
        // A read-only file is replaced too: the person said yes to that.
        Some(Entry::File { mode, .. }) => WriteOptions {
            mode: Some(mode),
            ..options
        },
        _ => options,
    };
    match (&change.before, &change.after) {
        (Some(Entry::Dir { .. }), Some(Entry::Dir { .. })) | (_, None) => Ok(()),
        (_, Some(Entry::Dir { .. })) => {
            let (dir, name) = disk::parent_of_new(root, path, options)?;
            dir.make_dirs(name).map(drop)
        }
        (Some(Entry::File { .. } | Entry::Link { .. }), Some(Entry::Link { target })) => {
            check_same(change, root, store)?;
            disk::replace_by_link(root, path, target, options)
        }
        (None | Some(Entry::Dir { .. }), Some(Entry::Link { target })) => {
            let (dir, name) = disk::parent_of_new(root, path, options)?;
            dir.make_link(target, name)
        }
        (Some(before @ Entry::File { .. }), Some(after @ Entry::File { mode, .. })) => {
            let (old, new) = (bytes_of(before, store)?, bytes_of(after, store)?);
            match old == new {
                true => root.set_mode(path, *mode),
                false => disk::replace(root, path, &old, &new, options),
            }
        }
        (Some(Entry::Link { .. }), Some(after @ Entry::File { .. })) => {
            let new = bytes_of(after, store)?;
            check_same(change, root, store)?;
            disk::replace_link(root, path, &new, options)
        }
        (None | Some(Entry::Dir { .. }), Some(after @ Entry::File { .. })) => {
            disk::create(root, path, &bytes_of(after, store)?, options)
        }
    }
}

/// Checks that a file or link still has the state before a change.
fn check_same(change: &Change, root: &Dir, store: &Store) -> io::Result<()> {
    match entry_at(root, &change.path, store)? == change.before {
        true => Ok(()),
        false => Err(io::Error::other(CHANGED)),
    }
}

fn is_dir(root: &Dir, path: &Path) -> bool {
    matches!(root.node(path), Ok(Some(node)) if node.kind == Kind::Dir)
}
