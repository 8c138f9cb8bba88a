//! A compact map with paths as keys, which is cheap to clone.
//!
//! Most entries are packed into one allocation, sorted by path. A packed entry has the length of the prefix that its path shares
//! with the path before it, the rest of the path, and the bytes of the value. At regular intervals, a path is stored whole, so
//! that a search reads few entries. Later changes are stored separately, until [`PathMap::pack`] packs all entries again.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of entries in a block. The path of the first entry of a block is stored whole.
const BLOCK: usize = 16;

/// The largest number of changed entries that stay unpacked. A clone of the map copies the unpacked entries.
const MAX_CHANGED: usize = 256;

/// A value that a [`PathMap`] can store as bytes.
pub trait Packed: Clone {
    /// Appends the bytes of this value to `bytes`.
    fn pack(&self, bytes: &mut Vec<u8>);

    /// Reads a value that `pack` has written. Returns `None` if the bytes are no such value.
    fn unpack(bytes: &mut Unpacker<'_>) -> Option<Self>;
}

/// A reader of bytes that [`Packed::pack`] has written.
#[derive(Debug, Clone)]
pub struct Unpacker<'a>(&'a [u8]);

/// A map with paths as keys, which stores most entries packed: as bytes, in one piece of memory. A clone shares the entries that
/// are packed at the time of the cloning.
#[derive(Debug, Clone)]
pub struct PathMap<V> {
    packed: Arc<Table>,
    /// The entries that were inserted or removed since the last packing; `None` for a removed entry.
    changed: BTreeMap<Arc<[u8]>, Option<V>>,
    len: usize,
}

/// Packed entries, sorted by the bytes of their paths.
#[derive(Debug, Default)]
struct Table {
    bytes: Box<[u8]>,
    /// The byte offset of each block in `bytes`.
    blocks: Box<[usize]>,
}

/// A position in a table: at an entry, or at the end.
#[derive(Debug, Clone)]
struct Cursor<'a> {
    rest: Unpacker<'a>,
    /// The path of the current entry.
    key: Vec<u8>,
    /// The bytes of the current entry's value; `None` at the end of the table.
    value: Option<&'a [u8]>,
}

/// Appends a number with a variable length: a small number takes few bytes.
pub fn pack_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Appends the length of some bytes, and the bytes.
pub fn pack_bytes(part: &[u8], bytes: &mut Vec<u8>) {
    pack_number(part.len() as u64, bytes);
    bytes.extend_from_slice(part);
}

impl<'a> Unpacker<'a> {
    /// Reads a number that [`pack_number`] appended.
    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Reads `N` bytes that were appended without their length.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (part, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*part)
    }

    /// Reads bytes that [`pack_bytes`] appended.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (part, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(part)
    }
}

impl<V> Default for PathMap<V> {
    fn default() -> Self {
        Self {
            packed: Arc::default(),
            changed: BTreeMap::new(),
            len: 0,
        }
    }
}

