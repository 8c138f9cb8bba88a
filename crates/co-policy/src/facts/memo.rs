//! Facts asked for once: what was told of a program, a path, git or a walk holds for the whole of one command.
//!
//! What a pattern matches and what lies above a directory is asked for each time: a command seldom asks twice.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Facts, Found, GitFact, PathFact, Survey};
use crate::glob;

/// A walk may meet many thousand files: a command that needs more walks than this asks.
const MAX_SURVEYS: usize = 4;

/// Another source of facts, asked once for each program, path, repository and walk; see the module for the others.
pub(crate) struct Memo<'a> {
    facts: &'a dyn Facts,
    programs: Answers<Found>,
    paths: Answers<PathFact>,
    gits: RefCell<HashMap<PathBuf, GitFact>>,
    surveys: RefCell<HashMap<PathBuf, Survey>>,
    tracked: RefCell<HashMap<PathBuf, Survey>>,
    walks: Cell<usize>,
}

/// Answers by directory and text.
type Answers<T> = RefCell<HashMap<PathBuf, HashMap<String, T>>>;

impl<'a> Memo<'a> {
    pub(crate) fn new(facts: &'a dyn Facts) -> Self {
        Self {
            facts,
            programs: RefCell::default(),
            paths: RefCell::default(),
            gits: RefCell::default(),
            surveys: RefCell::default(),
            tracked: RefCell::default(),
            walks: Cell::new(0),
        }
    }
}

fn once<T: Clone>(answers: &Answers<T>, cwd: &Path, text: &str, ask: impl FnOnce() -> T) -> T {
    let known = answers
        .borrow()
        .get(cwd)
        .and_then(|here| here.get(text).cloned());
    known.unwrap_or_else(|| {
        let told = ask();
        let mut answers = answers.borrow_mut();
        let here = answers.entry(cwd.to_owned()).or_default();
        here.insert(text.to_owned(), told.clone());
        told
    })
}

fn once_for<K: Hash + Eq, T: Clone>(
    answers: &RefCell<HashMap<K, T>>,
    key: K,
    ask: impl FnOnce(&K) -> T,
) -> T {
    let known = answers.borrow().get(&key).cloned();
    known.unwrap_or_else(|| {
        let told = ask(&key);
        answers.borrow_mut().insert(key, told.clone());
        told
    })
}

impl Facts for Memo<'_> {
    fn program(&self, name: &str, cwd: &Path) -> Found {
        once(&self.programs, cwd, name, || self.facts.program(name, cwd))
    }

    fn path(&self, cwd: &Path, path: &str) -> PathFact {
        once(&self.paths, cwd, path, || self.facts.path(cwd, path))
    }

    fn glob(&self, cwd: &Path, pattern: &glob::Pattern) -> Option<Vec<String>> {
        self.facts.glob(cwd, pattern)
    }

    fn git(&self, cwd: &Path) -> GitFact {
        once_for(&self.gits, cwd.to_owned(), |cwd| self.facts.git(cwd))
    }

    fn above(&self, cwd: &Path, names: &[&str]) -> Option<PathBuf> {
        self.facts.above(cwd, names)
    }

    fn survey(&self, root: &Path) -> Survey {
        once_for(&self.surveys, root.to_owned(), |root| {
            self.walks.set(self.walks.get() + 1);
            match self.walks.get() > MAX_SURVEYS {
                true => Survey::default(),
                false => self.facts.survey(root),
            }
        })
    }

    fn tracked(&self, cwd: &Path) -> Survey {
        once_for(&self.tracked, cwd.to_owned(), |cwd| self.facts.tracked(cwd))
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
    use crate::facts::Kind;

    /// Counts what it is asked.
    #[derive(Default)]
    struct Counting(Cell<usize>);

    impl Counting {
        fn count(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    impl Facts for Counting {
        fn program(&self, _: &str, _: &Path) -> Found {
            self.count();
            Found::Trusted("/bin/ls".into())
        }

        fn path(&self, cwd: &Path, path: &str) -> PathFact {
            self.count();
            PathFact {
                inside: None,
                kind: Kind::File,
                enterable: false,
                absolute: cwd.join(path),
                secret: false,
                own: false,
                holds_own: false,
                home: false,
            }
        }

        fn glob(&self, _: &Path, _: &glob::Pattern) -> Option<Vec<String>> {
            None
        }

        fn git(&self, _: &Path) -> GitFact {
            self.count();
            GitFact::default()
        }

        fn above(&self, _: &Path, _: &[&str]) -> Option<PathBuf> {
            None
        }

        fn survey(&self, _: &Path) -> Survey {
            self.count();
            Survey {
                complete: true,
                ..Survey::default()
            }
        }

        fn tracked(&self, cwd: &Path) -> Survey {
            self.survey(cwd)
        }

        fn committed_secrets(&self, _: &Path) -> Option<Arc<[PathBuf]>> {
            None
        }
    }

    #[test]
    fn asks_once_and_not_for_too_many_walks() {
        let facts = Counting::default();
        let memo = Memo::new(&facts);
        let (here, there) = (Path::new("/w"), Path::new("/w/d"));
        for _ in 0..3 {
            memo.path(here, "a");
            memo.program("ls", here);
            memo.git(here);
            memo.tracked(here);
            assert!(memo.survey(here).complete);
        }
        assert_eq!(facts.0.get(), 5);
        assert_eq!(memo.path(there, "a").absolute, Path::new("/w/d/a"));
        assert_eq!(facts.0.get(), 6);
        for place in 1..MAX_SURVEYS {
            assert!(memo.survey(&here.join(place.to_string())).complete);
        }
        let asked = facts.0.get();
        assert!(!memo.survey(there).complete);
        assert_eq!(facts.0.get(), asked);
    }
}
