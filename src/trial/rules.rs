//! The ignore rules that applied before a trial: the rules of git, and the rules of `.ignore` files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::workspace::files::ignore_rules::{self, IgnoreRules};

/// The ignore rules of a workspace before a trial. The trial cannot change them: a directory that it creates has the rules of its
/// parent directory.
///
/// The rules are read only once, because the person may keep ignore files that the trial changed.
#[derive(Debug, Default)]
pub(super) struct RulesBefore(Mutex<HashMap<PathBuf, IgnoreRules>>);

impl RulesBefore {
    /// Returns the ignore rules of the directories above the workspace `root`.
    pub(super) fn above(&self, root: &Path) -> IgnoreRules {
        self.known(Path::new(""), || IgnoreRules::above(root))
    }

    /// Returns the ignore rules of the directory `dir`, an absolute path. `was_dir` is true if the directory exists in the
    /// workspace.
    pub(super) fn below(&self, above: &IgnoreRules, dir: &Path, was_dir: bool) -> IgnoreRules {
        let text = |name: &Path| ignore_rules::text(&dir.join(name)).filter(|_| was_dir);
        self.known(dir, || above.below(dir, text))
    }

    fn known(&self, place: &Path, read: impl FnOnce() -> IgnoreRules) -> IgnoreRules {
        let mut known = self.0.lock();
        match known.get(place) {
            Some(rules) => rules.clone(),
            None => known.entry(place.to_owned()).or_insert(read()).clone(),
        }
    }
}

/// Returns true if the rules ignore a path. An ignore file itself is never ignored: it decides about other files, so the person
/// must see its changes.
pub(super) fn ignore(rules: &IgnoreRules, path: &Path, is_dir: bool) -> bool {
    !rules.is_file_of_rules(path) && rules.ignore(path, is_dir)
}
