//! The questions of an agent to the person: requests for permission, and elicitations.

use std::pin::Pin;
use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::oneshot;

use super::calls::{self, LoggedCall};
use super::diffs;
use super::elicitation::Elicitation;
use super::output::AgentOutput;
use super::parts::{LONGEST_ODD, TurnParts};
use super::permission::{self, AskedCall, PermissionAnswer, PermissionRequest, ShownCall};
use crate::audit::Record;
use crate::chat::turn::{Halt, TurnEvent};
use crate::protocol::{ChatState, Question};
use crate::services::audit_task;
use crate::tool::agent_call::AgentCall;
use crate::tool::context::Questioner;
use crate::tool::permissions::Reply;
use co_acp::AgentConnection;
use co_acp::schema::{
    CreateElicitationRequest, ElicitationAcceptAction, ElicitationAction, ElicitationId, RequestId,
    ToolCallId,
};
use co_text::{one_line, start_of};

/// Resolves to the id of a question and the reply to it. The reply is `None` if the question was withdrawn.
type QuestionReply = Pin<Box<dyn Future<Output = (u64, Option<Reply>)> + Send + Sync>>;

/// The open questions of an agent in a turn.
pub(super) struct AgentQuestions {
    turn: Arc<TurnParts>,
    /// The requests of the agent, each with the id of its question.
    asked: Vec<(AgentRequest, u64)>,
    replies: FuturesUnordered<QuestionReply>,
}

/// A request of the agent that the person must answer.
enum AgentRequest {
    Permission(PermissionRequest),
    Elicitation(Elicitation),
}

/// The reply of the person to a question.
pub(super) struct PersonReply {
    question: u64,
    /// The reply, or `None` if the question was withdrawn.
    reply: Option<Reply>,
}

impl AgentRequest {
    fn id(&self) -> &RequestId {
        match self {
            Self::Permission(request) => &request.id,
            Self::Elicitation(asked) => &asked.id,
        }
    }
}

impl AgentQuestions {
    pub(super) fn new(turn: Arc<TurnParts>) -> Self {
        Self {
            turn,
            asked: Vec::new(),
            replies: FuturesUnordered::new(),
        }
    }

    /// Waits for the next reply of the person. If the returned future is dropped, no reply is lost.
    pub(super) async fn next(&mut self) -> PersonReply {
        match self.replies.next().await {
            Some((question, reply)) => PersonReply { question, reply },
            None => std::future::pending().await,
        }
    }

    /// Handles the person's reply to a question.
    pub(super) async fn replied(
        &mut self,
        connection: &mut AgentConnection,
        PersonReply { question, reply }: PersonReply,
    ) -> Result<(), Halt> {
        let Some(at) = self.asked.iter().position(|(_, it)| *it == question) else {
            return Ok(());
        };
        let request = match self.asked.swap_remove(at) {
            (AgentRequest::Elicitation(asked), _) => {
                return self.elicited(connection, asked, reply).await;
            }
            (AgentRequest::Permission(request), _) => request,
        };
        let words = match &reply {
            Some(Reply::Deny(words)) => words.clone(),
            _ => None,
        };
        let answer = request.answer(reply);
        self.answer(connection, &request, answer, "person").await?;
        match words {
            Some(words) => Ok(self.turn.chat.send(TurnEvent::Steer(words)).await?),
            None => {
                let title = one_line(&request.title);
                self.turn.state(ChatState::Running, title).await
            }
        }
    }

    /// Withdraws the question about a request that the agent has cancelled.
    pub(super) async fn withdrawn(&mut self, id: &RequestId) -> Result<(), Halt> {
        let at = self.asked.iter().position(|(asked, _)| asked.id() == id);
        let Some(at) = at else {
            return Ok(());
        };
        let (_, question) = self.asked.swap_remove(at);
        Ok(Questioner::withdraw(&self.turn.chat, question).await?)
    }

    /// Withdraws the questions about all requests of the agent.
    pub(super) async fn withdraw_all(&mut self) -> Result<(), Halt> {
        for (_, question) in std::mem::take(&mut self.asked) {
            Questioner::withdraw(&self.turn.chat, question).await?;
        }
        Ok(())
    }

