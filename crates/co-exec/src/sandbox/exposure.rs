//! Looks for secrets that appeared where a command could read, from the survey by which secrets are closed to it until its end.
//!
//! The secrets that are there at the end are found by another survey. Those that came and went are found by the names that came into
//! the directories of the workspace meanwhile (inotify).

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use co_policy::secret_names;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::command::ShownSecrets;
use crate::regular::FileStamp;
use crate::repository;
use crate::secrets::{Survey, Surveys, is_generated};

/// The most secrets that are named.
const MAX_NAMED_SECRETS: usize = 10;

/// The most surveys before a start, if secrets appear during each of them.
const MAX_SURVEYS: usize = 3;

/// The part of a user's watches that one command may take, because the editor needs watches too.
const WATCH_SHARE: usize = 4;
/// The most watches of a command that only reads, because each makes its start slower.
const MAX_QUICK_WATCHES: usize = 1_000;
/// The setting with the number of watches that a user may have.
const MAX_WATCHES: &str = "/proc/sys/fs/inotify/max_user_watches";

/// The bytes of events that are read at once.
const EVENT_BYTES: usize = 16 << 10;

/// The name of git's index, and its name while git changes the work tree.
const INDEX: &str = "index";
const INDEX_LOCK: &str = "index.lock";

/// The way in which secrets are closed to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosedBy {
    /// Reading is granted around them, so what appears beside a secret is closed too.
    Rules,
    /// A mount over an overlay covers each of them. It stays if the file below is removed.
    OverlayMounts,
    /// A mount covers each of them, and the command changes nothing in the workspace.
    Mounts,
    /// A mount covers each of them, and the command itself may make others.
    WritableMounts,
}

/// The secrets of a workspace to close to a command.
pub(crate) struct WatchedSecrets<'a> {
    pub(crate) workspace: &'a Path,
    /// The survey by which they are closed.
    pub(crate) before: Arc<Survey>,
    pub(crate) closed_by: ClosedBy,
    /// Those that the command may open.
    pub(crate) shown: &'a ShownSecrets,
}

/// The secrets of a workspace when they are closed to a command. Clones share what they found.
#[derive(Debug, Clone)]
pub(crate) struct SecretWatch {
    surveys: Surveys,
    workspace: PathBuf,
    before: Arc<Survey>,
    closed_by: ClosedBy,
    shown: ShownSecrets,
    /// Git's index at the start, if no names are watched.
    index: Option<FileStamp>,
    state: Arc<Mutex<WatchState>>,
}

#[derive(Debug)]
struct WatchState {
    exposed: Vec<PathBuf>,
    phase: Phase,
    /// None if the kernel cannot tell the names, or that would take long.
    names: Option<NameWatch>,
}

/// A part of the life of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    Running,
    Ended,
}

impl SecretWatch {
    /// Starts to watch. If secrets appear meanwhile, they count as those of the survey.
    ///
    /// Blocks on files.
    pub(crate) fn new(surveys: &Surveys, secrets: WatchedSecrets<'_>) -> Self {
        let WatchedSecrets {
            workspace,
            mut before,
            closed_by,
            shown,
        } = secrets;
        let mut names = None;
        for _ in 0..MAX_SURVEYS {
            let earlier = surveys.closed_earlier(workspace);
            let known = before.closed().chain(&*earlier);
            let known = known.filter(|path| !shown.includes(path));
            names = NameWatch::start(&before, known.map(PathBuf::as_path), closed_by);
            if names.is_none() {
                break;
            }
            let now = surveys.current(workspace);
            let is_same = now.closed().eq(before.closed());
            before = now;
            if is_same {
                break;
            }
        }
        let mut watch = Self {
            surveys: surveys.clone(),
            workspace: workspace.to_owned(),
            before,
            closed_by,
            shown: shown.clone(),
            index: None,
            state: Arc::new(Mutex::new(WatchState {
                exposed: Vec::new(),
                phase: Phase::Starting,
                names,
            })),
        };
        if watch.state().names.is_none() {
            watch.index = watch.index_stamp();
        }
        watch
    }

