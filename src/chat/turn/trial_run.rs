//! Runs commands as trials, in a layer over the workspace. Afterwards, the question about a command shows what it changed.

use std::sync::Arc;

use super::super::tried::{self, TriedCommand};
use super::Turn;
use super::audit_records::CallOutcome;
use super::call::{AllowedCommand, ParsedCall, ReviewedCommand};
use super::call_queue::{QuestionState, QueuedCall};
use super::event::Halt;
use super::permissions::Allowance;
use super::question::Resolution;
use super::run::StartedCommand;
use super::trial::{EndedTrial, Trial};
use super::trial_keep::DROPPED;
use crate::config::TryFirst;
use crate::tool::event::CallEvent;
use crate::tool::shell::ExecContext;
use co_exec::Caller;
use co_llm::transcript::Decision;
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
        question.trial
    }

    /// Returns whether the person may try a command.
    pub(super) fn may_try(&self, waiting: &QueuedCall) -> bool {
        match (&waiting.known, &waiting.trial) {
            (Ok(ParsedCall::Command(reviewed)), Trial::None) => self.trial_sort(reviewed).is_some(),
            _ => false,
        }
    }

    /// Returns the reason why co asks about a command that it would have tried first; none for others.
    pub(super) fn asked_for_real(&self, reviewed: &ReviewedCommand) -> Option<String> {
        (reviewed.request.real && self.tries_first(reviewed))
            .then(|| "the model asks to run it for real, not as a trial".to_owned())
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
        !reviewed.request.real && self.tries_first(reviewed)
    }

    /// Returns whether the person wants commands like this one to be tried first.
    fn tries_first(&self, reviewed: &ReviewedCommand) -> bool {
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
        let is_tried = |next: &QueuedCall| self.is_tried_first(next);
        if !self.queue.first().is_some_and(is_tried) {
            return Ok(false);
        }
        let Some(reviewed) = self.queue.next().and_then(QueuedCall::take_command) else {
            return Ok(false);
        };
        let trial = self.run_trial(reviewed).await?;
        let Some(next) = self.queue.next() else {
            return Ok(true);
        };
        match trial {
            Trial::Ended(ended) if ended.tried.needs_no_answer() => {
                let call = next.call.clone();
                self.queue.pop();
                self.calls_ended += 1;
                let (told, noted) = ended.effect();
                let result = ended.result.told(&told).noted(&noted);
                self.conclude(&call, result).await?;
            }
            trial => next.trial = trial,
        }
        Ok(true)
    }

    async fn run_trial(&mut self, reviewed: ReviewedCommand) -> Result<Trial, Halt> {
        let place = match tried::begin(&self.services, Arc::clone(&self.judge)).await {
            Ok(place) => place,
            Err(why) => return Ok(Trial::Failed(why)),
        };
        let allowed = AllowedCommand {
            context: ExecContext {
                cwd: reviewed.cwd,
                confinement: place.confinement(),
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
            Ok(StartedCommand::Background(_)) => {
                return Ok(Trial::Failed("a job is no trial".to_owned()));
            }
            Err(why) => {
                let (judged, decision) = (&allowed.judged, &allowed.decision);
                self.audit(&allowed.call, judged, decision, CallOutcome::Nothing);
                return Ok(Trial::Failed(why));
            }
        };
        self.show(CallEvent::Decision(Decision::Tried)).await?;
        let (outcome, result) = self.follow(&allowed, running).await?;
        let failed = self.conditions(&allowed).may_be_to_blame(&outcome);
        let read = tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            read = TriedCommand::read(&self.services, place, (&outcome, Caller::Agent), failed) => Some(read),
        };
        let Some(read) = read else {
            let told = "It ran as a trial, and what it changed is dropped.";
            let result = result.told(told).noted(DROPPED);
            self.conclude(&allowed.call, result).await?;
            return Err(Halt::Cancelled);
        };
        Ok(match read {
            Err(why) => Trial::Failed(why),
            Ok(tried) => Trial::Ended(Box::new(EndedTrial { tried, result })),
        })
    }
}
