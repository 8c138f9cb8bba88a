//! Carries out the calls of one step. The read-only calls at the start of a step run in parallel. From the first other call on,
//! the calls run one by one. The results are recorded in the order of the calls.
//!
//! The turn sends all questions to the person at once, except those about calls that collect facts and about commands that co
//! tries first. After each call, the turn judges the waiting calls again. If the text of a question has changed, the turn asks
//! the question again. It withdraws the questions that are no longer needed.

use std::path::Path;

use tokio::sync::oneshot;

use super::Turn;
use super::event::{Halt, TurnEvent};
use super::loop_limits::Repetition;
use super::queue::{CallQuestion, CallQueue, NextCall, QuestionEnd, QuestionState, QueuedCall};
use super::requests::{MAX_CALLS, ProposedCall};
use crate::protocol::{ChatState, Question, RefusedEdit};
use crate::tool::call::{
    AskedQuestion, CANCELLED, CallAction, CallKind, CallResult, DecidedCall, NotRun, ReadyCall,
    Resolution, RunningCall, refusal,
};
use crate::tool::command::{AfterTrial, EditVerdict, EditedCommand, JudgedCommand};
use crate::tool::event::{CallEnd, CallEvent};
use crate::tool::permissions::{Allowance, Reply};
use crate::tool::{CallCheckpoint, context};
use crate::workspace::edits;
use co_exec::container::WORKSPACE_INSIDE;
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Call, Decision, Item, Outcome};

/// The names of those arguments of tools whose values are paths.
const PATH_ARGUMENTS: [&str; 4] = ["path", "from", "to", "cwd"];

/// The reason that a repeated question shows.
const ASKED_AGAIN: &str =
    "asked again: a command that ran meanwhile, or a setting, changed what it does";

/// The reason why co asks again about a command that the person wrote.
const NOT_UTF8: &str =
    "it is not all UTF-8: each byte that was not is now \u{fffd} and its two digits";

/// A call with a decision. It has started, or does not run.
struct BegunCall {
    call: Call,
    /// True if the call is on the screen.
    shown: bool,
    decided: DecidedCall,
    started: Result<StartedCall, NotRun>,
    /// The state of the files before the call; none if the call cannot change files.
    checkpoint: Option<CallCheckpoint>,
}

/// A call that runs.
struct StartedCall<T = CallResult> {
    shows_decision: bool,
    runs: Option<String>,
    rest: RunningCall<T>,
}

/// The answer to the question about the next call.
enum NextAnswer {
    /// The call needs no answer.
    NotAsked,
    /// The question was answered or withdrawn. The `AskedQuestion` is `None` if the turn was cancelled and the call needed no
    /// answer.
    Answered(QuestionEnd, Option<Box<AskedQuestion>>),
    /// A new permission or new settings may change the verdicts. The calls must be judged again.
    Changed,
}

impl Turn {
    /// Carries out the calls of a step. If it succeeds, the transcript has an outcome for each call.
    pub(super) async fn calls(&mut self, calls: Vec<ProposedCall>) -> Result<(), Halt> {
        self.renew();
        let calls = calls.into_iter().enumerate();
        let calls = calls.map(|(at, asked)| self.queued(at, asked)).collect();
        let mut queue = CallQueue::new(calls);
        let mut ahead = Vec::new();
        while let Some(next) = queue.get_mut(0) {
            self.context.judge.watch();
            next.judge(&self.context, &self.memory).await;
            if !runs_ahead(next) {
                break;
            }
            ahead.extend(queue.pop_judged());
        }
        self.run_side_by_side(ahead).await?;
        self.queue = queue;
        self.run_one_by_one().await
    }

