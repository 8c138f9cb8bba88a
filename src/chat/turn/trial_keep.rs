//! The end of a trial: what it changed is kept or dropped, as the person answered.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::events::ChatEvent;
use super::super::undo;
use super::Turn;
use super::audit_records::CallOutcome;
use super::call::ReviewedCommand;
use super::event::Halt;
use super::question::refusal;
use super::trial::{EndedTrial, accepted};
use crate::blocking::blocking;
use crate::checkpoint::{By, CallChanges, Change, Checkpoints, Overlap, Undo, UndoResult, files};
use crate::protocol::HunkAnswer;
use crate::text::{MOST_NAMED, one_line};
use crate::trial::{Fate, Layer, TrialChanges};
use crate::workspace::edits;
use co_llm::transcript::{Decision, Item};

/// The remark for the person about a trial of which nothing is kept.
pub(super) const DROPPED: &str = "its changes are dropped";

impl Turn {
    /// Ends a trial after the person's answer: keeps what it changed, or the parts that the person accepted in a review, or
    /// drops all.
    pub(super) async fn end_trial(
        &mut self,
        reviewed: ReviewedCommand,
        mut ended: EndedTrial,
        decision: Decision,
        hunks: Option<Vec<HunkAnswer>>,
    ) -> Result<(), Halt> {
        let runs_again = ended.summary.runs_again;
        if decision.lets_run() && runs_again {
            return self.run_allowed(reviewed, decision).await;
        }
        self.record(Item::Decision {
            call: reviewed.call.id.clone(),
            decision: decision.clone(),
        })
        .await?;
        self.audit_decision(&reviewed.call, &reviewed.judged, (&decision, "co itself"))
            .await;
        self.show(ChatEvent::Decision(decision.clone())).await?;
        let answer = hunks.as_deref().and_then(edits::answer_in_words);
        let comments = hunks.as_deref().and_then(edits::comments);
        let (told, noted) = match refusal(&decision) {
            None => {
                let what = reviewed.request.text();
                self.keep_accepted(what, decision.clone(), &mut ended, hunks)
                    .await
            }
            Some(_) if decision == Decision::Withdrawn => {
                let told = "It ran as a trial, and what it changed is dropped: nobody answered whether to keep it.";
                (told.to_owned(), DROPPED.to_owned())
            }
            Some(why) => dropped_words(&why, runs_again),
        };
        let noted = [Some(noted), answer].into_iter().flatten();
        let noted = noted.collect::<Vec<_>>().join(" · ");
        let mut result = ended.result.told(&told).noted(&noted);
        if let (Some(comments), true) = (comments, decision.lets_run()) {
            let said = format!("✎ {}", one_line(&comments));
            result.shown.notice.get_or_insert(said);
        }
        self.audit(
            &reviewed.call,
            &reviewed.judged,
            &decision,
            CallOutcome::Look(&noted),
        );
        self.conclude(&reviewed.call, result).await?;
        match self.cancel.is_cancelled() {
            true => Err(Halt::Cancelled),
            false => Ok(()),
        }
    }

    /// Keeps what the person accepted. Returns what was kept and what was not, for the model and for the person.
    async fn keep_accepted(
        &self,
        what: String,
        decision: Decision,
        ended: &mut EndedTrial,
        hunks: Option<Vec<HunkAnswer>>,
    ) -> (String, String) {
        let comments = hunks.as_deref().and_then(edits::comments);
        let review = hunks.as_deref().map(|all| {
            let kept = all.iter().filter(|it| it.accept).count();
            format!(" In a review, they kept {kept} of {} parts.", all.len())
        });
        let mut changes = match self.accept(ended, hunks).await {
            Ok(()) => std::mem::take(&mut ended.changes),
            Err(why) => return not_kept(&why),
        };
        let to_make = std::mem::take(&mut changes.changes);
        let why_nothing = match to_make.is_empty() {
            true => changes.notes(MOST_NAMED).join("; "),
            false => "the workspace has these changes already".to_owned(),
        };
        let ((mut told, noted), kept_all) =
            match self.keep_trial(what, decision, to_make, &why_nothing).await {
                Ok(kept) => kept,
                Err(why) => (not_kept(&why), false),
            };
        let changes = self
            .leave_ignored(changes, ended.layer.take(), kept_all)
            .await;
        let notes = changes.notes(MOST_NAMED).into_iter();
        let notes = notes.chain(changes.ignored.unchanged());
        told.extend(review);
        told.extend(notes.map(|note| format!(" Note: {note}.")));
        told.extend(comments.map(|it| format!(" The person says: {it}")));
        (told, noted)
    }

    /// Leaves the ignored files of a trial for later trials, if all its other changes were kept.
    async fn leave_ignored(
        &self,
        mut changes: TrialChanges,
        layer: Option<Arc<Layer>>,
        kept_all: bool,
    ) -> TrialChanges {
        let undecided = changes.ignored.clone();
        changes.ignored.fate = Fate::Dropped;
        let Some(layer) = layer.filter(|_| kept_all) else {
            return changes;
        };
        let judge = Arc::clone(&self.judge);
        let left = blocking(move || {
            let mut left = TrialChanges {
                ignored: undecided,
                ..TrialChanges::default()
            };
            left.leave_ignored(&layer, judge.root(), &judge.readable());
            Ok::<_, String>(left.ignored)
        });
        changes.ignored = left.await.unwrap_or(changes.ignored);
        changes
    }

