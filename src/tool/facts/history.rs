//! The files with secret names in the whole history of a repository.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use co_exec::regular::Stamp;
use co_exec::repository::Dirs;
use co_policy::HARDENING;
use co_policy::secret_names;

#[cfg(test)]
mod tests;

/// Refs and directories of refs that are looked at.
const MAX_REFS: usize = 4_000;

/// The history of one repository. It is searched again when the refs change.
pub(super) struct History {
    last: Mutex<Option<Arc<Search>>>,
    /// The time that a judgement waits for git. A longer search goes on for later commands.
    patience: Duration,
    /// The time that a search may take.
    longest: Duration,
}

/// A search of the history for one state of the refs.
struct Search {
    refs: Vec<Option<Stamp>>,
    started: Instant,
    progress: Mutex<Progress>,
    ended: Condvar,
}

/// The progress of a search.
enum Progress {
    Running(Git),
    /// All output is read, but git has not exited yet.
    Exiting,
    /// The files with secret names; none if git failed or was stopped.
    Ended(Option<Arc<[PathBuf]>>),
}

/// A git process, which is killed and reaped when this is dropped.
struct Git(Child);

impl Default for History {
    fn default() -> Self {
        Self {
            last: Mutex::default(),
            patience: Duration::from_secs(1),
            longest: Duration::from_secs(120),
        }
    }
}

impl Drop for History {
    fn drop(&mut self) {
        if let Some(search) = lock(&self.last).take() {
            search.end(None);
        }
    }
}

impl History {
    /// Returns the files with secret names in commits and in the indexes of other work trees, below the work tree.
    /// Returns none if git has not listed them in time.
    pub(super) fn secrets(&self, git: &Path, root: &Path, dirs: &Dirs) -> Option<Arc<[PathBuf]>> {
        let refs = refs(dirs)?;
        let mut last = lock(&self.last);
        let current = last.clone().filter(|search| search.refs == refs);
        let search = match current {
            Some(search) => search,
            None => {
                if let Some(old) = last.take() {
                    old.end(None);
                }
                let git = start(git, root, dirs)?;
                let search = Search::begin(git, refs, self.longest)?;
                Arc::clone(last.insert(search))
            }
        };
        drop(last);
        search.wait(self.patience)
    }
}

impl Search {
    /// Begins to read what git lists, and stops git after `longest`.
    fn begin(mut git: Git, refs: Vec<Option<Stamp>>, longest: Duration) -> Option<Arc<Self>> {
        let output = git.0.stdout.take()?;
        let search = Arc::new(Self {
            refs,
            started: Instant::now(),
            progress: Mutex::new(Progress::Running(git)),
            ended: Condvar::new(),
        });
        let (reader, timer) = (Arc::clone(&search), Arc::clone(&search));
        std::thread::spawn(move || reader.read(output));
        std::thread::spawn(move || {
            timer.wait(longest);
            timer.end(None);
        });
        Some(search)
    }

    fn read(&self, output: ChildStdout) {
        let found = secrets(output);
        let mut progress = lock(&self.progress);
        if !matches!(*progress, Progress::Running(_)) {
            return;
        }
        let running = std::mem::replace(&mut *progress, Progress::Exiting);
        drop(progress);
        if let Progress::Running(mut git) = running {
            let exited = git.0.wait().is_ok_and(|status| status.success());
            self.end(found.filter(|_| exited));
        }
    }

    /// Ends the search, unless it has ended, and kills its git.
    fn end(&self, found: Option<Arc<[PathBuf]>>) {
        let mut progress = lock(&self.progress);
        if !matches!(*progress, Progress::Ended(_)) {
            *progress = Progress::Ended(found);
        }
        self.ended.notify_all();
    }

    /// Waits until the search is this old or has ended, and returns what it found.
    fn wait(&self, age: Duration) -> Option<Arc<[PathBuf]>> {
        let left = age.saturating_sub(self.started.elapsed());
        let runs = |progress: &mut Progress| !matches!(progress, Progress::Ended(_));
        let waited = (self.ended).wait_timeout_while(lock(&self.progress), left, runs);
        let (progress, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &*progress {
            Progress::Ended(found) => found.clone(),
            _ => None,
        }
    }
}

impl Drop for Git {
    fn drop(&mut self) {
        // A process that was reaped has given up its number.
        if matches!(self.0.try_wait(), Ok(None)) {
            // It may end meanwhile.
            kill_process_group(Pid::from_child(&self.0), Signal::KILL).ok();
            self.0.wait().ok();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the stamps of all that changes with the refs; none if these are too many.
fn refs(dirs: &Dirs) -> Option<Vec<Option<Stamp>>> {
    let own = ["HEAD", "FETCH_HEAD", "logs/HEAD"].map(|name| dirs.own.join(name));
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

/// Starts git, which lists the object and the path of each file that a ref, a reflog or the index of another work tree
/// leads to.
fn start(git: &Path, root: &Path, dirs: &Dirs) -> Option<Git> {
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
    if dirs.own.join("FETCH_HEAD").is_file() {
        command.arg("FETCH_HEAD");
    }
    let child = command
        .env_clear()
        .envs(HARDENING)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        // `Index` lists the index of this work tree. For git, a missing file is an empty index.
        .env("GIT_INDEX_FILE", dirs.own.join("co-no-index"))
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    child.ok().map(Git)
}

/// Reads the lines of git to their end and returns the files with secret names; none if they cannot be read.
fn secrets(output: ChildStdout) -> Option<Arc<[PathBuf]>> {
    let mut secrets = BTreeSet::new();
    let mut lines = BufReader::with_capacity(64 << 10, output);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).ok()? > 0 {
        let mut fields = line.trim_ascii_end().splitn(2, |byte| *byte == b' ');
        let path = fields.nth(1).map(|path| Path::new(OsStr::from_bytes(path)));
        if let Some(path) = path.filter(|path| secret_names::secret(path).is_some()) {
            secrets.insert(path.to_owned());
        }
        line.clear();
    }
    Some(secrets.into_iter().collect())
}
