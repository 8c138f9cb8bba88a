//! Reads the secret values of a workspace from its secret files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aho_corasick::{AhoCorasick, BuildError};

use super::Surveys;
use super::extract;
use super::matcher::Matcher;
use super::survey::Survey;
use super::value::SecretValue;
use crate::regular::{self, FileStamp};
use crate::repository;
use co_policy::secret_names as names;

/// The most secret files that are read.
const MAX_FILES: usize = 1_000;

/// The most bytes of all values.
const MAX_BYTES: usize = 256 << 10;

/// The time for searching values in tracked files. A value that was not searched for counts as secret.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(1);

/// The secret values of one workspace. Old values stay known while there is room.
#[derive(Debug)]
pub struct Values {
    workspace: PathBuf,
    surveys: Surveys,
    state: Mutex<KnownValues>,
}

#[derive(Debug, Default)]
struct KnownValues {
    files: HashMap<PathBuf, SecretFile>,
    /// Values that a file contains or contained. True if a tracked file contains it too, so that it is not secret.
    known: BTreeMap<SecretValue, bool>,
    tracked: Option<Arc<[PathBuf]>>,
    /// The matcher for the known values, once it is made.
    matcher: Option<Arc<Matcher>>,
}

/// A secret file that was read.
#[derive(Debug)]
struct SecretFile {
    /// None if the file must be read again.
    stamp: Option<FileStamp>,
    values: BTreeSet<SecretValue>,
}

impl Values {
    /// Returns the values of a workspace without reading them.
    pub fn new(workspace: PathBuf, surveys: Surveys) -> Self {
        Self {
            workspace,
            surveys,
            state: Mutex::default(),
        }
    }

    /// Reads the secret files that have changed, and returns a matcher for all values so far. `tracked` are the paths
    /// of the files that git tracks, below the workspace.
    ///
    /// Blocks on files: call it from `spawn_blocking`.
    ///
    /// # Errors
    /// No matcher can be made for the values.
    pub fn read(&self, tracked: Option<Arc<[PathBuf]>>) -> Result<Arc<Matcher>, BuildError> {
        let survey = self.surveys.current(&self.workspace);
        let root = (self.workspace.canonicalize()).unwrap_or_else(|_| self.workspace.clone());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let held = state.read_files(&git_configs(&root, &survey), &survey);
        let mut new = state.make_room(held);
        if state.tracked != tracked {
            new.extend(state.known.keys().cloned());
            state.tracked = tracked;
        }
        if !new.is_empty() {
            let survey = &survey;
            state.classify(&OpenFiles { root, survey }, new);
            state.matcher = None;
        }
        if let Some(matcher) = &state.matcher {
            return Ok(Arc::clone(matcher));
        }
        let secret = state.known.iter().filter(|(_, public)| !**public);
        let matcher = Arc::new(Matcher::new(secret.map(|(value, _)| value))?);
        Ok(Arc::clone(state.matcher.insert(matcher)))
    }
}

impl KnownValues {
    /// Reads the changed files, and returns the values in all secret files and configurations of git.
    fn read_files(&mut self, configs: &[PathBuf], survey: &Survey) -> BTreeSet<SecretValue> {
        let mut before = std::mem::take(&mut self.files);
        let (mut held, mut left) = (BTreeSet::new(), MAX_BYTES);
        let configs = configs.iter().map(|path| (path, true));
        let files = (survey.files.iter())
            .chain(&survey.within)
            .chain(&survey.outside);
        let files = configs.chain(files.map(|path| (path, false)));
        for (path, is_config) in files.take(MAX_FILES) {
            let Some(mut file) = read_file(path, is_config, before.remove(path)) else {
                continue;
            };
            let all = file.values.len();
            (file.values).retain(|value| {
                let room = held.contains(value) || value.text.len() <= left;
                if room && held.insert(value.clone()) {
                    left -= value.text.len();
                }
                room
            });
            if file.values.len() < all {
                // There may be room for its other values later.
                file.stamp = None;
            }
            self.files.insert(path.clone(), file);
        }
        held
    }

