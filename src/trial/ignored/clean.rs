//! Removes the files that a trial must not see.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;

use super::trash::Trash;
use crate::trial::rules;
use crate::trial::tree;
use crate::workspace::files::ignore_rules::{self, IgnoreRules};
use crate::workspace::git_index::IndexedFiles;
use co_exec::beneath::{Dir, Kind, Node};
use co_exec::regular::ChangeTime;

/// Says whether [`clean`] removes the files, or only checks for them.
pub(super) enum CleanAction<'a, 'b> {
    Check,
    Remove(&'a mut Trash<'b>),
}

/// A directory to clean that also exists in the workspace.
struct DirToClean {
    path: PathBuf,
    /// The ignore rules of the directories above; none if everything below the directory is ignored.
    above: Option<IgnoreRules>,
}

/// Removes the files below `files` that hide a newer file of the workspace `root`, and the files that are no longer ignored.
/// Returns false if such a file remains.
///
/// Does not read a directory that does not exist in the workspace, because nothing below it can hide a file.
///
/// # Errors
/// The files cannot be read or removed.
pub(super) fn clean(
    files: &Path,
    root: &Path,
    mut action: CleanAction<'_, '_>,
) -> io::Result<bool> {
    let (layer, workspace) = (Dir::open_own(files)?, Dir::open(root)?);
    let mut todo = vec![DirToClean {
        path: PathBuf::new(),
        above: Some(IgnoreRules::above(root)),
    }];
    let mut visited = Vec::new();
    let tracked = IndexedFiles::of(root);
    while let Some(DirToClean { path, above }) = todo.pop() {
        let (Some(dir), Some(old_dir)) = (layer.find(&path)?, workspace.find(&path)?) else {
            continue;
        };
        let mode = dir.itself()?.mode;
        if mode & 0o700 != 0o700 {
            match action {
                CleanAction::Check => return Ok(false),
                CleanAction::Remove(_) => dir.set_mode("", mode | 0o700)?,
            }
        }
        let whole = root.join(&path);
        let text = |name: &Path| ignore_rules::text(&whole.join(name));
        let rules = above.map(|above| above.below(&whole, text));
        for name in dir.names()? {
            let Some(new) = dir.node(&name)? else {
                continue;
            };
            let inner = path.join(&name);
            let old = old_dir.node(&name)?;
            let is_dir = old.unwrap_or(new).kind == Kind::Dir;
            let is_ignored =
                (rules.as_ref()).is_none_or(|it| rules::ignore(it, &whole.join(&name), is_dir));
            let both = new.kind == Kind::Dir && old.is_some_and(|old| old.kind == Kind::Dir);
            let stays = match is_ignored {
                true if both => true,
                // What is tracked exists.
                true if old.is_some() && tracked.has(&inner) => false,
                true => !is_hidden_by(new, old, &workspace, &inner)?,
                false => both,
            };
            if !stays || tree::is_too_deep(&inner) {
                match &mut action {
                    CleanAction::Check => return Ok(false),
                    CleanAction::Remove(trash) => trash.take(&dir, &name)?,
                }
            } else if both {
                let above = rules.clone().filter(|_| !is_ignored);
                todo.push(DirToClean { path: inner, above });
            }
        }
        visited.push((path, mode, rules.is_some()));
    }
    if let CleanAction::Remove(_) = action {
        for (path, mode, only_above) in visited.into_iter().rev() {
            restore(&layer, &workspace, &path, mode, only_above)?;
        }
    }
    Ok(true)
}

/// Returns true if an entry of the layer is useless because of the workspace: the workspace has a newer file, or does not have
/// the file that the layer removes.
pub(super) fn is_hidden_by(
    new: Node,
    old: Option<Node>,
    workspace: &Dir,
    path: &Path,
) -> io::Result<bool> {
    match old {
        None => Ok(new.kind == Kind::Whiteout),
        Some(old) => match (new.kind, old.kind) {
            (Kind::Dir, Kind::Dir) => Ok(false),
            (_, Kind::Dir) => has_newer(workspace, path, new.changed()),
            _ => Ok(old.changed() >= new.changed()),
        },
    }
}

/// Returns true if a file at or below a path has changed since `since`.
fn has_newer(workspace: &Dir, path: &Path, since: ChangeTime) -> io::Result<bool> {
    let mut todo = vec![path.to_owned()];
    while let Some(path) = todo.pop() {
        let Some(dir) = workspace.find(&path)? else {
            continue;
        };
        if dir.itself()?.changed() >= since {
            return Ok(true);
        }
        // What cannot be read counts as changed.
        let Ok(names) = dir.names() else {
            return Ok(true);
        };
        for name in names {
            match dir.node(&name)? {
                Some(node) if node.kind == Kind::Dir => todo.push(path.join(name)),
                Some(node) if node.changed() >= since => return Ok(true),
                _ => {}
            }
        }
    }
    Ok(false)
}

/// Restores the mode of a directory, and gives it a time that is not earlier than the time of the workspace's directory. If
/// `only_above` is true, the directory itself is not ignored. Then an empty directory is removed, and any other directory gets
/// the mode and the time of the workspace's directory.
pub(super) fn restore(
    layer: &Dir,
    workspace: &Dir,
    path: &Path,
    mode: u32,
    only_above: bool,
) -> io::Result<()> {
    let Some(dir) = layer.find(path)? else {
        return Ok(());
    };
    let old = workspace.find(path)?;
    if only_above {
        let parent = tree::parent(layer, path)?;
        if let (Some(parent), Some(name)) = (parent, path.file_name())
            && rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok()
        {
            return Ok(());
        }
        if let Some(old) = old {
            return set_attributes(&dir, old.itself()?.mode, tree::modified(&old)?);
        }
    }
    let own = tree::modified(&dir)?;
    let old = old.map(|old| tree::modified(&old)).transpose()?;
    let latest = old.filter(|old| (old.tv_sec, old.tv_nsec) > (own.tv_sec, own.tv_nsec));
    set_attributes(&dir, mode, latest.unwrap_or(own))
}

/// Sets the mode and the time of a directory, if they differ.
pub(super) fn set_attributes(dir: &Dir, mode: u32, time: rustix::fs::Timespec) -> io::Result<()> {
    if tree::modified(dir)? != time {
        tree::set_modified(dir, time)?;
    }
    if dir.itself()?.mode != mode {
        dir.set_mode("", mode)?;
    }
    Ok(())
}
