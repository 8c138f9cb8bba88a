//! Compares the layer of a trial with the workspace.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::super::content::Content;
use super::super::git;
use super::super::layer::Layer;
use super::super::rules::{self, RulesBefore};
use super::super::tree;
use super::{Error, IgnoredFilesFate, MOST_BYTES, MOST_CHANGES, NotKept, TrialChanges};
use crate::checkpoint::{Change, Store};
use crate::workspace::cache_dirs;
use crate::workspace::files::PathFilter;
use crate::workspace::files::ignore_rules::IgnoreRules;
use crate::workspace::git_index::IndexedFiles;
use co_exec::beneath::{Dir, Kind, Node};
use co_exec::regular::ChangeTime;
use co_exec::repository;
use co_exec::secrets::{Survey, content};

/// The reason for dropping a change if the file also changed in the workspace.
const CHANGED: &str = "it changed in the workspace while the command ran";
/// The reason for dropping a change if somebody removed the file from the workspace.
const REMOVED: &str = "it was removed from the workspace while the command ran";
/// The reason for dropping a change of a file that may be secret.
const SECRET: &str = "it looks like a secret, or is a file of co's own";
/// The reason for dropping a change that lets a program run as another user or group.
const SETUID: &str = "it has a new setuid or setgid bit";
/// The reason for dropping a change of a file whose name is not UTF-8.
const NOT_TEXT: &str = "its name is not UTF-8";
/// The reason for dropping a change of a file with more than [`tree::MOST_DEPTH`] directories above it.
pub(super) const DEEP: &str = "too many directories are above it";
/// The reason for dropping a change of a file with several hard links.
const LINKED: &str = "it has several names (hard links)";

impl TrialChanges {
    /// Reads the changes of a trial that has ended. `root` is the canonical path of the workspace. `allowed` returns false for
    /// secret files. Copies the changed files to the store.
    ///
    /// # Errors
    /// There are too many changes, or the layer or the store cannot be used.
    pub fn read(
        layer: &Layer,
        root: &Path,
        allowed: &PathFilter,
        store: &Store,
    ) -> Result<Self, Error> {
        if !layer.upper().try_exists()? {
            // The trial did not start.
            return Ok(Self::default());
        }
        let mut found = layer.work(|end| {
            let mut comparison = Comparison::new((layer, end), root, allowed, store)?;
            let read = comparison.read();
            let closed = comparison.close();
            read?;
            closed?;
            Ok::<_, Error>(comparison.found)
        })?;
        if layer.has_ignored() && found.not_kept.is_empty() && found.git.is_empty() {
            found.ignored.fate = IgnoredFilesFate::Undecided;
        }
        found.changes.sort_by(|a, b| a.path.cmp(&b.path));
        found.not_kept.sort();
        Ok(found)
    }
}

/// The state of a comparison of a trial's layer with the workspace.
pub(super) struct Comparison<'a> {
    pub(super) workspace: Dir,
    layer: Dir,
    pub(super) root: &'a Path,
    /// The files that git tracks. A tracked file is never ignored.
    pub(super) tracked: IndexedFiles<'a>,
    /// The git directories that the `.git` of the workspace refers to. They may be inside ignored directories.
    git_dirs: Vec<PathBuf>,
    allowed: &'a PathFilter,
    store: &'a Store,
    start: ChangeTime,
    /// The survey of the workspace from the start of the trial.
    before: Arc<Survey>,
    pub(super) rules: Arc<RulesBefore>,
    /// The time at which the comparison gives up.
    end: Instant,
    /// The number of bytes of the copies so far.
    bytes: u64,
    /// The directories of the layer that co has made readable, each with its earlier mode.
    opened: Vec<(PathBuf, u32)>,
    pub(super) found: TrialChanges,
}

/// A directory of the layer that must be compared.
struct DirTask {
    path: PathBuf,
    /// True if the trial saw the files of the workspace in this directory.
    merged: bool,
    /// The ignore rules of the directories above. It is `None` if everything in this directory is ignored, except tracked files.
    above: Option<IgnoreRules>,
}

/// A directory of the layer, and the directory of the workspace at the same path.
struct DirPair {
    path: PathBuf,
    merged: bool,
    layer: Dir,
    workspace: Option<Dir>,
    rules: Option<IgnoreRules>,
    /// True if the directory of the layer is a git directory, and the directory of the workspace is not.
    is_new_git: bool,
}

