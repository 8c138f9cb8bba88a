//! Lets a trial download packages of toolchains. Existing package directories get overlays. A toolchain whose home does not exist
//! gets a variable that moves its packages to the caches of trials.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::super::layer;
use super::super::plan::{Grant, PackageOverlay, PathBytes};
use super::mount_points;
use super::workspace_paths::WorkspacePaths;
use crate::places::home::{PackageRelocation, PackageTool, package_tools};

/// The directories in which a trial keeps changes.
#[derive(Clone, Copy)]
pub(super) struct TrialDirs<'a> {
    /// The directory with the caches of programs, over which the trial has an overlay.
    pub(super) caches: &'a Path,
    pub(super) layer: &'a Path,
}

/// The overlays and variables that let a trial download packages.
#[derive(Default)]
pub(super) struct TrialPackages {
    pub(super) overlays: Vec<PackageOverlay>,
    pub(super) env: Vec<(OsString, OsString)>,
}

/// An existing package directory of the person.
struct PackagePlace {
    name: &'static str,
    real: PathBuf,
}

/// Finds the overlays and variables for all toolchains. `env` is the environment of the command.
pub(super) fn find(
    kept: &WorkspacePaths,
    env: &[(OsString, OsString)],
    dirs: TrialDirs<'_>,
) -> TrialPackages {
    let mut found = TrialPackages::default();
    for tool in package_tools() {
        let variable = tool.relocation.variable();
        let named = kept.named.iter().find(|(name, _)| *name == variable);
        let home = named.map_or_else(|| kept.home.join(&tool.home), |(_, path)| path.clone());
        match home.canonicalize() {
            Ok(home) => found.overlays.extend(overlays(kept, tool, &home, dirs)),
            // In the workspace, its overlay takes it.
            Err(_) if home.starts_with(&kept.real) || home.symlink_metadata().is_ok() => {}
            Err(_) => found.env.extend(lead_to(tool, env, dirs.caches)),
        }
    }
    found
}

/// Returns the overlays for the package directories in the home of a toolchain. If some of these directories are missing, an
/// overlay over the whole home makes it possible to create them.
fn overlays(
    kept: &WorkspacePaths,
    tool: &'static PackageTool,
    home: &Path,
    dirs: TrialDirs<'_>,
) -> Vec<PackageOverlay> {
    let at = |name: &str| home.join(name);
    let is_missing = |name: &&str| at(name).symlink_metadata().is_err();
    let (missing, there): (Vec<_>, Vec<_>) = tool.places().partition(is_missing);
    let there = there.into_iter().filter_map(|name| {
        let real = at(name).canonicalize().ok()?;
        Some(PackagePlace { name, real })
    });
    let may_cover = !missing.is_empty() && can_cover(kept, home, dirs);
    // A link leads out of the home.
    let (covered, alone): (Vec<_>, Vec<_>) =
        there.partition(|it| may_cover && it.real == at(it.name));
    let over = |at: &Path, name: &Path| layer::over_downloads(at, dirs.caches, dirs.layer, name);
    let whole = may_cover.then(|| {
        let places = covered.iter().map(|it| it.name).chain(missing);
        PackageOverlay {
            overlay: over(home, tool.name.as_ref()),
            places: places.map(|name| PathBytes::from(&at(name))).collect(),
        }
    });
    let alone = alone.into_iter().filter(|it| is_free(kept, &it.real));
    let alone = alone.map(|it| {
        // The kernel refuses an overlay whose changes go to a directory in those of another one.
        let name = match may_cover {
            true => PathBuf::from(format!("{}-{}", tool.name, it.name)),
            false => Path::new(&tool.name).join(it.name),
        };
        PackageOverlay {
            overlay: over(&it.real, &name),
            places: vec![PathBytes::from(&it.real)],
        }
    });
    whole.into_iter().chain(alone).collect()
}

/// Returns true if a directory and the workspace do not contain each other, and the command can read the directory.
fn is_free(kept: &WorkspacePaths, place: &Path) -> bool {
    let mut reads = kept.reads.iter().map(|Grant(_, path)| &path.0);
    are_apart(place, &kept.real) && reads.any(|path| place.starts_with(path))
}

/// Returns true if an overlay over the home of a toolchain would show the whole home, and would hide nothing that the trial
/// needs.
fn can_cover(kept: &WorkspacePaths, home: &Path, dirs: TrialDirs<'_>) -> bool {
    let others = [&*kept.real, dirs.caches, dirs.layer];
    let mut secrets = kept.secrets.iter();
    others.iter().all(|other| are_apart(home, other))
        && !kept.home.starts_with(home)
        && !secrets.any(|secret| home.starts_with(secret))
        && mount_points::below(home).is_ok_and(|mounted| mounted.is_none())
}

fn are_apart(one: &Path, other: &Path) -> bool {
    !one.starts_with(other) && !other.starts_with(one)
}

/// Returns the variable that makes a toolchain keep its packages in the directory of caches.
fn lead_to(
    tool: &PackageTool,
    env: &[(OsString, OsString)],
    caches: &Path,
) -> Option<(OsString, OsString)> {
    let place = caches.join(&tool.name).into_os_string();
    let variable = OsStr::new(tool.relocation.variable());
    let value = match &tool.relocation {
        PackageRelocation::Home(_) | PackageRelocation::Packages(_) => place,
        PackageRelocation::JavaOption(_, option) => {
            // Maven divides the options at blanks.
            if place.as_encoded_bytes().iter().any(u8::is_ascii_whitespace) {
                return None;
            }
            let before = env.iter().rev().find(|(name, _)| name == variable);
            let mut all = before.map_or_else(OsString::new, |(_, value)| value.clone());
            all.extend([OsStr::new(" "), option.as_ref(), "=".as_ref(), &place]);
            all
        }
    };
    Some((variable.to_owned(), value))
}
