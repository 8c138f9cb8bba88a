//! A bounded walk that finds the secrets of a workspace.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::content;
use crate::beneath::{self, Dir, MAX_PATH_BYTES};
use crate::path_map::{Packed, PathMap, Unpacker, pack_bytes};
use crate::regular::FileStamp;
use crate::repository;
use listing::Listing;

use co_policy::secret_names as names;

mod listing;
mod patch;
#[cfg(test)]
mod tests;

/// The most entries that a survey has. A larger workspace is never surveyed whole.
const MAX_ENTRIES: usize = 2_000_000;

/// The most entries of each private path that are looked at.
const MAX_PRIVATE: usize = 2_000;

/// Names in a git directory below which are branches and packed objects.
const GIT_STORES: [&str; 3] = ["objects", "refs", "logs"];

const GIT_CONFIGS: [&str; 2] = ["config", "config.worktree"];

/// The number of stamps that two threads compare faster than one.
const WORTH_A_THREAD: usize = 400;

/// Directories with many generated files. They are walked last, and not searched for private keys.
const GENERATED_DIRECTORIES: [&str; 8] = [
    "node_modules",
    "target",
    "build",
    "dist",
    "vendor",
    "venv",
    ".venv",
    "__pycache__",
];

/// The secrets of a workspace, by their canonical paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Secret files outside `dirs`, and every other name of a secret file.
    pub files: Vec<PathBuf>,
    /// Directories in which everything is secret; none lies in another.
    pub dirs: Vec<PathBuf>,
    /// The files below `dirs`.
    pub within: Vec<PathBuf>,
    /// Files outside the workspace that links with secret names lead to.
    pub outside: Vec<PathBuf>,
    /// Git's configuration files, which are no secrets but may contain credentials.
    pub git_configs: Vec<PathBuf>,
    /// Git directories, whatever their names are.
    pub(crate) repositories: Vec<PathBuf>,
    /// Files and links with the name `.git`, which lead to git directories.
    pub(crate) git_links: Vec<PathBuf>,
    /// False if there may be more secrets: the walk was cut short, or something in the workspace cannot be read.
    pub complete: bool,
    /// True if the walk was cut short and can go on.
    pub(super) cut: bool,
    /// The workspace.
    root: PathBuf,
    /// The directories of the workspace that were read.
    read: PathMap<Directory>,
    /// The directories outside the workspace that were read.
    read_outside: HashMap<PathBuf, Directory>,
    /// The files that may be secret by their content.
    looked: PathMap<Looked>,
    /// The files of `looked` that have several names (hard links). They can change in directories that are not watched.
    with_names: BTreeSet<PathBuf>,
    /// The links of the workspace, except those in generated directories.
    links: BTreeSet<PathBuf>,
    /// The links that have the name of a secret, with the canonical path that each leads to.
    followed: Vec<(PathBuf, Option<PathBuf>)>,
    /// Directories with the name of a secret that have source text too, so that they are not closed as a whole.
    with_source: Vec<PathBuf>,
}

/// The extent of one walk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent<'a> {
    /// Files and directories outside the workspace. Every other name of a file in them is secret.
    pub private: &'a [PathBuf],
    /// The most entries to read. Entries that are known already do not count.
    pub most: usize,
    /// The directories that may have changed since the survey before; `None` if any may have.
    pub changed: Option<&'a HashSet<Arc<Path>>>,
}

/// A directory that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Directory {
    /// `None` for a directory that has to be read again.
    stamp: Option<FileStamp>,
    /// The files and directories in the directory, if all of them could be read.
    entries: Option<Listing>,
    /// The files in the directory that contain a private key, though their names do not show that.
    keys: Arc<[PathBuf]>,
}

/// A file whose content was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Looked {
    /// `None` for a file that has to be read again.
    stamp: Option<FileStamp>,
    /// True if the file has several names (hard links): then it can change in directories that are not watched.
    has_names: bool,
    secret: bool,
}

