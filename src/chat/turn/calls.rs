//! The calls of one step. The calls at the start of a step that only look run in parallel; from the first other call on they
//! run one by one. The results are recorded in the order of the calls.
//!
//! The turn sends all questions to the person at once, except those about calls that collect facts and about commands that co tries
//! first. After each call, it judges again the calls that wait, repeats changed questions and withdraws unneeded ones.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::Turn;
use super::event::{Halt, TurnEvent};
use super::loop_limits::Repetition;
use super::queue::{CallQuestion, CallQueue, CallState, QuestionEnd, QuestionState, QueuedCall};
use super::requests::{MAX_CALLS, ProposedCall};
use crate::protocol::{ChatState, HunkAnswer, Question, RefusedEdit};
use crate::tool::call::{
    AfterTrial, AnyCall, Approved, CallResult, CommandSteps, EditedCommand, Resolution,
    RunningCall, refusal,
};
use crate::tool::event::CallEvent;
use crate::tool::permissions::{Allowance, Reply};
use crate::tool::{CallCheckpoint, CallOutcome, context};
use crate::workspace::edits;
use co_exec::container::WORKSPACE_INSIDE;
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Call, Decision, Item, Outcome};

/// The arguments of tools that are paths.
const PATH_ARGUMENTS: [&str; 4] = ["path", "from", "to", "cwd"];

/// The reason that is added to a repeated question.
const ASKED_AGAIN: &str =
    "asked again: a command that ran meanwhile, or a setting, changed what it does";

/// The reason why a command of the person is asked about again.
const NOT_UTF8: &str =
    "it is not all UTF-8: each byte that was not is now \u{fffd} and its two digits";

/// A call of the parallel part of a step.
enum ParallelCall {
    Running(QueuedCall, RunningCall),
    /// A call that does not run.
    Stopped(QueuedCall),
}

/// The next call's state.
enum NextCall {
    /// It needs no answer.
    NotAsked,
    Answered(QuestionEnd),
    /// Something was allowed or the settings changed: the calls are judged again.
    Changed,
}

impl Turn {
    /// Carries out the calls of a step. If this succeeds, each call has an outcome in the transcript.
    pub(super) async fn calls(&mut self, calls: Vec<ProposedCall>) -> Result<(), Halt> {
        self.renew();
        let calls = calls.into_iter().enumerate();
        let mut calls: VecDeque<_> = calls.map(|(at, asked)| self.queued(at, asked)).collect();
        let mut ahead = Vec::new();
        while let Some(next) = calls.front_mut() {
            self.context.judge.watch();
            next.judge(&self.context, &self.memory).await;
            if !self.runs_ahead(next) {
                break;
            }
            ahead.extend(calls.pop_front());
        }
        self.run_side_by_side(ahead).await?;
        self.queue = CallQueue::new(calls);
        self.run_one_by_one().await
    }

    /// Parses a call.
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

    /// Returns whether a call at the start of a step may run beside others, because it only looks, or does not run.
    fn runs_ahead(&self, next: &QueuedCall) -> bool {
        match &next.state {
            CallState::Invalid(_) | CallState::Refused(..) => true,
            CallState::Judged(planned, _) => {
                let resolution = planned.call().resolve(&self.context, &self.memory);
                planned.call().only_looks()
                    || matches!(resolution, Resolution::Run(Decision::Unasked))
            }
            _ => false,
        }
    }

