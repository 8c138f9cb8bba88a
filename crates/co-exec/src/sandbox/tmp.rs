//! The private temporary directories of commands. Each directory is locked while it is in use, and removed afterwards.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::removal::{Removals, remove_tree};
use crate::directory_lock::{lock, open};
use crate::repository::OUR_TMP;

/// The most bytes in the temporary directory of a read-only command, and in the shared memory of a trial.
pub(super) const MAX_BYTES: u64 = 512 << 20;
/// The most files and directories in a directory that is in memory.
pub(super) const MAX_FILES: u64 = 50_000;

/// The time for which an unlocked temporary directory must be unchanged before it is removed.
const MIN_PRUNE_AGE: Duration = Duration::from_secs(60);

/// A directory that only its owner may enter. Dropping it removes the directory: at once if it is empty, otherwise on a new
/// thread.
#[derive(Debug)]
pub struct PrivateTmp {
    path: PathBuf,
    /// The lock that is held while the directory is in use; see [`prune`].
    held: Option<OwnedFd>,
    removals: Removals,
}

impl PrivateTmp {
    pub(super) fn new(removals: &Removals) -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir(), removals)
    }

    /// Creates a directory with a new name in `parent`. Its path is canonical.
    ///
    /// # Errors
    /// The directory cannot be created or opened.
    pub fn new_in(parent: &Path, removals: &Removals) -> io::Result<Self> {
        let parent = parent.canonicalize()?;
        loop {
            let dir = tempfile::Builder::new()
                .prefix(OUR_TMP)
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(&parent)?;
            let path = dir.keep();
            if let Some(held) = hold(&path)? {
                return Ok(Self {
                    path,
                    held: Some(held),
                    removals: removals.clone(),
                });
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateTmp {
    fn drop(&mut self) {
        // Most commands leave no files.
        if fs::remove_dir(&self.path).is_err() {
            self.removals.start(&self.path, self.held.take());
        }
    }
}

/// Locks a new directory. Returns `None` if another process is removing it, because an unlocked directory looks like one that a
/// killed process left.
fn hold(path: &Path) -> io::Result<Option<OwnedFd>> {
    let held = match open(path) {
        Ok(held) => held,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match lock(&held) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        // On a file system without locks, nobody gets the lock, and nothing is removed.
        Ok(()) | Err(_) => {}
    }
    Ok(path.exists().then_some(held))
}

/// Removes temporary directories that killed processes left in the directory for temporary files. Ignores errors.
pub(crate) fn prune() {
    // One of an older release may not be locked yet.
    prune_directory(&std::env::temp_dir(), MIN_PRUNE_AGE);
}

/// Removes temporary directories that killed processes left in `parent`. Ignores errors.
pub fn prune_in(parent: &Path) {
    prune_directory(parent, Duration::ZERO);
}

fn prune_directory(parent: &Path, fresh: Duration) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let named = |entry: &fs::DirEntry| {
        entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(OUR_TMP.as_bytes())
    };
    for path in entries.filter(named).map(|entry| entry.path()) {
        if let Ok(held) = open(&path)
            && is_left(&held, fresh)
            && lock(&held).is_ok()
        {
            remove_tree(&path);
        }
    }
}

/// Returns true if a directory belongs to this user and its entries have not changed for the time `fresh`.
fn is_left(dir: &OwnedFd, fresh: Duration) -> bool {
    let facts = fs::metadata(itself(dir));
    facts.is_ok_and(|facts| {
        let age = facts.modified().ok().and_then(|at| at.elapsed().ok());
        facts.uid() == rustix::process::geteuid().as_raw() && age.is_some_and(|age| age >= fresh)
    })
}

/// Returns the path in `/proc` that leads to an open directory.
fn itself(dir: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", dir.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn nobody_else_may_enter_it() {
        let tmp = PrivateTmp::new(&Removals::default()).unwrap();
        assert_eq!(mode(tmp.path()), 0o700);
    }

    #[test]
    fn what_is_left_is_pruned_and_what_is_held_or_fresh_is_not() {
        let root = tempfile::tempdir().unwrap();
        let left = root.path().join("co-tmp-left");
        fs::create_dir_all(left.join("a")).unwrap();
        fs::set_permissions(left.join("a"), Permissions::from_mode(0o0)).unwrap();
        let elsewhere = root.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, root.path().join("co-tmp-link")).unwrap();
        let held = PrivateTmp::new_in(root.path(), &Removals::default()).unwrap();
        prune_directory(root.path(), MIN_PRUNE_AGE);
        assert!(left.exists());
        prune_directory(root.path(), Duration::ZERO);
        assert!(!left.exists() && held.path().exists() && elsewhere.exists());
        assert!(root.path().join("co-tmp-link").is_symlink());
    }
}