impl Survey {
    /// Returns the directories of the workspace that have changed since this survey read them, or that contain a changed file
    /// that may be secret by its content. Returns `None` if anything else may have changed too. Two threads compare many stamps.
    pub(super) fn changed(&self) -> Option<HashSet<Arc<Path>>> {
        let root = Dir::open(&self.root).ok()?;
        let is_same = |path: &Path, stamp: Option<FileStamp>| {
            // What a link leads to may lie outside the workspace.
            let path = path.strip_prefix(&self.root).unwrap_or(path);
            stamp.is_some() && stamp == FileStamp::below(&root, path, AtFlags::empty())
        };
        let mut outside = self.read_outside.iter();
        if self.read.is_empty() || !outside.all(|(path, dir)| is_same(path, dir.stamp)) {
            return None;
        }
        let changed = |half: usize| -> HashSet<Arc<Path>> {
            let dirs = self.read.halves().into_iter().nth(half).into_iter();
            let dirs = dirs
                .flatten()
                .filter(|(path, dir)| !is_same(path, dir.stamp));
            let files = self.looked.halves().into_iter().nth(half).into_iter();
            let files = files
                .flatten()
                .filter(|(path, it)| !is_same(path, it.stamp));
            let above = files.filter_map(|(path, _)| path.parent().map(Arc::<Path>::from));
            dirs.map(|(path, _)| Arc::<Path>::from(path))
                .chain(above)
                .collect()
        };
        let (mut all, others) = match self.read.len() + self.looked.len() {
            0..WORTH_A_THREAD => (changed(0), changed(1)),
            _ => thread::scope(|scope| {
                let other = thread::Builder::new().spawn_scoped(scope, || changed(1));
                let mine = changed(0);
                let other = other.map_or_else(|_| Some(changed(1)), |it| it.join().ok());
                other.map(|other| (mine, other))
            })?,
        };
        all.extend(others);
        Some(all)
    }

    /// Returns whether nothing has changed since this survey.
    #[cfg(test)]
    fn is_current(&self) -> bool {
        self.changed().is_some_and(|changed| changed.is_empty())
    }

    /// Returns the workspace.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directories of the workspace that were read.
    pub(crate) fn directories(&self) -> impl Iterator<Item = PathBuf> {
        self.read.iter().map(|(path, _)| path)
    }

    /// Returns the directories that were read and in which everything is secret.
    pub(crate) fn closed_directories(&self) -> impl Iterator<Item = PathBuf> {
        let mut todo = self.dirs.clone();
        std::iter::from_fn(move || {
            loop {
                let dir = todo.pop()?;
                let Some(read) = self.directory(&dir) else {
                    continue;
                };
                let entries = read.entries.as_ref().into_iter().flat_map(Listing::iter);
                let below = entries.filter(|(_, kind)| kind.is_dir());
                todo.extend(below.map(|(name, _)| dir.join(name)));
                return Some(dir);
            }
        })
    }

    /// Returns whether a directory was there.
    pub(crate) fn has_directory(&self, dir: &Path) -> bool {
        self.read.contains(dir) || self.read_outside.contains_key(dir)
    }

    /// Returns the entries of a directory, if all of them are known.
    pub(crate) fn entries(&self, dir: &Path) -> Option<Listing> {
        self.directory(dir)?.entries
    }

    fn directory(&self, dir: &Path) -> Option<Directory> {
        let outside = || self.read_outside.get(dir).cloned();
        self.read.get(dir).or_else(outside)
    }

    /// Returns the links of the workspace, except those in generated directories such as `node_modules`.
    pub fn links(&self) -> impl Iterator<Item = &Path> {
        self.links.iter().map(PathBuf::as_path)
    }

    /// Returns whether there was a file at a path of the workspace. Returns `None` if its directory was not listed.
    pub fn had(&self, path: &Path) -> Option<bool> {
        let mut at = path;
        loop {
            let dir = at.parent().filter(|dir| dir.starts_with(&self.root))?;
            if let Some(entries) = self.entries(dir) {
                let is_there = entries.has(at.file_name()?);
                // A directory that was there and not listed may have had it.
                return (!is_there || at == path).then_some(is_there);
            }
            at = dir;
        }
    }