    /// Runs calls that need no answer in parallel, and shows them one by one in call order.
    async fn run_side_by_side(&mut self, ahead: Vec<QueuedCall>) -> Result<(), Halt> {
        let mut started = Vec::new();
        let mut done = Ok(());
        for next in ahead {
            match self.begin(next).await {
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
            let finished = self.finish_begun(call).await;
            done = done.and(finished);
        }
        done.and_then(|()| self.check_cancelled())
    }

    async fn begin(&mut self, mut next: QueuedCall) -> Result<ParallelCall, Halt> {
        let CallState::Judged(planned, _) = &next.state else {
            return Ok(ParallelCall::Stopped(next));
        };
        let decision = match planned.call().resolve(&self.context, &self.memory) {
            Resolution::Free => None,
            Resolution::Run(decision) => Some(decision),
            Resolution::Refuse(_) | Resolution::Ask(_) => return Ok(ParallelCall::Stopped(next)),
        };
        let state = std::mem::replace(&mut next.state, CallState::Judging);
        let CallState::Judged(planned, _) = state else {
            return Err(Halt::Cancelled);
        };
        let approved = self.approved(&next.call, decision, None);
        let running = planned
            .into_call()
            .start(Arc::clone(&self.context), approved);
        Ok(ParallelCall::Running(next, running.await?))
    }

    async fn finish_begun(&mut self, call: ParallelCall) -> Result<(), Halt> {
        match call {
            ParallelCall::Running(mut next, running) => {
                self.show_call(&mut next).await?;
                let result = self.follow(running).await?;
                self.conclude(&next.call, result).await
            }
            ParallelCall::Stopped(next) => self.carry_out(next, None).await,
        }
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
                NextCall::Changed => continue,
                NextCall::NotAsked => None,
                NextCall::Answered(QuestionEnd::Edited(edit)) => {
                    self.edit_next(edit).await?;
                    continue;
                }
                NextCall::Answered(QuestionEnd::Reply(Reply::Try { later })) => {
                    self.want_trial(later).await?;
                    continue;
                }
                NextCall::Answered(answer) => Some(answer),
            };
            match self.queue.pop() {
                Some(next) => self.carry_out(next, answer).await?,
                None => return Ok(()),
            }
            self.memory.calls_ended += 1;
        }
    }

    fn check_cancelled(&self) -> Result<(), Halt> {
        match self.context.cancel.is_cancelled() {
            true => Err(Halt::Cancelled),
            false => Ok(()),
        }
    }

    /// Shows a call, unless it is on the screen.
    async fn show_call(&self, call: &mut QueuedCall) -> Result<(), Halt> {
        if !std::mem::replace(&mut call.shown, true) {
            let shown = self.tools.shown(&call.call);
            self.chat.show(CallEvent::Begun(shown)).await?;
        }
        Ok(())
    }

    /// Shows the next call before the question about it.
    async fn show_next(&mut self) -> Result<(), Halt> {
        let Some(mut next) = self.queue.pop() else {
            return Ok(());
        };
        let shown = match &next.state {
            CallState::Judged(..) => self.show_call(&mut next).await,
            _ => Ok(()),
        };
        self.queue.push_first(next);
        shown
    }

    /// Runs the next call, or refuses it.
    async fn carry_out(
        &mut self,
        mut next: QueuedCall,
        answer: Option<QuestionEnd>,
    ) -> Result<(), Halt> {
        self.show_call(&mut next).await?;
        let (mut planned, question) = match next.state {
            CallState::Judged(planned, question) => (planned, question),
            CallState::Invalid(why) | CallState::Refused(_, why, _) => {
                return self.conclude(&next.call, CallResult::not_run(why)).await;
            }
            CallState::Proposed(_)
            | CallState::Collecting(..)
            | CallState::Collected(..)
            | CallState::Judging => {
                tracing::error!(
                    call = next.call.id,
                    "a call was to run before it was judged"
                );
                return Err(Halt::Cancelled);
            }
        };
        let answer = match (answer, &mut planned) {
            // Only a question after a trial offers it.
            (Some(QuestionEnd::Reply(Reply::Real)), AnyCall::Command(command)) => {
                let reply = match command.drop_trial() {
                    true => Reply::Once,
                    false => Reply::Deny(None),
                };
                Some(QuestionEnd::Reply(reply))
            }
            (answer, _) => answer,
        };
        let hunks = match &answer {
            Some(QuestionEnd::Reply(Reply::Reviewed(hunks))) => Some(hunks.clone()),
            _ => None,
        };
        let decision = self.decision(&planned, question.as_ref(), answer).await?;
        if let Some(decision) = decision.as_ref().filter(|it| !it.lets_run()) {
            let asked = question.is_some();
            return self
                .refuse(&next.call, planned, (decision, hunks), asked)
                .await;
        }
        let checkpoint = self.checkpoint(&planned, decision.as_ref()).await;
        let approved = self.approved(&next.call, decision, hunks);
        let done = self.perform(&next.call, planned, approved).await;
        if let Some(checkpoint) = checkpoint {
            self.context.keep_changes(checkpoint).await;
        }
        done
    }

    async fn perform(
        &mut self,
        call: &Call,
        planned: AnyCall,
        approved: Approved,
    ) -> Result<(), Halt> {
        let context = Arc::clone(&self.context);
        let running = planned.into_call().start(context, approved).await?;
        let result = self.follow(running).await?;
        self.conclude(call, result).await?;
        self.check_cancelled()
    }

    /// Waits for the result of work on a call. Meanwhile, takes the answers about other calls.
    async fn follow<T>(
        &mut self,
        work: impl Future<Output = Result<T, context::Halt>>,
    ) -> Result<T, Halt> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done?),
                answered = self.queue.answered() => self.answered_early(answered).await?,
            }
        }
    }

    /// Takes a checkpoint before a call during which files may change.
    async fn checkpoint(
        &self,
        planned: &AnyCall,
        decision: Option<&Decision>,
    ) -> Option<CallCheckpoint> {
        if decision == Some(&Decision::Unasked) {
            return None;
        }
        let what = planned.call().changes_as()?;
        let decision = decision.cloned().unwrap_or(Decision::Unasked);
        self.context.checkpoint(what, decision).await
    }

    fn approved(
        &self,
        call: &Call,
        decision: Option<Decision>,
        hunks: Option<Vec<HunkAnswer>>,
    ) -> Approved {
        Approved {
            id: call.id.clone(),
            decision,
            hunks,
            may_hint: !self.memory.hinted,
        }
    }

    /// Records that a call does not run, and tells the model. `asked` is true if there was a question about it.
    async fn refuse(
        &mut self,
        call: &Call,
        mut planned: AnyCall,
        (decision, hunks): (&Decision, Option<Vec<HunkAnswer>>),
        asked: bool,
    ) -> Result<(), Halt> {
        let item = Item::Decision {
            call: call.id.clone(),
            decision: decision.clone(),
        };
        self.chat.record(item).await?;
        let result = planned.call_mut().refused(decision, hunks.as_deref());
        let effect = result.as_ref().and_then(|it| it.effect.as_deref());
        let came_to = effect.map_or(CallOutcome::Nothing, CallOutcome::Look);
        if let Some(judged) = planned.call().judged() {
            self.context.audit(&call.id, judged, decision, came_to);
        }
        self.chat
            .show(CallEvent::Decision(decision.clone()))
            .await?;
        if *decision == Decision::Withdrawn && result.is_none() {
            self.check_cancelled().inspect_err(|_| {
                self.unanswered.extend(asked.then(|| call.id.clone()));
            })?;
        }
        let result = result.unwrap_or_else(|| CallResult::answer(refusal(decision)));
        self.conclude(call, result).await
    }

    /// Records the outcome of a call and shows its end. If the model repeats its calls, the outcome has a hint about that.
    pub(super) async fn conclude(&mut self, call: &Call, result: CallResult) -> Result<(), Halt> {
        let end = result.end();
        let CallResult {
            told: RedactedText { mut text, hidden },
            ok,
            spill,
            shown,
            failed_confined,
            ended_job,
            hinted,
            output,
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
            shown: Some(shown),
        };
        self.chat.record(Item::Outcome(outcome)).await?;
        if let Some(job) = ended_job {
            self.context.job_end_told(job).await?;
        }
        if let Some(text) = output {
            let block = self.context.services.id();
            self.chat.show(CallEvent::Output { block, text }).await?;
        }
        Ok(self.chat.show(CallEvent::Ended(end)).await?)
    }
}

