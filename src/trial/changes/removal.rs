//! Finds the removals of a trial. If the trial removed a directory, they are the removals of all files below it.

use std::path::Path;

use super::super::git;
use super::super::rules;
use super::super::tree;
use super::Error;
use super::comparison::{Comparison, DEEP, Stop};
use crate::workspace::files::ignore_rules::IgnoreRules;
use co_exec::beneath::{Dir, Kind};
use co_exec::repository;

const STAYS: &str = "files below it stay: they are ignored, or cannot be removed";

impl Comparison<'_> {
    /// Adds the removal of a file or directory of the workspace. For a directory, adds the removals of everything below it that
    /// is not ignored. If `rules` is `None`, everything is ignored except tracked files. Returns false if a file remains.
    pub(super) fn remove(
        &mut self,
        dir: &Dir,
        path: &Path,
        rules: Option<&IgnoreRules>,
    ) -> Result<bool, Error> {
        let removed = self.try_remove(dir, path, rules);
        Ok(self.noted(path, removed)?.unwrap_or(false))
    }

    fn try_remove(
        &mut self,
        dir: &Dir,
        path: &Path,
        rules: Option<&IgnoreRules>,
    ) -> Result<bool, Stop> {
        self.check_time()?;
        let name = path.file_name().unwrap_or_default();
        let Some(old) = dir.node(name)? else {
            return Ok(true);
        };
        let whole = self.root.join(path);
        if git::is_dot_git(name) || repository::is_gits(&whole) {
            self.found.git.add(path);
            return Ok(false);
        }
        let is_dir = old.kind == Kind::Dir;
        let is_ignored = rules.is_none_or(|it| rules::ignore(it, &whole, is_dir));
        if is_ignored && !self.tracked.has(path) {
            self.found.ignored.files += 1;
            self.found.ignored.name(path, is_dir);
            return Ok(false);
        }
        self.check(path)?;
        let before = self.before(dir, name, old)?;
        let rules = rules.filter(|_| !is_ignored);
        let is_empty = !before.is_dir() || self.remove_below(path, rules)?;
        if is_empty {
            self.add(path, Some(before), None)?;
        }
        Ok(is_empty)
    }

    /// Adds the removals of everything below a directory of the workspace.
    pub(super) fn empty(&mut self, path: &Path, rules: Option<&IgnoreRules>) -> Result<(), Stop> {
        let known = self.found.changes.len();
        if self.remove_below(path, rules)? {
            return Ok(());
        }
        self.found.changes.truncate(known);
        Err(STAYS.into())
    }

    fn remove_below(&mut self, path: &Path, above: Option<&IgnoreRules>) -> Result<bool, Stop> {
        if tree::is_too_deep(path) {
            return Err(DEEP.into());
        }
        let Some(dir) = self.workspace.find(path)? else {
            return Ok(false);
        };
        let whole = self.root.join(path);
        let rules = above.map(|above| self.rules.below(above, &whole, true));
        let mut is_empty = true;
        for name in dir.names()? {
            is_empty &= self.remove(&dir, &path.join(name), rules.as_ref())?;
        }
        Ok(is_empty)
    }
}
