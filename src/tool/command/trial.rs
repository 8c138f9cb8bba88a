//! A command that runs as a trial, in a layer over the workspace. Afterwards, the question about the command shows what it
//! changed, and the answer keeps or drops that.

use std::sync::Arc;

use super::request::ExecContext;
use super::run::{AllowedCommand, StartedCommand};
use super::{CommandCall, JudgedCommand};
use crate::checkpoint::{self, By, CallChanges};
use crate::config::TryFirst;
use crate::protocol::{Change, HunkAnswer, TrialSummary};
use crate::text::{MOST_NAMED, one_line};
use crate::tool::audit_lines::CallOutcome;
use crate::tool::call::{Approved, CANCELLED, CallResult, PlannedCall, Resolution, refusal};
use crate::tool::context::{CallContext, Halt};
use crate::tool::permissions::TurnMemory;
use crate::tool::tried::{self, Kept, TriedCommand};
use crate::trial::Fate;
use crate::workspace::edits;
use co_exec::Caller;
use co_llm::transcript::Decision;
use co_policy::Sort;

/// The remark for the person about a trial of which nothing is kept.
const DROPPED: &str = "its changes are dropped";

/// The trial of a command that waits to run.
#[derive(Default)]
pub(super) enum Trial {
    #[default]
    None,
    /// The person asked for it.
    Wanted,
    /// It could not run, or co could not read what it changed: the reason.
    Failed(String),
    Ended(Box<EndedTrial>),
}

/// A trial that has ended, and the result of its command.
pub(super) struct EndedTrial {
    pub tried: TriedCommand,
    result: CallResult,
}

/// The end of a trial.
pub(super) enum TrialEnd {
    Ended(Box<EndedTrial>),
    /// It could not run, or co could not read what it changed: the reason.
    Failed(String),
    /// The turn was cancelled.
    Cancelled(Box<CallResult>),
}

