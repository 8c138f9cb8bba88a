//! Finds the secrets of a workspace by a bounded walk.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::content;
use crate::beneath::{self, Dir, MAX_PATH_BYTES};
use crate::parallel;
use crate::path_map::{Packed, PathMap, Unpacker, pack_bytes};
use crate::regular::{ChangeTime, FileStamp};
use crate::repository;
use listing::Listing;

use co_policy::secret_names as names;

mod listing;
mod patch;
#[cfg(test)]
mod tests;

/// The most directory entries in a survey. A larger workspace is never surveyed completely.
const MAX_ENTRIES: usize = 2_000_000;

/// The most directory entries that are read at or below one private path; see [`WalkOptions::private`].
const MAX_PRIVATE: usize = 2_000;

/// Subdirectories of a git directory that contain branches and objects.
const GIT_STORES: [&str; 3] = ["objects", "refs", "logs"];

const GIT_CONFIGS: [&str; 2] = ["config", "config.worktree"];

/// The number of stamps from which on two threads compare them faster than one.
const MIN_PARALLEL_STAMPS: usize = 400;

/// The number of directories from which on several threads read them faster than one.
const MIN_PARALLEL_DIRECTORIES: usize = 100;

/// The most threads that read directories. More threads gain little, because the kernel does most of the work.
const MAX_THREADS: usize = 4;

/// Names of directories with many generated files. These directories are walked last, and are not searched for private keys.
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

/// The secrets of a workspace, by their canonical paths. Also has the facts that make the next survey faster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// The secret files that are not below `dirs`, including other hard links to secret files.
    pub files: Vec<PathBuf>,
    /// Directories that are secret as a whole. None of them is inside another one.
    pub dirs: Vec<PathBuf>,
    /// The files below `dirs`.
    pub within: Vec<PathBuf>,
    /// Files outside the workspace to which symbolic links with secret names lead.
    pub outside: Vec<PathBuf>,
    /// git's configuration files. They are not secret as a whole, but may contain credentials.
    pub git_configs: Vec<PathBuf>,
    /// Git directories, whatever their names.
    pub(crate) repositories: Vec<PathBuf>,
    /// Files and symbolic links named `.git`, which lead to git directories.
    pub(crate) git_links: Vec<PathBuf>,
    /// False if there may be further secrets: the walk was cut short, or a part of the workspace cannot be read.
    pub complete: bool,
    /// True if the walk was cut short and can be continued.
    pub(super) cut: bool,
    /// The canonical path of the workspace.
    root: PathBuf,
    /// The directories of the workspace that were read.
    read: PathMap<Directory>,
    /// The directories outside the workspace that were read.
    read_outside: HashMap<PathBuf, Directory>,
    /// The files that may be secret by their content, with the results of checking them.
    content_checks: PathMap<ContentCheck>,
    /// The files of `content_checks` that have several hard links. They can change through directories that are not watched.
    hard_linked: BTreeSet<PathBuf>,
    /// The symbolic links in the workspace, except in directories of generated files.
    links: BTreeSet<PathBuf>,
    /// The symbolic links that have the name of a secret.
    followed: Vec<FollowedLink>,
    /// The private paths ([`WalkOptions::private`]) with their stamps. A hard link to a file of the workspace may be made in them.
    private: Vec<(PathBuf, Option<FileStamp>)>,
    /// Directories that have the name of a secret but also contain source text, so that they are not closed as a whole.
    with_source: Vec<PathBuf>,
}

/// The scope of a walk through a workspace, and the number of its threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkOptions<'a> {
    /// Files and directories outside the workspace. A hard link in the workspace to one of these files is secret.
    pub private: &'a [PathBuf],
    /// The most directory entries to read. Cached entries do not count.
    pub most: usize,
    /// The directories that may have changed since the last survey. `None` if any directory may have changed.
    pub changed: Option<&'a HashSet<Arc<Path>>>,
    /// The most threads that read directories.
    pub threads: usize,
}

