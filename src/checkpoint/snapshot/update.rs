//! Updates a snapshot by reading only the changed directories.

use std::collections::BTreeMap;

use rustix::fs::AtFlags;

use super::nodes::below;
use super::*;
use crate::workspace::files::walk;
use co_exec::parallel;

/// The largest number of entries that an update reads. If more have changed, co reads the whole workspace.
const MAX_ENTRIES: usize = 50_000;

impl Snapshot {
    /// Reads the changed directories, updates this snapshot, and returns the changes. Returns `None`, and changes nothing, if
    /// files outside of these directories may now belong to the snapshot, or if a file cannot be read.
    pub(in super::super) fn update(
        &mut self,
        source: &SnapshotSource<'_>,
        changed: &HashSet<Arc<Path>>,
    ) -> Option<Differences> {
        let taken = SystemTime::now();
        self.fits(source.conditions.as_deref()?)?;
        let git_info = Path::new(RULES[2]).parent()?;
        if changed.iter().any(|dir| dir.ends_with(git_info)) {
            return None;
        }
        let mut dirs: Vec<_> = changed
            .iter()
            .filter_map(|dir| dir.strip_prefix(source.root).ok()?.to_str())
            .collect();
        // A directory comes before those in it.
        dirs.sort_unstable();
        let mut update = Update {
            before: self,
            source,
            tracked: IndexedFiles::of(source.root),
            rules: BTreeMap::new(),
            new: BTreeMap::new(),
            linked: self.linked.clone(),
            done: HashSet::new(),
            has_caches: self.has_caches,
            left: MAX_ENTRIES,
        };
        for dir in dirs {
            update.dir(dir)?;
        }
        update.files_with_names()?;
        let Update {
            new,
            linked,
            has_caches,
            ..
        } = update;
        let (mut before, mut after) = (SnapshotNodes::default(), SnapshotNodes::default());
        for (path, node) in &new {
            if let Some(old) = self.nodes.get(path) {
                before.insert(path, old);
            }
            if let Some(node) = node {
                after.insert(path, node.clone());
            }
        }
        let inodes = || self.nodes.values().map(|node| node.stamp.inode()).collect();
        let found = self.differences((&before, &after), inodes, source.dir);
        let bytes = |nodes: &SnapshotNodes| nodes.values().map(|node| node.copied()).sum::<u64>();
        let size = (self.bytes + bytes(&after)).saturating_sub(bytes(&before));
        let files = self.nodes.len() + after.len() - before.len();
        if size > MOST_BYTES || files > walk::MAX_ENTRIES {
            return None;
        }
        for (path, node) in new {
            match node {
                Some(node) => self.nodes.insert(&path, node),
                None => self.nodes.remove(&path),
            }
        }
        self.nodes.pack_many();
        (self.bytes, self.taken, self.linked) = (size, taken, linked);
        self.has_caches = has_caches;
        Some(found)
    }

    /// Compares the stamps of all files, and returns the directories whose entries or files may have changed since this snapshot.
    /// Returns `None` if files outside of these directories may now belong to the snapshot.
    ///
    /// This is much slower than asking a watcher, and much faster than reading the workspace.
    pub(in super::super) fn changed(
        &self,
        source: &SnapshotSource<'_>,
    ) -> Option<HashSet<Arc<Path>>> {
        self.fits(source.conditions.as_deref()?)?;
        let (root, dir) = (source.root, source.dir);
        // Those of the git directory of the workspace are among its conditions.
        if self.has_unknown_rules(dir, Path::new(""), &RULES[..2]) {
            return None;
        }
        let changed = |half: usize| {
            let mut found: HashSet<Arc<Path>> = HashSet::new();
            let files = self.nodes.halves().into_iter().nth(half)?;
            for (path, node) in files {
                let stamp = FileStamp::below(dir, &path, AtFlags::SYMLINK_NOFOLLOW);
                if !node.settled || stamp != Some(node.stamp) {
                    found.extend(path.parent().map(|above| root.join(above).into()));
                    found.extend(node.is_dir().then(|| root.join(&path).into()));
                }
                if node.is_dir() && self.has_unknown_rules(dir, &path, &RULES) {
                    return None;
                }
            }
            Some(found)
        };
        let halves = parallel::map([0, 1], changed);
        let halves: Option<Vec<_>> = halves.into_iter().collect();
        let mut all: HashSet<_> = halves?.into_iter().flatten().collect();
        // It has no entry in the snapshot.
        all.insert(root.into());
        Some(all)
    }

    /// Returns true if a directory contains an ignore file that is not part of the snapshot. Such a file may have changed.
    fn has_unknown_rules(&self, root: &Dir, dir: &Path, names: &[&str]) -> bool {
        let mut rules = names.iter().map(|name| dir.join(name));
        let is_there = |path: &Path| FileStamp::below(root, path, AtFlags::empty()).is_some();
        let node = |path: &Path| self.nodes.get(path.to_str()?);
        rules.any(|path| is_there(&path) && node(&path).is_none())
    }

    /// Returns `None` if the conditions that decide which files belong to the snapshot have changed.
    fn fits(&self, now: &SnapshotConditions) -> Option<()> {
        let known = self.conditions.as_ref()?;
        let same = known.secrets == now.secrets
            && known.git_directories == now.git_directories
            && known.rules == now.rules
            // The index says which caches belong to it.
            && (!self.has_caches || known.index == now.index);
        same.then_some(())
    }
}