    /// Parses a call and returns it as a call that waits.
    fn queued(&self, place: usize, asked: ProposedCall) -> QueuedCall {
        let planned = if place >= MAX_CALLS {
            Err(format!(
                "Not run: at most {MAX_CALLS} calls a step. Ask again for what is still needed."
            ))
        } else if let Some(why) = asked.unread {
            Err(why)
        } else {
            let call = match self.context.services.probe.in_container() {
                // The model may know only the names inside.
                true => outside_call(&self.context.workspace, asked.call.clone()),
                false => asked.call.clone(),
            };
            self.tools.parse(&call).map_err(|bad| bad.to_string())
        };
        QueuedCall::new(asked.call, planned)
    }

    /// Runs calls that need no answer in parallel. Shows them one after the other, in the order of the calls.
    async fn run_side_by_side(&mut self, ahead: Vec<NextCall>) -> Result<(), Halt> {
        let mut started = Vec::new();
        let mut done = Ok(());
        for next in ahead {
            match self.begin(next, None).await {
                Ok(call) => started.push(call),
                Err(halt) => done = Err(halt),
            }
            // The person may have cancelled meanwhile.
            if done.is_err() || self.context.cancel.is_cancelled() {
                break;
            }
        }
        // Each call that has started gets an outcome, even if the turn ends.
        for call in started {
            let finished = self.finish(call).await;
            done = done.and(finished);
        }
        done.and_then(|()| self.check_cancelled())
    }

    async fn run_one_by_one(&mut self) -> Result<(), Halt> {
        loop {
            self.check_cancelled()?;
            self.renew();
            // The last call may have changed files that the verdicts depend on.
            self.judge_queue().await;
            self.show_next().await?;
            // Before a trial, because it withdraws the question about the call.
            self.put_questions().await?;
            if self.try_next().await? {
                continue;
            }
            let answer = match self.answer_to_next().await? {
                NextAnswer::Changed => continue,
                NextAnswer::NotAsked => None,
                NextAnswer::Answered(QuestionEnd::Edited(edit), _) => {
                    self.edit_next(edit).await?;
                    continue;
                }
                NextAnswer::Answered(QuestionEnd::Reply(Reply::Try { later }), _) => {
                    self.want_trial(later).await?;
                    continue;
                }
                NextAnswer::Answered(answer, question) => Some((answer, question)),
            };
            let Some(mut next) = self.queue.pop_judged() else {
                return Ok(());
            };
            self.show_call(&next.call, &mut next.shown).await?;
            let begun = self.begin(next, answer).await?;
            self.finish(begun).await?;
            self.memory.calls_ended += 1;
        }
    }

    fn check_cancelled(&self) -> Result<(), Halt> {
        match self.context.cancel.is_cancelled() {
            true => Err(Halt::Cancelled),
            false => Ok(()),
        }
    }

    /// Shows a call, unless the call is already on the screen.
    async fn show_call(&self, call: &Call, shown: &mut bool) -> Result<(), Halt> {
        if !std::mem::replace(shown, true) {
            let shown = self.tools.shown(call);
            self.chat.show(CallEvent::Begun(shown)).await?;
        }
        Ok(())
    }

    /// Shows the next call, before the question about it is asked.
    async fn show_next(&mut self) -> Result<(), Halt> {
        let Some(next) = self.queue.get_mut(0) else {
            return Ok(());
        };
        if !matches!(next.judged(), Some(Ok(_))) || std::mem::replace(&mut next.shown, true) {
            return Ok(());
        }
        let shown = self.tools.shown(&next.call);
        Ok(self.chat.show(CallEvent::Begun(shown)).await?)
    }