    /// Forgets the values that no file contains any more if there is no room for all. Returns the new values.
    fn make_room(&mut self, held: BTreeSet<SecretValue>) -> BTreeSet<SecretValue> {
        let known = self.known.keys().chain(&held);
        if known.map(|value| value.text.len()).sum::<usize>() > 2 * MAX_BYTES {
            self.known.retain(|value, _| held.contains(value));
            self.matcher = None;
        }
        let is_new = |value: &SecretValue| !self.known.contains_key(value);
        held.into_iter().filter(is_new).collect()
    }

    /// Searches for values in the tracked files that are not secret.
    fn classify(&mut self, open: &OpenFiles<'_>, values: BTreeSet<SecretValue>) {
        let found = match &self.tracked {
            Some(tracked) => values_in(tracked.iter().filter_map(|file| open.path(file)), &values),
            None => BTreeSet::new(),
        };
        for value in values {
            let public = found.contains(&value);
            self.known.insert(value, public);
        }
    }
}

/// Returns git's configuration files of a workspace, which may contain credentials.
fn git_configs(root: &Path, survey: &Survey) -> Vec<PathBuf> {
    let mut configs = survey.git_configs.clone();
    // Those of a linked work tree are outside.
    if let Ok(Some(dirs)) = repository::find(root) {
        configs.push(dirs.common.join("config"));
        configs.push(dirs.own.join("config.worktree"));
    }
    configs.sort();
    configs.dedup();
    configs
}

/// Returns the values in a secret file, or none if it cannot be read. `before` are those of the last reading.
fn read_file(path: &Path, is_config: bool, before: Option<SecretFile>) -> Option<SecretFile> {
    let stamp = FileStamp::of(path);
    if let Some(file) = before
        && file.stamp.is_some()
        && file.stamp == stamp
    {
        return Some(file);
    }
    // Taken before reading, because the file may change meanwhile.
    let stamp = stamp.filter(FileStamp::is_settled);
    let text = text(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let values = match is_config {
        true => extract::git_config(&text),
        false => extract::values(&name, &text),
    };
    Some(SecretFile { stamp, values })
}

/// The files of a workspace that are not secret.
struct OpenFiles<'a> {
    root: PathBuf,
    survey: &'a Survey,
}

impl OpenFiles<'_> {
    /// Returns the real path of a file in the workspace, unless one of its names is secret.
    fn path(&self, file: &Path) -> Option<PathBuf> {
        let real = self.root.join(file).canonicalize().ok()?;
        let below = real.strip_prefix(&self.root).unwrap_or(&real);
        let survey = self.survey;
        let is_in =
            |list: &[PathBuf], path: &Path| list.binary_search_by(|it| (**it).cmp(path)).is_ok();
        let secret = names::secret(file).is_some()
            || names::secret(below).is_some()
            || is_in(&survey.files, &real)
            || survey.outside.contains(&real)
            || real.ancestors().any(|dir| is_in(&survey.dirs, dir));
        (!secret).then_some(real)
    }
}

/// Returns the values that are in any of the files.
fn values_in(
    files: impl Iterator<Item = PathBuf>,
    values: &BTreeSet<SecretValue>,
) -> BTreeSet<SecretValue> {
    let patterns: Vec<&SecretValue> = values.iter().collect();
    let search = AhoCorasick::new(patterns.iter().map(|value| value.text.as_bytes()));
    let (Ok(search), begun) = (search, Instant::now()) else {
        return BTreeSet::new();
    };
    let mut found = BTreeSet::new();
    // A link may lead to a secret file.
    for file in files.filter(|file| !file.is_symlink()) {
        if begun.elapsed() > SEARCH_TIMEOUT {
            break;
        }
        let Ok(bytes) = regular::read(&file, regular::SMALL_FILE_BYTES) else {
            continue;
        };
        let hits = search.find_overlapping_iter(&bytes);
        found.extend(hits.map(|hit| patterns[hit.pattern()].clone()));
    }
    found
}

