//! Runs a command as a trial in a layer over the workspace. Afterwards, the question about the command shows its changes, and the
//! answer keeps or drops them.

use std::sync::Arc;

use super::{CommandCall, JudgedCommand};
use crate::checkpoint::{self, CallChanges, ChangeCause};
use crate::config::{Network, TryFirst};
use crate::network::HostReport;
use crate::protocol::{Change, HunkAnswer, TrialSummary};
use crate::tool::call::{
    CO_ITSELF, CallEffect, CallResult, DecidedCall, NotRun, ReadyCall, RunningCall, joined, refusal,
};
use crate::tool::context::{CallContext, CallHalt};
use crate::tool::permissions::TurnMemory;
use crate::tool::tried::{self, KeepResult, TriedCommand};
use crate::trial::IgnoredFilesFate;
use crate::workspace::edits;
use co_exec::Caller;
use co_llm::transcript::Decision;
use co_policy::{ApprovalQuestion, PossibleTrial, Sort};
use co_text::{MOST_NAMED, one_line};

/// The remark for the person about a trial whose changes are dropped.
const DROPPED: &str = "its changes are dropped";

/// The trial of a command that has not run for real.
#[derive(Default, Clone)]
pub(super) enum Trial {
    #[default]
    None,
    /// The person asked for the trial.
    Wanted,
    /// The reason why the trial could not run, or why co could not read its changes.
    Failed(String),
    Ended(Arc<EndedTrial>),
}

/// A trial that has ended, and the result of its command.
#[derive(Clone)]
pub(super) struct EndedTrial {
    pub tried: TriedCommand,
    result: CallResult,
    hosts: HostReport,
}

/// The facts that decide whether a command runs as a trial before its question.
#[derive(Default, Clone, Copy)]
pub(super) struct TrialChoice {
    /// True if the command needs an answer and can run as a trial.
    pub is_possible: bool,
    /// True if the person has allowed co to try commands of the workspace before it asks, and the setting `try_first` includes
    /// this sort of command.
    pub by_rule: bool,
}

/// A command that ran as a trial.
pub struct TriedCall {
    /// The outcome of the command, for the audit file.
    pub effect: Option<CallEffect>,
    pub after: AfterTrial,
}

/// The next step after a trial.
pub enum AfterTrial {
    /// The person must be asked about this call.
    Ask(CommandCall),
    /// The call has ended: the trial needs no answer, or the turn was cancelled.
    Ended(Box<CallResult>),
}

impl Trial {
    /// Returns the trial, if it has ended.
    pub(super) fn ended(&self) -> Option<&EndedTrial> {
        match self {
            Self::Ended(ended) => Some(ended),
            _ => None,
        }
    }

    /// Returns true if a yes of the person keeps the changes of the trial.
    pub(super) fn is_to_keep(&self) -> bool {
        self.ended().is_some_and(|it| !it.tried.summary.runs_again)
    }

    /// Returns the result of the command and its changes, for the question.
    pub(super) fn for_question(&self) -> (Option<TrialSummary>, Option<Change>) {
        let tried = self.ended().map(|ended| &ended.tried);
        tried.map_or((None, None), |tried| {
            (Some(tried.summary.clone()), tried.change.clone())
        })
    }

    /// Returns a sentence about a trial that could not run, or whose changes could not be read. Returns `None` for any other
    /// trial.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::Failed(why) => Some(format!("its trial failed: {why}")),
            _ => None,
        }
    }
}

impl CommandCall {
    /// Returns the facts that decide whether the command runs as a trial before co asks this question.
    pub(super) fn trial_choice(
        &self,
        asking: &ApprovalQuestion,
        context: &CallContext,
        memory: &TurnMemory,
    ) -> TrialChoice {
        let barred = self.request.mode.background || context.services.probe.in_container();
        let config = &context.services.config;
        let gets_hosts = config.sandbox_network == Network::Ask;
        let trial = asking.trial.filter(|it| gets_hosts || !it.fetches);
        let Some(PossibleTrial { sort, .. }) = trial.filter(|_| !barred) else {
            return TrialChoice::default();
        };
        let setting = config.try_first;
        let is_wanted = memory.permissions.tries_first || context.judge.tries_first();
        TrialChoice {
            is_possible: true,
            by_rule: is_wanted
                && match sort {
                    Sort::Changes => setting == TryFirst::Changes,
                    _ => setting != TryFirst::Never,
                },
        }
    }

