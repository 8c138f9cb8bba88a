//! The end of a trial: what it changed is kept or dropped, as the person answered.

use super::super::tried::{Kept, TriedCommand};
use super::super::undo;
use super::Turn;
use super::audit_records::CallOutcome;
use super::call::ReviewedCommand;
use super::event::Halt;
use super::question::refusal;
use super::trial::EndedTrial;
use crate::checkpoint::{By, CallChanges};
use crate::protocol::HunkAnswer;
use crate::text::{MOST_NAMED, one_line};
use crate::tool::event::CallEvent;
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
        let runs_again = ended.tried.summary.runs_again;
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
        self.show(CallEvent::Decision(decision.clone())).await?;
        let answer = hunks.as_deref().and_then(edits::answer_in_words);
        let comments = hunks.as_deref().and_then(edits::comments);
        let (told, noted) = match refusal(&decision) {
            None => {
                let what = reviewed.request.text();
                self.keep_accepted(what, decision.clone(), &mut ended.tried, hunks)
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
        tried: &mut TriedCommand,
        hunks: Option<Vec<HunkAnswer>>,
    ) -> (String, String) {
        let comments = hunks.as_deref().and_then(edits::comments);
        let review = hunks.as_deref().map(|all| {
            let kept = all.iter().filter(|it| it.accept).count();
            format!(" In a review, they kept {kept} of {} parts.", all.len())
        });
        if let Err(why) = tried.accept(hunks).await {
            return not_kept(&why);
        }
        let by = By::Call {
            what,
            decision,
            command: false,
        };
        let ((mut told, noted), kept_all) = match self.keep_trial(by, tried).await {
            Ok(kept) => kept,
            Err(why) => (not_kept(&why), false),
        };
        tried.changes.changes.clear();
        tried.settle_ignored(kept_all).await;
        let changes = &tried.changes;
        let notes = changes.notes(MOST_NAMED).into_iter();
        let notes = notes.chain(changes.ignored.unchanged());
        told.extend(review);
        told.extend(notes.map(|note| format!(" Note: {note}.")));
        told.extend(comments.map(|it| format!(" The person says: {it}")));
        (told, noted)
    }

    /// Makes the changes of a trial in the workspace. Returns what was kept, for the model and for the person, and whether all of
    /// it is in the files now.
    ///
    /// # Errors
    /// Nothing was kept, for this reason.
    async fn keep_trial(
        &self,
        by: By,
        tried: &TriedCommand,
    ) -> Result<((String, String), bool), String> {
        let plan = tried.plan(&self.services).await?;
        if plan.is_empty() {
            let why = tried.why_nothing();
            let words = (
                format!("It ran as a trial, and nothing was kept: {why}."),
                format!("nothing was kept: {why}"),
            );
            return Ok((words, false));
        }
        let planned = CallChanges {
            changes: plan.changes(),
            ..CallChanges::default()
        };
        // So `/undo` knows them if co is killed meanwhile.
        self.try_append(by.clone(), planned, true).await?;
        let kept = match plan.carry_out(&self.services, by.clone()).await {
            Ok(kept) => kept,
            Err(why) => {
                // If this fails too, `/undo` finds the files as they were before, and changes none.
                let _planned = self.try_append(by, CallChanges::default(), false).await;
                return Err(why);
            }
        };
        let made = CallChanges {
            changes: kept.done.changes.clone(),
            ..CallChanges::default()
        };
        self.append_record(by, made, false).await;
        Ok(((kept_words(&kept), kept.noted()), kept.is_all()))
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

/// Returns what was kept, for the model.
fn kept_words(kept: &Kept) -> String {
    let paths = kept.done.changes.iter();
    let paths: Vec<_> = paths.map(|it| it.path.display().to_string()).collect();
    let named = match paths.is_empty() {
        true => "nothing".to_owned(),
        false => undo::named(paths),
    };
    let mut told = match kept.failed() {
        None => format!("It ran as a trial, and the person kept what it changed: {named}."),
        Some(failed) => format!("It ran as a trial. Kept: {named}. Not kept: {failed}."),
    };
    if !kept.unsaved.is_empty() {
        told.push_str(&format!(
            " The change is in the buffer only, because it has unsaved changes: {}. Commands see the file without it until the \
             person saves it.",
            undo::named(kept.unsaved.clone())
        ));
    }
    told
}
