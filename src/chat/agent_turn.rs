//! One turn of another agent: it sends the person's prompt, and hands on what the agent does. Like the turn of a model, it is a child
//! task of the chat and owns nothing that outlives it, except for the process of the agent, which it gives back.
//!
//! The agent acts by itself, inside its confinement. So nothing here decides what it may do: what it says about a call is only
//! shown.

mod calls;
mod content;
mod elicitation;
mod images;
mod live;
mod login;
mod own_calls;
mod past;
mod permission;
mod start;
mod subagents;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use self::calls::{AgentPiece, CallLog, LoggedCall};
use self::content::{block_text, steps};
use self::elicitation::Elicitation;
use self::images::KeptImages;
use self::live::LiveCall;
use self::own_calls::{OwnCalls, OwnNews, call_of};
pub(super) use self::past::PastSession;
use self::past::sent_text;
use self::permission::{AskedCall, PermissionAnswer, PermissionRequest, ShownCall};
use self::subagents::{SubAgentNews, SubAgents};
use super::turn::{Halt, LiveThought, ToChat, TurnEnd, TurnEvent};
use crate::agent::{AgentProcess, AgentSpec, AgentWish, MOST_MEMORY, PlanMode, TurnAsker};
use crate::audit::Record;
use crate::checkpoint::{CurrentFile, named};
use crate::config::AgentConfinement;
use crate::protocol::{ChatState, Question};
use crate::services::audit_task;
use crate::tool::ToolSet;
use crate::tool::agent_call::{AgentCall, ShownAgentCall};
use crate::tool::context::{CallContext, QuestionHost, TurnKind};
use crate::tool::event::{CallEnd, CallEvent};
use crate::tool::permissions::{Reply, TurnMemory};
use co_acp::MaybeUndefined;
use co_acp::schema::{
    AuthMethodId, CompactionId, CompactionStatus, CompactionUpdate, ContentBlock,
    CreateElicitationRequest, ElicitationAction, ImageContent, NoticeSeverity, PlanUpdateContent,
    RequestId, SessionId, SessionUpdate, StopReason, ToolCallContent, ToolCallId, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind, UsageUpdate,
};
use co_acp::{AgentAnswer, AgentConnection, Incoming, RequestNumber};
use co_exec::AGENT;
use co_llm::transcript::{Call, Cost, Decision, End, Item, Outcome, ShownPart, Usage};
use co_text::{one_line, start_of};

/// The time for an agent to end its turn after `<C-c>`. Then its processes are ended.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// The least time between two records of what the turn changed. Records that a command of the person needs do not wait.
const RECORD_PERIOD: Duration = Duration::from_millis(500);

/// The most unknown messages of one turn that the chat shows with their text.
const MOST_ODD: usize = 20;

/// The most bytes of such a message.
const LONGEST_ODD: usize = 2_000;

/// The most bytes of the title of a call.
const LONGEST_TITLE: usize = 2_000;

/// The most commands of an agent that Neovim completes.
const MOST_COMMANDS: usize = 200;

/// A turn of an agent that will run.
pub(super) struct AgentTurn {
    pub context: Arc<CallContext>,
    pub chat: ToChat,
    pub tools: ToolSet,
    pub spec: AgentSpec,
    /// The process of an earlier turn.
    pub process: Option<AgentProcess>,
    /// The items of the transcript since the last turn.
    pub prompt: Vec<Item>,
    /// The chat had turns before.
    pub has_past: bool,
    /// The session of an earlier process of the agent.
    pub past: Option<PastSession>,
    /// The earlier choices of the person for the agent.
    pub wishes: Vec<AgentWish>,
    /// The permissions of the person for calls of co's own tools.
    pub memory: TurnMemory,
    /// Receives the choices of the person while the turn runs.
    pub new_wishes: mpsc::Receiver<AgentWish>,
    /// The method by which an earlier process of the agent was logged in.
    pub login: Option<AuthMethodId>,
}

/// The number of choices that may wait for the turn. A person types no more.
pub(super) const MAX_WISHES: usize = 16;

/// The number of a question, and the reply to it; none if it was withdrawn.
type QuestionReply = Pin<Box<dyn Future<Output = (u64, Option<Reply>)> + Send + Sync>>;

/// The state of a running turn.
struct Progress {
    turn: TurnParts,
    log: CallLog,
    own: OwnCalls,
    /// The open call.
    live: Option<LiveCall>,
    thought: Option<(String, LiveThought)>,
    is_speaking: bool,
    /// The requests of the agent whose questions are open, with the numbers of the questions.
    asked: Vec<(AgentRequest, u64)>,
    replies: FuturesUnordered<QuestionReply>,
    agents: SubAgents,
    images: KeptImages,
    /// The last plan that came as a text.
    plan_text: Option<String>,
    /// The cost of the session in another currency than US dollars.
    other_cost: Option<String>,
    past: Option<PastSession>,
    wishes: Vec<AgentWish>,
    new_wishes: mpsc::Receiver<AgentWish>,
    odd: usize,
    /// Asks about the hosts of the agent in this turn.
    asker: Option<Arc<TurnAsker>>,
    /// The memory that the messages of earlier turns took.
    memory_before: u64,
    /// The last time at which the changes of the turn were recorded.
    recorded: Instant,
    /// The secret files of which the person was told that the agent can read them.
    open_secrets: Vec<PathBuf>,
    /// The person was told that co cannot find them.
    has_told_unknown: bool,
    /// The method by which the agent was logged in before.
    login: Option<AuthMethodId>,
}

/// A request of the agent that the person answers.
enum AgentRequest {
    Permission(PermissionRequest),
    Elicitation(Elicitation),
}

impl AgentRequest {
    fn id(&self) -> &RequestId {
        match self {
            Self::Permission(request) => &request.id,
            Self::Elicitation(asked) => &asked.id,
        }
    }
}

/// The way in which the plan mode of an agent was asked for.
enum PlanEntry {
    Entered(PlanMode),
    /// The agent is not in it, which the person was told.
    Refused,
    Cancelled,
    /// The agent has ended, or sent too much, or does not read.
    Dead,
}

/// A call that the chat stops following: it has ended, or `status` says that it goes on.
struct EndedCall<'a> {
    id: String,
    ok: bool,
    /// The words about its end.
    status: &'a str,
    output: &'a str,
    /// Its arguments, if they changed since it began.
    arguments: Option<Box<serde_json::Value>>,
    /// The block in which its output was shown so far.
    block: Option<u64>,
}

/// The parts of a turn that do not change.
struct TurnParts {
    context: Arc<CallContext>,
    chat: ToChat,
    tools: ToolSet,
    spec: AgentSpec,
}