    fn with_trial(self, trial: Trial) -> Self {
        Self { trial, ..self }
    }
}

impl JudgedCommand {
    /// Returns true if the command runs as a trial before co asks about it. `answered` says that the person has already answered.
    pub fn is_tried_first(&self, answered: bool) -> bool {
        match self.call.trial {
            Trial::Wanted => self.trial.is_possible,
            Trial::Failed(_) | Trial::Ended(_) => false,
            Trial::None => !answered && !self.call.request.real && self.trial.by_rule,
        }
    }

    /// Returns a copy of the call with the state `Trial::Wanted`: the person asked for a trial.
    pub fn wanting_trial(&self) -> CommandCall {
        self.call.clone().with_trial(Trial::Wanted)
    }

    /// Returns a copy of the call with the state `Trial::Failed`. `why` is the reason.
    pub fn with_failed_trial(&self, why: String) -> CommandCall {
        self.call.clone().with_trial(Trial::Failed(why))
    }

    /// Drops the changes of an ended trial. Returns false if there is no such trial.
    pub fn drop_trial(&mut self) -> bool {
        let has_ended = self.call.trial.ended().is_some();
        if has_ended {
            self.call.trial = Trial::None;
        }
        has_ended
    }

    /// Prepares everything for a trial of the command.
    ///
    /// # Errors
    /// The command cannot run as a trial, or the turn must end.
    pub async fn ready_for_trial(
        &self,
        context: &Arc<CallContext>,
        decided: &DecidedCall,
    ) -> Result<ReadyCall<TriedCall>, NotRun> {
        let place = tried::begin(&context.services, Arc::clone(&context.judge)).await;
        let place = place.map_err(NotRun::Because)?;
        let allowed = self.allowed(place.confinement(), decided);
        let (call, context) = (self.call.clone(), Arc::clone(context));
        Ok(ReadyCall {
            level: Some(allowed.exec.confinement.name()),
            runs: Some(allowed.request.text()),
            start: Box::pin(async move {
                allowed.before_start(&context).await?;
                let running = allowed.execute(&context, context.to_chat.clone()).await?;
                let rest: RunningCall<TriedCall> = Box::pin(async move {
                    let (outcome, mut result) = allowed.follow(running, &context).await?;
                    let failed = allowed.conditions(&context).may_be_to_blame(&outcome);
                    let services = &context.services;
                    let read =
                        TriedCommand::read(services, place, (&outcome, Caller::Agent), failed);
                    let read = context.unless_cancelled(read).await;
                    let effect = result.effect.take();
                    let hosts = effect.as_ref().map(|it| it.hosts.clone());
                    let after = call.after_trial(read, result, hosts.unwrap_or_default());
                    Ok(TriedCall { effect, after })
                });
                Ok(rest)
            }),
        })
    }

    /// Keeps the changes of the trial, or only the parts that the person accepted in a review.
    pub(super) fn keep(
        self,
        mut ended: EndedTrial,
        context: Arc<CallContext>,
        decided: DecidedCall,
    ) -> ReadyCall {
        ReadyCall::new(Some(CO_ITSELF), None, async move {
            let by = ChangeCause::change(self.request.text(), decided.decision());
            let hunks = decided.hunks;
            let comments = hunks.as_deref().and_then(edits::comments);
            let kept = keep_accepted(by, &mut ended.tried, hunks.clone(), &context);
            let (told, noted) = kept.await;
            let noted = with_answer(noted, hunks.as_deref());
            let mut result = ended.result.told(&told).noted(&noted);
            if let Some(comments) = comments {
                let said = format!("✎ {}", one_line(&comments));
                result.shown.notice.get_or_insert(said);
            }
            result.effect = Some(CallEffect::of_co(noted));
            Ok(result)
        })
    }
}

