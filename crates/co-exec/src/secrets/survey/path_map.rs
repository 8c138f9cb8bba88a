//! A map that is cheap to copy.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The most entries that differ from those of the shared map.
const MAX_CHANGED: usize = 1_000;

/// A map by paths. Clones share what it had when they were made.
#[derive(Debug, Clone)]
pub(super) struct PathMap<V> {
    shared: Arc<HashMap<Arc<Path>, V>>,
    /// The entries that differ; none for one that is gone.
    changed: HashMap<Arc<Path>, Option<V>>,
}

impl<V> Default for PathMap<V> {
    fn default() -> Self {
        Self {
            shared: Arc::default(),
            changed: HashMap::new(),
        }
    }
}

impl<V: Clone> PathMap<V> {
    pub(super) fn get(&self, path: &Path) -> Option<&V> {
        self.get_key_value(path).map(|(_, value)| value)
    }

    pub(super) fn get_key_value(&self, path: &Path) -> Option<(&Arc<Path>, &V)> {
        match self.changed.get_key_value(path) {
            Some((path, value)) => value.as_ref().map(|value| (path, value)),
            None => self.shared.get_key_value(path),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<Path>, &V)> {
        let is_same = |path: &Path| self.changed.is_empty() || !self.changed.contains_key(path);
        let same = self.shared.iter().filter(move |(path, _)| is_same(path));
        let changed = self.changed.iter();
        same.chain(changed.filter_map(|(path, value)| Some((path, value.as_ref()?))))
    }

    pub(super) fn insert(&mut self, path: Arc<Path>, value: V) {
        self.set(path, Some(value));
    }

    pub(super) fn remove(&mut self, path: &Path) {
        if let Some((path, _)) = self.get_key_value(path) {
            let path = Arc::clone(path);
            self.set(path, None);
        }
    }

    /// Removes a directory and all in it.
    pub(super) fn remove_below(&mut self, dir: &Path) {
        let below = self.iter().filter(|(path, _)| path.starts_with(dir));
        for path in below.map(|(path, _)| Arc::clone(path)).collect::<Vec<_>>() {
            self.set(path, None);
        }
    }

    fn set(&mut self, path: Arc<Path>, value: Option<V>) {
        if self.changed.len() >= MAX_CHANGED {
            let shared = Arc::make_mut(&mut self.shared);
            for (path, value) in self.changed.drain() {
                replace(shared, path, value);
            }
        }
        match Arc::get_mut(&mut self.shared) {
            Some(shared) if self.changed.is_empty() => replace(shared, path, value),
            _ => drop(self.changed.insert(path, value)),
        }
    }
}

fn replace<V>(map: &mut HashMap<Arc<Path>, V>, path: Arc<Path>, value: Option<V>) {
    match value {
        Some(value) => drop(map.insert(path, value)),
        None => drop(map.remove(&path)),
    }
}

impl<V: Clone + PartialEq> PartialEq for PathMap<V> {
    fn eq(&self, other: &Self) -> bool {
        let same = |(path, value): (&Arc<Path>, &V)| other.get(path) == Some(value);
        self.iter().count() == other.iter().count() && self.iter().all(same)
    }
}

impl<V: Clone + Eq> Eq for PathMap<V> {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_copy_is_a_map_of_its_own(
            steps in proptest::collection::vec((0..60_u32, 0..4_u8), 0..200),
        ) {
            let name = |number: u32| Path::new("/").join(format!("{}/{}", number / 10, number % 10));
            let (mut map, mut plain) = (PathMap::default(), BTreeMap::<PathBuf, usize>::new());
            for (step, (number, kind)) in steps.into_iter().enumerate() {
                let (before, known) = (map.clone(), plain.clone());
                match kind {
                    0 => {
                        map.remove(&name(number));
                        plain.remove(&name(number));
                    }
                    1 => {
                        let dir = name(number).parent().unwrap().to_owned();
                        map.remove_below(&dir);
                        plain.retain(|path, _| !path.starts_with(&dir));
                    }
                    _ => {
                        map.insert(name(number).into(), step);
                        plain.insert(name(number), step);
                    }
                }
                let all = |map: &PathMap<usize>| {
                    let all = map.iter().map(|(path, value)| (path.to_path_buf(), *value));
                    all.collect::<BTreeMap<_, _>>()
                };
                prop_assert_eq!(all(&before), known);
                prop_assert_eq!(all(&map), plain.clone());
                if kind == 3 {
                    // The only one is changed in place.
                    drop(before);
                }
            }
        }
    }
}
