//! The ignored files that the trials of a workspace leave for later trials, such as the results of builds.
//!
//! These files are in a directory that has the form of a layer, between the workspace and the layer of each trial. So each trial
//! sees the newest version of a file, no matter whether an earlier trial or somebody else wrote it.

mod clean;
mod held;
mod merge;
mod sizes;
mod trash;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::clean::CleanAction;
use self::held::{FILES, is_at, is_held};
pub(super) use self::merge::EndedTrial;
use self::merge::{LayerPair, Merge};
pub use self::sizes::Cleared;
pub(super) use self::sizes::{clear, total};
use self::trash::Trash;
use crate::paths::{private_dir, workspace_name};
use co_exec::beneath::Dir;
use co_exec::directory_lock::{self, lock, lock_shared, unlock};
use co_exec::sandbox::{LAYER_DOWNLOADS, Removals};

/// The directory of the caches of programs. It is next to [`FILES`].
const CACHES: &str = "caches";
/// The file that exists while files of a trial are moved. It is next to [`FILES`] and [`CACHES`].
const MOVING: &str = "moving";

/// The longest time to wait for another trial that is starting or ending.
const MAX_START_WAIT: Duration = Duration::from_secs(2);
/// The longest time to wait for the last process of a trial that has just ended.
const MAX_END_WAIT: Duration = Duration::from_millis(100);
const RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// The ignored files of one workspace, below the layer of a trial.
#[derive(Debug)]
pub(super) struct IgnoredLayer {
    /// The directory that contains [`FILES`].
    top: PathBuf,
    /// Holds a shared lock until [`Self::release`].
    held: OwnedFd,
    /// The largest number of bytes of the ignored files of all workspaces.
    most: Option<u64>,
    removals: Removals,
}

impl IgnoredLayer {
    /// Opens the ignored files of the workspace `root`. The directory `all` contains the ignored files of all workspaces. Removes
    /// files that are older than the same file of the workspace, and files that are no longer ignored.
    ///
    /// Returns `None` if the trial must run without these files: another trial uses files that must be removed, or the file
    /// system reports an error. When the returned value is dropped, co removes files in the background until those of all
    /// workspaces take at most `most` bytes.
    pub(super) fn open(
        all: &Path,
        root: &Path,
        most: Option<u64>,
        removals: &Removals,
    ) -> Option<Self> {
        let opened = Self::try_open(all, root, most, removals);
        let problem = |error: &io::Error| tracing::warn!(%error, "no ignored files for a trial");
        opened.inspect_err(problem).ok().flatten()
    }

    fn try_open(
        all: &Path,
        root: &Path,
        most: Option<u64>,
        removals: &Removals,
    ) -> io::Result<Option<Self>> {
        let top = all.join(workspace_name(root));
        let files = top.join(FILES);
        let end = Instant::now() + MAX_START_WAIT;
        while Instant::now() < end {
            for dir in [&files, &top.join(CACHES)] {
                private_dir(dir)?;
            }
            let held = match directory_lock::open(&files) {
                // Another process has just removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let is_alone = is_held(lock(&held))?;
            if is_alone {
                if !is_at(&held, &files) {
                    continue;
                }
                let whole = !top.join(MOVING).exists();
                let mut trash = Trash::new(all, removals);
                if !whole || clean::clean(&files, root, CleanAction::Remove(&mut trash)).is_err() {
                    discard(&top, &mut trash)?;
                    continue;
                }
                // The kernel unlocks it in between, so another trial may come first. What that one leaves is new.
            }
            if is_held(lock_shared(&held))? && is_at(&held, &files) {
                let opened = Self {
                    top,
                    held,
                    most,
                    removals: removals.clone(),
                };
                let is_clean = is_alone || clean::clean(&files, root, CleanAction::Check)?;
                return Ok(is_clean.then_some(opened));
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
        Ok(None)
    }

    /// Returns the directory of the ignored files, for [`co_exec::Confinement::Trial`].
    pub(super) fn path(&self) -> PathBuf {
        self.top.join(FILES)
    }

    /// Returns the directory of the caches of programs, for [`co_exec::Confinement::Trial`].
    pub(super) fn caches(&self) -> PathBuf {
        self.top.join(CACHES)
    }

    /// Releases the lock, so that other trials can change the files. The trial must have ended.
    pub(super) fn release(&self) {
        // To close it is not enough: a child of this process that starts just now has the descriptor too.
        unlock(&self.held).ok();
    }

    /// Moves the ignored files of a trial into this directory. Returns false if the files are dropped: another trial uses this
    /// directory, or the caller no longer waits for this trial.
    ///
    /// If this process is killed meanwhile, only some of the files have been moved. Each of them is complete, but a build might
    /// treat old results as up to date. So the next trial removes all of the files.
    ///
    /// # Errors
    /// An error of the file system. No files of this trial stay then, and files of earlier trials may be removed too.
    pub(super) fn take(&self, ended: &EndedTrial<'_>) -> io::Result<bool> {
        self.release();
        let (files, marker) = (self.path(), self.top.join(MOVING));
        let mut trash = Trash::new(self.top.parent().unwrap_or(&self.top), &self.removals);
        let end = Instant::now() + MAX_END_WAIT;
        let held = loop {
            let held = directory_lock::open(&files)?;
            if is_held(lock(&held))? && is_at(&held, &files) {
                break held;
            }
            if Instant::now() >= end || ended.given_up.is_cancelled() {
                return Ok(false);
            }
            std::thread::sleep(RETRY_INTERVAL);
        };
        if ended.given_up.is_cancelled() {
            unlock(&held).ok();
            return Ok(false);
        }
        let ignored = LayerPair::open_ignored(ended, &files)?;
        let caches = LayerPair::open_whole(&ended.caches, &self.caches())?;
        let downloads = LayerPair::open_whole(&ended.downloads, &self.top.join(LAYER_DOWNLOADS))?;
        fs::File::create(&marker)?;
        let mut moved = Merge::new(ignored, ended.end, &mut trash).run();
        for place in [caches, downloads].into_iter().flatten() {
            moved = moved.and_then(|()| Merge::new(place, ended.end, &mut trash).run());
        }
        match &moved {
            Ok(()) => fs::remove_file(&marker)?,
            Err(_) => discard(&self.top, &mut trash)?,
        }
        unlock(&held).ok();
        moved.map(|()| true)
    }
}

impl Drop for IgnoredLayer {
    fn drop(&mut self) {
        self.release();
        let (top, most, removals) = (self.top.clone(), self.most, self.removals.clone());
        self.removals.run(move || {
            let all = top.parent().unwrap_or(&top);
            if let Err(error) = sizes::bound(all, &top, most, &removals) {
                tracing::warn!(%error, "the ignored files of trials may take too much room");
            }
        });
    }
}

/// Removes all files and caches of a workspace. The caller must hold the exclusive lock.
fn discard(top: &Path, trash: &mut Trash<'_>) -> io::Result<()> {
    let all = Dir::open_own(top)?;
    for name in [FILES, CACHES, LAYER_DOWNLOADS] {
        match trash.take(&all, name.as_ref()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    match fs::remove_file(top.join(MOVING)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
