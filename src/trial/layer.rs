//! The directory that takes what a trial writes.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::tree::Time;
use crate::paths::private_dir;
use co_exec::sandbox::{LAYER_FILES, PrivateTmp, Removals, prune_in};

/// The longest wait for the clock of the file system.
const MAX_CLOCK_WAIT: Duration = Duration::from_millis(50);

/// The directory of what one trial writes, in the form of Linux's overlay file system. Dropping it removes it.
#[derive(Debug)]
pub struct Layer {
    /// Locked until it is removed.
    dir: PrivateTmp,
    start: Time,
}

/// The directory of the trial in it, which the executor locks while the trial runs.
const TRIAL: &str = "trial";

impl Layer {
    /// Makes the layer of a trial, below the directory `dir` of all layers. The trial must start after that.
    ///
    /// It blocks for some milliseconds, so that files that changed before are not taken for files that change during the
    /// trial.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(dir: &Path, removals: &Removals) -> io::Result<Self> {
        private_dir(dir).map_err(io::Error::other)?;
        let dir = PrivateTmp::new_in(dir, removals)?;
        let trial = dir.path().join(TRIAL);
        private_dir(&trial).map_err(io::Error::other)?;
        let changed = || {
            fs::set_permissions(&trial, Permissions::from_mode(0o700))?;
            let meta = fs::metadata(&trial)?;
            Ok::<_, io::Error>(Time(meta.ctime(), meta.ctime_nsec()))
        };
        let (begin, made) = (Instant::now(), changed()?);
        let mut start = changed()?;
        while start == made && begin.elapsed() < MAX_CLOCK_WAIT {
            std::thread::sleep(Duration::from_millis(1));
            start = changed()?;
        }
        Ok(Self { dir, start })
    }

    /// Returns the directory for [`co_exec::Confinement::Trial`].
    pub fn path(&self) -> PathBuf {
        self.dir.path().join(TRIAL)
    }

    /// Returns the directory of the changed files. A trial that did not start has none.
    pub(super) fn upper(&self) -> PathBuf {
        self.path().join(LAYER_FILES)
    }

    /// Returns a directory for files of co's own, which no command reaches.
    pub(super) fn scratch(&self, name: &str) -> io::Result<PathBuf> {
        let dir = self.dir.path().join(name);
        private_dir(&dir).map_err(io::Error::other)?;
        Ok(dir)
    }

    /// Returns the time before which no file changed during the trial.
    pub(super) fn start(&self) -> Time {
        self.start
    }

    /// Removes the layers in `dir` that killed processes left. Ignores errors.
    pub fn prune(dir: &Path) {
        prune_in(dir);
    }
}