/// The contents of a directory that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Directory {
    /// The stamp of the directory. `None` if the directory must be read again.
    stamp: Option<FileStamp>,
    /// The entries of the directory. `None` if some of them could not be read.
    entries: Option<Listing>,
    /// The files in the directory that contain a private key although their names do not show this, sorted.
    keys: Arc<[PathBuf]>,
}

/// A symbolic link, and the file to which it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FollowedLink {
    path: PathBuf,
    /// The canonical path of the target. `None` if the target does not exist.
    target: Option<PathBuf>,
    /// The device and the inode of the target.
    inode: Option<(u64, u64)>,
}

/// The result of checking the content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ContentCheck {
    /// The stamp of the file. `None` if the file must be read again.
    stamp: Option<FileStamp>,
    /// True if the file has several hard links, so that it can change through directories that are not watched.
    has_hard_links: bool,
    secret: bool,
}

impl Survey {
    /// Returns the directories of the workspace that have changed since this survey. Includes the directory of a file that may be
    /// secret by its content if the file has changed. Looks at nothing outside the workspace; see [`Self::is_current_outside`].
    /// Returns `None` if the workspace must be read anew. Uses two threads to compare many stamps.
    pub(super) fn changed(&self) -> Option<HashSet<Arc<Path>>> {
        let root = Dir::open(&self.root).ok()?;
        let is_same = |path: &Path, stamp: Option<FileStamp>| {
            // What a link leads to may lie outside the workspace.
            let path = path.strip_prefix(&self.root).unwrap_or(path);
            stamp.is_some() && stamp == FileStamp::below(&root, path, AtFlags::empty())
        };
        if self.read.is_empty() {
            return None;
        }
        let changed = |half: usize| -> HashSet<Arc<Path>> {
            let dirs = self.read.halves().into_iter().nth(half).into_iter();
            let dirs = dirs
                .flatten()
                .filter(|(path, dir)| !is_same(path, dir.stamp));
            let files = self
                .content_checks
                .halves()
                .into_iter()
                .nth(half)
                .into_iter();
            let files = files
                .flatten()
                .filter(|(path, it)| !is_same(path, it.stamp));
            let above = files.filter_map(|(path, _)| path.parent().map(Arc::<Path>::from));
            dirs.map(|(path, _)| Arc::<Path>::from(path))
                .chain(above)
                .collect()
        };
        let found = match self.read.len() + self.content_checks.len() {
            0..MIN_PARALLEL_STAMPS => vec![changed(0), changed(1)],
            _ => parallel::map([0, 1], changed),
        };
        Some(found.into_iter().flatten().collect())
    }

    /// Returns this survey without the stamps of directories in which a file that may hold a private key was changed after
    /// `start`, so that they are read again. A write into a file leaves the stamp of its directory as it is.
    pub(super) fn without_rewritten(self: &Arc<Self>, start: ChangeTime) -> Arc<Self> {
        let Ok(root) = Dir::open(&self.root) else {
            return Arc::clone(self);
        };
        let is_rewritten = |(path, dir): &(PathBuf, Directory)| {
            let below = path.strip_prefix(&self.root).unwrap_or(path);
            let stamp =
                |name| FileStamp::below(&root, &below.join(name), AtFlags::SYMLINK_NOFOLLOW);
            let entries = dir.entries.as_ref();
            let mut files = entries.into_iter().flat_map(|it| key_candidates(below, it));
            files.any(|name| stamp(name).is_some_and(|it| !it.changed().is_before(start)))
        };
        let rewritten = |half: usize| -> Vec<(PathBuf, Directory)> {
            let dirs = self.read.halves().into_iter().nth(half).into_iter();
            dirs.flatten().filter(is_rewritten).collect()
        };
        let mut rewritten = parallel::map([0, 1], rewritten)
            .into_iter()
            .flatten()
            .peekable();
        if rewritten.peek().is_none() {
            return Arc::clone(self);
        }
        let mut survey = Self::clone(self);
        for (path, dir) in rewritten {
            survey.read.insert(&path, Directory { stamp: None, ..dir });
        }
        Arc::new(survey)
    }

