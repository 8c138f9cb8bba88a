//! Looks for secrets that appeared while a command ran, where the command could read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::secrets::{Survey, Surveys};

/// The most secrets that are named.
const MAX_NAMED_SECRETS: usize = 10;

/// The way in which secrets are closed to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosedBy {
    /// Reading is granted around them, so what appears beside a secret is closed too.
    Rules,
    /// A mount covers each of them.
    Mounts,
}

/// The secrets of a workspace when a command started to which they are closed. Clones share what they found.
#[derive(Debug, Clone)]
pub(crate) struct SecretWatch {
    surveys: Surveys,
    workspace: PathBuf,
    before: Arc<Survey>,
    closed_by: ClosedBy,
    exposed: Arc<Mutex<Vec<PathBuf>>>,
}

impl SecretWatch {
    /// Starts to watch. `before` is the survey by which secrets are closed.
    pub(crate) fn new(
        surveys: Surveys,
        workspace: &Path,
        before: Arc<Survey>,
        closed_by: ClosedBy,
    ) -> Self {
        Self {
            surveys,
            workspace: workspace.to_owned(),
            before,
            closed_by,
            exposed: Arc::default(),
        }
    }

    /// Returns the secrets that the command may have read, also those that a call before found. If co cannot look
    /// everywhere, returns the workspace.
    ///
    /// Blocks on files.
    pub(crate) fn exposed(&self) -> Vec<PathBuf> {
        let mut exposed = self.exposed.lock().unwrap_or_else(PoisonError::into_inner);
        if exposed.is_empty() {
            let now = self.surveys.current(&self.workspace);
            *exposed = match now.complete {
                true => new_secrets(&self.before, &now, self.closed_by),
                false => vec![self.workspace.clone()],
            };
        }
        exposed.clone()
    }

    /// Returns the line for a model in place of an output in which there may be a secret, if there may be one.
    ///
    /// Blocks on files.
    pub(crate) fn withheld(&self) -> Option<String> {
        let exposed = self.exposed();
        let name = |path: &PathBuf| {
            let shown = path.strip_prefix(&self.workspace).unwrap_or(path);
            co_policy::printable(&shown.display().to_string())
        };
        let why = match &exposed[..] {
            [] => return None,
            [all] if *all == self.workspace => {
                "co could not look for secrets everywhere in the workspace again".to_owned()
            }
            new => {
                let names: Vec<_> = new.iter().take(MAX_NAMED_SECRETS).map(name).collect();
                format!(
                    "a secret appeared where the command could read: {}",
                    names.join(", ")
                )
            }
        };
        Some(format!("output withheld: {why}"))
    }
}

/// Returns the secrets of `now` that a command could read which started at `before`.
fn new_secrets(before: &Survey, now: &Survey, closed_by: ClosedBy) -> Vec<PathBuf> {
    let new = now.closed().filter(|path| !before.closes(path));
    let readable = |path: &Path| {
        let Some(dir) = path.parent() else {
            return true;
        };
        // By rules, a directory with a secret was granted entry by entry, so a file that was not there yet is closed. A
        // directory may have been there under another name.
        let by_entry =
            closed_by == ClosedBy::Rules && before.closed().any(|closed| closed.starts_with(dir));
        let entries = before.entries(dir).unwrap_or_default();
        !by_entry || path.is_dir() || entries.iter().any(|(entry, _)| entry == path)
    };
    new.filter(|path| readable(path)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::survey;
    use crate::test_files;

    #[track_caller]
    fn check(change: &str, expected: &[&str]) {
        check_closed(ClosedBy::Rules, change, expected);
    }

    #[track_caller]
    fn check_closed(closed_by: ClosedBy, change: &str, expected: &[&str]) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in [".env", "notes", "src/deep/plain", "src/a.json", "data/x"] {
            test_files::write(&root, name, "x");
        }
        let before = survey(&root);
        let mut bash = std::process::Command::new("bash");
        let done = bash.args(["-ec", change]).current_dir(&root).status();
        assert!(done.unwrap().success(), "{change}");
        let mut found = new_secrets(&before, &survey(&root), closed_by);
        found.sort();
        let expected: Vec<PathBuf> = expected.iter().map(|name| root.join(name)).collect();
        assert_eq!(found, expected, "{change}");
    }

    #[test]
    fn a_secret_is_exposed_where_there_was_none() {
        check("true", &[]);
        check("echo x > src/.env", &["src/.env"]);
        check("echo x > src/deep/a.pem", &["src/deep/a.pem"]);
        check("mkdir src/.aws; echo x > src/.aws/x", &["src/.aws"]);
        check("ln .env src/other", &["src/other"]);
        check("mv data src/.ssh", &["src/.ssh"]);
        let account = r#"{"type": "service_account", "private_key": "PRIVATE KEY"}"#;
        check(&format!("echo '{account}' > src/a.json"), &["src/a.json"]);
        // A directory keeps its rule under a new name.
        check("mv src lib; echo x > lib/.env", &["lib/.env"]);
        check("mv src .aws", &[".aws"]);
    }

    #[test]
    fn what_appears_beside_a_secret_is_closed() {
        check("echo x > .env.local", &[]);
        check("echo y > new; mv new .env", &[]);
        check("rm .env", &[]);
    }

    #[test]
    fn what_appears_beside_a_covered_secret_is_exposed() {
        let check = |change, expected: &_| check_closed(ClosedBy::Mounts, change, expected);
        check("echo x > .env.local", &[".env.local"]);
        check("echo x > src/.env", &["src/.env"]);
        check("echo y > new; mv new .env", &[]);
        check("rm .env", &[]);
    }
}
