//! Moves the ignored files of a trial to the ignored files of earlier trials.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{FileType, Mode, Timespec};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::clean::{is_hidden_by, restore, set_attributes};
use super::trash::Trash;
use crate::paths::private_dir;
use crate::trial::git;
use crate::trial::rules::{self, RulesBefore};
use crate::trial::tree;
use crate::workspace::files::PathFilter;
use crate::workspace::files::ignore_rules::IgnoreRules;
use crate::workspace::git_index::IndexedFiles;
use co_exec::beneath::{Dir, Kind, Node};
use co_exec::regular::ChangeTime;

/// A trial that has ended.
pub(in crate::trial) struct EndedTrial<'a> {
    /// The directory that contains the changed files of the trial.
    pub(in crate::trial) upper: PathBuf,
    /// The directory of the files that the trial wrote in caches. It may not exist.
    pub(in crate::trial) caches: PathBuf,
    /// The directory of the packages that the trial downloaded. It may not exist.
    pub(in crate::trial) downloads: PathBuf,
    pub(in crate::trial) start: ChangeTime,
    /// The canonical path of the workspace.
    pub(in crate::trial) root: &'a Path,
    /// Returns false for secret files.
    pub(in crate::trial) allowed: &'a PathFilter,
    pub(in crate::trial) rules: &'a RulesBefore,
    /// Cancelled if the caller no longer waits for the trial. A move that has begun continues.
    pub(in crate::trial) given_up: &'a CancellationToken,
    /// The time at which the move gives up.
    pub(in crate::trial) end: Instant,
}

/// The mode bits that let a program run as another user or group.
const SETUID: u32 = 0o6000;

/// A directory with files of a trial, and the directory with the same kind of files of earlier trials.
pub(super) struct LayerPair<'a> {
    upper: Dir,
    files: Dir,
    /// The workspace; none for caches, which are moved as a whole.
    workspace: Option<Workspace<'a>>,
}

/// The workspace, whose ignore rules decide which files are moved.
struct Workspace<'a> {
    dir: Dir,
    tracked: IndexedFiles<'a>,
    trial: &'a EndedTrial<'a>,
}

/// The move of one trial's files. Files are renamed, so they keep their times.
pub(super) struct Merge<'a, 'b, 'c> {
    place: LayerPair<'a>,
    end: Instant,
    trash: &'b mut Trash<'c>,
    visited: Vec<VisitedDir>,
}

/// A directory of the trial that exists among the files of earlier trials too.
struct DirToMove {
    path: PathBuf,
    /// The ignore rules of the directories above; none if everything below the directory is ignored.
    above: Option<IgnoreRules>,
    /// True if the trial did not see the files of the workspace in this directory.
    opaque: bool,
}

struct VisitedDir {
    path: PathBuf,
    mode: u32,
    modified: Timespec,
    is_ignored: bool,
}

impl<'a> LayerPair<'a> {
    /// Opens the directories for the ignored files.
    pub(super) fn open_ignored(trial: &'a EndedTrial<'a>, files: &Path) -> io::Result<Self> {
        Ok(Self {
            upper: Dir::open_own(&trial.upper)?,
            files: Dir::open_own(files)?,
            workspace: Some(Workspace {
                dir: Dir::open(trial.root)?,
                tracked: IndexedFiles::of(trial.root),
                trial,
            }),
        })
    }

    /// Opens the directories for caches or packages, which are moved to the directory `files`. Returns `None` if the trial wrote
    /// none.
    pub(super) fn open_whole(upper: &Path, files: &Path) -> io::Result<Option<Self>> {
        if !upper.try_exists()? {
            return Ok(None);
        }
        private_dir(files)?;
        Ok(Some(Self {
            upper: Dir::open_own(upper)?,
            files: Dir::open_own(files)?,
            workspace: None,
        }))
    }

