//! The values of a workspace's secrets, read from its secret files.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use aho_corasick::AhoCorasick;

use super::extract;
use super::matcher::Matcher;
use super::names;
use super::survey::{Survey, survey};
use crate::regular::{self, Stamp};

/// Secret files that are read.
const MAX_FILES: usize = 1_000;

/// Values that are looked for.
const MAX_VALUES: usize = 5_000;

/// The time to look for values in tracked files. A value that was not looked for counts as secret.
const PATIENCE: Duration = Duration::from_secs(1);

/// A file that changed this shortly before it was read may change again without another stamp.
const TICK: Duration = Duration::from_millis(100);

/// The secret values of one workspace. Values that were replaced stay known.
#[derive(Debug)]
pub struct Values {
    root: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    survey: Survey,
    /// The files that need not be read again.
    read: HashMap<PathBuf, Stamp>,
    /// True for a value that stands in a tracked file, which is no secret then.
    public: HashMap<String, bool>,
    tracked: Option<Arc<[PathBuf]>>,
    matcher: Arc<Matcher>,
}

impl Values {
    /// Returns the values of the workspace `root`, not read yet.
    pub fn new(root: PathBuf) -> Self {
        Self {
            root: root.canonicalize().unwrap_or(root),
            state: Mutex::default(),
        }
    }

    /// Reads the secret files that have changed, and returns a matcher for all values so far. `tracked` are the paths
    /// of the files that git tracks, below the workspace.
    ///
    /// Blocks on files: call it from `spawn_blocking`.
    pub fn read(&self, tracked: Option<Arc<[PathBuf]>>) -> Arc<Matcher> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.survey.is_current() {
            state.survey = survey(&self.root);
        }
        let mut new = state.read_files();
        let same = match (&state.tracked, &tracked) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        if !same {
            new.extend(state.public.keys().cloned());
            state.tracked = tracked;
        }
        if !new.is_empty() {
            state.classify(&self.root, &new);
            let secret = state.public.iter().filter(|(_, public)| !**public);
            state.matcher = Arc::new(Matcher::new(secret.map(|(value, _)| value.as_str())));
        }
        Arc::clone(&state.matcher)
    }
}

impl State {
    /// Reads the files that have changed, and returns the values that were not known.
    fn read_files(&mut self) -> BTreeSet<String> {
        let mut new = BTreeSet::new();
        let files = self.survey.files.iter().chain(&self.survey.within);
        for file in files.take(MAX_FILES) {
            let stamp = Stamp::of(file);
            if stamp.is_some() && self.read.get(file) == stamp.as_ref() {
                continue;
            }
            let begun = SystemTime::now();
            let Some(text) = text(file) else {
                continue;
            };
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let found = extract::values(&name, &text);
            let left = MAX_VALUES.saturating_sub(self.public.len() + new.len());
            let unknown = found
                .into_iter()
                .filter(|value| !self.public.contains_key(value));
            new.extend(unknown.take(left));
            match stamp.filter(|stamp| stamp.is_older(begun, TICK)) {
                Some(stamp) => self.read.insert(file.clone(), stamp),
                None => self.read.remove(file),
            };
        }
        new
    }

    /// Looks for values in the tracked files that are no secrets.
    fn classify(&mut self, root: &Path, values: &BTreeSet<String>) {
        let found = match &self.tracked {
            Some(tracked) => {
                let hidden = |file: &Path| {
                    names::secret(file).is_some() || self.survey.files.contains(&root.join(file))
                };
                let open = tracked.iter().filter(|file| !hidden(file));
                standing_in(open.map(|file| root.join(file)), values)
            }
            None => BTreeSet::new(),
        };
        for value in values {
            self.public.insert(value.clone(), found.contains(value));
        }
    }
}

/// Returns the values that stand in any of the files.
fn standing_in(
    files: impl Iterator<Item = PathBuf>,
    values: &BTreeSet<String>,
) -> BTreeSet<String> {
    let patterns: Vec<&String> = values.iter().collect();
    let search = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(&patterns);
    let (Ok(search), begun) = (search, Instant::now()) else {
        return BTreeSet::new();
    };
    let mut found = BTreeSet::new();
    for file in files.take_while(|_| begun.elapsed() < PATIENCE) {
        let Ok(bytes) = regular::read(&file, regular::SMALL) else {
            continue;
        };
        let hits = search.find_overlapping_iter(&bytes);
        found.extend(hits.map(|hit| patterns[hit.pattern().as_usize()].clone()));
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
        let matcher = values.read(tracked.cloned());
        let redactor = crate::secrets::redact::Redactor::new(&[]).knowing(matcher);
        redactor.redact(text).into_owned()
    }

    #[test]
    fn values_are_read_again_after_each_change_and_old_ones_stay_known() {
        let dir = tempfile::tempdir().unwrap();
        let values = Values::new(dir.path().to_owned());
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
        let tracked: Arc<[PathBuf]> = [".env", "compose.yml"].map(PathBuf::from).into();
        let values = Values::new(dir.path().to_owned());
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
}