    /// Returns a new survey of the workspace `root`. Reads only directories and files that have changed since this survey.
    pub(super) fn again(&self, root: &Path, extent: Extent<'_>) -> Self {
        let opened = (root.canonicalize()).and_then(|root| Ok((Dir::open(&root)?, root)));
        let Ok((opened, root)) = opened else {
            return Self::default();
        };
        let mut walk = Walk {
            before: self,
            changed: extent.changed,
            root: Rc::new(opened),
            survey: Self {
                complete: true,
                root: root.clone(),
                ..Self::default()
            },
            left: extent.most,
            entries: 0,
            sources: Vec::new(),
            links: Vec::new(),
            keys: HashSet::new(),
            buffer: vec![0; content::MAX_KEY_BYTES],
        };
        walk.tree(&root, false);
        walk.follow(&root);
        walk.hard_links(extent.private);
        walk.finish()
    }

    /// Returns whether a file is secret, by any of its names. `real` is its canonical path.
    ///
    /// Blocks on files.
    pub fn covers(&self, real: &Path) -> bool {
        let files = || (self.files.iter()).chain(&self.within).chain(&self.outside);
        // The inode is asked for last, because a walk asks about each of its files.
        self.dirs.iter().any(|dir| real.starts_with(dir))
            || files().any(|file| file == real)
            || files().next().is_some()
                && inode(real).is_some_and(|it| files().any(|file| inode(file) == Some(it)))
    }

    /// Notes a file whose content was looked at.
    fn look(&mut self, path: &Path, looked: Looked) {
        match looked.has_names {
            true => self.with_names.insert(path.to_owned()),
            false => self.with_names.remove(path),
        };
        self.looked.insert(path, looked);
    }

    /// Returns the git directories of the workspace.
    pub fn git_directories(&self) -> &[PathBuf] {
        &self.repositories
    }

    /// Returns all secret files and directories, also those outside the workspace.
    pub fn closed_names(&self) -> impl Iterator<Item = &Path> {
        let files = self.files.iter().chain(&self.within).chain(&self.outside);
        files.chain(&self.dirs).map(PathBuf::as_path)
    }

    /// Returns the files and directories of the workspace that are closed.
    pub(crate) fn closed(&self) -> impl Iterator<Item = &PathBuf> {
        self.dirs.iter().chain(&self.files)
    }

    /// Returns whether a file or directory is closed, by this path.
    pub(crate) fn closes(&self, path: &Path) -> bool {
        self.dirs.iter().any(|dir| path.starts_with(dir)) || self.files.iter().any(|it| it == path)
    }

    /// Returns whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.dirs.is_empty()
    }
}

/// Walks the workspace `root` and returns its secrets.
///
/// Links are not followed, but the target of a link with a secret name is secret. So is a directory that cannot be
/// listed, and a FIFO, because reading it takes a message that is meant for another program. The objects and branches of
/// git's directories are left out, because branches may have any name.
pub fn survey(root: &Path) -> Survey {
    let all = Extent {
        private: &[],
        most: MAX_ENTRIES,
        changed: None,
    };
    Survey::default().again(root, all)
}

struct Walk<'a> {
    before: &'a Survey,
    changed: Option<&'a HashSet<Arc<Path>>>,
    /// The workspace.
    root: Rc<Dir>,
    survey: Survey,
    /// The number of entries that may still be read.
    left: usize,
    /// The number of entries so far.
    entries: usize,
    /// Source text below secret directories.
    sources: Vec<PathBuf>,
    /// Links that have the name of a secret.
    links: Vec<PathBuf>,
    /// Files that contain a private key, though their names do not show it.
    keys: HashSet<PathBuf>,
    /// Room for a file in which a private key is looked for.
    buffer: Vec<u8>,
}

/// A directory by its canonical path, which is opened when it is needed.
struct LazyDir {
    /// The workspace, and its path.
    root: (Rc<Dir>, PathBuf),
    path: PathBuf,
    opened: OnceCell<io::Result<Dir>>,
}

