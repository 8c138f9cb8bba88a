//! Finds programs on a PATH.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// Finds the program `name` in the absolute directories of a PATH. Skips relative directories, because their meaning depends on
/// the working directory.
pub fn search(name: impl AsRef<Path>, path: &OsStr) -> Option<PathBuf> {
    search_all(name, path).next()
}

pub(crate) fn search_all(name: impl AsRef<Path>, path: &OsStr) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(move |dir| dir.join(name.as_ref()))
        .filter(|it| is_program(it))
}

pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}