    fn index_stamp(&self) -> Option<FileStamp> {
        let index = git_dir(&self.workspace).join(INDEX);
        FileStamp::of(&index)
    }

    /// Returns the survey by which secrets are closed.
    pub(crate) fn before(&self) -> &Survey {
        &self.before
    }

    /// Notes that the command starts now. From then on, it may make secrets itself.
    ///
    /// Blocks on files.
    pub(crate) fn command_starts(&self) {
        let mut state = self.state();
        if self.closed_by == ClosedBy::WritableMounts
            && let Some(names) = &mut state.names
            && names.read()
        {
            state.exposed = self.look(&mut state);
        }
        state.phase = Phase::Running;
    }

    /// Returns the secrets that the command may have read, also those that a call before found. If co cannot look
    /// everywhere, returns the workspace.
    ///
    /// Blocks on files.
    pub(crate) fn exposed(&self) -> Vec<PathBuf> {
        let mut state = self.state();
        if state.exposed.is_empty() && state.phase != Phase::Ended {
            state.exposed = self.look(&mut state);
        }
        state.exposed.clone()
    }

    /// Ends the watch when the command has ended. Blocks some milliseconds, in which the kernel forgets the names.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.phase = Phase::Ended;
        let names = state.names.take();
        drop(state);
        drop(names);
    }

    /// Looks for secrets, first for those that are there, then for those that came since the last look.
    fn look(&self, state: &mut WatchState) -> Vec<PathBuf> {
        let now = self.surveys.current(&self.workspace);
        let own = self.closed_by == ClosedBy::WritableMounts && state.phase == Phase::Running;
        let everywhere = vec![self.workspace.clone()];
        let (mut came, mut git) = (Vec::new(), false);
        match &mut state.names {
            Some(names) => {
                names.read();
                if names.lost {
                    return everywhere;
                }
                git = names.git;
                came = names.take(own && !git);
            }
            None if own => git = self.index_stamp() != self.index,
            // Something has changed meanwhile.
            None if self.closed_by != ClosedBy::Rules && !Arc::ptr_eq(&self.before, &now) => {
                return everywhere;
            }
            None => {}
        }
        if !now.complete {
            return everywhere;
        }
        let mut exposed = match own && !git {
            true => Vec::new(),
            false => new_secrets(&self.before, &now, self.closed_by),
        };
        exposed.retain(|path| !self.shown.includes(path));
        came.retain(|path| !exposed.contains(path));
        exposed.extend(came);
        exposed
    }

    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the line for a model in place of an output in which there may be a secret, if there may be one.
    ///
    /// Blocks on files.
    pub(crate) fn withheld(&self) -> Option<String> {
        let exposed = self.exposed();
        let name = |path: &PathBuf| {
            let shown = path.strip_prefix(&self.workspace).unwrap_or(path);
            co_policy::printable(&shown.display().to_string())
        };
        let why = match &exposed[..] {
            [] => return None,
            [all] if *all == self.workspace => {
                "co could not look for secrets everywhere in the workspace again".to_owned()
            }
            new => {
                let names: Vec<_> = new.iter().take(MAX_NAMED_SECRETS).map(name).collect();
                format!(
                    "a secret appeared where the command could read: {}",
                    names.join(", ")
                )
            }
        };
        Some(format!("output withheld: {why}"))
    }
}

/// Returns the git directory of the workspace `root`.
fn git_dir(root: &Path) -> PathBuf {
    let dirs = repository::find(root).ok().flatten();
    dirs.map_or_else(|| root.join(".git"), |dirs| dirs.own)
}