impl AgentTurn {
    /// Runs the turn to its end.
    pub(super) async fn run(self) -> TurnEnd {
        let Self {
            context,
            chat,
            tools,
            spec,
            process,
            prompt,
            has_past,
            past,
            wishes,
            memory,
            new_wishes,
            login,
        } = self;
        let missing = context.unless_cancelled(context.first_checkpoint()).await;
        // Before the checkpoint of this turn, of which the agent knows all.
        let changed = match has_past {
            true => context.changed_since().await,
            false => Vec::new(),
        };
        let checkpoint = context.turn_checkpoint(spec.name.clone()).await;
        let images = context.services.executor.settings().spill_dir.clone();
        let is_confined = spec.confinement == AgentConfinement::Workspace;
        let mut progress = Progress {
            turn: TurnParts {
                context: Arc::clone(&context),
                chat,
                tools,
                spec,
            },
            log: CallLog::default(),
            own: OwnCalls::new(memory, is_confined),
            live: None,
            thought: None,
            is_speaking: false,
            asked: Vec::new(),
            agents: SubAgents::default(),
            images: KeptImages::new(images),
            plan_text: None,
            other_cost: None,
            past,
            wishes,
            new_wishes,
            replies: FuturesUnordered::new(),
            odd: 0,
            asker: None,
            memory_before: 0,
            recorded: Instant::now(),
            open_secrets: Vec::new(),
            has_told_unknown: false,
            login,
        };
        let mut kept = None;
        let mut prompt = prompt;
        let told = match progress.tell_no_undo(missing.ok().flatten()).await {
            Ok(()) => {
                progress
                    .tell_changed(&changed, process.as_ref(), &mut prompt)
                    .await
            }
            Err(halt) => Err(halt),
        };
        let done = match told {
            Ok(()) => progress.run(process, &prompt, has_past, &mut kept).await,
            Err(halt) => Err(halt),
        };
        if let Some(process) = &mut kept {
            process.told = changed;
        }
        // Whatever the agent still does between two turns, it asks nobody.
        if let Some(asker) = &progress.asker {
            asker.end();
        }
        let closed = progress.close_all().await;
        // It must not go on without a record, nor write while its changes are looked at.
        if closed.is_err()
            && let Some(process) = kept.take()
        {
            process.last_words().await;
        }
        context.keep_changes(checkpoint).await;
        let (end, process) = match (done, closed) {
            (Ok(end), Ok(())) => (end, kept),
            (Err(Halt::Cancelled), _) => (End::Cancelled, kept),
            _ => (End::Failed, None),
        };
        TurnEnd {
            end,
            fault: None,
            failed_confined: progress.own.failed_confined(),
            unanswered: Vec::new(),
            agent: process.map(Box::new),
        }
    }
}

impl Progress {
    /// Sends the prompt and follows the agent. The process comes into `kept`, if it lives on.
    async fn run(
        &mut self,
        process: Option<AgentProcess>,
        prompt: &[Item],
        has_past: bool,
        kept: &mut Option<AgentProcess>,
    ) -> Result<End, Halt> {
        let Some(mut process) = self.process(process, has_past).await? else {
            return Ok(End::Failed);
        };
        if self.turn.context.cancel.is_cancelled() {
            *kept = Some(process);
            return Err(Halt::Cancelled);
        }
        let mut plan = None;
        if self.turn.context.kind == TurnKind::Plan {
            match self.enter_plan(&mut process).await {
                Ok(PlanEntry::Entered(entered)) => plan = Some(entered),
                Ok(PlanEntry::Refused) => {
                    *kept = Some(process);
                    return Ok(End::Failed);
                }
                Ok(PlanEntry::Cancelled) => {
                    *kept = Some(process);
                    return Err(Halt::Cancelled);
                }
                Ok(PlanEntry::Dead) => return self.end_process(process).await,
                Err(halt) => {
                    process.last_words().await;
                    return Err(halt);
                }
            }
        }
        let done = self.prompt(&mut process, prompt).await;
        if let Some(plan) = plan
            && process.state.is_so(&plan.enter)
        {
            // If it does not read, its next turn tells.
            let _stuck = process.change(plan.leave);
            self.tell_state(&process).await?;
        }
        if let Ok(Some(end)) = done {
            self.tell_secrets(&process).await?;
            *kept = Some(process);
            return Ok(end);
        }
        match done {
            // Until it has ended, it may still change files.
            Err(halt) => {
                process.last_words().await;
                Err(halt)
            }
            Ok(_) => self.end_process(process).await,
        }
    }

    /// Ends a process that does not serve the turn any more, and tells the person.
    async fn end_process(&mut self, process: AgentProcess) -> Result<End, Halt> {
        // Until it has ended, it may still change files.
        let words = process.last_words().await;
        self.tell_death(&words, "the next prompt starts it anew")
            .await?;
        Ok(End::Failed)
    }

    /// Sends the prompt, and follows the agent to its end. Returns none if the agent has ended.
    async fn prompt(
        &mut self,
        process: &mut AgentProcess,
        prompt: &[Item],
    ) -> Result<Option<End>, Halt> {
        let blocks = self.blocks(prompt, process.takes_images).await?;
        self.state(ChatState::Thinking, "").await?;
        let session = process.session.clone();
        match process.connection.prompt(&session, blocks) {
            Ok(sent) => {
                self.own.begin_prompt(process.tools.as_ref());
                let done = self.follow(process, sent).await;
                let ended = self.end_own_calls().await;
                let done = done?;
                ended.map(|()| done)
            }
            Err(error) => {
                tracing::info!(%error, "an agent takes no prompt");
                Ok(None)
            }
        }
    }

    /// Takes the next step of a call of co's own tools.
    async fn own_news(&mut self, news: OwnNews) -> Result<(), Halt> {
        match news {
            OwnNews::Asked(mut asked) => {
                if asked.cancel.is_cancelled() || self.turn.context.cancel.is_cancelled() {
                    return Ok(());
                }
                self.show_all().await?;
                self.end_thought().await?;
                self.is_speaking = false;
                self.log.hold(&asked.call.tool);
                let call = call_of(self.turn.call_id(), &mut asked);
                let turn = &self.turn;
                self.own.begin(call, asked, (&turn.context, &turn.chat));
                Ok(())
            }
            OwnNews::Sent(event) => Ok(self.turn.chat.send(event).await?),
            OwnNews::Ended => {
                let Some(ended) = self.own.take_ended().await else {
                    return Ok(());
                };
                for question in &ended.questions {
                    QuestionHost::withdraw(&self.turn.chat, *question).await?;
                }
                if let Err(why) = ended.result {
                    self.cut_off(&ended.call, ended.shown, why).await?;
                }
                ended.answer();
                self.log.go_on();
                self.state(ChatState::Thinking, "").await?;
                self.drain().await
            }
        }
    }

