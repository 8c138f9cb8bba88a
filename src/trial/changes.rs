//! The changes of a trial: the differences between its layer and the workspace.

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

/// The most bytes of the files of one trial, before and after it.
const MOST_BYTES: u64 = 500 << 20;
/// The most changes of one trial.
const MOST_CHANGES: usize = 200_000;
/// The most ignored files and directories that are named.
const MOST_IGNORED_NAMED: usize = 3;

/// The changes of a trial. [`crate::checkpoint::Undo`] makes them.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct TrialChanges {
    /// At most one for each path, in their order.
    pub changes: Vec<Change>,
    /// In the order of their paths.
    pub not_kept: Vec<NotKept>,
    pub ignored: IgnoredFiles,
    pub git: GitChanges,
}

/// A change that is dropped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotKept {
    pub path: PathBuf,
    /// The reason, as a clause.
    pub why: String,
}

/// The changes of ignored files, which never come to the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoredFiles {
    pub files: usize,
    /// The bytes that new and changed files have.
    pub bytes: u64,
    pub fate: Fate,
    /// The first changed paths, without paths below another one. Those of directories end with a slash.
    pub named: BTreeSet<PathBuf>,
    /// The number of other such paths.
    pub unnamed: usize,
}

/// The fate of changed ignored files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fate {
    #[default]
    Dropped,
    /// The ignored files stay if all other changes are kept.
    Undecided,
    /// Later trials in this workspace see them.
    Stay,
}

/// The changes of a trial cannot be read.
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
    /// Names a path that the trial changed.
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
    /// Returns the number of files that would be changed, or of directories if there are no files.
    pub fn count(&self) -> usize {
        let directories = self.changes.iter().filter(|it| it.is_directory()).count();
        match self.changes.len() - directories {
            0 => directories,
            files => files,
        }
    }

    /// Returns whether no file changed, or only ignored files.
    pub fn only_ignored(&self) -> bool {
        self.changes.is_empty() && self.not_kept.is_empty() && self.git.is_empty()
    }

    /// Decides about the ignored files when all changes are read. `may_stay` is false if they may be unfinished: then they are
    /// dropped. If nothing else has changed, leaves them for later trials.
    pub fn settle_ignored(
        &mut self,
        may_stay: bool,
        layer: &Layer,
        root: &Path,
        allowed: &PathFilter,
    ) {
        if !may_stay {
            self.ignored.fate = Fate::Dropped;
        } else if self.only_ignored() {
            self.leave_ignored(layer, root, allowed);
        }
    }

    /// Leaves the ignored files for later trials, if nothing is against it. All other changes must have been kept; see
    /// `Layer::leave_ignored`.
    pub fn leave_ignored(&mut self, layer: &Layer, root: &Path, allowed: &PathFilter) {
        if self.ignored.fate == Fate::Undecided {
            self.ignored.fate = match layer.leave_ignored(root, allowed) {
                true => Fate::Stay,
                false => Fate::Dropped,
            };
        }
    }
}
