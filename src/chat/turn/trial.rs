//! The trial of a command, and what the question about it shows.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::run::CallResult;
use crate::checkpoint::{self, ChangedFile, Store};
use crate::protocol::{Change, HunkAnswer, TrialSummary};
use crate::text::{MOST_NAMED, one_line};
use crate::trial::{Fate, Layer, TrialChanges};
use crate::workspace::edits::accepted_hunks;
use co_edit::Hunk;
use co_exec::CommandOutcome;

/// The most lines of output in the question about a trial.
const OUTPUT_LINES: usize = 6;

/// The trial of a command that waits in the queue.
#[derive(Default)]
pub(super) enum Trial {
    #[default]
    None,
    /// The person asked for it.
    Wanted,
    Running,
    /// It could not run, or co could not read what it changed: the reason.
    Failed(String),
    Ended(Box<EndedTrial>),
}

/// A trial that has ended, and its question.
pub(super) struct EndedTrial {
    pub changes: TrialChanges,
    pub summary: TrialSummary,
    pub change: Option<Change>,
    /// The changed files in parts; empty if there are too many.
    pub files: Vec<ChangedFile>,
    pub result: CallResult,
    /// The layer, if its ignored files may still stay for later trials; else none.
    pub layer: Option<Arc<Layer>>,
}

impl Trial {
    /// Returns the result of the command and what it changed, for the question.
    pub(super) fn for_question(&self) -> (Option<TrialSummary>, Option<Change>) {
        match self {
            Self::Ended(ended) => (Some(ended.summary.clone()), ended.change.clone()),
            _ => (None, None),
        }
    }

    /// Returns a sentence about a trial that could not run, or whose changes could not be read; none for others.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::Failed(why) => Some(format!("its trial failed: {why}")),
            _ => None,
        }
    }
}

impl EndedTrial {
    /// Returns the effect of a trial that needs no answer, for the model and for the person.
    pub(super) fn effect(&self) -> (String, String) {
        let ignored = &self.changes.ignored;
        let Some(unchanged) = ignored.unchanged() else {
            return (
                "The command ran as a trial, without network. It changed no file of the workspace; what it wrote to /tmp is gone."
                    .to_owned(),
                "tried: it changed nothing".to_owned(),
            );
        };
        let fate = match ignored.fate {
            Fate::Stay => "Later trials see these changes, other commands do not",
            _ => "These changes are dropped",
        };
        let told = format!(
            "The command ran as a trial. It changed only files that git ignores. {fate}: outside of the trial, {unchanged}. If these \
             files must change, call it again with `real`; the person is then asked."
        );
        let noted =
            format!("tried: it changed only ignored files, {unchanged}; /real runs it for real");
        (told, noted)
    }

    /// Returns whether the person has nothing to decide: the command changed nothing but ignored files, and did not fail because
    /// of the trial.
    pub(super) fn needs_no_answer(&self) -> bool {
        self.changes.only_ignored() && !self.summary.runs_again
    }
}

/// Returns the parts of the changes that the person accepted in a review, with the directories that they need.
///
/// # Errors
/// The answers are not those to the parts, or a file cannot have the text that the person wrote.
pub(super) fn accepted(
    mut all: TrialChanges,
    files: &[ChangedFile],
    answers: &[HunkAnswer],
    store: &Store,
) -> Result<TrialChanges, String> {
    let parts: usize = files.iter().map(|file| file.parts.len()).sum();
    if parts != answers.len() {
        return Err("the review is not one of these changes".to_owned());
    }
    let by_path: HashMap<&Path, &checkpoint::Change> = (all.changes.iter())
        .map(|it| (it.path.as_path(), it))
        .collect();
    let mut answers = answers.iter();
    let mut accepted = Vec::new();
    for file in files {
        let hunks: Vec<Hunk> = file.parts.iter().map(|it| it.hunk.clone()).collect();
        let stay = accepted_hunks(&hunks, answers.by_ref().take(hunks.len()));
        let change = by_path.get(file.path());
        if let Some(change) = change.filter(|_| !stay.is_empty()) {
            let mut change = (*change).clone();
            if stay != hunks {
                change.after = file.without(&stay, store)?.before;
            }
            accepted.push(change);
        }
    }
    let needed: HashSet<&Path> = accepted.iter().flat_map(|it| it.path.ancestors()).collect();
    all.changes
        .retain(|it| it.is_directory() && needed.contains(it.path.as_path()));
    all.changes.extend(accepted);
    Ok(all)
}

/// Returns the result of a trial for the question. `failed` is true if the command may have failed because of the trial.
pub(super) fn summary(
    outcome: &CommandOutcome,
    changes: &TrialChanges,
    failed: bool,
) -> TrialSummary {
    let printed = outcome
        .output
        .get(..outcome.printed)
        .unwrap_or(&outcome.output);
    let lines: Vec<&str> = printed.trim_end().lines().collect();
    let last = lines.len().saturating_sub(OUTPUT_LINES);
    let mut notes = Vec::new();
    if outcome.withheld {
        notes.push(
            "the model does not get its output, which may contain a secret: yes runs it for real"
                .to_owned(),
        );
    } else if failed {
        notes.push(
            "it may have failed because a trial has no network and writes only in the workspace: yes runs it for real".to_owned(),
        );
    } else if !changes.git.is_empty() {
        notes.push(
            "a trial keeps files only, no change of .git: yes drops its changes and runs it for real"
                .to_owned(),
        );
    }
    let has_git = !changes.git.is_empty();
    let runs_again = failed || has_git;
    if !runs_again {
        notes.extend(changes.notes(MOST_NAMED));
        notes.extend(changes.ignored.unchanged());
    }
    TrialSummary {
        git: (has_git && !outcome.withheld).then(|| one_line(&changes.git.words())),
        status: one_line(&outcome.status()),
        output: lines[last..]
            .iter()
            .map(|line| co_policy::printable(line))
            .collect(),
        notes: notes.iter().map(|note| one_line(note)).collect(),
        runs_again,
    }
}

/// Returns the difference for the question; none if nothing can be kept. With `whole`, the person does not answer its parts.
pub(super) fn shown_change(
    changes: &TrialChanges,
    files: &[ChangedFile],
    whole: bool,
    store: &Store,
) -> Option<Change> {
    if changes.changes.is_empty() {
        return None;
    }
    let (added, removed) = changes.lines(store);
    let all: Vec<_> = changes.changes.iter().collect();
    let change = ChangedFile::for_question(&all, files, store);
    Some(Change {
        whole: whole || change.whole,
        added,
        removed,
        ..change
    })
}
