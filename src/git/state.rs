//! Compares a repository with a change of it. Finds the parts that are made, and checks that the others can be made.

use std::fs;

use super::Repository;
use super::change::{HeadChange, PathChange, RefChange, RepositoryChange};
use super::index::Index;
use super::names::{Head, ObjectName, RefTarget, object_lines};
use super::stash::StashChange;

/// The parts of a change that are not made yet, apart from the index.
#[derive(Debug)]
pub(super) struct LeftChange<'a> {
    pub(super) refs: Vec<&'a RefChange>,
    pub(super) head: Option<&'a HeadChange>,
    pub(super) stash: Option<&'a StashChange>,
}

impl Repository {
    /// Checks that a change can be made. Parts that are made already stay.
    ///
    /// # Errors
    /// The repository has changed in the same place, or an object is missing: a clause.
    pub fn check(&self, change: &RepositoryChange) -> Result<(), String> {
        self.check_objects(change)?;
        if !change.index.is_empty() {
            check_index(&self.index_bytes()?, &change.index, self.hash_size()?)?;
        }
        self.left(change).map(drop)
    }

    /// Checks that all objects that a change needs are there.
    ///
    /// # Errors
    /// One is missing: a clause.
    pub fn check_objects(&self, change: &RepositoryChange) -> Result<(), String> {
        let tips = object_lines(change.tips());
        if !tips.is_empty() {
            let args = [
                "rev-list",
                "--objects",
                "--quiet",
                "--stdin",
                "--not",
                "--all",
            ];
            self.run(args, &tips)?;
        }
        let staged = object_lines(change.staged());
        if !staged.is_empty() {
            let kinds = self.run(["cat-file", "--batch-check=%(objecttype)"], &staged)?;
            if kinds
                .split(|it| *it == b'\n')
                .any(|it| !matches!(it, b"blob" | b""))
            {
                return Err("the content of a file in the index is missing".to_owned());
            }
        }
        Ok(())
    }

    /// Returns whether a part of a change is made. A kill may have interrupted the change.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn has_begun(&self, change: &RepositoryChange) -> Result<bool, String> {
        let half_stashed = match &change.stash {
            Some(stash) => {
                let now = self.stash()?;
                now != stash.before && stash.is_between(&now)
            }
            None => false,
        };
        Ok(half_stashed || !self.made(change)?.is_empty())
    }

    /// Returns the parts of a change that are made. The index is one part.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn made(&self, change: &RepositoryChange) -> Result<RepositoryChange, String> {
        let refs = self.refs()?;
        let is_made = |it: &&RefChange| object(refs.get(&it.name)) == Ok(it.after.as_ref());
        let now = self.head()?;
        let head = change.head.clone().map(|it| match it.after == now {
            true => it,
            false => HeadChange {
                after: it.before.clone(),
                before: it.before,
            },
        });
        let stash = match &change.stash {
            Some(stash) => (self.stash()? == stash.after).then(|| stash.clone()),
            None => None,
        };
        let mut index = change.index.clone();
        if !index.is_empty() {
            let now = parsed(&self.index_bytes()?, self.hash_size()?)?;
            if index.iter().any(|it| now.files(&it.path) != it.after) {
                index.clear();
            }
        }
        Ok(RepositoryChange {
            refs: change.refs.iter().filter(is_made).cloned().collect(),
            head,
            stash,
            index,
        })
    }

    /// Returns the parts of a change that are not made, apart from the index.
    ///
    /// # Errors
    /// The repository has changed in the same place: a clause.
    pub(super) fn left<'a>(&self, change: &'a RepositoryChange) -> Result<LeftChange<'a>, String> {
        let now = self.refs()?;
        let mut refs = Vec::new();
        for it in &change.refs {
            let now = object(now.get(&it.name));
            if now == Ok(it.after.as_ref()) {
                continue;
            }
            if now != Ok(it.before.as_ref()) {
                return Err(format!("{} has changed meanwhile", it.shown()));
            }
            refs.push(it);
        }
        self.check_head(change)?;
        let head = match change.moved_head() {
            Some(head) if self.head()? != head.after => Some(head),
            _ => None,
        };
        let mut stash = change.stash.as_ref();
        if let Some(it) = stash {
            let now = self.stash()?;
            if now == it.after {
                stash = None;
            } else if now != it.before && !it.is_between(&now) {
                return Err("the stash has changed meanwhile".to_owned());
            }
        }
        Ok(LeftChange { refs, head, stash })
    }

    /// Checks that HEAD is as it was before or after the change. Another HEAD is allowed only if its commit, the index and the
    /// files still fit together after the change. Also checks that no other working tree has a changed branch.
    ///
    /// # Errors
    /// HEAD has changed, or another working tree has a changed branch: a clause.
    pub fn check_head(&self, change: &RepositoryChange) -> Result<(), String> {
        self.check_worktrees(&change.refs)?;
        let Some(HeadChange { before, after }) = &change.head else {
            return Ok(());
        };
        let now = self.head()?;
        if [before, after].contains(&&now) {
            return Ok(());
        }
        let changes = |head: &Head| match head {
            Head::Branch(branch) => change.refs.iter().any(|it| it.name == *branch),
            Head::Detached(_) => false,
        };
        let matters = before != after || !change.index.is_empty();
        match matters || changes(before) || changes(&now) {
            true => Err(format!(
                "HEAD has changed meanwhile: it was {}, and is {}",
                before.shown(),
                now.shown()
            )),
            false => Ok(()),
        }
    }

    /// Checks that no other working tree has one of the changed branches.
    fn check_worktrees(&self, changes: &[RefChange]) -> Result<(), String> {
        for dir in fs::read_dir(self.file("worktrees")).into_iter().flatten() {
            let head = dir
                .ok()
                .and_then(|it| fs::read(it.path().join("HEAD")).ok());
            if let Some(Head::Branch(branch)) = head.as_deref().and_then(Head::parse)
                && let Some(it) = changes.iter().find(|it| it.name == branch)
            {
                return Err(format!("another working tree has {}", it.shown()));
            }
        }
        Ok(())
    }
}

/// Checks that the changed entries of an index are as they were before the change, or as they are after it.
pub(super) fn check_index(own: &[u8], changes: &[PathChange], size: usize) -> Result<(), String> {
    let now = parsed(own, size)?;
    for change in changes {
        let files = now.files(&change.path);
        if files != change.before && files != change.after {
            let path = co_policy::one_line(&change.path);
            return Err(format!("{path} has changed in the index meanwhile"));
        }
    }
    Ok(())
}

fn parsed(index: &[u8], size: usize) -> Result<Index, String> {
    match index {
        [] => Ok(Index::default()),
        bytes => {
            Index::parse(bytes, size).ok_or_else(|| "the index has an unknown form".to_owned())
        }
    }
}

/// Returns the object of a ref; none if there is no such ref.
pub(super) fn object(target: Option<&RefTarget>) -> Result<Option<&ObjectName>, ()> {
    match target {
        None => Ok(None),
        Some(RefTarget::Object(object)) => Ok(Some(object)),
        Some(RefTarget::Ref) => Err(()),
    }
}
