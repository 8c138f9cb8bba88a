//! The surveys of workspaces, which are cached and kept up to date.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::survey::{Survey, WalkOptions, usable_threads};
use crate::regular::ChangeTime;
use crate::watcher::{ChangeMark, Changes, Watchers};

/// The most directory entries that are read while a caller waits. A thread reads the rest of a larger workspace in the
/// background.
const MAX_AWAITED_ENTRIES: usize = 50_000;

/// The most paths of earlier secrets that are remembered for a workspace.
const MAX_EARLIER: usize = 1_000;

/// The last survey of each workspace. Clones share the surveys.
#[derive(Debug, Clone)]
pub struct Surveys {
    last: Arc<Mutex<HashMap<PathBuf, Last>>>,
    /// Files and directories outside the workspaces. A hard link in a workspace to one of these files is secret.
    private: Arc<[PathBuf]>,
    at_once: usize,
    watchers: Watchers,
}

#[derive(Debug, Clone, Default)]
struct Last {
    survey: Arc<Survey>,
    /// The watcher's mark for the time of the survey. `None` if the workspace was not watched.
    mark: Option<ChangeMark>,
    /// The time of the last check that the survey is up to date. `None` before the first check.
    checked: Option<Instant>,
    /// A time after which no file was searched for private keys again, unless its directory has changed or the watcher told of the
    /// file. `None` before the first survey.
    keys_found: Option<ChangeTime>,
    /// True while a thread reads the rest of the workspace.
    goes_on: bool,
    /// The paths where earlier surveys found secrets but the last survey did not. If there are too many, some are missing.
    closed_earlier: Arc<HashSet<PathBuf>>,
}

impl Default for Surveys {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Surveys {
    /// Creates an empty set of surveys. A hard link in a workspace to a file in the `private` paths is secret.
    pub fn new(private: Vec<PathBuf>) -> Self {
        Self {
            last: Arc::default(),
            private: private.into(),
            at_once: MAX_AWAITED_ENTRIES,
            watchers: Watchers::default(),
        }
    }

    /// Returns the watchers, which report the directories that a survey must read again.
    pub fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    /// Starts to watch the workspace `root` in the background, so that later surveys read only what has changed.
    pub fn watch(&self, root: &Path) {
        self.watchers.start(root);
    }

    /// Returns an up-to-date survey of the workspace `root`. Surveys again if a directory has changed since the last survey, or
    /// if a file has changed that may be secret by its content.
    ///
    /// The survey of a large workspace is incomplete at first, and a thread reads the rest. Blocks on files.
    pub fn current(&self, root: &Path) -> Arc<Survey> {
        let mut last = self.last.lock().get(root).cloned().unwrap_or_default();
        if last.goes_on {
            return last.survey;
        }
        let checked = Some(Instant::now());
        let now = ChangeTime::shortly_ago();
        let Changes { mark, dirs } = self.watchers.changes(root, last.mark.as_ref());
        if let (true, None, Some(start)) = (mark.is_some(), &dirs, last.keys_found) {
            // Nobody has watched the files until this mark.
            last.survey = last.survey.without_rewritten(start);
        }
        let keys_found = last.keys_found.filter(|_| mark.is_none()).or(Some(now));
        let dirs = dirs.filter(|_| !last.survey.cut);
        let unwatched = match &dirs {
            None if !last.survey.cut => last.survey.changed(),
            _ => None,
        };
        let known = match dirs.as_ref().or(unwatched.as_ref()) {
            Some(dirs) if dirs.is_empty() && last.survey.is_current_outside() => {
                Some(Arc::clone(&last.survey))
            }
            Some(dirs) => last.survey.patched(dirs).map(Arc::new),
            None => None,
        };
        let survey = known.unwrap_or_else(|| {
            let options = WalkOptions {
                changed: dirs.as_ref(),
                ..self.options(self.at_once)
            };
            Arc::new(last.survey.again(root, options))
        });
        let mut all = self.last.lock();
        let known = all.entry(root.to_owned()).or_default();
        // Another caller may have started the thread meanwhile.
        if known.goes_on {
            return Arc::clone(&known.survey);
        }
        if Arc::ptr_eq(&known.survey, &survey) {
            known.mark = mark;
            known.checked = checked;
            known.keys_found = keys_found;
            return survey;
        }
        *known = Last {
            goes_on: survey.cut
                && self.read_the_rest(root, &survey, last.keys_found.unwrap_or(now)),
            mark,
            checked,
            keys_found,
            ..known.next(Arc::clone(&survey))
        };
        survey
    }