/// Returns the text of a secret file, unless it is binary.
fn text(file: &Path) -> Option<String> {
    let bytes = regular::read(file, regular::SMALL_FILE_BYTES).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    (!bytes.contains(&0)).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns what is left of `text` in a workspace.
    fn left(values: &Values, tracked: Option<&Arc<[PathBuf]>>, text: &str) -> String {
        let matcher = values.read(tracked.cloned()).unwrap();
        let redactor = crate::secrets::redact::Redactor::new(&[]).with_values(matcher);
        redactor.redact(text).text
    }

    #[test]
    fn values_are_read_again_after_each_change_and_old_ones_stay_known() {
        let dir = tempfile::tempdir().unwrap();
        let values = Values::new(dir.path().to_owned(), Surveys::default());
        assert_eq!(left(&values, None, "hunterhunter"), "hunterhunter");
        for number in 0..20 {
            fs::write(
                dir.path().join(".env"),
                format!("PASSWORD=hunter-{number:04}\n"),
            )
            .unwrap();
            assert_eq!(
                left(&values, None, &format!("is hunter-{number:04}")),
                "is [redacted: secret value]"
            );
        }
        assert_eq!(
            left(&values, None, "was hunter-0003."),
            "was [redacted: secret value]."
        );
        fs::remove_file(dir.path().join(".env")).unwrap();
        fs::create_dir_all(dir.path().join("a/secrets")).unwrap();
        fs::write(dir.path().join("a/secrets/db"), "swordfish-7\n").unwrap();
        assert_eq!(
            left(&values, None, "it is swordfish-7"),
            "it is [redacted: secret value]"
        );
        assert_eq!(
            left(&values, None, "was hunter-0003."),
            "was [redacted: secret value]."
        );
    }

    #[test]
    fn what_stands_in_a_tracked_file_is_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write(".env", "PASSWORD=postgres-1\nTOKEN=hunterhunter\n");
        write("compose.yml", "password: postgres-1\n");
        write("notes", "hunterhunter\n");
        std::os::unix::fs::symlink(".env", dir.path().join("current")).unwrap();
        let tracked: Arc<[PathBuf]> = [".env", "compose.yml", "current"].map(PathBuf::from).into();
        let values = Values::new(dir.path().to_owned(), Surveys::default());
        let text = "postgres-1 hunterhunter";
        assert_eq!(
            left(&values, None, text),
            "[redacted: secret value] [redacted: secret value]"
        );
        assert_eq!(
            left(&values, Some(&tracked), text),
            "postgres-1 [redacted: secret value]"
        );
        let more: Arc<[PathBuf]> = ["compose.yml", "notes"].map(PathBuf::from).into();
        assert_eq!(left(&values, Some(&more), text), text);
    }

    #[test]
    fn a_secret_behind_a_link_does_not_make_its_own_values_public() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        fs::create_dir(dir.path().join("conf")).unwrap();
        write("conf/db.yml", "password: hunterhunter\n");
        std::os::unix::fs::symlink("conf", dir.path().join("secrets")).unwrap();
        write(".env", "TOKEN=swordfish-7\n");
        std::os::unix::fs::symlink(".env", dir.path().join("settings")).unwrap();
        let tracked: Arc<[PathBuf]> = ["conf/db.yml", "secrets", "settings"]
            .map(PathBuf::from)
            .into();
        let values = Values::new(dir.path().to_owned(), Surveys::default());
        assert_eq!(
            left(&values, Some(&tracked), "hunterhunter swordfish-7"),
            "[redacted: secret value] [redacted: secret value]"
        );
    }

    #[test]
    fn an_equal_list_of_tracked_files_is_not_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write(".env", "PASSWORD=postgres-1\n");
        write("compose.yml", "postgres-1\n");
        let tracked = || -> Arc<[PathBuf]> { [PathBuf::from("compose.yml")].into() };
        let values = Values::new(dir.path().to_owned(), Surveys::default());
        assert_eq!(left(&values, Some(&tracked()), "postgres-1"), "postgres-1");
        write("compose.yml", "nothing\n");
        assert_eq!(left(&values, Some(&tracked()), "postgres-1"), "postgres-1");
    }

    #[test]
    fn new_values_take_the_place_of_old_ones_and_none_is_forgotten_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        let many = |name: &str, count: usize| -> String {
            (0..count)
                .map(|number| format!("{number}_TOKEN={name}-{number:01017}\n"))
                .collect()
        };
        let room = MAX_BYTES / 1_024;
        let values = Values::new(dir.path().to_owned(), Surveys::default());
        let shown = |text: &str| left(&values, None, text) == text;
        let first = |name: &str| format!("{name}-{:01017}", 0);
        write("a.env", &many("hunter", room));
        write("b.env", "TOKEN=swordfish-7654\n");
        assert!(!shown(&first("hunter")) && shown("a swordfish-7654 b"));
        write("a.env", &many("hunter", room - 1));
        assert!(!shown(&first("hunter")) && !shown("a swordfish-7654 b"));
        // Values that no file contains any more are dropped first.
        write("a.env", &many("gather", room - 1));
        assert!(!shown(&first("hunter")) && !shown(&first("gather")));
        write("a.env", &many("banter", room - 1));
        assert!(shown(&first("hunter")) && !shown(&first("banter")));
        assert!(!shown("a swordfish-7654 b"));
    }

    #[test]
    fn credentials_in_gits_configuration_are_values() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let url = |password: &str| format!("[remote \"o\"]\n\turl = https://me:{password}@h/r\n");
        write("work/.git/config", &url("hunter-one"));
        write("work/.git/modules/m/config", &url("hunter-two"));
        write("work/bare/HEAD", "");
        write("work/bare/config", &url("hunter-three"));
        write("work/config", &url("hunter-four"));
        for name in ["objects", "refs"] {
            fs::create_dir_all(dir.path().join("work/bare").join(name)).unwrap();
        }
        let values = Values::new(dir.path().join("work"), Surveys::default());
        assert_eq!(
            left(
                &values,
                None,
                "hunter-one hunter-two hunter-three hunter-four"
            ),
            "[redacted: secret value] [redacted: secret value] [redacted: secret value] hunter-four"
        );
        // A linked work tree has its configuration outside.
        write("main/.git/config", &url("hunter-five"));
        write("main/.git/HEAD", "");
        for name in ["objects", "refs"] {
            fs::create_dir_all(dir.path().join("main/.git").join(name)).unwrap();
        }
        write("main/.git/worktrees/w/commondir", "../..\n");
        let tree = dir.path().canonicalize().unwrap().join("tree");
        write(
            "main/.git/worktrees/w/gitdir",
            &format!("{}/.git\n", tree.display()),
        );
        write("tree/.git", "gitdir: ../main/.git/worktrees/w\n");
        let values = Values::new(tree, Surveys::default());
        assert_eq!(
            left(&values, None, "hunter-five"),
            "[redacted: secret value]"
        );
    }

    #[test]
    fn values_are_read_through_links_that_lead_out_of_the_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, at(name)).unwrap();
        for name in ["work", "shared/keys"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("shared/env"), "TOKEN=hunterhunter\n").unwrap();
        fs::write(at("shared/keys/db"), "swordfish-7\n").unwrap();
        link("../shared/env", "work/.env");
        link("../shared/later", "work/a.env");
        link("../shared/keys", "work/secrets");
        link("..", "work/.aws");
        let values = Values::new(at("work"), Surveys::default());
        let text = "hunterhunter swordfish-7";
        assert_eq!(
            left(&values, None, text),
            "[redacted: secret value] [redacted: secret value]"
        );
        fs::write(at("shared/later"), "TOKEN=correct-horse\n").unwrap();
        assert_eq!(
            left(&values, None, "a correct-horse"),
            "a [redacted: secret value]"
        );
    }
}