impl<V: Packed> PathMap<V> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get(&self, path: &Path) -> Option<V> {
        let key = bytes_of(path);
        match self.changed.get(key) {
            Some(value) => value.clone(),
            None => V::unpack(&mut Unpacker(self.packed.get(key)?)),
        }
    }

    pub fn contains(&self, path: &Path) -> bool {
        let key = bytes_of(path);
        match self.changed.get(key) {
            Some(value) => value.is_some(),
            None => self.packed.get(key).is_some(),
        }
    }

    pub fn insert(&mut self, path: &Path, value: V) {
        self.len += usize::from(!self.contains(path));
        let key = bytes_of(path);
        self.changed.insert(key.into(), Some(value));
    }

    /// Adds the entries of another map, and replaces those with the same paths. Fast if neither map has packed entries.
    pub(crate) fn append(&mut self, mut other: Self) {
        if self.packed.bytes.is_empty() && other.packed.bytes.is_empty() {
            self.changed.append(&mut other.changed);
            self.len = self.changed.len();
            return;
        }
        for (path, value) in other.iter() {
            self.insert(&path, value);
        }
    }

    pub fn remove(&mut self, path: &Path) {
        if !self.contains(path) {
            return;
        }
        self.len -= 1;
        let key = bytes_of(path);
        match self.packed.get(key) {
            Some(_) => drop(self.changed.insert(key.into(), None)),
            // Names that come and go for hours leave nothing.
            None => drop(self.changed.remove(key)),
        }
    }

    /// Removes a directory and all entries below it.
    pub fn remove_tree(&mut self, dir: &Path) {
        let below: Vec<_> = self.below(dir).map(|(path, _)| path).collect();
        for path in below {
            self.remove(&path);
        }
        self.remove(dir);
    }

    /// Returns the path of the packed entry with index `place`, even if the entry was removed after the packing.
    pub fn packed_path(&self, place: usize) -> Option<PathBuf> {
        let at = self.packed.blocks.get(place / BLOCK)?;
        let mut cursor = Cursor::at(&self.packed.bytes[*at..]);
        for _ in 0..place % BLOCK {
            cursor.advance();
        }
        cursor.value?;
        Some(path_of(&cursor.key).to_owned())
    }

    /// Returns all entries, sorted by the bytes of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (PathBuf, V)> {
        self.from(&[])
    }

    /// Returns the entries below a directory, at any depth.
    pub fn below(&self, dir: &Path) -> impl Iterator<Item = (PathBuf, V)> {
        let start = prefix_of(dir);
        let entries = self.from(&start);
        entries.take_while(move |(path, _)| bytes_of(path).starts_with(&start))
    }

    /// Returns the entries directly in a directory.
    pub fn children(&self, dir: &Path) -> impl Iterator<Item = (PathBuf, V)> {
        let prefix = prefix_of(dir);
        let mut start = prefix.clone();
        std::iter::from_fn(move || {
            loop {
                let (path, value) = self.from(&start).next()?;
                let key = path.as_os_str().as_bytes();
                let name = key.strip_prefix(prefix.as_slice())?;
                start.clear();
                match name.iter().position(|byte| *byte == b'/') {
                    Some(end) => {
                        start.extend([&prefix[..], &name[..end], &[b'/' + 1]].concat());
                    }
                    None => {
                        start.extend([key, &[0]].concat());
                        return Some((path, value));
                    }
                }
            }
        })
    }

    /// Splits all entries into two parts. The parts are about equally long if most entries are packed.
    pub fn halves(&self) -> [impl Iterator<Item = (PathBuf, V)>; 2] {
        let blocks = &self.packed.blocks;
        let middle = blocks.get(blocks.len() / 2);
        let middle = middle.map_or(&[][..], |at| self.packed.whole_key(*at));
        [(&[][..], Some(middle)), (middle, None)].map(|(start, end)| {
            let is_in = move |(path, _): &(PathBuf, V)| end.is_none_or(|end| bytes_of(path) < end);
            self.from(start).take_while(is_in)
        })
    }

    /// Packs all entries again if many have changed.
    pub fn pack_many(&mut self) {
        if self.changed.len() > MAX_CHANGED {
            self.pack();
        }
    }

    /// Packs all entries again, including those that changed since the last packing.
    pub fn pack(&mut self) {
        let (mut bytes, mut blocks) = (Vec::with_capacity(self.packed.bytes.len()), Vec::new());
        let (mut last, mut value_bytes) = (PathBuf::new(), Vec::new());
        for (number, (path, value)) in self.iter().enumerate() {
            let key = bytes_of(&path);
            let shared = match number % BLOCK {
                0 => {
                    blocks.push(bytes.len());
                    0
                }
                _ => {
                    let pairs = key.iter().zip(bytes_of(&last));
                    pairs.take_while(|(one, other)| one == other).count()
                }
            };
            pack_number(shared as u64, &mut bytes);
            pack_bytes(&key[shared..], &mut bytes);
            value_bytes.clear();
            value.pack(&mut value_bytes);
            pack_bytes(&value_bytes, &mut bytes);
            last = path;
        }
        let (bytes, blocks) = (bytes.into(), blocks.into());
        self.packed = Arc::new(Table { bytes, blocks });
        self.changed = BTreeMap::new();
    }

    /// Returns the entries whose path is `start` or sorts after it.
    fn from<'a>(&'a self, start: &[u8]) -> impl Iterator<Item = (PathBuf, V)> + use<'a, V> {
        let from = (Bound::Included(start), Bound::Unbounded);
        let mut changed = self.changed.range::<[u8], _>(from).peekable();
        let mut packed = self.packed.from(start);
        std::iter::from_fn(move || {
            loop {
                let order = match (packed.value, changed.peek()) {
                    (None, None) => return None,
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (Some(_), Some((key, _))) => packed.key.as_slice().cmp(key),
                };
                let found = match order {
                    Ordering::Less => {
                        let value = V::unpack(&mut Unpacker(packed.value.unwrap_or_default()));
                        value.map(|value| (path_of(&packed.key).to_owned(), value))
                    }
                    Ordering::Equal | Ordering::Greater => {
                        let (key, value) = changed.next()?;
                        value.clone().map(|value| (path_of(key).to_owned(), value))
                    }
                };
                if order != Ordering::Greater {
                    packed.advance();
                }
                if found.is_some() {
                    return found;
                }
            }
        })
    }
}