/// Returns whether a path is in a git directory of the workspace `root`, or outside of it.
fn is_gits(path: &Path, root: &Path) -> bool {
    let below = path.strip_prefix(root);
    below.map_or(true, |below| below.iter().any(|part| part == ".git"))
}

/// The names that came into the directories of a workspace, except those of generated files, and the secrets that were removed.
#[derive(Debug)]
struct NameWatch {
    inotify: OwnedFd,
    root: PathBuf,
    dirs: HashMap<i32, PathBuf>,
    /// The places of secrets, also earlier ones, with the directories above them.
    known: HashSet<PathBuf>,
    /// The directories in which new names are closed, because reading is granted entry by entry.
    opened: HashSet<PathBuf>,
    came: Vec<NewName>,
    /// True if git wrote its index: then it may have changed the work tree.
    git: bool,
    /// True if names may be missing.
    lost: bool,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NewName {
    path: PathBuf,
    is_dir: bool,
}

impl NameWatch {
    /// Starts to watch the directories of a survey. `known` are the places of secrets. Returns none if the kernel refuses, or there
    /// are too many directories.
    fn start<'a>(
        survey: &Survey,
        known: impl Iterator<Item = &'a Path>,
        closed_by: ClosedBy,
    ) -> Option<Self> {
        let root = survey.root();
        let git = git_dir(root);
        let most = std::fs::read_to_string(MAX_WATCHES).ok()?;
        let mut most = most.trim().parse::<usize>().ok()? / WATCH_SHARE;
        let mut opened = HashSet::new();
        if closed_by == ClosedBy::Rules {
            most = most.min(MAX_QUICK_WATCHES);
            let above = survey.closed().flat_map(|path| path.ancestors().skip(1));
            opened.extend(
                above
                    .filter(|dir| dir.starts_with(root))
                    .map(Path::to_owned),
            );
        }
        let dirs = survey.directories().filter(|dir| {
            let below = dir.strip_prefix(root);
            below.is_ok_and(|below| !is_generated(below)) && !survey.closes(dir)
        });
        let dirs: HashSet<&Path> = dirs.chain([git.as_path()]).collect();
        if dirs.len() > most {
            return None;
        }
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let mut flags = WatchFlags::CREATE | WatchFlags::MOVED_TO;
        flags |= WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        if matches!(closed_by, ClosedBy::Mounts | ClosedBy::WritableMounts) {
            // If a file is removed, the kernel removes the mount over it some milliseconds before.
            flags |= WatchFlags::DELETE;
        }
        let mut watched = HashMap::new();
        for dir in dirs {
            match inotify::add_watch(&inotify, dir, flags) {
                Ok(watch) => drop(watched.insert(watch, dir.to_owned())),
                // If it comes back, that is a new name.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(_) => return None,
            }
        }
        let known = known.flat_map(|path| path.ancestors().take_while(|it| *it != root));
        Some(Self {
            dirs: watched,
            opened,
            known: known.map(Path::to_owned).collect(),
            came: Vec::new(),
            git: git.join(INDEX_LOCK).exists(),
            lost: false,
            inotify,
            root: root.to_owned(),
        })
    }

    /// Reads the names that came since the last call. Returns whether there are any.
    fn read(&mut self) -> bool {
        let known = self.came.len();
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        // It fails when no event is left.
        while let Ok(event) = events.next() {
            self.lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let (Some(dir), Some(name)) = (self.dirs.get(&event.wd()), event.file_name()) else {
                continue;
            };
            let name = OsStr::from_bytes(name.to_bytes());
            let path = dir.join(name);
            let is_dir = event.events().contains(ReadFlags::ISDIR);
            if event.events().contains(ReadFlags::DELETE) && (is_dir || !self.known.contains(&path))
            {
                continue;
            }
            if is_gits(dir, &self.root) {
                self.git |= name == INDEX || name == INDEX_LOCK;
            }
            self.came.push(NewName { path, is_dir });
        }
        self.came.len() > known
    }

