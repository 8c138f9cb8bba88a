//! The waiting calls of a step, and the questions about them. This module knows the states of a call, but no kind of call except
//! commands.

use std::any::Any;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::protocol::{Change, Question};
use crate::tool::call::{
    AskedQuestion, AuditedText, CallKind, JudgedCall, PlannedCall, Resolution,
};
use crate::tool::command::{EditedCommand, JudgedCommand};
use crate::tool::context::CallContext;
use crate::tool::permissions::{Reply, TurnMemory};
use co_llm::transcript::Call;

/// The calls of a step that wait.
#[derive(Default)]
pub(in super::super) struct CallQueue(VecDeque<QueuedCall>);

/// A call that waits in the queue.
pub(super) struct QueuedCall {
    pub call: Call,
    /// True if the call is on the screen.
    pub shown: bool,
    state: CallState,
    /// The open question about the call. If the question belongs to an earlier verdict, it will be withdrawn soon.
    pub question: Option<CallQuestion>,
}

/// The state of a call in the queue.
enum CallState {
    /// The call is not valid, or the step has too many calls. The text is the reason, for the model.
    Invalid(String),
    Valid {
        planned: Box<dyn PlannedCall>,
        stage: CallStage,
        /// The number of calls of the turn that had ended when this call last began to collect its facts.
        facts_at: Option<usize>,
    },
}

/// The stage of a valid call.
enum CallStage {
    Proposed,
    Collecting,
    /// The call has collected its facts, and must be judged.
    Collected,
    /// The call has been judged. The error is the reason why the call cannot run now, for the model.
    Judged(Result<JudgedCall, String>),
}

/// A call that has left the queue. It runs now, or does not run.
pub(super) struct NextCall {
    pub call: Call,
    /// True if the call is already on the screen.
    pub shown: bool,
    pub judged: Result<JudgedCall, String>,
}

/// A question that co has asked the person about a call.
pub(super) struct CallQuestion {
    pub asked: Box<AskedQuestion>,
    pub stage: QuestionState,
}

/// The state of a question about a call: open or answered.
pub(super) enum QuestionState {
    Open(oneshot::Receiver<Reply>),
    Answered(QuestionEnd),
}

/// The end of a question about a call.
pub(super) enum QuestionEnd {
    Reply(Reply),
    /// The person wrote another command, which no deny rule forbids.
    Edited(EditedCommand),
    /// The question was withdrawn.
    Gone,
}

impl CallQuestion {
    /// Returns true if an answer to this question also answers the question `other`. The lines that an edit changes may have
    /// moved in the file.
    pub(super) fn is_same(&self, other: &AskedQuestion) -> bool {
        let (mine, theirs) = (&self.asked.question, &other.question);
        let question = Question {
            id: mine.id,
            change: mine.change.clone(),
            ..theirs.clone()
        };
        question == *mine
            && mine.change.as_ref().map(Change::changed_lines)
                == theirs.change.as_ref().map(Change::changed_lines)
            && other.computed_at == self.asked.computed_at
    }

    /// Returns true if the answer stays valid when the call is judged again: a denial, an edited command or a withdrawal.
    pub(super) fn is_final(&self) -> bool {
        let QuestionState::Answered(answer) = &self.stage else {
            return false;
        };
        matches!(
            answer,
            QuestionEnd::Gone
                | QuestionEnd::Edited(_)
                | QuestionEnd::Reply(Reply::Deny(_) | Reply::Edited(_))
        )
    }

    /// Takes the reply, if it has already arrived.
    pub(super) fn take_reply(&mut self) {
        if let QuestionState::Open(reply) = &mut self.stage
            && let Ok(reply) = reply.try_recv()
        {
            self.stage = QuestionState::Answered(QuestionEnd::Reply(reply));
        }
    }

    /// Takes the reply, and is ready when it has arrived.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let QuestionState::Open(reply) = &mut self.stage else {
            return Poll::Pending;
        };
        Pin::new(reply).poll(context).map(|reply| {
            self.stage =
                QuestionState::Answered(reply.map_or(QuestionEnd::Gone, QuestionEnd::Reply));
        })
    }
}

impl CallState {
    fn proposed(planned: Box<dyn PlannedCall>) -> Self {
        Self::Valid {
            planned,
            stage: CallStage::Proposed,
            facts_at: None,
        }
    }
}

impl QueuedCall {
    /// Returns a call that waits. If `planned` is an error, the call does not run. The error is the reason for the model: the
    /// call is not valid, or the step has too many calls.
    pub(super) fn new(call: Call, planned: Result<Box<dyn PlannedCall>, String>) -> Self {
        Self {
            call,
            shown: false,
            state: planned.map_or_else(CallState::Invalid, CallState::proposed),
            question: None,
        }
    }

    /// Replaces the call by a changed one. Drops the question about the earlier call.
    pub(super) fn replace(&mut self, planned: impl PlannedCall + 'static) {
        self.state = CallState::proposed(Box::new(planned));
        self.question = None;
    }

    /// Returns the call with its verdict, or the reason why the call cannot run. Returns `None` if the call has not been judged.
    pub(super) fn judged(&self) -> Option<Result<&JudgedCall, &String>> {
        match &self.state {
            CallState::Invalid(why) => Some(Err(why)),
            CallState::Valid {
                stage: CallStage::Judged(judged),
                ..
            } => Some(judged.as_ref()),
            CallState::Valid { .. } => None,
        }
    }

