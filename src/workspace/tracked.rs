//! The files that git tracks in a workspace.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::git_index::{self, Index};
use co_exec::regular::FileStamp;
use co_exec::repository;

/// The files of git's index, listed once for each state of the index.
#[derive(Default)]
pub(super) struct TrackedFiles {
    last: Mutex<Option<(FileStamp, Arc<[PathBuf]>)>>,
}

impl TrackedFiles {
    /// Returns the files that git tracks, by their paths below the workspace `root`; none without an index that can be read.
    pub(super) fn list(&self, root: &Path) -> Option<Arc<[PathBuf]>> {
        let index = repository::find(root).ok()??.own.join("index");
        let stamp = FileStamp::of(&index)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, files)) = last.as_ref().filter(|(known, _)| *known == stamp) {
            return Some(Arc::clone(files));
        }
        let indexes = git_index::read(root);
        indexes.first()?;
        let files: Arc<[PathBuf]> = indexes
            .iter()
            .flat_map(Index::paths)
            .map(Path::to_owned)
            .collect();
        *last = Some((stamp, Arc::clone(&files)));
        Some(files)
    }
}