    /// Returns true if nothing has changed since this survey.
    #[cfg(test)]
    fn is_current(&self) -> bool {
        self.is_current_outside() && self.changed().is_some_and(|changed| changed.is_empty())
    }

    /// Returns the canonical path of the workspace.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directories of the workspace that the survey has read.
    pub(crate) fn directories(&self) -> impl Iterator<Item = PathBuf> {
        self.read.iter().map(|(path, _)| path)
    }

    /// Returns the directories that are secret as a whole, and all directories below them.
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

    /// Returns whether the survey has read a directory.
    pub(crate) fn has_directory(&self, dir: &Path) -> bool {
        self.read.contains(dir) || self.read_outside.contains_key(dir)
    }

    /// Returns the entries of a directory. Returns `None` if they are not all known.
    pub(crate) fn entries(&self, dir: &Path) -> Option<Listing> {
        self.directory(dir)?.entries
    }

    fn directory(&self, dir: &Path) -> Option<Directory> {
        let outside = || self.read_outside.get(dir).cloned();
        self.read.get(dir).or_else(outside)
    }

    /// Returns the symbolic links in the workspace, except in directories of generated files such as `node_modules`.
    pub fn links(&self) -> impl Iterator<Item = &Path> {
        self.links.iter().map(PathBuf::as_path)
    }

    /// Returns whether a file existed at a path of the workspace. Returns `None` if its directory was not read.
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

    /// Surveys the workspace `root` again. Reads only directories and files that have changed since this survey.
    pub(super) fn again(&self, root: &Path, options: WalkOptions<'_>) -> Self {
        let opened = (root.canonicalize()).and_then(|path| Ok((Dir::open(&path)?, path)));
        let Ok((dir, path)) = opened else {
            return Self::default();
        };
        let root = Root { dir, path };
        let (left, entries) = (AtomicUsize::new(options.most), AtomicUsize::new(0));
        let mut walk = Walk::new(WalkContext {
            before: self,
            options,
            root: &root,
            left: &left,
            entries: &entries,
        });
        walk.tree(&root.path, false);
        walk.follow(&root.path);
        walk.hard_links(options.private);
        walk.finish()
    }

    /// Returns whether a file, or another hard link to it, is secret. `real` must be its canonical path.
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

    /// Records the result of checking the content of a file.
    fn note_check(&mut self, path: &Path, check: ContentCheck) {
        match check.has_hard_links {
            true => self.hard_linked.insert(path.to_owned()),
            false => self.hard_linked.remove(path),
        };
        self.content_checks.insert(path, check);
    }

    /// Returns the git directories of the workspace.
    pub fn git_directories(&self) -> &[PathBuf] {
        &self.repositories
    }

    /// Returns all secret files and directories, including those outside the workspace.
    pub fn closed_names(&self) -> impl Iterator<Item = &Path> {
        let files = self.files.iter().chain(&self.within).chain(&self.outside);
        files.chain(&self.dirs).map(PathBuf::as_path)
    }

    /// Returns the files and directories of the workspace that must be closed to commands.
    pub(crate) fn closed(&self) -> impl Iterator<Item = &PathBuf> {
        self.dirs.iter().chain(&self.files)
    }

    /// Returns whether the file or directory at a path must be closed to commands. Checks only this path, not other hard links.
    pub(crate) fn closes(&self, path: &Path) -> bool {
        self.dirs.iter().any(|dir| path.starts_with(dir)) || self.files.iter().any(|it| it == path)
    }

    /// Returns true if the workspace has no secrets.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.dirs.is_empty()
    }
}

/// Walks the workspace `root` and returns its secrets.
///
/// Does not follow symbolic links, but the target of a link with a secret name is secret. A directory that cannot be listed is
/// secret. So is a FIFO, because reading it would take a message that is meant for another program. Skips the objects and
/// branches in git directories, because branches may have any name.
pub fn survey(root: &Path) -> Survey {
    let all = WalkOptions {
        private: &[],
        most: MAX_ENTRIES,
        changed: None,
        threads: usable_threads(),
    };
    Survey::default().again(root, all)
}

