//! The paths of a trial: an overlay over the workspace, in which the command may write, and its secrets, which are
//! hidden on top of it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::plan::{Grant, MemoryDirectory, Mounts, PathBytes, ReplacedDirectory, Right};
use super::super::{layer, tmp};
use super::workspace_paths::{FoundPaths, GrantRequest, MAX_SECRET_RULES, WorkspacePaths, around};
use crate::confinement::level::OverlayPlaces;
use crate::error::refusal::{HidingRefusal, SandboxRefusal};
use crate::places::{home, system};

/// Adds the mounts and grants of a trial to `found` and `grants`.
///
/// # Errors
/// The places do not allow an overlay, or the secrets of the workspace cannot be hidden.
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
    let temporary = temporary(kept, caches.as_deref());
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
    let downloads = caches.as_ref().map(|caches| {
        let over = |(at, name): (PathBuf, _)| layer::over_downloads(&at, caches, &layer, name);
        downloads(kept).map(over).collect()
    });
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
        downloads: downloads.unwrap_or_default(),
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

/// Returns the real paths of the places in which toolchains keep packages, with the names of these places. The command can read each.
fn downloads(kept: &WorkspacePaths) -> impl Iterator<Item = (PathBuf, &'static str)> {
    home::DOWNLOADS.iter().filter_map(|it| {
        let named = kept
            .named
            .iter()
            .find(|(name, _)| Some(*name) == it.variable);
        let above = named.map_or_else(|| kept.home.join(it.home), |(_, path)| path.clone());
        let place = above.join(it.below).canonicalize().ok()?;
        let mut reads = kept.reads.iter().map(|Grant(_, path)| &path.0);
        let is_free = !place.starts_with(&kept.real) && !kept.real.starts_with(&place);
        (is_free && reads.any(|path| place.starts_with(path))).then_some((place, it.name))
    })
}

/// Returns the places for temporary files that the private directory can cover: nothing that the command needs is there.
fn temporary(kept: &WorkspacePaths, caches: Option<&Path>) -> Vec<&'static Path> {
    let needed = kept.reads.iter().map(|Grant(_, path)| path.0.as_path());
    let needed: Vec<_> = needed
        .chain([&*kept.real, &*kept.home])
        .chain(caches)
        .collect();
    let places = system::TEMPORARY.iter().map(Path::new);
    let is_free = |place: &&Path| {
        // On some systems one is a link to the other.
        let there = place.symlink_metadata().is_ok_and(|facts| facts.is_dir());
        there && !needed.iter().any(|path| path.starts_with(place))
    };
    places.filter(is_free).collect()
}

/// Returns the directory for the shared memory of the command, unless one of these paths is there.
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

/// Checks that an overlay over the workspace shows all of it, and that no command reaches the layer through it.
fn check_places(workspace: &Path, dir: &Path) -> Result<(), SandboxRefusal> {
    let shown = workspace.display();
    if dir.starts_with(workspace) || workspace.starts_with(dir) {
        return Err(SandboxRefusal::Unable(format!(
            "{shown} and the place of what a trial writes, {}, are not apart: work in another directory",
            dir.display()
        )));
    }
    let mounts = std::fs::read("/proc/self/mountinfo").map_err(|error| {
        SandboxRefusal::Unable(format!(
            "co cannot see which file systems are mounted below {shown} ({error}): mount /proc"
        ))
    })?;
    match mounted_below(workspace, &mounts) {
        Some(mounted) => Err(SandboxRefusal::Unable(format!(
            "a file system is mounted at {}, and a trial in {shown} would not show it: unmount it, or run the \
             command without a trial",
            mounted.display()
        ))),
        None => Ok(()),
    }
}

/// Returns a mount point below `dir`, from the contents of `/proc/self/mountinfo`.
fn mounted_below(dir: &Path, mounts: &[u8]) -> Option<PathBuf> {
    let points = mounts.split(|byte| *byte == b'\n').filter_map(|line| {
        let field = line.split(|byte| *byte == b' ').nth(4)?;
        Some(unescaped(field))
    });
    let mut below = points.filter(|point| point.starts_with(dir) && point != dir);
    below.next()
}

/// Returns a path of `mountinfo`, in which spaces, tabs, newlines and backslashes are octal numbers.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let number = after.get(..3).filter(|_| *first == b'\\');
        let number =
            number.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(number.unwrap_or(*first));
        rest = if number.is_some() { &after[3..] } else { after };
    }
    OsStr::from_bytes(&bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_below_a_directory_is_found_by_its_real_name() {
        let mounts = b"\
22 1 0:5 / / rw - ext4 /dev/sda rw
23 22 0:6 / /w rw - ext4 /dev/sdb rw
24 22 0:7 / /work/a\\040b\\134 rw - tmpfs tmpfs rw
";
        let below = |dir: &str| mounted_below(Path::new(dir), mounts);
        assert_eq!(below("/work"), Some(PathBuf::from("/work/a b\\")));
        for dir in ["/w", "/wor", "/work/a b\\", "/work/a"] {
            assert_eq!(below(dir), None, "{dir}");
        }
    }
}
