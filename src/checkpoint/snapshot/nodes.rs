//! The files of a snapshot, in little memory.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::checkpoint::change::Entry;
use co_exec::regular::FileStamp;

/// A file or directory of a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Known {
    pub(super) stamp: FileStamp,
    /// Every later change changes the stamp.
    pub(super) settled: bool,
    pub(super) entry: Entry,
}

/// Files by their paths in the workspace. Clones share the directories in which nothing has changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Nodes {
    /// The files directly in each directory, in the order of their names. The path of the workspace is empty.
    dirs: BTreeMap<Box<str>, Arc<Vec<Named>>>,
    len: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Named {
    name: Box<str>,
    node: Known,
}

impl Nodes {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, path: &str) -> Option<&Known> {
        let (dir, name) = split(path);
        let files = self.dirs.get(dir)?;
        let at = place(files, name).ok()?;
        Some(&files[at].node)
    }

    pub(super) fn insert(&mut self, path: &str, node: Known) {
        let (dir, name) = split(path);
        let files = match self.dirs.get_mut(dir) {
            Some(files) => files,
            None => self.dirs.entry(dir.into()).or_default(),
        };
        let files = Arc::make_mut(files);
        match place(files, name) {
            Ok(at) => files[at].node = node,
            Err(at) => {
                let name = name.into();
                files.insert(at, Named { name, node });
                self.len += 1;
            }
        }
    }

    pub(super) fn remove(&mut self, path: &str) {
        let (dir, name) = split(path);
        let Some(files) = self.dirs.get_mut(dir) else {
            return;
        };
        if let Ok(at) = place(files, name) {
            Arc::make_mut(files).remove(at);
            self.len -= 1;
        }
        if files.is_empty() {
            self.dirs.remove(dir);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (String, &Known)> {
        (self.dirs.iter()).flat_map(|(dir, files)| files_of(dir, files))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Known> {
        let files = self.dirs.values().flat_map(|files| files.iter());
        files.map(|file| &file.node)
    }

    /// Returns the paths directly in a directory.
    pub(super) fn children(&self, dir: &str) -> impl Iterator<Item = String> {
        let found = self.dirs.get_key_value(dir);
        let files = found
            .into_iter()
            .flat_map(|(dir, files)| files_of(dir, files));
        files.map(|(path, _)| path)
    }

    /// Returns the paths in a directory and in those below it.
    pub(super) fn below(&self, dir: &str) -> impl Iterator<Item = String> {
        let inner = format!("{dir}/");
        let from = (Bound::Included(inner.as_str()), Bound::Unbounded);
        let deeper = self.dirs.range::<str, _>(from);
        let deeper = deeper.take_while(move |(it, _)| it.starts_with(&inner));
        let deeper = deeper.flat_map(|(dir, files)| files_of(dir, files));
        self.children(dir).chain(deeper.map(|(path, _)| path))
    }

    /// Returns the files of the directories that are not the same in `other`, with those that `other` has in their place.
    pub(super) fn beside<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (String, &'a Known, Option<&'a Known>)> {
        let differ = self.dirs.iter().filter(|(dir, files)| {
            let others = other.dirs.get(*dir);
            !others.is_some_and(|others| Arc::ptr_eq(files, others))
        });
        let files = differ.flat_map(|(dir, files)| files_of(dir, files));
        files.map(|(path, node)| {
            let others = other.get(&path);
            (path, node, others)
        })
    }

    /// Adds the files of `older` that are missing.
    pub(super) fn add_missing(&mut self, older: Self) {
        for (path, node) in older.iter() {
            if self.get(&path).is_none() {
                self.insert(&path, node.clone());
            }
        }
    }

    /// Shares the directories in which nothing is different with an older snapshot, and gives back the room that is left in the
    /// others.
    pub(super) fn share_with(&mut self, older: &Self) {
        for (dir, files) in &mut self.dirs {
            match older.dirs.get(dir) {
                Some(same) if same == files => *files = Arc::clone(same),
                _ => Arc::make_mut(files).shrink_to_fit(),
            }
        }
    }
}

/// Returns the directory that a path is in, and the name in it.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn place(files: &[Named], name: &str) -> Result<usize, usize> {
    files.binary_search_by(|file| (*file.name).cmp(name))
}

fn files_of<'a>(dir: &'a str, files: &'a [Named]) -> impl Iterator<Item = (String, &'a Known)> {
    let prefix = below(dir);
    files
        .iter()
        .map(move |file| (format!("{prefix}{}", file.name), &file.node))
}

/// Returns the beginning of the paths in a directory.
pub(super) fn below(dir: &str) -> String {
    match dir {
        "" => String::new(),
        dir => format!("{dir}/"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::checkpoint::change::Entry;
    use co_exec::regular::FileStamp;

    /// Returns something that differs by its number.
    fn known(mode: u32) -> Known {
        Known {
            stamp: FileStamp::of("/".as_ref()).unwrap(),
            settled: true,
            entry: Entry::Dir { mode },
        }
    }

    fn path() -> impl Strategy<Value = String> {
        let name = proptest::sample::select(vec!["a", "b", "a-b", "b c", "ä"]);
        proptest::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
    }

    proptest! {
        #[test]
        fn they_are_like_a_plain_map(
            steps in proptest::collection::vec((path(), 0..4_u32), 0..60),
            changes in proptest::collection::vec((path(), 0..4_u32), 0..6),
        ) {
            let (mut nodes, mut plain) = (Nodes::default(), BTreeMap::new());
            let apply = |nodes: &mut Nodes, plain: &mut BTreeMap<String, Known>, steps| {
                for (path, mode) in steps {
                    let path: String = path;
                    match mode {
                        0 => {
                            nodes.remove(&path);
                            plain.remove(&path);
                        }
                        mode => {
                            nodes.insert(&path, known(mode));
                            plain.insert(path, known(mode));
                        }
                    }
                }
            };
            let all = |nodes: &Nodes| -> BTreeMap<_, _> {
                nodes.iter().map(|(path, node)| (path, node.clone())).collect()
            };
            apply(&mut nodes, &mut plain, steps);
            let (before, plain_before) = (nodes.clone(), plain.clone());
            apply(&mut nodes, &mut plain, changes);
            prop_assert_eq!(&all(&before), &plain_before);
            prop_assert_eq!(&all(&nodes), &plain);
            prop_assert_eq!(nodes.len(), plain.len());
            nodes.share_with(&before);
            prop_assert_eq!(&all(&nodes), &plain);
            let beside: BTreeMap<_, _> = nodes.beside(&before).map(|it| (it.0, it.2)).collect();
            for (path, node) in &plain {
                prop_assert_eq!(nodes.get(path), Some(node));
                let same = plain_before.get(path) == Some(node);
                prop_assert!(same || beside.get(path) == Some(&plain_before.get(path)));
                let below = plain.keys().filter(|it| it.starts_with(&format!("{path}/")));
                let mut found: Vec<_> = nodes.below(path).collect();
                found.sort();
                prop_assert_eq!(found, below.cloned().collect::<Vec<_>>());
            }
            let mut filled = nodes.clone();
            filled.add_missing(before);
            let mut both = plain_before;
            both.extend(plain);
            prop_assert_eq!(all(&filled), both);
        }
    }
}