impl CommandCall {
    /// Returns the next step after the changes of a trial were read. If the turn was cancelled meanwhile, the call has ended.
    /// `result` is the result of the command, and `hosts` are the hosts that it wanted to contact.
    fn after_trial(
        self,
        read: Result<Result<TriedCommand, String>, CallHalt>,
        result: CallResult,
        hosts: HostReport,
    ) -> AfterTrial {
        let mut tried = match read {
            Ok(Ok(tried)) => tried,
            Ok(Err(why)) => return AfterTrial::Ask(self.with_trial(Trial::Failed(why))),
            Err(_) => {
                let told = "It ran as a trial, and what it changed is dropped.";
                return AfterTrial::Ended(Box::new(result.told(told).noted(DROPPED)));
            }
        };
        let needs_no_answer = tried.needs_no_answer();
        tried.summary.notes.extend(hosts.words());
        let ended = EndedTrial {
            tried,
            result,
            hosts,
        };
        match needs_no_answer {
            true => AfterTrial::Ended(Box::new(ended.result())),
            false => AfterTrial::Ask(self.with_trial(Trial::Ended(Arc::new(ended)))),
        }
    }
}

impl EndedTrial {
    /// Returns the result of a command whose changes the person or a rule rejected.
    pub(super) fn refused(&self, decision: &Decision, hunks: Option<&[HunkAnswer]>) -> CallResult {
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
            effect: Some(CallEffect::of_co(&*noted)),
            ..self.result.clone().told(&told).noted(&noted)
        }
    }

    /// Returns the result of a trial that needs no answer.
    fn result(self) -> CallResult {
        let (told, noted) = self.effect();
        self.result.told(&told).noted(&noted)
    }

    /// Returns two texts about a trial that needs no answer: the first for the model, the second for the person.
    fn effect(&self) -> (String, String) {
        let ignored = &self.tried.changes.ignored;
        let reached = self.hosts.reached();
        let Some(unchanged) = ignored.unchanged() else {
            let network = match &reached {
                Some(reached) => format!("; {reached}"),
                None => ", without network".to_owned(),
            };
            return (
                format!(
                    "The command ran as a trial{network}. It changed no file of the workspace; what it wrote to /tmp is gone."
                ),
                joined(&["tried: it changed nothing", &reached.unwrap_or_default()]),
            );
        };
        let fate = match ignored.fate {
            IgnoredFilesFate::Stay => "Later trials see these changes, other commands do not",
            _ => "These changes are dropped",
        };
        let told = format!(
            "The command ran as a trial. It changed only files that git ignores. {fate}: outside of the trial, {unchanged}. If these \
             files must change, call it again with `real`; the person is then asked."
        );
        let noted =
            format!("tried: it changed only ignored files, {unchanged}; /real runs it for real");
        (told, joined(&[&noted, &reached.unwrap_or_default()]))
    }
}

/// Adds the person's answers of a review to a remark.
fn with_answer(noted: String, hunks: Option<&[HunkAnswer]>) -> String {
    match hunks.and_then(edits::answer_in_words) {
        None => noted,
        Some(answer) => format!("{noted} · {answer}"),
    }
}

/// Keeps the changes that the person accepted. Returns two texts about the kept and the dropped changes: the first for the model,
/// the second for the person.
async fn keep_accepted(
    by: ChangeCause,
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

/// Makes the changes of a trial in the workspace. Returns two texts about the kept changes: the first for the model, the second
/// for the person. Also returns true if all changes are in the files now.
///
/// # Errors
/// The reason why no change was kept.
async fn keep_trial(
    by: ChangeCause,
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

/// Returns two texts that say that no change was kept: the first for the model, the second for the person.
fn not_kept(why: &str) -> (String, String) {
    (
        format!("It ran as a trial. Its changes could not be kept: {why}."),
        format!("its changes were not kept: {why}"),
    )
}

/// Returns the text about the kept changes for the model.
fn kept_words(kept: &KeepResult) -> String {
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
