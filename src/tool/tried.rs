//! The result of a command that ran as a trial. The model or the person started the command. Makes the question about the changes
//! of the trial, and keeps the changes.

mod apply;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use self::apply::apply;
use crate::blocking::blocking;
use crate::checkpoint::{
    self, ChangeCause, ChangedFile, Checkpoints, Store, Undo, UndoResult, Verdict,
};
use crate::protocol::{Change, HunkAnswer, TrialSummary};
use crate::services::Services;
use crate::trial::{IgnoredFilesFate, Layers, TrialChanges, TrialPlace, ended_by_itself, keeping};
use crate::workspace::judge::Judge;
use co_exec::{Caller, CommandOutcome};
use co_text::{MOST_NAMED, counted, one_line};

/// The largest number of output lines that the question about a trial shows.
const OUTPUT_LINES: usize = 6;

/// The text for the person about a trial whose question is open.
pub const NO_CHANGE_YET: &str = "nothing has changed yet";

/// A command that has run as a trial. The workspace has not changed yet.
#[derive(Clone)]
pub struct TriedCommand {
    pub changes: TrialChanges,
    pub summary: TrialSummary,
    /// The diff for the question; none if no change can be kept.
    pub change: Option<Change>,
    /// The changed files with their parts; empty if there are too many.
    files: Vec<ChangedFile>,
    /// The canonical path of the workspace.
    root: PathBuf,
    store: Arc<Store>,
    /// The place of the trial; none if co has already left the ignored files of the trial for later trials, or has dropped them.
    place: Option<TrialPlace>,
}

/// A plan that keeps the changes of a trial.
pub struct KeepPlan {
    undo: Undo,
    root: PathBuf,
    /// The files that have also changed in the workspace, each with the reason why its change cannot be kept.
    refused: Vec<(PathBuf, String)>,
    /// The files whose buffers have unsaved changes, as paths for the person.
    unsaved: Vec<String>,
}

/// The result of keeping the changes of a trial.
pub struct KeepResult {
    /// The changes that were made. The field `failed` contains the files that could not be changed, and the files that changed in
    /// the workspace as well as in the trial.
    pub done: UndoResult,
    /// The files whose change is only in the buffer, as paths for the person.
    pub unsaved: Vec<String>,
}

/// Creates the layer of a trial in the workspace of `judge`.
///
/// # Errors
/// The layer cannot be created.
pub async fn begin(services: &Services, judge: Arc<Judge>) -> Result<TrialPlace, String> {
    let Some(launcher) = services.executor.launcher() else {
        return Err("nothing can confine it here".to_owned());
    };
    let removals = launcher.removals().clone();
    let most_left = services.executor.settings().trial_cache;
    let (dir, checkpoints) = (
        services.places.trials.clone(),
        Arc::clone(&services.checkpoints),
    );
    blocking(move || {
        let layers = Layers {
            dir: &dir,
            most_left,
            removals: &removals,
        };
        TrialPlace::new(judge, checkpoints.store()?, &layers, Judge::survey)
    })
    .await
}

impl TriedCommand {
    /// Reads the changes of a trial, and makes the texts for the question. `failed` is true if the command may have failed
    /// because of the trial. If the returned future is dropped, no ignored files are left for later trials.
    ///
    /// # Errors
    /// The changes cannot be read.
    pub async fn read(
        services: &Services,
        place: TrialPlace,
        (outcome, caller): (&CommandOutcome, Caller),
        failed: bool,
    ) -> Result<Self, String> {
        let show = move |changes: &TrialChanges, store: &Store| {
            let files = ChangedFile::all(changes.changes.iter(), store);
            // A yes may run the command again, so there is nothing to answer in parts.
            let whole = failed || !changes.git.is_empty();
            let change = shown_change(changes, &files, whole, store);
            (files, change)
        };
        let guard = place.guard();
        let read = place.read(outcome, &services.executor, show).await?;
        let (mut changes, (files, change)) = read;
        let may_stay = ended_by_itself(outcome) && !failed;
        let settled = blocking(move || {
            place.settle_ignored(&mut changes, may_stay);
            Ok::<_, String>((changes, place))
        });
        let (changes, place) = settled.await?;
        guard.disarm();
        Ok(Self {
            summary: summary(outcome, caller, &changes, failed),
            change,
            files,
            root: place.root().to_owned(),
            store: Arc::clone(place.store()),
            place: Some(place).filter(|_| changes.ignored.fate == IgnoredFilesFate::Undecided),
            changes,
        })
    }

