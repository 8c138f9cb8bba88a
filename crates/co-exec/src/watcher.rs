//! Reports the directories of a workspace that have changed since an earlier moment, so that surveys and checkpoints read only
//! these directories.
//!
//! Each directory has an inotify watch. A thread reads the queue of events so that it does not overflow. Before each answer, the
//! queue is read to its end. If events may be missing, the answer says that anything may have changed, and the watcher ends.
//! inotify reports a write through a memory mapping only when the file is closed.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::beneath::{Dir, MAX_PATH_BYTES};
use crate::path_map::{Packed, PathMap, Unpacker, pack_number};

#[cfg(test)]
mod tests;

/// The most directories that a watched workspace may have.
const MAX_DIRECTORIES: usize = 150_000;

/// The divisor of the user's limit on watches: one workspace may use a third of the limit, because the editor needs watches too.
const WATCH_SHARE: usize = 3;

/// The kernel setting that limits the watches of a user.
const MAX_USER_WATCHES: &str = "/proc/sys/fs/inotify/max_user_watches";

/// The kernel's list of mounts. `poll` on this file reports changes of the list.
const MOUNTS: &str = "/proc/self/mountinfo";

/// The magic numbers of file systems that report each change: ext, xfs, btrfs, f2fs, bcachefs, zfs, tmpfs and ramfs. On other
/// file systems, files may change on another machine, or below an overlay.
const TELLING: [u64; 8] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0xf2f5_2010,
    0xca45_1a4e,
    0x2fc1_2fc1,
    0x0102_1994,
    0x8584_58f6,
];

/// The increment of the nice value of a thread that makes a watcher.
const NICE_INCREMENT: i32 = 10;

/// The size in bytes of the buffer into which inotify events are read.
const EVENT_BYTES: usize = 64 << 10;

/// The most events that are read before one answer, because a program may cause events faster than co reads them.
const MAX_EVENTS: usize = 200_000;

/// The most events that a [`NameLog`] keeps. A command that unpacks a large archive causes an event for each file.
const MAX_LOGGED: usize = 200_000;

/// The most changed directories that the watcher remembers.
const MAX_CHANGED: usize = 50_000;

/// If the unpacked watches outnumber the packed watches by more than this, all watches are packed again; see [`Watches`].
const MAX_UNPACKED: usize = 4_096;

/// The pause between two reads of the queue. To overflow the queue in this time, a program must cause 16,384 events.
const PAUSE: Duration = Duration::from_millis(50);

/// The time without a query for changes after which a watcher ends. Also the time after which a failed start is tried again.
const IDLE_LIMIT: Duration = Duration::from_secs(600);

/// The reason why a workspace is not watched.
#[derive(Debug, thiserror::Error)]
pub enum UnwatchedReason {
    #[error("it has more than {MAX_DIRECTORIES} directories")]
    Size,
    #[error("it has more directories than a third of fs.inotify.max_user_watches ({0})")]
    UserLimit(usize),
    #[error("its file system does not tell of every change")]
    FileSystem,
    #[error("another file system is mounted in it, at {}", .0.display())]
    Mount(PathBuf),
    #[error("the system refuses: {0}")]
    System(#[from] std::io::Error),
}

impl From<Errno> for UnwatchedReason {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

/// The watchers of workspaces. Clones share the watchers, which end when the last clone is dropped.
#[derive(Debug, Clone, Default)]
pub struct Watchers(Arc<Slots>);

#[derive(Debug, Default)]
struct Slots(Mutex<HashMap<PathBuf, Slot>>);

#[derive(Debug)]
enum Slot {
    Starting,
    Watching(Arc<Watcher>),
    /// The watcher could not start. Contains the time of the attempt.
    Refused(Instant),
}

/// A moment in the life of a watcher. A later query can ask for all changes since this moment.
#[derive(Debug, Clone)]
pub struct ChangeMark {
    watcher: Arc<()>,
    number: u64,
}

/// The answer of a watcher to a query for changes.
#[derive(Debug, Default)]
pub struct Changes {
    /// The mark for the moment of this answer. `None` if the workspace is not watched.
    pub mark: Option<ChangeMark>,
    /// The canonical paths of directories whose entries or files may have changed since the given mark. For a new directory,
    /// contains all directories below it too. `None` if anything may have changed.
    pub dirs: Option<HashSet<Arc<Path>>>,
}

/// A log of the names that have appeared, disappeared or moved in the directories of a workspace since the log was created.
#[derive(Debug)]
pub(crate) struct NameLog {
    watcher: Arc<Watcher>,
    events: Arc<Mutex<LoggedEvents>>,
}

#[derive(Debug)]
struct LoggedEvents {
    /// Returns true if the log skips the names in a directory, given by its path relative to the workspace.
    is_left_out: fn(&Path) -> bool,
    /// The directories whose names are logged even if `is_left_out` returns true for them.
    wanted: HashSet<PathBuf>,
    events: Vec<NameEvent>,
    /// True if events were dropped because there were too many.
    lost: bool,
}

/// An event about a name that appeared, disappeared or moved.
#[derive(Debug)]
pub(crate) struct NameEvent {
    pub(crate) path: PathBuf,
    pub(crate) flags: ReadFlags,
    /// The number that the two events of one move share: the name that disappears, and the name that appears.
    pub(crate) cookie: u32,
}

impl NameLog {
    /// Adds directories, given by their canonical paths. From now on, the log never skips the names in them.
    pub(crate) fn want<'a>(&self, dirs: impl Iterator<Item = &'a Path>) {
        let mut log = self.events.lock();
        log.wanted.extend(dirs.map(Path::to_owned));
    }