    /// Returns true if a file of the trial can be kept for later trials.
    fn may_stay(&self, path: &Path, new: Node, old: Option<Node>) -> bool {
        let is_plain = match new.kind {
            Kind::File => new.mode & SETUID == 0,
            Kind::Special(_) => false,
            Kind::Dir | Kind::Link | Kind::Whiteout => true,
        };
        let Some(Workspace { tracked, trial, .. }) = &self.workspace else {
            return is_plain;
        };
        // Both are directories: each file in them counts for itself.
        let both = new.kind == Kind::Dir && old.is_some_and(|old| old.kind == Kind::Dir);
        let is_tracked = !both && old.is_some() && tracked.has(path);
        is_plain && !is_tracked && trial.allowed.allows(&trial.root.join(path))
    }
}

impl<'a, 'b, 'c> Merge<'a, 'b, 'c> {
    /// Prepares a move that gives up at `end`.
    pub(super) fn new(place: LayerPair<'a>, end: Instant, trash: &'b mut Trash<'c>) -> Self {
        Self {
            place,
            end,
            trash,
            visited: Vec::new(),
        }
    }

    /// Moves all files that can be kept. The remaining files of the trial stay where they are.
    ///
    /// # Errors
    /// A system call fails, or there is no time left.
    pub(super) fn run(mut self) -> io::Result<()> {
        let trial = self.place.workspace.as_ref().map(|it| it.trial);
        let mut todo = vec![DirToMove {
            path: PathBuf::new(),
            above: trial.map(|trial| trial.rules.above(trial.root)),
            opaque: false,
        }];
        while let Some(task) = todo.pop() {
            todo.extend(self.merge_dir(task)?);
        }
        for dir in self.visited.iter().rev() {
            let workspace = self.place.workspace.as_ref().filter(|_| !dir.is_ignored);
            if let Some(Workspace { dir: workspace, .. }) = workspace {
                restore(&self.place.files, workspace, &dir.path, dir.mode, true)?;
            } else if let Some(kept) = self.place.files.find(&dir.path)? {
                set_attributes(&kept, dir.mode, dir.modified)?;
            }
        }
        Ok(())
    }