    /// Returns a clause about a trial that changed only ignored files, for the person.
    pub fn only_ignored(&self) -> String {
        match self.changes.ignored.unchanged() {
            None => "it changed nothing".to_owned(),
            Some(unchanged) => format!("it changed only ignored files, {unchanged}"),
        }
    }

    /// Returns true if the person has nothing to decide: the command changed nothing except ignored files, and did not fail
    /// because of the trial.
    pub fn needs_no_answer(&self) -> bool {
        self.changes.only_ignored() && !self.summary.runs_again
    }

    /// Removes all changes except the parts that the person accepted in a review. Without a review, all changes stay.
    ///
    /// # Errors
    /// The answers do not match the parts, or the encoding of a file cannot store the text that the person wrote.
    pub async fn accept(&mut self, hunks: Option<Vec<HunkAnswer>>) -> Result<(), String> {
        let Some(hunks) = hunks else {
            return Ok(());
        };
        let changes = std::mem::take(&mut self.changes);
        let (files, store) = (std::mem::take(&mut self.files), Arc::clone(&self.store));
        let (all, whole) = (
            changes.changes.len(),
            hunks.iter().all(|it| it.accept && it.lines.is_none()),
        );
        let accepted = move || {
            let mut changes = accepted(changes, &files, &hunks, &store)?;
            if !whole || changes.changes.len() < all {
                changes.ignored.fate = IgnoredFilesFate::Dropped;
            }
            Ok::<_, String>(changes)
        };
        self.changes = blocking(accepted).await?;
        Ok(())
    }

    /// Returns a plan that keeps the changes. Changes nothing.
    ///
    /// # Errors
    /// The plan cannot be made.
    pub async fn plan(&self, services: &Services) -> Result<KeepPlan, String> {
        let changes = self.changes.changes.clone();
        let (root, store) = (self.root.clone(), Arc::clone(&self.store));
        let files: Vec<_> = changes.iter().map(|it| root.join(&it.path)).collect();
        let open = services.buffers.read(files.iter().map(PathBuf::as_path));
        let open = open.await;
        let place = root.clone();
        let plan = move || Ok::<_, String>(keeping(&changes, &place, &store, &open));
        let mut undo = blocking(plan).await?;
        let refused = std::mem::take(&mut undo.kept);
        let unsaved = undo.buffers.iter().map(|(_, change)| change.path.display());
        Ok(KeepPlan {
            refused,
            unsaved: unsaved.map(|path| path.to_string()).collect(),
            undo,
            root,
        })
    }

    /// Returns the reason why an empty plan keeps no change.
    pub fn why_nothing(&self) -> String {
        match self.changes.changes.is_empty() {
            true => self.changes.notes(MOST_NAMED).join("; "),
            false => "the workspace has these changes already".to_owned(),
        }
    }

    /// Leaves the ignored files for later trials, if `kept_all` is true, which means that all other changes were kept. Otherwise,
    /// drops the ignored files.
    pub async fn settle_ignored(&mut self, kept_all: bool) {
        let undecided = self.changes.ignored.clone();
        self.changes.ignored.fate = IgnoredFilesFate::Dropped;
        let Some(place) = self.place.take().filter(|_| kept_all) else {
            return;
        };
        let left = blocking(move || {
            let mut left = TrialChanges {
                ignored: undecided,
                ..TrialChanges::default()
            };
            place.leave_ignored(&mut left);
            Ok::<_, String>(left.ignored)
        });
        if let Ok(ignored) = left.await {
            self.changes.ignored = ignored;
        }
    }
}

impl KeepPlan {
    /// Returns true if the plan makes no change, and there is nothing to tell the person.
    pub fn is_empty(&self) -> bool {
        self.undo.all().is_empty() && self.refused.is_empty()
    }