/// The questions about the calls that wait.
impl Turn {
    /// Judges every call that waits.
    async fn judge_queue(&mut self) {
        for index in 0..self.queue.len() {
            self.judge_queued(index).await;
        }
    }

    async fn judge_queued(&mut self, index: usize) {
        self.context.judge.watch();
        if let Some(waiting) = self.queue.get(index) {
            waiting.judge(&self.context, &self.memory).await;
        }
    }

    /// Judges the calls that have collected their facts. Returns true if there is one.
    async fn judge_collected(&mut self) -> bool {
        let mut judged = false;
        for index in 0..self.queue.len() {
            let waiting = self.queue.get(index);
            if waiting.is_some_and(|it| matches!(it.state, CallState::Collected(..))) {
                self.judge_queued(index).await;
                judged = true;
            }
        }
        judged
    }

    /// Returns the question about a call; none if the call needs no answer. `answered` is true if the person has answered already.
    fn question_about(&self, waiting: &QueuedCall, answered: bool) -> Option<CallQuestion> {
        let CallState::Judged(planned, _) = &waiting.state else {
            return None;
        };
        let (context, memory) = (&*self.context, &self.memory);
        if let AnyCall::Command(command) = planned
            && command.is_tried_first(context, memory, answered)
        {
            return None;
        }
        let Resolution::Ask(asking) = planned.call().resolve(context, memory) else {
            return None;
        };
        let asked = planned.call().question(context, memory, &asking)?;
        Some(CallQuestion::new(asked, asking))
    }

