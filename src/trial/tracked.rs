//! The files that git tracks, also if its rules name them as ignored.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::tree::{self, Tree};
use crate::git::Index;
use co_exec::{regular, repository};

/// The most bytes of an index. Of a larger one, no file counts as tracked.
const MOST_BYTES: u64 = 256 << 20;

/// The lengths of names of objects.
const HASHES: [usize; 2] = [20, 32];

/// The tracked files of a workspace, and of a trial in it. The indexes are read when they are first needed.
pub(super) struct TrackedFiles<'a> {
    root: &'a Path,
    /// The directory of the trial's changed files.
    upper: Option<PathBuf>,
    indexes: OnceCell<Vec<Index>>,
}

impl<'a> TrackedFiles<'a> {
    pub(super) fn of(root: &'a Path) -> Self {
        Self {
            root,
            upper: None,
            indexes: OnceCell::new(),
        }
    }

    /// Returns those that the workspace tracks, and those that a trial tracks.
    pub(super) fn with_trial(root: &'a Path, upper: PathBuf) -> Self {
        Self {
            upper: Some(upper),
            ..Self::of(root)
        }
    }

    /// Returns whether git tracks the file at a path below the workspace, or one below it.
    pub(super) fn has(&self, path: &Path) -> bool {
        let indexes = self.indexes.get_or_init(|| {
            let trial = self.upper.as_deref().and_then(read_trial);
            read(self.root).into_iter().chain(trial).collect()
        });
        let path = path.as_os_str().as_encoded_bytes();
        indexes.iter().any(|index| index.lists(path))
    }
}

fn read(root: &Path) -> Option<Index> {
    let dirs = repository::find(root).ok().flatten()?;
    parse(&regular::read(&dirs.own.join("index"), MOST_BYTES).ok()?)
}

/// Reads the index that a trial left. It follows no link.
fn read_trial(upper: &Path) -> Option<Index> {
    let dir = Tree::open(upper).and_then(|it| it.dir(Path::new(".git")));
    parse(&tree::bytes(&dir.ok().flatten()?, OsStr::new("index"), MOST_BYTES).ok()?)
}

fn parse(bytes: &[u8]) -> Option<Index> {
    HASHES.iter().find_map(|hash| Index::parse(bytes, *hash))
}
