//! Files for tests.

use std::fs;
use std::path::Path;

/// Writes a file below `dir`, and makes the directories above it.
pub(crate) fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
