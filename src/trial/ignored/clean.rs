//! Removes the files that a trial must not see.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;

use super::trash::Trash;
use crate::trial::rules::{Rules, ignores_all};
use crate::trial::tracked::TrackedFiles;
use crate::trial::tree::{self, Kind, Node, Time, Tree};

/// The choice to remove the files, or only to look for them.
pub(super) enum Removes<'a, 'b> {
    No,
    Yes(&'a mut Trash<'b>),
}

/// A directory to clean that the workspace has too.
struct DirToClean {
    path: PathBuf,
    /// None if all below it is ignored.
    above: Option<Rules>,
}

/// Removes from `files` what hides a newer file of the workspace `root`, and what is not ignored any more. Returns false if such a
/// file is left.
///
/// A directory that the workspace does not have is not read: nothing below it can hide anything.
///
/// # Errors
/// The files cannot be read or removed.
pub(super) fn clean(files: &Path, root: &Path, mut removes: Removes<'_, '_>) -> io::Result<bool> {
    let (layer, workspace) = (Tree::open(files)?, Tree::open(root)?);
    let mut todo = vec![DirToClean {
        path: PathBuf::new(),
        above: Some(Rules::above(root)),
    }];
    let mut visited = Vec::new();
    let tracked = TrackedFiles::of(root);
    while let Some(DirToClean { path, above }) = todo.pop() {
        let (Some(dir), Some(old_dir)) = (layer.dir(&path)?, workspace.dir(&path)?) else {
            continue;
        };
        let mode = Node::itself(&dir)?.mode;
        if mode & 0o700 != 0o700 {
            match removes {
                Removes::No => return Ok(false),
                Removes::Yes(_) => tree::set_mode(&dir, mode | 0o700)?,
            }
        }
        let whole = root.join(&path);
        let rules = above.map(|above| above.below(&whole, true, &[&dir], true));
        for name in tree::names(&dir)? {
            let Some(new) = Node::of(&dir, &name)? else {
                continue;
            };
            let inner = path.join(&name);
            let old = Node::of(&old_dir, &name)?;
            let is_ignored =
                (rules.as_ref()).is_none_or(|it| it.ignore(&whole.join(&name), old, new));
            let is_new_dir = old.is_none() && new.kind == Kind::Dir;
            let is_ignored = is_ignored
                || is_new_dir && layer.dir(&inner)?.is_some_and(|dir| ignores_all(&[&dir]));
            let both = new.kind == Kind::Dir && old.is_some_and(|old| old.kind == Kind::Dir);
            let stays = match is_ignored {
                true if both => true,
                // What is tracked exists.
                true if old.is_some() && tracked.has(&inner) => false,
                true => !is_hidden_by(new, old, &workspace, &inner)?,
                false => both,
            };
            if !stays || tree::is_too_deep(&inner) {
                match &mut removes {
                    Removes::No => return Ok(false),
                    Removes::Yes(trash) => trash.take(&dir, &name)?,
                }
            } else if both {
                let above = rules.clone().filter(|_| !is_ignored);
                todo.push(DirToClean { path: inner, above });
            }
        }
        visited.push((path, mode, rules.is_some()));
    }
    if let Removes::Yes(_) = removes {
        for (path, mode, only_above) in visited.into_iter().rev() {
            restore(&layer, &workspace, &path, mode, only_above)?;
        }
    }
    Ok(true)
}

/// Returns whether the workspace has what was written later than a file of the layer, or what the layer removes is gone.
pub(super) fn is_hidden_by(
    new: Node,
    old: Option<Node>,
    workspace: &Tree,
    path: &Path,
) -> io::Result<bool> {
    match old {
        None => Ok(new.kind == Kind::Whiteout),
        Some(old) => match (new.kind, old.kind) {
            (Kind::Dir, Kind::Dir) => Ok(false),
            (_, Kind::Dir) => has_newer(workspace, path, new.changed),
            _ => Ok(old.changed >= new.changed),
        },
    }
}

/// Returns whether something at or below a path has changed since.
fn has_newer(workspace: &Tree, path: &Path, since: Time) -> io::Result<bool> {
    let mut todo = vec![path.to_owned()];
    while let Some(path) = todo.pop() {
        let Some(dir) = workspace.dir(&path)? else {
            continue;
        };
        if Node::itself(&dir)?.changed >= since {
            return Ok(true);
        }
        // What cannot be read counts as changed.
        let Ok(names) = tree::names(&dir) else {
            return Ok(true);
        };
        for name in names {
            match Node::of(&dir, &name)? {
                Some(node) if node.kind == Kind::Dir => todo.push(path.join(name)),
                Some(node) if node.changed >= since => return Ok(true),
                _ => {}
            }
        }
    }
    Ok(false)
}

/// Gives a directory its mode again, and a time that is not before that of the workspace. With `only_above`, it is not ignored
/// itself: then it has the mode and the time of the workspace, or is removed if it is empty.
pub(super) fn restore(
    layer: &Tree,
    workspace: &Tree,
    path: &Path,
    mode: u32,
    only_above: bool,
) -> io::Result<()> {
    let Some(dir) = layer.dir(path)? else {
        return Ok(());
    };
    let old = workspace.dir(path)?;
    if only_above {
        let parent = layer.parent(path)?;
        if let (Some(parent), Some(name)) = (parent, path.file_name())
            && rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok()
        {
            return Ok(());
        }
        if let Some(old) = old {
            return set_attributes(&dir, Node::itself(&old)?.mode, tree::modified(&old)?);
        }
    }
    let own = tree::modified(&dir)?;
    let old = old.map(|old| tree::modified(&old)).transpose()?;
    let latest = old.filter(|old| (old.tv_sec, old.tv_nsec) > (own.tv_sec, own.tv_nsec));
    set_attributes(&dir, mode, latest.unwrap_or(own))
}

/// Sets what differs of the mode and the time of a directory.
pub(super) fn set_attributes(
    dir: &OwnedFd,
    mode: u32,
    time: rustix::fs::Timespec,
) -> io::Result<()> {
    if tree::modified(dir)? != time {
        tree::set_modified(dir, time)?;
    }
    if Node::itself(dir)?.mode != mode {
        tree::set_mode(dir, mode)?;
    }
    Ok(())
}