    /// Decides whether a call runs, and starts the call if it does.
    async fn begin(
        &mut self,
        next: NextCall,
        answer: Option<(QuestionEnd, Option<Box<AskedQuestion>>)>,
    ) -> Result<BegunCall, Halt> {
        let NextCall {
            call,
            shown,
            judged,
        } = next;
        let (answer, question) = match answer {
            Some((answer, question)) => (Some(answer), question),
            None => (None, None),
        };
        let mut decided = DecidedCall {
            id: call.id.clone(),
            decision: None,
            audited: None,
            hunks: None,
            may_hint: !self.memory.hinted,
        };
        let mut checkpoint = None;
        let ready = match judged {
            Err(why) => Err(NotRun::Because(why)),
            Ok(mut judged) => {
                let answer = answer.map(|answer| real_answer(answer, &mut *judged.action));
                if let Some(QuestionEnd::Reply(Reply::Reviewed(hunks))) = &answer {
                    decided.hunks = Some(hunks.clone());
                }
                let decision = self.decision(judged.resolution, question.as_deref(), answer);
                decided.decision = decision.await?;
                decided.audited = judged.audited;
                let action = judged.action;
                match decided.decision.clone().filter(|it| !it.lets_run()) {
                    Some(decision) => Err(self.refused(action, &decision, &decided, question)),
                    None => {
                        checkpoint = self.checkpoint(&*action, &decided).await;
                        action.prepare(&self.context, &decided).await
                    }
                }
            }
        };
        let started = match self.start(&decided, ready).await {
            Err(NotRun::Halt(context::CallHalt::Unrecorded)) => return Err(Halt::Unrecorded),
            started => started,
        };
        Ok(BegunCall {
            call,
            shown,
            decided,
            started,
            checkpoint,
        })
    }

    /// Returns the result of a call that the person or a rule refuses, or whose question nobody answered.
    fn refused(
        &mut self,
        action: Box<dyn CallAction>,
        decision: &Decision,
        decided: &DecidedCall,
        question: Option<Box<AskedQuestion>>,
    ) -> NotRun {
        let result = action.refused(decision, decided.hunks.as_deref());
        let unanswered = *decision == Decision::Withdrawn && result.is_none();
        if unanswered && question.is_some() && self.context.cancel.is_cancelled() {
            self.unanswered.push(decided.id.clone());
        }
        let result = result.unwrap_or_else(|| CallResult::answer(refusal(decision)));
        NotRun::Refused(Box::new(result))
    }

    /// Records the decision about a call, writes the decision to the audit file, and starts the call.
    async fn start<T>(
        &self,
        decided: &DecidedCall,
        ready: Result<ReadyCall<T>, NotRun>,
    ) -> Result<StartedCall<T>, NotRun> {
        if let Some(decision) = decided.decision.clone() {
            let call = decided.id.clone();
            self.chat.record(Item::Decision { call, decision }).await?;
        }
        let ReadyCall { level, runs, start } = ready?;
        if self.context.cancel.is_cancelled() {
            return Err(NotRun::Halt(context::CallHalt::Cancelled));
        }
        if let Some(level) = level {
            self.context.audit_decision(decided, level).await;
        }
        Ok(StartedCall {
            shows_decision: level.is_some(),
            runs,
            rest: start.await?,
        })
    }

    /// Shows a decided call until its end, writes its outcome to the audit file, and records its result.
    async fn finish(&mut self, begun: BegunCall) -> Result<(), Halt> {
        let BegunCall {
            call,
            mut shown,
            decided,
            started,
            checkpoint,
        } = begun;
        self.show_call(&call, &mut shown).await?;
        let done = self.finish_shown(&call, &decided, started).await;
        if let Some(checkpoint) = checkpoint {
            self.context.keep_changes(checkpoint).await;
        }
        done
    }

    async fn finish_shown(
        &mut self,
        call: &Call,
        decided: &DecidedCall,
        started: Result<StartedCall, NotRun>,
    ) -> Result<(), Halt> {
        let runs = started.is_ok();
        let result = match started {
            Ok(started) => self.follow_started(decided, started).await?,
            Err(NotRun::Halt(context::CallHalt::Cancelled)) => {
                return self.conclude(call, CallResult::answer(CANCELLED)).await;
            }
            Err(NotRun::Halt(halt)) => return Err(halt.into()),
            Err(NotRun::Because(why)) => {
                self.show_decision(decided).await?;
                CallResult::not_run(why)
            }
            Err(NotRun::Refused(result)) => {
                self.show_decision(decided).await?;
                *result
            }
        };
        // The end of a job has a line of its own.
        if !runs || result.effect.is_some() {
            self.context.audit_outcome(decided, result.effect.clone());
        }
        if decided.decision == Some(Decision::Withdrawn) && result.effect.is_none() {
            self.check_cancelled()?;
        }
        self.conclude(call, result).await
    }