    /// Records and shows the end of a call that has no outcome.
    async fn cut_off(&self, call: &Call, is_shown: bool, why: &'static str) -> Result<(), Halt> {
        let chat = &self.turn.chat;
        if !is_shown {
            let shown = self.turn.tools.shown(call);
            chat.show(CallEvent::Begun(shown)).await?;
        }
        let shown = ShownPart::line(why.to_owned());
        let outcome = Outcome {
            shown: Some(shown.clone()),
            ..Outcome::new(&call.id, why, false)
        };
        let ended = CallEnd::of(&outcome, shown);
        chat.record(Item::Outcome(outcome)).await?;
        Ok(chat.show(CallEvent::Ended(ended)).await?)
    }

    /// Takes no more calls of co's own tools, and waits for the end of the one that runs.
    async fn end_own_calls(&mut self) -> Result<(), Halt> {
        while self.own.end_prompt() {
            let news = self.own.next().await;
            self.own_news(news).await?;
        }
        Ok(())
    }

    /// Brings the agent into its plan mode.
    async fn enter_plan(&mut self, process: &mut AgentProcess) -> Result<PlanEntry, Halt> {
        let name = self.turn.spec.name.clone();
        let Some(plan) = process.state.plan_mode() else {
            let text = format!(
                "{name} has no plan mode, and co cannot keep it from more than planning: ask it for a plan in words"
            );
            self.turn.chat.note(&text).await?;
            return Ok(PlanEntry::Refused);
        };
        if process.state.is_so(&plan.enter) {
            return Ok(PlanEntry::Entered(plan));
        }
        if process.change(plan.enter.clone()).is_err() {
            return Ok(PlanEntry::Dead);
        }
        self.tell_state(process).await?;
        let cancel = self.turn.context.cancel.clone();
        while process.is_changing() {
            let incoming = cancel.run_until_cancelled(process.connection.next()).await;
            let Some(incoming) = incoming else {
                // If it does not read, its next turn tells.
                let _stuck = process.change(plan.leave);
                return Ok(PlanEntry::Cancelled);
            };
            if incoming == Incoming::Ended {
                return Ok(PlanEntry::Dead);
            }
            self.hear(process, incoming).await?;
            if self.is_flooded(process).await? {
                return Ok(PlanEntry::Dead);
            }
        }
        if process.state.is_so(&plan.enter) {
            return Ok(PlanEntry::Entered(plan));
        }
        let text = format!(
            "{name} is not in its plan mode, so it did not get the task: ask it for a plan in words"
        );
        self.turn.chat.note(&text).await?;
        Ok(PlanEntry::Refused)
    }

    /// Sends a choice of the person to the agent.
    async fn wish(&self, process: &mut AgentProcess, wish: &AgentWish) -> Result<(), Halt> {
        let name = &self.turn.spec.name;
        let why = match process.state.find(wish) {
            Ok(change) if process.state.is_so(&change) => None,
            Ok(change) => process.change(change).err().map(|why| format!(": {why}")),
            Err(why) => Some(format!(" {why}")),
        };
        if let Some(why) = why {
            let text = self.redacted(&format!("{name}{why}")).await.0;
            self.turn.chat.note(&one_line(&text)).await?;
        }
        Ok(())
    }

    /// Tells the chat the modes, options and commands of the agent.
    async fn tell_state(&self, process: &AgentProcess) -> Result<(), Halt> {
        let state = Box::new(process.state.clone());
        Ok(self.turn.chat.send(TurnEvent::AgentState(state)).await?)
    }