    /// Removes and returns the events since the last call, from the oldest to the newest. Returns `None` if events may be
    /// missing.
    ///
    /// Blocks on files.
    pub(crate) fn take(&self) -> Option<Vec<NameEvent>> {
        let mut state = self.watcher.state.lock();
        state.over = state.over || !self.watcher.is_whole(&mut state.tree);
        if state.over {
            return None;
        }
        let mut log = self.events.lock();
        (!log.lost).then(|| std::mem::take(&mut log.events))
    }
}

impl Watchers {
    /// Creates a log of the names in the workspace `root`, a canonical path. Returns `None` if the workspace is not watched. The
    /// log skips directories for which `is_left_out` returns true; its argument is the path relative to the workspace.
    ///
    /// Blocks on files.
    pub(crate) fn names(&self, root: &Path, is_left_out: fn(&Path) -> bool) -> Option<NameLog> {
        let watcher = match self.0.0.lock().get(root)? {
            Slot::Watching(watcher) => Arc::clone(watcher),
            Slot::Starting | Slot::Refused(_) => return None,
        };
        let events = Arc::new(Mutex::new(LoggedEvents {
            is_left_out,
            wanted: HashSet::new(),
            events: Vec::new(),
            lost: false,
        }));
        let mut state = watcher.state.lock();
        // Events of before do not belong to it. Those that are read now may be the last ones that `changes` could tell.
        state.over = state.over || !watcher.is_whole(&mut state.tree);
        if state.over || state.tree.root != root {
            return None;
        }
        state.tree.logs.push(Arc::downgrade(&events));
        drop(state);
        Some(NameLog { watcher, events })
    }

    /// Starts to watch the workspace `root` in the background, unless it is watched already.
    pub fn start(&self, root: &Path) {
        let mut slots = self.0.0.lock();
        match slots.get(root) {
            Some(Slot::Starting | Slot::Watching(_)) => return,
            Some(Slot::Refused(when)) if when.elapsed() < IDLE_LIMIT => return,
            Some(Slot::Refused(_)) | None => {}
        }
        slots.insert(root.to_owned(), Slot::Starting);
        drop(slots);
        let (slots, place) = (Arc::downgrade(&self.0), root.to_owned());
        let work = move || Self::watch(&slots, &place);
        let thread = thread::Builder::new().name("watcher".to_owned());
        if thread.spawn(work).is_err() {
            let refused = Slot::Refused(Instant::now());
            self.0.0.lock().insert(root.to_owned(), refused);
        }
    }

    /// Returns the directories of the workspace `root` that may have changed since the mark `since`.
    ///
    /// Blocks on files.
    pub fn changes(&self, root: &Path, since: Option<&ChangeMark>) -> Changes {
        let watcher = match self.0.0.lock().get(root) {
            Some(Slot::Watching(watcher)) => Arc::clone(watcher),
            _ => return Changes::default(),
        };
        let Some(changes) = watcher.changes(since) else {
            self.forget(root, &watcher);
            return Changes::default();
        };
        changes
    }