impl LazyDir {
    fn open(&self) -> &io::Result<Dir> {
        self.opened.get_or_init(|| {
            let (root, place) = &self.root;
            if self.path.as_os_str().len() >= MAX_PATH_BYTES {
                // co can open it part by part, but no mask and no watch can be set on a file in it.
                return Err(Errno::NAMETOOLONG.into());
            }
            match self.path.strip_prefix(place) {
                Ok(below) => root.dir(below),
                Err(_) => Dir::open(&self.path),
            }
        })
    }

    fn is_git_dir(&self) -> bool {
        self.open().as_ref().is_ok_and(repository::is_open_git_dir)
    }
}

impl Walk<'_> {
    /// Walks the tree below `start`. With `secret`, everything in it is secret.
    fn tree(&mut self, start: &Path, secret: bool) {
        let mut todo = VecDeque::from([(start.to_owned(), secret)]);
        let mut last = Vec::new();
        while let Some((dir, secret)) = todo.pop_front().or_else(|| last.pop()) {
            let opened = self.lazy(&dir);
            let is_git_dir = || opened.is_git_dir();
            let below = dir.strip_prefix(&self.survey.root);
            let has_links = below.is_ok_and(|below| !is_generated(below));
            for (name, kind) in self.entries(&opened).iter() {
                let (path, name) = (dir.join(name), name.to_string_lossy());
                if kind.is_symlink() && has_links {
                    self.survey.links.insert(path.clone());
                }
                if GIT_STORES.contains(&&*name) && is_of_git(&dir) && is_git_dir() {
                    continue;
                }
                if name == "HEAD" && is_git_dir() {
                    self.survey.repositories.push(dir.clone());
                }
                if name == ".git" && !kind.is_dir() {
                    self.survey.git_links.push(path.clone());
                }
                // A submodule may have any name.
                let git = name == ".git" || kind.is_dir() && is_of_git(&dir);
                let named = !git
                    && (names::is_secret(&name)
                        || kind.is_fifo()
                        || kind.is_file() && self.is_secret(&opened, &path, &name));
                match (kind.is_dir(), secret) {
                    (true, true) => todo.push_back((path, true)),
                    (true, false) if named => {
                        todo.push_back((path.clone(), true));
                        self.survey.dirs.push(path);
                    }
                    (true, false) if GENERATED_DIRECTORIES.contains(&&*name) => {
                        last.push((path, false))
                    }
                    (true, false) => todo.push_back((path, false)),
                    (false, true) if names::is_source(&name) => self.sources.push(path),
                    (false, true) => self.survey.within.push(path),
                    (false, false) if named && kind.is_symlink() => self.links.push(path),
                    (false, false) if named => self.survey.files.push(path),
                    (false, false) => {
                        if GIT_CONFIGS.contains(&&*name) && (is_of_git(&dir) || is_git_dir()) {
                            self.survey.git_configs.push(path);
                        }
                    }
                }
            }
        }
    }

    fn lazy(&self, dir: &Path) -> LazyDir {
        LazyDir {
            root: (Rc::clone(&self.root), self.survey.root.clone()),
            path: dir.to_owned(),
            opened: OnceCell::new(),
        }
    }

    /// Returns whether the watcher saw no change in a directory since the survey before.
    fn is_unchanged(&self, dir: &Path) -> bool {
        let may_differ = |changed: &HashSet<Arc<Path>>| changed.contains(dir);
        // Nothing watches the directories outside.
        dir.starts_with(&self.survey.root) && self.changed.is_some_and(|it| !may_differ(it))
    }

    /// Returns whether a file in an open directory is secret by its content. Reads it only if it has changed.
    fn is_secret(&mut self, dir: &LazyDir, path: &Path, name: &str) -> bool {
        if !content::decides(name) {
            return self.keys.contains(path);
        }
        let before = self.before.looked.get(path);
        if let Some(before) = &before
            && !before.has_names
            && self.is_unchanged(&dir.path)
        {
            self.survey.looked.insert(path, before.clone());
            return before.secret;
        }
        let Ok(dir) = dir.open() else {
            return false;
        };
        let looked = Looked::look(dir, path, before.as_ref());
        let secret = looked.secret;
        self.survey.look(path, looked);
        secret
    }

    /// Returns the entries of a directory. Reads it only if it has changed.
    fn entries(&mut self, dir: &LazyDir) -> Listing {
        if self.entries > MAX_ENTRIES {
            return self.cut_short();
        }
        let path = dir.path.as_path();
        let before = self.before.directory(path);
        if let Some(before) = &before
            && let Some(entries) = &before.entries
            && self.is_unchanged(path)
        {
            self.entries += entries.len();
            self.keys.extend(before.keys.iter().cloned());
            self.survey.read.insert(path, before.clone());
            return entries.clone();
        }
        let opened = dir.open();
        let itself = opened.as_ref().ok().and_then(|dir| dir.itself().ok());
        let stamp = itself.map(|node| node.stamp);
        let is_told = self.changed.is_some_and(|changed| changed.contains(path));
        let before = before.filter(|_| !is_told);
        let before = before.filter(|dir| dir.stamp.is_some() && dir.stamp == stamp);
        let stamp = stamp.filter(FileStamp::is_settled);
        let known = before.and_then(|dir| Some((dir.entries?, dir.keys)));
        let (entries, keys, whole) = match known {
            Some((entries, keys)) => (entries, keys, true),
            None if self.left == 0 => return self.cut_short(),
            None => {
                let (entries, whole) = self.read(path, opened);
                let keys = match opened {
                    Ok(opened) => {
                        let below = path.strip_prefix(&self.survey.root).unwrap_or(path);
                        find_keys((path, below), opened, &entries, &mut self.buffer)
                    }
                    Err(_) => Arc::default(),
                };
                (entries, keys, whole)
            }
        };
        self.entries += entries.len();
        self.keys.extend(keys.iter().cloned());
        let read = Directory {
            stamp,
            entries: whole.then(|| entries.clone()),
            keys,
        };
        match path.starts_with(&self.survey.root) {
            true => self.survey.read.insert(path, read),
            false => drop(self.survey.read_outside.insert(path.to_owned(), read)),
        }
        entries
    }

    /// Ends the walk. It can go on unless the workspace is too large for any survey.
    fn cut_short(&mut self) -> Listing {
        self.survey.complete = false;
        self.survey.cut = self.entries <= MAX_ENTRIES;
        Listing::default()
    }

    /// Reads a directory. Returns its entries, and whether these are all.
    fn read(&mut self, dir: &Path, opened: &io::Result<Dir>) -> (Listing, bool) {
        // Closed, because a command may find it readable, or find another directory at its path.
        let is_closed = |error: &io::Error| {
            use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
            matches!(error.kind(), PermissionDenied | NotFound | NotADirectory)
                || beneath::is_link_error(error)
        };
        let entries = match opened {
            Ok(opened) => opened.list().map_err(|error| is_closed(&error)),
            Err(error) => Err(is_closed(error)),
        };
        let entries = match entries {
            Ok(entries) => entries,
            Err(closed) => {
                match closed {
                    true => self.survey.dirs.push(dir.to_owned()),
                    false => self.survey.complete = false,
                }
                return (Listing::default(), false);
            }
        };
        let mut whole = true;
        let mut found = Vec::new();
        for entry in entries {
            if self.left == 0 {
                self.cut_short();
                whole = false;
                break;
            }
            self.left -= 1;
            match entry {
                Ok(entry) => found.push(entry),
                Err(_) => whole = false,
            }
        }
        (found.into_iter().collect(), whole)
    }

    /// Finds the targets of links with secret names.
    fn follow(&mut self, root: &Path) {
        for link in std::mem::take(&mut self.links) {
            let real = link.canonicalize();
            let followed = (link.clone(), real.as_ref().ok().cloned());
            self.survey.followed.push(followed);
            let Ok(real) = real else {
                // The file may be made later.
                self.survey.outside.push(link);
                continue;
            };
            if root.starts_with(&real) {
                continue;
            }
            if !real.starts_with(root) {
                self.outside(real);
            } else if real.is_dir() {
                self.tree(&real, true);
                self.survey.dirs.push(real);
            } else {
                self.survey.files.push(real);
            }
        }
    }

    /// Adds a file outside the workspace, or the files of a directory there, without its subdirectories.
    fn outside(&mut self, real: PathBuf) {
        if !real.is_dir() {
            return self.survey.outside.push(real);
        }
        let opened = self.lazy(&real);
        for (name, kind) in self.entries(&opened).iter() {
            if kind.is_file() {
                self.survey.outside.push(real.join(name));
            }
        }
    }

    /// Finds the other names of secret files, and of files in the private paths.
    fn hard_links(&mut self, private: &[PathBuf]) {
        let survey = &self.survey;
        let known = (survey.files.iter())
            .chain(&survey.within)
            .chain(&survey.outside);
        let mut inodes: HashSet<_> = known.filter_map(|path| inode(path)).collect();
        private
            .iter()
            .for_each(|path| inodes_below(path, &mut inodes));
        if inodes.is_empty() {
            return;
        }
        let mut others = Vec::new();
        for (dir, read) in survey.read.iter() {
            let entries = read.entries.as_ref().into_iter().flat_map(Listing::iter);
            let files = entries.filter(|(_, kind)| !kind.is_dir());
            let files = files.map(|(name, _)| dir.join(name));
            others.extend(files.filter(|path| inode(path).is_some_and(|it| inodes.contains(&it))));
        }
        self.survey.files.extend(others);
    }

    fn finish(self) -> Survey {
        let mut survey = self.survey;
        survey.dirs.sort();
        // A directory comes before those in it.
        survey
            .dirs
            .dedup_by(|inner, outer| inner.starts_with(outer));
        // Source text stays readable, so only the other files are secret.
        let readable = |dir: &PathBuf| {
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            names::holds_source(&name) && self.sources.iter().any(|file| file.starts_with(dir))
        };
        let (open, dirs): (Vec<_>, Vec<_>) = survey.dirs.into_iter().partition(readable);
        let below = |file: &PathBuf, dirs: &[PathBuf]| dirs.iter().any(|dir| file.starts_with(dir));
        let sources = self.sources.into_iter();
        survey
            .within
            .extend(sources.filter(|file| below(file, &dirs)));
        let (apart, within) = survey
            .within
            .into_iter()
            .partition(|file| below(file, &open));
        survey.files.extend::<Vec<_>>(apart);
        survey.files.retain(|file| !below(file, &dirs));
        (survey.dirs, survey.within) = (dirs, within);
        survey.with_source = open;
        for list in [&mut survey.files, &mut survey.within] {
            list.sort();
            list.dedup();
        }
        survey.read.pack_many();
        survey.looked.pack_many();
        survey
    }
}