    /// Takes the names behind which a secret may have been. With `own`, the command makes names itself, but no known one: its mount
    /// is there.
    fn take(&mut self, own: bool) -> Vec<PathBuf> {
        let came: HashSet<NewName> = self.came.drain(..).collect();
        let mut found: Vec<PathBuf> = came
            .into_iter()
            .filter(|it| self.exposes(it, own))
            .map(|it| it.path)
            .collect();
        found.sort();
        found
    }

    fn exposes(&self, new: &NewName, own: bool) -> bool {
        let path = &new.path;
        if path.parent().is_some_and(|dir| self.opened.contains(dir)) {
            return false;
        }
        if self.known.contains(path) {
            return true;
        }
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        if own || is_generated(below) || is_gits(path, &self.root) {
            return false;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        secret_names::is_secret(&name) || new.is_dir && path.symlink_metadata().is_err()
    }
}

/// Returns the secrets of `now` that a command could read which started at `before`.
fn new_secrets(before: &Survey, now: &Survey, closed_by: ClosedBy) -> Vec<PathBuf> {
    let new = now.closed().filter(|path| !before.closes(path));
    let readable = |path: &Path| {
        let Some(dir) = path.parent() else {
            return true;
        };
        // By rules, a directory with a secret was granted entry by entry, so a file that was not there yet is closed. A
        // directory may have been there under another name.
        let by_entry =
            closed_by == ClosedBy::Rules && before.closed().any(|closed| closed.starts_with(dir));
        let entries = before.entries(dir).unwrap_or_default();
        !by_entry || path.is_dir() || entries.iter().any(|(entry, _)| entry == path)
    };
    new.filter(|path| readable(path)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::survey;
    use crate::test_files;

    #[track_caller]
    fn check(change: &str, expected: &[&str]) {
        check_closed(ClosedBy::Rules, change, expected);
    }

    #[track_caller]
    fn check_closed(closed_by: ClosedBy, change: &str, expected: &[&str]) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in [".env", "notes", "src/deep/plain", "src/a.json", "data/x"] {
            test_files::write(&root, name, "x");
        }
        let before = survey(&root);
        let mut bash = std::process::Command::new("bash");
        let done = bash.args(["-ec", change]).current_dir(&root).status();
        assert!(done.unwrap().success(), "{change}");
        let mut found = new_secrets(&before, &survey(&root), closed_by);
        found.sort();
        let expected: Vec<PathBuf> = expected.iter().map(|name| root.join(name)).collect();
        assert_eq!(found, expected, "{change}");
    }

    #[test]
    fn a_secret_is_exposed_where_there_was_none() {
        check("true", &[]);
        check("echo x > src/.env", &["src/.env"]);
        check("echo x > src/deep/a.pem", &["src/deep/a.pem"]);
        check("mkdir src/.aws; echo x > src/.aws/x", &["src/.aws"]);
        check("ln .env src/other", &["src/other"]);
        check("mv data src/.ssh", &["src/.ssh"]);
        let account = r#"{"type": "service_account", "private_key": "PRIVATE KEY"}"#;
        check(&format!("echo '{account}' > src/a.json"), &["src/a.json"]);
        // A directory keeps its rule under a new name.
        check("mv src lib; echo x > lib/.env", &["lib/.env"]);
        check("mv src .aws", &[".aws"]);
    }

    #[test]
    fn what_appears_beside_a_secret_is_closed() {
        check("echo x > .env.local", &[]);
        check("echo y > new; mv new .env", &[]);
        check("rm .env", &[]);
    }

    #[test]
    fn what_appears_beside_a_covered_secret_is_exposed() {
        let check = |change, expected: &_| check_closed(ClosedBy::Mounts, change, expected);
        check("echo x > .env.local", &[".env.local"]);
        check("echo x > src/.env", &["src/.env"]);
        check("echo y > new; mv new .env", &[]);
        check("rm .env", &[]);
    }
}
