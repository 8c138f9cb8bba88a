//! Reads the secret values of a workspace from its secret files.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aho_corasick::{AhoCorasick, BuildError};

use super::Surveys;
use super::extract;
use super::matcher::Matcher;
use super::survey::Survey;
use crate::regular::{self, Stamp};
use co_policy::secret_names as names;

/// The most secret files that are read.
const MAX_FILES: usize = 1_000;

/// The most values.
const MAX_VALUES: usize = 5_000;

/// The time for searching values in tracked files. A value that was not searched for counts as secret.
const PATIENCE: Duration = Duration::from_secs(1);

/// The secret values of one workspace. Old values stay known while there is room.
#[derive(Debug)]
pub struct Values {
    workspace: PathBuf,
    surveys: Surveys,
    state: Mutex<KnownValues>,
}

#[derive(Debug, Default)]
struct KnownValues {
    /// The number of this reading.
    reading: u64,
    files: HashMap<PathBuf, SecretFile>,
    known: HashMap<Arc<str>, Known>,
    tracked: Option<Arc<[PathBuf]>>,
    /// The matcher for the known values, once it is made.
    matcher: Option<Arc<Matcher>>,
}

/// A secret file that was read.
#[derive(Debug)]
struct SecretFile {
    /// None if the file must be read again.
    stamp: Option<Stamp>,
    values: Vec<Arc<str>>,
}

/// A value that a secret file contains or contained.
#[derive(Debug)]
struct Known {
    /// True if the value is in a tracked file, so that it is not secret.
    public: bool,
    /// The last reading at which a secret file contained it.
    held: u64,
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
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let held = state.read_files(&survey);
        let mut new = state.keep(held);
        if state.tracked != tracked {
            new.extend(state.known.keys().cloned());
            state.tracked = tracked;
        }
        if !new.is_empty() {
            let open = OpenFiles {
                root: (self.workspace.canonicalize()).unwrap_or_else(|_| self.workspace.clone()),
                survey: &survey,
            };
            state.classify(&open, &new);
            state.matcher = None;
        }
        if let Some(matcher) = &state.matcher {
            return Ok(Arc::clone(matcher));
        }
        let secret = state.known.iter().filter(|(_, known)| !known.public);
        let matcher = Arc::new(Matcher::new(secret.map(|(value, _)| &**value))?);
        Ok(Arc::clone(state.matcher.insert(matcher)))
    }
}