    /// Returns the last survey of the workspace `root` if it was checked after the time `moment`, such as the start of a call.
    /// Otherwise returns an up-to-date survey.
    ///
    /// So the parts of one call can share a check, which takes long without a watcher. Blocks on files.
    pub fn since(&self, root: &Path, moment: Instant) -> Arc<Survey> {
        let is_checked = |last: &&Last| last.checked.is_some_and(|checked| checked >= moment);
        let known = self.last.lock().get(root).filter(is_checked).cloned();
        // A watcher tells at once.
        match known.filter(|last| last.mark.is_none()) {
            Some(last) => last.survey,
            None => self.current(root),
        }
    }

    /// Returns the last survey of the workspace `root` if it is complete, even if the workspace has changed since then. Otherwise
    /// returns an up-to-date survey.
    ///
    /// May block on files.
    pub fn latest(&self, root: &Path) -> Arc<Survey> {
        let last = self
            .last
            .lock()
            .get(root)
            .map(|last| Arc::clone(&last.survey));
        let last = last.filter(|survey| survey.complete);
        last.unwrap_or_else(|| self.current(root))
    }

    /// Surveys the whole workspace `root`, however large it is.
    ///
    /// Blocks on files.
    pub fn survey_whole(&self, root: &Path) -> Arc<Survey> {
        let last = self.last.lock().get(root).cloned().unwrap_or_default();
        let now = ChangeTime::shortly_ago();
        let survey = last.survey.again(root, self.options(usize::MAX));
        self.keep(root, survey, last.keys_found.unwrap_or(now))
    }

    /// Drops the surveys that were not checked for the time `time`. Keeps the paths of their secrets.
    pub fn forget_unused(&self, time: Duration) {
        for last in self.last.lock().values_mut() {
            let is_used = |checked: Instant| checked.elapsed() < time;
            if !last.goes_on && !last.checked.is_some_and(is_used) {
                *last = Last {
                    keys_found: None,
                    ..last.next(Arc::default())
                };
            }
        }
    }

    /// Starts a thread that completes a survey. Returns true if the thread has started.
    fn read_the_rest(&self, root: &Path, survey: &Arc<Survey>, keys_found: ChangeTime) -> bool {
        let (surveys, root, first) = (self.clone(), root.to_owned(), Arc::clone(survey));
        let work = move || {
            let survey = first.again(&root, surveys.options(usize::MAX));
            surveys.keep(&root, survey, keys_found);
        };
        let thread = std::thread::Builder::new().name("survey".to_owned());
        thread.spawn(work).is_ok()
    }

    fn keep(&self, root: &Path, survey: Survey, keys_found: ChangeTime) -> Arc<Survey> {
        let survey = Arc::new(survey);
        let mut all = self.last.lock();
        let known = all.entry(root.to_owned()).or_default();
        *known = Last {
            keys_found: Some(keys_found),
            ..known.next(Arc::clone(&survey))
        };
        survey
    }

    /// Returns the paths where earlier surveys of the workspace `root` found secrets but the last survey did not.
    pub(crate) fn closed_earlier(&self, root: &Path) -> Arc<HashSet<PathBuf>> {
        let all = self.last.lock();
        all.get(root)
            .map(|last| Arc::clone(&last.closed_earlier))
            .unwrap_or_default()
    }

    fn options(&self, most: usize) -> WalkOptions<'_> {
        WalkOptions {
            private: &self.private,
            most,
            changed: None,
            threads: usable_threads(),
        }
    }
}