    async fn show_decision(&self, decided: &DecidedCall) -> Result<(), Halt> {
        if let Some(decision) = decided.decision.clone() {
            self.chat.show(CallEvent::Decision(decision)).await?;
        }
        Ok(())
    }

    /// Shows a running call until its end, and returns the result.
    async fn follow_started<T>(
        &mut self,
        decided: &DecidedCall,
        started: StartedCall<T>,
    ) -> Result<T, Halt> {
        if started.shows_decision {
            self.show_decision(decided).await?;
        }
        if let Some(what) = started.runs {
            self.chat.state(ChatState::Running, what).await?;
        }
        self.follow(started.rest).await
    }

    /// Waits for the result of a call's work. Meanwhile, handles the answers to questions about other calls.
    async fn follow<T>(
        &mut self,
        work: impl Future<Output = Result<T, context::CallHalt>>,
    ) -> Result<T, Halt> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done?),
                answered = self.queue.answered() => self.answered_early(answered).await?,
            }
        }
    }

    /// Saves the state of the files before a call during which files may change.
    async fn checkpoint(
        &self,
        action: &dyn CallAction,
        decided: &DecidedCall,
    ) -> Option<CallCheckpoint> {
        if decided.decision == Some(Decision::Unasked) {
            return None;
        }
        let what = action.changes_as()?;
        self.context.checkpoint(what, decided.decision()).await
    }

    /// Records the outcome of a call and shows its end. If the model repeats its calls, adds a hint about that to the outcome.
    pub(super) async fn conclude(&mut self, call: &Call, result: CallResult) -> Result<(), Halt> {
        let CallResult {
            told: RedactedText { mut text, hidden },
            ok,
            spill,
            images,
            shown,
            failed_confined,
            ended_job,
            hinted,
            streamed,
            effect: _,
        } = result;
        self.memory.hinted |= hinted;
        self.memory
            .permissions
            .learn(failed_confined.into_iter().collect());
        match self.limits.call(&call.name, &call.arguments, &text) {
            Repetition::Harmless => {}
            Repetition::Hint(hint) => {
                text.push_str("\n\n");
                text.push_str(&hint);
            }
            Repetition::End => self.repeats_calls = true,
        }
        let outcome = Outcome {
            call: call.id.clone(),
            text,
            ok,
            spill,
            hidden,
            shown: Some(shown.clone()),
            images,
        };
        let [first, end] = shown.output;
        let output = outcome.text.get(first..end).unwrap_or_default().to_owned();
        let ended = CallEnd::of(&outcome, shown);
        self.chat.record(Item::Outcome(outcome)).await?;
        if let Some(job) = ended_job {
            self.context.job_end_told(job).await?;
        }
        if !streamed && !output.is_empty() {
            let block = self.context.services.id();
            let text = output;
            self.chat.show(CallEvent::Output { block, text }).await?;
        }
        Ok(self.chat.show(CallEvent::Ended(ended)).await?)
    }
}

/// Asks the questions about the waiting calls.
impl Turn {
    /// Judges all waiting calls.
    async fn judge_queue(&mut self) {
        for waiting in self.queue.iter_mut() {
            self.context.judge.watch();
            waiting.judge(&self.context, &self.memory).await;
        }
    }

    /// Judges the calls that have finished collecting their facts. Returns true if there is such a call.
    async fn judge_collected(&mut self) -> bool {
        let mut judged = false;
        for waiting in self.queue.iter_mut().filter(|it| it.has_new_facts()) {
            self.context.judge.watch();
            waiting.judge(&self.context, &self.memory).await;
            judged = true;
        }
        judged
    }