    /// Moves the entries of a directory of the trial. Returns its subdirectories.
    fn merge_dir(&mut self, task: DirToMove) -> io::Result<Vec<DirToMove>> {
        let LayerPair { upper, files, .. } = &self.place;
        let (Some(upper), Some(kept)) = (upper.find(&task.path)?, files.find(&task.path)?) else {
            return Ok(Vec::new());
        };
        let facts = upper.itself()?;
        self.visited.push(VisitedDir {
            path: task.path.clone(),
            mode: facts.mode,
            modified: tree::modified(&upper)?,
            is_ignored: task.above.is_none(),
        });
        // Of the trial, the directory is removed later. Of the earlier trials, it gets its mode again.
        upper.set_mode("", facts.mode | 0o700)?;
        kept.set_mode("", facts.mode | 0o700)?;
        let of = self.place.workspace.as_ref();
        let workspace = of.map(|it| it.dir.find(&task.path)).transpose()?.flatten();
        let whole = of.map_or_else(PathBuf::new, |it| it.trial.root.join(&task.path));
        let rules = of.zip(task.above.as_ref()).map(|(it, above)| {
            let rules = it.trial.rules;
            rules.below(above, &whole, workspace.is_some())
        });
        let names = upper.names()?;
        let mut inner = Vec::new();
        for name in &names {
            if Instant::now() >= self.end {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let path = task.path.join(name);
            let Some(new) = upper.node(name)? else {
                continue;
            };
            let old = match &workspace {
                Some(dir) => dir.node(name)?,
                None => None,
            };
            // The rules tell files from directories, so they need the one that was removed.
            let removed = match new.kind {
                Kind::Whiteout => kept.node(name)?,
                _ => None,
            };
            let is_dir = old.or(removed).unwrap_or(new).kind == Kind::Dir;
            let is_ignored =
                (rules.as_ref()).is_none_or(|it| rules::ignore(it, &whole.join(name), is_dir));
            let is_gits = self.place.workspace.is_some() && git::is_dot_git(name);
            if is_gits || tree::is_too_deep(&path) {
                continue;
            }
            if is_ignored && self.place.may_stay(&path, new, old) {
                let opaque = task.opaque;
                let places = (&upper, &kept);
                inner.extend(self.merge_one(places, &path, (new, old), opaque)?);
            } else if !is_ignored
                && new.kind == Kind::Dir
                && old.is_some_and(|old| old.kind == Kind::Dir)
            {
                self.make_dir(&kept, name)?;
                inner.push(DirToMove {
                    opaque: task.opaque || self.is_opaque(&path)?,
                    above: rules.clone(),
                    path,
                });
            }
        }
        let dir = workspace.filter(|_| task.opaque && rules.is_none());
        if let (Some(dir), Some(of)) = (dir, &self.place.workspace) {
            of.hide_rest(&task.path, (&dir, &kept), names)?;
        }
        Ok(inner)
    }

    /// Moves one ignored file. For a directory, creates the target directory for its entries, and returns it.
    fn merge_one(
        &mut self,
        (upper, kept): (&Dir, &Dir),
        path: &Path,
        (new, old): (Node, Option<Node>),
        opaque: bool,
    ) -> io::Result<Option<DirToMove>> {
        let name = path.file_name().unwrap_or_default();
        let there = kept.node(name)?;
        if new.kind == Kind::Dir {
            let replaces = there.is_some_and(|there| there.kind != Kind::Dir);
            let opaque = opaque || replaces || self.is_opaque(path)?;
            if there.is_some() && opaque {
                self.trash.take(kept, name)?;
            }
            self.make_dir(kept, name)?;
            return Ok(Some(DirToMove {
                path: path.to_owned(),
                above: None,
                opaque,
            }));
        }
        let is_older = |there: Node| there.kind != Kind::Dir && there.changed() > new.changed();
        if there.is_some_and(is_older) {
            // Another trial has written it since.
            return Ok(None);
        }
        let is_gone = match &self.place.workspace {
            Some(workspace) => is_hidden_by(new, old, &workspace.dir, path)?,
            None => new.kind == Kind::Whiteout,
        };
        if there.is_some() {
            self.trash.take(kept, name)?;
        }
        match new.kind {
            _ if is_gone => {}
            // The kernel makes all of one trial as one file with many names, so they would share their time.
            Kind::Whiteout => make_whiteout(kept, name)?,
            _ => rustix::fs::renameat(upper, name, kept, name)?,
        }
        Ok(None)
    }

    fn is_opaque(&self, path: &Path) -> io::Result<bool> {
        let dir = self.place.upper.find(path)?;
        Ok(dir.is_some_and(|dir| tree::is_opaque(&dir)))
    }

    /// Creates a directory, unless it exists.
    fn make_dir(&mut self, dir: &Dir, name: &OsStr) -> io::Result<()> {
        if dir.node(name)?.is_some_and(|there| there.kind != Kind::Dir) {
            self.trash.take(dir, name)?;
        }
        match rustix::fs::mkdirat(dir, name, Mode::RWXU) {
            Err(Errno::EXIST) => Ok(()),
            done => Ok(done?),
        }
    }
}

impl Workspace<'_> {
    /// Hides the workspace's files in a directory that a trial replaced. Hides each file by its name, so that files that are
    /// created later stay visible. `names` are the names of the trial's files.
    fn hide_rest(
        &self,
        path: &Path,
        (workspace, kept): (&Dir, &Dir),
        names: Vec<OsString>,
    ) -> io::Result<()> {
        let names: HashSet<_> = names.into_iter().collect();
        for name in workspace.names()? {
            let Some(old) = workspace.node(&name)?.filter(|_| !names.contains(&name)) else {
                continue;
            };
            let stays = self.tracked.has(&path.join(&name)) || kept.node(&name)?.is_some();
            if old.changed().is_before(self.trial.start) && !stays {
                make_whiteout(kept, &name)?;
            }
        }
        Ok(())
    }
}

/// Creates a whiteout, which marks a removed file.
fn make_whiteout(dir: &Dir, name: &OsStr) -> io::Result<()> {
    let kind = FileType::CharacterDevice;
    Ok(rustix::fs::mknodat(dir, name, kind, Mode::empty(), 0)?)
}
