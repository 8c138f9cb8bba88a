//! Finds symbolic links that would let a git directory show contents of another repository.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::beneath;

/// The reason why co does not trust the git directories of a workspace, as a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Untrusted(pub String);

/// The directories in a git directory whose files git shows.
const SHOWN_DIRECTORIES: [&str; 4] = ["objects", "refs", "logs", "reftable"];
/// The most directory entries that one check reads.
const MAX_ENTRIES: usize = 200_000;
/// The most directories in [`KNOWN`].
const MAX_KNOWN: usize = 50_000;
/// The time after a change within which another change may leave the stamp of a directory unchanged.
const MIN_STABLE_AGE: Duration = Duration::from_secs(2);

/// The directories that contain no symbolic links, each with the stamp that it had at the check.
static KNOWN: LazyLock<Mutex<HashMap<PathBuf, LinklessDirectory>>> = LazyLock::new(Mutex::default);

struct LinklessDirectory {
    stamp: DirectoryStamp,
    below: Vec<PathBuf>,
}

/// The identity of a directory and the time of its last change. The stamp changes when the list of entries changes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct DirectoryStamp {
    device: u64,
    inode: u64,
    seconds: i64,
    nanos: i64,
}

impl DirectoryStamp {
    fn of(path: &Path) -> Option<Self> {
        let meta = path.metadata().ok().filter(std::fs::Metadata::is_dir)?;
        Some(Self {
            device: meta.dev(),
            inode: meta.ino(),
            seconds: meta.ctime(),
            nanos: meta.ctime_nsec(),
        })
    }

    fn is_settled(self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH);
        let changed = Duration::from_secs(self.seconds.try_into().unwrap_or(u64::MAX));
        now.is_ok_and(|now| now > changed.saturating_add(MIN_STABLE_AGE))
    }
}

/// Refuses symbolic links below the git directory `dir` that lead out of it.
///
/// Skips a directory that had no symbolic links at the last check, as long as its stamp is the same.
pub(super) fn check_links(dir: &Path, now: SystemTime) -> Result<(), Untrusted> {
    let mut known = KNOWN.lock();
    let mut todo = SHOWN_DIRECTORIES.map(|name| dir.join(name)).to_vec();
    let mut seen = HashSet::new();
    let mut left = MAX_ENTRIES;
    while let Some(at) = todo.pop() {
        let Some(stamp) = DirectoryStamp::of(&at) else {
            continue;
        };
        if let Some(linkless) = known.get(&at)
            && linkless.stamp == stamp
        {
            todo.extend_from_slice(&linkless.below);
            continue;
        }
        // Links may form a circle.
        if !seen.insert(at.clone()) {
            continue;
        }
        let mut below = Vec::new();
        let mut links = false;
        for (name, kind) in beneath::list_real(&at) {
            left = left.checked_sub(1).ok_or_else(|| too_many(dir))?;
            let path = at.join(name);
            if kind.is_symlink() {
                links = true;
                todo.extend(target(&path, dir)?);
            } else if kind.is_dir() {
                below.push(path);
            }
        }
        todo.extend_from_slice(&below);
        if !links && stamp.is_settled(now) {
            if known.len() >= MAX_KNOWN {
                known.clear();
            }
            known.insert(at, LinklessDirectory { stamp, below });
        }
    }
    Ok(())
}

/// Returns the target of a symbolic link in `dir` if the target is a directory. Refuses a target outside `dir`.
pub(super) fn target(link: &Path, dir: &Path) -> Result<Option<PathBuf>, Untrusted> {
    match link.canonicalize() {
        Ok(path) if path.starts_with(dir) => Ok(path.is_dir().then_some(path)),
        _ => Err(Untrusted(format!(
            "`{}` is a link that leads out of the repository",
            link.display()
        ))),
    }
}

fn too_many(dir: &Path) -> Untrusted {
    Untrusted(format!(
        "`{}` holds too many files to look for links among them: run `git gc`",
        dir.display()
    ))
}
