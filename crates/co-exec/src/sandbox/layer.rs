//! The layer of a trial: the directory that takes what the command writes in the workspace.

use std::fs::{self, FileTimes, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::plan::{Overlay, PathBytes};
use super::refused::SandboxRefusal;
use super::removal::remove_tree;
use crate::directory_lock::{lock, open, unlock};

/// The directory in a layer of the files that a trial changed, in the form of Linux's overlay file system.
pub const LAYER_FILES: &str = "upper";
/// The directory in a layer that the kernel needs for itself.
const WORK: &str = "work";

/// A layer that a command uses. No other command gets it meanwhile.
#[derive(Debug)]
pub(super) struct Layer {
    upper: PathBuf,
    /// Removed with this value, because the kernel leaves a directory there that its owner cannot list.
    work: PathBuf,
    /// Locked.
    held: OwnedFd,
}

impl Layer {
    /// Locks the layer of an overlay, and makes what is missing in it.
    ///
    /// # Errors
    /// Another command uses the layer, or the system refuses.
    pub(super) fn prepare(overlay: &Overlay) -> Result<Self, SandboxRefusal> {
        let upper = &overlay.upper.0;
        let dir = upper.parent().unwrap_or(upper);
        let refused = |error: io::Error| {
            SandboxRefusal::Unable(format!(
                "the place of what a trial writes, {}, cannot be used ({error}): make room there",
                dir.display()
            ))
        };
        let held = open(dir).map_err(refused)?;
        match lock(&held) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(SandboxRefusal::Unable(format!(
                    "another trial writes to {}: wait until it ends",
                    dir.display()
                )));
            }
            // A file system without locks.
            Ok(()) | Err(_) => {}
        }
        make(overlay).map_err(refused)?;
        Ok(Self {
            upper: upper.clone(),
            work: overlay.work.0.clone(),
            held,
        })
    }

    /// Returns the directory with what the command wrote.
    pub(super) fn upper(&self) -> &Path {
        &self.upper
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        remove_tree(&self.work);
        // A child of this process that starts just now has the descriptor, and would keep the lock.
        let _ = unlock(&self.held);
    }
}

/// Returns the overlay of a trial whose layer is `dir`.
pub(super) fn overlay(workspace: &Path, dir: &Path, ignored: Option<&Path>) -> Overlay {
    Overlay {
        at: PathBytes::from(workspace),
        lower: ignored
            .into_iter()
            .chain([workspace])
            .map(PathBytes::from)
            .collect(),
        upper: PathBytes::from(&dir.join(LAYER_FILES)),
        work: PathBytes::from(&dir.join(WORK)),
    }
}

/// Makes the directories of a layer that are missing.
fn make(overlay: &Overlay) -> io::Result<()> {
    let private = |path: &Path| fs::DirBuilder::new().mode(0o700).create(path);
    // The kernel refuses the one of an earlier overlay, which a process that was killed may have left.
    let work = &overlay.work.0;
    if work.exists() {
        remove_tree(work);
    }
    private(work)?;
    let upper = &overlay.upper.0;
    match private(upper) {
        // The workspace in the overlay has the mode and the times of this directory.
        Ok(()) => {
            let facts = overlay.at.0.metadata()?;
            let times = FileTimes::new().set_modified(facts.modified()?);
            let times = times.set_accessed(facts.accessed()?);
            fs::File::open(upper)?.set_times(times)?;
            let mode = facts.permissions().mode() & 0o7777;
            fs::set_permissions(upper, Permissions::from_mode(mode))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_free_at_once_also_beside_a_child_that_starts() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let overlay = overlay(&workspace, dir.path(), None);
        let layer = Layer::prepare(&overlay).unwrap();
        assert!(Layer::prepare(&overlay).is_err());
        let of_a_child = layer.held.try_clone().unwrap();
        drop(layer);
        Layer::prepare(&overlay).unwrap();
        drop(of_a_child);
    }
}