    /// Takes what the agent wrote since the last turn, unless the turn is cancelled. Returns false if the agent has ended.
    async fn hear_late(&mut self, process: &mut AgentProcess) -> Result<bool, Halt> {
        let cancel = self.turn.context.cancel.clone();
        while !cancel.is_cancelled()
            && let Some(incoming) = process.connection.next().now_or_never()
        {
            if incoming == Incoming::Ended {
                return Ok(false);
            }
            self.hear(process, incoming).await?;
            if self.is_flooded(process).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether the agent sent more in this turn than co keeps, and tells the person.
    async fn is_flooded(&self, process: &AgentProcess) -> Result<bool, Halt> {
        let taken = process.connection.memory_taken() - self.memory_before;
        if taken <= MOST_MEMORY {
            return Ok(false);
        }
        let name = &self.turn.spec.name;
        let most = co_text::size_text(MOST_MEMORY);
        let text =
            format!("{name} sent more in one turn than {most} of memory hold, so co ended it");
        self.turn.chat.note(&text).await?;
        Ok(true)
    }

    /// Tells the person why the turn cannot be taken back, if it cannot.
    async fn tell_no_undo(&self, why: Option<String>) -> Result<(), Halt> {
        match why {
            Some(why) => Ok(self
                .turn
                .chat
                .note(&format!("/undo cannot take this turn back: {why}"))
                .await?),
            None => Ok(()),
        }
    }

    /// Adds a note to the prompt about files that the agent has changed before, and somebody else since. The process was told about some
    /// of them already.
    async fn tell_changed(
        &self,
        changed: &[CurrentFile],
        process: Option<&AgentProcess>,
        prompt: &mut Vec<Item>,
    ) -> Result<(), Halt> {
        let is_new = |it: &&CurrentFile| process.is_none_or(|process| !process.told.contains(it));
        let new = changed.iter().filter(is_new);
        let new: Vec<_> = new.map(|(path, _)| path.display().to_string()).collect();
        if new.is_empty() {
            return Ok(());
        }
        let names = self.redacted(&one_line(&named(new))).await.0;
        let text = format!(
            "Not you, but somebody else has changed these files since your last change of them: {names}. Read them again before you change them."
        );
        self.turn.chat.tell_model(text.clone(), true).await?;
        prompt.push(Item::Note { text, once: true });
        Ok(())
    }

    async fn tell_death(&mut self, words: &str, then: &str) -> Result<(), Halt> {
        let name = &self.turn.spec.name;
        let text = format!("{name} has ended; {then}\n{words}");
        let text = self.redacted(text.trim_end()).await.0;
        Ok(self.turn.chat.note(&text).await?)
    }

    /// Returns the prompt of the person in the form of the protocol.
    async fn blocks(&self, items: &[Item], images: bool) -> Result<Vec<ContentBlock>, Halt> {
        let mut blocks = Vec::new();
        let mut left_out = Vec::new();
        for item in items {
            let (text, context) = match item {
                Item::User { text, context, .. } => (text, context),
                // Such as what the person took back.
                Item::Note { text, .. } => {
                    blocks.push(ContentBlock::from(format!("<note>\n{text}\n</note>")));
                    continue;
                }
                _ => continue,
            };
            blocks.push(ContentBlock::from(sent_text(text)));
            for piece in context {
                match &piece.image {
                    Some(image) if images => {
                        let image = ImageContent::new(image.data.clone(), image.media_type.clone());
                        blocks.push(ContentBlock::Image(image));
                    }
                    Some(_) => left_out.push(piece.name.as_str()),
                    None => {
                        let (name, text) = (piece.name.replace('"', "'"), &piece.text);
                        let text = format!("<context name=\"{name}\">\n{text}\n</context>");
                        blocks.push(ContentBlock::from(text));
                    }
                }
            }
        }
        if !left_out.is_empty() {
            let name = &self.turn.spec.name;
            let text = format!("left out: {}; {name} takes no images", left_out.join(", "));
            self.turn.chat.note(&text).await?;
        }
        Ok(blocks)
    }

    /// Follows the agent to the end of its prompt. Returns none if the agent has ended.
    async fn follow(
        &mut self,
        process: &mut AgentProcess,
        sent: RequestNumber,
    ) -> Result<Option<End>, Halt> {
        let cancel = self.turn.context.cancel.clone();
        let mut deadline = None;
        loop {
            let gives_way = self.log.gives_way_at();
            let shows = self.live.as_ref().and_then(LiveCall::due);
            let now = tokio::time::Instant::now();
            tokio::select! {
                incoming = process.connection.next() => match incoming {
                    Incoming::Ended => return Ok(None),
                    Incoming::Answer { number, answer } if number == sent => {
                        return self.answered(answer).await.map(Some);
                    }
                    incoming => {
                        self.hear(process, incoming).await?;
                        if self.is_flooded(process).await? {
                            return Ok(None);
                        }
                    }
                },
                Some((question, reply)) = self.replies.next(), if !self.replies.is_empty() => {
                    self.replied(&mut process.connection, question, reply).await?;
                }
                () = tokio::time::sleep_until(gives_way.unwrap_or(now)), if gives_way.is_some() => {
                    self.close_call(true).await?;
                    self.drain().await?;
                }
                news = self.own.next() => self.own_news(news).await?,
                Some(wish) = self.new_wishes.recv() => {
                    self.wish(process, &wish).await?;
                    self.tell_state(process).await?;
                }
                () = tokio::time::sleep_until(shows.unwrap_or(now)), if shows.is_some() => {
                    self.show_live().await?;
                }
                () = cancel.cancelled(), if deadline.is_none() => {
                    deadline = Some(now + CANCEL_TIMEOUT);
                    // If it does not read, it is ended at the deadline.
                    let _stuck = process.connection.cancel(&process.session);
                    self.withdraw_all().await?;
                    process.asker.end();
                }
                () = tokio::time::sleep_until(deadline.unwrap_or(now)), if deadline.is_some() => {
                    let name = &self.turn.spec.name;
                    let text = format!("{name} did not stop, so co ended it; the next prompt starts it anew");
                    self.turn.chat.note(&text).await?;
                    return Err(Halt::Cancelled);
                }
            }
        }
    }

    /// Takes the answer to the prompt.
    async fn answered(
        &mut self,
        answer: Result<AgentAnswer, co_acp::schema::Error>,
    ) -> Result<End, Halt> {
        let name = self.turn.spec.name.clone();
        let is_cancelled = self.turn.context.cancel.is_cancelled();
        let (end, note) = match answer {
            Ok(AgentAnswer::Prompted(response)) => match response.stop_reason {
                StopReason::EndTurn => (End::Done, None),
                StopReason::Cancelled => (End::Cancelled, None),
                StopReason::MaxTokens => (End::Done, Some("reached its output limit".to_owned())),
                StopReason::MaxTurnRequests => (
                    End::Guarded,
                    Some("reached its limit of requests".to_owned()),
                ),
                StopReason::Refusal => (End::Done, Some("refuses to go on".to_owned())),
                other => (End::Done, Some(format!("ended its turn: {other:?}"))),
            },
            Ok(_) => (End::Done, None),
            Err(_) if is_cancelled => (End::Cancelled, None),
            Err(error) => {
                let detail = error.data.map(|it| format!(" ({it})")).unwrap_or_default();
                (
                    End::Failed,
                    Some(format!("failed: {}{detail}", error.message)),
                )
            }
        };
        if let Some(cost) = self.other_cost.take() {
            self.say(&format!("says that its session cost {cost} so far"))
                .await?;
        }
        if let Some(note) = note {
            let text = format!("{name} {}", start_of(&note, LONGEST_ODD));
            let text = self.redacted(&text).await.0;
            self.show(AgentPiece::Note(text)).await?;
        }
        Ok(end)
    }

    /// Takes a message of the agent.
    async fn hear(&mut self, process: &mut AgentProcess, incoming: Incoming) -> Result<(), Halt> {
        match incoming {
            Incoming::Update { mut update, unread } => {
                self.images.keep(&mut update.update).await;
                let (session, update) = (update.session_id, update.update);
                match session == process.session {
                    true => self.updated(process, update, unread).await,
                    false => self.child_updated(process, session, update, unread).await,
                }
            }
            Incoming::Elicitation { id, request } => {
                self.elicit(&mut process.connection, id, &request).await
            }
            Incoming::ElicitationCompleted(_) => self.say("has what it asked you for").await,
            Incoming::Permission { id, request } => {
                let fields = request.tool_call.fields.clone();
                let input = fields.raw_input.clone();
                let request = PermissionRequest {
                    id,
                    call: request.tool_call.tool_call_id.clone(),
                    title: self
                        .turn
                        .title(fields.title.as_deref().unwrap_or_default())
                        .await,
                    options: request.options,
                };
                // What it says of the call is kept, whether the call goes on or not.
                let call = co_acp::schema::ToolCallUpdate::new(request.call.clone(), fields);
                let id = self.turn.call_id();
                if let Some(piece) = self.log.update(call, Vec::new(), || id) {
                    self.show(piece).await?;
                }
                self.ask(process, request, input).await
            }
            Incoming::Withdrawn(id) => self.withdrawn(&id).await,
            // Or it is the answer to a prompt that was given up.
            Incoming::Answer { number, answer } => {
                if let Some(why) = process.changed(number, answer) {
                    self.say(&format!("did not take the change: {why}")).await?;
                }
                self.tell_state(process).await
            }
            Incoming::Ended => Ok(()),
            Incoming::Unknown { method, text } => self.tell_odd(&format!("{method} {text}")).await,
            Incoming::Garbage { start, length } => {
                self.tell_odd(&format!("{start} ({length} bytes)")).await
            }
        }
    }

    /// Shows a sentence about the agent.
    async fn say(&mut self, words: &str) -> Result<(), Halt> {
        let text = format!("{} {words}", self.turn.spec.name);
        let (text, _) = self.redacted(&text).await;
        self.show(AgentPiece::Note(co_text::printable(&text))).await
    }

    /// Shows what a sub-agent says and does, below its call.
    async fn child_updated(
        &mut self,
        process: &mut AgentProcess,
        session: SessionId,
        update: SessionUpdate,
        unread: Vec<String>,
    ) -> Result<(), Halt> {
        let news = match update {
            SessionUpdate::SubagentUpdate(update) => Some(self.agents.announced(update)),
            SessionUpdate::SessionMessage(message) => self.agents.message(&session, message),
            SessionUpdate::SessionMessageChunk(chunk) => {
                self.agents.message_chunk(&session, &chunk)
            }
            update => Some(self.agents.said(session, update, &unread)),
        };
        match news {
            Some(news) => self.news(process, news).await,
            None => Ok(()),
        }
    }

    async fn news(&mut self, process: &mut AgentProcess, news: SubAgentNews) -> Result<(), Halt> {
        let (title, id) = (self.agents.title(&news.session), self.turn.call_id());
        let (call, piece) = self.log.of_sub_agent(&news, title, || id);
        self.called(process, piece, &call, None).await
    }

    /// Shows a message that co does not know.
    async fn tell_odd(&mut self, message: &str) -> Result<(), Halt> {
        self.odd += 1;
        let name = &self.turn.spec.name;
        let text = match self.odd {
            ..=MOST_ODD => format!(
                "{name} says what co does not know: {}",
                start_of(message, LONGEST_ODD)
            ),
            _ => {
                let message = start_of(message, LONGEST_ODD);
                tracing::info!(message, "an agent says what co does not know");
                return Ok(());
            }
        };
        let (text, _) = self.redacted(&text).await;
        self.show(AgentPiece::Note(one_line(&text))).await
    }

    async fn updated(
        &mut self,
        process: &mut AgentProcess,
        update: SessionUpdate,
        unread: Vec<String>,
    ) -> Result<(), Halt> {
        let is_call = matches!(
            update,
            SessionUpdate::ToolCall(_) | SessionUpdate::ToolCallUpdate(_)
        );
        if !is_call {
            for part in &unread {
                self.tell_odd(part).await?;
            }
        }
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                self.show(AgentPiece::Text(block_text(&chunk.content)))
                    .await
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                self.show(AgentPiece::Thought(block_text(&chunk.content)))
                    .await
            }
            SessionUpdate::ToolCall(call) => {
                let (key, status) = (call.tool_call_id.clone(), call.status);
                let id = self.turn.call_id();
                let piece = self.log.begin(call, unread, || id);
                self.called(process, piece, &key, Some(status)).await
            }
            SessionUpdate::ToolCallUpdate(update) => {
                self.call_updated(process, update, unread).await
            }
            SessionUpdate::Plan(plan) => self.show(AgentPiece::Plan(steps(&plan.entries))).await,
            SessionUpdate::PlanUpdate(update) => match update.plan {
                PlanUpdateContent::Items(items) => {
                    self.show(AgentPiece::Plan(steps(&items.entries))).await
                }
                PlanUpdateContent::Markdown(plan) => {
                    let text = format!("\n\n{}\n\n", plan.content);
                    match self.plan_text.replace(plan.content) {
                        Some(before) if Some(&before) == self.plan_text.as_ref() => Ok(()),
                        _ => self.show(AgentPiece::Text(text)).await,
                    }
                }
                other => self.tell_odd(&format!("{other:?}")).await,
            },
            SessionUpdate::PlanRemoved(_) => {
                self.turn.chat.send(TurnEvent::PlanRemoved).await?;
                self.say("dropped its plan").await
            }
            SessionUpdate::UsageUpdate(usage) => self.used(process, &usage).await,
            SessionUpdate::AvailableCommandsUpdate(update) => {
                let commands = update.available_commands.into_iter();
                process.state.commands = commands.take(MOST_COMMANDS).collect();
                self.tell_state(process).await
            }
            SessionUpdate::CurrentModeUpdate(update) => {
                process.state.set_mode(update.current_mode_id);
                self.tell_state(process).await
            }
            SessionUpdate::ConfigOptionUpdate(update) => {
                process.state.options = update.config_options;
                self.tell_state(process).await
            }
            SessionUpdate::SessionInfoUpdate(info) => match info.title {
                MaybeUndefined::Value(title) => {
                    let title = one_line(&co_text::printable(&self.turn.title(&title).await));
                    Ok(self.turn.chat.send(TurnEvent::Title(title)).await?)
                }
                _ => Ok(()),
            },
            SessionUpdate::Notice(notice) => {
                let severity = match notice.severity {
                    NoticeSeverity::Info => String::new(),
                    NoticeSeverity::Warning => "warns: ".to_owned(),
                    NoticeSeverity::Error => "reports an error: ".to_owned(),
                    other => serde_json::to_string(&other).unwrap_or_default() + ": ",
                };
                let description = notice.description.unwrap_or_default();
                let text = format!("{}\n{description}", notice.title);
                let text = start_of(text.trim_end(), LONGEST_ODD);
                match severity.as_str() {
                    "" => self.say(&format!("says: {text}")).await,
                    severity => self.say(&format!("{severity}{text}")).await,
                }
            }
            SessionUpdate::CompactionUpdate(update) => self.compacted(process, update).await,
            SessionUpdate::CompactionSummaryChunk(chunk) => {
                let call = compaction_call(&chunk.compaction_id);
                self.log.stream(&call, Some(&block_text(&chunk.content)));
                self.called(process, None, &call, None).await
            }
            SessionUpdate::SubagentUpdate(_)
            | SessionUpdate::SessionMessage(_)
            | SessionUpdate::SessionMessageChunk(_) => {
                let session = process.session.clone();
                self.child_updated(process, session, update, unread).await
            }
            // The chat shows the prompt already.
            SessionUpdate::UserMessageChunk(_) => Ok(()),
            other => {
                let text = serde_json::to_string(&other).unwrap_or_default();
                self.tell_odd(&text).await
            }
        }
    }