impl Trial {
    /// Takes a trial that has ended.
    pub(super) fn take(&mut self) -> Option<Box<EndedTrial>> {
        match std::mem::take(self) {
            Self::Ended(ended) => Some(ended),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Returns whether a yes keeps what the trial changed.
    pub(super) fn is_to_keep(&self) -> bool {
        matches!(self, Self::Ended(ended) if !ended.tried.summary.runs_again)
    }

    /// Returns the result of the command and what it changed, for the question.
    pub(super) fn for_question(&self) -> (Option<TrialSummary>, Option<Change>) {
        match self {
            Self::Ended(ended) => {
                let tried = &ended.tried;
                (Some(tried.summary.clone()), tried.change.clone())
            }
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

impl CommandCall {
    /// Returns the worst sort of a command that can run as a trial and needs an answer; none for others.
    pub(super) fn trial_sort(&self, context: &CallContext, memory: &TurnMemory) -> Option<Sort> {
        if self.request.mode.background || context.services.probe.in_container() {
            return None;
        }
        match self.resolve(context, memory) {
            Resolution::Ask(question) => question.trial,
            _ => None,
        }
    }

    /// Returns whether the person may try the command.
    pub(super) fn may_try(&self, context: &CallContext, memory: &TurnMemory) -> bool {
        matches!(self.trial, Trial::None) && self.trial_sort(context, memory).is_some()
    }

    /// Returns the reason why co asks about a command that it would have tried first; none for others.
    pub(super) fn asked_for_real(
        &self,
        context: &CallContext,
        memory: &TurnMemory,
    ) -> Option<String> {
        (self.request.real && self.is_tried_by_rule(context, memory))
            .then(|| "the model asks to run it for real, not as a trial".to_owned())
    }

    /// Returns whether the person wants commands like this one to be tried first.
    pub(super) fn is_tried_by_rule(&self, context: &CallContext, memory: &TurnMemory) -> bool {
        if !memory.permissions.tries_first && !context.judge.tries_first() {
            return false;
        }
        let setting = context.services.config.try_first;
        match self.trial_sort(context, memory) {
            None => false,
            Some(Sort::Changes) => setting == TryFirst::Changes,
            Some(_) => setting != TryFirst::Never,
        }
    }
}

impl JudgedCommand {
    /// Runs the command as a trial. `id` is that of the call.
    pub(super) async fn try_out(
        self,
        id: String,
        edited: bool,
        context: &CallContext,
    ) -> Result<TrialEnd, Halt> {
        let services = &context.services;
        let place = match tried::begin(services, Arc::clone(&context.judge)).await {
            Ok(place) => place,
            Err(why) => return Ok(TrialEnd::Failed(why)),
        };
        let allowed = AllowedCommand {
            exec: ExecContext {
                cwd: self.cwd,
                confinement: place.confinement(),
                unasked: true,
            },
            request: self.request,
            judged: self.judged,
            edited,
            approved: Approved {
                id,
                decision: Some(Decision::Tried),
                hunks: None,
                may_hint: false,
            },
        };
        let running = match allowed.start(context).await? {
            StartedCommand::Foreground(running) => running,
            StartedCommand::Background(_) => {
                return Ok(TrialEnd::Failed("a job is no trial".to_owned()));
            }
            StartedCommand::Not(why) => {
                allowed.audit_nothing(context);
                return Ok(TrialEnd::Failed(why));
            }
            StartedCommand::Cancelled => {
                return Ok(TrialEnd::Cancelled(Box::new(CallResult::answer(CANCELLED))));
            }
        };
        allowed.approved.show(context).await?;
        let (outcome, result) = allowed.follow(running, context).await?;
        let failed = allowed.conditions(context).may_be_to_blame(&outcome);
        let read = TriedCommand::read(services, place, (&outcome, Caller::Agent), failed);
        Ok(match context.unless_cancelled(read).await {
            Err(_) => {
                let told = "It ran as a trial, and what it changed is dropped.";
                TrialEnd::Cancelled(Box::new(result.told(told).noted(DROPPED)))
            }
            Ok(Err(why)) => TrialEnd::Failed(why),
            Ok(Ok(tried)) => TrialEnd::Ended(Box::new(EndedTrial { tried, result })),
        })
    }

    /// Keeps what the trial changed, or the parts that the person accepted in a review.
    pub(super) async fn keep(
        self,
        mut ended: Box<EndedTrial>,
        context: &CallContext,
        approved: Approved,
    ) -> Result<CallResult, Halt> {
        let (id, decision) = (&approved.id, approved.decision());
        let decided = (&decision, "co itself");
        context.audit_decision(id, &self.judged, decided).await;
        approved.show(context).await?;
        let hunks = approved.hunks;
        let comments = hunks.as_deref().and_then(edits::comments);
        let by = By::Call {
            what: self.request.text(),
            decision: decision.clone(),
            command: false,
        };
        let kept = keep_accepted(by, &mut ended.tried, hunks.clone(), context);
        let (told, noted) = kept.await;
        let noted = with_answer(noted, hunks.as_deref());
        let mut result = ended.result.told(&told).noted(&noted);
        if let Some(comments) = comments {
            let said = format!("✎ {}", one_line(&comments));
            result.shown.notice.get_or_insert(said);
        }
        context.audit(id, &self.judged, &decision, CallOutcome::Look(&noted));
        Ok(result)
    }
}

impl EndedTrial {
    /// Returns the result of a command whose changes the person or a rule refused.
    pub(super) fn refused(self, decision: &Decision, hunks: Option<&[HunkAnswer]>) -> CallResult {
        let why = refusal(decision);
        let told = match (decision, self.tried.summary.runs_again) {
            (Decision::Withdrawn, _) => {
                "It ran as a trial, and what it changed is dropped: nobody answered whether to keep it.".to_owned()
            }
            (_, true) => {
                format!("It ran as a trial only, and was not allowed to run outside of one. {why}")
            }
            (_, false) => format!("It ran as a trial, and what it changed is dropped. {why}"),
        };
        let noted = with_answer(DROPPED.to_owned(), hunks);
        CallResult {
            effect: Some(noted.clone()),
            ..self.result.told(&told).noted(&noted)
        }
    }

    /// Returns the result of a trial that needs no answer.
    pub(super) fn result(self) -> CallResult {
        let (told, noted) = self.effect();
        self.result.told(&told).noted(&noted)
    }

    /// Returns the effect of a trial that needs no answer, for the model and for the person.
    fn effect(&self) -> (String, String) {
        let ignored = &self.tried.changes.ignored;
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
}

/// Adds the person's answer in a review to a remark.
fn with_answer(noted: String, hunks: Option<&[HunkAnswer]>) -> String {
    match hunks.and_then(edits::answer_in_words) {
        None => noted,
        Some(answer) => format!("{noted} · {answer}"),
    }
}

/// Keeps what the person accepted. Returns what was kept and what was not, for the model and for the person.
async fn keep_accepted(
    by: By,
    tried: &mut TriedCommand,
    hunks: Option<Vec<HunkAnswer>>,
    context: &CallContext,
) -> (String, String) {
    let comments = hunks.as_deref().and_then(edits::comments);
    let review = hunks.as_deref().map(|all| {
        let kept = all.iter().filter(|it| it.accept).count();
        format!(" In a review, they kept {kept} of {} parts.", all.len())
    });
    if let Err(why) = tried.accept(hunks).await {
        return not_kept(&why);
    }
    let ((mut told, noted), kept_all) = match keep_trial(by, tried, context).await {
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
    by: By,
    tried: &TriedCommand,
    context: &CallContext,
) -> Result<((String, String), bool), String> {
    let plan = tried.plan(&context.services).await?;
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
    context.try_append(by.clone(), planned, true).await?;
    let kept = match plan.carry_out(&context.services, by.clone()).await {
        Ok(kept) => kept,
        Err(why) => {
            // If this fails too, `/undo` finds the files as they were before, and changes none.
            let nothing = CallChanges::default();
            context.try_append(by, nothing, false).await.ok();
            return Err(why);
        }
    };
    let made = CallChanges {
        changes: kept.done.changes.clone(),
        ..CallChanges::default()
    };
    context.append_record(by, made, false).await;
    Ok(((kept_words(&kept), kept.noted()), kept.is_all()))
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
        false => checkpoint::named(paths),
    };
    let mut told = match kept.failed() {
        None => format!("It ran as a trial, and the person kept what it changed: {named}."),
        Some(failed) => format!("It ran as a trial. Kept: {named}. Not kept: {failed}."),
    };
    if !kept.unsaved.is_empty() {
        told.push_str(&format!(
            " The change is in the buffer only, because it has unsaved changes: {}. Commands see the file without it until the \
             person saves it.",
            checkpoint::named(kept.unsaved.clone())
        ));
    }
    told
}