impl<V: Packed + PartialEq> PartialEq for PathMap<V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<V: Packed + Eq> Eq for PathMap<V> {}

impl Table {
    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let found = self.from(key);
        found.value.filter(|_| found.key == key)
    }

    /// Returns a cursor at the first entry whose path is not less than `key`.
    fn from(&self, key: &[u8]) -> Cursor<'_> {
        let after = self.blocks.partition_point(|at| self.whole_key(*at) <= key);
        let block = self.blocks.get(after.saturating_sub(1));
        let mut cursor = Cursor::at(&self.bytes[block.copied().unwrap_or_default()..]);
        while cursor.value.is_some() && cursor.key.as_slice() < key {
            cursor.advance();
        }
        cursor
    }

    /// Returns the path of the first entry of a block, by the block's byte offset.
    fn whole_key(&self, at: usize) -> &[u8] {
        let mut rest = Unpacker(&self.bytes[at..]);
        let key = rest.number().and_then(|_| rest.bytes());
        key.unwrap_or_default()
    }
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the first entry of a block.
    fn at(bytes: &'a [u8]) -> Self {
        let mut cursor = Self {
            rest: Unpacker(bytes),
            key: Vec::new(),
            value: None,
        };
        cursor.advance();
        cursor
    }

    fn advance(&mut self) {
        self.value = self.read();
    }

    fn read(&mut self) -> Option<&'a [u8]> {
        let shared = usize::try_from(self.rest.number()?).ok()?;
        self.key.truncate(shared);
        self.key.extend_from_slice(self.rest.bytes()?);
        self.rest.bytes()
    }
}

/// Returns the bytes of a path without a trailing slash.
fn bytes_of(path: &Path) -> &[u8] {
    path.components().as_path().as_os_str().as_bytes()
}

/// Returns the prefix that all paths below a directory have.
fn prefix_of(dir: &Path) -> Vec<u8> {
    let mut prefix = bytes_of(dir).to_vec();
    if !matches!(prefix.last(), None | Some(b'/')) {
        prefix.push(b'/');
    }
    prefix
}

