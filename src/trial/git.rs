//! The changes below `.git`, which are not kept.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::git_index;
use super::tree::{self, Kind, Node, Tree};

/// The most bytes of a file that is compared. A larger one counts as changed.
const MOST_BYTES: u64 = 64 << 20;

/// Returns whether git takes a name for its own, also where the file system does not tell capital letters.
pub(super) fn is_it(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Returns whether the layer changes the `.git` at a path. An index that git only refreshed is no change.
pub(super) fn is_changed(layer: &Tree, workspace: &Tree, path: &Path) -> io::Result<bool> {
    let mut todo = vec![path.to_owned()];
    while let Some(path) = todo.pop() {
        let (Some(new_dir), old_dir) = (layer.parent(&path)?, workspace.parent(&path)?) else {
            continue;
        };
        let name = path.file_name().unwrap_or_default();
        let new = Node::of(&new_dir, name)?;
        let old = old_dir
            .as_ref()
            .map(|dir| Node::of(dir, name))
            .transpose()?
            .flatten();
        let (Some(new), Some(old), Some(old_dir)) = (new, old, old_dir) else {
            // Removing what is not there is no change.
            if new.is_some_and(|new| new.kind != Kind::Whiteout) {
                return Ok(true);
            }
            continue;
        };
        let same = match new.kind {
            _ if (new.kind, new.mode) != (old.kind, old.mode) => false,
            Kind::Dir => {
                let Some(dir) = layer.dir(&path)? else {
                    continue;
                };
                todo.extend(tree::names(&dir)?.iter().map(|name| path.join(name)));
                !tree::is_opaque(&dir)
            }
            Kind::Link => tree::target(&new_dir, name)? == tree::target(&old_dir, name)?,
            Kind::File => {
                let bytes = |dir| tree::bytes(dir, name, MOST_BYTES);
                match (bytes(&new_dir), bytes(&old_dir)) {
                    (Ok(new), Ok(old)) => {
                        new == old || name == "index" && git_index::is_same(&new, &old)
                    }
                    _ => false,
                }
            }
            Kind::Whiteout | Kind::Special(_) => false,
        };
        if !same {
            return Ok(true);
        }
    }
    Ok(false)
}