struct Update<'a> {
    before: &'a Snapshot,
    source: &'a SnapshotSource<'a>,
    tracked: IndexedFiles<'a>,
    /// The ignore rules of directories, by the paths of the directories.
    rules: BTreeMap<String, IgnoreRules>,
    /// The files that were read again; a value is `None` if the file no longer exists.
    new: BTreeMap<String, Option<SnapshotNode>>,
    linked: BTreeSet<String>,
    /// The directories that have been read.
    done: HashSet<String>,
    has_caches: bool,
    left: usize,
}

impl Update<'_> {
    /// Reads a directory again. Does nothing if the directory does not belong to the snapshot. Returns `None` if the snapshot
    /// cannot be updated in this way.
    fn dir(&mut self, path: &str) -> Option<()> {
        if !path.is_empty() && !self.now(path).is_some_and(|it| it.is_dir())
            || !self.done.insert(path.to_owned())
        {
            return Some(());
        }
        let dir = self.source.dir.dir(path).ok()?;
        let rules = self.rules(path)?;
        let mut seen = HashSet::new();
        for entry in dir.list().ok()? {
            let (name, kind) = entry.ok()?;
            self.left = self.left.checked_sub(1)?;
            let Some(name) = name.to_str() else {
                continue;
            };
            let inner = format!("{}{name}", below(path));
            let whole = self.source.root.join(&inner);
            if RULES.contains(&name) {
                // Its rules hold for others if it has changed.
                let known = self.before.nodes.get(&inner)?;
                let same = known.settled && dir.node(name).ok()??.stamp == known.stamp;
                same.then_some(())?;
            }
            if name == ".git"
                && !path.is_empty()
                && self.source.root.join(path).join(RULES[2]).exists()
            {
                return None;
            }
            if rules.ignore(&whole, kind.is_dir()) || !self.source.allowed.allows_name(&whole) {
                continue;
            }
            self.has_caches |= cache_dirs::is_name(name.as_ref());
            if cache_dirs::contain(Path::new(&inner), kind.is_dir(), &self.tracked) {
                continue;
            }
            if self.file(&dir, name, &inner)?.is_some() {
                seen.insert(inner);
            }
        }
        let before: Vec<_> = self.before.nodes.children(path).collect();
        for gone in before.iter().filter(|it| !seen.contains(*it)) {
            let name = gone.rsplit('/').next().unwrap_or(gone);
            if RULES.contains(&name) {
                return None;
            }
            self.remove_below(gone);
            self.set(gone, None);
        }
        Some(())
    }

    /// Reads a changed file, directory or link. Returns `Some(None)` if it does not belong to the snapshot, and `None` if the
    /// snapshot cannot be updated in this way.
    fn file(&mut self, dir: &Dir, name: &str, path: &str) -> Option<Option<()>> {
        let Ok(Some(node)) = dir.node(name) else {
            return Some(None);
        };
        let whole = self.source.root.join(path);
        if node.is_linked() && !self.source.allowed.allows(&whole) {
            return Some(None);
        }
        match node.is_linked() {
            true => self.linked.insert(path.to_owned()),
            false => self.linked.remove(path),
        };
        let known = self.before.nodes.get(path);
        if (known.as_ref()).is_some_and(|it| it.settled && it.stamp == node.stamp) {
            return Some(Some(()));
        }
        let Some(new) = SnapshotNode::read(dir, name.as_ref(), &node, self.source.store).ok()?
        else {
            return Some(None);
        };
        let (was, is) = (known.is_some_and(|it| it.is_dir()), new.is_dir());
        self.set(path, Some(new));
        match (was, is) {
            (true, false) => self.remove_below(path),
            (false, true) => self.dir(path)?,
            _ => {}
        }
        Some(Some(()))
    }

    /// Reads the files with several hard links, which may have changed through another path.
    fn files_with_names(&mut self) -> Option<()> {
        let mut parents = Parents::new(self.source.dir);
        for path in self.before.linked.iter() {
            if self.now(path).is_none() {
                continue;
            }
            let Ok((dir, name)) = parents.of(Path::new(path)) else {
                return None;
            };
            self.file(dir, name.to_str()?, path)??;
        }
        Some(())
    }

    fn set(&mut self, path: &str, node: Option<SnapshotNode>) {
        if node.is_none() {
            self.linked.remove(path);
        }
        self.new.insert(path.to_owned(), node);
    }

    fn remove_below(&mut self, path: &str) {
        let before = self.before;
        for path in before.nodes.below(path) {
            self.set(&path, None);
        }
    }

    /// Returns the current state of the file at a path.
    fn now(&self, path: &str) -> Option<SnapshotNode> {
        match self.new.get(path) {
            Some(new) => new.clone(),
            None => self.before.nodes.get(path),
        }
    }

    /// Returns the ignore rules of a directory.
    fn rules(&mut self, path: &str) -> Option<IgnoreRules> {
        if let Some(known) = self.rules.get(path) {
            return Some(known.clone());
        }
        let above = match path.rsplit_once('/') {
            _ if path.is_empty() => IgnoreRules::above(self.source.root),
            Some((above, _)) => self.rules(above)?,
            None => self.rules("")?,
        };
        let whole = self.source.root.join(path);
        let rules = above.below(&whole, |name| ignore_rules::text(&whole.join(name)));
        self.rules.insert(path.to_owned(), rules.clone());
        Some(rules)
    }
}
