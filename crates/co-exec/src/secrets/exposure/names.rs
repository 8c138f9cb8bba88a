//! Watches the names that appear, disappear and move in the directories of a workspace (inotify). Finds the secrets that a
//! command could read because of such a change.
//!
//! If the workspace has a watcher, the watcher reports the names. Otherwise each command has its own watches.
//!
//! A name here is a path in a watched directory. A path counts as readable unless it is known to be closed. A file that was moved
//! from a directory without a watch counts as readable there.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use co_policy::secret_names;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::confinement::level::{ClosedBy, ShownSecrets};
use crate::repository;
use crate::secrets::{Survey, is_generated, is_unsurveyed};
use crate::watcher::{self, NameEvent, NameLog, Watchers};

/// The divisor of the user's limit on watches: one command may use a quarter of the limit, because the editor needs watches too.
const WATCH_SHARE: usize = 4;
/// The most watches for a read-only command, because each watch makes its start slower.
const MAX_QUICK_WATCHES: usize = 1_000;

/// The size in bytes of the buffer into which inotify events are read.
const EVENT_BYTES: usize = 16 << 10;

/// The most events between the two halves of a move. The kernel normally reports the halves directly after each other.
const PAIR_DISTANCE: usize = 100;

/// The name of git's index file.
pub(super) const INDEX: &str = "index";
const INDEX_LOCK: &str = "index.lock";

/// Watches the names in the directories of a workspace, except in directories of generated files.
#[derive(Debug)]
pub(super) struct NameWatch {
    source: EventSource,
    root: PathBuf,
    git_dir: PathBuf,
    closed_by: ClosedBy,
    most: usize,
    /// The directories that are secret as a whole, and all directories below them.
    closed_dirs: HashSet<PathBuf>,
    changes: Vec<NameChange>,
    /// True if all directories are watched. Otherwise there are too many, and only the directories with secrets are watched.
    pub(super) whole: bool,
    /// True if git has written its index, so that it may have changed the work tree.
    pub(super) git: bool,
    /// True if some changes may have been lost.
    pub(super) lost: bool,
}

/// The source of the events.
#[derive(Debug)]
enum EventSource {
    Watcher(NameLog),
    Own {
        inotify: OwnedFd,
        dirs: HashMap<i32, PathBuf>,
    },
}

/// A change of a name in a watched directory.
#[derive(Debug)]
pub(super) struct NameChange {
    kind: ChangeKind,
    is_dir: bool,
}

#[derive(Debug)]
enum ChangeKind {
    Made(PathBuf),
    Removed(PathBuf),
    /// A move. A path is `None` if its directory is not watched.
    Moved {
        cookie: u32,
        from: Option<PathBuf>,
        to: Option<PathBuf>,
    },
}

impl NameWatch {
    /// Creates a watch for the workspace `root`, a canonical path. Returns `None` if the kernel refuses.
    pub(super) fn new(root: &Path, closed_by: ClosedBy, watchers: &Watchers) -> Option<Self> {
        let most = watcher::user_limit().ok()? / WATCH_SHARE;
        let git_dir = git_dir(root);
        // A git directory outside is not in its watches.
        let is_inside = git_dir.starts_with(root);
        let log = is_inside.then(|| watchers.names(root, is_unsurveyed));
        let source = match log.flatten() {
            Some(log) => EventSource::Watcher(log),
            None => EventSource::Own {
                inotify: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?,
                dirs: HashMap::new(),
            },
        };
        Some(Self {
            source,
            root: root.to_owned(),
            git: git_dir.join(INDEX_LOCK).exists(),
            git_dir,
            closed_by,
            most: match closed_by {
                ClosedBy::Rules => most.min(MAX_QUICK_WATCHES),
                _ => most,
            },
            closed_dirs: HashSet::new(),
            changes: Vec::new(),
            whole: true,
            lost: false,
        })
    }

