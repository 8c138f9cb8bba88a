//! Trials: a command runs in a layer over the workspace, and then the person decides about what it changed.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::blocking::blocking;
use super::super::events::ChatEvent;
use super::super::undo;
use super::Turn;
use super::audit_records::CallOutcome;
use super::call::{AllowedCommand, ParsedCall, ReviewedCommand};
use super::call_queue::{QuestionState, QueuedCall};
use super::event::Halt;
use super::permissions::Allowance;
use super::question::{Resolution, refusal};
use super::run::StartedCommand;
use super::trial::{
    EndedTrial, MOST_NAMED, Trial, accepted, files_in_parts, shown_change, summary,
};
use crate::checkpoint::{By, CallChanges, Checkpoints, Overlap, Undo, UndoResult};
use crate::config::TryFirst;
use crate::protocol::HunkAnswer;
use crate::tool::edits;
use crate::tool::shell::ExecContext;
use crate::trial::{Layer, TrialChanges};
use co_exec::Confinement;
use co_llm::transcript::{Decision, Item};
use co_policy::Sort;

impl Turn {
    /// Returns the worst sort of a command that can run as a trial and needs an answer; none for others.
    fn trial_sort(&self, reviewed: &ReviewedCommand) -> Option<Sort> {
        if reviewed.cannot_run.is_some()
            || reviewed.request.mode.background
            || self.services.probe.in_container()
        {
            return None;
        }
        let Resolution::Ask(question) = self.resolve(reviewed) else {
            return None;
        };
        let launcher = self.services.executor.launcher();
        let works = launcher.is_some_and(|launcher| launcher.check_trial().is_ok());
        question.trial.filter(|_| works)
    }

    /// Returns whether the person may try a command.
    pub(super) fn may_try(&self, waiting: &QueuedCall) -> bool {
        match (&waiting.known, &waiting.trial) {
            (Ok(ParsedCall::Command(reviewed)), Trial::None) => self.trial_sort(reviewed).is_some(),
            _ => false,
        }
    }

    /// Returns whether a command runs as a trial before co asks about it.
    pub(super) fn is_tried_first(&self, waiting: &QueuedCall) -> bool {
        let Ok(ParsedCall::Command(reviewed)) = &waiting.known else {
            return false;
        };
        match waiting.trial {
            Trial::Wanted => return self.trial_sort(reviewed).is_some(),
            Trial::Running => return true,
            Trial::Failed(_) | Trial::Ended(_) => return false,
            Trial::None => {}
        }
        let question = waiting.question.as_ref();
        if question.is_some_and(|it| matches!(it.stage, QuestionState::Answered(_))) {
            return false;
        }
        if !self.permissions.tries_first && !self.judge.tries_first() {
            return false;
        }
        let setting = self.services.config.try_first;
        match self.trial_sort(reviewed) {
            None => false,
            Some(Sort::Changes) => setting == TryFirst::Changes,
            Some(_) => setting != TryFirst::Never,
        }
    }

    /// Notes that the person wants to try the next command. With `later`, co also tries later ones of the workspace.
    pub(super) async fn want_trial(&mut self, later: bool) -> Result<(), Halt> {
        if let Some(next) = self.queue.next() {
            (next.trial, next.question) = (Trial::Wanted, None);
        }
        if later {
            self.allow(Allowance::TryFirst(self.workspace.clone()))
                .await?;
        }
        Ok(())
    }

    /// Runs the next command as a trial, unless it needs none. If it changed nothing, its outcome goes to the model.
    /// Otherwise the question about it shows what it changed. Returns whether a trial has run.
    pub(super) async fn try_next(&mut self) -> Result<bool, Halt> {
        let Some(mut next) = self.queue.pop() else {
            return Ok(false);
        };
        let is_tried = self.is_tried_first(&next);
        let known = std::mem::replace(&mut next.known, Err(String::new()));
        let reviewed = match known {
            Ok(ParsedCall::Command(reviewed)) if is_tried => reviewed,
            known => {
                next.known = known;
                self.queue.put_back(next);
                return Ok(false);
            }
        };
        next.trial = Trial::Running;
        self.queue.put_back(next);
        let trial = self.run_trial(reviewed).await?;
        let Some(next) = self.queue.next() else {
            return Ok(true);
        };
        match trial {
            Trial::Ended(ended) if ended.needs_no_answer() => {
                let call = next.call.clone();
                self.queue.pop();
                self.calls_ended += 1;
                let told = ended.told();
                let result = ended.result.told(told);
                self.conclude(&call, result.noted("tried: it changed nothing"))
                    .await?;
            }
            trial => next.trial = trial,
        }
        Ok(true)
    }

