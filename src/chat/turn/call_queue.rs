//! The calls of a step that run one after the other, and the questions about them.
//!
//! The turn sends all questions to the person at once, except those about renames and about commands that co tries first. After each call, it judges the calls that wait again, repeats changed
//! questions and withdraws unneeded ones.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::Turn;
use super::call::{EditedCommand, ParsedCall, ProposedCall, ReviewedCommand};
use super::event::{Halt, TurnEvent};
use super::permissions::{Allowance, Reply};
use super::server_edits::ServerEdits;
use super::trial::Trial;
use crate::protocol::{Change, ChatState, Question, Scope};
use crate::workspace::edits::EditRequest;
use co_llm::transcript::Call;
use co_policy::Pattern;

/// The reason that is added to a repeated question.
const ASKED_AGAIN: &str =
    "asked again: a command that ran meanwhile, or a setting, changed what it does";

/// The calls of a step that wait to run.
#[derive(Default)]
pub(in super::super) struct CallQueue(VecDeque<QueuedCall>);

/// A call that waits to run.
pub(super) struct QueuedCall {
    pub call: Call,
    /// The error in its arguments, for the model.
    pub unread: Option<String>,
    /// The place of the call in its step.
    pub place: usize,
    /// The command that the person wrote in place of the model's.
    pub edited: Option<EditedCommand>,
    /// The result of the last review. The error tells the model why the call cannot run.
    pub known: Result<ParsedCall, String>,
    /// The call is on the screen.
    pub shown: bool,
    pub question: Option<CallQuestion>,
    pub trial: Trial,
    /// The edits of a language server, for a rename.
    pub server_edits: ServerEdits,
}

/// A question about a call.
pub(super) struct CallQuestion {
    pub question: Question,
    /// The number of calls that had ended when it was asked; none if bash computes no word of the command. Another call may
    /// change a computed word.
    pub computed_at: Option<usize>,
    /// The narrowest permissions that `always` gives.
    pub always: Vec<Allowance>,
    /// The prefix that `always` may allow.
    pub prefix: Option<Pattern>,
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

/// The next call's state.
pub(super) enum NextCall {
    /// It needs no answer.
    NotAsked,
    Answered(QuestionEnd),
    /// Something was allowed or the settings changed: the calls are judged again.
    Changed,
}

impl CallQuestion {
    /// Returns the permissions that `always` gives in a scope.
    pub(super) fn allowances(&self, scope: Scope, workspace: &Path) -> Vec<Allowance> {
        match (scope, &self.prefix) {
            (Scope::Everything, _) => vec![Allowance::Everything],
            (Scope::Edits, _)
                if self.question.change.is_some() && self.question.tried.is_none() =>
            {
                EditRequest::every_edit().map(Allowance::Rule).to_vec()
            }
            (Scope::Prefix, Some(prefix)) => vec![Allowance::Rule(prefix.clone())],
            (Scope::PrefixSaved, Some(prefix)) => {
                vec![Allowance::Saved(workspace.to_owned(), prefix.clone())]
            }
            (Scope::Command | Scope::Edits | Scope::Prefix | Scope::PrefixSaved, _) => {
                self.always.clone()
            }
        }
    }

    /// Returns true if an answer to this question answers the other one too. This holds also if the lines that an edit changes
    /// have moved in the file.
    fn is_same(&self, other: &Self) -> bool {
        let (mine, theirs) = (&self.question.change, &other.question.change);
        let question = Question {
            id: self.question.id,
            change: mine.clone(),
            ..other.question.clone()
        };
        question == self.question
            && mine.as_ref().map(Change::changed_lines)
                == theirs.as_ref().map(Change::changed_lines)
            && other.computed_at == self.computed_at
    }

