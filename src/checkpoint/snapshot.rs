//! Reads the files of a workspace at one moment, and compares two such snapshots.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio_util::sync::CancellationToken;

use self::nodes::{SnapshotNode, SnapshotNodes};
use super::change::{Change, Entry};
use super::store::Store;
use crate::buffers::OpenBuffers;
use crate::workspace::cache_dirs;
use crate::workspace::edits::disk;
use crate::workspace::files::ignore_rules::{self, IgnoreRules, RULES};
use crate::workspace::files::{Deadline, FileScope, PathFilter, Walk};
use crate::workspace::git_index::IndexedFiles;
use crate::workspace::judge::Judge;
use co_exec::beneath::{Dir, Kind, Node, Parents};
use co_exec::regular::FileStamp;
use co_exec::repository;
use co_exec::secrets::Survey;
use co_text::size_text;

mod nodes;
#[cfg(test)]
mod tests;
mod update;

/// The longest time that taking a snapshot may take.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(2);

/// The largest number of bytes of all files in a snapshot that have copies.
const MOST_BYTES: u64 = 500 << 20;

/// The largest size in bytes of a file that has a copy. Edits have the same limit.
const MOST_FILE_BYTES: u64 = disk::MAX_FILE_BYTES;

/// An upper bound of the resolution of a file's birth time.
const BIRTH_TIME_RESOLUTION: Duration = Duration::from_millis(20);

/// The differences of two snapshots.
#[derive(Debug, Default)]
pub(super) struct Differences {
    pub(super) changes: Vec<Change>,
    /// The files that existed before, but were ignored or secret. Taking their creation back would delete them.
    pub(super) not_created: Vec<PathBuf>,
}

/// The files of a workspace at one moment. Ignored files, secret files and caches are left out.
#[derive(Debug)]
pub(super) struct Snapshot {
    nodes: SnapshotNodes,
    taken: SystemTime,
    /// The files with several hard links. They may change through a path that is not watched.
    linked: BTreeSet<String>,
    /// The total number of bytes of the files that have copies.
    bytes: u64,
    /// True if the workspace contains a cache directory.
    has_caches: bool,
    /// The conditions under which the files were selected; none if a part of the workspace was not read.
    conditions: Option<Arc<SnapshotConditions>>,
}

/// The input of a snapshot: the judge of a workspace, its directory, and the store for the copies of its files.
pub(super) struct SnapshotSource<'a> {
    root: &'a Path,
    dir: &'a Dir,
    allowed: PathFilter,
    store: &'a Store,
    conditions: Option<Arc<SnapshotConditions>>,
}

/// The conditions that decide which files belong to a snapshot, apart from the ignore files in the workspace.
#[derive(Debug, PartialEq)]
struct SnapshotConditions {
    secrets: Vec<PathBuf>,
    git_directories: Vec<PathBuf>,
    /// The ignore files outside the workspace, and the ignore file in the git directory.
    rules: Vec<(PathBuf, Option<FileStamp>)>,
    index: Option<FileStamp>,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            nodes: SnapshotNodes::default(),
            taken: SystemTime::UNIX_EPOCH,
            linked: BTreeSet::new(),
            bytes: 0,
            has_caches: false,
            conditions: None,
        }
    }
}

impl<'a> SnapshotSource<'a> {
    /// Prepares to read a judge's workspace. Blocks on files.
    pub(super) fn new(judge: &'a Arc<Judge>, dir: &'a Dir, store: &'a Store) -> Self {
        let (root, survey) = (judge.root(), judge.survey());
        Self {
            root,
            dir,
            conditions: SnapshotConditions::of(root, &survey).map(Arc::new),
            allowed: judge.readable_by(survey),
            store,
        }
    }
}

impl SnapshotConditions {
    /// Returns what decides, apart from the ignore files in the workspace, which files of `root` belong to a snapshot. Returns
    /// `None` if the survey has not found all secret files.
    fn of(root: &Path, survey: &Survey) -> Option<Self> {
        let rules = IgnoreRules::files_outside(root).into_iter();
        let rules = rules.chain([root.join(RULES[2])]);
        let stamped = rules.map(|path| (FileStamp::of(&path), path));
        let index = repository::find(root).ok().flatten();
        survey.complete.then(|| Self {
            secrets: survey.closed_names().map(Path::to_owned).collect(),
            git_directories: survey.git_directories().to_vec(),
            rules: stamped.map(|(stamp, path)| (path, stamp)).collect(),
            index: index.and_then(|dirs| FileStamp::of(&dirs.own.join("index"))),
        })
    }
}