    async fn call_updated(
        &mut self,
        process: &mut AgentProcess,
        update: ToolCallUpdate,
        unread: Vec<String>,
    ) -> Result<(), Halt> {
        let (key, status) = (update.tool_call_id.clone(), update.fields.status);
        let id = self.turn.call_id();
        let piece = self.log.update(update, unread, || id);
        self.called(process, piece, &key, status).await
    }

    /// Shows that the agent sums up its session, as a call with the summary as its output.
    async fn compacted(
        &mut self,
        process: &mut AgentProcess,
        update: CompactionUpdate,
    ) -> Result<(), Halt> {
        let key = compaction_call(&update.compaction_id);
        let mut fields = ToolCallUpdateFields::new()
            .title("sum up the session".to_owned())
            .kind(ToolKind::Think);
        let mut unread = Vec::new();
        fields.status = Some(match &update.status {
            CompactionStatus::InProgress => ToolCallStatus::InProgress,
            CompactionStatus::Completed => ToolCallStatus::Completed,
            CompactionStatus::Failed | CompactionStatus::Cancelled => ToolCallStatus::Failed,
            other => {
                unread.extend(serde_json::to_string(other));
                ToolCallStatus::InProgress
            }
        });
        if let MaybeUndefined::Value(error) = update.error {
            unread.push(error);
        }
        if let MaybeUndefined::Value(summary) = update.summary {
            self.log.stream(&key, None);
            fields.content = Some(summary.into_iter().map(ToolCallContent::from).collect());
        }
        let update = ToolCallUpdate::new(key, fields);
        self.call_updated(process, update, unread).await
    }

