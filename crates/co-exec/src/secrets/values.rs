//! Reads the secret values of a workspace from its secret files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aho_corasick::{AhoCorasick, BuildError};
use parking_lot::Mutex;

use super::Surveys;
use super::extract;
use super::matcher::Matcher;
use super::survey::Survey;
use super::value::SecretValue;
use crate::beneath;
use crate::path_list::PathList;
use crate::regular::{self, FileStamp, SMALL_FILE_BYTES};
use crate::repository;
use co_policy::secret_names as names;

/// The most secret files that are read for values.
const MAX_FILES: usize = 1_000;

/// The most bytes of all secret values together.
const MAX_BYTES: usize = 256 << 10;

/// The longest time for searching the values in tracked files. A value that was not searched in time counts as secret.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(1);

/// The secret values of a workspace. Values that are gone from the files stay known while there is room.
#[derive(Debug)]
pub struct Values {
    workspace: PathBuf,
    surveys: Surveys,
    state: Mutex<KnownValues>,
}

#[derive(Debug, Default)]
struct KnownValues {
    files: HashMap<PathBuf, SecretFile>,
    /// The values that a file contains or contained. The flag is true if a tracked file contains the value too, so that the value
    /// is not secret.
    known: BTreeMap<SecretValue, bool>,
    tracked: Option<PathList>,
    /// The matcher for the known values. `None` until it is built.
    matcher: Option<Arc<Matcher>>,
}

/// The values of a secret file that was read.
#[derive(Debug)]
struct SecretFile {
    /// The stamp of the file. `None` if the file must be read again.
    stamp: Option<FileStamp>,
    values: BTreeSet<SecretValue>,
}

impl Values {
    /// Creates the store for the values of a workspace, without reading any files.
    pub fn new(workspace: PathBuf, surveys: Surveys) -> Self {
        Self {
            workspace,
            surveys,
            state: Mutex::default(),
        }
    }

