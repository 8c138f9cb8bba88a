//! The journal of changes that co is about to make. If co is killed meanwhile, the next start makes the remaining changes. If co
//! was killed before the first change, the next start drops all changes.
//!
//! Each set of changes has a file with its record. The process that makes the changes holds a lock on this file.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::apply::apply;
use super::change::{Change, Entry, shown};
use super::log::{ChangeCause, Record, keeps};
use super::snapshot::entry_at;
use super::store::Store;
use crate::paths::{self, private_dir};
use crate::workspace::edits::disk::UNFINISHED;
use co_exec::beneath::Dir;
use co_text::{counted, one_line};

/// The extension of a journal file while it is written.
const NEW: &str = "new";
/// The extension of a journal file that is complete.
const WHOLE: &str = "jsonl";

/// The reason why a change of `.git` is not finished.
const OF_OLDER: &str = "an older version of co was changing it; look at `git status`";

/// The journal of a set of changes that this process makes.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    _locked: File,
}

/// The result of finishing the changes that a killed process was making.
#[derive(Debug, PartialEq)]
pub struct InterruptedKeep {
    pub workspace: PathBuf,
    pub by: ChangeCause,
    /// The number of files that co has changed now.
    pub finished: usize,
    /// True if no file had been changed yet, so that all changes were dropped.
    pub dropped: bool,
    /// The files that co did not change, each with the reason.
    pub failed: Vec<(PathBuf, String)>,
}

impl fmt::Display for InterruptedKeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workspace = shown(&self.workspace);
        let changes = match &self.by {
            ChangeCause::Call { what, .. } => format!("kept what `{}` changed", one_line(what)),
            ChangeCause::Undo | ChangeCause::TakenBack => "took changes back".to_owned(),
            ChangeCause::Accepted { .. } => "accepted changes".to_owned(),
            ChangeCause::Redo => "brought changes back".to_owned(),
        };
        if self.dropped {
            write!(
                f,
                "co was killed before it {changes} in {workspace}: nothing was changed"
            )?;
        } else {
            write!(
                f,
                "co was killed while it {changes} in {workspace}: the rest, {}, is changed now",
                counted(self.finished, "file")
            )?;
        }
        for (path, why) in &self.failed {
            write!(f, "; {} is left alone: {why}", shown(path))?;
        }
        Ok(())
    }
}

impl Journal {
    /// Writes the record of changes before they are made.
    ///
    /// # Errors
    /// The file cannot be written. No part of the file remains.
    pub(super) fn begin(store: &Path, record: &Record) -> io::Result<Self> {
        let dir = keeps(store);
        private_dir(&dir)?;
        let path = dir.join(format!("{:016x}.{WHOLE}", fastrand::u64(..)));
        let new = path.with_extension(NEW);
        let begun = Self::write(&new, path, record).map_err(|error| {
            // If it stays, the next start removes it.
            let _stays = fs::remove_file(&new);
            paths::Error::write(&dir, error)
        });
        Ok(begun?)
    }

    fn write(new: &Path, path: PathBuf, record: &Record) -> io::Result<Self> {
        let mut options = File::options();
        let mut file = options.write(true).create_new(true).mode(0o600).open(new)?;
        flock(&file, FlockOperation::LockExclusive)?;
        file.write_all(serde_json::to_string(record)?.as_bytes())?;
        fs::rename(new, &path)?;
        Ok(Self {
            path,
            _locked: file,
        })
    }

    /// Returns the prefix of the names of temporary files. They contain new contents that are not completely written yet.
    pub(super) fn unfinished(&self) -> String {
        let name = self.path.file_stem().unwrap_or_default();
        format!("{UNFINISHED}{}-", name.display())
    }

    /// Removes the journal file, because all changes are made.
    pub(super) fn end(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, "a journal was not removed");
        }
    }

    /// Opens the journal of a process that has ended, and reads its record. Returns `None` if the process still runs.
    fn open(path: &Path) -> Option<(Self, Option<Record>)> {
        let file = File::open(path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        // The process may have ended it meanwhile.
        let text = fs::read(path).ok()?;
        let is_whole = path.extension().is_some_and(|it| it == WHOLE);
        let record = serde_json::from_slice(&text).ok().filter(|_| is_whole);
        let journal = Self {
            path: path.to_owned(),
            _locked: file,
        };
        Some((journal, record))
    }
}

/// Finishes the changes that killed processes were making. Drops a set of changes if none of them was made yet.
pub(super) fn finish(dir: &Path, store: &Store) -> Vec<InterruptedKeep> {
    let entries = fs::read_dir(keeps(dir)).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for entry in entries {
        let Some((journal, record)) = Journal::open(&entry.path()) else {
            continue;
        };
        // Without a record, nothing had been changed.
        if let Some(record) = record {
            let Ok(root) = Dir::open(&record.workspace) else {
                // Its disk may be mounted later.
                continue;
            };
            found.push(finish_one(&journal, record, &root, store));
        }
        journal.end();
    }
    found
}

fn finish_one(journal: &Journal, record: Record, root: &Dir, store: &Store) -> InterruptedKeep {
    let unfinished = journal.unfinished();
    remove_unfinished(&record, root, &unfinished);
    let (mut begun, mut left, mut failed) = (false, Vec::new(), Vec::new());
    for change in record.changes {
        match entry_at(root, &change.path, store) {
            Ok(now) if now == change.after => begun = true,
            Ok(now) if now == change.before => left.push(change),
            Ok(now) if is_between(&change, &now) => {
                begun = true;
                left.push(Change {
                    before: now,
                    ..change
                });
            }
            Ok(_) => failed.push((change.path, "it was changed later".to_owned())),
            Err(error) => failed.push((change.path, error.to_string())),
        }
    }
    let mut finished = 0;
    if begun {
        let options = record.by.write_options(&unfinished);
        let done = apply(left, root, store, options);
        finished = done.changes.iter().filter(|it| !it.is_directory()).count();
        failed.extend(done.failed);
    }
    if record.of_git {
        failed.push((PathBuf::from(".git"), OF_OLDER.to_owned()));
    }
    InterruptedKeep {
        workspace: record.workspace,
        by: record.by,
        finished,
        dropped: !begun,
        failed,
    }
}

/// Returns true if a path is in a state between the two states of a change: a directory is missing, or has another mode.
fn is_between(change: &Change, now: &Option<Entry>) -> bool {
    let is_dir = |it: &Option<Entry>| matches!(it, Some(Entry::Dir { .. }));
    let has_dir = is_dir(&change.before) || is_dir(&change.after);
    match now {
        None => has_dir && change.before.is_some() && change.after.is_some(),
        now => has_dir && is_dir(now),
    }
}

/// Removes the temporary files of a killed process, whose contents may be incomplete.
fn remove_unfinished(record: &Record, root: &Dir, unfinished: &str) {
    let dirs = record.changes.iter().filter_map(|it| it.path.parent());
    let mut dirs: Vec<_> = dirs.collect();
    dirs.dedup();
    for dir in dirs {
        let Ok(dir) = root.dir(dir) else {
            continue;
        };
        let is_unfinished =
            |name: &OsString| name.as_encoded_bytes().starts_with(unfinished.as_bytes());
        let names = dir.names().unwrap_or_default().into_iter();
        for name in names.filter(is_unfinished) {
            // It stays as a file with an odd name.
            let _stays = dir.remove_file(name);
        }
    }
}

#[cfg(test)]
mod tests;
