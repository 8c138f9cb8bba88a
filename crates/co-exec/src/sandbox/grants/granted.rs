//! Grants one command more paths than those that every command gets.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::super::plan::{Grant, PathBytes, Right};
use super::workspace_paths::{FoundPaths, WorkspacePaths, around};
use crate::confinement::level::GrantedPlaces;

/// Adds the existing paths in `places` to `found` and `grants`, by their canonical paths. Does not grant reading of secrets, of
/// co's own directories, and of the workspace, which has its own rules.
pub(super) fn add(
    places: &GrantedPlaces,
    kept: &WorkspacePaths,
    found: &mut FoundPaths,
    grants: &mut BTreeSet<Grant>,
) {
    let real = |path: &PathBuf| path.canonicalize().ok();
    let avoid: Vec<PathBuf> = kept.secrets.iter().chain([&kept.real]).cloned().collect();
    for path in places.read.iter().filter_map(real) {
        around(&path, Right::Read, &avoid, grants, &mut Vec::new());
    }
    for path in places.write.iter().filter_map(real) {
        let path = PathBytes::from(&path);
        if let Some(mounts) = &mut found.mounts {
            mounts.writable.push(path.clone());
        }
        grants.insert(Grant(Right::Write, path));
    }
}
