//! Finds secrets that appeared where a command could read them. They appeared after the survey by which secrets were closed to
//! the command, and before the command ended.
//!
//! A second survey finds the secrets that exist at the end. The names that changed meanwhile in the directories of the workspace
//! (inotify) show secrets that existed only for a while. The times of files show secrets that had another name for a while.

mod names;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use rustix::fs::AtFlags;

use self::names::{INDEX, NameWatch, Places, WorkspaceState};
use crate::beneath::Dir;
use crate::confinement::level::{ClosedBy, ClosedSecrets, ShownSecrets};
use crate::error::refusal::HidingRefusal;
use crate::regular::FileStamp;
use crate::secrets::{Survey, Surveys};

/// The most secrets that a message names.
const MAX_NAMED_SECRETS: usize = 10;

/// The most surveys before the start of a command. co surveys again if secrets appeared during the last survey.
const MAX_SURVEYS: usize = 4;

/// The secrets that are closed to a command, with a watch for new secrets in the workspace. Clones share their findings.
#[derive(Debug, Clone)]
pub(crate) struct SecretWatch {
    surveys: Surveys,
    workspace: PathBuf,
    before: Arc<Survey>,
    closed_by: ClosedBy,
    shown: ShownSecrets,
    /// The stamps of the secret files when the watch began.
    stamps: Arc<SecretStamps>,
    /// The stamp of git's index when the watch began. `None` if all names are watched.
    index: Option<FileStamp>,
    state: Arc<Mutex<WatchState>>,
}

#[derive(Debug)]
struct WatchState {
    exposed: Vec<PathBuf>,
    phase: Phase,
    /// The watch for changed names. `None` if the kernel cannot report names, or if watching them would take too long.
    names: Option<NameWatch>,
    places: Places,
}

/// The phase of a command: it starts, runs, or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    Running,
    Ended,
}

impl SecretWatch {
    /// Starts to watch. If secrets appear or move meanwhile, surveys the workspace again.
    ///
    /// Blocks on files.
    ///
    /// # Errors
    /// In the last attempt, secrets still appeared or moved during the survey.
    pub(crate) fn new(
        surveys: &Surveys,
        secrets: ClosedSecrets<'_>,
    ) -> Result<Self, HidingRefusal> {
        let ClosedSecrets {
            workspace,
            shown,
            closed_by,
        } = secrets;
        // It is checked when the changes are watched.
        let mut before = surveys.latest(workspace);
        let mut names = NameWatch::new(workspace, closed_by, surveys.watchers());
        let mut tries = 1;
        let stamps = loop {
            names = names.and_then(|names| names.with(&before));
            // Before the survey: what happens after this is noticed.
            let stamps = SecretStamps::of(&before, shown);
            let now = surveys.current(workspace);
            let is_same = Arc::ptr_eq(&before, &now);
            let moved = first_difference(&before, &now);
            before = now;
            match moved {
                // The first survey may lack directories, which then have no watch.
                None if is_same || tries > 1 => break stamps,
                None => tries += 1,
                Some(_) if tries < MAX_SURVEYS => tries += 1,
                Some(path) => return Err(HidingRefusal::Moving(path)),
            }
        };
        let earlier = surveys.closed_earlier(workspace);
        let places = Places::new(Arc::clone(&before), &earlier, closed_by, shown);
        let mut watch = Self {
            surveys: surveys.clone(),
            workspace: workspace.to_owned(),
            before,
            closed_by,
            shown: shown.clone(),
            stamps: Arc::new(stamps),
            index: None,
            state: Arc::new(Mutex::new(WatchState {
                exposed: Vec::new(),
                phase: Phase::Starting,
                names,
                places,
            })),
        };
        if !watch.state.lock().sees_all() {
            watch.index = watch.index_stamp();
        }
        Ok(watch)
    }

    fn index_stamp(&self) -> Option<FileStamp> {
        let index = names::git_dir(&self.workspace).join(INDEX);
        FileStamp::of(&index)
    }

    /// Returns the survey by which the secrets are closed.
    pub(crate) fn before(&self) -> &Survey {
        &self.before
    }

    /// Records that the command starts now. From now on, the command may itself create secrets.
    ///
    /// Blocks on files.
    pub(crate) fn command_starts(&self) {
        let mut state = self.state.lock();
        let may_have_changed = state.names.as_mut().is_none_or(NameWatch::read);
        if self.closed_by == ClosedBy::WritableMounts && may_have_changed {
            state.exposed = self.look(&mut state, Instant::now());
        }
        state.phase = Phase::Running;
    }

    /// Returns the secrets that the command may have read until the time `until`, including those that an earlier call found. If
    /// co cannot search the whole workspace, returns the workspace.
    ///
    /// Blocks on files.
    pub(crate) fn exposed(&self, until: Instant) -> Vec<PathBuf> {
        let mut state = self.state.lock();
        if state.exposed.is_empty() && state.phase != Phase::Ended {
            state.exposed = self.look(&mut state, until);
        }
        state.exposed.clone()
    }