    async fn run_trial(&mut self, reviewed: ReviewedCommand) -> Result<Trial, Halt> {
        let (dir, workspace) = (
            self.services.places.trials.clone(),
            self.judge.root().to_owned(),
        );
        let Some(launcher) = self.services.executor.launcher() else {
            return Ok(Trial::Failed("nothing can confine it here".to_owned()));
        };
        let removals = launcher.removals().clone();
        let layer = match blocking(move || Layer::new(&dir, &removals)).await {
            Ok(layer) => layer,
            Err(why) => return Ok(Trial::Failed(why)),
        };
        let allowed = AllowedCommand {
            context: ExecContext {
                cwd: reviewed.cwd,
                confinement: Confinement::Trial {
                    workspace: workspace.clone(),
                    layer: layer.path(),
                },
                unasked: true,
            },
            call: reviewed.call,
            request: reviewed.request,
            judged: reviewed.judged,
            edited: reviewed.edited,
            decision: Decision::Tried,
        };
        let running = match self.start(&allowed).await? {
            Ok(StartedCommand::Foreground(running)) => running,
            Ok(StartedCommand::Background(_)) => return Ok(Trial::None),
            Err(why) => {
                let (judged, decision) = (&allowed.judged, &allowed.decision);
                self.audit(&allowed.call, judged, decision, CallOutcome::Nothing);
                return Ok(Trial::Failed(why));
            }
        };
        self.show(ChatEvent::Decision(Decision::Tried)).await?;
        let (outcome, result) = self.follow(&allowed, running).await?;
        if self.cancel.is_cancelled() {
            self.conclude(&allowed.call, result).await?;
            return Err(Halt::Cancelled);
        }
        let failed = self.conditions(&allowed).may_be_to_blame(&outcome);
        let (checkpoints, judge) = (
            Arc::clone(&self.services.checkpoints),
            Arc::clone(&self.judge),
        );
        let read = blocking(move || {
            let store = checkpoints.store().map_err(|error| error.to_string())?;
            let changes = TrialChanges::read(&layer, judge.root(), &judge.readable(), &store);
            let changes = changes.map_err(|error| error.to_string())?;
            // A yes would run the command again, so there is nothing to review.
            let files = match failed || !changes.git.is_empty() {
                true => Vec::new(),
                false => files_in_parts(&changes, &store),
            };
            let change = shown_change(&changes, &files, &store);
            Ok::<_, String>((changes, files, change))
        });
        Ok(match read.await {
            Err(why) => Trial::Failed(why),
            Ok((changes, files, change)) => Trial::Ended(Box::new(EndedTrial {
                summary: summary(&outcome, &changes, failed),
                change,
                changes,
                files,
                result,
            })),
        })
    }

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
        match &decision {
            decision if decision.lets_run() && runs_again => {
                return self.run_allowed(reviewed, decision.clone()).await;
            }
            Decision::Withdrawn => {
                return self
                    .refuse(&reviewed.call, &reviewed.judged, decision)
                    .await;
            }
            _ => {}
        }
        self.record(Item::Decision {
            call: reviewed.call.id.clone(),
            decision: decision.clone(),
        })
        .await?;
        self.audit_decision(&reviewed.call, &reviewed.judged, (&decision, "co itself"))
            .await;
        self.show(ChatEvent::Decision(decision.clone())).await?;
        let (told, noted) = match refusal(&decision) {
            None => {
                let what = reviewed.request.text();
                self.keep_accepted(what, decision.clone(), &mut ended, hunks)
                    .await
            }
            Some(why) => dropped_words(&why, runs_again),
        };
        let result = ended.result.told(&told).noted(&noted);
        self.audit(
            &reviewed.call,
            &reviewed.judged,
            &decision,
            CallOutcome::Look(&noted),
        );
        self.conclude(&reviewed.call, result).await
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
        let changes = match self.accept(ended, hunks).await {
            Ok(()) => std::mem::take(&mut ended.changes),
            Err(why) => return not_kept(&why),
        };
        let notes = changes.notes(MOST_NAMED);
        let (mut told, noted) = self.keep_trial(what, decision, changes).await;
        told.extend(review);
        told.extend(notes.iter().map(|note| format!(" Note: {note}.")));
        told.extend(comments.map(|it| format!(" The person says: {it}")));
        (told, noted)
    }

    /// Leaves the parts that the person accepted; all without a review.
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
        let accepted = move || {
            let store = checkpoints.store().map_err(|error| error.to_string())?;
            accepted(changes, &files, &hunks, &store)
        };
        ended.changes = blocking(accepted).await?;
        Ok(())
    }

    /// Makes the changes of a trial in the workspace. Returns what was kept, for the model and for the person.
    async fn keep_trial(
        &self,
        what: String,
        decision: Decision,
        changes: TrialChanges,
    ) -> (String, String) {
        let root = self.judge.root().to_owned();
        let files: Vec<_> = (changes.changes.iter())
            .map(|it| root.join(&it.path))
            .collect();
        let open = self
            .services
            .buffers
            .read(files.iter().map(PathBuf::as_path))
            .await;
        let (checkpoints, place) = (Arc::clone(&self.services.checkpoints), root.clone());
        let plan = blocking(move || {
            let store = checkpoints.store()?;
            let plan = Undo::making(&changes.changes, &place, &store, &open, Overlap::Refuse);
            Ok::<_, std::io::Error>(plan)
        });
        let mut plan = match plan.await {
            Ok(plan) => plan,
            Err(why) => return not_kept(&why),
        };
        let refused = std::mem::take(&mut plan.kept);
        let unsaved = plan.buffers.iter().map(|(_, change)| change.path.display());
        let unsaved: Vec<_> = unsaved.map(|path| path.to_string()).collect();
        let by = By::Call {
            what: what.clone(),
            decision,
            command: false,
        };
        if plan.all().is_empty() && refused.is_empty() {
            return (
                "It ran as a trial, and nothing was kept.".to_owned(),
                "nothing was kept".to_owned(),
            );
        }
        let planned = CallChanges {
            changes: plan.all().into_iter().cloned().collect(),
            ..CallChanges::default()
        };
        // So `/undo` knows them if co is killed meanwhile.
        self.append_record(by.clone(), planned, true).await;
        let command = what.clone();
        let on_disk = move |checkpoints: &Checkpoints, plan: Undo, root: &std::path::Path| {
            checkpoints.keep(plan, root, &command)
        };
        let applied = undo::apply(&self.services, &root, plan, on_disk).await;
        let mut done = match applied {
            Ok(done) => done,
            Err(why) => return not_kept(&why),
        };
        let made = CallChanges {
            changes: done.changes.clone(),
            ..CallChanges::default()
        };
        self.append_record(by, made, false).await;
        done.failed.extend(refused);
        let (mut told, noted) = kept_words(&done);
        if !unsaved.is_empty() {
            told.push_str(&format!(
                " The change is in the buffer only, because it has unsaved changes: {}. Commands see the file without it until the \
                 person saves it.",
                undo::named(unsaved)
            ));
        }
        (told, noted)
    }
}

/// Returns that the person or a rule refused, for the model and for the person.
fn dropped_words(why: &str, runs_again: bool) -> (String, String) {
    let told = match runs_again {
        true => format!("It ran as a trial only, and was not allowed to run outside of one. {why}"),
        false => format!("It ran as a trial, and what it changed is dropped. {why}"),
    };
    (told, "its changes are dropped".to_owned())
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
    let paths: Vec<_> = done
        .changes
        .iter()
        .map(|it| it.path.display().to_string())
        .collect();
    let named = undo::named(paths);
    let failed: Vec<_> = (done.failed.iter())
        .map(|(path, why)| format!("{}: {why}", path.display()))
        .collect();
    let count = undo::files(done.changes.iter().filter(|it| !it.is_directory()).count());
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