    /// Asks the questions that the waiting calls need now, and withdraws all other questions.
    async fn put_questions(&mut self) -> Result<(), Halt> {
        while self.take_replies(0).await? {
            self.judge_queue().await;
        }
        for index in 0..self.queue.len() {
            let waiting = self.queue.get_mut(index);
            let Some(waiting) = waiting.filter(|it| it.judged().is_some()) else {
                continue;
            };
            let edited = waiting.command().is_some_and(JudgedCommand::is_edited);
            let needed = waiting.needed_question();
            let question = match (waiting.question.take(), needed) {
                (Some(old), _) if old.is_final() => Some(old),
                (Some(old), Some(new)) if old.is_same(&new) => Some(old),
                (Some(mut old), new) => match self.withdraw(&mut old).await? {
                    true => self.put(new, true).await?,
                    false => Some(old),
                },
                (None, new) => self.put(new, edited).await?,
            };
            if let Some(waiting) = self.queue.get_mut(index) {
                waiting.question = question;
            }
        }
        Ok(())
    }

    /// Handles the replies that have already arrived to questions about queued calls. Leaves out the calls whose index in the
    /// queue is below `from`. Returns true if a reply adds a permission.
    async fn take_replies(&mut self, from: usize) -> Result<bool, Halt> {
        let mut allowed = false;
        for index in from..self.queue.len() {
            let waiting = self.queue.get_mut(index);
            if let Some(question) = waiting.and_then(|it| it.question.as_mut()) {
                question.take_reply();
                self.check_edit(index).await?;
                allowed |= self.allow_early(index).await?;
            }
        }
        Ok(allowed)
    }

    /// Withdraws a question from the person. Returns false if the person gave a final answer just before that.
    async fn withdraw(&self, question: &mut CallQuestion) -> Result<bool, Halt> {
        if let QuestionState::Open(reply) = &mut question.stage {
            // The chat now reports that an answer comes too late.
            reply.close();
            question.take_reply();
        }
        if question.is_final() {
            return Ok(false);
        }
        if matches!(question.stage, QuestionState::Open(_)) {
            let id = question.asked.question.id;
            self.chat.send(TurnEvent::Withdraw(id)).await?;
        }
        Ok(true)
    }

    /// Asks the person a question. Does nothing if the question is `None`. If `again` is true, the question replaces an earlier
    /// one about the same call.
    async fn put(
        &self,
        asked: Option<Box<AskedQuestion>>,
        again: bool,
    ) -> Result<Option<CallQuestion>, Halt> {
        let Some(asked) = asked else {
            return Ok(None);
        };
        let mut shown = asked.question.clone();
        if again {
            shown.reasons.push(ASKED_AGAIN.to_owned());
        }
        Ok(Some(self.send_question(asked, shown).await?))
    }

    /// Asks the person a question. The person sees it in the form `shown`.
    async fn send_question(
        &self,
        mut asked: Box<AskedQuestion>,
        mut shown: Question,
    ) -> Result<CallQuestion, Halt> {
        shown.id = self.context.services.id();
        asked.question.id = shown.id;
        let (reply, answer) = oneshot::channel();
        let event = TurnEvent::Question(Box::new(shown), reply);
        self.chat.send(event).await?;
        let stage = QuestionState::Open(answer);
        Ok(CallQuestion { asked, stage })
    }

