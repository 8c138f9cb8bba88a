//! Makes the changes of a repository together with those of files.

use std::path::Path;
use std::time::SystemTime;

use super::change::KeptRepository;
use super::store::Store;
use super::undo::UndoResult;
use crate::git::Repository;
use co_policy::one_line;

/// The most characters of a command in git's log of the refs.
const MAX_WHY_CHARS: usize = 200;

/// The place of changes that are being kept.
pub(super) struct KeepPlace<'a> {
    /// The real path of the workspace.
    pub(super) root: &'a Path,
    pub(super) store: &'a Store,
    /// The start of the names of files that are not whole yet.
    pub(super) unfinished: &'a str,
    /// The command.
    pub(super) what: &'a str,
}

impl KeepPlace<'_> {
    /// Makes the changes of files by `files`, and before and after it those of the repository: its objects first, so that no
    /// ref ever names one that is not there.
    pub(super) fn make(
        &self,
        repository: Option<&KeptRepository>,
        files: impl FnOnce() -> UndoResult,
    ) -> UndoResult {
        let Some(kept) = repository else {
            return files();
        };
        let opened = self.open(kept);
        let prepared = match &opened {
            Ok(repository) => repository.prepare(&kept.change, self.unfinished),
            Err(why) => Err(why.clone()),
        };
        let mut done = files();
        let why: String = one_line(&format!("co: {}", self.what))
            .chars()
            .take(MAX_WHY_CHARS)
            .collect();
        done.repository = Some(prepared.and_then(|it| it.make(&why)));
        done
    }

    fn open(&self, kept: &KeptRepository) -> Result<Repository, String> {
        let repository = Repository::open(&kept.git, self.root)?;
        let pack = self.store.get(&kept.pack).map_err(|e| e.to_string())?;
        repository.import(&pack)?;
        Ok(repository)
    }

    /// Removes what a killed process left in the repository. Returns whether it had begun to change it.
    pub(super) fn interrupted(&self, repository: Option<&KeptRepository>) -> bool {
        let opened = repository.map(|kept| (kept, Repository::open(&kept.git, self.root)));
        let Some((kept, Ok(repository))) = opened else {
            return false;
        };
        repository.remove_unfinished(self.unfinished);
        repository.has_begun(&kept.change).unwrap_or(false)
    }

    /// Removes the locks of refs that a killed git left since `begin`.
    pub(super) fn remove_ref_locks(&self, repository: Option<&KeptRepository>, begin: SystemTime) {
        let opened = repository.map(|kept| (kept, Repository::open(&kept.git, self.root)));
        if let Some((kept, Ok(repository))) = opened {
            repository.remove_ref_locks(&kept.change, begin);
        }
    }
}