    /// Returns true if the answer holds after a new review: it is a denial, an edited command or a withdrawal.
    fn is_final(&self) -> bool {
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
    fn take_reply(&mut self) {
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

impl QueuedCall {
    pub(super) fn new(place: usize, asked: ProposedCall) -> Self {
        Self {
            call: asked.call,
            unread: asked.unread,
            place,
            edited: None,
            known: Err(String::new()),
            shown: false,
            question: None,
            trial: Trial::None,
            server_edits: ServerEdits::None,
        }
    }

    /// Takes the command out for its trial. Nothing is known of the call until it is reviewed again.
    pub(super) fn take_command(&mut self) -> Option<ReviewedCommand> {
        match std::mem::replace(&mut self.known, Err(String::new())) {
            Ok(ParsedCall::Command(reviewed)) => {
                self.trial = Trial::Running;
                Some(reviewed)
            }
            known => {
                self.known = known;
                None
            }
        }
    }
}

impl CallQueue {
    pub(super) fn new(calls: VecDeque<QueuedCall>) -> Self {
        Self(calls)
    }

    /// Returns the next call, to look at it.
    pub(super) fn first(&self) -> Option<&QueuedCall> {
        self.0.front()
    }

    /// Returns the next call to run.
    pub(super) fn next(&mut self) -> Option<&mut QueuedCall> {
        self.0.front_mut()
    }

    /// Returns the call at a place of the queue.
    pub(super) fn get(&mut self, index: usize) -> Option<&mut QueuedCall> {
        self.0.get_mut(index)
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

    pub(super) fn pop(&mut self) -> Option<QueuedCall> {
        self.0.pop_front()
    }

    /// Waits for an answer to an open question, or of a language server, and returns the place of its call in the queue.
    pub(super) async fn answered(&mut self) -> usize {
        std::future::poll_fn(|context| {
            for (index, waiting) in self.0.iter_mut().enumerate() {
                let question = waiting.question.as_mut();
                if question.is_some_and(|it| it.poll(context).is_ready())
                    || waiting.server_edits.poll(context).is_ready()
                {
                    return Poll::Ready(index);
                }
            }
            Poll::Pending
        })
        .await
    }
}

impl Turn {
    /// Judges every call that waits. A rename is judged later, when its language server has answered.
    pub(super) async fn judge_queue(&mut self) {
        for index in 0..self.queue.0.len() {
            if let Some(asked) = self.ask_language_server(&self.queue.0[index]) {
                self.queue.0[index].server_edits = asked;
            } else {
                self.judge_queued(index).await;
            }
        }
    }

    async fn judge_queued(&mut self, index: usize) {
        let known = self.review(&self.queue.0[index]).await;
        self.queue.0[index].known = known;
    }

    /// Judges the renames whose language servers have answered. Returns true if there is one.
    async fn judge_renames(&mut self) -> bool {
        let mut judged = false;
        for index in 0..self.queue.0.len() {
            if self.queue.0[index].server_edits.came() {
                self.judge_queued(index).await;
                self.queue.0[index].server_edits = ServerEdits::None;
                judged = true;
            }
        }
        judged
    }

    /// Asks the questions that the calls need now, and withdraws all others.
    pub(super) async fn put_questions(&mut self) -> Result<(), Halt> {
        while self.take_replies(0).await? {
            self.judge_queue().await;
        }
        for index in 0..self.queue.0.len() {
            let waiting = &self.queue.0[index];
            if waiting.server_edits.awaited() {
                continue;
            }
            let needed = self.question_about(waiting);
            let question = match (self.queue.0[index].question.take(), needed) {
                (Some(old), _) if old.is_final() => Some(old),
                (Some(old), Some(new)) if old.is_same(&new) => Some(old),
                (Some(mut old), new) => match self.withdraw(&mut old).await? {
                    true => self.put(new, true).await?,
                    false => Some(old),
                },
                (None, new) => {
                    let again = self.queue.0[index].edited.is_some();
                    self.put(new, again).await?
                }
            };
            self.queue.0[index].question = question;
        }
        Ok(())
    }

    /// Takes the replies that came meanwhile, from a place of the queue on. Returns true if one of them allows something.
    async fn take_replies(&mut self, from: usize) -> Result<bool, Halt> {
        let mut allowed = false;
        for index in from..self.queue.0.len() {
            if let Some(question) = &mut self.queue.0[index].question {
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
            self.send(TurnEvent::Withdraw(question.question.id)).await?;
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
        let mut shown = question.question.clone();
        if again {
            shown.reasons.push(ASKED_AGAIN.to_owned());
        }
        self.send_question(&mut question, shown).await?;
        Ok(Some(question))
    }

    /// Sends `shown` to the person under a new id, which `question` gets too.
    pub(super) async fn send_question(
        &self,
        question: &mut CallQuestion,
        mut shown: Question,
    ) -> Result<(), Halt> {
        shown.id = self.services.id();
        question.question.id = shown.id;
        let (reply, answer) = oneshot::channel();
        question.stage = QuestionState::Open(answer);
        self.send(TurnEvent::Question(Box::new(shown), reply)).await
    }

    /// Waits until the next call has its answer, or needs none any more.
    pub(super) async fn answer_to_next(&mut self) -> Result<NextCall, Halt> {
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
            if self.cancel.is_cancelled() {
                return Ok(self.cancelled_next());
            }
            if self.judge_renames().await {
                self.put_questions().await?;
            }
            let next = self.queue.next();
            let awaits_server = next.as_ref().is_some_and(|it| it.server_edits.awaited());
            match next.and_then(|next| next.question.as_mut()) {
                None if awaits_server => {}
                None => return Ok(NextCall::NotAsked),
                Some(question) if awaits_server => question.take_reply(),
                Some(question) => {
                    match std::mem::replace(&mut question.stage, QuestionState::New) {
                        QuestionState::Answered(answer) => return Ok(NextCall::Answered(answer)),
                        open => question.stage = open,
                    }
                }
            }
            let asks = self.queue.unanswered().next().is_some();
            if asks && !std::mem::replace(&mut asking, true) {
                self.state(ChatState::Asking, "").await?;
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Ok(self.cancelled_next()),
                Ok(()) = new_services.changed() => return Ok(NextCall::Changed),
                _ = self.queue.answered() => {}
            }
        }
    }

    /// Returns the state of the next call in a cancelled turn. A rename that was not judged yet has no answer.
    fn cancelled_next(&self) -> NextCall {
        match self.queue.first() {
            Some(next) if next.server_edits.awaited() => NextCall::Changed,
            _ => NextCall::Answered(QuestionEnd::Gone),
        }
    }

    /// Takes an answer that came while another call runs.
    pub(super) async fn answered_early(&mut self, index: usize) -> Result<(), Halt> {
        self.check_edit(index).await?;
        let mut judged = self.judge_renames().await;
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
        let waiting = self.queue.0.get_mut(index);
        let Some(question) = waiting.and_then(|waiting| waiting.question.as_mut()) else {
            return Ok(false);
        };
        let QuestionState::Answered(QuestionEnd::Reply(Reply::Always(scope))) = question.stage
        else {
            return Ok(false);
        };
        question.stage = QuestionState::Answered(QuestionEnd::Reply(Reply::Once));
        for allowance in question.allowances(scope, &self.workspace) {
            self.allow(allowance).await?;
        }
        Ok(true)
    }
}