impl Packed for Directory {
    fn pack(&self, bytes: &mut Vec<u8>) {
        pack_stamp(self.stamp, bytes);
        bytes.push(self.entries.is_some().into());
        let entries = self.entries.as_ref();
        pack_bytes(entries.map_or(&[], Listing::as_bytes), bytes);
        for path in &*self.keys {
            pack_bytes(path.as_os_str().as_bytes(), bytes);
        }
    }

    fn unpack(bytes: &mut Unpacker<'_>) -> Option<Self> {
        let stamp = unpack_stamp(bytes)?;
        let is_whole = bytes.number()? == 1;
        let entries = bytes.bytes()?;
        let keys = std::iter::from_fn(|| bytes.bytes());
        Some(Self {
            stamp,
            entries: is_whole.then(|| Listing::from_bytes(entries)),
            keys: keys.map(|path| OsStr::from_bytes(path).into()).collect(),
        })
    }
}

impl Packed for Looked {
    fn pack(&self, bytes: &mut Vec<u8>) {
        pack_stamp(self.stamp, bytes);
        bytes.extend([u8::from(self.has_names), u8::from(self.secret)]);
    }

    fn unpack(bytes: &mut Unpacker<'_>) -> Option<Self> {
        Some(Self {
            stamp: unpack_stamp(bytes)?,
            has_names: bytes.number()? == 1,
            secret: bytes.number()? == 1,
        })
    }
}

