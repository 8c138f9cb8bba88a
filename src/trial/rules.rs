//! The rules about ignored files that held before a trial: git's, and those of `.ignore` files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::workspace::files::ignore_rules::{self, IgnoreRules};

/// The rules of a workspace before a trial. The trial cannot change them: a directory that it makes has the rules of the
/// directory above.
///
/// They are read once, because the person may keep files of rules that the trial changed.
#[derive(Debug, Default)]
pub(super) struct RulesBefore(Mutex<HashMap<PathBuf, IgnoreRules>>);

impl RulesBefore {
    /// Returns the rules above the workspace `root`.
    pub(super) fn above(&self, root: &Path) -> IgnoreRules {
        self.known(Path::new(""), || IgnoreRules::above(root))
    }

    /// Returns the rules in the directory `dir`, a whole path. `was_dir` is true if the workspace has it.
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

/// Returns whether rules ignore a path in their directory. A file of rules is never ignored: it would decide about other files
/// without being seen.
pub(super) fn ignore(rules: &IgnoreRules, path: &Path, is_dir: bool) -> bool {
    !rules.is_file_of_rules(path) && rules.ignore(path, is_dir)
}