/// Returns the number of threads that a walk may use on this machine.
pub(super) fn usable_threads() -> usize {
    thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS))
}

/// The state that all threads of a walk share.
#[derive(Clone, Copy)]
struct WalkContext<'a> {
    before: &'a Survey,
    options: WalkOptions<'a>,
    root: &'a Root,
    /// The number of directory entries that may still be read.
    left: &'a AtomicUsize,
    /// The number of directory entries found so far.
    entries: &'a AtomicUsize,
}

/// The open directory of a workspace, and its canonical path.
struct Root {
    dir: Dir,
    path: PathBuf,
}

/// A walk, or the part of it that one thread does.
struct Walk<'a> {
    context: WalkContext<'a>,
    survey: Survey,
    /// Files with source text below secret directories.
    sources: Vec<PathBuf>,
    /// Symbolic links that have the name of a secret.
    links: Vec<PathBuf>,
    /// The files of the last directory that contain a private key although their names do not show this, sorted.
    keys: Arc<[PathBuf]>,
    /// True if the walk was cut short.
    cut_short: bool,
    /// A buffer for the content of a file that is searched for a private key.
    buffer: Vec<u8>,
}

/// A directory to read.
struct ToRead {
    path: PathBuf,
    /// True if everything in the directory is secret.
    secret: bool,
}

/// The subdirectories of directories that were read.
#[derive(Default)]
struct Subdirectories {
    /// The directories to read next.
    next: Vec<ToRead>,
    /// The directories of generated files, to read last.
    last: Vec<ToRead>,
}

/// A directory, given by its canonical path, that is opened only if necessary.
struct LazyDir<'a> {
    root: &'a Root,
    path: &'a Path,
    opened: OnceCell<io::Result<Dir>>,
}

impl<'a> LazyDir<'a> {
    fn new(root: &'a Root, path: &'a Path) -> Self {
        Self {
            root,
            path,
            opened: OnceCell::new(),
        }
    }

    fn open(&self) -> &io::Result<Dir> {
        self.opened.get_or_init(|| {
            if self.path.as_os_str().len() >= MAX_PATH_BYTES {
                // co can open it part by part, but no mask and no watch can be set on a file in it.
                return Err(Errno::NAMETOOLONG.into());
            }
            match self.path.strip_prefix(&self.root.path) {
                Ok(below) => self.root.dir.dir(below),
                Err(_) => Dir::open(self.path),
            }
        })
    }

    fn is_git_dir(&self) -> bool {
        self.open().as_ref().is_ok_and(repository::is_open_git_dir)
    }
}

impl<'a> Walk<'a> {
    fn new(context: WalkContext<'a>) -> Self {
        Self {
            survey: Survey {
                complete: true,
                root: context.root.path.clone(),
                ..Survey::default()
            },
            context,
            sources: Vec::new(),
            links: Vec::new(),
            keys: Arc::default(),
            cut_short: false,
            buffer: vec![0; content::MAX_KEY_BYTES],
        }
    }

    /// Walks the tree below `start`. If `secret` is true, everything in the tree is secret.
    fn tree(&mut self, start: &Path, secret: bool) {
        let path = start.to_owned();
        let mut found = Subdirectories {
            next: vec![ToRead { path, secret }],
            last: Vec::new(),
        };
        loop {
            let level = match found.next.is_empty() {
                true => std::mem::take(&mut found.last),
                false => std::mem::take(&mut found.next),
            };
            if level.is_empty() {
                return;
            }
            self.visit_level(&level, &mut found);
        }
    }