    /// Ends the watch after the command has ended. Blocks for some milliseconds until the kernel has removed its watches.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.phase = Phase::Ended;
        let names = state.names.take();
        drop(state);
        drop(names);
    }

    /// Finds secrets that the command could read since the last call. Uses a survey that was checked after the time `until`.
    fn look(&self, state: &mut WatchState, until: Instant) -> Vec<PathBuf> {
        let git_is_busy = state.names.as_ref().is_some_and(NameWatch::is_git_busy);
        let now = self.surveys.since(&self.workspace, until);
        let may_write = self.closed_by == ClosedBy::WritableMounts && state.phase == Phase::Running;
        let mut own = may_write;
        let everywhere = vec![self.workspace.clone()];
        let mut changes = Vec::new();
        if let Some(names) = &mut state.names {
            names.read();
            if names.lost {
                return everywhere;
            }
            own &= !names.git;
            changes = names.take();
        }
        if !state.sees_all() {
            let is_blind = state.names.is_none();
            let stamps = || self.stamps.are_current(&self.workspace);
            let may_miss_a_secret = match self.closed_by {
                ClosedBy::Rules => is_blind && stamps() != (true, true),
                // The command itself changes directories.
                _ if may_write => is_blind && !stamps().0,
                // Something has changed meanwhile.
                _ => !Arc::ptr_eq(&self.before, &now),
            };
            if may_miss_a_secret {
                return everywhere;
            }
            own &= self.index_stamp() == self.index;
        }
        if !now.complete {
            return everywhere;
        }
        let workspace = WorkspaceState {
            survey: &now,
            own,
            git_is_busy,
        };
        let mut came: Vec<_> = changes
            .into_iter()
            .filter_map(|change| state.places.exposed(change, workspace))
            .collect();
        came.extend(self.stamps.linked(&self.workspace));
        came.sort();
        came.dedup();
        let mut exposed = match own {
            true => Vec::new(),
            false => new_secrets(&self.before, &now, self.closed_by),
        };
        exposed.retain(|path| !self.shown.includes(path));
        came.retain(|path| !exposed.contains(path));
        exposed.extend(came);
        exposed
    }

    /// If the output until the time `until` may contain a secret, returns a line that replaces the output for a model.
    ///
    /// Blocks on files.
    pub(crate) fn withheld(&self, until: Instant) -> Option<String> {
        let exposed = self.exposed(until);
        let name = |path: &PathBuf| {
            let shown = path.strip_prefix(&self.workspace).unwrap_or(path);
            co_text::printable(&shown.display().to_string())
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

/// The stamps of secret files, and of the directories that contain them.
#[derive(Debug, Default)]
struct SecretStamps {
    files: Vec<(PathBuf, FileStamp)>,
    dirs: Vec<(PathBuf, FileStamp)>,
}

impl SecretStamps {
    fn of(survey: &Survey, shown: &ShownSecrets) -> Self {
        let Ok(root) = Dir::open(survey.root()) else {
            return Self::default();
        };
        let with_stamp = |path: &Path| Some((path.to_owned(), stamp(&root, survey.root(), path)?));
        let is_hidden = |path: &&PathBuf| !shown.includes(path);
        let hidden_dirs: Vec<_> = survey.dirs.iter().filter(is_hidden).collect();
        let within = survey.within.iter();
        let within = within.filter(|file| hidden_dirs.iter().any(|dir| file.starts_with(dir)));
        let files = survey.files.iter().filter(is_hidden).chain(within);
        let above = survey.closed().flat_map(|path| path.ancestors().skip(1));
        let above: HashSet<&Path> = above.filter(|dir| dir.starts_with(survey.root())).collect();
        Self {
            files: files.filter_map(|path| with_stamp(path)).collect(),
            dirs: (above.into_iter().map(Path::to_owned))
                .chain(survey.closed_directories())
                .filter_map(|dir| with_stamp(&dir))
                .collect(),
        }
    }

    /// Returns secret files that may have had another name for a while: only their metadata has changed. If the workspace cannot
    /// be opened, returns `root`.
    fn linked(&self, root: &Path) -> Vec<PathBuf> {
        let Ok(opened) = Dir::open(root) else {
            return vec![root.to_owned()];
        };
        let linked = self.files.iter().filter(|(path, before)| {
            stamp(&opened, root, path).is_some_and(|now| now.is_unwritten_since(before))
        });
        linked.map(|(path, _)| path.clone()).collect()
    }

    /// Returns whether all files still have their stamps, and whether all directories still have theirs.
    fn are_current(&self, root: &Path) -> (bool, bool) {
        let Ok(opened) = Dir::open(root) else {
            return (false, false);
        };
        let is_same =
            |(path, before): &(PathBuf, FileStamp)| stamp(&opened, root, path) == Some(*before);
        (
            self.files.iter().all(is_same),
            self.dirs.iter().all(is_same),
        )
    }
}

/// Returns the stamp of a file in the open directory `root`, if the file exists.
fn stamp(opened: &Dir, root: &Path, path: &Path) -> Option<FileStamp> {
    let below = path.strip_prefix(root).ok()?;
    FileStamp::below(opened, below, AtFlags::SYMLINK_NOFOLLOW)
}

/// Returns the path of a secret that only one of the two surveys contains.
fn first_difference(one: &Survey, other: &Survey) -> Option<PathBuf> {
    let (one, other): (HashSet<_>, HashSet<_>) = (one.closed().collect(), other.closed().collect());
    one.symmetric_difference(&other)
        .next()
        .map(|path| (*path).clone())
}

impl WatchState {
    /// Returns whether the names in all directories are watched.
    fn sees_all(&self) -> bool {
        self.names.as_ref().is_some_and(|names| names.whole)
    }
}

/// Returns the secrets in the survey `now` that a command could read if the survey `before` decided which secrets were closed to
/// the command.
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
        let name = path.file_name().unwrap_or_default();
        !by_entry
            || now.dirs.iter().any(|dir| dir == path)
            || before.entries(dir).is_some_and(|entries| entries.has(name))
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