fn pack_stamp(stamp: Option<FileStamp>, bytes: &mut Vec<u8>) {
    bytes.push(stamp.is_some().into());
    if let Some(stamp) = stamp {
        stamp.pack(bytes);
    }
}

fn unpack_stamp(bytes: &mut Unpacker<'_>) -> Option<Option<FileStamp>> {
    match bytes.number()? {
        0 => Some(None),
        _ => Some(Some(FileStamp::unpack(bytes)?)),
    }
}

impl Looked {
    /// Looks into the file at `path`, whose directory is open, if it has changed since it was looked at `before`.
    fn look(dir: &Dir, path: &Path, before: Option<&Self>) -> Self {
        let name = path.file_name().unwrap_or_default();
        let node = dir.node(name).ok().flatten();
        let stamp = node.map(|node| node.stamp);
        let same = before.filter(|file| file.stamp.is_some() && file.stamp == stamp);
        let look = || content::has_secret(dir, path, &name.to_string_lossy());
        Self {
            // Before it is read: it may change meanwhile.
            stamp: stamp.filter(FileStamp::is_settled),
            has_names: node.is_some_and(|node| node.names > 1),
            secret: same.map_or_else(look, |file| file.secret),
        }
    }
}

/// Returns the files of a directory that contain a private key. The directory is at `path`, which is `below` the workspace.
///
/// This is cached with the directory. To check each such file before each command would take too long.
fn find_keys(
    (path, below): (&Path, &Path),
    dir: &Dir,
    entries: &Listing,
    buffer: &mut [u8],
) -> Arc<[PathBuf]> {
    if is_generated(below) {
        return Arc::default();
    }
    let files = entries.iter().filter(|(_, kind)| kind.is_file());
    let keys = files.map(|(file, _)| file).filter(|file| {
        let name = file.to_string_lossy();
        let unknown = !content::decides(&name) && !names::is_secret(&name);
        unknown
            && content::may_hold_key(&name)
            && dir
                .fill(file, buffer)
                .is_ok_and(|size| content::holds_key(&buffer[..size]))
    });
    keys.map(|file| path.join(file)).collect()
}