    /// Visits directories, in several threads if there are many.
    fn visit_level(&mut self, level: &[ToRead], found: &mut Subdirectories) {
        let context = self.context;
        let threads = context.options.threads;
        if threads == 1 || level.len() < MIN_PARALLEL_DIRECTORIES {
            level.iter().for_each(|dir| self.visit(dir, found));
            return;
        }
        let parts = level.chunks(level.len().div_ceil(threads));
        let visited = parallel::map(parts, |part| {
            let (mut walk, mut found) = (Walk::new(context), Subdirectories::default());
            part.iter().for_each(|dir| walk.visit(dir, &mut found));
            (walk, found)
        });
        for (walk, more) in visited {
            self.absorb(walk);
            found.next.extend(more.next);
            found.last.extend(more.last);
        }
    }

    /// Sorts the entries of a directory into secrets and subdirectories.
    fn visit(&mut self, ToRead { path: dir, secret }: &ToRead, found: &mut Subdirectories) {
        let opened = LazyDir::new(self.context.root, dir);
        let is_git_dir = || opened.is_git_dir();
        let below = dir.strip_prefix(&self.survey.root);
        let has_links = below.is_ok_and(|below| !is_generated(below));
        for (name, kind) in self.entries(&opened).iter() {
            let (path, name) = (dir.join(name), name.to_string_lossy());
            if kind.is_symlink() && has_links {
                self.survey.links.insert(path.clone());
            }
            if GIT_STORES.contains(&&*name) && is_of_git(dir) && is_git_dir() {
                continue;
            }
            if name == "HEAD" && is_git_dir() {
                self.survey.repositories.push(dir.clone());
            }
            if name == ".git" && !kind.is_dir() {
                self.survey.git_links.push(path.clone());
            }
            // A submodule may have any name.
            let git = name == ".git" || kind.is_dir() && is_of_git(dir);
            let named = !git
                && (names::is_secret(&name)
                    || kind.is_fifo()
                    || kind.is_file() && self.is_secret(&opened, &path, &name));
            let below = |path, secret| ToRead { path, secret };
            match (kind.is_dir(), *secret) {
                (true, true) => found.next.push(below(path, true)),
                (true, false) if named => {
                    found.next.push(below(path.clone(), true));
                    self.survey.dirs.push(path);
                }
                (true, false) if GENERATED_DIRECTORIES.contains(&&*name) => {
                    found.last.push(below(path, false));
                }
                (true, false) => found.next.push(below(path, false)),
                (false, true) if names::is_source(&name) => self.sources.push(path),
                (false, true) => self.survey.within.push(path),
                (false, false) if named && kind.is_symlink() => self.links.push(path),
                (false, false) if named => self.survey.files.push(path),
                (false, false) => {
                    if GIT_CONFIGS.contains(&&*name) && (is_of_git(dir) || is_git_dir()) {
                        self.survey.git_configs.push(path);
                    }
                }
            }
        }
    }

    /// Adds the results of another thread.
    fn absorb(&mut self, other: Walk<'_>) {
        let Walk {
            survey: theirs,
            sources,
            links,
            cut_short,
            context: _,
            keys: _,
            buffer: _,
        } = other;
        self.sources.extend(sources);
        self.links.extend(links);
        self.cut_short |= cut_short;
        let Survey {
            files,
            dirs,
            within,
            git_configs,
            repositories,
            git_links,
            complete,
            root: _,
            read,
            content_checks,
            hard_linked,
            links,
            // The first thread adds these after the walk.
            outside: _,
            cut: _,
            read_outside: _,
            followed: _,
            private: _,
            with_source: _,
        } = theirs;
        let mine = &mut self.survey;
        mine.files.extend(files);
        mine.dirs.extend(dirs);
        mine.within.extend(within);
        mine.git_configs.extend(git_configs);
        mine.repositories.extend(repositories);
        mine.git_links.extend(git_links);
        mine.complete &= complete;
        mine.read.append(read);
        mine.content_checks.append(content_checks);
        mine.hard_linked.extend(hard_linked);
        mine.links.extend(links);
    }

    /// Returns true if the watcher reported no change in a directory since the last survey.
    fn is_unchanged(&self, dir: &Path) -> bool {
        let may_differ = |changed: &HashSet<Arc<Path>>| changed.contains(dir);
        // Nothing watches the directories outside.
        dir.starts_with(&self.survey.root)
            && self
                .context
                .options
                .changed
                .is_some_and(|it| !may_differ(it))
    }