impl DirPair {
    /// Returns true if the trial sees a git directory here.
    fn is_git_dir(&self) -> bool {
        let kind = |dir: &Dir, name: &str| dir.node(name).ok()?.map(|it| it.kind);
        repository::has_git_names(|name| match kind(&self.layer, name) {
            Some(kind) => kind != Kind::Whiteout,
            None => {
                let below = self.workspace.as_ref().filter(|_| self.merged);
                below.is_some_and(|dir| kind(dir, name).is_some())
            }
        })
    }
}

/// The reason why a path is not compared any further.
pub(super) enum Stop {
    /// The reason why the change of the file is dropped.
    NotKept(String),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::NotKept(format!("it cannot be read: {error}"))
    }
}

impl From<&str> for Stop {
    fn from(why: &str) -> Self {
        Self::NotKept(why.to_owned())
    }
}

impl From<String> for Stop {
    fn from(why: String) -> Self {
        Self::NotKept(why)
    }
}

impl<'a> Comparison<'a> {
    /// Prepares to compare a layer. The comparison gives up at the time `end`.
    pub(super) fn new(
        (layer, end): (&Layer, Instant),
        root: &'a Path,
        allowed: &'a PathFilter,
        store: &'a Store,
    ) -> io::Result<Self> {
        Ok(Self {
            layer: Dir::open_own(&layer.upper())?,
            workspace: Dir::open(root)?,
            tracked: IndexedFiles::of(root),
            git_dirs: repository::inside(root),
            root,
            allowed,
            store,
            start: layer.start(),
            before: Arc::clone(layer.before()),
            rules: Arc::clone(layer.rules()),
            end,
            bytes: 0,
            opened: Vec::new(),
            found: TrialChanges::default(),
        })
    }

    pub(super) fn read(&mut self) -> Result<(), Error> {
        let mut todo = vec![DirTask {
            path: PathBuf::new(),
            merged: true,
            above: Some(self.rules.above(self.root)),
        }];
        while let Some(task) = todo.pop() {
            let path = task.path.clone();
            let compared = self.compare_dir(task);
            todo.extend(self.noted(&path, compared)?.into_iter().flatten());
        }
        Ok(())
    }

