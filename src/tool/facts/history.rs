//! The files with secret names in the whole history of a repository.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Stamp;
use co_exec::repository::Dirs;
use co_policy::HARDENING;
use co_policy::secret_names;

/// The time that a judgement waits for git. A longer search goes on for later commands.
const PATIENCE: Duration = Duration::from_secs(1);

/// The time that a search may take.
const LONGEST: Duration = Duration::from_secs(120);

/// Refs and directories of refs that are looked at.
const MAX_REFS: usize = 4_000;

/// The history of one repository, searched once for each state of its refs and its index.
#[derive(Default)]
pub(super) struct History {
    shared: Arc<(Mutex<Search>, Condvar)>,
}

/// The last search.
#[derive(Default)]
struct Search {
    state: Vec<Option<Stamp>>,
    /// When it began, as long as it runs.
    running: Option<Instant>,
    found: Option<Arc<[PathBuf]>>,
}

impl History {
    /// Returns the files with secret names, below the work tree; none if git has not said in time.
    pub(super) fn secrets(&self, git: &Path, root: &Path, dirs: &Dirs) -> Option<Arc<[PathBuf]>> {
        let state = state(dirs)?;
        let (search, ended) = &*self.shared;
        let mut last = search.lock().unwrap_or_else(PoisonError::into_inner);
        if last.state != state {
            let child = start(git, root, dirs.own.join("FETCH_HEAD").is_file())?;
            *last = Search {
                state: state.clone(),
                running: Some(Instant::now()),
                found: None,
            };
            let shared = Arc::clone(&self.shared);
            std::thread::spawn(move || {
                let found = read(child);
                let (search, ended) = &*shared;
                let mut last = search.lock().unwrap_or_else(PoisonError::into_inner);
                if last.state == state {
                    last.running = None;
                    last.found = found;
                }
                ended.notify_all();
            });
        }
        let passed = last.running.map(|begun| begun.elapsed());
        let left = PATIENCE.saturating_sub(passed.unwrap_or_default());
        let runs = |last: &mut Search| last.running.is_some();
        let waited = ended.wait_timeout_while(last, left, runs);
        let (last, _) = waited.unwrap_or_else(PoisonError::into_inner);
        last.found.clone()
    }
}

/// Returns the stamps of all that changes with the refs and the index; none if these are too many.
fn state(dirs: &Dirs) -> Option<Vec<Option<Stamp>>> {
    let own = ["HEAD", "index", "FETCH_HEAD", "logs/HEAD"].map(|name| dirs.own.join(name));
    let common = [
        "packed-refs",
        "reftable/tables.list",
        "logs/refs/stash",
        "shallow",
    ];
    let common = common.map(|name| dirs.common.join(name));
    let mut stamps: Vec<_> = own
        .iter()
        .chain(&common)
        .map(|path| Stamp::of(path))
        .collect();
    let mut todo = vec![dirs.common.join("refs"), dirs.own.join("refs")];
    while let Some(path) = todo.pop() {
        stamps.push(Stamp::of(&path));
        if stamps.len() > MAX_REFS {
            return None;
        }
        let entries = path.read_dir().into_iter().flatten().flatten();
        todo.extend(entries.map(|entry| entry.path()));
    }
    Some(stamps)
}

/// Starts git, which lists each file that a ref, a log of a ref or the index leads to: its object and path.
fn start(git: &Path, root: &Path, fetched: bool) -> Option<Child> {
    let mut command = Command::new(git);
    command.args([
        "rev-list",
        "--objects",
        "--all",
        "--reflog",
        "--indexed-objects",
    ]);
    command.args([
        "--ignore-missing",
        "--missing=allow-any",
        "--filter=object:type=blob",
    ]);
    if fetched {
        command.arg("FETCH_HEAD");
    }
    command
        .env_clear()
        .envs(HARDENING)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

/// Reads what git lists; none if it fails or takes too long.
fn read(mut child: Child) -> Option<Arc<[PathBuf]>> {
    let until = Instant::now() + LONGEST;
    let mut secrets = BTreeSet::new();
    let mut lines = BufReader::with_capacity(64 << 10, child.stdout.take()?);
    let mut line = Vec::new();
    while Instant::now() < until
        && lines
            .read_until(b'\n', &mut line)
            .is_ok_and(|read| read > 0)
    {
        let mut fields = line.trim_ascii_end().splitn(2, |byte| *byte == b' ');
        let path = fields.nth(1).map(|path| Path::new(OsStr::from_bytes(path)));
        if let Some(path) = path.filter(|path| secret_names::secret(path).is_some()) {
            secrets.insert(path.to_owned());
        }
        line.clear();
    }
    let late = Instant::now() >= until;
    if late {
        // It may have ended by itself.
        child.kill().ok();
    }
    let ended = child.wait().ok()?;
    (ended.success() && !late).then(|| secrets.into_iter().collect())
}