    /// Returns whether a file in an open directory is secret by its content. Reads the file only if it has changed.
    fn is_secret(&mut self, dir: &LazyDir<'_>, path: &Path, name: &str) -> bool {
        if !content::decides(name) {
            return self
                .keys
                .binary_search_by(|key| key.as_path().cmp(path))
                .is_ok();
        }
        let before = self.context.before.content_checks.get(path);
        if let Some(before) = &before
            && !before.has_hard_links
            && self.is_unchanged(dir.path)
        {
            self.survey.content_checks.insert(path, before.clone());
            return before.secret;
        }
        let Ok(dir) = dir.open() else {
            return false;
        };
        let check = ContentCheck::of(dir, path, before.as_ref());
        let secret = check.secret;
        self.survey.note_check(path, check);
        secret
    }

    /// Returns the entries of a directory. Reads the directory only if it has changed.
    fn entries(&mut self, dir: &LazyDir<'_>) -> Listing {
        if self.context.entries.load(Ordering::Relaxed) > MAX_ENTRIES {
            return self.cut_short();
        }
        let path = dir.path;
        let before = self.context.before.directory(path);
        if let Some(before) = &before
            && let Some(entries) = &before.entries
            && self.is_unchanged(path)
        {
            self.count_found(entries);
            self.keys = Arc::clone(&before.keys);
            self.survey.read.insert(path, before.clone());
            return entries.clone();
        }
        let opened = dir.open();
        let itself = opened.as_ref().ok().and_then(|dir| dir.itself().ok());
        let stamp = itself.map(|node| node.stamp);
        let changed = self.context.options.changed;
        let is_told = changed.is_some_and(|changed| changed.contains(path));
        let before = before.filter(|_| !is_told);
        let before = before.filter(|dir| dir.stamp.is_some() && dir.stamp == stamp);
        let stamp = stamp.filter(FileStamp::is_settled);
        let known = before.and_then(|dir| Some((dir.entries?, dir.keys)));
        let (entries, keys, whole) = match known {
            Some((entries, keys)) => (entries, keys, true),
            None if self.context.left.load(Ordering::Relaxed) == 0 => return self.cut_short(),
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
        self.count_found(&entries);
        self.keys = Arc::clone(&keys);
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

    fn count_found(&self, entries: &Listing) {
        let found = self.context.entries;
        found.fetch_add(entries.len(), Ordering::Relaxed);
    }

    /// Takes one entry from the number that may still be read. Returns false if none is left.
    fn may_read(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        let (left, order) = (self.context.left, Ordering::Relaxed);
        left.fetch_update(order, order, less).is_ok()
    }

    /// Marks the walk as cut short.
    fn cut_short(&mut self) -> Listing {
        self.cut_short = true;
        Listing::default()
    }

    /// Reads a directory. Returns its entries, and true if these are all.
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
            if !self.may_read() {
                self.cut_short();
                whole = false;
                break;
            }
            match entry {
                Ok(entry) => found.push(entry),
                Err(_) => whole = false,
            }
        }
        (found.into_iter().collect(), whole)
    }