    /// Watches a workspace until nobody has asked for its changes for [`IDLE_LIMIT`].
    fn watch(slots: &Weak<Slots>, root: &Path) {
        let watchers = || slots.upgrade().map(Self);
        // So the start does not slow down the first call of a chat.
        let made = match at_low_priority(|| Watcher::new(root)) {
            Ok(made) => made.map(Arc::new),
            Err(error) => Err(error.into()),
        };
        let Some(all) = watchers() else {
            return;
        };
        let watcher = match made {
            Ok(watcher) => watcher,
            Err(why) => {
                tracing::info!(root = %root.display(), %why, "the workspace is not watched");
                let refused = Slot::Refused(Instant::now());
                all.0.0.lock().insert(root.to_owned(), refused);
                return;
            }
        };
        let slot = Slot::Watching(Arc::clone(&watcher));
        all.0.0.lock().insert(root.to_owned(), slot);
        drop(all);
        watcher.follow();
        if let Some(all) = watchers() {
            all.forget(root, &watcher);
        }
    }

    /// Ends a watcher, and removes it from the list.
    fn forget(&self, root: &Path, watcher: &Arc<Watcher>) {
        let mut slots = self.0.0.lock();
        let same = |slot: &Slot| matches!(slot, Slot::Watching(it) if Arc::ptr_eq(it, watcher));
        if slots.get(root).is_some_and(same) {
            slots.remove(root);
        }
        drop(slots);
        watcher.end();
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        for slot in self.0.lock().values() {
            if let Slot::Watching(watcher) = slot {
                watcher.end();
            }
        }
    }
}

/// Watches the directories of one workspace.
#[derive(Debug)]
pub struct Watcher {
    /// The path of the workspace. It may contain symbolic links.
    root: PathBuf,
    inotify: OwnedFd,
    /// Wakes the watcher's thread when the watcher must end.
    ended: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tree: Tree,
    /// The time of the last query for changes.
    asked: Instant,
    over: bool,
}

/// The watched directories of a workspace, and their changes.
#[derive(Debug)]
struct Tree {
    /// The identity of the watcher, which each of its [`ChangeMark`]s contains.
    id: Arc<()>,
    /// The canonical path of the workspace.
    root: PathBuf,
    dir: Dir,
    mounts: File,
    watches: Watches,
    /// The directories that could not be opened.
    closed: HashSet<Arc<Path>>,
    most: usize,
    /// The logs to which events are added. A log that was dropped leaves a dead entry here.
    logs: Vec<Weak<Mutex<LoggedEvents>>>,
    /// The number that the next [`ChangeMark`] gets.
    number: u64,
    /// The directories that have changed, each with the number of the first mark after its last change.
    changed: HashMap<Arc<Path>, u64>,
    /// The lowest number of a mark since which `changed` contains all changes.
    known_since: u64,
}

/// The watches of all directories, in a compact form.
#[derive(Debug, Default)]
struct Watches {
    /// The watch descriptor of each directory.
    numbers: PathMap<Watch>,
    /// The sorted watch descriptors of the packed entries of `numbers`, each with the index of its entry. Some of these
    /// descriptors are outdated.
    packed: Vec<(i32, usize)>,
    /// The directories of the watches that are not packed yet.
    new: HashMap<i32, Arc<Path>>,
}

/// A watch descriptor of inotify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Watch(i32);

/// An event of inotify in a watched directory.
struct Event {
    path: Arc<Path>,
    flags: ReadFlags,
    name: Option<PathBuf>,
    cookie: u32,
}

/// The flags of those inotify events that are about names: a name is created, deleted or moved.
const NAMES: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);

/// Runs `work` on a thread of its own with a low priority. The calling thread keeps its priority, which a thread cannot raise
/// again.
///
/// # Errors
/// The thread cannot start.
fn at_low_priority<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    let work = || {
        // If this fails, the work only slows down others.
        let _low = rustix::process::nice(NICE_INCREMENT);
        work()
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("watcher start".to_owned());
        let working = thread.spawn_scoped(scope, work)?;
        Ok(working.join().unwrap_or_else(|it| resume_unwind(it)))
    })
}

