//! Finds the changes of git directories. A trial keeps none of them, so co describes them in a line for the person.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::tree;
use crate::checkpoint::shown;
use crate::workspace::git_index::{Index, MOST_INDEX};
use co_exec::beneath::{Dir, Kind, Node};

/// The largest number of bytes of a file in a git directory that co compares. A larger file counts as changed. Git's index has
/// another limit, [`MOST_INDEX`].
const MOST_BYTES: u64 = 64 << 20;

/// The largest number of paths in each set of [`GitChanges`].
const MOST_PATHS: usize = 3;

/// The names in a git directory that change with a commit, a branch, a tag or the stash.
const OF_COMMITS: [&str; 5] = ["HEAD", "refs", "packed-refs", "reftable", "index"];
/// The directory of reflogs. A reflog has the same relative path as its ref.
const LOGS: &str = "logs";
/// The directory of objects. A new object has no effect until a ref or the index names it.
const OBJECTS: &str = "objects";

/// Files that git derives from other files, or that nothing refers to later. Their changes are ignored.
const LEFT_OVER: [&str; 11] = [
    "logs/HEAD",
    "gc.log",
    "gc.pid",
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "ORIG_HEAD",
    "AUTO_MERGE",
    "info/refs",
    "objects/info/packs",
    "objects/info/commit-graph",
    "objects/info/commit-graphs",
];

/// The changes of git directories. All of them are dropped.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct GitChanges {
    /// The changed refs and indexes, as paths relative to the workspace. If there are many, the set contains only some of them.
    commits: BTreeSet<PathBuf>,
    /// The other changed paths, such as those of hooks. If there are many, the set contains only some of them.
    others: BTreeSet<PathBuf>,
    /// The new git directories. If there are many, the set contains only some of them.
    new: BTreeSet<PathBuf>,
    /// The text that git printed about the move of HEAD. It is `None` if HEAD did not move, or if git failed.
    pub(super) head: Option<String>,
}

/// Returns true if git treats a name as `.git`, including on a file system that ignores case.
pub(super) fn is_dot_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

impl GitChanges {
    pub fn is_empty(&self) -> bool {
        self.paths().next().is_none()
    }

