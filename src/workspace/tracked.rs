//! The files that git tracks in a workspace.

use std::path::Path;

use parking_lot::Mutex;

use super::git_index::{self, Index};
use co_exec::path_list::PathList;
use co_exec::regular::FileStamp;
use co_exec::repository;

/// The files in git's index. They are listed once for each state of the index.
#[derive(Default)]
pub(super) struct TrackedFiles {
    last: Mutex<Option<(FileStamp, PathList)>>,
}

impl TrackedFiles {
    /// Returns the files that git tracks, relative to the workspace `root`; none if there is no index that can be read.
    pub(super) fn list(&self, root: &Path) -> Option<PathList> {
        let index = repository::find(root).ok()??.own.join("index");
        let stamp = FileStamp::of(&index)?;
        let mut last = self.last.lock();
        if let Some((_, files)) = last.as_ref().filter(|(known, _)| *known == stamp) {
            return Some(files.clone());
        }
        let indexes = git_index::read(root);
        indexes.first()?;
        let files: PathList = indexes.iter().flat_map(Index::paths).collect();
        *last = Some((stamp, files.clone()));
        Some(files)
    }
}
