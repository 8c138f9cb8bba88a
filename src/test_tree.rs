//! Reads a whole directory, for the tests of the crate and of the program.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The content of a directory by relative path. Each entry has its file type and mode as one number, and its bytes.
pub(crate) type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

pub(crate) fn read(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let content = match meta.file_type() {
                kind if kind.is_symlink() => {
                    let target = fs::read_link(&path).unwrap();
                    target.into_os_string().into_encoded_bytes()
                }
                kind if kind.is_file() => fs::read(&path).unwrap_or_default(),
                _ => Vec::new(),
            };
            let below = path.strip_prefix(root).unwrap().to_owned();
            found.insert(below, (meta.mode(), content));
            if meta.is_dir() {
                todo.push(path);
            }
        }
    }
    found
}