    /// Adds the directories of a survey to the watch. Returns `None` if the kernel refuses, or if too many directories contain
    /// secrets.
    pub(super) fn with(mut self, survey: &Survey) -> Option<Self> {
        let root = &self.root;
        let above = survey.closed().flat_map(|path| path.ancestors().skip(1));
        let above = above.filter(|dir| dir.starts_with(root));
        self.closed_dirs = survey.closed_directories().collect();
        let closed = self.closed_dirs.iter().map(PathBuf::as_path);
        let needed: HashSet<&Path> = above.chain(closed).collect();
        let (inotify, watched) = match &mut self.source {
            EventSource::Watcher(log) => {
                log.want(needed.into_iter());
                return Some(self);
            }
            EventSource::Own { inotify, dirs } => (inotify, dirs),
        };
        let others = survey.directories().filter(|dir| {
            let below = dir.strip_prefix(root);
            below.is_ok_and(|below| !is_generated(below))
        });
        let needed: HashSet<PathBuf> = needed.into_iter().map(Path::to_owned).collect();
        let mut dirs = needed.clone();
        for dir in others.chain([self.git_dir.clone()]) {
            dirs.insert(dir);
            if dirs.len() > self.most {
                self.whole = false;
                break;
            }
        }
        if !self.whole {
            dirs = Some(needed).filter(|needed| needed.len() <= self.most)?;
        }
        let mut flags = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE;
        flags |= WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        for dir in dirs {
            match inotify::add_watch(&*inotify, dir.as_path(), flags) {
                Ok(watch) => drop(watched.insert(watch, dir)),
                // If it comes back, that is a new name. A directory that nobody can list is closed as a whole.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => {}
                Err(_) => return None,
            }
        }
        Some(self)
    }

    /// Reads the changes since the last call. Returns true if there are any.
    pub(super) fn read(&mut self) -> bool {
        let known = self.changes.len();
        let events = match &self.source {
            EventSource::Watcher(log) => log.take(),
            EventSource::Own { inotify, dirs } => read_events(inotify, dirs),
        };
        self.lost |= events.is_none();
        for NameEvent {
            path,
            flags,
            cookie,
        } in events.unwrap_or_default()
        {
            let is = |kind| flags.contains(kind);
            let dir = path.parent().unwrap_or(&self.root);
            if is_gits(dir, &self.root) {
                let name = path.file_name().unwrap_or_default();
                self.git |= name == INDEX || name == INDEX_LOCK;
            }
            let kind = if is(ReadFlags::CREATE) {
                ChangeKind::Made(path)
            } else if is(ReadFlags::DELETE) {
                ChangeKind::Removed(path)
            } else if is(ReadFlags::MOVED_FROM) {
                if self.moves_along(dir) {
                    continue;
                }
                let (from, to) = (Some(path), None);
                ChangeKind::Moved { cookie, from, to }
            } else {
                let mut last = self.changes.iter_mut().rev().take(PAIR_DISTANCE);
                let left = last.find_map(|it| match &mut it.kind {
                    ChangeKind::Moved {
                        cookie: its, to, ..
                    } if *its == cookie => Some(to),
                    _ => None,
                });
                if let Some(to @ None) = left {
                    *to = Some(path);
                    continue;
                }
                let (from, to) = (None, Some(path));
                ChangeKind::Moved { cookie, from, to }
            };
            let is_dir = is(ReadFlags::ISDIR);
            self.changes.push(NameChange { kind, is_dir });
        }
        self.changes.len() > known
    }

    /// Returns true if the mount over a secret in this directory moves together with the secret. If a mount covers the whole
    /// directory instead, the secret leaves the mount.
    fn moves_along(&self, dir: &Path) -> bool {
        let is_covered = matches!(self.closed_by, ClosedBy::Mounts | ClosedBy::WritableMounts);
        is_covered && !self.closed_dirs.contains(dir)
    }

    /// Removes and returns the changes that were read, from the oldest to the newest.
    pub(super) fn take(&mut self) -> Vec<NameChange> {
        std::mem::take(&mut self.changes)
    }

    /// Returns true if git is changing the work tree now.
    pub(super) fn is_git_busy(&self) -> bool {
        self.git_dir.join(INDEX_LOCK).exists()
    }
}

/// Reads the events of watched directories. Returns `None` if events were lost.
fn read_events(inotify: &OwnedFd, dirs: &HashMap<i32, PathBuf>) -> Option<Vec<NameEvent>> {
    let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
    let mut reader = Reader::new(inotify, &mut buffer);
    let mut events = Vec::new();
    // It fails when no event is left.
    while let Ok(event) = reader.next() {
        if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
            return None;
        }
        if let (Some(dir), Some(name)) = (dirs.get(&event.wd()), event.file_name()) {
            events.push(NameEvent {
                path: dir.join(OsStr::from_bytes(name.to_bytes())),
                flags: event.events(),
                cookie: event.cookie(),
            });
        }
    }
    Some(events)
}

