//! Directories of caches, which programs make again by themselves. Nobody approves, keeps or takes back what is in them, unless
//! git tracks some of it.

use std::ffi::OsStr;
use std::path::Path;

use super::git_index::IndexedFiles;

/// The names of directories that only caches have.
const NAMES: [&str; 11] = [
    "__pycache__",
    ".eslintcache",
    ".hypothesis",
    ".mypy_cache",
    ".parcel-cache",
    ".pyre",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".sass-cache",
    ".stylelintcache",
];

/// Returns whether a directory of this name is one of caches.
pub(crate) fn is_name(name: &OsStr) -> bool {
    NAMES.iter().any(|cache| name == *cache)
}

/// Returns whether a file, at a path below the workspace, is a directory of caches in which git tracks nothing, or is in one.
pub(crate) fn contain(path: &Path, is_dir: bool, tracked: &IndexedFiles<'_>) -> bool {
    let dirs = path.ancestors().skip(usize::from(!is_dir));
    let caches = dirs.filter(|dir| dir.file_name().is_some_and(is_name));
    // The uppermost one decides.
    caches.last().is_some_and(|cache| !tracked.has(cache))
}