    /// Withdraws the questions about a call that has ended. Answers the agent's requests to which these questions belong.
    pub(super) async fn call_ended(
        &mut self,
        connection: &mut AgentConnection,
        call: &ToolCallId,
    ) -> Result<(), Halt> {
        let is_about = |(it, _): &(AgentRequest, u64)| matches!(it, AgentRequest::Permission(it) if it.call == *call);
        while let Some(at) = self.asked.iter().position(is_about) {
            let (request, question) = self.asked.swap_remove(at);
            Questioner::withdraw(&self.turn.chat, question).await?;
            let _stuck = connection.answer_permission(request.id(), None);
        }
        Ok(())
    }

    /// Shows that the person has finished the task at an address of the agent, such as a login. If the question about the address
    /// is still open, closes the question and accepts the request.
    pub(super) async fn completed(
        &mut self,
        connection: &mut AgentConnection,
        output: &mut AgentOutput,
        completed: &ElicitationId,
    ) -> Result<(), Halt> {
        let is_about = |(it, _): &(AgentRequest, u64)| matches!(it, AgentRequest::Elicitation(it) if it.is_completed(completed));
        if let Some(at) = self.asked.iter().position(is_about) {
            let (request, question) = self.asked.swap_remove(at);
            Questioner::withdraw(&self.turn.chat, question).await?;
            let action = ElicitationAction::Accept(ElicitationAcceptAction::new());
            let _stuck = connection.answer_elicitation(request.id(), action);
        }
        output.say("has what it asked you for").await
    }

    /// Asks the person the question of an elicitation. Declines an elicitation that co cannot show.
    pub(super) async fn elicit(
        &mut self,
        connection: &mut AgentConnection,
        output: &mut AgentOutput,
        (id, request): (RequestId, &CreateElicitationRequest),
    ) -> Result<(), Halt> {
        match Elicitation::new(id.clone(), request) {
            Ok(asked) => self.put_elicitation(connection, asked).await,
            Err(why) => {
                let action = ElicitationAction::Decline;
                let _stuck = connection.answer_elicitation(&id, action);
                let message = start_of(&request.message, LONGEST_ODD);
                let text = format!("asked you something that co declined: {why}\n{message}");
                output.say(&text).await
            }
        }
    }

    /// Shows the person the question of an elicitation, unless the turn is cancelled.
    async fn put_elicitation(
        &mut self,
        connection: &mut AgentConnection,
        asked: Elicitation,
    ) -> Result<(), Halt> {
        let turn = &self.turn;
        if turn.context.cancel.is_cancelled() {
            let action = ElicitationAction::Cancel;
            let _stuck = connection.answer_elicitation(&asked.id, action);
            return Ok(());
        }
        let mut question = asked.question(&turn.context, &turn.spec.name);
        for part in &mut question.choices {
            part.question = turn.redacted(&part.question).await.0;
        }
        if let Some(address) = asked.address() {
            turn.note(&format!("{} asks you to open {address}", turn.spec.name))
                .await?;
        }
        self.put(AgentRequest::Elicitation(asked), question).await
    }

    /// Shows the person the question about a request of the agent.
    async fn put(&mut self, request: AgentRequest, question: Question) -> Result<(), Halt> {
        let number = question.id;
        let reply: oneshot::Receiver<Reply> = Questioner::ask(&self.turn.chat, question).await?;
        self.replies
            .push(Box::pin(async move { (number, reply.await.ok()) }));
        self.asked.push((request, number));
        self.turn.state(ChatState::Asking, "").await
    }

    /// Handles the person's reply to an elicitation. If the form does not accept an answer, asks the person again.
    async fn elicited(
        &mut self,
        connection: &mut AgentConnection,
        asked: Elicitation,
        reply: Option<Reply>,
    ) -> Result<(), Halt> {
        let action = match asked.action(reply) {
            Ok(action) => action,
            Err(why) => {
                self.turn.note(&why).await?;
                return self.put_elicitation(connection, asked).await;
            }
        };
        let word = match action {
            ElicitationAction::Accept(_) => "answered",
            ElicitationAction::Decline => "declined",
            _ => "not answered",
        };
        let text = format!("{} asked you; {word}", self.turn.spec.name);
        self.turn.chat.note(&text).await?;
        // If it does not read, its prompt does not end, and the person cancels it.
        let _stuck = connection.answer_elicitation(&asked.id, action);
        self.turn.state(ChatState::Running, "").await
    }