/// The paths of a workspace's secrets at the time when they were closed to a command, and the changes since then.
#[derive(Debug)]
pub(super) struct Places {
    before: Arc<Survey>,
    closed_by: ClosedBy,
    /// The present paths of secrets, their earlier paths, and the paths to which secrets moved. Also the directories between the
    /// workspace and these paths.
    known: HashSet<PathBuf>,
    /// The directories that are granted entry by entry.
    opened: HashSet<PathBuf>,
    /// The directories that are closed as a whole.
    closed_dirs: Vec<PathBuf>,
    /// New entries in the directories of `opened` that the command may be able to read.
    granted: HashSet<PathBuf>,
    /// New directories that the command could read.
    new_dirs: HashSet<PathBuf>,
}

/// The state of a workspace at the time when changes are checked.
#[derive(Clone, Copy)]
pub(super) struct WorkspaceState<'a> {
    pub(super) survey: &'a Survey,
    /// True if the command itself may have made the changes. The command cannot move or replace a secret that has a mount.
    pub(super) own: bool,
    pub(super) git_is_busy: bool,
}

impl Places {
    /// Returns the paths of the survey by which secrets are closed. `earlier` are the paths of earlier secrets.
    pub(super) fn new(
        before: Arc<Survey>,
        earlier: &HashSet<PathBuf>,
        closed_by: ClosedBy,
        shown: &ShownSecrets,
    ) -> Self {
        let root = before.root();
        let secrets = before.closed().chain(earlier);
        let secrets = secrets.filter(|path| !shown.includes(path));
        let known = secrets.flat_map(|path| path.ancestors().take_while(|it| *it != root));
        let known = known.map(Path::to_owned).collect();
        let above = before.closed().flat_map(|path| path.ancestors().skip(1));
        let opened = above.filter(|dir| closed_by == ClosedBy::Rules && dir.starts_with(root));
        let opened = opened.map(Path::to_owned).collect();
        let closed_dirs = before.dirs.iter().filter(|dir| !shown.includes(dir));
        Self {
            known,
            opened,
            closed_dirs: closed_dirs.cloned().collect(),
            closed_by,
            before,
            granted: HashSet::new(),
            new_dirs: HashSet::new(),
        }
    }

    /// Returns the path at which the command could read a secret because of a change. Must be called with the changes in the
    /// order in which they happened.
    pub(super) fn exposed(
        &mut self,
        change: NameChange,
        now: WorkspaceState<'_>,
    ) -> Option<PathBuf> {
        let NameChange { kind, is_dir } = change;
        match kind {
            ChangeKind::Made(path) => self.comes(path, is_dir, false, now),
            ChangeKind::Removed(path) => {
                // The kernel removes the mount over a file some milliseconds before the file.
                let is_covered =
                    matches!(self.closed_by, ClosedBy::Mounts | ClosedBy::WritableMounts);
                let was_new = !now.own && self.new_dirs.contains(&path);
                (was_new || is_covered && !is_dir && self.known.contains(&path)).then_some(path)
            }
            ChangeKind::Moved { from, to, .. } => {
                let was_granted = from.as_ref().is_none_or(|from| self.is_granted(from));
                if let Some(from) = from
                    && self.leaves(&from, to.as_deref(), now.own)
                {
                    return Some(from);
                }
                self.comes(to?, is_dir, was_granted, now)
            }
        }
    }

    /// Handles a path that disappears. Returns true if the command could read a secret because of that.
    fn leaves(&mut self, from: &Path, to: Option<&Path>, own: bool) -> bool {
        if !own && self.new_dirs.contains(from) {
            return true;
        }
        let was_secret = match self.closed_by {
            ClosedBy::Rules => self.is_secret(from),
            // A name that is new in the directory below an overlay has no mount.
            ClosedBy::OverlayMounts => self.known.contains(from) || self.is_within_closed(from),
            // The mount over a file or directory moves along.
            ClosedBy::Mounts | ClosedBy::WritableMounts => self.is_within_closed(from),
        };
        if !was_secret {
            return false;
        }
        let stays_closed = to.is_some_and(|to| {
            self.is_within_closed(to) || self.closed_by == ClosedBy::Rules && !self.is_granted(to)
        });
        self.known.extend(to.map(Path::to_owned));
        !stays_closed
    }