    /// Asks the questions that the calls need now, and withdraws all others.
    async fn put_questions(&mut self) -> Result<(), Halt> {
        while self.take_replies(0).await? {
            self.judge_queue().await;
        }
        for index in 0..self.queue.len() {
            let Some(waiting) = self.queue.get(index) else {
                break;
            };
            let old = match &mut waiting.state {
                CallState::Refused(_, _, question) | CallState::Judged(_, question) => {
                    question.take()
                }
                _ => continue,
            };
            let edited = waiting.is_edited();
            let answered = matches!(
                old.as_ref().map(|old| &old.stage),
                Some(QuestionState::Answered(_))
            );
            let needed = (self.queue.at(index)).and_then(|it| self.question_about(it, answered));
            let question = match (old, needed) {
                (Some(old), _) if old.is_final() => Some(old),
                (Some(old), Some(new)) if old.is_same(&new) => Some(old),
                (Some(mut old), new) => match self.withdraw(&mut old).await? {
                    true => self.put(new, true).await?,
                    false => Some(old),
                },
                (None, new) => self.put(new, edited).await?,
            };
            let waiting = self.queue.get(index).map(|it| &mut it.state);
            if let Some(CallState::Refused(_, _, place) | CallState::Judged(_, place)) = waiting {
                *place = question;
            }
        }
        Ok(())
    }

    /// Takes the replies that came meanwhile, from a place of the queue on. Returns true if one of them allows something.
    async fn take_replies(&mut self, from: usize) -> Result<bool, Halt> {
        let mut allowed = false;
        for index in from..self.queue.len() {
            let waiting = self.queue.get(index);
            if let Some(question) = waiting.and_then(|it| it.state.question_mut()) {
                question.take_reply();
                self.check_edit(index).await?;
                allowed |= self.allow_early(index).await?;
            }
        }
        Ok(allowed)
    }

    /// Takes a question away from the person. Returns false if they gave a final answer at the last moment.
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

    /// Asks the person a question, if there is one. With `again`, it replaces a question about the same call.
    async fn put(
        &self,
        question: Option<CallQuestion>,
        again: bool,
    ) -> Result<Option<CallQuestion>, Halt> {
        let Some(mut question) = question else {
            return Ok(None);
        };
        let mut shown = question.asked.question.clone();
        if again {
            shown.reasons.push(ASKED_AGAIN.to_owned());
        }
        self.send_question(&mut question, shown).await?;
        Ok(Some(question))
    }

    /// Sends `shown` to the person under a new id, which `question` gets too.
    async fn send_question(
        &self,
        question: &mut CallQuestion,
        mut shown: Question,
    ) -> Result<(), Halt> {
        shown.id = self.context.services.id();
        question.asked.question.id = shown.id;
        let (reply, answer) = oneshot::channel();
        question.stage = QuestionState::Open(answer);
        let event = TurnEvent::Question(Box::new(shown), reply);
        Ok(self.chat.send(event).await?)
    }

