//! Grants reading of a workspace except its secrets. A directory that contains a secret at any depth is granted entry by entry.
//! Any other directory is granted by one rule.
//!
//! Landlock rules belong to files and directories (inodes), not to names. So a file that replaces a secret is closed too. So is
//! another path to a secret, unless the path goes through a granted directory.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::super::plan::{OpenedDirectory, PathBytes};
use crate::secrets::Survey;

/// Returns the directories of a workspace that contain, at any depth, a path in `closed`: a path that the command must not read.
/// Each directory comes before its subdirectories. The list is empty if the workspace contains no such path.
pub(super) fn around(
    workspace: &Path,
    closed: &HashSet<&Path>,
    survey: &Survey,
) -> Vec<OpenedDirectory> {
    let opened: HashSet<&Path> = closed
        .iter()
        .flat_map(|path| path.ancestors().skip(1))
        .filter(|dir| dir.starts_with(workspace))
        .collect();
    if opened.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut todo: Vec<(PathBuf, usize)> = vec![(workspace.to_owned(), 0)];
    while let Some((dir, depth)) = todo.pop() {
        let name = if depth == 0 {
            Some(dir.as_os_str())
        } else {
            dir.file_name()
        };
        let mut this = OpenedDirectory {
            depth,
            name: PathBytes::from(name.unwrap_or_default()),
            ..OpenedDirectory::default()
        };
        // A directory whose entries are not known stays closed.
        let entries = survey.entries(&dir).unwrap_or_default();
        for (name, kind) in entries.iter() {
            let (path, name) = (dir.join(name), PathBytes::from(name));
            if closed.contains(path.as_path()) {
                continue;
            }
            if kind.is_file() {
                this.files.push(name);
            } else if kind.is_dir() && opened.contains(path.as_path()) {
                todo.push((path, depth + 1));
            } else if kind.is_dir() {
                this.dirs.push(name);
            }
        }
        found.push(this);
    }
    found
}