    /// Handles a path that appears. Returns the path if the command could read a secret there.
    fn comes(
        &mut self,
        path: PathBuf,
        is_dir: bool,
        was_granted: bool,
        now: WorkspaceState<'_>,
    ) -> Option<PathBuf> {
        let by_entry = path.parent().is_some_and(|dir| self.opened.contains(dir));
        let within_closed = self.is_within_closed(&path);
        if self.closed_by == ClosedBy::Rules && (by_entry || within_closed) {
            // Rules hang on files, so a new one is closed, and one that was granted stays readable.
            return match was_granted {
                true if self.is_secret(&path) => Some(path),
                true => {
                    self.granted.insert(path);
                    None
                }
                false => None,
            };
        }
        if within_closed {
            return None;
        }
        if self.known.contains(&path) {
            return Some(path);
        }
        if now.own || self.is_skipped(&path) {
            return None;
        }
        let may_be_gone = is_dir && (now.git_is_busy || !now.survey.has_directory(&path));
        if has_secret_name(&path) || may_be_gone {
            return Some(path);
        }
        if is_dir {
            self.new_dirs.insert(path);
        }
        None
    }

    /// Returns whether a rule may grant reading of the file at a path.
    fn is_granted(&self, path: &Path) -> bool {
        let Some(dir) = path.parent().filter(|dir| self.opened.contains(*dir)) else {
            return !self.is_within_closed(path);
        };
        let name = path.file_name().unwrap_or_default();
        let by_entry = || {
            let entries = self.before.entries(dir);
            entries.is_some_and(|entries| entries.has(name))
        };
        self.granted.contains(path)
            || !self.before.closes(path) && !self.opened.contains(path) && by_entry()
    }

    /// Returns whether a path counts as a secret, or may have a secret below it.
    fn is_secret(&self, path: &Path) -> bool {
        self.known.contains(path)
            || self.is_within_closed(path)
            || !self.is_skipped(path) && has_secret_name(path)
    }

    fn is_within_closed(&self, path: &Path) -> bool {
        let mut dirs = self.closed_dirs.iter();
        dirs.any(|dir| path != dir && path.starts_with(dir))
    }

    /// Returns true if a new path is irrelevant for secrets, because it is among generated files or git's own files.
    fn is_skipped(&self, path: &Path) -> bool {
        let root = self.before.root();
        is_generated(path.strip_prefix(root).unwrap_or(path)) || is_gits(path, root)
    }
}

fn has_secret_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    secret_names::is_secret(&name.to_string_lossy())
}

/// Returns the git directory of the work tree `root`.
pub(super) fn git_dir(root: &Path) -> PathBuf {
    let dirs = repository::find(root).ok().flatten();
    dirs.map_or_else(|| root.join(".git"), |dirs| dirs.own)
}

