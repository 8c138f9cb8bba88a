//! Makes texts and JSON of the changes of a trial.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::changes::{Error, IgnoredFiles, IgnoredFilesFate, NotKept, TrialChanges};
use super::ignored::Cleared;
use super::layer::Layer;
use crate::blocking::blocking;
use crate::checkpoint::{Change, Entry, Store, shown};
use crate::protocol::{FactLine, fact_lines};
use co_text::size_text;

/// Makes texts of the changes of a trial within the time that remains for co's own work.
///
/// # Errors
/// The work takes too long. No change may then be kept, because nobody has seen the changes. `make` continues in its thread until
/// it ends.
pub(super) async fn in_time<T: Send + 'static>(
    layer: &Arc<Layer>,
    make: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let (left, own) = (layer.time_left(), Arc::clone(layer));
    let making = blocking(move || Ok::<_, Error>(own.work(|_end| make())));
    let late = |_| Err(Error::Time.to_string());
    tokio::time::timeout(left, making)
        .await
        .unwrap_or_else(late)
}

impl TrialChanges {
    /// Returns the unified diff of the changes that can be kept. A new or removed directory has a line of its own, unless the
    /// next change is below this directory.
    pub fn diff(&self, store: &Store) -> String {
        let mut diff = String::new();
        for (at, change) in self.changes.iter().enumerate() {
            if let Some(word) = change.directory_word(self.changes.get(at + 1)) {
                diff.push_str(&format!("{word} directory: {}\n", shown(&change.path)));
            }
            // That of a directory names an unusual mode.
            diff.push_str(&change.diff(store));
        }
        diff
    }

    /// Returns the facts that a person must see first, about changes that can be kept.
    pub fn facts(&self, store: &Store) -> Vec<FactLine> {
        fact_lines(self.changes.iter().flat_map(|it| it.facts(store)))
    }

    /// Returns the numbers of added and removed lines of the changes that can be kept.
    pub fn lines(&self, store: &Store) -> (usize, usize) {
        let lines = self.changes.iter().map(|change| change.lines(store));
        lines.fold((0, 0), |(added, removed), (more, fewer, _)| {
            (added + more, removed + fewer)
        })
    }

    /// Returns sentences for the person: at most `most` about dropped changes, one about changes of git, and one about changes of
    /// ignored files.
    pub fn notes(&self, most: usize) -> Vec<String> {
        let named = self.not_kept.iter().take(most);
        let mut notes: Vec<_> = named.map(NotKept::sentence).collect();
        if let Some(more @ 1..) = self.not_kept.len().checked_sub(most) {
            notes.push(format!("{more} more cannot be kept"));
        }
        if !self.git.is_empty() {
            let words = self.git.words();
            notes.push(format!("changes in .git are dropped: {words}"));
        }
        notes.extend((self.ignored.files > 0).then(|| self.ignored.sentence()));
        notes
    }

    /// Returns JSON that describes the changes that can be kept. If `withheld` is true, leaves out the contents of files.
    pub fn changes_json(&self, store: &Store, withheld: bool) -> Vec<Value> {
        let changes = self.changes.iter().map(|change| {
            let mut value = json_of(change, store);
            if withheld {
                value["diff"] = Value::Null;
            }
            value
        });
        changes.collect()
    }

    /// Returns the whole result as JSON. `changes` are the changes that can be kept, as JSON.
    pub fn json(&self, changes: &[Value]) -> Value {
        let not_kept = self.not_kept.iter().map(NotKept::json);
        json!({
            "changes": changes,
            "not_kept": not_kept.collect::<Vec<_>>(),
            "git": self.git.paths().map(in_json).collect::<Vec<_>>(),
            "head": self.git.head,
            "ignored": {
                "files": self.ignored.files,
                "bytes": self.ignored.bytes,
                "stay": self.ignored.fate == IgnoredFilesFate::Stay,
            },
        })
    }
}

impl IgnoredFiles {
    fn sentence(&self) -> String {
        let one = self.files == 1;
        let fate = match (self.fate, one) {
            (IgnoredFilesFate::Dropped, true) => "is dropped",
            (IgnoredFilesFate::Dropped, false) => "are dropped",
            (IgnoredFilesFate::Undecided, true) => {
                "stays for later trials only, if all else is kept"
            }
            (IgnoredFilesFate::Undecided, false) => {
                "stay for later trials only, if all else is kept"
            }
            (IgnoredFilesFate::Stay, true) => "stays for later trials only",
            (IgnoredFilesFate::Stay, false) => "stay for later trials only",
        };
        let s = if one { "" } else { "s" };
        format!(
            "{} ignored file{s} ({}) {fate}",
            self.files,
            size_text(self.bytes)
        )
    }

    /// Returns a clause that says that the ignored files of the workspace have not changed. Returns `None` if the trial changed
    /// no ignored files.
    pub fn unchanged(&self) -> Option<String> {
        let mut named: Vec<_> = self.named.iter().map(|it| shown(it)).collect();
        if self.unnamed > 0 {
            named.push(format!("{} more", self.unnamed));
        }
        let verb = match named.len() {
            1 => "is as it was",
            _ => "are as they were",
        };
        let last = named.pop()?;
        Some(match named.is_empty() {
            true => format!("your {last} {verb}"),
            false => format!("your {} and {last} {verb}", named.join(", ")),
        })
    }
}

impl Cleared {
    /// Returns a sentence about the removed files, for the person.
    pub fn sentence(&self) -> String {
        let removed = format!(
            "{} of ignored files and caches removed",
            size_text(self.bytes)
        );
        match self.in_use {
            0 => removed,
            1 => format!("{removed}; those of 1 workspace stay, because a trial uses them"),
            more => format!("{removed}; those of {more} workspaces stay, because trials use them"),
        }
    }
}

impl NotKept {
    /// Returns a sentence about the dropped change, for the person.
    pub fn sentence(&self) -> String {
        format!("{} cannot be kept: {}", shown(&self.path), self.why)
    }

    /// Returns the dropped change as JSON.
    pub fn json(&self) -> Value {
        json!({ "path": in_json(&self.path), "why": self.why })
    }
}

fn json_of(change: &Change, store: &Store) -> Value {
    let (added, removed, _) = change.lines(store);
    json!({
        "path": change.path,
        "before": change.before.as_ref().map(entry),
        "after": change.after.as_ref().map(entry),
        "added": added,
        "removed": removed,
        "diff": change.diff(store),
    })
}

fn entry(entry: &Entry) -> Value {
    let mode = |mode: &u32| format!("{mode:o}");
    match entry {
        Entry::File { mode: bits, .. } => json!({ "kind": "file", "mode": mode(bits) }),
        Entry::Dir { mode: bits } => json!({ "kind": "directory", "mode": mode(bits) }),
        Entry::Link { target } => json!({ "kind": "link", "target": target }),
    }
}

/// Returns a path as JSON. JSON can only contain UTF-8.
fn in_json(path: &Path) -> Value {
    path.to_str()
        .map_or_else(|| shown(path), str::to_owned)
        .into()
}
