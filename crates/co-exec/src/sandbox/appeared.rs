//! Finds files that a command created or replaced and that other programs run or read as configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::git;
use crate::beneath::{Dir, Kind};
use crate::regular::SMALL_FILE_BYTES;
use crate::repository;
use crate::secrets::{Survey, Surveys};

/// The subdirectory of a git directory that is not searched for symbolic links: git does not write through links there.
const OBJECTS: &str = "objects";
/// The most entries of a git directory that are searched for symbolic links.
const MAX_ENTRIES: usize = 100_000;

/// The most new repositories that are reported.
const MAX_REPOSITORIES: usize = 10;

/// The state of certain paths, and of the repositories in the workspace, before a command ran.
#[derive(Debug, Default)]
pub(crate) struct WatchedPaths {
    traced: Vec<(PathBuf, BTreeSet<Trace>)>,
    repositories: Option<RepositoryWatch>,
}

/// The repositories in a workspace before a command ran, except the workspace's own repository.
#[derive(Debug)]
struct RepositoryWatch {
    surveys: Surveys,
    workspace: PathBuf,
    before: Arc<Survey>,
    /// The git directories to which the workspace's `.git` leads. git may create other git directories inside them.
    own: Vec<PathBuf>,
    /// The files and symbolic links with the name `.git`, and the git directory to which each leads.
    links: BTreeMap<PathBuf, Option<PathBuf>>,
}

/// A path to report to the person, and a fingerprint of what another program would later run or follow there.
type Trace = (PathBuf, String);

impl WatchedPaths {
    /// Records the state of paths. A file at a path in `absent` counts as new, even if it already exists.
    pub(crate) fn new(paths: Vec<PathBuf>, absent: &BTreeSet<PathBuf>) -> Self {
        let traced = paths.into_iter().map(|path| {
            let traces = match absent.contains(&path) {
                true => BTreeSet::new(),
                false => traces(&path),
            };
            (path, traces)
        });
        Self {
            traced: traced.collect(),
            repositories: None,
        }
    }

    /// Also records the repositories that a workspace contains, so that new repositories can be found later. Takes them from a
    /// survey that was checked after the time `since`.
    pub(crate) fn with_repositories(
        mut self,
        surveys: &Surveys,
        workspace: &Path,
        since: Instant,
    ) -> Self {
        let real = workspace.canonicalize();
        self.repositories = real.ok().map(|workspace| {
            let before = surveys.since(&workspace, since);
            RepositoryWatch {
                surveys: surveys.clone(),
                links: git_links(&before),
                before,
                own: repository::inside(&workspace),
                workspace,
            }
        });
        self
    }

    /// Returns the paths where something was created or replaced. Also returns the paths from which something was moved away,
    /// because it may be moved back.
    pub(crate) fn changed(&self) -> Vec<PathBuf> {
        let mut changed = Vec::new();
        for (path, before) in &self.traced {
            let now = traces(path);
            changed.extend(now.difference(before).map(|(named, _)| named.clone()));
            let was_there = before.iter().any(|(named, _)| named == path);
            if now.is_empty() && was_there && !git::is_todo(path) {
                changed.push(path.clone());
            }
        }
        let new = self.repositories.iter().flat_map(RepositoryWatch::made);
        for repository in new {
            if !changed.iter().any(|path| path.starts_with(&repository)) {
                changed.push(repository);
            }
        }
        changed.dedup();
        changed
    }
}

impl RepositoryWatch {
    /// Returns new repositories. Also returns files and symbolic links `.git` that now lead to another git directory. Returns at
    /// most [`MAX_REPOSITORIES`] paths.
    fn made(&self) -> Vec<PathBuf> {
        let now = self.surveys.current(&self.workspace);
        if !self.before.complete || !now.complete {
            return Vec::new();
        }
        let is_new = |path: &&PathBuf| {
            !self.before.repositories.contains(path)
                && !self.own.iter().any(|own| path.starts_with(own))
        };
        let new = now.repositories.iter().filter(is_new).cloned();
        // A repository can be hidden among git's own files, but then a `.git` leads to it.
        let leads_elsewhere = |(dot, target): &(PathBuf, Option<PathBuf>)| {
            let is_plain = |common: &PathBuf| repository::is_plain_work_tree(dot, common);
            self.links.get(dot) != Some(target) && !self.own.iter().any(is_plain)
        };
        let links = git_links(&now).into_iter().filter(leads_elsewhere);
        let links = links.map(|(dot, _)| dot);
        links.chain(new).take(MAX_REPOSITORIES).collect()
    }
}

