//! Limits the disk space of the ignored files and caches of all workspaces.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, FileType, Stat, statat};

use super::held::{FILES, is_at, is_held};
use super::trash::Trash;
use crate::trial::tree::MOST_DEPTH;
use co_exec::beneath::Dir;
use co_exec::directory_lock::{self, lock};
use co_exec::sandbox::Removals;

/// The file with the number of bytes that a workspace takes. It is written after each trial of the workspace.
const SIZE: &str = "size";

/// The largest number of directories above a counted file. The topmost is [`FILES`] or the directory of caches.
const MOST_COUNTED_DEPTH: usize = MOST_DEPTH + 1;

/// The smallest number of bytes that co counts for a file. A smaller file counts as if it had this size.
const LEAST_ROOM: u64 = 4096;

/// The ignored files and caches that the trials of a workspace have left.
struct LeftFiles {
    name: OsString,
    bytes: u64,
    /// The time at which the last trial ended.
    used: SystemTime,
}

/// The result of removing the files that trials left.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    pub bytes: u64,
    /// The number of workspaces whose files were not removed because a trial uses them.
    pub in_use: usize,
}

/// Returns the number of bytes that the files of all workspaces take. `all` is their directory.
pub(in crate::trial) fn total(all: &Path) -> u64 {
    left(all).iter().map(|it| it.bytes).sum()
}

/// Removes the files of workspaces in which no trial runs.
///
/// # Errors
/// An error of the file system.
pub(in crate::trial) fn clear(all: &Path, removals: &Removals) -> io::Result<Cleared> {
    let mut trash = Trash::new(all, removals);
    let mut cleared = Cleared::default();
    for it in left(all) {
        match remove(all, &it, &mut trash)? {
            true => cleared.bytes += it.bytes,
            false => cleared.in_use += 1,
        }
    }
    Ok(cleared)
}

/// Writes down the size of the files in `top` after a trial of their workspace. Then removes the files of workspaces in which no
/// trial runs, until all files take at most `most` bytes. Workspaces whose files cannot be counted come first, then the workspace
/// with the oldest trial.
///
/// # Errors
/// An error of the file system.
pub(super) fn bound(
    all: &Path,
    top: &Path,
    most: Option<u64>,
    removals: &Removals,
) -> io::Result<()> {
    let (bytes, whole) = measure(top);
    match fs::write(top.join(SIZE), bytes.to_string()) {
        // Another process has removed them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        written => written?,
    }
    let Some(most) = most else {
        return Ok(());
    };
    let mut left = left(all);
    left.sort_by_key(|it| it.used);
    let mut total: u64 = left.iter().map(|it| it.bytes).sum();
    let mut trash = Trash::new(all, removals);
    let uncounted = left
        .iter()
        .position(|it| !whole && Some(&*it.name) == top.file_name());
    if let Some(at) = uncounted {
        let it = left.remove(at);
        if remove(all, &it, &mut trash)? {
            total -= it.bytes;
        }
    }
    for it in &left {
        if total <= most {
            break;
        }
        if remove(all, it, &mut trash)? {
            total -= it.bytes;
        }
    }
    Ok(())
}

/// Lists the files that the trials of each workspace left.
fn left(all: &Path) -> Vec<LeftFiles> {
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    let left = entries.filter_map(|entry| {
        let top = entry.path();
        // Other directories are being removed.
        top.join(FILES).symlink_metadata().ok()?;
        let size = top.join(SIZE);
        let noted = fs::read_to_string(&size)
            .ok()
            .and_then(|text| text.parse().ok());
        let dated = if noted.is_some() { &size } else { &top };
        Some(LeftFiles {
            used: dated.metadata().ok()?.modified().ok()?,
            bytes: noted.unwrap_or_else(|| measure(&top).0),
            name: entry.file_name(),
        })
    });
    left.collect()
}

/// Removes the files that the trials of a workspace left. Returns false if a trial uses the files.
fn remove(all: &Path, left: &LeftFiles, trash: &mut Trash<'_>) -> io::Result<bool> {
    let files = all.join(&left.name).join(FILES);
    let held = match directory_lock::open(&files) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        opened => opened?,
    };
    if !is_held(lock(&held))? || !is_at(&held, &files) {
        return Ok(false);
    }
    trash.take(&Dir::open_own(all)?, &left.name)?;
    Ok(true)
}

/// Returns the number of bytes that a directory takes on disk, and true if all files were counted. A file with several hard links
/// counts only once.
fn measure(top: &Path) -> (u64, bool) {
    let Ok(tree) = Dir::open_own(top) else {
        return (0, false);
    };
    let (mut bytes, mut whole, mut linked) = (0, true, HashSet::new());
    let (mut todo, mut closed) = (vec![PathBuf::new()], Vec::new());
    while let Some(path) = todo.pop() {
        let Ok(listed) = list(&tree, &path, &mut closed) else {
            whole = false;
            continue;
        };
        for (name, facts) in listed {
            if FileType::from_raw_mode(facts.st_mode).is_dir() {
                todo.push(path.join(name));
            } else if facts.st_nlink > 1 && !linked.insert((facts.st_dev, facts.st_ino)) {
                continue;
            }
            // In units of 512 bytes, whatever the file system's are. An empty file takes room too.
            bytes += (facts.st_blocks.cast_unsigned() * 512).max(LEAST_ROOM);
        }
    }
    for (path, mode) in closed.iter().rev() {
        // It may be gone.
        if let Ok(Some(dir)) = tree.find(path) {
            let _stays_open = dir.set_mode("", *mode);
        }
    }
    (bytes, whole)
}

/// Lists a directory. If a trial made it unreadable, makes it readable first, and adds it to `closed`.
fn list(
    tree: &Dir,
    path: &Path,
    closed: &mut Vec<(PathBuf, u32)>,
) -> io::Result<Vec<(OsString, Stat)>> {
    if path.components().count() > MOST_COUNTED_DEPTH {
        return Err(io::Error::other("it is too deep"));
    }
    let Some(dir) = tree.find(path)? else {
        // Another process has removed it.
        return Ok(Vec::new());
    };
    let mode = dir.itself()?.mode;
    if mode & 0o500 != 0o500 {
        dir.set_mode("", mode | 0o500)?;
        closed.push((path.to_owned(), mode));
    }
    let names = dir.names()?.into_iter();
    let facts = |name| {
        let facts = statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((name, facts))
    };
    Ok(names.filter_map(facts).collect())
}