impl Last {
    /// Returns the next state, which has a new survey. Its `closed_earlier` gets the paths of the secrets that are gone.
    fn next(&self, survey: Arc<Survey>) -> Self {
        let closed: HashSet<&PathBuf> = survey.closed().collect();
        let gone = self.survey.closed().chain(&*self.closed_earlier);
        let gone = gone.filter(|path| !closed.contains(path));
        Self {
            closed_earlier: Arc::new(gone.take(MAX_EARLIER).cloned().collect()),
            mark: None,
            checked: None,
            keys_found: self.keys_found,
            goes_on: false,
            survey,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::regular::FileStamp;
    use crate::secrets::survey;
    use crate::test_files;

    const DEADLINE: Duration = Duration::from_secs(20);

    fn small(at_once: usize) -> Surveys {
        Surveys {
            at_once,
            ..Surveys::default()
        }
    }

    fn complete(surveys: &Surveys, root: &Path) -> Arc<Survey> {
        let late = Instant::now() + DEADLINE;
        loop {
            let survey = surveys.current(root);
            if survey.complete {
                return survey;
            }
            assert!(Instant::now() < late, "the survey was not completed");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_large_workspace_is_surveyed_in_the_background() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for number in 0..40 {
            test_files::write(&root, &format!("{number}/plain"), "");
        }
        fs::write(root.join("39/.env"), "x").unwrap();
        let surveys = small(10);
        assert!(!surveys.current(&root).complete);
        assert_eq!(complete(&surveys, &root).files, [root.join("39/.env")]);
        // From then on, only what changed is read, and nothing is cut.
        fs::write(root.join("20/.env"), "x").unwrap();
        let files = [root.join("20/.env"), root.join("39/.env")];
        assert_eq!(complete(&surveys, &root).files, files);
    }

    #[test]
    fn the_parts_of_a_call_share_a_check_and_the_next_call_makes_another() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let surveys = Surveys::default();
        let begin = Instant::now();
        assert!(surveys.since(&root, begin).is_empty());
        fs::write(root.join(".env"), "x").unwrap();
        assert!(surveys.since(&root, begin).is_empty());
        assert_eq!(
            surveys.since(&root, Instant::now()).files,
            [root.join(".env")]
        );
    }

    #[test]
    fn an_unused_survey_is_forgotten_but_not_where_secrets_were() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join(".env"), "x").unwrap();
        let surveys = Surveys::default();
        let survey = Arc::downgrade(&surveys.current(&root));
        surveys.forget_unused(Duration::from_secs(3600));
        assert!(survey.upgrade().is_some());
        surveys.forget_unused(Duration::ZERO);
        assert!(survey.upgrade().is_none());
        assert!(surveys.closed_earlier(&root).contains(&root.join(".env")));
        assert_eq!(surveys.current(&root).files, [root.join(".env")]);
        assert!(surveys.closed_earlier(&root).is_empty());
    }

