//! The steps of a trial around its command: make the layer, read the changes, decide about the ignored files.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::DropGuard;

use super::changes::{Error, TrialChanges};
use super::layer::Layer;
use super::report::in_time;
use crate::blocking::blocking;
use crate::buffers::OpenBuffers;
use crate::checkpoint::{Change, Store, Undo};
use crate::workspace::judge::Judge;
use co_exec::sandbox::Removals;
use co_exec::{CommandOutcome, Confinement, Executor};

/// The directory of the layers of all trials.
pub struct Layers<'a> {
    pub dir: &'a Path,
    /// The most bytes of the files that trials leave for later ones.
    pub most_left: Option<u64>,
    pub removals: &'a Removals,
}

/// The place of one trial: its layer over a workspace. The layer is removed with the last copy.
#[derive(Clone)]
pub struct TrialPlace {
    pub(super) layer: Arc<Layer>,
    /// The judge of the workspace.
    pub(super) judge: Arc<Judge>,
    store: Arc<Store>,
}

impl TrialPlace {
    /// Makes the layer of a trial in the workspace of `judge`; see [`Layer::new`]. Copies of changed files will be in `store`.
    ///
    /// # Errors
    /// The layer cannot be made.
    pub fn new(judge: Arc<Judge>, store: Arc<Store>, layers: &Layers<'_>) -> io::Result<Self> {
        let layer = Layer::new(layers.dir, judge.root(), layers.most_left, layers.removals)?;
        Ok(Self {
            layer: Arc::new(layer.with_survey(judge.survey())),
            judge,
            store,
        })
    }

    /// Returns the confinement of the command.
    pub fn confinement(&self) -> Confinement {
        self.layer.confinement(self.root())
    }

    /// Returns the workspace, a real path.
    pub fn root(&self) -> &Path {
        self.judge.root()
    }

    /// Returns the store of the copies.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Reads the changes of the command, which must have ended, and makes texts of them with `show`. If this is dropped, nothing
    /// is kept.
    ///
    /// # Errors
    /// There are too many, it takes too long, or the layer or the store cannot be used.
    pub async fn read<T: Send + 'static>(
        &self,
        outcome: &CommandOutcome,
        executor: &Executor,
        show: impl FnOnce(&TrialChanges, &Store) -> T + Send + 'static,
    ) -> Result<(TrialChanges, T), String> {
        let place = self.clone();
        let mut changes = blocking(move || {
            let changes = place.changes();
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

    fn changes(&self) -> Result<TrialChanges, Error> {
        let allowed = self.judge.readable();
        TrialChanges::read(&self.layer, self.root(), &allowed, &self.store)
    }

    /// Returns a guard that drops the ignored files if it is dropped before they are left for later trials.
    pub fn guard(&self) -> DropGuard {
        self.layer.given_up.clone().drop_guard()
    }

    /// Decides about the ignored files when all changes are read; see [`TrialChanges::settle_ignored`]. It blocks on files.
    pub fn settle_ignored(&self, changes: &mut TrialChanges, may_stay: bool) {
        let allowed = self.judge.readable();
        changes.settle_ignored(may_stay, &self.layer, self.root(), &allowed);
    }

    /// Leaves the ignored files for later trials; see [`TrialChanges::leave_ignored`]. It blocks on files.
    pub fn leave_ignored(&self, changes: &mut TrialChanges) {
        changes.leave_ignored(&self.layer, self.root(), &self.judge.readable());
    }
}

/// Returns the plan that keeps changes of a trial in the workspace `root`. `open` has the buffers of the files. It blocks on
/// files.
pub fn keeping(changes: &[Change], root: &Path, store: &Store, open: &OpenBuffers) -> Undo {
    Undo::making(changes, root, store, open)
}
