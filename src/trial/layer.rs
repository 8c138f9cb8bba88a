//! The layer of a trial, which is the directory that receives its changes.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::ignored::{self, Cleared, EndedTrial, IgnoredLayer};
use super::rules::RulesBefore;
use crate::paths::{self, private_dir};
use crate::workspace::files::PathFilter;
use co_exec::regular::{ChangeTime, FileStamp};
use co_exec::sandbox::{
    LAYER_CACHES, LAYER_DOWNLOADS, LAYER_FILES, PrivateTmp, Removals, prune_in,
};
use co_exec::secrets::Survey;
use co_exec::{Confinement, GrantedPlaces};

/// The longest time of co's own work after a trial: to read its changes, and to leave its ignored files for later trials.
pub(super) const MOST_WORK: Duration = Duration::from_secs(10);

/// The longest time to wait until the clock of the file system advances.
const MAX_CLOCK_WAIT: Duration = Duration::from_millis(50);

/// The directory with the changes of one trial, in the format of Linux's overlay file system. It is removed when this value is
/// dropped.
#[derive(Debug)]
pub struct Layer {
    /// The directory. It is locked until it is removed.
    dir: PrivateTmp,
    start: ChangeTime,
    /// The ignored files of earlier trials, which are below this layer.
    ignored: Option<IgnoredLayer>,
    /// The survey of the workspace from the start of the trial.
    before: Arc<Survey>,
    /// The ignore rules of the workspace before the trial.
    rules: Arc<RulesBefore>,
    /// Cancelled if the caller no longer waits for the trial.
    pub(super) given_up: CancellationToken,
    /// The time that remains for co's own work after the trial.
    pub(super) time_left: Mutex<Duration>,
}

/// The name of the subdirectory that the executor uses for the trial, in the directory of the layer. The executor locks it while
/// the trial runs.
const TRIAL: &str = "trial";
/// The directory of the ignored files that trials leave. It is next to the layers.
const IGNORED: &str = "ignored";

impl Layer {
    /// Creates the layer of a trial below the directory `dir` of all layers. `root` is the canonical path of the workspace. The
    /// command of the trial must start after this function has returned. In the background, removes the layers that killed
    /// processes left. The files that trials leave for later trials take at most `most_left` bytes.
    ///
    /// Blocks for some milliseconds. Otherwise, files that changed just before could count as changed during the trial.
    ///
    /// # Errors
    /// The layer cannot be created.
    pub fn new(
        dir: &Path,
        root: &Path,
        most_left: Option<u64>,
        removals: &Removals,
    ) -> io::Result<Self> {
        private_dir(dir)?;
        let ignored = IgnoredLayer::open(&dir.join(IGNORED), root, most_left, removals);
        let all = dir.to_owned();
        // The next one removes what this thread leaves.
        let _thread = std::thread::Builder::new().spawn(move || Self::prune(&all));
        let made = PrivateTmp::new_in(dir, removals);
        let dir = made.map_err(|error| paths::Error::write(dir, error))?;
        let trial = dir.path().join(TRIAL);
        private_dir(&trial)?;
        let changed = || {
            fs::set_permissions(&trial, Permissions::from_mode(0o700))?;
            let meta = fs::metadata(&trial)?;
            Ok::<_, io::Error>(FileStamp::from(&meta).changed())
        };
        let (begin, made) = (Instant::now(), changed()?);
        let mut start = changed()?;
        while start == made && begin.elapsed() < MAX_CLOCK_WAIT {
            std::thread::sleep(Duration::from_millis(1));
            start = changed()?;
        }
        Ok(Self {
            dir,
            start,
            ignored,
            before: Arc::default(),
            rules: Arc::default(),
            given_up: CancellationToken::new(),
            time_left: Mutex::new(MOST_WORK),
        })
    }

    /// Returns the layer with a survey of the workspace. A file that the person removes during the trial then does not come back.
    #[must_use]
    pub fn with_survey(self, before: Arc<Survey>) -> Self {
        Self { before, ..self }
    }