    /// Shows the changes of a call by an update. If the call has ended, nobody has to be asked about it any more.
    async fn called(
        &mut self,
        process: &mut AgentProcess,
        piece: Option<AgentPiece>,
        call: &ToolCallId,
        status: Option<ToolCallStatus>,
    ) -> Result<(), Halt> {
        match piece {
            Some(piece) => self.show(piece).await?,
            None if self.log.is_open(call) => {
                if let Some(live) = &mut self.live {
                    live.mark();
                }
            }
            None => {}
        }
        self.drain().await?;
        let is_over = matches!(
            status,
            Some(ToolCallStatus::Completed | ToolCallStatus::Failed)
        );
        // If the person saves a file next, these changes of it are known to be the agent's.
        if is_over && self.recorded.elapsed() >= RECORD_PERIOD {
            self.turn.context.record_turn().await;
            self.tell_secrets(process).await?;
            self.recorded = Instant::now();
        }
        let is_about = |(it, _): &(AgentRequest, u64)| matches!(it, AgentRequest::Permission(it) if it.call == *call);
        while is_over && let Some(at) = self.asked.iter().position(is_about) {
            let (request, question) = self.asked.swap_remove(at);
            QuestionHost::withdraw(&self.turn.chat, question).await?;
            let _stuck = process.connection.answer_permission(request.id(), None);
        }
        Ok(())
    }

    /// Tells the person about secret files that appeared since the agent started, or that co cannot find out about them.
    async fn tell_secrets(&mut self, process: &AgentProcess) -> Result<(), Halt> {
        let name = &self.turn.spec.name;
        let text = match process.open_secrets(&self.turn.context.services).await {
            Ok(mut new) => {
                new.retain(|it| !self.open_secrets.contains(it));
                if new.is_empty() {
                    return Ok(());
                }
                let files = self.names(&new);
                self.open_secrets.extend(new);
                format!(
                    "{name} can read what is secret since it started: {files}; the next prompt starts it anew, without that"
                )
            }
            Err(_) if std::mem::replace(&mut self.has_told_unknown, true) => return Ok(()),
            Err(why) => format!(
                "{name} may read what is secret since it started, because co cannot look for secret files ({why}); the next prompt starts it anew"
            ),
        };
        self.show(AgentPiece::Note(text)).await
    }

    /// Returns the names of some files of the workspace.
    fn names(&self, files: &[PathBuf]) -> String {
        let root = self.turn.context.judge.root();
        let name = |it: &PathBuf| it.strip_prefix(root).unwrap_or(it).display().to_string();
        one_line(&named(files.iter().map(name).collect()))
    }

    async fn used(&mut self, process: &mut AgentProcess, usage: &UsageUpdate) -> Result<(), Halt> {
        let percent = usage.used.saturating_mul(100).checked_div(usage.size);
        if let Some(percent) = percent {
            self.turn.chat.send(TurnEvent::WindowUsed(percent)).await?;
        }
        // The cost is that of the session so far.
        if let Some(cost) = usage.cost.as_ref().filter(|it| it.currency != "USD") {
            self.other_cost = Some(format!("{} {}", cost.amount, cost.currency));
        }
        let cost = usage.cost.as_ref().filter(|it| it.currency == "USD");
        let dollars = cost.map_or(process.cost, |it| it.amount);
        let more = Cost::of_dollars(dollars - process.cost);
        process.cost = dollars;
        let usage = Usage {
            cost: more.filter(|it| *it > Cost::default()),
            ..Usage::default()
        };
        if usage.cost.is_some() {
            self.turn.chat.send(TurnEvent::Usage(usage)).await?;
        }
        Ok(())
    }

    /// Withdraws the question about a request that the agent takes back.
    async fn withdrawn(&mut self, id: &RequestId) -> Result<(), Halt> {
        let at = self.asked.iter().position(|(asked, _)| asked.id() == id);
        let Some(at) = at else {
            return Ok(());
        };
        let (_, question) = self.asked.swap_remove(at);
        Ok(QuestionHost::withdraw(&self.turn.chat, question).await?)
    }

    /// Withdraws the questions about all requests of the agent.
    async fn withdraw_all(&mut self) -> Result<(), Halt> {
        for (_, question) in std::mem::take(&mut self.asked) {
            QuestionHost::withdraw(&self.turn.chat, question).await?;
        }
        Ok(())
    }

    /// Asks the person what the agent asks. Declines what co cannot ask.
    async fn elicit(
        &mut self,
        connection: &mut AgentConnection,
        id: RequestId,
        request: &CreateElicitationRequest,
    ) -> Result<(), Halt> {
        match Elicitation::new(id.clone(), request) {
            Ok(asked) => self.put_elicitation(connection, asked).await,
            Err(why) => {
                let action = ElicitationAction::Decline;
                let _stuck = connection.answer_elicitation(&id, action);
                let message = start_of(&request.message, LONGEST_ODD);
                let text = format!("asked you something that co declined: {why}\n{message}");
                self.say(&text).await
            }
        }
    }