impl Watcher {
    /// Starts to watch the workspace `root`. Takes some microseconds for each directory.
    ///
    /// # Errors
    /// The workspace cannot be watched.
    pub fn new(root: &Path) -> Result<Self, UnwatchedReason> {
        let mounts = File::open(MOUNTS)?;
        let real = root.canonicalize()?;
        let dir = Dir::open(&real)?;
        let kind = u64::try_from(rustix::fs::fstatfs(&dir)?.f_type);
        if !kind.is_ok_and(|kind| TELLING.contains(&kind)) {
            return Err(UnwatchedReason::FileSystem);
        }
        if let Some(mount) = mount_below(&real)? {
            return Err(UnwatchedReason::Mount(mount));
        }
        let user_limit = user_limit()?;
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let mut tree = Tree {
            id: Arc::default(),
            root: real.clone(),
            dir,
            mounts,
            watches: Watches::default(),
            closed: HashSet::new(),
            logs: Vec::new(),
            most: MAX_DIRECTORIES.min(user_limit / WATCH_SHARE),
            number: 0,
            changed: HashMap::new(),
            known_since: 0,
        };
        match tree.add(&inotify, real.into()) {
            Err(UnwatchedReason::Size) if tree.most < MAX_DIRECTORIES => {
                return Err(UnwatchedReason::UserLimit(user_limit));
            }
            added => added?,
        }
        tree.watches.pack();
        // With its room.
        tree.changed = HashMap::new();
        Ok(Self {
            root: root.to_owned(),
            inotify,
            ended: eventfd(0, EventfdFlags::CLOEXEC)?,
            state: Mutex::new(State {
                tree,
                asked: Instant::now(),
                over: false,
            }),
        })
    }

    /// Returns the number of watched directories.
    pub fn directories(&self) -> usize {
        self.state.lock().tree.watches.len()
    }

    /// Returns the directories that have changed since a mark. Returns `None` if the watcher has missed an event and must end.
    fn changes(&self, since: Option<&ChangeMark>) -> Option<Changes> {
        let mut state = self.state.lock();
        state.asked = Instant::now();
        if state.over {
            return None;
        }
        state.over = !self.is_whole(&mut state.tree);
        (!state.over).then(|| state.tree.answer(since))
    }

    /// Reads the queue of events until the watcher ends, or until nobody has asked for changes for [`IDLE_LIMIT`].
    fn follow(&self) {
        loop {
            let left = {
                let mut state = self.state.lock();
                state.over = state.over || state.tree.drain(&self.inotify).is_err();
                if state.tree.has_logs() {
                    state.asked = Instant::now();
                }
                match state.over {
                    true => return,
                    false => IDLE_LIMIT.saturating_sub(state.asked.elapsed()),
                }
            };
            if left.is_zero() {
                return;
            }
            let mut fds = [
                PollFd::new(&self.inotify, PollFlags::IN),
                PollFd::new(&self.ended, PollFlags::IN),
            ];
            let left = Timespec::try_from(left).ok();
            match poll(&mut fds, left.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            thread::sleep(PAUSE);
        }
    }

    /// Reads the queue to its end. Returns true if no event was missed and each directory is still watched at its path.
    fn is_whole(&self, tree: &mut Tree) -> bool {
        let is_same = || {
            let real = self.root.canonicalize().ok()?;
            let now = Dir::open(&real).ok()?.itself().ok()?;
            let known = tree.dir.itself().ok()?;
            Some(real == tree.root && now.stamp.inode() == known.stamp.inode())
        };
        is_same() == Some(true) && tree.has_its_mounts() && tree.drain(&self.inotify).is_ok()
    }

    fn end(&self) {
        self.state.lock().over = true;
        // A full counter wakes the thread too.
        let _full = rustix::io::write(&self.ended, &1_u64.to_ne_bytes());
    }
}

impl Tree {
    fn answer(&mut self, since: Option<&ChangeMark>) -> Changes {
        let is_known =
            |it: &&ChangeMark| Arc::ptr_eq(&it.watcher, &self.id) && it.number >= self.known_since;
        let changed = self.changed.iter();
        let dirs = since.filter(is_known).map(|since| {
            let new = changed.filter(|(_, number)| **number > since.number);
            new.map(|(path, _)| Arc::clone(path)).collect()
        });
        let mark = ChangeMark {
            watcher: Arc::clone(&self.id),
            number: self.number,
        };
        self.number += 1;
        Changes {
            mark: Some(mark),
            dirs,
        }
    }