/// Returns whether a path below a workspace is a directory of generated files, or is in one.
pub(crate) fn is_generated(below: &Path) -> bool {
    let is_one = |part| GENERATED_DIRECTORIES.iter().any(|made| part == *made);
    below.iter().any(is_one)
}

/// Returns whether names in a directory below a workspace tell nothing about its secrets: it has generated files, or objects of
/// git.
pub(crate) fn is_unsurveyed(below: &Path) -> bool {
    is_generated(below) || patch::is_in_git_store(below)
}

fn is_of_git(dir: &Path) -> bool {
    dir.iter().any(|part| part == ".git")
}

/// Returns the device and inode of a file that has several names.
fn inode(path: &Path) -> Option<(u64, u64)> {
    let meta = path.symlink_metadata().ok()?;
    (meta.nlink() > 1).then(|| (meta.dev(), meta.ino()))
}

/// Adds the devices and inodes of files with several names, at and below a path.
fn inodes_below(path: &Path, inodes: &mut HashSet<(u64, u64)>) {
    let mut todo = vec![path.to_owned()];
    let mut left = MAX_PRIVATE;
    while let Some(path) = todo.pop() {
        let Ok(entries) = path.read_dir() else {
            inodes.extend(inode(&path));
            continue;
        };
        for entry in entries.flatten().take(left) {
            left -= 1;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                todo.push(entry.path());
            } else {
                inodes.extend(inode(&entry.path()));
            }
        }
    }
}
