//! The layer of a trial: the directory to which the command's changes of the workspace go.

use std::fs::{self, FileTimes, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::plan::{Overlay, PackageOverlay, PathBytes};
use super::removal::remove_tree;
use crate::directory_lock::{lock, open, unlock};
use crate::error::refusal::SandboxRefusal;

/// The subdirectory of a layer with the files that a trial changed, in the format of Linux's overlay file system.
pub const LAYER_FILES: &str = "upper";
/// The subdirectory of a layer with the changes of caches, in the format of Linux's overlay file system.
pub const LAYER_CACHES: &str = "caches";
/// The subdirectory of a layer with the packages that a trial downloaded, in the format of Linux's overlay file system. Packages
/// of earlier trials are in a directory of the same name, beside the caches, where no command can write.
pub const LAYER_DOWNLOADS: &str = "downloads";
/// The name of those subdirectories of a layer that the kernel needs as work directories of overlays.
const WORK: &str = "work";
const CACHES_WORK: &str = "caches-work";
const DOWNLOADS_WORK: &str = "downloads-work";

/// The layer of a running command. No other command can use it at the same time.
#[derive(Debug)]
pub(super) struct Layer {
    upper: PathBuf,
    /// The directories with caches and downloaded packages, and the directories of the layer with the command's changes of these
    /// caches and packages.
    caches: Vec<PathBuf>,
    /// The work directories of the kernel. They are removed on drop, because the kernel leaves subdirectories in them that even
    /// their owner cannot list.
    work: Vec<PathBuf>,
    /// The locked directory of the layer.
    held: OwnedFd,
}

impl Layer {
    /// Locks the layer, and creates missing directories in it. The first overlay covers the workspace, the others cover caches.
    /// The overlays in `downloads` cover directories of toolchains.
    ///
    /// # Errors
    /// Another command uses the layer, or the system refuses.
    pub(super) fn prepare(
        overlays: &[Overlay],
        downloads: &[PackageOverlay],
    ) -> Result<Self, SandboxRefusal> {
        let Some((first, of_caches)) = overlays.split_first() else {
            return Err(SandboxRefusal::Unable(
                "a trial needs an overlay".to_owned(),
            ));
        };
        let upper = &first.upper.0;
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
        let all = || {
            overlays
                .iter()
                .chain(downloads.iter().map(|it| &it.overlay))
        };
        for overlay in all() {
            make(overlay).map_err(refused)?;
        }
        for PackageOverlay { overlay, places } in downloads {
            for place in places {
                make_place(overlay, &place.0).map_err(refused)?;
            }
        }
        // The last lower one is of the person.
        let fetched = downloads.iter().map(|it| &it.overlay);
        let fetched = fetched.flat_map(|it| it.lower.iter().rev().skip(1).chain([&it.upper]));
        let caches = of_caches
            .iter()
            .flat_map(|it| it.lower.iter().chain([&it.upper]))
            .chain(fetched);
        Ok(Self {
            upper: upper.clone(),
            caches: caches.map(|path| path.0.clone()).collect(),
            work: all().map(|it| it.work.0.clone()).collect(),
            held,
        })
    }

    /// Returns the directory with the command's changes of the workspace.
    pub(super) fn upper(&self) -> &Path {
        &self.upper
    }

    /// Returns the directories with caches and downloaded packages, and the directories of the layer with the command's changes
    /// of these caches and packages.
    pub(super) fn caches(&self) -> &[PathBuf] {
        &self.caches
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        self.work.iter().for_each(|work| remove_tree(work));
        // A child of this process that starts just now has the descriptor, and would keep the lock.
        let _ = unlock(&self.held);
    }
}

/// Returns the overlay over the workspace for a trial with the layer `dir`.
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

/// Returns the overlay over the caches for a trial with the layer `dir`.
pub(super) fn over_caches(caches: &Path, dir: &Path) -> Overlay {
    Overlay {
        at: PathBytes::from(caches),
        lower: vec![PathBytes::from(caches)],
        upper: PathBytes::from(&dir.join(LAYER_CACHES)),
        work: PathBytes::from(&dir.join(CACHES_WORK)),
    }
}

/// Returns the overlay over a toolchain's directory `at` for a trial with the layer `dir`. `name` is the name of the
/// subdirectories for the toolchain's packages.
pub(super) fn over_downloads(at: &Path, caches: &Path, dir: &Path, name: &Path) -> Overlay {
    let left = caches.with_file_name(LAYER_DOWNLOADS).join(name);
    let left = left.is_dir().then_some(left);
    Overlay {
        at: PathBytes::from(at),
        lower: left
            .iter()
            .map(PathBytes::from)
            .chain([PathBytes::from(at)])
            .collect(),
        upper: PathBytes::from(&dir.join(LAYER_DOWNLOADS).join(name)),
        work: PathBytes::from(&dir.join(DOWNLOADS_WORK).join(name)),
    }
}

/// Creates the missing directories of an overlay in the layer.
fn make(overlay: &Overlay) -> io::Result<()> {
    let private = |path: &Path| fs::DirBuilder::new().mode(0o700).create(path);
    for path in [&overlay.upper.0, &overlay.work.0] {
        let above = path.parent().unwrap_or(path);
        fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(above)?;
    }
    // The kernel refuses the one of an earlier overlay, which a process that was killed may have left.
    let work = &overlay.work.0;
    if work.exists() {
        remove_tree(work);
    }
    private(work)?;
    let upper = &overlay.upper.0;
    match private(upper) {
        // The directory in the overlay has the mode and the times of this directory.
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

/// Creates a directory of packages inside the overlay if the person does not have that directory.
fn make_place(overlay: &Overlay, place: &Path) -> io::Result<()> {
    match place.strip_prefix(&overlay.at.0) {
        Ok(below) if !place.exists() => fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(overlay.upper.0.join(below)),
        _ => Ok(()),
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
        let overlays = [overlay(&workspace, dir.path(), None)];
        let layer = Layer::prepare(&overlays, &[]).unwrap();
        assert!(Layer::prepare(&overlays, &[]).is_err());
        let of_a_child = layer.held.try_clone().unwrap();
        drop(layer);
        Layer::prepare(&overlays, &[]).unwrap();
        drop(of_a_child);
    }
}