    /// Reads the queue to its end.
    ///
    /// # Errors
    /// Events are missing, or a new directory cannot be watched.
    fn drain(&mut self, inotify: &OwnedFd) -> Result<(), UnwatchedReason> {
        let mut buffer = vec![MaybeUninit::uninit(); EVENT_BYTES];
        let mut events = Reader::new(inotify, &mut buffer);
        for _ in 0..MAX_EVENTS {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let flags = event.events();
            if flags.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
                return Err(Errno::OVERFLOW.into());
            }
            let Some(path) = self.watches.path(event.wd()) else {
                continue;
            };
            if flags.contains(ReadFlags::IGNORED) {
                // The kernel has removed it.
                self.watches.remove(&path);
                continue;
            }
            let name = event.file_name();
            let name = name.map(|name| path.join(OsStr::from_bytes(name.to_bytes())));
            let event = Event {
                path,
                flags,
                name,
                cookie: event.cookie(),
            };
            self.note(inotify, event)?;
        }
        Err(Errno::OVERFLOW.into())
    }

    fn note(&mut self, inotify: &OwnedFd, event: Event) -> Result<(), UnwatchedReason> {
        let flags = event.flags;
        if flags.contains(ReadFlags::MOVE_SELF) && *event.path == *self.root {
            return Err(Errno::STALE.into());
        }
        if let Some(name) = event.name.as_ref().filter(|_| flags.intersects(NAMES)) {
            self.log(&event.path, name, (flags, event.cookie));
        }
        self.touch(event.path);
        let Some(child) = event.name.filter(|_| flags.contains(ReadFlags::ISDIR)) else {
            return Ok(());
        };
        if flags.intersects(NAMES) {
            self.forget(inotify, &child);
            // After an exchange of two names, the directory has already got the name that the event takes away.
            self.add(inotify, child.into())?;
        } else if flags.contains(ReadFlags::ATTRIB) {
            // It, or what is below it, may be readable now.
            let closed = self.closed.iter().filter(|path| path.starts_with(&child));
            for path in closed.cloned().collect::<Vec<_>>() {
                self.closed.remove(&path);
                self.add(inotify, path)?;
            }
            self.touch(child.into());
        }
        Ok(())
    }