    /// Returns the changed paths. If there are many, returns only some of them.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let all = self.new.iter().chain(&self.others).chain(&self.commits);
        all.map(PathBuf::as_path)
    }

    /// Returns true if a ref or an index has changed, so that HEAD may have moved.
    pub(super) fn has_commits(&self) -> bool {
        !self.commits.is_empty()
    }

    /// Returns a line about the changes that the command made in git directories.
    pub fn words(&self) -> String {
        let commits = self.commits.iter().filter(|_| self.head.is_none());
        let named = |label: &str, paths: Vec<&PathBuf>, after: &str| {
            let all: Vec<_> = paths.iter().map(|path| shown(path)).collect();
            (!all.is_empty()).then(|| format!("{label}{}{after}", all.join(", ")))
        };
        let label = match self.new.len() {
            1 => "new repository: ",
            _ => "new repositories: ",
        };
        let new = named(label, self.new.iter().collect(), "");
        let changed = named("", self.others.iter().chain(commits).collect(), " changed");
        let words = [self.head.clone(), new, changed];
        words.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// Adds a changed path that does not belong to a commit.
    pub(super) fn add(&mut self, path: &Path) {
        if self.others.len() < MOST_PATHS {
            self.others.insert(path.to_owned());
        }
    }

    /// Adds a git directory that does not exist in the workspace.
    pub(super) fn add_new(&mut self, dir: &Path) {
        if self.new.len() < MOST_PATHS {
            self.new.insert(dir.to_owned());
        }
    }

    /// Adds a changed path inside the git directory `dir`.
    fn add_in(&mut self, dir: &Path, path: &Path) {
        let inner = path.strip_prefix(dir).unwrap_or(path);
        let inner = inner.strip_prefix(LOGS).unwrap_or(inner);
        match OF_COMMITS.iter().any(|it| inner.starts_with(it)) {
            false => self.add(path),
            true if self.commits.len() < MOST_PATHS => {
                self.commits.insert(dir.join(inner));
            }
            true => {}
        }
    }

    /// Adds the changes of the layer at `path`, which is the git directory `dir` or a path inside it. Ignores an index that git
    /// has only refreshed.
    pub(super) fn read(
        &mut self,
        (layer, workspace): (&Dir, &Dir),
        dir: &Path,
        path: &Path,
    ) -> io::Result<()> {
        let mut todo = vec![path.to_owned()];
        while let Some(path) = todo.pop() {
            let inner = path.strip_prefix(dir).unwrap_or(&path);
            if LEFT_OVER.iter().any(|it| inner.starts_with(it)) {
                continue;
            }
            if tree::is_too_deep(&path) {
                self.add_in(dir, &path);
                continue;
            }
            let (Some(new_dir), old_dir) =
                (tree::parent(layer, &path)?, tree::parent(workspace, &path)?)
            else {
                continue;
            };
            let name = path.file_name().unwrap_or_default();
            let Some(new) = new_dir.node(name)? else {
                continue;
            };
            let old = old_dir.as_ref().map(|dir| dir.node(name)).transpose()?;
            match (old.flatten(), &old_dir) {
                (Some(old), Some(old_dir)) => {
                    if !is_same((&new_dir, new), (old_dir, old), name)? {
                        self.add_in(dir, &path);
                    }
                    if (new.kind, old.kind) == (Kind::Dir, Kind::Dir)
                        && let Some(opened) = layer.find(&path)?
                    {
                        let mut names = opened.names()?;
                        names.sort_unstable_by(|a, b| b.cmp(a));
                        todo.extend(names.iter().map(|name| path.join(name)));
                    }
                }
                _ if path == dir && new.kind == Kind::Dir => self.add_new(dir),
                // Removing what is not there is no change, and nothing refers to new objects alone.
                _ if new.kind == Kind::Whiteout || is_new_object(inner) => {}
                // Its first log follows.
                _ if (inner, new.kind) == (Path::new(LOGS), Kind::Dir) => {}
                _ => self.add_in(dir, &path),
            }
        }
        Ok(())
    }
}

/// Returns true if an entry of the layer equals the entry of the workspace. For directories, does not compare their entries.
fn is_same(
    (new_dir, new): (&Dir, Node),
    (old_dir, old): (&Dir, Node),
    name: &OsStr,
) -> io::Result<bool> {
    if (new.kind, new.mode) != (old.kind, old.mode) {
        return Ok(false);
    }
    let is_index = name == "index";
    let most = if is_index { MOST_INDEX } else { MOST_BYTES };
    let bytes = |dir: &Dir| dir.read(name, most);
    Ok(match new.kind {
        Kind::Dir => !tree::is_opaque(&new_dir.dir(name)?),
        Kind::Link => new_dir.target(name)? == old_dir.target(name)?,
        Kind::File => match (bytes(new_dir), bytes(old_dir)) {
            (Ok(new), Ok(old)) => new == old || is_index && Index::are_same(&new, &old),
            _ => false,
        },
        Kind::Whiteout | Kind::Special(_) => false,
    })
}

/// Returns true if a new path in a git directory is an object, a pack, or a directory of these.
fn is_new_object(inner: &Path) -> bool {
    inner.starts_with(OBJECTS) && !inner.starts_with("objects/info")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_about_commits_replaces_their_paths() {
        let mut changes = GitChanges::default();
        assert!(changes.is_empty());
        let dir = Path::new(".git");
        for path in ["index", "refs/heads/a", "logs/refs/heads/a", "hooks/x"] {
            changes.add_in(dir, &dir.join(path));
        }
        assert_eq!(
            changes.words(),
            ".git/hooks/x, .git/index, .git/refs/heads/a changed"
        );
        changes.head = Some("a commit on a: new, 1 file".to_owned());
        assert_eq!(
            changes.words(),
            "a commit on a: new, 1 file; .git/hooks/x changed"
        );
    }
}