    /// Returns the value of `done`. If `done` is [`Stop::NotKept`], adds `path` to the dropped changes and returns `None`.
    pub(super) fn noted<T>(
        &mut self,
        path: &Path,
        done: Result<T, Stop>,
    ) -> Result<Option<T>, Error> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::NotKept(why)) => {
                let path = path.to_owned();
                self.found.not_kept.push(NotKept { path, why });
                Ok(None)
            }
        }
    }

    /// Compares a directory of the layer. Returns its subdirectories.
    fn compare_dir(&mut self, task: DirTask) -> Result<Vec<DirTask>, Stop> {
        let Some(layer) = self.layer.find(&task.path)? else {
            return Ok(Vec::new());
        };
        self.make_readable(&layer, &task.path)?;
        let names = layer.names()?;
        let workspace = self.workspace.find(&task.path)?;
        let merged = task.merged && !tree::is_opaque(&layer);
        let whole = self.root.join(&task.path);
        let above = task.above.as_ref();
        let rules = above.map(|above| self.rules.below(above, &whole, workspace.is_some()));
        let mut pair = DirPair {
            path: task.path,
            merged,
            layer,
            workspace,
            rules,
            is_new_git: false,
        };
        if !repository::is_git_dir(&whole) && pair.is_git_dir() {
            pair.is_new_git = true;
            self.found.git.add_new(&pair.path);
        }
        let mut inner = Vec::new();
        for name in &names {
            let path = pair.path.join(name);
            let compared = self.compare(&pair, &path, name);
            inner.extend(self.noted(&path, compared)?.flatten());
        }
        if let Some(dir) = pair.workspace.as_ref().filter(|_| !merged) {
            let names: HashSet<_> = names.into_iter().collect();
            for name in dir.names()?.iter().filter(|it| !names.contains(*it)) {
                self.remove(dir, &pair.path.join(name), pair.rules.as_ref())?;
            }
        }
        Ok(inner)
    }

    /// Compares an entry of a directory of the layer. If the entry is a directory that must be compared too, returns it.
    fn compare(
        &mut self,
        pair: &DirPair,
        path: &Path,
        name: &OsStr,
    ) -> Result<Option<DirTask>, Stop> {
        self.check_time()?;
        let Some(new) = pair.layer.node(name)? else {
            return Ok(None);
        };
        let old = match &pair.workspace {
            Some(dir) => dir.node(name)?.map(|node| (dir, node)),
            None => None,
        };
        let whole = self.root.join(path);
        let is_git = git::is_dot_git(name);
        if is_git || repository::is_gits(&whole) {
            let dir = if is_git { path } else { &pair.path };
            let trees = (&self.layer, &self.workspace);
            self.found.git.read(trees, dir, path)?;
            return Ok(None);
        }
        if pair.is_new_git && name.to_str().is_some_and(repository::is_gits_name) {
            return Ok(None);
        }
        let is_dir = old.map_or(new, |(_, old)| old).kind == Kind::Dir;
        let rules = pair.rules.as_ref();
        let is_ignored = rules.is_none_or(|it| rules::ignore(it, &whole, is_dir));
        let is_cache = cache_dirs::is_name(name)
            && match old {
                Some((_, old)) => {
                    is_dir
                        && [Kind::Dir, Kind::Whiteout].contains(&new.kind)
                        && old.kind == Kind::Dir
                }
                None => is_dir,
            };
        if (is_ignored || is_cache) && !self.tracked.has(path) {
            if new.kind == Kind::Dir && self.git_dirs.iter().any(|it| it.starts_with(&whole)) {
                return Ok(Some(DirTask {
                    path: path.to_owned(),
                    merged: pair.merged,
                    above: None,
                }));
            }
            if !is_cache {
                self.add_ignored(path, new, is_dir)?;
            }
            return Ok(None);
        }
        if new.kind == Kind::Whiteout {
            if let Some((dir, _)) = old {
                self.remove(dir, path, pair.rules.as_ref())?;
            }
            return Ok(None);
        }
        if tree::is_too_deep(path) {
            return Err(DEEP.into());
        }
        self.check(path)?;
        let after = self.after(&pair.layer, path, new)?;
        let before = match old {
            Some((dir, old)) => Some(self.before(dir, name, old)?),
            None if self.was_removed(pair, name, new)? => return Err(REMOVED.into()),
            None => None,
        };
        let was_dir = before.as_ref().is_some_and(Content::is_dir);
        let is_dir = after.is_dir();
        if before.as_ref() != Some(&after) {
            let was_linked = old.is_some_and(|(_, old)| old.is_linked());
            if new.kind == Kind::File && (new.is_linked() || was_linked) {
                return Err(LINKED.into());
            }
            if after.adds_setuid(before.as_ref()) {
                return Err(SETUID.into());
            }
            if was_dir && !is_dir {
                self.empty(path, pair.rules.as_ref())?;
            }
            self.add(path, before, Some(after))?;
        }
        Ok(is_dir.then(|| DirTask {
            path: path.to_owned(),
            merged: pair.merged && was_dir,
            above: pair.rules.clone().filter(|_| !is_ignored),
        }))
    }

    /// Fails if there is no time left.
    pub(super) fn check_time(&self) -> Result<(), Error> {
        match Instant::now() < self.end {
            true => Ok(()),
            false => Err(Error::Time),
        }
    }

    /// Fails if the person may not see the file at the path, or if the path is not UTF-8.
    pub(super) fn check(&self, path: &Path) -> Result<(), Stop> {
        match (path.to_str(), self.allowed.allows(&self.root.join(path))) {
            (None, _) => Err(NOT_TEXT.into()),
            (_, false) => Err(SECRET.into()),
            _ => Ok(()),
        }
    }

    /// Reads a file of the layer.
    fn after(&self, dir: &Dir, path: &Path, new: Node) -> Result<Content, Stop> {
        let name = path.file_name().unwrap_or_default();
        let closed = new.kind == Kind::File && new.mode & 0o400 == 0;
        if closed {
            dir.set_mode(name, new.mode | 0o400)?;
        }
        let is_secret = new.kind == Kind::File && content::is_secret_in(dir, path);
        let after = Content::read(dir, name, new);
        if closed {
            dir.set_mode(name, new.mode)?;
        }
        match is_secret {
            true => Err(SECRET.into()),
            false => Ok(after?),
        }
    }

    /// Reads a file of the workspace.
    pub(super) fn before(&self, dir: &Dir, name: &OsStr, old: Node) -> Result<Content, Stop> {
        let before = Content::read(dir, name, old)?;
        // Each new file in a directory changes its time.
        let is_dir = before.is_dir();
        match dir.node(name)? {
            Some(now) if is_dir || now == old && now.changed().is_before(self.start) => Ok(before),
            _ => Err(CHANGED.into()),
        }
    }

    /// Returns true if a file that the workspace lacks was removed from the workspace during the trial.
    fn was_removed(&self, pair: &DirPair, name: &OsStr, new: Node) -> io::Result<bool> {
        let mut above = pair.path.ancestors();
        let dir = above.find_map(|path| self.workspace.find(path).transpose());
        let changed = match dir.transpose()? {
            Some(dir) => !dir.itself()?.changed().is_before(self.start),
            None => true,
        };
        let is_copy = tree::is_copy(&pair.layer, name);
        // A copied directory keeps its place. A file may have been moved by the trial.
        if !changed {
            return Ok(is_copy && new.kind == Kind::Dir);
        }
        let whole = self.root.join(&pair.path).join(name);
        Ok(self.before.had(&whole).unwrap_or(true))
    }

    pub(super) fn add(
        &mut self,
        path: &Path,
        before: Option<Content>,
        after: Option<Content>,
    ) -> Result<(), Error> {
        let size = |it: &Option<Content>| it.as_ref().map_or(0, Content::size);
        self.bytes += size(&before) + size(&after);
        if self.bytes > MOST_BYTES {
            return Err(Error::Bytes);
        }
        if self.found.changes.len() >= MOST_CHANGES {
            return Err(Error::Changes);
        }
        let entry = |it: Option<Content>| it.map(|it| it.into_entry(self.store)).transpose();
        self.found.changes.push(Change {
            path: path.to_owned(),
            before: entry(before)?,
            after: entry(after)?,
        });
        Ok(())
    }

    /// Counts and names the files of the layer at an ignored path. `was_dir` is true if the path is a directory in the workspace.
    fn add_ignored(&mut self, path: &Path, node: Node, was_dir: bool) -> Result<(), Stop> {
        let counted = self.found.ignored.files;
        let is_new = self.count_ignored(path, node)?;
        let ignored = &mut self.found.ignored;
        // A directory without files may be all that it made.
        ignored.files += usize::from(is_new && ignored.files == counted);
        if ignored.files > counted {
            ignored.name(path, was_dir || node.kind == Kind::Dir);
        }
        Ok(())
    }

    /// Counts the files of the layer at a path. Returns true if the trial created or emptied a directory there.
    fn count_ignored(&mut self, path: &Path, node: Node) -> Result<bool, Stop> {
        if node.kind != Kind::Dir {
            self.found.ignored.files += 1;
            self.found.ignored.bytes += if node.kind == Kind::File {
                node.size()
            } else {
                0
            };
            return Ok(false);
        }
        let mut is_new = false;
        let mut todo = vec![path.to_owned()];
        while let Some(path) = todo.pop() {
            let Some(dir) = self.layer.find(&path)? else {
                continue;
            };
            self.make_readable(&dir, &path)?;
            is_new |= tree::is_opaque(&dir);
            for name in dir.names()? {
                self.check_time()?;
                match dir.node(&name)? {
                    // What is deeper does not stay.
                    Some(_) if tree::is_too_deep(&path.join(&name)) => {}
                    Some(node) if node.kind == Kind::Dir => todo.push(path.join(name)),
                    Some(node) => {
                        self.count_ignored(&path.join(name), node)?;
                    }
                    None => {}
                }
            }
        }
        Ok(is_new)
    }

    /// Makes a directory of the layer readable until the comparison has ended.
    fn make_readable(&mut self, dir: &Dir, path: &Path) -> io::Result<()> {
        let mode = dir.itself()?.mode;
        if mode & 0o700 != 0o700 {
            dir.set_mode("", mode | 0o700)?;
            self.opened.push((path.to_owned(), mode));
        }
        Ok(())
    }

    /// Restores the modes of the directories that were made readable.
    pub(super) fn close(&self) -> io::Result<()> {
        for (path, mode) in self.opened.iter().rev() {
            if let Some(dir) = self.layer.find(path)? {
                dir.set_mode("", *mode)?;
            }
        }
        Ok(())
    }
}