    /// Asks the person for a permission, unless a rule decides or the turn is cancelled. `logged` is the call that the request is
    /// about.
    pub(super) async fn ask(
        &mut self,
        connection: &mut AgentConnection,
        mut request: PermissionRequest,
        (logged, input): (Option<&LoggedCall>, Option<serde_json::Value>),
    ) -> Result<(), Halt> {
        let turn = &self.turn;
        if turn.context.cancel.is_cancelled() {
            let _stuck = connection.answer_permission(&request.id, None);
            return Ok(());
        }
        let asked = AskedCall {
            input: input.as_ref(),
            kind: logged.map(|it| it.call.kind),
            is_confined: turn.is_confined(),
        };
        if let Some(answer) = request.decided(&asked, &turn.context).await {
            return self.answer(connection, &request, answer, "policy").await;
        }
        let shown = self.shown(&request, logged).await;
        if turn.context.cancel.is_cancelled() {
            let _stuck = connection.answer_permission(&request.id, None);
            return Ok(());
        }
        let question = request.question(turn, &shown);
        self.put(AgentRequest::Permission(request), question).await
    }

    /// Returns the texts of the call that a request is about.
    async fn shown(&self, request: &PermissionRequest, logged: Option<&LoggedCall>) -> ShownCall {
        let turn = &self.turn;
        let record = logged.map(|it| turn.record(it));
        let diffs = logged.map(LoggedCall::diffs).unwrap_or_default();
        let asked = diffs::asked_change(&turn.context, diffs.clone()).await;
        let output = logged.map(LoggedCall::output_beside_diffs);
        let raw = logged.and_then(|it| it.call.raw_input.as_ref());
        let command = raw.and_then(permission::command_text);
        let beside = raw.and_then(|it| permission::input_beside_command(it, &turn.context.cwd));
        let beside = beside.and_then(|it| permission::input_beside_diffs(it, &diffs));
        let notes = asked.notes.join("\n");
        let record = record.unwrap_or_else(|| AgentCall {
            title: request.title.clone(),
            kind: String::new(),
            input: None,
            places: Vec::new(),
        });
        ShownCall {
            call: turn.redacted_call(record).await,
            command: match command {
                Some(command) => Some(turn.redacted(&command).await.0),
                None => None,
            },
            input: match beside {
                Some(input) => Some(turn.redacted(&calls::input_text(&input)).await.0),
                None => None,
            },
            output: turn.redacted(&output.unwrap_or_default()).await.0,
            change: asked.change,
            notes: turn.redacted(&notes).await.0,
        }
    }

    /// Records the answer to a request for permission, and then sends it to the agent.
    async fn answer(
        &self,
        connection: &mut AgentConnection,
        request: &PermissionRequest,
        answer: PermissionAnswer,
        by: &str,
    ) -> Result<(), Halt> {
        let turn = &self.turn;
        let title = request.title.clone();
        let text = format!(
            "{} asked: {}; {}",
            turn.spec.name,
            one_line(&title),
            answer.words
        );
        turn.chat.note(&text).await?;
        let record = Record {
            time: Record::now(),
            chat: turn.context.transcript_id.clone(),
            call: request.call.to_string(),
            command: title,
            verdict: if by == "person" { "ask" } else { "auto" }.to_owned(),
            rule: (by != "person").then(|| answer.words.clone()),
            decided: by.to_owned(),
            confinement: turn.level().to_owned(),
            outcome: Some(if answer.is_yes { "allowed" } else { "refused" }.to_owned()),
            ..Record::default()
        };
        // It fails only if the writing panicked, which is logged.
        let _ = audit_task::write(&turn.context.services, record, None).await;
        // If it does not read, its prompt does not end, and the person cancels it.
        let _stuck = connection.answer_permission(&request.id, answer.option);
        Ok(())
    }
}
