//! Recognizes cache directories, whose content programs can create again. Nobody approves, keeps or takes back the content of a
//! cache directory, unless git tracks a part of it.

use std::ffi::OsStr;
use std::path::Path;

use super::git_index::IndexedFiles;

/// Directory names that only cache directories have.
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

/// Returns true if a directory with this name is a cache directory.
pub(crate) fn is_name(name: &OsStr) -> bool {
    NAMES.iter().any(|cache| name == *cache)
}

/// Returns true if a path is a cache directory, or is inside one. A cache directory in which git tracks files does not count.
/// `path` is relative to the workspace.
pub(crate) fn contain(path: &Path, is_dir: bool, tracked: &IndexedFiles<'_>) -> bool {
    let dirs = path.ancestors().skip(usize::from(!is_dir));
    let caches = dirs.filter(|dir| dir.file_name().is_some_and(is_name));
    // The uppermost one decides.
    caches.last().is_some_and(|cache| !tracked.has(cache))
}