    /// Waits until the next call has its answer, or needs none any more.
    async fn answer_to_next(&mut self) -> Result<NextCall, Halt> {
        let mut asking = false;
        let mut new_services = self.new_services.clone();
        loop {
            // The new settings may refuse what was approved.
            if self.new_services.has_changed().unwrap_or(false) {
                return Ok(NextCall::Changed);
            }
            self.check_edit(0).await?;
            // The next call applies its own `always` when it runs.
            if self.take_replies(1).await? {
                return Ok(NextCall::Changed);
            }
            if self.context.cancel.is_cancelled() {
                return Ok(self.cancelled_next());
            }
            if self.judge_collected().await {
                self.put_questions().await?;
            }
            if let Some(next) = self.queue.get(0) {
                let collects = next.state.is_collecting();
                match next.state.question_mut() {
                    None if collects => {}
                    None => return Ok(NextCall::NotAsked),
                    Some(question) if collects => question.take_reply(),
                    Some(question) => {
                        match std::mem::replace(&mut question.stage, QuestionState::New) {
                            QuestionState::Answered(answer) => {
                                return Ok(NextCall::Answered(answer));
                            }
                            open => question.stage = open,
                        }
                    }
                }
            } else {
                return Ok(NextCall::NotAsked);
            }
            let asks = self.queue.unanswered().next().is_some();
            if asks && !std::mem::replace(&mut asking, true) {
                self.chat.state(ChatState::Asking, "").await?;
            }
            tokio::select! {
                biased;
                () = self.context.cancel.cancelled() => return Ok(self.cancelled_next()),
                Ok(()) = new_services.changed() => return Ok(NextCall::Changed),
                _ = self.queue.answered() => {}
            }
        }
    }

    /// Returns the state of the next call in a cancelled turn. A call that was not judged yet has no answer.
    fn cancelled_next(&self) -> NextCall {
        match self.queue.at(0) {
            Some(next) if next.state.is_collecting() => NextCall::Changed,
            _ => NextCall::Answered(QuestionEnd::Gone),
        }
    }

    /// Takes an answer that came while another call runs.
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

    /// Applies an early `always` at once, because it may answer other questions. Returns false if the answer is not `always`.
    async fn allow_early(&mut self, index: usize) -> Result<bool, Halt> {
        let waiting = self.queue.get(index);
        let Some(question) = waiting.and_then(|waiting| waiting.state.question_mut()) else {
            return Ok(false);
        };
        let QuestionState::Answered(QuestionEnd::Reply(Reply::Always(scope))) = question.stage
        else {
            return Ok(false);
        };
        question.stage = QuestionState::Answered(QuestionEnd::Reply(Reply::Once));
        for allowance in question.allowances(scope, &self.context.workspace) {
            self.allow(allowance).await?;
        }
        Ok(true)
    }

    /// Adds a permission to the turn and the chat.
    async fn allow(&mut self, allowance: Allowance) -> Result<(), Halt> {
        self.memory.permissions.add(&allowance);
        Ok(self.chat.send(TurnEvent::Allow(allowance)).await?)
    }

    /// Returns the decision on a call, which comes from the person, a rule or the policy; none if the call needs none.
    async fn decision(
        &mut self,
        planned: &AnyCall,
        question: Option<&CallQuestion>,
        answer: Option<QuestionEnd>,
    ) -> Result<Option<Decision>, Halt> {
        let resolution = planned.call().resolve(&self.context, &self.memory);
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
        }))
    }
}

/// The commands that the person writes in place of the model's, and those that run as trials.
impl Turn {
    /// Judges an edited command as soon as it comes. If a deny rule forbids it, the person gets the question again, with
    /// the reason.
    async fn check_edit(&mut self, index: usize) -> Result<(), Halt> {
        let Some(CallState::Judged(AnyCall::Command(planned), Some(question))) =
            self.queue.at(index).map(|it| &it.state)
        else {
            return Ok(());
        };
        let QuestionState::Answered(QuestionEnd::Reply(Reply::Edited(command))) = &question.stage
        else {
            return Ok(());
        };
        let (command, question) = (command.clone(), question.asked.question.id);
        let command = match String::from_utf8(command) {
            Ok(command) => command,
            Err(odd) => {
                let refused = RefusedEdit {
                    question,
                    command: co_edit::escape(odd.as_bytes()),
                    why: NOT_UTF8.to_owned(),
                };
                return self.refuse_edit(index, refused).await;
            }
        };
        let judged = planned.judge_edit(command.clone(), &self.context, &self.memory);
        match judged.await {
            // The turn is cancelled, or the question comes to nothing.
            Err(_) => Ok(()),
            Ok(Err(why)) => {
                let refused = RefusedEdit {
                    question,
                    command,
                    why,
                };
                self.refuse_edit(index, refused).await
            }
            Ok(Ok(edit)) => {
                let waiting = self.queue.get(index);
                if let Some(question) = waiting.and_then(|it| it.state.question_mut()) {
                    question.stage = QuestionState::Answered(QuestionEnd::Edited(edit));
                }
                Ok(())
            }
        }
    }

