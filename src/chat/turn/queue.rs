//! The calls of a step that wait, and the questions about them. It knows the states of a call, and of the kinds only commands.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::protocol::{Change, Question, Scope};
use crate::tool::call::{AnyCall, AskedQuestion, EditedCommand};
use crate::tool::context::CallContext;
use crate::tool::permissions::{Allowance, Reply, TurnMemory};
use crate::workspace::edits::EditRequest;
use co_llm::transcript::Call;
use co_policy::{ApprovalQuestion, Pattern};

/// The calls of a step that wait to run.
#[derive(Default)]
pub(in super::super) struct CallQueue(VecDeque<QueuedCall>);

/// A call that waits to run.
pub(super) struct QueuedCall {
    pub call: Call,
    /// The call is on the screen.
    pub shown: bool,
    pub state: CallState,
    /// The number of calls that had ended when the call last began to collect facts.
    facts_at: Option<usize>,
}

/// The state of a call that waits to run. A call that may run leaves the queue, and is a `RunningCall` until it has a `CallResult`.
pub(super) enum CallState {
    /// It is not valid, or there are too many calls. The text is for the model.
    Invalid(String),
    Proposed(AnyCall),
    /// It collects facts, while the question from before stays.
    Collecting(AnyCall, Option<CallQuestion>),
    /// It has the facts, and is to be judged.
    Collected(AnyCall, Option<CallQuestion>),
    /// It is being judged.
    Judging,
    /// It cannot run now. The text is for the model. The question from before is to be withdrawn.
    Refused(AnyCall, String, Option<CallQuestion>),
    /// It needs no answer, or is asked about.
    Judged(AnyCall, Option<CallQuestion>),
}

/// A question about a call.
pub(super) struct CallQuestion {
    pub asked: AskedQuestion,
    /// The prefix that `always` may allow.
    prefix: Option<Pattern>,
    pub stage: QuestionState,
}

/// The state of a question.
pub(super) enum QuestionState {
    New,
    Open(oneshot::Receiver<Reply>),
    Answered(QuestionEnd),
}

/// The answer to a question.
pub(super) enum QuestionEnd {
    Reply(Reply),
    /// The person wrote another command, and no deny rule forbids it.
    Edited(EditedCommand),
    /// The question was withdrawn.
    Gone,
}

impl CallQuestion {
    pub(super) fn new(asked: AskedQuestion, asking: ApprovalQuestion) -> Self {
        Self {
            asked,
            prefix: asking.prefix,
            stage: QuestionState::New,
        }
    }

    /// Returns the permissions that `always` gives in a scope.
    pub(super) fn allowances(&self, scope: Scope, workspace: &Path) -> Vec<Allowance> {
        let question = &self.asked.question;
        match (scope, &self.prefix) {
            (Scope::Everything, _) => vec![Allowance::Everything],
            (Scope::Edits, _) if question.change.is_some() && question.tried.is_none() => {
                EditRequest::every_edit().map(Allowance::Rule).to_vec()
            }
            (Scope::Prefix, Some(prefix)) => vec![Allowance::Rule(prefix.clone())],
            (Scope::PrefixSaved, Some(prefix)) => {
                vec![Allowance::Saved(workspace.to_owned(), prefix.clone())]
            }
            (Scope::Command | Scope::Edits | Scope::Prefix | Scope::PrefixSaved, _) => {
                self.asked.always.clone()
            }
        }
    }

    /// Returns true if an answer to this question answers the other one too. This holds also if the lines that an edit changes
    /// have moved in the file.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let (mine, theirs) = (&self.asked.question, &other.asked.question);
        let question = Question {
            id: mine.id,
            change: mine.change.clone(),
            ..theirs.clone()
        };
        question == *mine
            && mine.change.as_ref().map(Change::changed_lines)
                == theirs.change.as_ref().map(Change::changed_lines)
            && other.asked.computed_at == self.asked.computed_at
    }

    /// Returns true if the answer holds however the call is judged again: it is a denial, an edited command or a withdrawal.
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

    /// Takes a reply that has come already.
    pub(super) fn take_reply(&mut self) {
        if let QuestionState::Open(reply) = &mut self.stage
            && let Ok(reply) = reply.try_recv()
        {
            self.stage = QuestionState::Answered(QuestionEnd::Reply(reply));
        }
    }

    /// Takes the answer if it has come.
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
    pub(super) fn question(&self) -> Option<&CallQuestion> {
        match self {
            Self::Collecting(_, question)
            | Self::Collected(_, question)
            | Self::Refused(_, _, question)
            | Self::Judged(_, question) => question.as_ref(),
            Self::Invalid(_) | Self::Proposed(_) | Self::Judging => None,
        }
    }

    pub(super) fn question_mut(&mut self) -> Option<&mut CallQuestion> {
        match self {
            Self::Collecting(_, question)
            | Self::Collected(_, question)
            | Self::Refused(_, _, question)
            | Self::Judged(_, question) => question.as_mut(),
            Self::Invalid(_) | Self::Proposed(_) | Self::Judging => None,
        }
    }

    /// Returns whether the call waits for facts, or has facts that it was not judged with.
    pub(super) fn is_collecting(&self) -> bool {
        matches!(self, Self::Collecting(..) | Self::Collected(..))
    }
}

