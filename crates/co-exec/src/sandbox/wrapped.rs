//! A command line that starts a confined command.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::appeared::WatchedPaths;
use super::layer::Layer;
use super::placeholder::Placeholders;
use super::plan::PlanFile;
use super::start_gate::StartGate;
use super::tmp::PrivateTmp;
use crate::confinement::NO_LEVEL;
use crate::secrets::exposure::SecretWatch;

/// A command line that starts a confined command, and the files that exist for it.
#[derive(Debug, Default)]
pub struct ConfinedCommand {
    pub argv: Vec<OsString>,
    /// The confinement: `none`, `read-only`, `workspace`, `trial`.
    pub level: &'static str,
    /// True if it may have memory that processes share.
    pub(crate) may_share_memory: bool,
    /// The private temporary directory, removed when this is dropped; see [`PrivateTmp`].
    pub tmp: Option<Arc<PrivateTmp>>,
    /// True if the command has its own PID namespace. Then the started process stays outside of it.
    pub(crate) pid_namespace: bool,
    /// The directory on which the command has a file system in memory. It may be the temporary directory.
    pub(super) memory: Option<PathBuf>,
    /// The plan that the launcher reads, if the launcher starts the command.
    pub(super) plan: Option<PlanFile>,
    /// The gate that the launcher waits at when secrets are hidden, if there is one.
    pub(super) gate: Option<StartGate>,
    /// The places of its own that it may change, if they are limited.
    pub(super) limited_places: Vec<PathBuf>,
    /// The layer of a trial.
    pub(super) layer: Option<Layer>,
    /// The secrets of the workspace, if a model must not get them.
    pub(super) secrets: Option<SecretWatch>,
    /// The files that other programs run or read as configuration.
    pub(super) watched: WatchedPaths,
    /// The placeholders of the command. When this is dropped, the placeholders that no other command needs are removed.
    pub(super) _placeholders: Placeholders,
}

impl ConfinedCommand {
    /// Returns whether it writes to a layer.
    pub(crate) fn is_trial(&self) -> bool {
        self.layer.is_some()
    }

    pub(super) fn plain(argv: Vec<OsString>) -> Self {
        Self {
            argv,
            level: NO_LEVEL,
            ..Self::default()
        }
    }

    /// Returns the descriptors that the process must inherit under the same numbers.
    pub(crate) fn inherited(&self) -> impl Iterator<Item = &OwnedFd> {
        let gate = self.gate.as_ref().map(StartGate::inherited);
        self.plan.as_ref().map(PlanFile::fd).into_iter().chain(gate)
    }

    /// Returns the gate to open when the process has started, if there is one.
    pub(crate) fn take_gate(&mut self) -> Option<StartGate> {
        self.gate.take()
    }

    /// Lets every process that this one starts from now on inherit the plan. Only for a command that this crate does
    /// not start itself.
    ///
    /// # Errors
    /// The system refuses.
    pub fn share_plan(&self) -> io::Result<()> {
        for plan in self.inherited() {
            rustix::io::fcntl_setfd(plan, rustix::io::FdFlags::empty())?;
        }
        Ok(())
    }

    /// Returns the private temporary directory if its files are on a disk.
    pub(crate) fn tmp_on_disk(&self) -> Option<&Path> {
        let tmp = self.tmp.as_ref().map(|tmp| tmp.path());
        tmp.filter(|tmp| self.memory.as_deref() != Some(*tmp))
    }

    /// Returns the places of its own that it may change, if they are limited.
    pub(crate) fn limited_places(&self) -> &[PathBuf] {
        &self.limited_places
    }

    /// Returns the directory on which the command has a file system in memory.
    pub(crate) fn memory(&self) -> Option<&Path> {
        self.memory.as_deref()
    }

    /// Returns the directory with a trial's changes of the workspace.
    pub(crate) fn changes(&self) -> Option<&Path> {
        self.layer.as_ref().map(Layer::upper)
    }

    /// Returns the directories of caches, and of a trial's changes of them. There are none if it has no caches.
    pub(crate) fn caches(&self) -> &[PathBuf] {
        self.layer.as_ref().map_or(&[], Layer::caches)
    }

    /// Returns the watch for secrets that appear where the command can read.
    pub(crate) fn secrets(&self) -> Option<&SecretWatch> {
        self.secrets.as_ref()
    }

    /// Returns the files that were made or replaced while the command ran, and that other programs run or read as configuration.
    pub fn appeared(&self) -> Vec<PathBuf> {
        self.watched.changed()
    }
}
