//! The git directories of a workspace: those that a command may use, and the names in them that it may change.

use std::path::{Path, PathBuf};

use crate::beneath;
use crate::regular;
use crate::repository::{self, Dirs};

mod configured;
/// Keys in git's configuration whose values name further files or a directory of hooks.
const FILE_KEYS: &[&str] = &[
    "path",
    "excludesfile",
    "attributesfile",
    "allowedsignersfile",
    "template",
    "hookspath",
];

#[cfg(test)]
mod tests;

pub(super) use configured::{ConfiguredPaths, GitQuery};

/// The most levels of directories that are searched for submodules, because names of submodules may contain slashes.
const MAX_DEPTH: usize = 4;

/// The most submodules or work trees whose files are protected one by one. If there are more, co protects all of them as a whole,
/// because each protected name makes every start slower.
const MAX_SEPARATE_DIRECTORIES: usize = 32;

/// The name of the to-do list of an interrupted rebase.
const REBASE_LIST: &str = "git-rebase-todo";

/// The git directories of a workspace, and whether they are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Layout {
    workspace: PathBuf,
    /// The trusted git directories. `None` if there is no repository, or if its git directories are not trusted.
    dirs: Option<Dirs>,
    pub trusted: bool,
}

/// The paths in git directories that a command at the workspace level may or must not change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GitLimits {
    /// Git directories of submodules. They are inside a protected directory, but a command may change them.
    pub writable: Vec<PathBuf>,
    /// Directories that contain protected names. A command must not rename these directories.
    pub pinned: Vec<PathBuf>,
    /// Existing paths that a command must not change.
    pub held: Vec<PathBuf>,
    /// Paths that git reads as configuration. A command must not create or change them, so a missing path needs a placeholder.
    pub obeyed: Vec<PathBuf>,
    /// Existing paths that a command may change.
    pub allowed: Vec<PathBuf>,
    /// Paths that other programs would run later. co cannot protect these paths, and only checks them after the command has
    /// ended.
    pub watched: Vec<PathBuf>,
}

impl Layout {
    pub(super) fn of(workspace: &Path) -> Self {
        let found = repository::find(workspace);
        Self {
            workspace: workspace.to_owned(),
            trusted: found.is_ok(),
            dirs: found.ok().flatten(),
        }
    }

    /// Returns the git directory of the repository, if it is trusted and is outside the workspace.
    pub(super) fn outside(&self) -> Option<&Path> {
        let common = self.dirs.as_ref().map(|dirs| dirs.common.as_path());
        common.filter(|common| !common.starts_with(&self.workspace))
    }

    /// Returns the configuration files that git reads in this workspace.
    pub(super) fn configuration(&self) -> Vec<PathBuf> {
        let dirs = self.dirs.iter();
        dirs.flat_map(|dirs| [dirs.common.join("config"), dirs.own.join("config.worktree")])
            .collect()
    }

    /// Returns the limits for the current contents of the git directories.
    pub(super) fn limits(&self) -> GitLimits {
        let mut limits = GitLimits::default();
        let dot = self.workspace.join(".git");
        match &self.dirs {
            None if self.trusted => {
                limits.obeyed.push(dot);
                // The workspace may be a bare repository: git accepts any directory that looks like one.
                if repository::is_git_dir(&self.workspace) {
                    limits.obey_in(&self.workspace);
                } else {
                    limits.watched.push(self.workspace.join("HEAD"));
                }
            }
            None => {
                limits.held.push(dot);
                let mut inside = repository::inside(&self.workspace);
                if let Some(at) = inside.iter().position(|dir| *dir == self.workspace) {
                    limits.obey_in(&inside.swap_remove(at));
                }
                limits.held.extend(inside);
            }
            Some(dirs) => {
                if dirs.common != dot {
                    limits.held.push(dot);
                }
                limits.repository(&dirs.common, &dirs.own, MAX_DEPTH);
            }
        }
        limits
    }
}