    /// Asks a question again after a deny rule forbade the command that the person wrote.
    async fn refuse_edit(&mut self, index: usize, refused: RefusedEdit) -> Result<(), Halt> {
        let Some(CallState::Judged(_, place)) = self.queue.get(index).map(|it| &mut it.state)
        else {
            return Ok(());
        };
        let Some(mut question) = place.take() else {
            return Ok(());
        };
        let shown = Question {
            refused_edit: Some(refused),
            ..question.asked.question.clone()
        };
        self.send_question(&mut question, shown).await?;
        if let Some(CallState::Judged(_, place)) = self.queue.get(index).map(|it| &mut it.state) {
            *place = Some(question);
        }
        Ok(())
    }

    /// Takes the question about the next call away, and gives its command to `change`. Returns the id of the call.
    fn change_next<T>(
        &mut self,
        change: impl FnOnce(&mut dyn CommandSteps) -> T,
    ) -> Option<(String, T)> {
        let next = self.queue.get(0)?;
        let CallState::Judged(AnyCall::Command(command), question) = &mut next.state else {
            return None;
        };
        *question = None;
        Some((next.call.id.clone(), change(&mut **command)))
    }

    /// Replaces the command of the next call with the person's.
    async fn edit_next(&mut self, edit: EditedCommand) -> Result<(), Halt> {
        let Some((call, event)) = self.change_next(|command| command.edit(edit)) else {
            return Ok(());
        };
        if let CallEvent::Edited { command, .. } = &event {
            let command = command.clone();
            self.chat
                .record(Item::CommandEdited { call, command })
                .await?;
        }
        Ok(self.chat.show(event).await?)
    }

    /// Notes that the person wants to try the next command. With `later`, co also tries later ones of the workspace.
    async fn want_trial(&mut self, later: bool) -> Result<(), Halt> {
        self.change_next(|command| command.want_trial());
        if later {
            let workspace = self.context.workspace.clone();
            self.allow(Allowance::TryFirst(workspace)).await?;
        }
        Ok(())
    }

    /// Runs the next command as a trial, if it is to be tried before a question. If nothing is left to ask, its outcome goes to the
    /// model; else the question about it shows what it changed. Returns whether a trial has run.
    async fn try_next(&mut self) -> Result<bool, Halt> {
        let answered =
            |question: &CallQuestion| matches!(question.stage, QuestionState::Answered(_));
        let is_tried = self.queue.at(0).is_some_and(|next| match &next.state {
            CallState::Judged(AnyCall::Command(command), question) => {
                let answered = question.as_ref().is_some_and(answered);
                command.is_tried_first(&self.context, &self.memory, answered)
            }
            _ => false,
        });
        if !is_tried {
            return Ok(false);
        }
        let Some(mut next) = self.queue.pop() else {
            return Ok(false);
        };
        let state = std::mem::replace(&mut next.state, CallState::Judging);
        let CallState::Judged(AnyCall::Command(command), _) = state else {
            return Err(Halt::Cancelled);
        };
        let trial = command.try_out(next.call.id.clone(), Arc::clone(&self.context));
        match self.follow(trial).await? {
            AfterTrial::Ask(command) => {
                next.state = CallState::Proposed(AnyCall::Command(command));
                self.queue.push_first(next);
            }
            AfterTrial::Ended(result) => {
                self.memory.calls_ended += 1;
                self.conclude(&next.call, *result).await?;
                self.check_cancelled()?;
            }
        }
        Ok(true)
    }
}

/// Returns a call with the paths of this machine instead of those inside a container.
fn outside_call(workspace: &Path, mut call: Call) -> Call {
    for name in PATH_ARGUMENTS {
        if let Some(serde_json::Value::String(path)) = call.arguments.get_mut(name) {
            *path = outside(workspace, std::mem::take(path));
        }
    }
    call
}

/// Translates a path inside of the container into the path on this machine. Other paths stay as they are.
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
