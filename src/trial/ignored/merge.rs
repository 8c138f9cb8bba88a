//! Moves the ignored files of a trial to those of earlier trials.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, Timespec};
use rustix::io::Errno;

use super::EndedTrial;
use super::clean::{is_hidden_by, restore, set_attributes};
use super::trash::Trash;
use crate::trial::git;
use crate::trial::rules::{Rules, ignores_all};
use crate::trial::tracked::TrackedFiles;
use crate::trial::tree;
use co_exec::beneath::{Dir, Kind, Node};

/// The bits of a mode that let a program run as another user or group.
const SETUID: u32 = 0o6000;

/// The move of one trial's ignored files. Times stay, because files are renamed.
pub(super) struct Merge<'a, 'b> {
    upper: Dir,
    files: Dir,
    workspace: Dir,
    trial: &'a EndedTrial<'a>,
    tracked: TrackedFiles<'a>,
    trash: &'a mut Trash<'b>,
    visited: Vec<VisitedDir>,
}

/// A directory of the trial. The one of the earlier trials exists too.
struct DirToMove {
    path: PathBuf,
    /// None if all below it is ignored.
    above: Option<Rules>,
    /// The trial did not see what the workspace has in it.
    opaque: bool,
}

struct VisitedDir {
    path: PathBuf,
    mode: u32,
    modified: Timespec,
    is_ignored: bool,
}

impl<'a, 'b> Merge<'a, 'b> {
    pub(super) fn new(
        trial: &'a EndedTrial<'a>,
        files: &Path,
        trash: &'a mut Trash<'b>,
    ) -> io::Result<Self> {
        Ok(Self {
            upper: Dir::open_own(&trial.upper)?,
            files: Dir::open_own(files)?,
            workspace: Dir::open(trial.root)?,
            tracked: TrackedFiles::of(trial.root),
            trial,
            trash,
            visited: Vec::new(),
        })
    }

    /// Moves all. The files of the trial without the moved ones are left.
    ///
    /// # Errors
    /// The system refuses a step.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut todo = vec![DirToMove {
            path: PathBuf::new(),
            above: Some(Rules::above(self.trial.root)),
            opaque: false,
        }];
        while let Some(task) = todo.pop() {
            todo.extend(self.merge_dir(task)?);
        }
        for dir in self.visited.iter().rev() {
            if !dir.is_ignored {
                restore(&self.files, &self.workspace, &dir.path, dir.mode, true)?;
            } else if let Some(kept) = self.files.find(&dir.path)? {
                set_attributes(&kept, dir.mode, dir.modified)?;
            }
        }
        Ok(())
    }

    /// Moves what is in a directory of the trial. Returns the directories in it.
    fn merge_dir(&mut self, task: DirToMove) -> io::Result<Vec<DirToMove>> {
        let (Some(upper), Some(kept)) =
            (self.upper.find(&task.path)?, self.files.find(&task.path)?)
        else {
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
        let workspace = self.workspace.find(&task.path)?;
        let whole = self.trial.root.join(&task.path);
        let rules = task
            .above
            .map(|above| above.below(&whole, workspace.is_some(), &[&upper, &kept], !task.opaque));
        let names = upper.names()?;
        let mut inner = Vec::new();
        for name in &names {
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
            let is_ignored = rules
                .as_ref()
                .is_none_or(|it| it.ignore(&whole.join(name), old.or(removed), new));
            let is_new_dir = old.is_none() && removed.unwrap_or(new).kind == Kind::Dir;
            let is_ignored = is_ignored || is_new_dir && self.ignores_all(&path)?;
            if git::is_it(name) || tree::is_too_deep(&path) {
                continue;
            }
            if is_ignored && self.may_stay(&path, new, old) {
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
        if let Some(dir) = workspace.filter(|_| task.opaque && rules.is_none()) {
            self.hide_rest(&task.path, (&dir, &kept), names)?;
        }
        Ok(inner)
    }

    /// Returns whether a file of the trial can stay.
    fn may_stay(&self, path: &Path, new: Node, old: Option<Node>) -> bool {
        // Both are directories: each file in them counts for itself.
        let both = new.kind == Kind::Dir && old.is_some_and(|old| old.kind == Kind::Dir);
        if !both && old.is_some() && self.tracked.has(path) {
            return false;
        }
        let is_plain = match new.kind {
            Kind::File => new.mode & SETUID == 0,
            Kind::Special(_) => false,
            Kind::Dir | Kind::Link | Kind::Whiteout => true,
        };
        is_plain && (self.trial.allowed)(&self.trial.root.join(path))
    }

    /// Moves one ignored file, or makes the directory for those of a directory, which it returns.
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
        let is_gone = is_hidden_by(new, old, &self.workspace, path)?;
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

    /// Returns whether a directory that the workspace lacks ignores all in it.
    fn ignores_all(&self, path: &Path) -> io::Result<bool> {
        let dirs = [self.upper.find(path)?, self.files.find(path)?];
        let dirs: Vec<_> = dirs.iter().flatten().collect();
        Ok(ignores_all(&dirs))
    }

    fn is_opaque(&self, path: &Path) -> io::Result<bool> {
        Ok(self
            .upper
            .find(path)?
            .is_some_and(|dir| tree::is_opaque(&dir)))
    }

    /// Makes a directory, unless it is there.
    fn make_dir(&mut self, dir: &Dir, name: &OsStr) -> io::Result<()> {
        if dir.node(name)?.is_some_and(|there| there.kind != Kind::Dir) {
            self.trash.take(dir, name)?;
        }
        match rustix::fs::mkdirat(dir, name, Mode::RWXU) {
            Err(Errno::EXIST) => Ok(()),
            done => Ok(done?),
        }
    }

    /// Hides what the workspace has in a directory that a trial replaced, name by name: what comes there later is seen. `names`
    /// are those of the trial.
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

/// Makes the mark of a file that was removed.
fn make_whiteout(dir: &Dir, name: &OsStr) -> io::Result<()> {
    let kind = FileType::CharacterDevice;
    Ok(rustix::fs::mknodat(dir, name, kind, Mode::empty(), 0)?)
}
