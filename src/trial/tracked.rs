//! The files that git tracks, also if its rules name them as ignored.

use std::cell::OnceCell;
use std::path::Path;

use crate::tool::git_index::{self, Index};

/// The tracked files of a workspace. Its index is read when it is first needed. If the index is too large, none counts as
/// tracked.
pub(super) struct TrackedFiles<'a> {
    root: &'a Path,
    indexes: OnceCell<Vec<Index>>,
}

impl<'a> TrackedFiles<'a> {
    pub(super) fn of(root: &'a Path) -> Self {
        Self {
            root,
            indexes: OnceCell::new(),
        }
    }

    /// Returns whether git tracks the file at a path below the workspace, or one below it.
    pub(super) fn has(&self, path: &Path) -> bool {
        let indexes = self.indexes.get_or_init(|| git_index::read(self.root));
        let path = path.as_os_str().as_encoded_bytes();
        indexes.iter().any(|index| index.lists(path))
    }
}
