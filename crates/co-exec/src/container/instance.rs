//! One container of this process, with the state that its commands share.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::WORKSPACE_INSIDE;
use super::engine::Engine;
use super::mounts::{self, MountedPath};
use crate::error::engine::{EngineFault, FaultKind};
use crate::sandbox::{Placeholders, ProtectedPaths};
use crate::settings::container::ContainerSettings;

/// The use of a container: its workspace, and the kind of its commands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ContainerUse {
    pub(crate) workspace: PathBuf,
    /// True if the container is for read-only commands.
    pub(crate) read_only: bool,
}

/// A container. Dropping the last handle removes the container.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) engine: Engine,
    pub(crate) name: String,
    pub(super) purpose: ContainerUse,
    pub(super) mounted: Vec<MountedPath>,
    pub(super) settings: ContainerSettings,
    /// The placeholders that are covered by mounts of the container, so they must exist as long as the container.
    placeholders: Placeholders,
    removed: AtomicBool,
    /// True if a command ended in the container without a report.
    suspect: AtomicBool,
    /// True once co has told a person which programs the image lacks.
    told: AtomicBool,
    told_unwritable: AtomicBool,
}

impl Container {
    pub(super) fn new(
        engine: Engine,
        name: String,
        purpose: ContainerUse,
        settings: ContainerSettings,
        (mounted, placeholders): (Vec<MountedPath>, Placeholders),
    ) -> Self {
        Self {
            engine,
            name,
            purpose,
            mounted,
            settings,
            placeholders,
            removed: AtomicBool::new(false),
            suspect: AtomicBool::new(false),
            told: AtomicBool::new(false),
            told_unwritable: AtomicBool::new(false),
        }
    }

    /// Returns the path in the container of a file of the workspace. Returns `None` for a path outside the workspace.
    pub(crate) fn inside(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.purpose.workspace).ok()?;
        Some(match below.as_os_str().is_empty() {
            true => PathBuf::from(WORKSPACE_INSIDE),
            false => Path::new(WORKSPACE_INSIDE).join(below),
        })
    }

    /// Returns a secret that the container does not hide, because another program has moved or replaced the file since the
    /// container was created.
    pub(crate) fn unhidden(&self, protected: &ProtectedPaths) -> Option<PathBuf> {
        mounts::unhidden(protected, &self.mounted)
    }

    /// Returns the name of the container's image.
    pub(super) fn image(&self) -> &str {
        &self.settings.image
    }

    /// Calls the engine with these arguments, and returns its output.
    ///
    /// # Errors
    /// The engine does not start, fails, or does not answer.
    pub(super) async fn call<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<String, EngineFault> {
        self.engine.call(args, self.image()).await
    }

    /// Makes an error about this container.
    pub(super) fn fault(&self, kind: FaultKind, words: String) -> EngineFault {
        EngineFault {
            kind,
            engine: self.engine.name(),
            image: self.image().to_owned(),
            words,
        }
    }

    /// Returns the memory limit of the container in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.settings.memory
    }

    /// Returns the workspace. Also returns true if commands in the container are read-only.
    pub(crate) fn workspace(&self) -> (&Path, bool) {
        (&self.purpose.workspace, self.purpose.read_only)
    }

    /// Returns true at the first call only, so that co tells the person once that the container cannot write the workspace.
    pub(crate) fn tells_unwritable(&self) -> bool {
        !self.told_unwritable.swap(true, Ordering::Relaxed)
    }

    /// Marks the container as suspect. The next command then checks it, and starts or creates it again if necessary.
    pub(crate) fn suspect(&self) {
        self.suspect.store(true, Ordering::Relaxed);
    }

    /// Returns true if [`Self::suspect`] was called since the last call.
    pub(super) fn was_suspected(&self) -> bool {
        self.suspect.swap(false, Ordering::Relaxed)
    }

    /// Returns true at the first call only, so that co tells the person once which programs the image lacks.
    pub(crate) fn tells_missing(&self) -> bool {
        !self.told.swap(true, Ordering::Relaxed)
    }

    /// Removes the container with all its processes. Ignores errors of the engine.
    pub(crate) async fn remove(&self) {
        if !self.removed.swap(true, Ordering::Relaxed) {
            let args = ["rm", "--force", &self.name];
            let _ = self.call(&args).await;
        }
    }

    /// Records whether the container is already removed.
    pub(super) fn set_removed(&self, removed: bool) {
        self.removed.store(removed, Ordering::Relaxed);
    }

    /// Returns a sentence if the container's user may not write the workspace, judging by the mode of the workspace.
    pub(crate) fn unwritable(&self) -> Option<String> {
        let user = self.settings.user();
        let (uid, gid) = user.split_once(':').unwrap_or((&user, "0"));
        let (uid, gid): (u32, u32) = (uid.parse().ok()?, gid.parse().ok()?);
        let facts = self.purpose.workspace.metadata().ok()?;
        let mode = facts.mode();
        let may = match (facts.uid() == uid, facts.gid() == gid) {
            (true, _) => mode & 0o200,
            (false, true) => mode & 0o020,
            (false, false) => mode & 0o002,
        };
        (may == 0 && !self.purpose.read_only).then(|| {
            format!(
                "the user {user} of the container cannot write in {}; give that directory to this user, or set container_user",
                self.purpose.workspace.display()
            )
        })
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if *self.removed.get_mut() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (engine, name) = (self.engine.clone(), self.name.clone());
        let placeholders = std::mem::take(&mut self.placeholders);
        runtime.spawn(async move {
            let _ = engine.call(&["rm", "--force", &name], "").await;
            drop(placeholders);
        });
    }
}