    /// Returns the changes that the plan makes.
    pub fn changes(&self) -> Vec<checkpoint::Change> {
        self.undo.all().into_iter().cloned().collect()
    }

    /// Makes the changes in the workspace, and in buffers with unsaved changes.
    ///
    /// # Errors
    /// The reason why no change was kept.
    pub async fn carry_out(
        self,
        services: &Services,
        by: ChangeCause,
    ) -> Result<KeepResult, String> {
        let on_disk = move |checkpoints: &Checkpoints, undo: Undo, root: &Path| {
            checkpoints.make(undo, root, by)
        };
        let mut done = apply(services, &self.root, self.undo, on_disk).await?;
        done.failed.extend(self.refused);
        Ok(KeepResult {
            done,
            unsaved: self.unsaved,
        })
    }
}

impl KeepResult {
    /// Returns true if all changes are in the files now.
    pub fn is_all(&self) -> bool {
        self.done.failed.is_empty() && self.unsaved.is_empty()
    }

    /// Returns the files whose changes were not kept, with the reasons; none if all were kept.
    pub fn failed(&self) -> Option<String> {
        let failed = self.done.failed.iter();
        let mut named: Vec<_> = failed
            .map(|(path, why)| format!("{}: {why}", path.display()))
            .collect();
        if let Some(more @ 1..) = named.len().checked_sub(MOST_NAMED) {
            named.truncate(MOST_NAMED);
            named.push(format!("and {more} more"));
        }
        (!named.is_empty()).then(|| named.join("; "))
    }

    /// Returns a remark about the kept changes, for the person.
    pub fn noted(&self) -> String {
        let changes = self.done.changes.iter();
        let count = counted(changes.filter(|it| !it.is_directory()).count(), "file");
        match self.failed() {
            None => format!("kept: {count}"),
            Some(failed) => format!("kept: {count}; not kept: {failed}"),
        }
    }
}

/// Returns the parts of the changes that the person accepted in a review, and the changes of the directories that these parts
/// need.
///
/// # Errors
/// The answers do not match the parts, or the encoding of a file cannot store the text that the person wrote.
fn accepted(
    mut all: TrialChanges,
    files: &[ChangedFile],
    answers: &[HunkAnswer],
    store: &Store,
) -> Result<TrialChanges, String> {
    let parts: usize = files.iter().map(|it| it.file.parts.len()).sum();
    if parts != answers.len() {
        return Err("the review is not one of these changes".to_owned());
    }
    let by_path: HashMap<&Path, &checkpoint::Change> = (all.changes.iter())
        .map(|it| (it.path.as_path(), it))
        .collect();
    let mut answers = answers.iter();
    let mut accepted = Vec::new();
    for ChangedFile { file, .. } in files {
        let own = file.parts.iter().zip(answers.by_ref());
        let verdicts =
            own.map(|(part, it)| Verdict::of(part, Some(it.accept), it.lines.as_deref()));
        let verdicts: Vec<_> = verdicts.collect();
        let answered = file.answered(&verdicts, store);
        let kept = answered.map_err(|error| error.to_string())?.accepted;
        if let (Some(kept), Some(change)) = (kept, by_path.get(file.path.as_path())) {
            accepted.push(checkpoint::Change {
                after: kept.baseline,
                ..(*change).clone()
            });
        }
    }
    let needed: HashSet<&Path> = accepted.iter().flat_map(|it| it.path.ancestors()).collect();
    all.changes
        .retain(|it| it.is_directory() && needed.contains(it.path.as_path()));
    all.changes.extend(accepted);
    Ok(all)
}

/// Returns the result of a trial for the question. `caller` started the trial. `failed` is true if the command may have failed
/// because of the trial.
fn summary(
    outcome: &CommandOutcome,
    caller: Caller,
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
    if caller == Caller::Person {
        notes.push(NO_CHANGE_YET.to_owned());
    }
    if outcome.withheld && caller == Caller::Agent {
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
            .map(|line| co_text::printable(line))
            .collect(),
        notes: notes.iter().map(|note| one_line(note)).collect(),
        runs_again,
    }
}

/// Returns the diff for the question; none if no change can be kept. If `whole` is true, the person does not answer about single
/// parts.
fn shown_change(
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
