//! The steps of a trial before and after its command: create the layer, read the changes, decide about the ignored files.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::DropGuard;

use super::changes::{Error, TrialChanges};
use super::layer::Layer;
use super::report::in_time;
use crate::blocking::blocking;
use crate::buffers::OpenBuffers;
use crate::checkpoint::{Change, Store, Undo};
use crate::workspace::judge::Judge;
use co_exec::sandbox::Removals;
use co_exec::secrets::Survey;
use co_exec::{CommandOutcome, Confinement, Executor};

/// The directory of the layers of all trials, and its limit.
pub struct Layers<'a> {
    pub dir: &'a Path,
    /// The largest number of bytes of the files that trials leave for later trials.
    pub most_left: Option<u64>,
    pub removals: &'a Removals,
}

/// The place of one trial: its layer over a workspace. The layer is removed when the last clone is dropped.
#[derive(Clone)]
pub struct TrialPlace {
    pub(super) layer: Arc<Layer>,
    /// The judge of the workspace.
    pub(super) judge: Arc<Judge>,
    store: Arc<Store>,
}

impl TrialPlace {
    /// Creates the layer of a trial in the workspace of `judge`; see [`Layer::new`]. Then calls `survey`, which must return an
    /// up-to-date survey of the workspace: a file that the person makes before the start of the layer must be in it. Changed
    /// files will be copied to `store`.
    ///
    /// # Errors
    /// The layer cannot be created.
    pub fn new(
        judge: Arc<Judge>,
        store: Arc<Store>,
        layers: &Layers<'_>,
        survey: impl FnOnce(&Judge) -> Arc<Survey>,
    ) -> io::Result<Self> {
        let layer = Layer::new(layers.dir, judge.root(), layers.most_left, layers.removals)?;
        Ok(Self {
            layer: Arc::new(layer.with_survey(survey(&judge))),
            judge,
            store,
        })
    }

    /// Returns the confinement of the command.
    pub fn confinement(&self) -> Confinement {
        self.layer.confinement(self.root())
    }

    /// Returns the canonical path of the workspace.
    pub fn root(&self) -> &Path {
        self.judge.root()
    }

    /// Returns the store of the copies.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Reads the changes of the command, and makes texts of them with `show`. The command must have ended. If the returned future
    /// is dropped, no change is kept.
    ///
    /// # Errors
    /// There are too many changes, reading takes too long, or the layer or the store cannot be used.
    pub async fn read<T: Send + 'static>(
        &self,
        outcome: &CommandOutcome,
        executor: &Executor,
        show: impl FnOnce(&TrialChanges, &Store) -> T + Send + 'static,
    ) -> Result<(TrialChanges, T), String> {
        let (place, ended) = (self.clone(), outcome.ended_or_now());
        let mut changes = blocking(move || {
            let changes = place.changes(ended);
            place.layer.release();
            changes
        })
        .await?;
        // What git says may have a secret too, if the output has one.
        if !outcome.withheld && changes.git.has_commits() {
            changes.git.head = self.head(executor).await;
        }
        let store = Arc::clone(&self.store);
        in_time(&self.layer, move || {
            let shown = show(&changes, &store);
            (changes, shown)
        })
        .await
    }

    /// Reads the changes of a command that has ended at the time `ended`.
    fn changes(&self, ended: Instant) -> Result<TrialChanges, Error> {
        let allowed = self.judge.readable_since(ended);
        TrialChanges::read(&self.layer, self.root(), &allowed, &self.store)
    }

    /// Returns a guard. If the guard is dropped before the ignored files were left for later trials, the ignored files are
    /// dropped.
    pub fn guard(&self) -> DropGuard {
        self.layer.given_up.clone().drop_guard()
    }

    /// Decides about the ignored files after all changes were read; see [`TrialChanges::settle_ignored`]. Blocks on files.
    pub fn settle_ignored(&self, changes: &mut TrialChanges, may_stay: bool) {
        changes.settle_ignored(may_stay, &self.layer, self.root(), || self.judge.readable());
    }

    /// Leaves the ignored files for later trials; see [`TrialChanges::leave_ignored`]. Blocks on files.
    pub fn leave_ignored(&self, changes: &mut TrialChanges) {
        changes.leave_ignored(&self.layer, self.root(), || self.judge.readable());
    }
}

/// Returns the plan that makes changes of a trial in the workspace `root`. `open` contains the buffers of the files. Blocks on
/// files.
pub fn keeping(changes: &[Change], root: &Path, store: &Store, open: &OpenBuffers) -> Undo {
    Undo::making(changes, root, store, open)
}