    /// Waits until the question about the next call is answered, or is no longer needed.
    async fn answer_to_next(&mut self) -> Result<NextAnswer, Halt> {
        let mut asking = false;
        let mut new_services = self.chat.new_services.clone();
        loop {
            // The new settings may refuse what was approved.
            if self.chat.new_services.has_changed().unwrap_or(false) {
                return Ok(NextAnswer::Changed);
            }
            self.check_edit(0).await?;
            // The next call applies its own `always` when it runs.
            if self.take_replies(1).await? {
                return Ok(NextAnswer::Changed);
            }
            if self.context.cancel.is_cancelled() {
                return Ok(self.cancelled_next());
            }
            if self.judge_collected().await {
                self.put_questions().await?;
            }
            let Some(next) = self.queue.get_mut(0) else {
                return Ok(NextAnswer::NotAsked);
            };
            let collects = next.judged().is_none();
            match next.question.take() {
                None if collects => {}
                None => return Ok(NextAnswer::NotAsked),
                Some(CallQuestion {
                    asked,
                    stage: QuestionState::Answered(answer),
                }) if !collects => return Ok(NextAnswer::Answered(answer, Some(asked))),
                Some(mut question) => {
                    if collects {
                        question.take_reply();
                    }
                    next.question = Some(question);
                }
            }
            let asks = self.queue.unanswered().next().is_some();
            if asks && !std::mem::replace(&mut asking, true) {
                self.chat.state(ChatState::Asking, "").await?;
            }
            tokio::select! {
                biased;
                () = self.context.cancel.cancelled() => return Ok(self.cancelled_next()),
                Ok(()) = new_services.changed() => return Ok(NextAnswer::Changed),
                _ = self.queue.answered() => {}
            }
        }
    }

    /// Returns the answer about the next call in a cancelled turn: a withdrawn question, or `Changed` if the call has not been
    /// judged.
    fn cancelled_next(&mut self) -> NextAnswer {
        match self.queue.get_mut(0) {
            Some(next) if next.judged().is_some() => {
                let question = next.question.take();
                NextAnswer::Answered(QuestionEnd::Gone, question.map(|it| it.asked))
            }
            _ => NextAnswer::Changed,
        }
    }

    /// Handles an answer that arrived while another call runs.
    async fn answered_early(&mut self, index: usize) -> Result<(), Halt> {
        self.check_edit(index).await?;
        let mut judged = self.judge_collected().await;
        if self.allow_early(index).await? {
            self.judge_queue().await;
            judged = true;
        }
        if judged {
            self.put_questions().await?;
        }
        Ok(())
    }

    /// Adds the permission of an early answer `always` at once, because the permission may answer other questions. Returns false
    /// if the answer is not `always`.
    async fn allow_early(&mut self, index: usize) -> Result<bool, Halt> {
        let waiting = self.queue.get_mut(index);
        let Some(question) = waiting.and_then(|waiting| waiting.question.as_mut()) else {
            return Ok(false);
        };
        let QuestionState::Answered(QuestionEnd::Reply(Reply::Always(scope))) = question.stage
        else {
            return Ok(false);
        };
        question.stage = QuestionState::Answered(QuestionEnd::Reply(Reply::Once));
        for allowance in question.asked.allowances(scope, &self.context.workspace) {
            self.allow(allowance).await?;
        }
        Ok(true)
    }

    /// Adds a permission to the turn and to the chat.
    async fn allow(&mut self, allowance: Allowance) -> Result<(), Halt> {
        self.memory.permissions.add(&allowance);
        Ok(self.chat.send(TurnEvent::Allow(allowance)).await?)
    }

    /// Returns the decision about a call, which comes from the person, a rule or the policy. Returns `None` if the call needs no
    /// decision.
    async fn decision(
        &mut self,
        resolution: Resolution,
        question: Option<&AskedQuestion>,
        answer: Option<QuestionEnd>,
    ) -> Result<Option<Decision>, Halt> {
        let reply = match (answer, resolution) {
            (Some(QuestionEnd::Reply(reply)), _) => reply,
            (None, Resolution::Free) => return Ok(None),
            (None, Resolution::Run(decision) | Resolution::Refuse(decision)) => {
                return Ok(Some(decision));
            }
            (Some(QuestionEnd::Gone | QuestionEnd::Edited(_)), _) | (None, Resolution::Ask(_)) => {
                return Ok(Some(Decision::Withdrawn));
            }
        };
        Ok(Some(match reply {
            Reply::Once => Decision::Approved,
            Reply::Always(scope) => {
                let given = question.map(|it| it.allowances(scope, &self.context.workspace));
                for allowance in given.into_iter().flatten() {
                    self.allow(allowance).await?;
                }
                Decision::Approved
            }
            Reply::Deny(reason) => Decision::Denied { reason },
            Reply::Reviewed(hunks) if hunks.iter().any(|hunk| hunk.accept) => Decision::Approved,
            Reply::Reviewed(hunks) => Decision::Denied {
                reason: edits::comments(&hunks),
            },
            // The turn has taken these answers already. The person can edit and try only commands, and this call is none.
            Reply::Edited(_) | Reply::Try { .. } | Reply::Real => Decision::Denied { reason: None },
            // It is the answer to a question that approves nothing.
            Reply::Chosen(_) => Decision::Denied { reason: None },
        }))
    }
}