    /// Watches a directory and all directories below it. Sets the watch on each directory before reading it. Marks the
    /// directories as changed.
    fn add(&mut self, inotify: &OwnedFd, dir: Arc<Path>) -> Result<(), UnwatchedReason> {
        let mut flags = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE;
        flags |= WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::ATTRIB;
        flags |= WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
        let mut todo = vec![dir];
        while let Some(path) = todo.pop() {
            if path.as_os_str().len() >= MAX_PATH_BYTES {
                // Nothing of co's reads it.
                continue;
            }
            let below = path.strip_prefix(&self.root).unwrap_or(&path);
            let opened = self.dir.dir(below);
            let watched = opened.as_ref().map(|dir| {
                let watch = inotify::add_watch(inotify, dir.path(), flags);
                watch.map_err(std::io::Error::from)
            });
            let error = match (&opened, watched) {
                (Ok(dir), Ok(Ok(watch))) => {
                    self.watches.insert(watch, &path);
                    self.touch(Arc::clone(&path));
                    if self.watches.len() > self.most {
                        return Err(UnwatchedReason::Size);
                    }
                    for entry in dir.list()? {
                        let (name, kind) = entry?;
                        if kind.is_dir() {
                            todo.push(path.join(name).into());
                        }
                    }
                    continue;
                }
                (_, Ok(Err(error))) => error,
                (Err(error), _) | (_, Err(error)) => error.kind().into(),
            };
            use std::io::ErrorKind::{NotADirectory, NotFound, Other, PermissionDenied};
            match error.kind() {
                PermissionDenied => {
                    self.touch(Arc::clone(&path));
                    self.closed.insert(path);
                }
                // If it comes back, or was replaced by a link, that is an event of the directory above.
                NotADirectory | NotFound | Other if *path != *self.root => {}
                _ => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Removes the watches of a directory and of all directories below it.
    fn forget(&mut self, inotify: &OwnedFd, dir: &Path) {
        self.closed.retain(|path| !path.starts_with(dir));
        for (path, watch) in self.watches.at_and_below(dir) {
            self.watches.remove(&path);
            // The kernel may have removed it with the directory.
            let _removed = inotify::remove_watch(inotify, watch);
        }
    }

    /// Adds an event about a name in `dir` to the logs.
    fn log(&self, dir: &Path, name: &Path, (flags, cookie): (ReadFlags, u32)) {
        let below = dir.strip_prefix(&self.root).unwrap_or(dir);
        for log in self.logs.iter().filter_map(Weak::upgrade) {
            let mut log = log.lock();
            if (log.is_left_out)(below) && !log.wanted.contains(dir) {
                continue;
            }
            match log.events.len() < MAX_LOGGED {
                true => log.events.push(NameEvent {
                    path: name.to_owned(),
                    flags,
                    cookie,
                }),
                false => log.lost = true,
            }
        }
    }

    /// Forgets dropped logs. Returns true if any log is left.
    fn has_logs(&mut self) -> bool {
        self.logs.retain(|log| log.strong_count() > 0);
        !self.logs.is_empty()
    }

    fn touch(&mut self, path: Arc<Path>) {
        if self.changed.len() >= MAX_CHANGED {
            self.changed.clear();
            self.known_since = self.number;
        }
        self.changed.insert(path, self.number);
    }

    /// Returns true if the list of mounts has not changed, or if no other file system is mounted in the workspace.
    fn has_its_mounts(&self) -> bool {
        let mut fds = [PollFd::new(&self.mounts, PollFlags::PRI)];
        let polled = poll(&mut fds, Some(&Timespec::default()));
        let same = polled.is_ok_and(|changed| changed == 0);
        same || mount_below(&self.root).is_ok_and(|mount| mount.is_none())
    }
}

impl Watches {
    fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the directory that a watch descriptor belongs to.
    fn path(&self, watch: i32) -> Option<Arc<Path>> {
        if let Some(path) = self.new.get(&watch) {
            return Some(Arc::clone(path));
        }
        let at = self.packed.binary_search_by_key(&watch, |(it, _)| *it);
        let (_, place) = self.packed.get(at.ok()?)?;
        let path = self.numbers.packed_path(*place)?;
        (self.numbers.get(&path) == Some(Watch(watch))).then(|| path.into())
    }

    /// Returns the watches of a directory and of all directories below it.
    fn at_and_below(&self, dir: &Path) -> Vec<(PathBuf, i32)> {
        let own = self.numbers.get(dir).map(|watch| (dir.to_owned(), watch));
        let all = own.into_iter().chain(self.numbers.below(dir));
        all.map(|(path, watch)| (path, watch.0)).collect()
    }

    fn insert(&mut self, watch: i32, path: &Arc<Path>) {
        // The kernel has one watch for a directory, also under another name.
        if let Some(old) = self.path(watch).filter(|old| old != path) {
            self.remove(&old);
        }
        self.remove(path);
        self.numbers.insert(path, Watch(watch));
        self.new.insert(watch, Arc::clone(path));
        if self.new.len() > MAX_UNPACKED + self.packed.len() {
            self.pack();
        }
    }

    fn remove(&mut self, path: &Path) {
        if let Some(Watch(watch)) = self.numbers.get(path) {
            self.numbers.remove(path);
            self.new.remove(&watch);
        }
    }

    fn pack(&mut self) {
        self.numbers.pack();
        let watches = self.numbers.iter().enumerate();
        self.packed = watches.map(|(place, (_, it))| (it.0, place)).collect();
        self.packed.sort_unstable();
        self.new = HashMap::new();
    }
}

impl Packed for Watch {
    fn pack(&self, bytes: &mut Vec<u8>) {
        pack_number(self.0.cast_unsigned().into(), bytes);
    }

    fn unpack(bytes: &mut Unpacker<'_>) -> Option<Self> {
        let number = u32::try_from(bytes.number()?).ok()?;
        Some(Self(number.cast_signed()))
    }
}

/// Returns a mount point inside the directory `root`, if there is any.
fn mount_below(root: &Path) -> std::io::Result<Option<PathBuf>> {
    let mounts = std::fs::read(MOUNTS)?;
    let places = mounts
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(unescaped);
    let mut below = places.filter(|place| place.starts_with(root) && place != root);
    Ok(below.next())
}

/// Decodes a path from the kernel's list, in which special characters such as spaces are octal numbers (`\040`).
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..3).filter(|_| *first == b'\\');
        let number = digits.and_then(|it| u8::from_str_radix(str::from_utf8(it).ok()?, 8).ok());
        match number {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[3..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    OsStr::from_bytes(&bytes).into()
}

pub(crate) fn user_limit() -> Result<usize, UnwatchedReason> {
    let text = std::fs::read_to_string(MAX_USER_WATCHES)?;
    text.trim()
        .parse()
        .map_err(|_| UnwatchedReason::System(std::io::ErrorKind::InvalidData.into()))
}