impl Snapshot {
    /// Takes a new snapshot of the workspace. Reads only the files that have changed since this snapshot.
    ///
    /// # Errors
    /// The workspace is too large, or the store cannot store its files. The snapshot in the error contains the files that were
    /// read.
    pub(super) fn again(&self, source: SnapshotSource<'_>) -> Result<Self, Box<(Self, String)>> {
        let SnapshotSource {
            root,
            dir,
            allowed,
            store,
            conditions,
        } = source;
        let start = Instant::now();
        let mut now = Self {
            taken: SystemTime::now(),
            ..Self::default()
        };
        let scope = FileScope {
            path: root.to_owned(),
            open: OpenBuffers::new(),
            editor: None,
            allowed,
            bytes: 0,
            end: Deadline::within(SNAPSHOT_TIMEOUT, CancellationToken::new()),
        };
        let (mut parents, tracked) = (Parents::new(dir), IndexedFiles::of(root));
        let mut walk = Walk::new(&scope, None);
        for found in walk.by_ref().filter(|found| found.depth > 0) {
            // The file of changes is text, so other names are left out.
            let path = found.path.strip_prefix(root).ok().and_then(Path::to_str);
            let Some(path) = path else {
                continue;
            };
            now.has_caches |= found.path.file_name().is_some_and(cache_dirs::is_name);
            if cache_dirs::contain(Path::new(path), found.kind.is_dir(), &tracked) {
                continue;
            }
            // It may be gone by now, or a directory above it a link.
            let Ok((dir, name)) = parents.of(Path::new(path)) else {
                continue;
            };
            let Ok(Some(node)) = dir.node(name) else {
                continue;
            };
            if !scope.allows_file(&found.path, &node) {
                continue;
            }
            let known = self.nodes.get(path);
            let same = known.filter(|it| it.settled && node.stamp == it.stamp);
            let is_linked = node.is_linked();
            let node = match same {
                Some(node) => node,
                None => match SnapshotNode::read(dir, name.as_ref(), &node, store) {
                    Ok(Some(node)) => node,
                    Ok(None) => continue,
                    Err(why) => return Err(Box::new((now, why.to_string()))),
                },
            };
            now.bytes += node.copied();
            now.linked.extend(is_linked.then(|| path.to_owned()));
            now.nodes.insert(path, node);
            if now.bytes > MOST_BYTES {
                let most = size_text(MOST_BYTES);
                let why = format!("the workspace has more than {most}");
                return Err(Box::new((now, why)));
            }
        }
        now.nodes.pack();
        match walk.cut.is_some() {
            false => Ok(Self { conditions, ..now }),
            true if start.elapsed() >= SNAPSHOT_TIMEOUT => {
                let most = SNAPSHOT_TIMEOUT.as_secs();
                let why = format!("to read the workspace takes more than {most} s");
                Err(Box::new((now, why)))
            }
            true => {
                let why = "the workspace has too many files".to_owned();
                Err(Box::new((now, why)))
            }
        }
    }

    /// Returns the time just before the files were read.
    pub(super) fn taken(&self) -> SystemTime {
        self.taken
    }

    /// Adds the files of an older snapshot that are missing in this one.
    pub(super) fn with_rest_of(mut self, older: Self) -> Self {
        self.nodes.add_missing(&older.nodes);
        self
    }

    /// Returns the changes from this snapshot to `after`. `root` is the workspace in the state of `after`.
    pub(super) fn changes(&self, after: &Self, root: &Dir) -> Differences {
        let inodes = || self.nodes.values().map(|node| node.stamp.inode()).collect();
        self.differences((&self.nodes, &after.nodes), inodes, root)
    }