    /// Reduces the changes of a trial to the parts that the person accepted in a review. Without a review, all stay.
    async fn accept(
        &self,
        ended: &mut EndedTrial,
        hunks: Option<Vec<HunkAnswer>>,
    ) -> Result<(), String> {
        let Some(hunks) = hunks else {
            return Ok(());
        };
        let (checkpoints, changes) = (
            Arc::clone(&self.services.checkpoints),
            std::mem::take(&mut ended.changes),
        );
        let files = std::mem::take(&mut ended.files);
        let (all, whole) = (
            changes.changes.len(),
            hunks.iter().all(|it| it.accept && it.lines.is_none()),
        );
        let accepted = move || {
            let store = checkpoints.store().map_err(|error| error.to_string())?;
            let mut changes = accepted(changes, &files, &hunks, &store)?;
            if !whole || changes.changes.len() < all {
                changes.ignored.fate = Fate::Dropped;
            }
            Ok::<_, String>(changes)
        };
        ended.changes = blocking(accepted).await?;
        Ok(())
    }

    /// Makes the changes of a trial in the workspace. Returns what was kept, for the model and for the person, and whether all of
    /// it is in the files now. `why_nothing` is the reason if there is nothing to keep.
    ///
    /// # Errors
    /// Nothing was kept, for this reason.
    async fn keep_trial(
        &self,
        what: String,
        decision: Decision,
        changes: Vec<Change>,
        why_nothing: &str,
    ) -> Result<((String, String), bool), String> {
        let root = self.judge.root().to_owned();
        let files: Vec<_> = changes.iter().map(|it| root.join(&it.path)).collect();
        let open = self
            .services
            .buffers
            .read(files.iter().map(PathBuf::as_path))
            .await;
        let (checkpoints, place) = (Arc::clone(&self.services.checkpoints), root.clone());
        let plan = blocking(move || {
            let store = checkpoints.store()?;
            let plan = Undo::making(&changes, &place, &store, &open, Overlap::Refuse);
            Ok::<_, std::io::Error>(plan)
        });
        let mut plan = plan.await?;
        let refused = std::mem::take(&mut plan.kept);
        let unsaved = plan.buffers.iter().map(|(_, change)| change.path.display());
        let unsaved: Vec<_> = unsaved.map(|path| path.to_string()).collect();
        let by = By::Call {
            what: what.clone(),
            decision,
            command: false,
        };
        if plan.all().is_empty() && refused.is_empty() {
            let words = (
                format!("It ran as a trial, and nothing was kept: {why_nothing}."),
                format!("nothing was kept: {why_nothing}"),
            );
            return Ok((words, false));
        }
        let planned = CallChanges {
            changes: plan.all().into_iter().cloned().collect(),
            ..CallChanges::default()
        };
        // So `/undo` knows them if co is killed meanwhile.
        self.try_append(by.clone(), planned, true).await?;
        let made_by = by.clone();
        let on_disk = move |checkpoints: &Checkpoints, plan: Undo, root: &Path| {
            checkpoints.make(plan, root, made_by)
        };
        let mut done = match undo::apply(&self.services, &root, plan, on_disk).await {
            Ok(done) => done,
            Err(why) => {
                // If this fails too, `/undo` finds the files as they were before, and changes none.
                let _planned = self.try_append(by, CallChanges::default(), false).await;
                return Err(why);
            }
        };
        let made = CallChanges {
            changes: done.changes.clone(),
            ..CallChanges::default()
        };
        self.append_record(by, made, false).await;
        done.failed.extend(refused);
        let (mut told, noted) = kept_words(&done);
        let kept_all = done.failed.is_empty() && unsaved.is_empty();
        if !unsaved.is_empty() {
            told.push_str(&format!(
                " The change is in the buffer only, because it has unsaved changes: {}. Commands see the file without it until the \
                 person saves it.",
                undo::named(unsaved)
            ));
        }
        Ok(((told, noted), kept_all))
    }
}

/// Returns that the person or a rule refused, for the model and for the person.
fn dropped_words(why: &str, runs_again: bool) -> (String, String) {
    let told = match runs_again {
        true => format!("It ran as a trial only, and was not allowed to run outside of one. {why}"),
        false => format!("It ran as a trial, and what it changed is dropped. {why}"),
    };
    (told, DROPPED.to_owned())
}

/// Returns that nothing was kept, for the model and for the person.
fn not_kept(why: &str) -> (String, String) {
    (
        format!("It ran as a trial. Its changes could not be kept: {why}."),
        format!("its changes were not kept: {why}"),
    )
}

/// Returns what was kept, for the model and for the person.
fn kept_words(done: &UndoResult) -> (String, String) {
    let kept: Vec<_> = done
        .changes
        .iter()
        .map(|it| it.path.display().to_string())
        .collect();
    let mut failed: Vec<_> = (done.failed.iter())
        .map(|(path, why)| format!("{}: {why}", path.display()))
        .collect();
    let count = files(done.changes.iter().filter(|it| !it.is_directory()).count());
    let named = match kept.is_empty() {
        true => "nothing".to_owned(),
        false => undo::named(kept),
    };
    if let Some(more @ 1..) = failed.len().checked_sub(MOST_NAMED) {
        failed.truncate(MOST_NAMED);
        failed.push(format!("and {more} more"));
    }
    match failed.is_empty() {
        true => (
            format!("It ran as a trial, and the person kept what it changed: {named}."),
            format!("kept: {count}"),
        ),
        false => {
            let failed = failed.join("; ");
            (
                format!("It ran as a trial. Kept: {named}. Not kept: {failed}."),
                format!("kept: {count}; not kept: {failed}"),
            )
        }
    }
}
