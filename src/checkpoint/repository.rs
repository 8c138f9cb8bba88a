//! Makes the changes of a repository together with those of files, and plans what takes them back.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::change::{KeptRepository, RepositoryChanges};
use super::log::TurnChanges;
use super::store::Store;
use super::undo::{RepositoryResult, UndoResult};
use crate::git::{Repository, RepositoryChange};
use crate::paths::private_dir;
use co_exec::sandbox::{PrivateTmp, Removals};
use co_policy::one_line;

/// The most characters of a command in git's log of the refs.
const MAX_WHY_CHARS: usize = 200;

/// The longest wait for a git that a killed process started. If a lock of refs is older, that git was killed too, and nobody
/// else would remove the lock.
const MAX_GIT_WAIT: Duration = Duration::from_secs(3);

/// The time between two attempts meanwhile.
const GIT_POLL: Duration = Duration::from_millis(100);

/// The workspace and the store of changes that are being made.
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
        // If the preparation failed, no part of the change is made.
        let changed = opened.as_ref().ok().filter(|_| prepared.is_ok());
        let mut done = files();
        let made = prepared.and_then(|it| it.make(&self.why()));
        done.repository = Some(result(&kept.change, changed, made));
        done
    }

    /// Makes the changes as [`Self::make`], after a process was killed that began to make them at `begin`. A git that it
    /// started may still lock the refs, or have been killed too: waits for it, and then removes the locks that it left.
    pub(super) fn finish(
        &self,
        repository: Option<&KeptRepository>,
        begin: Option<SystemTime>,
        files: impl FnOnce() -> UndoResult,
    ) -> UndoResult {
        let mut done = self.make(repository, files);
        if let (Some(kept), Some(made)) = (repository, &done.repository)
            && !made.failed.is_empty()
        {
            let opened = self.open(kept);
            let made = match &opened {
                Ok(repository) => self.try_again(repository, kept, begin),
                Err(why) => Err(why.clone()),
            };
            done.repository = Some(result(&kept.change, opened.as_ref().ok(), made));
        }
        done
    }

    fn try_again(
        &self,
        repository: &Repository,
        kept: &KeptRepository,
        begin: Option<SystemTime>,
    ) -> Result<(), String> {
        let end = Instant::now() + MAX_GIT_WAIT;
        loop {
            std::thread::sleep(GIT_POLL);
            let is_late = Instant::now() >= end;
            if let Some(begin) = begin.filter(|_| is_late) {
                repository.remove_ref_locks(&kept.change, begin);
            }
            let prepared = repository.prepare(&kept.change, self.unfinished);
            let made = prepared.and_then(|it| it.make(&self.why()));
            if made.is_ok() || is_late {
                return made;
            }
        }
    }

    /// Returns the reason of a change for git's log of the refs.
    fn why(&self) -> String {
        let line = one_line(&format!("co: {}", self.what));
        line.chars().take(MAX_WHY_CHARS).collect()
    }

    fn open(&self, kept: &KeptRepository) -> Result<Repository, String> {
        let repository = Repository::open(&kept.git, self.root)?;
        import_missing(&repository, kept, self.store)?;
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
}

/// Returns what takes back the changes that a turn made in its repository; none if nothing is left to take back.
///
/// # Errors
/// The repository has changed in the same place, or cannot be read: a clause.
pub fn taking_back(turn: &TurnChanges, store: &Store) -> Result<Option<RepositoryChanges>, String> {
    let Some(kept) = turn.repository()? else {
        return Ok(None);
    };
    let mut kept = kept.inverse();
    let repository = Repository::open(&kept.git, turn.workspace())?;
    kept.change = kept.change.without(&repository.made(&kept.change)?);
    if kept.change.is_empty() {
        return Ok(None);
    }
    // The person has not said yes yet, so new objects go to a directory outside of the repository.
    let scratch = PrivateTmp::new_in(&std::env::temp_dir(), &Removals::default());
    let scratch = scratch.map_err(|error| error.to_string())?;
    let objects = scratch.path().join("objects");
    private_dir(&objects).map_err(|error| error.to_string())?;
    let repository = repository.with_objects(objects);
    import_missing(&repository, &kept, store)?;
    repository.check(&kept.change)?;
    let lines = repository.describe(&kept.change, &scratch.path().join("index"))?;
    Ok(Some(RepositoryChanges { kept, lines }))
}

/// Adds the new objects of a change again if some are missing. Git removes objects to which nothing refers after a while.
fn import_missing(
    repository: &Repository,
    kept: &KeptRepository,
    store: &Store,
) -> Result<(), String> {
    if repository.check_objects(&kept.change).is_ok() {
        return Ok(());
    }
    for pack in &kept.packs {
        let pack = store.get(pack).map_err(|error| error.to_string())?;
        repository.import(&pack)?;
    }
    Ok(())
}

/// Returns the result of an attempt to make a change of a repository. If the attempt failed, reads the repository to find the
/// parts that are made.
fn result(
    change: &RepositoryChange,
    repository: Option<&Repository>,
    made: Result<(), String>,
) -> RepositoryResult {
    let Err(why) = made else {
        return RepositoryResult {
            made: change.clone(),
            failed: Vec::new(),
        };
    };
    let made = repository.and_then(|it| it.made(change).ok());
    let made = made.unwrap_or_default();
    let failed = match made.is_empty() {
        true => vec![PathBuf::from(".git")],
        false => change.without(&made).paths(),
    };
    let failed = failed.into_iter().map(|path| (path, why.clone()));
    RepositoryResult {
        failed: failed.collect(),
        made,
    }
}

#[cfg(test)]
mod tests;
