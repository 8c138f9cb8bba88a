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

/// A command line that starts a confined or limited command, with the files that exist while it runs.
#[derive(Debug, Default)]
pub struct ConfinedCommand {
    pub argv: Vec<OsString>,
    /// The name of the confinement level, such as `none`, `read-only`, `workspace` or `trial`.
    pub level: &'static str,
    /// True if the command may use memory that processes share.
    pub(crate) may_share_memory: bool,
    /// The private temporary directory. Dropping it removes the directory; see [`PrivateTmp`].
    pub tmp: Option<Arc<PrivateTmp>>,
    /// True if the command has its own PID namespace. The started process, the launcher, stays outside it.
    pub(crate) pid_namespace: bool,
    /// The directory over which the command has a file system in memory. It may be the temporary directory.
    pub(super) memory: Option<PathBuf>,
    /// The file with the plan, which the launcher reads. `None` if no launcher starts the command.
    pub(super) plan: Option<PlanFile>,
    /// The gate at which the launcher waits after the secrets are hidden. `None` if there is no gate.
    pub(super) gate: Option<StartGate>,
    /// The granted paths that the command may write, if their disk usage is limited.
    pub(super) limited_places: Vec<PathBuf>,
    /// The layer of a trial.
    pub(super) layer: Option<Layer>,
    /// The watch for the workspace's secrets, if a model must not get them.
    pub(super) secrets: Option<SecretWatch>,
    /// The state, before the command, of the files that other programs run or read as configuration. co compares these files
    /// after the command.
    pub(super) watched: WatchedPaths,
    /// The placeholders of the command. Dropping them removes the placeholders that no other command needs.
    pub(super) _placeholders: Placeholders,
}

impl ConfinedCommand {
    /// Returns true if the command is a trial, whose changes go to a layer.
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

    /// Returns the descriptors that the launcher must inherit under the same numbers.
    pub(crate) fn inherited(&self) -> impl Iterator<Item = &OwnedFd> {
        let gate = self.gate.as_ref().map(StartGate::inherited);
        self.plan.as_ref().map(PlanFile::fd).into_iter().chain(gate)
    }

    /// Takes the gate, which the caller must open after the process has started. Returns `None` if there is no gate.
    pub(crate) fn take_gate(&mut self) -> Option<StartGate> {
        self.gate.take()
    }

    /// Makes the plan's descriptors inheritable by every process that this process starts from now on. Use it only for a command
    /// that this crate does not start itself.
    ///
    /// # Errors
    /// The system refuses.
    pub fn share_plan(&self) -> io::Result<()> {
        for plan in self.inherited() {
            rustix::io::fcntl_setfd(plan, rustix::io::FdFlags::empty())?;
        }
        Ok(())
    }

    /// Returns the private temporary directory if its files are on a disk, not in memory.
    pub(crate) fn tmp_on_disk(&self) -> Option<&Path> {
        let tmp = self.tmp.as_ref().map(|tmp| tmp.path());
        tmp.filter(|tmp| self.memory.as_deref() != Some(*tmp))
    }

    /// Returns the granted paths that the command may write, if their disk usage is limited.
    pub(crate) fn limited_places(&self) -> &[PathBuf] {
        &self.limited_places
    }

    /// Returns the directory over which the command has a file system in memory.
    pub(crate) fn memory(&self) -> Option<&Path> {
        self.memory.as_deref()
    }

    /// Returns the directory with a trial's changes of the workspace.
    pub(crate) fn changes(&self) -> Option<&Path> {
        self.layer.as_ref().map(Layer::upper)
    }

    /// Returns the directories with caches and downloaded packages, and the directories of the layer with a trial's changes of
    /// these caches and packages. The list is empty if there are no caches.
    pub(crate) fn caches(&self) -> &[PathBuf] {
        self.layer.as_ref().map_or(&[], Layer::caches)
    }

    /// Returns the watch for secrets that appear where the command can read them.
    pub(crate) fn secrets(&self) -> Option<&SecretWatch> {
        self.secrets.as_ref()
    }

    /// Returns the files that the command created or replaced and that other programs run or read as configuration.
    pub fn appeared(&self) -> Vec<PathBuf> {
        self.watched.changed()
    }
}