    /// Returns the changes from the files `before` to the files `after`. `all_inodes` returns the inodes of all files of this
    /// snapshot.
    fn differences(
        &self,
        (before, after): (&SnapshotNodes, &SnapshotNodes),
        all_inodes: impl Fn() -> HashSet<(u64, u64)>,
        root: &Dir,
    ) -> Differences {
        let mut found = Differences::default();
        for (path, node, new) in before.beside(after) {
            let same = new.as_ref().is_some_and(|new| is_same(&node, new));
            // A file that is ignored or secret from now on is still there.
            if !same && (new.is_some() || !is_there(root, &path)) {
                found.changes.push(change(path, Some(node), new));
            }
        }
        let mut inodes = None;
        let mut created = Vec::new();
        for (path, node, old) in after.beside(before) {
            if old.is_some() {
                continue;
            }
            let mut is_moved = || {
                let inodes = inodes.get_or_insert_with(&all_inodes);
                inodes.contains(&node.stamp.inode())
            };
            let since = self.taken - BIRTH_TIME_RESOLUTION;
            // Some file systems do not tell.
            let is_new = root.born(&path).is_none_or(|born| born >= since);
            match is_new || is_moved() {
                true => created.push(change(path, None, Some(node))),
                false => found.not_created.push(PathBuf::from(path)),
            }
        }
        for changes in [&mut found.changes, &mut created] {
            // What is in a directory comes right after it.
            changes.sort_by(|one, other| one.path.cmp(&other.path));
        }
        found.changes.extend(created);
        found.not_created.sort();
        found
    }
}

impl SnapshotNode {
    /// Reads a file whose metadata is `node`. Returns `None` for a device or FIFO.
    fn read(dir: &Dir, name: &Path, node: &Node, store: &Store) -> io::Result<Option<Self>> {
        // Before it is read: it may change meanwhile.
        let settled = node.stamp.is_settled();
        let known = |entry| Self {
            stamp: node.stamp,
            settled,
            entry,
        };
        Ok(entry(dir, name, node, store)?.map(known))
    }

    fn is_dir(&self) -> bool {
        matches!(self.entry, Entry::Dir { .. })
    }

    /// Returns the number of bytes of the file's copy.
    fn copied(&self) -> u64 {
        match self.entry {
            Entry::File { blob: Some(_), .. } => self.stamp.size(),
            _ => 0,
        }
    }
}

fn is_there(root: &Dir, path: &str) -> bool {
    matches!(root.node(path), Ok(Some(_)))
}

/// Returns true if two nodes are the same file with the same content. If there are no copies, compares only the stamps.
fn is_same(one: &SnapshotNode, other: &SnapshotNode) -> bool {
    let has_copy = !matches!(one.entry, Entry::File { blob: None, .. });
    one.entry == other.entry && (has_copy || one.stamp == other.stamp)
}

fn change(path: String, before: Option<SnapshotNode>, after: Option<SnapshotNode>) -> Change {
    Change {
        path: path.into(),
        before: before.map(|node| node.entry),
        after: after.map(|node| node.entry),
    }
}

/// Returns the entry at a path in the workspace `root`; none if nothing exists there. Copies the content of a file to the store.
///
/// # Errors
/// The store cannot store the copy.
pub(super) fn entry_at(root: &Dir, path: &Path, store: &Store) -> io::Result<Option<Entry>> {
    match root.node(path) {
        Ok(Some(node)) => entry(root, path, &node, store),
        Ok(None) | Err(_) => Ok(None),
    }
}

/// Returns the entry of a file whose metadata is `node`. Returns `None` for a device or FIFO.
fn entry(dir: &Dir, path: &Path, node: &Node, store: &Store) -> io::Result<Option<Entry>> {
    let mode = node.mode;
    Ok(match node.kind {
        Kind::Dir => Some(Entry::Dir { mode }),
        Kind::Link => {
            // It may be gone by now, or lead to a name that is no text.
            let target = dir.target(path).ok();
            let target = target.filter(|target| target.to_str().is_some());
            target.map(|target| Entry::Link { target })
        }
        Kind::File => {
            let bytes = dir.read(path, MOST_FILE_BYTES).ok();
            let blob = bytes.map(|bytes| store.put(&bytes)).transpose()?;
            Some(Entry::File { mode, blob })
        }
        Kind::Whiteout | Kind::Special(_) => None,
    })
}
