//! The paths of a trial: an overlay over the workspace, in which the command may write, and mounts that hide the secrets on top
//! of the overlay.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::plan::{Grant, MemoryDirectory, Mounts, PathBytes, ReplacedDirectory, Right};
use super::super::{layer, tmp};
use super::mount_points;
use super::packages;
use super::workspace_paths::{FoundPaths, GrantRequest, MAX_SECRET_RULES, WorkspacePaths, around};
use crate::confinement::level::OverlayPlaces;
use crate::error::refusal::{HidingRefusal, SandboxRefusal};
use crate::places::system;

/// Adds the mounts and grants of a trial to `found` and `grants`.
///
/// # Errors
/// The directories do not allow an overlay, or the secrets of the workspace cannot be hidden.
pub(super) fn add(
    kept: &WorkspacePaths,
    places: OverlayPlaces<'_>,
    request: &GrantRequest<'_>,
    found: &mut FoundPaths,
    grants: &mut BTreeSet<Grant>,
) -> Result<(), SandboxRefusal> {
    let workspace = &kept.real;
    let real = |dir: &Path| {
        dir.canonicalize().map_err(|error| {
            SandboxRefusal::Unable(format!(
                "the place of what a trial writes, {}, cannot be used ({error}): make it again",
                dir.display()
            ))
        })
    };
    let layer = real(places.layer)?;
    let ignored = places.ignored.map(real).transpose()?;
    let caches = places.caches.map(real).transpose()?;
    for dir in [&layer].into_iter().chain(&ignored).chain(&caches) {
        check_places(workspace, dir)?;
    }
    if !request.survey.is_some_and(|survey| survey.complete) {
        return Err(HidingRefusal::NotSurveyed(workspace.clone()).into());
    }
    let granted = request.level.places.into_iter();
    let granted = granted.flat_map(|it| it.read.iter().chain(&it.write));
    let granted: Vec<_> = granted.filter_map(|it| it.canonicalize().ok()).collect();
    let others = caches.iter().chain(&granted).map(PathBuf::as_path);
    let temporary = temporary(kept, others);
    let mut covered = temporary.iter().copied();
    let covered = covered.find(|place| request.tmp.starts_with(place));
    // The path of the private directory for the command.
    let tmp = covered.unwrap_or(request.tmp);
    let mut hidden = kept.hidden(request);
    hidden.by = Some(PathBytes::from(tmp));
    if hidden.paths.len() > MAX_SECRET_RULES {
        return Err(HidingRefusal::TooManyRules {
            workspace: workspace.clone(),
            rules: hidden.paths.len(),
        }
        .into());
    }
    around(
        workspace,
        Right::Write,
        &kept.secrets,
        grants,
        &mut Vec::new(),
    );
    let cached = caches.iter().map(PathBytes::from);
    grants.extend(cached.map(|dir| Grant(Right::Write, dir)));
    let packages = caches.as_ref().map(|caches| {
        let dirs = packages::TrialDirs {
            caches,
            layer: &layer,
        };
        packages::find(kept, request.env, dirs)
    });
    let packages = packages.unwrap_or_default();
    found.env.extend(packages.env);
    let memory = shared_memory([workspace, request.tmp]);
    grants.extend(
        memory
            .iter()
            .map(|dir| Grant(Right::Write, dir.path.clone())),
    );
    grants.extend(
        temporary
            .iter()
            .map(|place| Grant(Right::Write, PathBytes::from(place))),
    );
    if covered.is_some() {
        found.env.push(("TMPDIR".into(), tmp.into()));
    }
    let replaced = temporary.iter().map(|place| ReplacedDirectory {
        at: PathBytes::from(place),
        by: PathBytes::from(request.tmp),
    });
    found.mounts = Some(Mounts {
        memory,
        overlays: [layer::overlay(workspace, &layer, ignored.as_deref())]
            .into_iter()
            .chain(
                caches
                    .iter()
                    .map(|caches| layer::over_caches(caches, &layer)),
            )
            .collect(),
        downloads: packages.overlays,
        writable: covered
            .is_none()
            .then(|| PathBytes::from(tmp))
            .into_iter()
            .collect(),
        replaced: replaced.collect(),
        hidden,
        ..Mounts::default()
    });
    Ok(())
}

/// Returns the directories for temporary files that contain nothing that the command needs. The trial's private directory can be
/// mounted over these directories.
fn temporary<'a>(
    kept: &'a WorkspacePaths,
    others: impl Iterator<Item = &'a Path>,
) -> Vec<&'static Path> {
    let needed = kept.reads.iter().map(|Grant(_, path)| path.0.as_path());
    let needed: Vec<_> = needed
        .chain([&*kept.real, &*kept.home])
        .chain(others)
        .collect();
    let places = system::TEMPORARY.iter().map(Path::new);
    let is_free = |place: &&Path| {
        // On some systems one is a link to the other.
        let there = place.symlink_metadata().is_ok_and(|facts| facts.is_dir());
        there && !needed.iter().any(|path| path.starts_with(place))
    };
    places.filter(is_free).collect()
}

/// Returns a private directory for the shared memory of the command. Returns `None` if one of the paths `others` is inside the
/// directory of shared memory.
fn shared_memory(others: [&Path; 2]) -> Option<MemoryDirectory> {
    let path = Path::new(system::SHARED_MEMORY);
    let free = !others.iter().any(|other| other.starts_with(path));
    // On some systems it is a link.
    let there = path.symlink_metadata().is_ok_and(|facts| facts.is_dir());
    (free && there).then(|| MemoryDirectory {
        path: PathBytes::from(path),
        bytes: tmp::MAX_BYTES,
        files: tmp::MAX_FILES,
    })
}

/// Checks that an overlay over the workspace would show the whole workspace, and that no command could reach the layer through
/// the workspace.
fn check_places(workspace: &Path, dir: &Path) -> Result<(), SandboxRefusal> {
    let shown = workspace.display();
    if dir.starts_with(workspace) || workspace.starts_with(dir) {
        return Err(SandboxRefusal::Unable(format!(
            "{shown} and the place of what a trial writes, {}, are not apart: work in another directory",
            dir.display()
        )));
    }
    let mounted = mount_points::below(workspace).map_err(|error| {
        SandboxRefusal::Unable(format!(
            "co cannot see which file systems are mounted below {shown} ({error}): mount /proc"
        ))
    })?;
    match mounted {
        Some(mounted) => Err(SandboxRefusal::Unable(format!(
            "a file system is mounted at {}, and a trial in {shown} would not show it: unmount it, or run the \
             command without a trial",
            mounted.display()
        ))),
        None => Ok(()),
    }
}