/// Handles the commands that the person writes in place of the model's, and the commands that run as trials.
impl Turn {
    /// Judges a command that the person edited, as soon as the answer arrives. If a deny rule forbids the command, asks the
    /// person again and shows the reason.
    async fn check_edit(&mut self, index: usize) -> Result<(), Halt> {
        let waiting = self.queue.get(index);
        let Some((judged, question)) =
            waiting.and_then(|it| Some((it.command()?, it.question.as_ref()?)))
        else {
            return Ok(());
        };
        let QuestionState::Answered(QuestionEnd::Reply(Reply::Edited(command))) = &question.stage
        else {
            return Ok(());
        };
        let question = question.asked.question.id;
        let (command, why) = match String::from_utf8(command.clone()) {
            Ok(command) => {
                let edit = judged.judge_edit(command.clone(), &self.context, &self.memory);
                match edit.await {
                    EditVerdict::Forbidden(why) => (command, why),
                    // The question comes to nothing.
                    EditVerdict::Unknown => return Ok(()),
                    EditVerdict::Allowed(edit) => {
                        let waiting = self.queue.get_mut(index);
                        if let Some(question) = waiting.and_then(|it| it.question.as_mut()) {
                            question.stage = QuestionState::Answered(QuestionEnd::Edited(edit));
                        }
                        return Ok(());
                    }
                }
            }
            Err(odd) => (co_edit::escape(odd.as_bytes()), NOT_UTF8.to_owned()),
        };
        let refused = RefusedEdit {
            question,
            command,
            why,
        };
        self.refuse_edit(index, refused).await
    }

    /// Asks the question again, because a deny rule forbids the command that the person wrote.
    async fn refuse_edit(&mut self, index: usize, refused: RefusedEdit) -> Result<(), Halt> {
        let waiting = self.queue.get_mut(index);
        let Some(CallQuestion { asked, .. }) = waiting.and_then(|it| it.question.take()) else {
            return Ok(());
        };
        let shown = Question {
            refused_edit: Some(refused),
            ..asked.question.clone()
        };
        let question = self.send_question(asked, shown).await?;
        if let Some(waiting) = self.queue.get_mut(index) {
            waiting.question = Some(question);
        }
        Ok(())
    }

    /// Replaces the command of the next call by the command that the person wrote.
    async fn edit_next(&mut self, edit: EditedCommand) -> Result<(), Halt> {
        let Some(next) = self.queue.get_mut(0) else {
            return Ok(());
        };
        let Some((edited, command, mode)) = next.command().map(|it| it.edited(edit)) else {
            return Ok(());
        };
        next.replace(edited);
        let item = Item::CommandEdited {
            call: next.call.id.clone(),
            command: command.clone(),
        };
        self.chat.record(item).await?;
        Ok(self.chat.show(CallEvent::Edited { command, mode }).await?)
    }

    /// Notes that the person wants to try the next command. If `later` is true, co also tries later commands of the workspace
    /// before it asks.
    async fn want_trial(&mut self, later: bool) -> Result<(), Halt> {
        if let Some(next) = self.queue.get_mut(0)
            && let Some(wanting) = next.command().map(JudgedCommand::wanting_trial)
        {
            next.replace(wanting);
        }
        if later {
            let workspace = self.context.workspace.clone();
            self.allow(Allowance::TryFirst(workspace)).await?;
        }
        Ok(())
    }

