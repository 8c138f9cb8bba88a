//! The directory that takes the changes of a trial.

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

/// The most time of co's own work after a trial: to read its changes, and to leave its ignored files.
pub(super) const MOST_WORK: Duration = Duration::from_secs(10);

/// The longest wait for the clock of the file system.
const MAX_CLOCK_WAIT: Duration = Duration::from_millis(50);

/// The directory of the changes of one trial, in the form of Linux's overlay file system. Dropping it removes it.
#[derive(Debug)]
pub struct Layer {
    /// Locked until it is removed.
    dir: PrivateTmp,
    start: ChangeTime,
    /// The ignored files of earlier trials, below this layer.
    ignored: Option<IgnoredLayer>,
    /// The files of the workspace when the trial started.
    before: Arc<Survey>,
    /// The rules of ignored files in the workspace before the trial.
    rules: Arc<RulesBefore>,
    /// Cancelled if nobody waits for the trial any more.
    pub(super) given_up: CancellationToken,
    /// The time that is left for co's own work after the trial.
    pub(super) time_left: Mutex<Duration>,
}

/// The directory of the trial in it, which the executor locks while the trial runs.
const TRIAL: &str = "trial";
/// The directory of the ignored files that stay, beside the layers.
const IGNORED: &str = "ignored";

impl Layer {
    /// Makes the layer of a trial in the workspace `root`, a real path, below the directory `dir` of all layers. The trial
    /// must start after that. In the background, removes the layers that killed processes left. What trials leave for later
    /// ones takes at most `most_left` bytes.
    ///
    /// It blocks for some milliseconds, so that files that changed before are not taken for files that change during the
    /// trial.
    ///
    /// # Errors
    /// The layer cannot be made.
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

    /// Returns the same layer, which knows the files that the workspace has now. So a file that the person removes during the
    /// trial does not come back.
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

    /// Lets other trials change the ignored files that stay. This trial must have ended.
    pub fn release(&self) {
        if let Some(ignored) = &self.ignored {
            ignored.release();
        }
    }

    /// Leaves the ignored files and the caches of the trial, which must have ended, for later trials. `allowed` returns false for
    /// secrets. Returns false if they are dropped, because another trial runs, nobody waits for this one any more,
    /// the file system refuses, or it takes too long.
    ///
    /// All other changes of the trial must have been made in the workspace. Otherwise a build would take results for newer
    /// than the files that they were made of.
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

    /// Does a part of co's work after the trial, which must end at the given time.
    pub(super) fn work<T>(&self, work: impl FnOnce(Instant) -> T) -> T {
        let mut left = self.time_left.lock();
        let end = Instant::now() + *left;
        let done = work(end);
        *left = end.saturating_duration_since(Instant::now());
        done
    }

    /// Returns the time that is left for co's work after the trial.
    pub(super) fn time_left(&self) -> Duration {
        *self.time_left.lock()
    }

    /// Returns the directory of the layer, for [`Confinement::Trial`].
    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join(TRIAL)
    }

    /// Returns the directory of the changed files. The layer of a trial that did not start has none.
    pub(super) fn upper(&self) -> PathBuf {
        self.path().join(LAYER_FILES)
    }

    /// Returns whether ignored files of this trial can stay.
    pub(super) fn has_ignored(&self) -> bool {
        self.ignored.is_some()
    }

    /// Returns the rules of ignored files in the workspace before the trial.
    pub(super) fn rules(&self) -> &Arc<RulesBefore> {
        &self.rules
    }

    /// Returns the files of the workspace when the trial started. An empty survey knows none.
    pub(super) fn before(&self) -> &Arc<Survey> {
        &self.before
    }

    /// Returns the time before which no file changed during the trial.
    pub(super) fn start(&self) -> ChangeTime {
        self.start
    }

    /// Returns the bytes of the files that trials left for later ones, below the directory `dir` of all layers.
    pub fn bytes_left(dir: &Path) -> u64 {
        ignored::total(&dir.join(IGNORED))
    }

    /// Removes the files that trials left for later ones, unless a trial uses them, below the directory `dir` of all layers.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn clear(dir: &Path, removals: &Removals) -> io::Result<Cleared> {
        ignored::clear(&dir.join(IGNORED), removals)
    }

    /// Removes the layers in `dir` that killed processes left. Ignores errors.
    pub fn prune(dir: &Path) {
        prune_in(dir);
        prune_in(&dir.join(IGNORED));
    }
}
