//! The files that git tracks, also if its rules name them as ignored.

use std::cell::OnceCell;
use std::path::Path;

use crate::git::Index;
use co_exec::{regular, repository};

/// The most bytes of an index. Of a larger one, no file counts as tracked.
const MOST_BYTES: u64 = 256 << 20;

/// The lengths of names of objects.
const HASHES: [usize; 2] = [20, 32];

/// The tracked files of a workspace. The index is read when it is first needed.
pub(super) struct TrackedFiles<'a> {
    root: &'a Path,
    index: OnceCell<Option<Index>>,
}

impl<'a> TrackedFiles<'a> {
    pub(super) fn of(root: &'a Path) -> Self {
        Self {
            root,
            index: OnceCell::new(),
        }
    }

    /// Returns whether git tracks the file at a path below the workspace, or one below it.
    pub(super) fn has(&self, path: &Path) -> bool {
        let index = self.index.get_or_init(|| read(self.root));
        let path = path.as_os_str().as_encoded_bytes();
        index.as_ref().is_some_and(|index| index.lists(path))
    }
}

fn read(root: &Path) -> Option<Index> {
    let dirs = repository::find(root).ok().flatten()?;
    let bytes = regular::read(&dirs.own.join("index"), MOST_BYTES).ok()?;
    HASHES.iter().find_map(|hash| Index::parse(&bytes, *hash))
}