impl KnownValues {
    /// Reads the changed files, and returns the values in all secret files.
    fn read_files(&mut self, survey: &Survey) -> BTreeSet<Arc<str>> {
        let mut before = std::mem::take(&mut self.files);
        let mut held = BTreeSet::new();
        let files = (survey.files.iter())
            .chain(&survey.within)
            .chain(&survey.outside);
        for path in files.take(MAX_FILES) {
            let Some(mut file) = self.read_file(path, before.remove(path)) else {
                continue;
            };
            let all = file.values.len();
            (file.values).retain(|value| {
                let room = held.len() < MAX_VALUES || held.contains(value);
                if room {
                    held.insert(Arc::clone(value));
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

    /// Returns the values in a secret file, or none if it cannot be read. `before` are those of the last reading.
    fn read_file(&self, path: &Path, before: Option<SecretFile>) -> Option<SecretFile> {
        let stamp = Stamp::of(path);
        if let Some(file) = before
            && file.stamp.is_some()
            && file.stamp == stamp
        {
            return Some(file);
        }
        // Taken before reading, because the file may change meanwhile.
        let stamp = stamp.filter(Stamp::is_settled);
        let text = text(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Files that hold the same value share it.
        let shared = |value: String| match self.known.get_key_value(value.as_str()) {
            Some((known, _)) => Arc::clone(known),
            None => value.into(),
        };
        Some(SecretFile {
            stamp,
            values: extract::values(&name, &text)
                .into_iter()
                .map(shared)
                .collect(),
        })
    }

    /// Keeps the values in files and the newest of the others. Returns the new ones.
    fn keep(&mut self, held: BTreeSet<Arc<str>>) -> BTreeSet<Arc<str>> {
        self.reading += 1;
        let mut new = BTreeSet::new();
        for value in held {
            match self.known.get_mut(&value) {
                Some(known) => known.held = self.reading,
                None => {
                    new.insert(value);
                }
            }
        }
        let over = (self.known.len() + new.len()).saturating_sub(MAX_VALUES);
        if over > 0 {
            let mut replaced: Vec<(u64, Arc<str>)> = (self.known.iter())
                .filter(|(_, known)| known.held < self.reading)
                .map(|(value, known)| (known.held, Arc::clone(value)))
                .collect();
            replaced.sort();
            for (_, oldest) in replaced.iter().take(over) {
                self.known.remove(oldest);
            }
        }
        new
    }

    /// Searches for values in the tracked files that are not secret.
    fn classify(&mut self, open: &OpenFiles<'_>, values: &BTreeSet<Arc<str>>) {
        let found = match &self.tracked {
            Some(tracked) => values_in(tracked.iter().filter_map(|file| open.path(file)), values),
            None => BTreeSet::new(),
        };
        for value in values {
            let held = self
                .known
                .get(value)
                .map_or(self.reading, |known| known.held);
            let public = found.contains(value);
            self.known.insert(Arc::clone(value), Known { public, held });
        }
    }
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
    values: &BTreeSet<Arc<str>>,
) -> BTreeSet<Arc<str>> {
    let patterns: Vec<&Arc<str>> = values.iter().collect();
    let search = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(patterns.iter().map(|value| value.as_bytes()));
    let (Ok(search), begun) = (search, Instant::now()) else {
        return BTreeSet::new();
    };
    let mut found = BTreeSet::new();
    // A link may lead to a secret file.
    for file in files.filter(|file| !file.is_symlink()) {
        if begun.elapsed() > PATIENCE {
            break;
        }
        let Ok(bytes) = regular::read(&file, regular::SMALL) else {
            continue;
        };
        let hits = search.find_overlapping_iter(&bytes);
        found.extend(hits.map(|hit| Arc::clone(patterns[hit.pattern().as_usize()])));
    }
    found
}

/// Returns the text of a secret file, unless it is binary.
fn text(file: &Path) -> Option<String> {
    let bytes = regular::read(file, regular::SMALL).ok()?;
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
        redactor.redact(text).into_owned()
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
            left(&values, None, "7-hsifdrows"),
            "[redacted: secret value]"
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
        write(".env", "PASSWORD=postgres\nTOKEN=hunterhunter\n");
        write("compose.yml", "password: Postgres\n");
        write("notes", "hunterhunter\n");
        std::os::unix::fs::symlink(".env", dir.path().join("current")).unwrap();
        let tracked: Arc<[PathBuf]> = [".env", "compose.yml", "current"].map(PathBuf::from).into();
        let values = Values::new(dir.path().to_owned(), Surveys::default());
        let text = "postgres hunterhunter";
        assert_eq!(
            left(&values, None, text),
            "[redacted: secret value] [redacted: secret value]"
        );
        assert_eq!(
            left(&values, Some(&tracked), text),
            "postgres [redacted: secret value]"
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
        write(".env", "PASSWORD=postgres\n");
        write("compose.yml", "postgres\n");
        let tracked = || -> Arc<[PathBuf]> { [PathBuf::from("compose.yml")].into() };
        let values = Values::new(dir.path().to_owned(), Surveys::default());
        assert_eq!(left(&values, Some(&tracked()), "postgres"), "postgres");
        write("compose.yml", "nothing\n");
        assert_eq!(left(&values, Some(&tracked()), "postgres"), "postgres");
    }

    #[test]
    fn new_values_take_the_place_of_old_ones_and_none_is_forgotten_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        let many = |count: usize| -> String {
            (0..count)
                .map(|number| format!("{number}_TOKEN=hunter-{number:06}\n"))
                .collect()
        };
        let values = Values::new(dir.path().to_owned(), Surveys::default());
        write("a.env", &many(MAX_VALUES));
        write("b.env", "TOKEN=swordfish-7\n");
        let last = format!("hunter-{:06}", MAX_VALUES - 1);
        assert_eq!(left(&values, None, &last), "[redacted: secret value]");
        // Values that no file contains any more are dropped first.
        write("a.env", &many(MAX_VALUES - 1));
        assert_eq!(
            left(&values, None, "a swordfish-7 b"),
            "a [redacted: secret value] b"
        );
        write("b.env", "TOKEN=swordfish-8\n");
        assert_eq!(
            left(&values, None, "a swordfish-8 b"),
            "a [redacted: secret value] b"
        );
        assert_eq!(
            left(&values, None, "a hunter-000000 b"),
            "a [redacted: secret value] b"
        );
    }

    #[test]
    fn the_start_of_a_very_long_value_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let token: String = (0..700_000_u64)
            .filter_map(|n| char::from_digit(u32::try_from(n * n * 7919 / 31 % 36).unwrap(), 36))
            .collect();
        fs::write(dir.path().join(".env"), format!("TOKEN={token}\n")).unwrap();
        let values = Values::new(dir.path().to_owned(), Surveys::default());
        assert_eq!(
            left(&values, None, &token[..1_000]),
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
