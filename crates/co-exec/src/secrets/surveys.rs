//! The surveys of workspaces, which are kept and brought up to date.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::survey::{Extent, Survey};

/// The most entries that a caller waits for. The rest of a larger workspace is read in the background.
const MAX_AWAITED_ENTRIES: usize = 50_000;

/// The most places of earlier secrets that are remembered for a workspace.
const MAX_EARLIER: usize = 1_000;

/// The last survey of each workspace. Clones share the surveys.
#[derive(Debug, Clone)]
pub struct Surveys {
    last: Arc<Mutex<HashMap<PathBuf, Last>>>,
    /// Files and directories outside the workspaces. Every other name of a file in them is secret.
    private: Arc<[PathBuf]>,
    at_once: usize,
}

#[derive(Debug, Clone, Default)]
struct Last {
    survey: Arc<Survey>,
    /// True while a thread reads the rest of the workspace.
    goes_on: bool,
    /// The places where earlier surveys found secrets, and this one none. Some may be missing if there are many.
    closed_earlier: Arc<HashSet<PathBuf>>,
}

impl Default for Surveys {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Surveys {
    /// Creates an empty set of surveys. Every name of a file in the `private` paths is secret.
    pub fn new(private: Vec<PathBuf>) -> Self {
        Self {
            last: Arc::default(),
            private: private.into(),
            at_once: MAX_AWAITED_ENTRIES,
        }
    }

    /// Returns the survey of the workspace `root`, and takes a new one if a directory, or a file that may be secret by
    /// its content, changed since the last.
    ///
    /// The survey of a large workspace is not complete at first; a thread reads the rest. Blocks on files.
    pub fn current(&self, root: &Path) -> Arc<Survey> {
        let last = self.lock().get(root).cloned().unwrap_or_default();
        if last.goes_on || !last.survey.cut && last.survey.is_current() {
            return last.survey;
        }
        let survey = Arc::new(last.survey.again(root, self.extent(self.at_once)));
        let mut all = self.lock();
        let known = all.entry(root.to_owned()).or_default();
        // Another caller may have started the thread meanwhile.
        if known.goes_on {
            return Arc::clone(&known.survey);
        }
        *known = Last {
            goes_on: survey.cut && self.read_the_rest(root, &survey),
            ..known.next(Arc::clone(&survey))
        };
        survey
    }

    /// Returns the last survey of the workspace `root` if it is complete, even if the workspace has changed since then.
    /// Otherwise returns the current survey.
    ///
    /// May block on files.
    pub fn latest(&self, root: &Path) -> Arc<Survey> {
        let last = self.lock().get(root).map(|last| Arc::clone(&last.survey));
        let last = last.filter(|survey| survey.complete);
        last.unwrap_or_else(|| self.current(root))
    }

    /// Takes the whole survey of the workspace `root`, however large it is.
    ///
    /// Blocks on files.
    pub fn finish(&self, root: &Path) {
        let last = self.lock().get(root).cloned().unwrap_or_default();
        self.keep(root, last.survey.again(root, self.extent(usize::MAX)));
    }

    /// Starts a thread that completes a survey. Returns whether it started.
    fn read_the_rest(&self, root: &Path, survey: &Arc<Survey>) -> bool {
        let (surveys, root, first) = (self.clone(), root.to_owned(), Arc::clone(survey));
        let work = move || {
            let survey = first.again(&root, surveys.extent(usize::MAX));
            surveys.keep(&root, survey);
        };
        let thread = std::thread::Builder::new().name("survey".to_owned());
        thread.spawn(work).is_ok()
    }

    fn keep(&self, root: &Path, survey: Survey) {
        let mut all = self.lock();
        let known = all.entry(root.to_owned()).or_default();
        *known = known.next(Arc::new(survey));
    }

    /// Returns the places where earlier surveys of the workspace `root` found secrets, and the last one none.
    pub(crate) fn closed_earlier(&self, root: &Path) -> Arc<HashSet<PathBuf>> {
        let all = self.lock();
        all.get(root)
            .map(|last| Arc::clone(&last.closed_earlier))
            .unwrap_or_default()
    }

    fn extent(&self, most: usize) -> Extent<'_> {
        Extent {
            private: &self.private,
            most,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Last {
    /// Returns what is known with a new survey.
    fn next(&self, survey: Arc<Survey>) -> Self {
        let closed: HashSet<&PathBuf> = survey.closed().collect();
        let gone = self.survey.closed().chain(&*self.closed_earlier);
        let gone = gone.filter(|path| !closed.contains(path));
        Self {
            closed_earlier: Arc::new(gone.take(MAX_EARLIER).cloned().collect()),
            goes_on: false,
            survey,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, Instant};

    use super::*;
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
}