    /// Reads the secret files that have changed, and returns a matcher for all known values. Uses a survey of the workspace that
    /// was checked after the time `since`; if `since` is `None`, the last survey. `tracked` lists the files that git tracks,
    /// relative to the workspace.
    ///
    /// Blocks on files: call it from `spawn_blocking`.
    ///
    /// # Errors
    /// The matcher cannot be built.
    pub fn read(
        &self,
        since: Option<Instant>,
        tracked: Option<PathList>,
    ) -> Result<Arc<Matcher>, BuildError> {
        let survey = match since {
            Some(moment) => self.surveys.since(&self.workspace, moment),
            None => self.surveys.latest(&self.workspace),
        };
        let root = (self.workspace.canonicalize()).unwrap_or_else(|_| self.workspace.clone());
        let mut state = self.state.lock();
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
    /// Reads the changed files. Returns the values in all secret files and git configurations.
    fn read_files(&mut self, configs: &[PathBuf], survey: &Survey) -> BTreeSet<SecretValue> {
        let mut before = std::mem::take(&mut self.files);
        let (mut held, mut left) = (BTreeSet::new(), MAX_BYTES);
        let configs = configs.iter().map(|path| (path, Source::GitConfig));
        let inside = survey.files.iter().chain(&survey.within);
        let inside = inside.map(|path| (path, Source::Inside));
        let outside = survey.outside.iter().map(|path| (path, Source::Outside));
        let files = configs.chain(inside).chain(outside);
        for (path, source) in files.take(MAX_FILES) {
            let Some(mut file) = read_file(path, source, before.remove(path)) else {
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

    /// If there is no room for all values, forgets the known values that are not in `held`, because no file contains them any
    /// more. Returns the values in `held` that are not known yet.
    fn make_room(&mut self, held: BTreeSet<SecretValue>) -> BTreeSet<SecretValue> {
        let known = self.known.keys().chain(&held);
        if known.map(|value| value.text.len()).sum::<usize>() > 2 * MAX_BYTES {
            self.known.retain(|value, _| held.contains(value));
            self.matcher = None;
        }
        let is_new = |value: &SecretValue| !self.known.contains_key(value);
        held.into_iter().filter(is_new).collect()
    }

    /// Searches the values in tracked files, to find out which values are not secret.
    fn classify(&mut self, open: &OpenFiles<'_>, values: BTreeSet<SecretValue>) {
        let found = match &self.tracked {
            Some(tracked) => values_in(tracked.iter().filter_map(|file| open.path(&file)), &values),
            None => BTreeSet::new(),
        };
        for value in values {
            let public = found.contains(&value);
            self.known.insert(value, public);
        }
    }
}

/// Returns the configuration files of git for a workspace, which may contain credentials.
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

/// The kind of file that secret values come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    GitConfig,
    /// A secret file in the workspace, given by its canonical path.
    Inside,
    /// A file outside the workspace to which a symbolic link with a secret name leads.
    Outside,
}

/// Reads the values in a file. Returns `None` if the file cannot be read. Reuses `before`, the result of the last reading, if the
/// file has not changed.
fn read_file(path: &Path, source: Source, before: Option<SecretFile>) -> Option<SecretFile> {
    let (file, node) = match source {
        Source::Inside => beneath::open_real(path),
        Source::GitConfig | Source::Outside => beneath::open_resolved(path),
    }
    .ok()?;
    if let Some(file) = before
        && file.stamp == Some(node.stamp)
    {
        return Some(file);
    }
    // Taken before reading, because the file may change meanwhile.
    let stamp = Some(node.stamp).filter(FileStamp::is_settled);
    let text = text(file)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let values = match source {
        Source::GitConfig => extract::git_config(&text),
        Source::Inside | Source::Outside => extract::values(&name, &text),
    };
    Some(SecretFile { stamp, values })
}

/// The files of a workspace that are not secret.
struct OpenFiles<'a> {
    root: PathBuf,
    survey: &'a Survey,
}

impl OpenFiles<'_> {
    /// Returns the canonical path of a file in the workspace. Returns `None` if one of its paths is secret.
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

/// Returns the values that at least one of the files contains.
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
    for file in files {
        if begun.elapsed() > SEARCH_TIMEOUT {
            break;
        }
        // A link that has come meanwhile may lead to a secret file.
        let opened = beneath::open_real(&file);
        let Ok(bytes) = opened.and_then(|(file, _)| regular::read_open(file, SMALL_FILE_BYTES))
        else {
            continue;
        };
        let hits = search.find_overlapping_iter(&bytes);
        found.extend(hits.map(|hit| patterns[hit.pattern()].clone()));
    }
    found
}

/// Returns the text of an open file, or `None` if the file is binary.
fn text(file: File) -> Option<String> {
    let bytes = regular::read_open(file, SMALL_FILE_BYTES).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    (!bytes.contains(&0)).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::test_files;

    const REDACTED: &str = "[redacted: secret value]";

    /// A workspace and its values.
    struct Workspace {
        dir: tempfile::TempDir,
        values: Values,
    }

    impl Workspace {
        /// The workspace `below` a new directory.
        fn new(below: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let values = Values::new(dir.path().join(below), Surveys::default());
            Self { dir, values }
        }

        fn at(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            test_files::write(self.dir.path(), name, text);
        }

        fn link(&self, to: &str, name: &str) {
            std::os::unix::fs::symlink(to, self.at(name)).unwrap();
        }

        /// Returns `text` without the secret values.
        fn left(&self, text: &str) -> String {
            left(&self.values, None, text)
        }

        /// Returns `text` without the secret values while git tracks these files.
        fn left_with(&self, tracked: &[&str], text: &str) -> String {
            let tracked = tracked.iter().collect();
            left(&self.values, Some(tracked), text)
        }
    }

    /// Returns `text` without the secret values of a workspace.
    fn left(values: &Values, tracked: Option<PathList>, text: &str) -> String {
        let matcher = values.read(Some(Instant::now()), tracked).unwrap();
        let redactor = crate::secrets::redact::Redactor::new(&[]).with_values(matcher);
        redactor.redact(text).text
    }

    #[test]
    fn values_are_read_again_after_each_change_and_old_ones_stay_known() {
        let ws = Workspace::new("");
        assert_eq!(ws.left("hunterhunter"), "hunterhunter");
        for number in 0..20 {
            let value = format!("hunter-{number:04}");
            ws.write(".env", &format!("PASSWORD={value}\n"));
            assert_eq!(ws.left(&format!("is {value}")), format!("is {REDACTED}"));
        }
        let was = format!("was {REDACTED}.");
        assert_eq!(ws.left("was hunter-0003."), was);
        fs::remove_file(ws.at(".env")).unwrap();
        ws.write("a/secrets/db", "swordfish-7\n");
        let is = format!("it is {REDACTED}");
        assert_eq!(ws.left("it is swordfish-7"), is);
        assert_eq!(ws.left("was hunter-0003."), was);
    }

    #[test]
    fn what_stands_in_a_tracked_file_is_no_secret() {
        let ws = Workspace::new("");
        ws.write(".env", "PASSWORD=postgres-1\nTOKEN=hunterhunter\n");
        ws.write("compose.yml", "password: postgres-1\n");
        ws.write("notes", "hunterhunter\n");
        ws.link(".env", "current");
        let text = "postgres-1 hunterhunter";
        assert_eq!(ws.left(text), format!("{REDACTED} {REDACTED}"));
        let tracked = [".env", "compose.yml", "current"];
        let one = format!("postgres-1 {REDACTED}");
        assert_eq!(ws.left_with(&tracked, text), one);
        assert_eq!(ws.left_with(&["compose.yml", "notes"], text), text);
    }

    #[test]
    fn a_secret_behind_a_link_does_not_make_its_own_values_public() {
        let ws = Workspace::new("");
        ws.write("conf/db.yml", "password: hunterhunter\n");
        ws.link("conf", "secrets");
        ws.write(".env", "TOKEN=swordfish-7\n");
        ws.link(".env", "settings");
        let tracked = ["conf/db.yml", "secrets", "settings"];
        let left = ws.left_with(&tracked, "hunterhunter swordfish-7");
        assert_eq!(left, format!("{REDACTED} {REDACTED}"));
    }

    #[test]
    fn an_equal_list_of_tracked_files_is_not_read_again() {
        let ws = Workspace::new("");
        ws.write(".env", "PASSWORD=postgres-1\n");
        for text in ["postgres-1\n", "nothing\n"] {
            ws.write("compose.yml", text);
            let left = ws.left_with(&["compose.yml"], "postgres-1");
            assert_eq!(left, "postgres-1", "{text}");
        }
    }

    #[test]
    fn new_values_take_the_place_of_old_ones_and_none_is_forgotten_for_ever() {
        let ws = Workspace::new("");
        let many = |name: &str, count: usize| -> String {
            (0..count)
                .map(|number| format!("{number}_TOKEN={name}-{number:01017}\n"))
                .collect()
        };
        let room = MAX_BYTES / 1_024;
        let shown = |text: &str| ws.left(text) == text;
        let first = |name: &str| format!("{name}-{:01017}", 0);
        ws.write("a.env", &many("hunter", room));
        ws.write("b.env", "TOKEN=swordfish-7654\n");
        assert!(!shown(&first("hunter")) && shown("a swordfish-7654 b"));
        ws.write("a.env", &many("hunter", room - 1));
        assert!(!shown(&first("hunter")) && !shown("a swordfish-7654 b"));
        // Values that no file contains any more are dropped first.
        ws.write("a.env", &many("gather", room - 1));
        assert!(!shown(&first("hunter")) && !shown(&first("gather")));
        ws.write("a.env", &many("banter", room - 1));
        assert!(shown(&first("hunter")) && !shown(&first("banter")));
        assert!(!shown("a swordfish-7654 b"));
    }

    #[test]
    fn credentials_in_gits_configuration_are_values() {
        let ws = Workspace::new("work");
        let url = |password: &str| format!("[remote \"o\"]\n\turl = https://me:{password}@h/r\n");
        for repository in ["work/bare", "main/.git"] {
            ws.write(&format!("{repository}/HEAD"), "");
            for name in ["objects", "refs"] {
                fs::create_dir(ws.at(repository).join(name)).unwrap();
            }
        }
        ws.write("work/.git/config", &url("hunter-one"));
        ws.write("work/.git/modules/m/config", &url("hunter-two"));
        ws.write("work/bare/config", &url("hunter-three"));
        ws.write("work/config", &url("hunter-four"));
        assert_eq!(
            ws.left("hunter-one hunter-two hunter-three hunter-four"),
            format!("{REDACTED} {REDACTED} {REDACTED} hunter-four")
        );
        // A linked work tree has its configuration outside.
        ws.write("main/.git/config", &url("hunter-five"));
        ws.write("main/.git/worktrees/w/commondir", "../..\n");
        let tree = ws.dir.path().canonicalize().unwrap().join("tree");
        let link = format!("{}/.git\n", tree.display());
        ws.write("main/.git/worktrees/w/gitdir", &link);
        ws.write("tree/.git", "gitdir: ../main/.git/worktrees/w\n");
        let values = Values::new(tree, Surveys::default());
        assert_eq!(left(&values, None, "hunter-five"), REDACTED);
    }

    #[test]
    fn values_are_read_through_links_that_lead_out_of_the_workspace() {
        let ws = Workspace::new("work");
        fs::create_dir(ws.at("work")).unwrap();
        ws.write("shared/env", "TOKEN=hunterhunter\n");
        ws.write("shared/keys/db", "swordfish-7\n");
        ws.link("../shared/env", "work/.env");
        ws.link("../shared/later", "work/a.env");
        ws.link("../shared/keys", "work/secrets");
        ws.link("..", "work/.aws");
        let left = ws.left("hunterhunter swordfish-7");
        assert_eq!(left, format!("{REDACTED} {REDACTED}"));
        ws.write("shared/later", "TOKEN=correct-horse\n");
        assert_eq!(ws.left("a correct-horse"), format!("a {REDACTED}"));
    }
}
