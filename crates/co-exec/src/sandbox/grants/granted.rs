//! The places that a command gets beside those of every command.

use std::collections::BTreeSet;

use super::super::plan::{Grant, PathBytes, Right};
use super::workspace_paths::FoundPaths;
use crate::confinement::level::GrantedPlaces;

/// Adds the places that exist to `found` and `grants`, by their real paths.
pub(super) fn add(places: &GrantedPlaces, found: &mut FoundPaths, grants: &mut BTreeSet<Grant>) {
    let reads = places.read.iter().map(|path| (Right::Read, path));
    let writes = places.write.iter().map(|path| (Right::Write, path));
    for (right, path) in reads.chain(writes) {
        let Ok(real) = path.canonicalize() else {
            continue;
        };
        let path = PathBytes::from(&real);
        if let (Right::Write, Some(mounts)) = (right, &mut found.mounts) {
            mounts.writable.push(path.clone());
        }
        grants.insert(Grant(right, path));
    }
}
