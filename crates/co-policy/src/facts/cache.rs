//! A cache of facts for the assessment of one command.
//!
//! It keeps the facts about programs, paths, repositories and risky files. A command seldom needs the other facts twice.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Facts, GitFact, PathFact, ProgramFact, RiskyFiles};
use crate::glob;

/// Limit of searches for risky files. Each may read many thousand files; after the last, no search is complete.
const MAX_WALKS: usize = 4;

/// Facts from another source, with a cache.
pub(crate) struct CachedFacts<'a> {
    facts: &'a dyn Facts,
    programs: Answers<ProgramFact>,
    paths: Answers<PathFact>,
    gits: RefCell<HashMap<PathBuf, GitFact>>,
    risky_files: RefCell<HashMap<PathBuf, RiskyFiles>>,
    tracked: RefCell<HashMap<PathBuf, RiskyFiles>>,
    walks: Cell<usize>,
}

/// Cached answers by directory and name.
type Answers<T> = RefCell<HashMap<PathBuf, HashMap<String, T>>>;

impl<'a> CachedFacts<'a> {
    pub(crate) fn new(facts: &'a dyn Facts) -> Self {
        Self {
            facts,
            programs: RefCell::default(),
            paths: RefCell::default(),
            gits: RefCell::default(),
            risky_files: RefCell::default(),
            tracked: RefCell::default(),
            walks: Cell::new(0),
        }
    }
}

fn cached<T: Clone>(answers: &Answers<T>, cwd: &Path, text: &str, ask: impl FnOnce() -> T) -> T {
    let known = answers
        .borrow()
        .get(cwd)
        .and_then(|here| here.get(text).cloned());
    known.unwrap_or_else(|| {
        let fact = ask();
        let mut answers = answers.borrow_mut();
        let here = answers.entry(cwd.to_owned()).or_default();
        here.insert(text.to_owned(), fact.clone());
        fact
    })
}

fn cached_for<K: Hash + Eq, T: Clone>(
    answers: &RefCell<HashMap<K, T>>,
    key: K,
    ask: impl FnOnce(&K) -> T,
) -> T {
    let known = answers.borrow().get(&key).cloned();
    known.unwrap_or_else(|| {
        let fact = ask(&key);
        answers.borrow_mut().insert(key, fact.clone());
        fact
    })
}

impl Facts for CachedFacts<'_> {
    fn program(&self, name: &str, cwd: &Path) -> ProgramFact {
        cached(&self.programs, cwd, name, || self.facts.program(name, cwd))
    }

    fn path(&self, cwd: &Path, path: &str) -> PathFact {
        cached(&self.paths, cwd, path, || self.facts.path(cwd, path))
    }

    fn glob(&self, cwd: &Path, pattern: &glob::Glob) -> Option<Vec<String>> {
        self.facts.glob(cwd, pattern)
    }

    fn git(&self, cwd: &Path) -> GitFact {
        cached_for(&self.gits, cwd.to_owned(), |cwd| self.facts.git(cwd))
    }

    fn find_upward(&self, cwd: &Path, names: &[&str]) -> Option<PathBuf> {
        self.facts.find_upward(cwd, names)
    }

    fn risky_files(&self, root: &Path) -> RiskyFiles {
        cached_for(&self.risky_files, root.to_owned(), |root| {
            self.walks.set(self.walks.get() + 1);
            match self.walks.get() > MAX_WALKS {
                true => RiskyFiles::default(),
                false => self.facts.risky_files(root),
            }
        })
    }

    fn risky_tracked_files(&self, cwd: &Path) -> RiskyFiles {
        cached_for(&self.tracked, cwd.to_owned(), |cwd| {
            self.facts.risky_tracked_files(cwd)
        })
    }

    fn locale(&self) -> &'static str {
        self.facts.locale()
    }

    fn committed_secrets(&self, cwd: &Path) -> Option<Arc<[PathBuf]>> {
        self.facts.committed_secrets(cwd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::FileKind;

    /// Counts the questions.
    #[derive(Default)]
    struct Counting(Cell<usize>);

    impl Counting {
        fn count(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    impl Facts for Counting {
        fn program(&self, _: &str, _: &Path) -> ProgramFact {
            self.count();
            ProgramFact::Trusted("/bin/ls".into())
        }

        fn path(&self, cwd: &Path, path: &str) -> PathFact {
            self.count();
            PathFact {
                inside: None,
                kind: FileKind::File,
                enterable: false,
                absolute: cwd.join(path),
                secret: false,
                co_file: false,
                holds_co_files: false,
                home: false,
            }
        }

        fn glob(&self, _: &Path, _: &glob::Glob) -> Option<Vec<String>> {
            None
        }

        fn git(&self, _: &Path) -> GitFact {
            self.count();
            GitFact::default()
        }

        fn find_upward(&self, _: &Path, _: &[&str]) -> Option<PathBuf> {
            None
        }

        fn risky_files(&self, _: &Path) -> RiskyFiles {
            self.count();
            RiskyFiles {
                complete: true,
                ..RiskyFiles::default()
            }
        }

        fn risky_tracked_files(&self, cwd: &Path) -> RiskyFiles {
            self.risky_files(cwd)
        }

        fn committed_secrets(&self, _: &Path) -> Option<Arc<[PathBuf]>> {
            None
        }
    }

    #[test]
    fn asks_once_and_not_for_too_many_walks() {
        let facts = Counting::default();
        let cache = CachedFacts::new(&facts);
        let (here, there) = (Path::new("/w"), Path::new("/w/d"));
        for _ in 0..3 {
            cache.path(here, "a");
            cache.program("ls", here);
            cache.git(here);
            cache.risky_tracked_files(here);
            assert!(cache.risky_files(here).complete);
        }
        assert_eq!(facts.0.get(), 5);
        assert_eq!(cache.path(there, "a").absolute, Path::new("/w/d/a"));
        assert_eq!(facts.0.get(), 6);
        for place in 1..MAX_WALKS {
            assert!(cache.risky_files(&here.join(place.to_string())).complete);
        }
        let asked = facts.0.get();
        assert!(!cache.risky_files(there).complete);
        assert_eq!(facts.0.get(), asked);
    }
}
