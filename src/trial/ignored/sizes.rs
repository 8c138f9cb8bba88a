//! The room that the ignored files and caches of all workspaces take.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::FlockOperation;

use super::trash::Trash;
use super::{FILES, is_at, lock, open_dir};
use co_exec::sandbox::Removals;

/// The file with the number of bytes that a workspace takes, written after each of its trials.
const SIZE: &str = "size";

/// What the trials of a workspace left.
struct Left {
    name: OsString,
    bytes: u64,
    /// The end of the last trial.
    used: SystemTime,
}

/// The removal of what trials left.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    pub bytes: u64,
    /// The number of workspaces whose files stay, because a trial uses them.
    pub in_use: usize,
}

/// Returns the bytes of all workspaces, whose directory is `all`.
pub(in crate::trial) fn total(all: &Path) -> u64 {
    left(all).iter().map(|it| it.bytes).sum()
}

/// Removes what no trial uses.
///
/// # Errors
/// The file system refuses.
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

/// Notes the size of the workspace `top` after a trial. Then removes what no trial uses until all take at most `most` bytes. The
/// workspace with the oldest trial comes first.
///
/// # Errors
/// The file system refuses.
pub(super) fn bound(
    all: &Path,
    top: &Path,
    most: Option<u64>,
    removals: &Removals,
) -> io::Result<()> {
    match fs::write(top.join(SIZE), measure(top).to_string()) {
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

/// Lists what the trials of each workspace left.
fn left(all: &Path) -> Vec<Left> {
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
        Some(Left {
            used: dated.metadata().ok()?.modified().ok()?,
            bytes: noted.unwrap_or_else(|| measure(&top)),
            name: entry.file_name(),
        })
    });
    left.collect()
}

/// Removes what the trials of a workspace left. Returns false if a trial uses it.
fn remove(all: &Path, left: &Left, trash: &mut Trash<'_>) -> io::Result<bool> {
    let files = all.join(&left.name).join(FILES);
    let held = match open_dir(&files) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        opened => opened?,
    };
    if !lock(&held, FlockOperation::NonBlockingLockExclusive)? || !is_at(&held, &files) {
        return Ok(false);
    }
    trash.take(&open_dir(all)?, &left.name)?;
    Ok(true)
}

/// Returns the bytes of the disk that a directory takes. A file with several names counts once.
fn measure(dir: &Path) -> u64 {
    let (mut bytes, mut linked) = (0, HashSet::new());
    let mut todo: Vec<PathBuf> = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(facts) = entry.metadata() else {
                continue;
            };
            if facts.is_dir() {
                todo.push(entry.path());
            } else if facts.nlink() > 1 && !linked.insert((facts.dev(), facts.ino())) {
                continue;
            }
            // In units of 512 bytes, whatever the file system's are.
            bytes += facts.blocks() * 512;
        }
    }
    bytes
}