fn git_links(survey: &Survey) -> BTreeMap<PathBuf, Option<PathBuf>> {
    let links = survey.git_links.iter();
    links
        .map(|dot| (dot.clone(), repository::led_to(dot)))
        .collect()
}

/// Returns the traces at a path. For the to-do list of a rebase these are its commands, for a git directory its symbolic links,
/// and for another file its identity. Follows symbolic links in the parent directory, as the program that would run the file
/// does.
fn traces(path: &Path) -> BTreeSet<Trace> {
    let above = path.parent().unwrap_or(path).canonicalize();
    let name = path.file_name().unwrap_or_default();
    let Ok(dir) = above.and_then(|above| Dir::open(&above)) else {
        return BTreeSet::new();
    };
    if git::is_todo(path) {
        let text = dir.read(name, SMALL_FILE_BYTES).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let commands = text.lines().filter(|line| {
            let word = line.split_whitespace().next();
            matches!(word, Some("x" | "exec"))
        });
        return commands
            .map(|line| (path.to_owned(), line.to_owned()))
            .collect();
    }
    if let Ok(git_dir) = dir.dir(name)
        && matches!(git_dir.node("HEAD"), Ok(Some(node)) if node.kind == Kind::File)
    {
        return links_below(path, &git_dir);
    }
    let node = dir.node(name).ok().flatten();
    let identity = node.map(|node| format!("{:?}", node.stamp.inode()));
    identity
        .into_iter()
        .map(|identity| (path.to_owned(), identity))
        .collect()
}

/// Returns the symbolic links in a git directory with their targets. They are traces because git writes to the targets.
fn links_below(path: &Path, top: &Dir) -> BTreeSet<Trace> {
    let mut links = BTreeSet::new();
    let mut left = vec![PathBuf::new()];
    let mut seen = 0;
    while let Some(below) = left.pop() {
        let entries = top.dir(&below).and_then(|dir| dir.list());
        for (name, kind) in entries.into_iter().flatten().flatten() {
            seen += 1;
            let inner = below.join(&name);
            if kind.is_symlink() {
                let target = top.target(&inner).unwrap_or_default();
                links.insert((path.join(inner), target.to_string_lossy().into_owned()));
            } else if kind.is_dir() && name != OBJECTS {
                left.push(inner);
            }
        }
        if seen > MAX_ENTRIES {
            break;
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_made_replaced_or_linked_is_named_and_nothing_else() {
        let top = tempfile::tempdir().unwrap();
        let git = top.path().join(".git");
        fs::create_dir_all(git.join("logs")).unwrap();
        fs::create_dir(git.join("rebase-merge")).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        symlink("kept", git.join("old-link")).unwrap();
        let [made, replaced, stays] = ["made", "replaced", "stays"].map(|it| top.path().join(it));
        fs::write(&replaced, "").unwrap();
        fs::write(&stays, "").unwrap();
        let todo = git.join("rebase-merge/git-rebase-todo");
        fs::write(&todo, "pick 1\nexec make test\n").unwrap();
        let paths = [&made, &replaced, &stays, &todo, &git].map(Clone::clone);
        let watched = WatchedPaths::new(paths.into(), &BTreeSet::new());
        fs::write(&todo, "exec make test\npick 2\n").unwrap();
        fs::write(&stays, "changed by the person").unwrap();
        assert_eq!(watched.changed(), Vec::<PathBuf>::new());
        fs::write(&made, "").unwrap();
        fs::write(top.path().join("new"), "").unwrap();
        fs::rename(top.path().join("new"), &replaced).unwrap();
        fs::write(&todo, "exec touch x\n").unwrap();
        symlink("/home/a/.bashrc", git.join("logs/HEAD")).unwrap();
        fs::rename(&stays, top.path().join("away")).unwrap();
        let named = [made, replaced, stays, todo, git.join("logs/HEAD")];
        assert_eq!(watched.changed(), named);
    }
}