    /// Returns the command of the call, if the call is a command that may run.
    pub(super) fn command(&self) -> Option<&JudgedCommand> {
        JudgedCommand::of(&*self.judged()?.ok()?.action)
    }

    /// Returns true if the person has answered the question about the call.
    pub(super) fn is_answered(&self) -> bool {
        let stage = self.question.as_ref().map(|it| &it.stage);
        matches!(stage, Some(QuestionState::Answered(_)))
    }

    /// Returns the question that the call needs. Returns `None` if the call needs no answer, or runs as a trial first.
    pub(super) fn needed_question(&self) -> Option<Box<AskedQuestion>> {
        let Resolution::Ask(asked) = &self.judged()?.ok()?.resolution else {
            return None;
        };
        let is_tried = |command: &JudgedCommand| command.is_tried_first(self.is_answered());
        (!self.command().is_some_and(is_tried)).then(|| asked.clone())
    }

    /// Returns true if the call has collected facts since it was judged.
    pub(super) fn has_new_facts(&self) -> bool {
        let CallState::Valid { stage, .. } = &self.state else {
            return false;
        };
        matches!(stage, CallStage::Collected)
    }

    /// Judges the call, or begins to collect its facts. If another call has ended since the last time, collects the facts again.
    pub(super) async fn judge(&mut self, context: &CallContext, memory: &TurnMemory) {
        let CallState::Valid {
            planned,
            stage,
            facts_at,
        } = &mut self.state
        else {
            return;
        };
        let fresh = *facts_at == Some(memory.calls_ended);
        if fresh && matches!(stage, CallStage::Collecting) {
            return;
        }
        *stage = match !fresh && planned.collect_facts(context) {
            true => {
                *facts_at = Some(memory.calls_ended);
                CallStage::Collecting
            }
            false => CallStage::Judged(judge(&**planned, context, memory).await),
        };
    }

    /// Is ready when the question is answered, or when the call has collected its facts.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let question = self.question.as_mut();
        if question.is_some_and(|it| it.poll(context).is_ready()) {
            return Poll::Ready(());
        }
        match &mut self.state {
            CallState::Valid { planned, stage, .. } if matches!(stage, CallStage::Collecting) => {
                planned
                    .poll_facts(context)
                    .map(|()| *stage = CallStage::Collected)
            }
            _ => Poll::Pending,
        }
    }
}

/// Judges a call. In a read-only turn, refuses each call that is not read-only.
async fn judge(
    planned: &dyn PlannedCall,
    context: &CallContext,
    memory: &TurnMemory,
) -> Result<JudgedCall, String> {
    let judged = planned.judge(context, memory).await?;
    let acts = judged.kind == CallKind::Acts && !matches!(judged.resolution, Resolution::Refuse(_));
    match context.kind.refusal().filter(|_| acts) {
        Some(why) => Err(why.to_owned()),
        None => Ok(judged),
    }
}

impl CallQueue {
    pub(super) fn new(calls: VecDeque<QueuedCall>) -> Self {
        Self(calls)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&QueuedCall> {
        self.0.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut QueuedCall> {
        self.0.get_mut(index)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut QueuedCall> {
        self.0.iter_mut()
    }

    /// Returns the ids of the calls whose questions are open.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = String> {
        let open = |waiting: &&QueuedCall| {
            let stage = waiting.question.as_ref().map(|it| &it.stage);
            matches!(stage, Some(QuestionState::Open(_)))
        };
        let ids = self.0.iter().filter(open);
        ids.map(|waiting| waiting.call.id.clone())
    }

    /// Removes the first call from the queue, if it has been judged.
    pub(super) fn pop_judged(&mut self) -> Option<NextCall> {
        self.0.front().filter(|first| first.judged().is_some())?;
        let QueuedCall {
            call, shown, state, ..
        } = self.0.pop_front()?;
        let judged = match state {
            CallState::Invalid(why) => Err(why),
            CallState::Valid {
                stage: CallStage::Judged(judged),
                ..
            } => judged,
            CallState::Valid { .. } => return None,
        };
        Some(NextCall {
            call,
            shown,
            judged,
        })
    }

    /// Removes the first call from the queue, if it is a command that must run as a trial before its question.
    pub(super) fn pop_tried(&mut self) -> Option<(Call, Option<AuditedText>, Box<JudgedCommand>)> {
        let first = self.0.front()?;
        let answered = first.is_answered();
        first.command().filter(|it| it.is_tried_first(answered))?;
        let NextCall { call, judged, .. } = self.pop_judged()?;
        let JudgedCall {
            audited, action, ..
        } = judged.ok()?;
        let action: Box<dyn Any> = action;
        Some((call, audited, action.downcast().ok()?))
    }

    /// Puts a call that ran as a trial back to the front of the queue.
    pub(super) fn push_tried(&mut self, call: Call, planned: impl PlannedCall + 'static) {
        self.0.push_front(QueuedCall {
            shown: true,
            ..QueuedCall::new(call, Ok(Box::new(planned)))
        });
    }

    /// Waits until an open question is answered, or a call has collected its facts. Returns the index of the call in the queue.
    pub(super) async fn answered(&mut self) -> usize {
        std::future::poll_fn(|context| {
            let mut ready = |call: &mut QueuedCall| call.poll(context).is_ready();
            let index = self.0.iter_mut().position(&mut ready);
            index.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