impl QueuedCall {
    pub(super) fn new(call: Call, planned: Result<AnyCall, String>) -> Self {
        Self {
            call,
            shown: false,
            state: planned.map_or_else(CallState::Invalid, CallState::Proposed),
            facts_at: None,
        }
    }

    /// Returns whether the person wrote another command in place of the model's.
    pub(super) fn is_edited(&self) -> bool {
        match &self.state {
            CallState::Judged(AnyCall::Command(command), _) => command.is_edited(),
            _ => false,
        }
    }

    /// Judges the call. If another call has ended since it collected facts, it collects them again first.
    pub(super) async fn judge(&mut self, context: &CallContext, memory: &TurnMemory) {
        let fresh = self.facts_at == Some(memory.calls_ended);
        let (mut planned, question) = match std::mem::replace(&mut self.state, CallState::Judging) {
            CallState::Collecting(planned, question) if fresh => {
                self.state = CallState::Collecting(planned, question);
                return;
            }
            CallState::Proposed(planned) => (planned, None),
            CallState::Collecting(planned, question)
            | CallState::Collected(planned, question)
            | CallState::Refused(planned, _, question)
            | CallState::Judged(planned, question) => (planned, question),
            state @ (CallState::Invalid(_) | CallState::Judging) => {
                self.state = state;
                return;
            }
        };
        if !fresh && planned.call_mut().collect_facts(context) {
            self.facts_at = Some(memory.calls_ended);
            self.state = CallState::Collecting(planned, question);
            return;
        }
        self.state = match planned.call_mut().judge(context, memory).await {
            Ok(()) => CallState::Judged(planned, question),
            Err(why) => CallState::Refused(planned, why, question),
        };
    }

    /// Is ready when the answer to the question has come, or the facts are there.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let question = self.state.question_mut();
        if question.is_some_and(|it| it.poll(context).is_ready()) {
            return Poll::Ready(());
        }
        let CallState::Collecting(planned, _) = &mut self.state else {
            return Poll::Pending;
        };
        let polled = planned.call_mut().poll_facts(context);
        if polled.is_ready()
            && let CallState::Collecting(planned, question) =
                std::mem::replace(&mut self.state, CallState::Judging)
        {
            self.state = CallState::Collected(planned, question);
        }
        polled
    }
}

impl CallQueue {
    pub(super) fn new(calls: VecDeque<QueuedCall>) -> Self {
        Self(calls)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the call at a place of the queue, to look at it.
    pub(super) fn at(&self, index: usize) -> Option<&QueuedCall> {
        self.0.get(index)
    }

    /// Returns the call at a place of the queue.
    pub(super) fn get(&mut self, index: usize) -> Option<&mut QueuedCall> {
        self.0.get_mut(index)
    }

    /// Returns the ids of the calls whose questions are open.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = String> {
        let open = |waiting: &&QueuedCall| {
            let stage = waiting.state.question().map(|it| &it.stage);
            matches!(stage, Some(QuestionState::Open(_)))
        };
        let ids = self.0.iter().filter(open);
        ids.map(|waiting| waiting.call.id.clone())
    }

    pub(super) fn pop(&mut self) -> Option<QueuedCall> {
        self.0.pop_front()
    }

    /// Puts a call back to the front.
    pub(super) fn push_first(&mut self, call: QueuedCall) {
        self.0.push_front(call);
    }

    /// Waits for an answer to an open question, or for facts, and returns the place of its call in the queue.
    pub(super) async fn answered(&mut self) -> usize {
        std::future::poll_fn(|context| {
            for (index, waiting) in self.0.iter_mut().enumerate() {
                if waiting.poll(context).is_ready() {
                    return Poll::Ready(index);
                }
            }
            Poll::Pending
        })
        .await
    }
}