    /// Finds the targets of symbolic links with secret names.
    fn follow(&mut self, root: &Path) {
        for link in std::mem::take(&mut self.links) {
            let followed = FollowedLink::of(&link);
            let real = followed.target.clone();
            self.survey.followed.push(followed);
            let Some(real) = real else {
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

    /// Adds a file outside the workspace. For a directory there, adds its files, but not its subdirectories.
    fn outside(&mut self, real: PathBuf) {
        if !real.is_dir() {
            return self.survey.outside.push(real);
        }
        let opened = LazyDir::new(self.context.root, &real);
        for (name, kind) in self.entries(&opened).iter() {
            if kind.is_file() {
                self.survey.outside.push(real.join(name));
            }
        }
    }

    /// Finds other hard links to secret files, and to files in the private paths.
    fn hard_links(&mut self, private: &[PathBuf]) {
        let stamps = private.iter().map(|it| (it.clone(), FileStamp::of(it)));
        self.survey.private = stamps.collect();
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
        survey.complete &= !self.cut_short;
        // A workspace with more entries is too large for any survey.
        let entries = self.context.entries.load(Ordering::Relaxed);
        survey.cut = self.cut_short && entries <= MAX_ENTRIES;
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
        survey.content_checks.pack_many();
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

impl Packed for ContentCheck {
    fn pack(&self, bytes: &mut Vec<u8>) {
        pack_stamp(self.stamp, bytes);
        bytes.extend([u8::from(self.has_hard_links), u8::from(self.secret)]);
    }

    fn unpack(bytes: &mut Unpacker<'_>) -> Option<Self> {
        Some(Self {
            stamp: unpack_stamp(bytes)?,
            has_hard_links: bytes.number()? == 1,
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

impl ContentCheck {
    /// Checks the content of the file at `path` in the open directory. Reuses the result `before` if the file has not changed.
    fn of(dir: &Dir, path: &Path, before: Option<&Self>) -> Self {
        let name = path.file_name().unwrap_or_default();
        let node = dir.node(name).ok().flatten();
        let stamp = node.map(|node| node.stamp);
        let same = before.filter(|file| file.stamp.is_some() && file.stamp == stamp);
        let look = || content::has_secret(dir, path, &name.to_string_lossy());
        Self {
            // Before it is read: it may change meanwhile.
            stamp: stamp.filter(FileStamp::is_settled),
            has_hard_links: node.is_some_and(|node| node.names > 1),
            secret: same.map_or_else(look, |file| file.secret),
        }
    }
}

/// Returns the files in a directory that contain a private key, sorted. `path` is the directory, and `below` its path relative to the
/// workspace.
///
/// The result is cached with the directory, because checking all these files before each command would take too long.
fn find_keys(
    (path, below): (&Path, &Path),
    dir: &Dir,
    entries: &Listing,
    buffer: &mut [u8],
) -> Arc<[PathBuf]> {
    let keys = key_candidates(below, entries).filter(|file| {
        dir.fill(file, buffer)
            .is_ok_and(|size| content::holds_key(&buffer[..size]))
    });
    let mut keys: Vec<_> = keys.map(|file| path.join(file)).collect();
    keys.sort();
    keys.into()
}

/// Returns the files of a directory that must be searched for a private key although their names do not show that they are secret.
/// `below` is the path of the directory, relative to the workspace.
fn key_candidates<'a>(
    below: &Path,
    entries: &'a Listing,
) -> impl Iterator<Item = &'a OsStr> + use<'a> {
    let is_searched = !is_generated(below);
    let files = entries
        .iter()
        .filter(move |(_, kind)| is_searched && kind.is_file());
    files.map(|(file, _)| file).filter(|file| {
        let name = file.to_string_lossy();
        // First what excludes most files.
        content::may_hold_key(&name) && !content::decides(&name) && !names::is_secret(&name)
    })
}

/// Returns true if a path, relative to its workspace, is a directory of generated files or is inside one.
pub(crate) fn is_generated(below: &Path) -> bool {
    let is_one = |part| GENERATED_DIRECTORIES.iter().any(|made| part == *made);
    below.iter().any(is_one)
}

/// Returns true if new names in a directory, given by its path relative to the workspace, are irrelevant for secrets: the
/// directory contains generated files or git objects.
pub(crate) fn is_unsurveyed(below: &Path) -> bool {
    is_generated(below) || patch::is_in_git_store(below)
}

fn is_of_git(dir: &Path) -> bool {
    dir.iter().any(|part| part == ".git")
}

/// Returns the device and the inode of a file if it has several hard links.
fn inode(path: &Path) -> Option<(u64, u64)> {
    let meta = path.symlink_metadata().ok()?;
    (meta.nlink() > 1).then(|| (meta.dev(), meta.ino()))
}

/// Adds the device and the inode of each file with several hard links, at or below a path.
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