impl GitLimits {
    /// Adds the names in a git directory that git reads as configuration.
    fn obey_in(&mut self, dir: &Path) {
        let names = repository::OBEYED_NAMES.iter();
        self.obeyed.extend(names.map(|name| dir.join(name)));
    }

    /// Adds a git directory with its work trees and its submodules. `own` is the git directory of the workspace's work tree.
    fn repository(&mut self, dir: &Path, own: &Path, depth: usize) {
        self.directory(dir, repository::OBEYED_NAMES, depth);
        let list = dir.join("worktrees");
        let mut trees = directories(&list);
        if trees.len() > MAX_SEPARATE_DIRECTORIES {
            trees.retain(|tree| tree == own);
            self.writable.extend(trees.iter().cloned());
            self.allowed.retain(|path| *path != list);
            self.held.push(list);
        } else if !trees.is_empty() {
            self.pinned.push(list);
        }
        for tree in trees {
            self.directory(&tree, repository::OBEYED_IN_WORK_TREE, depth);
        }
    }

    fn directory(&mut self, dir: &Path, obeys: &[&str], depth: usize) {
        self.pinned.push(dir.to_owned());
        self.obeyed.extend(obeys.iter().map(|name| dir.join(name)));
        for (name, _) in beneath::list_real(dir) {
            let path = dir.join(&name);
            if repository::may_change(&name.to_string_lossy()) {
                self.allowed.push(path);
            } else if !obeys.iter().any(|obeyed| name == *obeyed) {
                self.held.push(path);
            }
        }
        self.watched
            .push(dir.join("rebase-merge").join(REBASE_LIST));
        let mut modules = Vec::new();
        find_modules(&dir.join("modules"), depth, &mut modules);
        if modules.len() > MAX_SEPARATE_DIRECTORIES {
            return;
        }
        for module in modules {
            self.writable.push(module.clone());
            self.repository(&module, &module, depth.saturating_sub(1));
        }
    }
}

/// Adds the repositories below `dir`, which are recognized by their `HEAD`. Does not search inside a repository.
fn find_modules(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if depth == 0 {
        return;
    }
    for path in directories(dir) {
        if path.join("HEAD").is_file() {
            found.push(path);
        } else {
            find_modules(&path, depth - 1, found);
        }
    }
}

fn directories(dir: &Path) -> Vec<PathBuf> {
    let directories = beneath::list_real(dir).filter(|(_, kind)| kind.is_dir());
    directories.map(|(name, _)| dir.join(name)).collect()
}

/// Returns whether `path` is the to-do list of a rebase.
pub(super) fn is_todo(path: &Path) -> bool {
    path.ends_with(REBASE_LIST)
}

/// Returns the targets of symbolic links through which git finds code to run. These are the link `name` itself, or links in the
/// directory `name`, such as a directory of hooks.
pub(super) fn links(name: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    // Most names are missing.
    let Ok(facts) = name.symlink_metadata() else {
        return links;
    };
    if facts.is_symlink() {
        links.extend(name.canonicalize());
    }
    let Ok(real) = name.canonicalize() else {
        return links;
    };
    for (inner, kind) in beneath::list_real(&real) {
        if kind.is_symlink() {
            links.extend(real.join(inner).canonicalize());
        }
    }
    links
}

/// Returns the existing files and hook directories that are named in git's global configuration of the person.
pub(super) fn configuration(home: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for base in [home.join(".gitconfig"), home.join(".config/git/config")] {
        let Ok(text) = regular::text(&base) else {
            continue;
        };
        let beside = base.parent().unwrap_or(home);
        files.extend(values(&text, FILE_KEYS).map(|value| {
            value
                .strip_prefix("~/")
                .map_or_else(|| beside.join(value), |below| home.join(below))
        }));
    }
    files.retain(|path| path.exists());
    files
}

/// Returns the values of some keys, in any section of a configuration.
fn values<'a>(text: &'a str, keys: &'a [&str]) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let wanted = keys
            .iter()
            .any(|wanted| key.trim().eq_ignore_ascii_case(wanted));
        wanted.then(|| value.trim().trim_matches('"'))
    })
}
