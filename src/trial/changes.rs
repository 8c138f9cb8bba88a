//! The changes of a trial, which are the differences between its layer and the workspace.

mod comparison;
mod removal;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::git::GitChanges;
use super::layer::{Layer, MOST_WORK};
use crate::checkpoint::Change;
use crate::workspace::files::PathFilter;
use co_text::size_text;

/// The largest total size in bytes of the files that co copies for one trial: the changed files before and after the trial.
const MOST_BYTES: u64 = 500 << 20;
/// The largest number of changes of one trial.
const MOST_CHANGES: usize = 200_000;
/// The largest number of ignored files and directories that are named.
const MOST_IGNORED_NAMED: usize = 3;

/// The changes of a trial. [`crate::checkpoint::Undo`] can make them in the workspace.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct TrialChanges {
    /// The changes that can be kept, sorted by path. There is at most one for each path.
    pub changes: Vec<Change>,
    /// The changes that are dropped, sorted by path.
    pub not_kept: Vec<NotKept>,
    pub ignored: IgnoredFiles,
    pub git: GitChanges,
}

/// A change of a trial that is dropped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotKept {
    pub path: PathBuf,
    /// The reason as a clause.
    pub why: String,
}

/// The changes of ignored files, which are never made in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoredFiles {
    pub files: usize,
    /// The number of bytes of the new and changed files.
    pub bytes: u64,
    pub fate: IgnoredFilesFate,
    /// The first changed paths. A path below another changed path is left out. The path of a directory ends with a slash.
    pub named: BTreeSet<PathBuf>,
    /// The number of changed paths that `named` does not contain.
    pub unnamed: usize,
}

/// The fate of the ignored files that a trial changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IgnoredFilesFate {
    #[default]
    Dropped,
    /// The ignored files are left for later trials if all other changes are kept.
    Undecided,
    /// The ignored files are left for later trials in this workspace.
    Stay,
}

/// The reason why the changes of a trial cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the command changed more than {MOST_CHANGES} files, so none is kept: let it change fewer"
    )]
    Changes,
    #[error(
        "the command changed files of more than {}, so none is kept: let it change fewer",
        size_text(MOST_BYTES)
    )]
    Bytes,
    #[error("co needs more than {} s to read and show what the command changed, so none is kept: let it change fewer files", MOST_WORK.as_secs())]
    Time,
    #[error("the changes of the command cannot be read: {0}")]
    Read(#[from] io::Error),
}

impl IgnoredFiles {
    /// Adds an ignored path that the trial changed.
    fn name(&mut self, path: &Path, is_dir: bool) {
        self.named.insert(match is_dir {
            true => path.join(""),
            false => path.to_owned(),
        });
        if self.named.len() > MOST_IGNORED_NAMED {
            self.named.pop_last();
            self.unnamed += 1;
        }
    }
}

impl TrialChanges {
    /// Returns the number of files that the changes affect. If they affect no files, returns the number of directories.
    pub fn count(&self) -> usize {
        let directories = self.changes.iter().filter(|it| it.is_directory()).count();
        match self.changes.len() - directories {
            0 => directories,
            files => files,
        }
    }

    /// Returns true if the trial changed no files other than ignored files.
    pub fn only_ignored(&self) -> bool {
        self.changes.is_empty() && self.not_kept.is_empty() && self.git.is_empty()
    }

    /// Decides whether the ignored files are left for later trials. Call it after all changes were read. If `may_stay` is false,
    /// the ignored files may be incomplete, and are dropped. If the trial changed nothing else, leaves the ignored files for
    /// later trials.
    pub fn settle_ignored(
        &mut self,
        may_stay: bool,
        layer: &Layer,
        root: &Path,
        allowed: impl FnOnce() -> PathFilter,
    ) {
        if !may_stay {
            self.ignored.fate = IgnoredFilesFate::Dropped;
        } else if self.only_ignored() {
            self.leave_ignored(layer, root, allowed);
        }
    }

    /// Leaves the ignored files for later trials, unless they have been dropped. All other changes must have been kept; see
    /// `Layer::leave_ignored`.
    pub fn leave_ignored(
        &mut self,
        layer: &Layer,
        root: &Path,
        allowed: impl FnOnce() -> PathFilter,
    ) {
        if self.ignored.fate == IgnoredFilesFate::Undecided {
            self.ignored.fate = match layer.leave_ignored(root, &allowed()) {
                true => IgnoredFilesFate::Stay,
                false => IgnoredFilesFate::Dropped,
            };
        }
    }
}