    /// Puts what the agent asks to the person, unless the turn is cancelled.
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
            let text = format!("{} asks you to open {address}", turn.spec.name);
            turn.chat.note(&turn.redacted(&text).await.0).await?;
        }
        self.put(AgentRequest::Elicitation(asked), question).await
    }

    /// Puts the question about a request of the agent to the person.
    async fn put(&mut self, request: AgentRequest, question: Question) -> Result<(), Halt> {
        let number = question.id;
        let reply: oneshot::Receiver<Reply> = QuestionHost::ask(&self.turn.chat, question).await?;
        self.replies
            .push(Box::pin(async move { (number, reply.await.ok()) }));
        self.asked.push((request, number));
        self.state(ChatState::Asking, "").await
    }

    /// Takes the person's reply to what the agent asks. An answer that the agent cannot take is asked for again.
    async fn elicited(
        &mut self,
        connection: &mut AgentConnection,
        asked: Elicitation,
        reply: Option<Reply>,
    ) -> Result<(), Halt> {
        let action = match asked.action(reply) {
            Ok(action) => action,
            Err(why) => {
                self.turn.chat.note(&self.redacted(&why).await.0).await?;
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
        self.state(ChatState::Running, "").await
    }

    /// Asks the person for a permission, unless a rule decides or the turn is cancelled.
    async fn ask(
        &mut self,
        process: &mut AgentProcess,
        mut request: PermissionRequest,
        input: Option<serde_json::Value>,
    ) -> Result<(), Halt> {
        let turn = &self.turn;
        if turn.context.cancel.is_cancelled() {
            let _stuck = process.connection.answer_permission(&request.id, None);
            return Ok(());
        }
        let logged = self.log.get(&request.call);
        let asked = AskedCall {
            input: input.as_ref(),
            kind: logged.map(|it| it.call.kind),
            is_confined: turn.spec.confinement == AgentConfinement::Workspace,
        };
        // co decides about the call itself when it comes.
        if process.tools.is_some()
            && asked.is_confined
            && logged.is_some_and(LoggedCall::is_own)
            && let Some(answer) = request.once()
        {
            let _stuck = process
                .connection
                .answer_permission(&request.id, Some(answer));
            return Ok(());
        }
        if let Some(answer) = request.decided(&asked, &turn.context).await {
            return self
                .answer(&mut process.connection, &request, answer, "policy")
                .await;
        }
        let record = logged.map(|it| turn.record(it));
        let output = logged.map(LoggedCall::output);
        let raw = logged.and_then(|it| it.call.raw_input.as_ref());
        let command = raw.and_then(permission::command_text);
        let beside = raw.and_then(|it| permission::input_beside_command(it, &turn.context.cwd));
        let record = record.unwrap_or_else(|| AgentCall {
            title: request.title.clone(),
            kind: String::new(),
            input: None,
            places: Vec::new(),
        });
        let shown = ShownCall {
            call: turn.redacted_call(record).await,
            command: match command {
                Some(command) => Some(self.redacted(&command).await.0),
                None => None,
            },
            input: match beside {
                Some(input) => Some(self.redacted(&calls::input_text(&input)).await.0),
                None => None,
            },
            output: self.redacted(&output.unwrap_or_default()).await.0,
        };
        if turn.context.cancel.is_cancelled() {
            let _stuck = process.connection.answer_permission(&request.id, None);
            return Ok(());
        }
        let question = request.question(&turn.context, &turn.spec.name, &shown);
        self.put(AgentRequest::Permission(request), question).await
    }

    /// Takes the person's reply to a question.
    async fn replied(
        &mut self,
        connection: &mut AgentConnection,
        question: u64,
        reply: Option<Reply>,
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
        let answer = request.answer(reply);
        self.answer(connection, &request, answer, "person").await?;
        self.state(ChatState::Running, one_line(&request.title))
            .await
    }

    /// Answers a request for permission, after the answer is recorded.
    async fn answer(
        &mut self,
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

    /// Shows a piece now, or when the open call has ended.
    async fn show(&mut self, piece: AgentPiece) -> Result<(), Halt> {
        if let Some(piece) = self.log.take(piece) {
            self.perform(piece).await?;
        }
        self.drain().await
    }

    /// Shows the pieces that wait, up to the next open call.
    async fn drain(&mut self) -> Result<(), Halt> {
        loop {
            self.close_call(false).await?;
            match self.log.next_held() {
                Some(piece) => self.perform(piece).await?,
                None => return Ok(()),
            }
        }
    }

    /// Shows all that waits, and the end of the open call.
    async fn show_all(&mut self) -> Result<(), Halt> {
        loop {
            self.close_call(true).await?;
            match self.log.next_held() {
                Some(piece) => self.perform(piece).await?,
                None => return Ok(()),
            }
        }
    }

    /// Shows the end of all that is open, at the end of the turn.
    async fn close_all(&mut self) -> Result<(), Halt> {
        self.log.go_on();
        self.show_all().await?;
        for piece in self.log.stale(|| self.turn.call_id()) {
            self.perform(piece).await?;
            self.close_call(true).await?;
        }
        self.end_thought().await
    }

    async fn perform(&mut self, piece: AgentPiece) -> Result<(), Halt> {
        if !matches!(piece, AgentPiece::Thought(_)) {
            self.end_thought().await?;
        }
        match piece {
            AgentPiece::Text(text) => {
                if !std::mem::replace(&mut self.is_speaking, true) {
                    self.state(ChatState::Streaming, "").await?;
                }
                Ok(self.turn.chat.send(TurnEvent::Text(text)).await?)
            }
            AgentPiece::Thought(text) => self.think(&text).await,
            AgentPiece::Call(key) => self.begin_call(&key).await,
            AgentPiece::Plan(steps) => self.plan(steps).await,
            AgentPiece::Note(text) => Ok(self.turn.chat.note(&text).await?),
        }
    }

    async fn think(&mut self, text: &str) -> Result<(), Halt> {
        let services = &self.turn.context.services;
        let new = || (String::new(), LiveThought::new(services.id()));
        let (whole, live) = self.thought.get_or_insert_with(new);
        whole.push_str(text);
        let events = match services.config.show_reasoning {
            true => live.push(text),
            false => Vec::new(),
        };
        for event in events {
            self.turn.chat.show(event).await?;
        }
        Ok(())
    }

    async fn end_thought(&mut self) -> Result<(), Halt> {
        let Some((text, live)) = self.thought.take() else {
            return Ok(());
        };
        if self.turn.context.services.config.show_reasoning {
            for event in live.end() {
                self.turn.chat.show(event).await?;
            }
        }
        let thought = Item::Reasoning {
            text,
            signature: None,
        };
        Ok(self.turn.chat.record(thought).await?)
    }

    async fn begin_call(&mut self, key: &ToolCallId) -> Result<(), Halt> {
        self.is_speaking = false;
        let Some(logged) = self.log.open(key) else {
            return Ok(());
        };
        let (id, record) = (logged.id.clone(), self.turn.record(logged));
        let record = self.turn.redacted_call(record).await;
        let mut live = LiveCall::new(record.clone(), self.turn.context.services.id());
        live.mark();
        self.live = Some(live);
        let turn = &self.turn;
        let title = one_line(&record.title);
        let call = record.item(id.clone());
        let shown = turn.tools.shown(&call);
        turn.chat.record(Item::Call(call)).await?;
        let decision = Decision::Agent;
        turn.chat
            .record(Item::Decision { call: id, decision })
            .await?;
        turn.chat.show(CallEvent::Begun(shown)).await?;
        turn.chat.show(CallEvent::Decision(Decision::Agent)).await?;
        self.state(ChatState::Running, title).await
    }

    /// Shows what the agent said meanwhile about the open call.
    async fn show_live(&mut self) -> Result<(), Halt> {
        let (Some(logged), Some(live)) = (self.log.opened(), &mut self.live) else {
            return Ok(());
        };
        let began = Instant::now();
        let record = self.turn.record(logged);
        let output = logged.output();
        let (output, _) = self.turn.redacted(&output).await;
        let output = co_text::printable(&output);
        let call = self.turn.redacted_call(record).await;
        let changed = live.take(&output, began.elapsed());
        if live.shown != call {
            let shown = ShownAgentCall::new(&call.arguments());
            live.shown = call;
            (self.turn.chat)
                .show(CallEvent::AgentCallChanged(shown))
                .await?;
        }
        if let Some((from, lines)) = changed {
            let block = live.block;
            let lines = CallEvent::OutputLines { block, from, lines };
            self.turn.chat.show(lines).await?;
        }
        Ok(())
    }

    /// Shows the end of the open call if it has ended, or in any case if `force` is set.
    async fn close_call(&mut self, force: bool) -> Result<(), Halt> {
        let Some(logged) = self.log.close(force) else {
            return Ok(());
        };
        let (id, ok, status) = (logged.id.clone(), logged.is_ok(), logged.status());
        let (output, record) = (logged.output(), self.turn.record(logged));
        let call = self.turn.redacted_call(record).await;
        let live = self.live.take();
        let changed = live.as_ref().is_some_and(|live| live.began != call);
        let ended = EndedCall {
            id,
            ok,
            status: &status,
            output: &output,
            arguments: changed.then(|| Box::new(call.arguments())),
            block: live.map(|live| live.block),
        };
        self.end_call(ended).await?;
        self.state(ChatState::Thinking, "").await
    }

    async fn end_call(&self, call: EndedCall<'_>) -> Result<(), Halt> {
        let (text, hidden) = self.redacted(call.output).await;
        let text = co_text::printable(&text);
        let shown = ShownPart {
            output: [0, text.len()],
            arguments: call.arguments,
            ..ShownPart::line(call.status)
        };
        let outcome = Outcome {
            hidden,
            shown: Some(shown.clone()),
            ..Outcome::new(call.id, text.clone(), call.ok)
        };
        let ended = CallEnd::of(&outcome, shown);
        let chat = &self.turn.chat;
        chat.record(Item::Outcome(outcome)).await?;
        if !text.is_empty() {
            let block = call.block;
            let block = block.unwrap_or_else(|| self.turn.context.services.id());
            chat.show(CallEvent::Output { block, text }).await?;
        }
        Ok(chat.show(CallEvent::Ended(ended)).await?)
    }

    /// Shows the steps of the agent's plan, as the tool `update_plan` does.
    async fn plan(&mut self, steps: Vec<(String, &'static str)>) -> Result<(), Halt> {
        let step = |(step, status): &(String, &str)| json!({ "step": step, "status": status });
        let most = crate::tool::plan::MOST_STEPS;
        let plan: Vec<_> = steps.iter().take(most).map(step).collect();
        if plan.is_empty() {
            return Ok(());
        }
        let id = self.turn.call_id();
        let call = Call::new(id.clone(), crate::tool::plan::NAME, json!({ "plan": plan }));
        let shown = self.turn.tools.shown(&call);
        self.turn.chat.record(Item::Call(call)).await?;
        self.turn.chat.show(CallEvent::Begun(shown)).await?;
        let ended = EndedCall {
            id,
            ok: true,
            status: "",
            output: "",
            arguments: None,
            block: None,
        };
        self.end_call(ended).await
    }

    async fn state(&self, state: ChatState, detail: impl Into<String>) -> Result<(), Halt> {
        Ok(self.turn.chat.state(state, detail).await?)
    }

    async fn redacted(&self, text: &str) -> (String, usize) {
        self.turn.redacted(text).await
    }
}

impl TurnParts {
    /// Returns an id for a call. An agent may use its ids again in another session.
    fn call_id(&self) -> String {
        format!("agent-{}", self.context.services.id())
    }

    /// Returns the level of the agent's process in a word.
    fn level(&self) -> &'static str {
        match self.spec.confinement {
            AgentConfinement::Workspace => AGENT,
            AgentConfinement::None => "none",
        }
    }

    /// Returns a call for the transcript, before secrets are removed.
    fn record(&self, logged: &LoggedCall) -> AgentCall {
        logged.record(&self.context.cwd)
    }

    /// Returns a call without secrets, with the start of its title.
    async fn redacted_call(&self, call: AgentCall) -> AgentCall {
        let input = match &call.input {
            Some(input) => Some(self.redacted(input).await.0),
            None => None,
        };
        let places = self.redacted(&call.places.join("\n")).await.0;
        AgentCall {
            title: self.title(&call.title).await,
            input,
            places: places.lines().map(str::to_owned).collect(),
            ..call
        }
    }

    /// Returns the start of a title, without secrets.
    async fn title(&self, title: &str) -> String {
        // More than is shown, so that a secret which begins in the shown part is found whole.
        let (title, _) = self.redacted(start_of(title, 2 * LONGEST_TITLE)).await;
        start_of(&title, LONGEST_TITLE).to_owned()
    }

    /// Returns a text without secrets, and the number of removed secrets.
    async fn redacted(&self, text: &str) -> (String, usize) {
        if text.trim().is_empty() {
            return (text.to_owned(), 0);
        }
        match self.context.redact_for_model(text, Instant::now()).await {
            Ok(redacted) => (redacted.text, redacted.hidden),
            Err(withheld) => (format!("[{withheld}]"), 0),
        }
    }
}

/// Returns the id of the call that shows a summing up of the session.
fn compaction_call(id: &CompactionId) -> ToolCallId {
    ToolCallId::new(format!("compaction {id}"))
}

/// Returns the items of a transcript since its last turn.
pub(super) fn since_last_turn(items: &[Item]) -> Vec<Item> {
    let last = items.iter().rposition(|it| matches!(it, Item::End { .. }));
    items[last.map_or(0, |at| at + 1)..].to_vec()
}
