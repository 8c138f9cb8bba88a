//! Sorts the changes below a `.git`: which of them co may keep.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::tree::{self, Kind, Node, Tree};
use crate::git::{Index, MOST_INDEX};

/// The most bytes of a file that is compared, apart from an index. A larger one counts as changed.
const MOST_BYTES: u64 = 64 << 20;

/// The names in a git directory that hold objects, refs, HEAD, the index, and the logs of them.
const KEPT: [&str; 8] = [
    "objects",
    "refs",
    "packed-refs",
    "HEAD",
    "index",
    "logs",
    "ORIG_HEAD",
    "COMMIT_EDITMSG",
];

/// Files that git makes of the others, or to which nothing refers later. Their changes are dropped.
const LEFT_OVER: [&str; 8] = [
    "gc.log",
    "gc.pid",
    "FETCH_HEAD",
    "AUTO_MERGE",
    "info/refs",
    "objects/info/packs",
    "objects/info/commit-graph",
    "objects/info/commit-graphs",
];

/// The changes of a `.git`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitState {
    Same,
    /// Only commits, refs, HEAD and the index may have changed.
    Keepable,
    Other,
}

/// Returns whether git takes a name for its own, also where the file system does not tell capital letters.
pub(super) fn is_it(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Returns the kind of the changes that the layer has at a path named `.git`. An index that git only refreshed is no change.
pub(super) fn state(layer: &Tree, workspace: &Tree, path: &Path) -> io::Result<GitState> {
    let mut state = GitState::Same;
    let mut todo = vec![path.to_owned()];
    let is_own = path == Path::new(".git");
    while let Some(path) = todo.pop() {
        if tree::is_too_deep(&path) {
            return Ok(GitState::Other);
        }
        let inner = path.strip_prefix(".git").unwrap_or(&path);
        let may_keep = is_own && may_keep(inner);
        let (Some(new_dir), old_dir) = (layer.parent(&path)?, workspace.parent(&path)?) else {
            continue;
        };
        let name = path.file_name().unwrap_or_default();
        let new = Node::of(&new_dir, name)?;
        let old = match &old_dir {
            Some(dir) => Node::of(dir, name)?,
            None => None,
        };
        let Some(new) = new else {
            continue;
        };
        let dir = match new.kind {
            Kind::Dir => layer.dir(&path)?,
            _ => None,
        };
        let is_read = may_keep || old.is_some_and(|it| it.kind == Kind::Dir);
        if let Some(dir) = dir.as_ref().filter(|_| is_read) {
            todo.extend(tree::names(dir)?.iter().map(|name| path.join(name)));
        }
        let same = match (old, &old_dir) {
            (Some(old), Some(old_dir)) => match new.kind {
                _ if (new.kind, new.mode) != (old.kind, old.mode) => false,
                Kind::Dir => dir.is_some_and(|dir| !tree::is_opaque(&dir)),
                Kind::Link => tree::target(&new_dir, name)? == tree::target(old_dir, name)?,
                Kind::File => {
                    let is_index = name == "index";
                    let most = if is_index { MOST_INDEX } else { MOST_BYTES };
                    let bytes = |dir| tree::bytes(dir, name, most);
                    match (bytes(&new_dir), bytes(old_dir)) {
                        (Ok(new), Ok(old)) => new == old || is_index && Index::are_same(&new, &old),
                        _ => false,
                    }
                }
                Kind::Whiteout | Kind::Special(_) => false,
            },
            // Removing what is not there is no change.
            _ => new.kind == Kind::Whiteout,
        };
        let usual = matches!(new.kind, Kind::File | Kind::Dir | Kind::Whiteout);
        match same {
            true => {}
            false if may_keep && usual => state = GitState::Keepable,
            false => return Ok(GitState::Other),
        }
    }
    Ok(state)
}

/// Returns whether a change of this path in the git directory may be one of commits, refs, HEAD or the index.
fn may_keep(path: &Path) -> bool {
    let left_over = LEFT_OVER.iter().any(|it| path.starts_with(it));
    let info = path.starts_with("objects/info") && path != Path::new("objects/info");
    left_over || !info && KEPT.iter().any(|it| path.starts_with(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_refs_head_and_the_index_may_be_kept() {
        for path in [
            "HEAD",
            "index",
            "objects/12/34",
            "objects/pack/pack-1.idx",
            "objects/info/commit-graph",
            "refs/heads/a",
            "logs/HEAD",
        ] {
            assert!(may_keep(Path::new(path)), "{path}");
        }
        for path in [
            "",
            "config",
            "hooks/pre-commit",
            "info/exclude",
            "info/attributes",
            "objects/info/alternates",
            "index.lock",
            "MERGE_HEAD",
            "rebase-merge/done",
            "modules/a/HEAD",
            "worktrees/a/HEAD",
            "commondir",
            "shallow",
        ] {
            assert!(!may_keep(Path::new(path)), "{path}");
        }
    }
}
