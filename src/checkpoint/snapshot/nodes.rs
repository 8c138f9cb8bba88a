//! Stores the files of a snapshot in little memory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::checkpoint::change::{Entry, HASH};
use co_exec::path_map::{Packed, PathMap, Unpacker, pack_bytes, pack_number};
use co_exec::regular::FileStamp;

/// A file or directory of a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SnapshotNode {
    pub(super) stamp: FileStamp,
    /// True if the [`FileStamp`] of the file is old enough that every later change of the file changes the stamp.
    pub(super) settled: bool,
    pub(super) entry: Entry,
}

/// The files of a snapshot, by their paths relative to the workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct SnapshotNodes(PathMap<SnapshotNode>);

impl SnapshotNodes {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, path: &str) -> Option<SnapshotNode> {
        self.0.get(path.as_ref())
    }

    pub(super) fn insert(&mut self, path: &str, node: SnapshotNode) {
        self.0.insert(path.as_ref(), node);
    }

    pub(super) fn remove(&mut self, path: &str) {
        self.0.remove(path.as_ref());
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (String, SnapshotNode)> {
        let nodes = self.0.iter();
        nodes.filter_map(|(path, node)| Some((text(path)?, node)))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = SnapshotNode> {
        self.0.iter().map(|(_, node)| node)
    }

    /// Returns all files in two parts. If there are many files, both parts have about the same length.
    pub(super) fn halves(&self) -> [impl Iterator<Item = (PathBuf, SnapshotNode)>; 2] {
        self.0.halves()
    }

    /// Returns the paths of the entries of a directory.
    pub(super) fn children(&self, dir: &str) -> impl Iterator<Item = String> {
        let children = self.0.children(dir.as_ref());
        children.filter_map(|(path, _)| text(path))
    }

    /// Returns all paths below a directory.
    pub(super) fn below(&self, dir: &str) -> impl Iterator<Item = String> {
        let below = self.0.below(dir.as_ref());
        below.filter_map(|(path, _)| text(path))
    }

    /// Returns the files that differ from `other`, each with the file at the same path of `other`.
    pub(super) fn beside(
        &self,
        other: &Self,
    ) -> impl Iterator<Item = (String, SnapshotNode, Option<SnapshotNode>)> {
        let mut others = other.0.iter().peekable();
        self.0.iter().filter_map(move |(path, node)| {
            // As the map orders them.
            let is_before = |other: &PathBuf| other.as_os_str() < path.as_os_str();
            while others.next_if(|(it, _)| is_before(it)).is_some() {}
            let other = others.next_if(|(it, _)| *it == path).map(|(_, node)| node);
            match other.as_ref() == Some(&node) {
                true => None,
                false => Some((text(path)?, node, other)),
            }
        })
    }

    /// Adds the files of `older` that are missing here.
    pub(super) fn add_missing(&mut self, older: &Self) {
        for (path, node) in older.0.iter() {
            if !self.0.contains(&path) {
                self.0.insert(&path, node);
            }
        }
        self.0.pack();
    }

    /// Packs the entries that have changed since the last packing: stores them in a compact form that takes less memory.
    pub(super) fn pack(&mut self) {
        self.0.pack();
    }

    /// Packs the changed entries as [`Self::pack`] does, but only if there are many of them.
    pub(super) fn pack_many(&mut self) {
        self.0.pack_many();
    }
}

/// Returns a path as text. Returns `None` if the path is not UTF-8, which no path of a snapshot is.
fn text(path: PathBuf) -> Option<String> {
    path.into_os_string().into_string().ok()
}

/// Returns the prefix of the paths below a directory.
pub(super) fn below(dir: &str) -> String {
    match dir {
        "" => String::new(),
        dir => format!("{dir}/"),
    }
}

impl Packed for SnapshotNode {
    fn pack(&self, bytes: &mut Vec<u8>) {
        self.stamp.pack(bytes);
        bytes.push(self.settled.into());
        match &self.entry {
            Entry::Dir { mode } => {
                bytes.push(PACKED_DIR);
                pack_number((*mode).into(), bytes);
            }
            Entry::Link { target } => {
                bytes.push(PACKED_LINK);
                pack_bytes(target.as_os_str().as_bytes(), bytes);
            }
            Entry::File { mode, blob } => {
                bytes.push(match blob {
                    Some(_) => PACKED_FILE,
                    None => PACKED_FILE_WITHOUT_COPY,
                });
                pack_number((*mode).into(), bytes);
                bytes.extend(blob.iter().flat_map(|blob| blob.bytes()));
            }
        }
    }

    fn unpack(bytes: &mut Unpacker<'_>) -> Option<Self> {
        let stamp = FileStamp::unpack(bytes)?;
        let settled = bytes.number()? == 1;
        let kind = u8::try_from(bytes.number()?).ok()?;
        let entry = match kind {
            PACKED_LINK => {
                let target = Path::new(OsStr::from_bytes(bytes.bytes()?)).to_owned();
                Entry::Link { target }
            }
            _ => {
                let mode = u32::try_from(bytes.number()?).ok()?;
                match kind {
                    PACKED_DIR => Entry::Dir { mode },
                    PACKED_FILE => {
                        let hash: [u8; HASH] = bytes.array()?;
                        let blob = Some(hash.into());
                        Entry::File { mode, blob }
                    }
                    _ => Entry::File { mode, blob: None },
                }
            }
        };
        Some(Self {
            stamp,
            settled,
            entry,
        })
    }
}

const PACKED_DIR: u8 = 0;
const PACKED_LINK: u8 = 1;
const PACKED_FILE: u8 = 2;
const PACKED_FILE_WITHOUT_COPY: u8 = 3;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::checkpoint::change::Blob;

    /// Returns something that differs by its number.
    fn known(mode: u32) -> SnapshotNode {
        let blob = (mode % 4 == 1).then(|| Blob::of(b"x"));
        SnapshotNode {
            stamp: FileStamp::of("/".as_ref()).unwrap(),
            settled: mode.is_multiple_of(2),
            entry: match mode {
                4 => Entry::Dir { mode },
                5 => Entry::Link {
                    target: "a b".into(),
                },
                _ => Entry::File { mode, blob },
            },
        }
    }

    fn path() -> impl Strategy<Value = String> {
        let name = proptest::sample::select(vec!["a", "b", "a-b", "b c", "ä"]);
        proptest::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
    }

    proptest! {
        #[test]
        fn they_are_like_a_plain_map(
            steps in proptest::collection::vec((path(), 0..6_u32), 0..60),
            changes in proptest::collection::vec((path(), 0..6_u32), 0..6),
        ) {
            let (mut nodes, mut plain) = (SnapshotNodes::default(), BTreeMap::new());
            let apply = |nodes: &mut SnapshotNodes, plain: &mut BTreeMap<String, SnapshotNode>, steps| {
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
            let all = |nodes: &SnapshotNodes| -> BTreeMap<_, _> {
                nodes.iter().collect()
            };
            apply(&mut nodes, &mut plain, steps);
            let (before, plain_before) = (nodes.clone(), plain.clone());
            apply(&mut nodes, &mut plain, changes);
            prop_assert_eq!(&all(&before), &plain_before);
            prop_assert_eq!(&all(&nodes), &plain);
            prop_assert_eq!(nodes.len(), plain.len());
            nodes.pack();
            prop_assert_eq!(&all(&nodes), &plain);
            let beside: BTreeMap<_, _> = nodes.beside(&before).map(|it| (it.0, it.2)).collect();
            for (path, node) in &plain {
                prop_assert_eq!(nodes.get(path), Some(node.clone()));
                let old = plain_before.get(path);
                let differs = (old != Some(node)).then(|| old.cloned());
                prop_assert_eq!(beside.get(path), differs.as_ref());
                let below = plain.keys().filter(|it| it.starts_with(&format!("{path}/")));
                let mut found: Vec<_> = nodes.below(path).collect();
                found.sort();
                prop_assert_eq!(found, below.cloned().collect::<Vec<_>>());
            }
            let mut filled = nodes.clone();
            filled.add_missing(&before);
            let mut both = plain_before;
            both.extend(plain);
            prop_assert_eq!(all(&filled), both);
        }
    }
}