    #[test]
    fn every_name_of_a_private_file_is_secret() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let root = top.join("work");
        for name in [".ssh/deep/id", ".netrc", "work/plain"] {
            test_files::write(&top, name, "x");
        }
        fs::hard_link(top.join(".ssh/deep/id"), root.join("notes")).unwrap();
        fs::hard_link(top.join(".netrc"), root.join("other")).unwrap();
        fs::hard_link(root.join("plain"), root.join("plain2")).unwrap();
        let surveys = Surveys::new(vec![top.join(".ssh"), top.join(".netrc"), top.join("none")]);
        let mut found = surveys.current(&root).files.clone();
        found.sort();
        assert_eq!(found, [root.join("notes"), root.join("other")]);
    }

    #[test]
    fn a_link_that_is_made_outside_makes_a_file_secret() {
        for is_watched in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let top = dir.path().canonicalize().unwrap();
            let root = top.join("work");
            for name in [".ssh/id", "outside/real", "work/a/notes", "work/b/plain"] {
                test_files::write(&top, name, "x");
            }
            std::os::unix::fs::symlink(top.join("outside/real"), root.join(".env")).unwrap();
            let surveys = Surveys::new(vec![top.join(".ssh")]);
            if is_watched {
                start_watcher(&surveys, &root);
            }
            assert!(surveys.current(&root).files.is_empty());
            fs::hard_link(root.join("a/notes"), top.join(".ssh/other")).unwrap();
            assert_eq!(surveys.current(&root).files, [root.join("a/notes")]);
            fs::remove_file(top.join("outside/real")).unwrap();
            fs::hard_link(root.join("b/plain"), top.join("outside/real")).unwrap();
            let both = [root.join("a/notes"), root.join("b/plain")];
            assert_eq!(surveys.current(&root).files, both);
        }
    }

    #[test]
    fn a_key_that_is_written_before_a_watcher_starts_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        test_files::write(&root, "one/plain", "x");
        let is_settled = || FileStamp::of(&root.join("one")).unwrap().is_settled();
        let late = Instant::now() + DEADLINE;
        while !is_settled() {
            assert!(Instant::now() < late, "the clock stands still");
            std::thread::yield_now();
        }
        let surveys = Surveys::default();
        assert!(surveys.current(&root).files.is_empty());
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n";
        fs::write(root.join("one/plain"), key).unwrap();
        start_watcher(&surveys, &root);
        assert_eq!(surveys.current(&root).files, [root.join("one/plain")]);
    }

    /// Starts the watcher of a workspace, and waits until it answers.
    fn start_watcher(surveys: &Surveys, root: &Path) {
        let late = Instant::now() + DEADLINE;
        while surveys.watchers().changes(root, None).mark.is_none() {
            surveys.watch(root);
            assert!(Instant::now() < late, "no watcher started");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_new_name_of_a_secret_link_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("sub/.env")).unwrap();
        let surveys = Surveys::default();
        assert!(surveys.current(&root).files.is_empty());
        fs::hard_link(root.join("sub/.env"), root.join("notes")).unwrap();
        let found = &surveys.current(&root).files;
        assert_eq!(*found, [root.join("notes"), root.join("sub/.env")]);
    }

    /// Returns all that a survey found, in a fixed order, so that two surveys can be compared.
    fn found(survey: &Survey) -> impl PartialEq + std::fmt::Debug + use<> {
        let lists = [
            &survey.files,
            &survey.dirs,
            &survey.within,
            &survey.outside,
            &survey.git_configs,
            &survey.repositories,
            &survey.git_links,
        ];
        let lists = lists.map(|list| list.iter().cloned().collect::<BTreeSet<_>>());
        let entries = survey.directories().map(|dir| {
            let entries = survey.entries(&dir).map(|entries| {
                let entries = entries.iter();
                let entries = entries.map(|(name, kind)| (name.to_owned(), kind.as_raw_mode()));
                entries.collect::<BTreeMap<_, _>>()
            });
            (dir, entries)
        });
        let entries: BTreeMap<_, _> = entries.collect();
        let links: BTreeSet<_> = survey.links().map(Path::to_owned).collect();
        (lists, entries, links, survey.complete)
    }

    /// The changes that other processes make. `@` is a random path.
    const CHANGES: [&str; 22] = [
        "echo x > @",
        "echo x > @",
        "echo x > @/.env",
        "mkdir -p @",
        "mkdir -p @/src/deep",
        "mv @ @",
        "mv -T @ @",
        "rm -rf @",
        "ln -s @ @",
        "ln -sfn @ @",
        "ln @ @",
        "ln -f @/.env @",
        "chmod 0 @",
        "chmod 755 @",
        "git init -q @",
        "mkfifo @/pipe",
        r#"echo '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----"}' > @/a.json"#,
        "echo '{}' > @/a.json",
        r"printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n' > @",
        "echo x > @.new && mv @.new @",
        "for i in {1..1000}; do echo $i > @$i; done",
        "rm -rf @ && mkdir @ && echo x > @/plain",
    ];

    /// The change that writes a private key into a file of any name.
    const WRITES_KEY: usize = 18;

    const PLACES: [&str; 16] = [
        "a",
        "b",
        "a/b",
        "a/c",
        "b/d",
        ".env",
        "a/.env",
        "secrets",
        "secrets/x",
        "secrets/m.rs",
        "b/.aws",
        "node_modules",
        "node_modules/a",
        "a/b/c",
        ".git",
        "a/notes",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn a_kept_survey_is_the_same_as_one_that_is_read_anew(
            is_watched in any::<bool>(),
            steps in proptest::collection::vec(
                proptest::collection::vec((0..CHANGES.len(), 0..PLACES.len(), 0..PLACES.len()), 1..5),
                1..8,
            ),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            let surveys = Surveys::default();
            if is_watched {
                start_watcher(&surveys, &root);
            }
            surveys.current(&root);
            for step in steps {
                // Without a watcher, a key that is written into a file is found when its directory changes.
                let step = step.iter().filter(|(change, ..)| is_watched || *change != WRITES_KEY);
                let lines = step.map(|(change, one, other)| {
                    CHANGES[*change].replacen('@', PLACES[*one], 1).replace('@', PLACES[*other])
                });
                let script: Vec<String> = lines.collect();
                let mut bash = std::process::Command::new("bash");
                let bash = bash.args(["-c", &script.join("\n")]).current_dir(&root);
                bash.stdin(std::process::Stdio::null()).output().unwrap();
                let now = surveys.current(&root);
                prop_assert_eq!(found(&now), found(&survey(&root)), "{:?}", script);
            }
        }
    }
}