    /// Runs the next command as a trial, if the command must be tried before its question. If nothing is left to ask, sends the
    /// outcome to the model. Otherwise, the question about the command shows the changes. Returns true if the next call was such
    /// a command.
    async fn try_next(&mut self) -> Result<bool, Halt> {
        let Some((call, audited, command)) = self.queue.pop_tried() else {
            return Ok(false);
        };
        let decided = DecidedCall {
            id: call.id.clone(),
            decision: Some(Decision::Tried),
            audited,
            hunks: None,
            may_hint: false,
        };
        let after = match command.ready_for_trial(&self.context, &decided).await {
            // The trial has not begun, so nothing about it is recorded.
            Err(NotRun::Because(why)) => AfterTrial::Ask(command.with_failed_trial(why)),
            ready => match self.start(&decided, ready).await {
                Ok(started) => {
                    let tried = self.follow_started(&decided, started).await?;
                    self.context.audit_outcome(&decided, tried.effect);
                    tried.after
                }
                Err(NotRun::Because(why)) => {
                    self.context.audit_outcome(&decided, None);
                    AfterTrial::Ask(command.with_failed_trial(why))
                }
                Err(NotRun::Refused(result)) => AfterTrial::Ended(result),
                Err(NotRun::Halt(context::CallHalt::Cancelled)) => {
                    AfterTrial::Ended(Box::new(CallResult::answer(CANCELLED)))
                }
                Err(NotRun::Halt(halt)) => return Err(halt.into()),
            },
        };
        match after {
            AfterTrial::Ask(command) => self.queue.push_tried(call, command),
            AfterTrial::Ended(result) => {
                self.memory.calls_ended += 1;
                self.conclude(&call, *result).await?;
                self.check_cancelled()?;
            }
        }
        Ok(true)
    }
}

/// Returns true if a call at the start of a step may run in parallel with others: it is read-only, or does not run.
fn runs_ahead(next: &QueuedCall) -> bool {
    match next.judged() {
        None => false,
        Some(Err(_)) => true,
        Some(Ok(judged)) => judged.kind == CallKind::Looks,
    }
}

/// Drops the changes of a trial if the person wants the command to run for real. Only a question after a trial offers this
/// answer.
fn real_answer(answer: QuestionEnd, action: &mut dyn CallAction) -> QuestionEnd {
    if let QuestionEnd::Reply(Reply::Real) = answer
        && let Some(command) = JudgedCommand::of_mut(action)
        && command.drop_trial()
    {
        return QuestionEnd::Reply(Reply::Once);
    }
    answer
}

/// Returns a call in which the paths inside a container are replaced by paths of this machine.
fn outside_call(workspace: &Path, mut call: Call) -> Call {
    for name in PATH_ARGUMENTS {
        if let Some(serde_json::Value::String(path)) = call.arguments.get_mut(name) {
            *path = outside(workspace, std::mem::take(path));
        }
    }
    call
}

/// Translates a path inside the container to the path on this machine. Any other path stays as it is.
fn outside(workspace: &Path, path: String) -> String {
    match Path::new(&path).strip_prefix(WORKSPACE_INSIDE) {
        Ok(below) if !Path::new(&path).starts_with(workspace) => {
            workspace.join(below).to_string_lossy().into_owned()
        }
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_inside_is_one_of_the_workspace() {
        let check = |workspace: &str, path: &str, expected: &str| {
            let found = outside(Path::new(workspace), path.to_owned());
            assert_eq!(Path::new(&found), Path::new(expected));
        };
        check("/home/ann/work", "/workspace", "/home/ann/work");
        check("/home/ann/work", "/workspace/a/b", "/home/ann/work/a/b");
        check("/home/ann/work", "src", "src");
        check("/home/ann/work", "/workspaces", "/workspaces");
        check("/workspace/x", "/workspace/x/y", "/workspace/x/y");
    }
}