    /// Returns the confinement of the trial.
    pub fn confinement(&self, root: &Path) -> Confinement {
        Confinement::Trial {
            workspace: root.to_owned(),
            layer: self.path(),
            ignored: self.ignored.as_ref().map(IgnoredLayer::path),
            caches: self.ignored.as_ref().map(IgnoredLayer::caches),
            places: GrantedPlaces::default(),
        }
    }

    /// Lets other trials change the ignored files. This trial must have ended.
    pub fn release(&self) {
        if let Some(ignored) = &self.ignored {
            ignored.release();
        }
    }

    /// Leaves the ignored files and the caches of the trial for later trials. The trial must have ended. `allowed` returns false
    /// for secret files. Returns false if the files are dropped: another trial runs, the caller no longer waits for this trial,
    /// the file system reports an error, or the move takes too long.
    ///
    /// All other changes of the trial must already have been made in the workspace. Otherwise, a build would treat its results as
    /// newer than their sources.
    pub(super) fn leave_ignored(&self, root: &Path, allowed: &PathFilter) -> bool {
        let ignored = self.ignored.as_ref().filter(|_| self.upper().exists());
        let left = self.work(|end| {
            let ended = EndedTrial {
                upper: self.upper(),
                caches: self.path().join(LAYER_CACHES),
                downloads: self.path().join(LAYER_DOWNLOADS),
                start: self.start,
                root,
                allowed,
                rules: &self.rules,
                given_up: &self.given_up,
                end,
            };
            ignored.map(|ignored| ignored.take(&ended)).transpose()
        });
        let left = left.inspect_err(|error| {
            tracing::warn!(%error, "the ignored files of a trial are dropped");
        });
        left.is_ok_and(|left| left == Some(true))
    }

    /// Calls `work` with the time at which `work` must end. Subtracts the time that `work` takes from the time that remains for
    /// co's own work after the trial.
    pub(super) fn work<T>(&self, work: impl FnOnce(Instant) -> T) -> T {
        let mut left = self.time_left.lock();
        let end = Instant::now() + *left;
        let done = work(end);
        *left = end.saturating_duration_since(Instant::now());
        done
    }

    /// Returns the time that remains for co's own work after the trial.
    pub(super) fn time_left(&self) -> Duration {
        *self.time_left.lock()
    }

    /// Returns the directory of the layer, for [`Confinement::Trial`].
    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join(TRIAL)
    }

    /// Returns the directory of the changed files. It does not exist if the trial did not start.
    pub(super) fn upper(&self) -> PathBuf {
        self.path().join(LAYER_FILES)
    }

    /// Returns true if ignored files of this trial can be left for later trials.
    pub(super) fn has_ignored(&self) -> bool {
        self.ignored.is_some()
    }

    /// Returns the ignore rules of the workspace before the trial.
    pub(super) fn rules(&self) -> &Arc<RulesBefore> {
        &self.rules
    }

    /// Returns the survey of the workspace from the start of the trial. The survey is empty if [`Self::with_survey`] was not
    /// called.
    pub(super) fn before(&self) -> &Arc<Survey> {
        &self.before
    }

    /// Returns the start time of the trial. Every change during the trial is later.
    pub(super) fn start(&self) -> ChangeTime {
        self.start
    }

    /// Returns the number of bytes that trials have left for later trials. `dir` is the directory of all layers.
    pub fn bytes_left(dir: &Path) -> u64 {
        ignored::total(&dir.join(IGNORED))
    }

    /// Removes the files that trials have left for later trials, unless a trial uses them. `dir` is the directory of all layers.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn clear(dir: &Path, removals: &Removals) -> io::Result<Cleared> {
        ignored::clear(&dir.join(IGNORED), removals)
    }

    /// Removes the layers in `dir` that killed processes left. Ignores errors.
    pub fn prune(dir: &Path) {
        prune_in(dir);
        prune_in(&dir.join(IGNORED));
    }
}
