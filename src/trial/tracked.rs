//! The files that git tracks, also if its rules name them as ignored.

use std::cell::OnceCell;
use std::path::Path;

use super::index::{Index, MOST_INDEX};
use co_exec::{regular, repository};

/// The lengths of names of objects.
const HASHES: [usize; 2] = [20, 32];

/// The tracked files of a workspace. Its index is read when it is first needed.
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
        let indexes = self.indexes.get_or_init(|| read(self.root));
        let path = path.as_os_str().as_encoded_bytes();
        indexes.iter().any(|index| index.lists(path))
    }
}

/// Reads the index of a workspace, and its shared index if it is split. If an index is too large, none of its files counts as
/// tracked.
fn read(root: &Path) -> Vec<Index> {
    let dir = match repository::find(root) {
        Ok(Some(dirs)) => dirs.own,
        Ok(None) => return Vec::new(),
        // Only its index is read, and what that lists is hidden less.
        Err(_) => root.join(".git"),
    };
    let read = |name: &str| parse(&regular::read(&dir.join(name), MOST_INDEX).ok()?);
    let own = read("index");
    let shared = own.as_ref().and_then(Index::shared);
    let shared = shared.and_then(|name| read(&format!("sharedindex.{name}")));
    own.into_iter().chain(shared).collect()
}

fn parse(bytes: &[u8]) -> Option<Index> {
    HASHES.iter().find_map(|hash| Index::parse(bytes, *hash))
}