fn path_of(key: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(key))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Packed for u64 {
        fn pack(&self, bytes: &mut Vec<u8>) {
            pack_number(*self, bytes);
        }

        fn unpack(bytes: &mut Unpacker<'_>) -> Option<Self> {
            bytes.number()
        }
    }

    fn all(map: &PathMap<u64>) -> BTreeMap<Vec<u8>, u64> {
        let entries = map.iter();
        let entries = entries.map(|(path, value)| (bytes_of(&path).to_vec(), value));
        entries.collect()
    }

    fn path() -> impl Strategy<Value = PathBuf> {
        let name = proptest::sample::select(vec!["a", "b", "a-b", "b c", "\u{e4}"]);
        proptest::collection::vec(name, 1..4).prop_map(|names| names.join("/").into())
    }

    #[test]
    fn an_appended_map_replaces_entries_whether_packed_or_not() {
        let of = |entries: &[(&str, u64)], is_packed: bool| {
            let mut map = PathMap::default();
            for (path, value) in entries {
                map.insert(Path::new(path), *value);
            }
            if is_packed {
                map.pack();
            }
            map
        };
        for packed in [[false, false], [true, false], [false, true], [true, true]] {
            let mut map = of(&[("a", 1), ("b", 2)], packed[0]);
            map.append(of(&[("b", 3), ("c", 4)], packed[1]));
            assert_eq!(all(&map), all(&of(&[("a", 1), ("b", 3), ("c", 4)], false)));
            assert_eq!(map.len(), 3, "{packed:?}");
        }
    }

    proptest! {
        #[test]
        fn a_copy_is_a_map_of_its_own(
            steps in proptest::collection::vec((path(), 0..6_u8, any::<u64>()), 0..200),
        ) {
            let (mut map, mut plain) = (PathMap::default(), BTreeMap::<Vec<u8>, u64>::new());
            for (path, kind, number) in steps {
                let key = bytes_of(&path);
                let (before, known) = (map.clone(), plain.clone());
                match kind {
                    0 => {
                        map.remove(&path);
                        plain.remove(key);
                    }
                    1 => {
                        map.remove_tree(&path);
                        plain.retain(|it, _| !path_of(it).starts_with(&path));
                    }
                    2 => map.pack(),
                    _ => {
                        map.insert(&path, number);
                        plain.insert(key.to_vec(), number);
                    }
                }
                prop_assert_eq!(all(&before), known);
                prop_assert_eq!(all(&map), plain.clone());
                prop_assert_eq!(map.len(), plain.len());
                prop_assert_eq!(map.get(&path), plain.get(key).copied());
                prop_assert_eq!(map.contains(&path), plain.contains_key(key));
                let below = map.below(&path).map(|(_, value)| value);
                let inner = plain.iter().filter(|(it, _)| it.starts_with(&[key, b"/"].concat()));
                let inner = inner.map(|(_, value)| *value);
                prop_assert_eq!(below.collect::<Vec<_>>(), inner.collect::<Vec<_>>());
                let is_child = |it: &Path| it.parent() == Some(path.as_path());
                let children: Vec<_> = map.children(&path).map(|(path, _)| path).collect();
                let plain_paths = plain.keys().map(|key| path_of(key));
                prop_assert_eq!(children, plain_paths.filter(|it| is_child(it)).collect::<Vec<_>>());
                let halves = map.halves().into_iter().flatten();
                prop_assert!(halves.eq(map.iter()));
            }
        }
    }

    #[test]
    fn what_comes_and_goes_leaves_nothing() {
        let mut map = PathMap::default();
        map.insert("packed".as_ref(), 1);
        map.pack();
        for number in 0..1000_u64 {
            let path = PathBuf::from(format!("tmp{number}"));
            map.insert(&path, number);
            map.remove(&path);
        }
        assert_eq!((map.len(), map.changed.len()), (1, 0));
    }

    #[test]
    fn many_entries_take_little() {
        let mut map = PathMap::default();
        for number in 0..1000_u64 {
            let path = format!("packages/one/src/deep/file{number:04}.rs");
            map.insert(path.as_ref(), number);
        }
        map.pack();
        assert!(map.packed.bytes.len() < 1000 * 16);
        for half in map.halves().map(Iterator::count) {
            assert!((400..600).contains(&half), "{half}");
        }
    }
}