/// Returns true if a path is in a git directory of the workspace `root`, or is outside the workspace.
fn is_gits(path: &Path, root: &Path) -> bool {
    let below = path.strip_prefix(root);
    below.map_or(true, |below| below.iter().any(|part| part == ".git"))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::secrets::survey;
    use crate::test_files;

    /// Checks the first place at which a secret is exposed when a bash script changes a workspace; an empty text means none. The
    /// watcher of a workspace must report the same as the watches of a command.
    #[track_caller]
    fn check(closed_by: ClosedBy, change: &str, expected: &str) {
        for is_watched in [false, true] {
            let found = exposed(closed_by, change, is_watched);
            let expected = Path::new(expected);
            assert_eq!(
                found, expected,
                "{closed_by:?}, watcher {is_watched}: {change}"
            );
        }
    }

    /// Returns watchers, of which one watches the workspace `root`.
    fn watching(root: &Path) -> Watchers {
        let watchers = Watchers::default();
        let late = Instant::now() + Duration::from_secs(20);
        while watchers.names(root, is_unsurveyed).is_none() {
            watchers.start(root);
            assert!(Instant::now() < late, "no watcher started");
            std::thread::yield_now();
        }
        watchers
    }

    fn exposed(closed_by: ClosedBy, change: &str, is_watched: bool) -> PathBuf {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in [
            ".env",
            "notes",
            "app/.env",
            "app/notes",
            "secrets/token",
            "src/deep/x",
            "target/.env",
            "target/x",
            "build/x",
        ] {
            test_files::write(&root, name, "x");
        }
        let before = survey(&root);
        let watchers = match is_watched {
            true => watching(&root),
            false => Watchers::default(),
        };
        let watch = NameWatch::new(&root, closed_by, &watchers);
        let mut watch = watch.unwrap().with(&before).unwrap();
        assert_eq!(matches!(watch.source, EventSource::Watcher(_)), is_watched);
        let earlier = HashSet::new();
        let shown = ShownSecrets::Nothing;
        let mut places = Places::new(Arc::new(before), &earlier, closed_by, &shown);
        let mut bash = std::process::Command::new("bash");
        let done = bash.args(["-ec", change]).current_dir(&root).status();
        assert!(done.unwrap().success(), "{change}");
        watch.read();
        let now = WorkspaceState {
            survey: &survey(&root),
            own: false,
            git_is_busy: watch.is_git_busy(),
        };
        let changes = watch.take().into_iter();
        let found = changes.filter_map(|change| places.exposed(change, now));
        let mut found = found.map(|path| path.strip_prefix(&root).unwrap().to_owned());
        found.next().unwrap_or_default()
    }

    #[test]
    fn around_rules_a_secret_must_not_get_a_name_that_is_granted() {
        let check = |change, expected| check(ClosedBy::Rules, change, expected);
        // As editors save, and as git changes files.
        for change in [
            "mv .env .env~; echo y > .env; rm .env~",
            "mv notes notes~; echo y > notes; rm notes~",
            "echo y > .env.new; mv .env.new .env; echo y > n; mv n notes",
            "rm .env; echo y > .env; rm notes; echo y > notes",
            "mv secrets/token secrets/old; echo y > secrets/token; mv secrets/old secrets/token",
            "mv app app2; mv app2 app; mkdir app/new; mv app/notes app/other",
            "echo y > src/x; mv src/x src/y; mkdir src/new target/new; rmdir target/new",
            "mv src lib; mv lib src",
        ] {
            check(change, "");
        }
        check("mv .env src/x; mv src/x .env", ".env");
        check("mv .env new; mv new notes; mv notes .env", "new");
        check("mv notes new; mv new .env", ".env");
        check("mv .env notes", ".env");
        check("mv app/.env target/y", "");
        check("mv app/.env build/y", "app/.env");
        check("mv target/.env target/x", "target/.env");
        check("mv secrets/token app/y", "");
        check("mv secrets/token src/y", "secrets/token");
        check("mv src/deep/x secrets/y", "secrets/y");
        check("mv app src/app; mv src/app app", "app");
        check("mv app src", "app");
        check("mv app src/deep/; mkdir src/deep/app2", "app");
        check("echo y > src/.env; rm src/.env", "src/.env");
        check(
            "mkdir src/a; mkdir src/a/b; rm -r src/a; mkdir src/a",
            "src/a",
        );
        check("mkdir -p .git; touch .git/index.lock; mkdir src/a", "src/a");
    }

    #[test]
    fn below_an_overlay_a_secret_must_not_get_another_name() {
        let check = |change, expected| check(ClosedBy::OverlayMounts, change, expected);
        check("rm .env; echo y > notes; mkdir app/new", "");
        check("mv .env new", ".env");
        check("mv app app2; mv app2 app", "app");
        check("mv secrets/token src/y", "secrets/token");
        check("mv secrets/token secrets/y; touch secrets/id_rsa", "");
    }

    #[test]
    fn under_mounts_a_secret_must_not_leave_its_directory_or_its_mount() {
        for closed_by in [ClosedBy::Mounts, ClosedBy::WritableMounts] {
            let check = |change, expected| check(closed_by, change, expected);
            check("mv .env new; mv app app2", "");
            check("mv secrets/token secrets/y; touch secrets/id_rsa", "");
            check("mv secrets/token src/y", "secrets/token");
            check("rm .env target/.env", ".env");
            check("mv app app2; mkdir app", "app");
            check("mv notes .env", ".env");
        }
    }

    #[test]
    fn in_a_large_workspace_only_the_directories_with_secrets_are_watched() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["app/.env", "a/x", "b/x", "secrets/deep/token"] {
            test_files::write(&root, name, "x");
        }
        let watched = |most| {
            let watchers = Watchers::default();
            let mut watch = NameWatch::new(&root, ClosedBy::Rules, &watchers).unwrap();
            watch.most = most;
            let watch = watch.with(&survey(&root))?;
            let EventSource::Own { dirs, .. } = &watch.source else {
                panic!("nothing watches the workspace");
            };
            let dirs = dirs.values();
            let mut dirs: Vec<_> = dirs
                .map(|dir| {
                    dir.strip_prefix(&root)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned()
                })
                .collect();
            dirs.sort();
            Some((watch.whole, dirs.join(" ")))
        };
        let some = " app secrets secrets/deep".to_owned();
        assert_eq!(
            watched(7),
            Some((true, " a app b secrets secrets/deep".to_owned()))
        );
        assert_eq!(watched(6), Some((false, some.clone())));
        assert_eq!(watched(4), Some((false, some)));
        assert_eq!(watched(3), None);
    }
}
