//! One turn of another agent. It sends the person's prompt, and tells the chat what the agent does. Like the turn of a model, it
//! is a child task of the chat. It owns nothing that outlives it, except the process of the agent, and gives this process back.
//!
//! The agent acts by itself, inside its confinement. So nothing here decides what the agent may do: the chat only shows what the
//! agent says about a call.

mod calls;
mod content;
mod diffs;
mod elicitation;
mod images;
mod live;
mod login;
mod open_secrets;
mod output;
mod own_calls;
mod parts;
mod past;
mod permission;
mod prompt;
mod questions;
mod start;
mod subagents;
mod updates;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::FutureExt;
use tokio::sync::mpsc;

use self::calls::{AgentPiece, LoggedCall};
use self::images::KeptImages;
use self::open_secrets::OpenSecrets;
use self::output::AgentOutput;
use self::own_calls::{OwnCallEvent, OwnCalls, call_of};
use self::parts::{LONGEST_ODD, TurnParts};
pub(super) use self::past::PastSession;
use self::permission::PermissionRequest;
pub(super) use self::prompt::since_last_turn;
use self::questions::AgentQuestions;
use self::subagents::SubAgents;
use super::turn::{Halt, ToChat, TurnEnd, TurnEvent};
use crate::agent::{
    AgentProcess, AgentSpec, AgentWish, IdleAgent, MOST_MEMORY, PlanMode, TurnAsker,
};
use crate::protocol::ChatState;
use crate::tool::ToolSet;
use crate::tool::context::{CallContext, Questioner, TurnKind};
use crate::tool::permissions::TurnMemory;
use co_acp::schema::{
    AuthMethodId, MessageId, RequestId, RequestPermissionRequest, StopReason, ToolCallUpdate,
};
use co_acp::{AgentAnswer, Incoming, RequestNumber};
use co_llm::transcript::{End, Item};
use co_text::{one_line, start_of};

/// The longest time that an agent may take to end its turn after `<C-c>`. After that, co ends its processes.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// The shortest time between two records of the files that the turn changed. If a command of the person needs a record, co makes
/// the record at once.
const RECORD_PERIOD: Duration = Duration::from_millis(500);

/// A turn of an agent, ready to run.
pub(super) struct AgentTurn {
    pub context: Arc<CallContext>,
    pub chat: ToChat,
    pub tools: ToolSet,
    pub spec: AgentSpec,
    pub process: IdleAgent,
    /// The prompt: the items of the transcript since the last turn.
    pub prompt: Vec<Item>,
    /// True if the chat had turns before this one.
    pub has_past: bool,
    /// The session of an earlier process of the agent. The new process may continue this session.
    pub past: Option<PastSession>,
    /// The modes and options that the person chose for the agent in earlier turns.
    pub wishes: Vec<AgentWish>,
    /// The permissions that the person gave for calls of co's own tools.
    pub memory: TurnMemory,
    /// Receives the modes and options that the person chooses while the turn runs.
    pub new_wishes: mpsc::Receiver<AgentWish>,
    /// The method by which an earlier process of the agent logged in.
    pub login: Option<AuthMethodId>,
}

/// The capacity of [`AgentTurn::new_wishes`], the channel of the modes and options that the person chooses. A person does not
/// choose faster than the turn reads.
pub(super) const MAX_WISHES: usize = 16;

/// The state of a running turn.
struct Progress {
    turn: Arc<TurnParts>,
    output: AgentOutput,
    questions: AgentQuestions,
    updates: UpdateState,
    own: OwnCalls,
    past: Option<PastSession>,
    wishes: Vec<AgentWish>,
    new_wishes: mpsc::Receiver<AgentWish>,
    /// Asks the person about the hosts that the agent contacts in this turn.
    asker: Option<Arc<TurnAsker>>,
    /// The number of bytes of memory that the messages of earlier turns took.
    memory_before: u64,
    /// The time at which the changes of the turn were recorded last.
    recorded: Instant,
    secrets: OpenSecrets,
    /// The method by which the agent logged in before.
    login: Option<AuthMethodId>,
}

/// The state that co builds from the updates of the agent.
struct UpdateState {
    agents: SubAgents,
    images: KeptImages,
    /// The last plan that the agent sent as a text.
    plan_text: Option<String>,
    /// The cost of the session, if its currency is not the US dollar.
    other_cost: Option<String>,
    /// The number of messages in this turn that co does not know.
    odd: usize,
    /// The id of the message that the last piece of the agent's text belongs to.
    message: Option<MessageId>,
    /// The texts of the prompt, one for each block.
    prompt: Vec<String>,
}

impl UpdateState {
    /// Returns whether a text is the prompt, or a whole block of it. The chat shows these already. A part of it is not enough,
    /// because an agent may say the same words for another reason.
    fn is_prompt(&self, text: &str) -> bool {
        let text = text.trim();
        let is_block = self.prompt.iter().any(|it| it.trim() == text);
        is_block || self.prompt.concat().trim() == text
    }
}

/// The result of switching an agent to its plan mode.
enum PlanEntry {
    Entered(PlanMode),
    /// The agent refused the plan mode. The person has been told.
    Refused,
    Cancelled,
    /// The agent has ended, has sent too much, or does not read its input.
    Dead,
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
        let turn = Arc::new(TurnParts {
            context: Arc::clone(&context),
            chat,
            tools,
            spec,
        });
        let mut progress = Progress {
            output: AgentOutput::new(Arc::clone(&turn)),
            questions: AgentQuestions::new(Arc::clone(&turn)),
            updates: UpdateState {
                agents: SubAgents::default(),
                images: KeptImages::new(images),
                plan_text: None,
                other_cost: None,
                odd: 0,
                message: None,
                prompt: Vec::new(),
            },
            own: OwnCalls::new(memory, &turn.spec),
            turn,
            past,
            wishes,
            new_wishes,
            asker: None,
            memory_before: 0,
            recorded: Instant::now(),
            secrets: OpenSecrets::default(),
            login,
        };
        let mut kept = None;
        let (mut process, mut prompt) = (process, prompt);
        let told = match progress.tell_no_undo(missing.ok().flatten()).await {
            Ok(()) => {
                let ready = process.ready().map(|it| &*it);
                let told = progress.turn.tell_changed(&changed, ready, &mut prompt);
                told.await
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
        let closed = progress.output.close_all().await;
        // It must not go on without a record, nor write while its changes are looked at.
        if closed.is_err()
            && let Some(process) = kept.take()
        {
            process.last_words().await;
        }
        context.keep_changes(checkpoint).await;
        // Each failure of an agent has a note, unless the transcript cannot be written.
        let explained = closed.is_ok() && matches!(done, Ok(End::Failed));
        let (end, process) = match (done, closed) {
            (Ok(end), Ok(())) => (end, kept),
            (Err(Halt::Cancelled), _) => (End::Cancelled, kept),
            _ => (End::Failed, None),
        };
        TurnEnd {
            end,
            fault: None,
            explained,
            failed_confined: progress.own.failed_confined(),
            unanswered: Vec::new(),
            agent: process.map(Box::new),
        }
    }
}

impl Progress {
    /// Sends the prompt and follows the agent to the end of the turn. If the process survives, puts it into `kept`.
    async fn run(
        &mut self,
        process: IdleAgent,
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
            && process.state.is_current(&plan.enter)
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

    /// Ends a process that can no longer serve the turn, and tells the person.
    async fn end_process(&mut self, process: AgentProcess) -> Result<End, Halt> {
        // Until it has ended, it may still change files.
        let words = process.last_words().await;
        self.tell_death(&words, "the next prompt starts it anew")
            .await?;
        Ok(End::Failed)
    }

    /// Sends the prompt, and follows the agent until it has answered the prompt. Returns `None` if the agent's process has ended.
    async fn prompt(
        &mut self,
        process: &mut AgentProcess,
        prompt: &[Item],
    ) -> Result<Option<End>, Halt> {
        let blocks = self
            .turn
            .prompt_blocks(prompt, process.takes_images)
            .await?;
        self.updates.prompt = blocks.iter().map(content::block_text).collect();
        self.turn.state(ChatState::Thinking, "").await?;
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

    /// Handles an event of a call of co's own tools.
    async fn own_call_event(&mut self, event: OwnCallEvent) -> Result<(), Halt> {
        match event {
            OwnCallEvent::Asked(mut asked) => {
                if asked.cancel.is_cancelled() || self.turn.context.cancel.is_cancelled() {
                    return Ok(());
                }
                self.output.hold(&asked.call.tool).await?;
                let call = call_of(self.turn.call_id(), &mut asked);
                let turn = &self.turn;
                self.own.begin(call, asked, (&turn.context, &turn.chat));
                Ok(())
            }
            OwnCallEvent::Sent(event) => Ok(self.turn.chat.send(event).await?),
            OwnCallEvent::Ended => {
                let Some(ended) = self.own.take_ended().await else {
                    return Ok(());
                };
                for question in &ended.questions {
                    Questioner::withdraw(&self.turn.chat, *question).await?;
                }
                if let Err(why) = ended.result {
                    self.output.cut_off(&ended.call, ended.shown, why).await?;
                }
                ended.answer();
                self.output.go_on().await
            }
        }
    }

    /// Refuses further calls of co's own tools, and waits for the end of the running one.
    async fn end_own_calls(&mut self) -> Result<(), Halt> {
        while self.own.end_prompt() {
            let event = self.own.next().await;
            self.own_call_event(event).await?;
        }
        Ok(())
    }

    /// Switches the agent to its plan mode.
    async fn enter_plan(&mut self, process: &mut AgentProcess) -> Result<PlanEntry, Halt> {
        let name = self.turn.spec.name.clone();
        let Some(plan) = process.state.plan_mode() else {
            let text = format!(
                "{name} has no plan mode, and co cannot keep it from more than planning: ask it for a plan in words"
            );
            self.turn.chat.note(&text).await?;
            return Ok(PlanEntry::Refused);
        };
        if process.state.is_current(&plan.enter) {
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
        if process.state.is_current(&plan.enter) {
            return Ok(PlanEntry::Entered(plan));
        }
        let text = format!(
            "{name} is not in its plan mode, so it did not get the task: ask it for a plan in words"
        );
        self.turn.chat.note(&text).await?;
        Ok(PlanEntry::Refused)
    }

    /// Sends a mode or an option that the person chose to the agent.
    async fn wish(&self, process: &mut AgentProcess, wish: &AgentWish) -> Result<(), Halt> {
        let name = &self.turn.spec.name;
        let why = match process.state.find(wish) {
            Ok(change) if process.state.is_current(&change) => None,
            Ok(change) => process.change(change).err().map(|why| format!(": {why}")),
            Err(why) => Some(format!(" {why}")),
        };
        if let Some(why) = why {
            let text = self.turn.redacted(&format!("{name}{why}")).await.0;
            self.turn.chat.note(&one_line(&text)).await?;
        }
        Ok(())
    }

    /// Tells the chat the modes, options and commands of the agent.
    async fn tell_state(&self, process: &AgentProcess) -> Result<(), Halt> {
        let state = Box::new(process.state.clone());
        Ok(self.turn.chat.send(TurnEvent::AgentState(state)).await?)
    }

    /// Handles the messages that the agent wrote since the last turn, unless the turn is cancelled. Returns false if the agent
    /// has ended or sent too much.
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

    /// Returns true, after a notice to the person, if the agent has sent more in this turn than co keeps.
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

    /// Tells the person that `/undo` cannot take the turn back, with the reason `why`. Does nothing if `why` is `None`.
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

    async fn tell_death(&mut self, words: &str, then: &str) -> Result<(), Halt> {
        let name = &self.turn.spec.name;
        let text = format!("{name} has ended; {then}\n{words}");
        self.turn.note(text.trim_end()).await
    }

    /// Follows the agent until it has answered the prompt. Returns `None` if the agent's process has ended.
    async fn follow(
        &mut self,
        process: &mut AgentProcess,
        sent: RequestNumber,
    ) -> Result<Option<End>, Halt> {
        let cancel = self.turn.context.cancel.clone();
        let mut deadline = None;
        loop {
            let gives_way = self.output.gives_way_at();
            let shows = self.output.shows_at();
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
                replied = self.questions.next() => {
                    self.questions.replied(&mut process.connection, replied).await?;
                }
                () = tokio::time::sleep_until(gives_way.unwrap_or(now)), if gives_way.is_some() => {
                    self.output.give_way().await?;
                }
                event = self.own.next() => self.own_call_event(event).await?,
                Some(wish) = self.new_wishes.recv() => {
                    self.wish(process, &wish).await?;
                    self.tell_state(process).await?;
                }
                () = tokio::time::sleep_until(shows.unwrap_or(now)), if shows.is_some() => {
                    self.output.show_live().await?;
                }
                () = cancel.cancelled(), if deadline.is_none() => {
                    deadline = Some(now + CANCEL_TIMEOUT);
                    // If it does not read, it is ended at the deadline.
                    let _stuck = process.connection.cancel(&process.session);
                    self.questions.withdraw_all().await?;
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

    /// Handles the agent's answer to the prompt, which ends the turn.
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
        if let Some(cost) = self.updates.other_cost.take() {
            let words = format!("says that its session cost {cost} so far");
            self.output.say(&words).await?;
        }
        if let Some(note) = note {
            let text = format!("{name} {}", start_of(&note, LONGEST_ODD));
            let text = self.turn.redacted(&text).await.0;
            self.output.show(AgentPiece::Note(text)).await?;
        }
        Ok(end)
    }

    /// Handles a message of the agent.
    async fn hear(&mut self, process: &mut AgentProcess, incoming: Incoming) -> Result<(), Halt> {
        match incoming {
            Incoming::Update { mut update, unread } => {
                self.updates.images.keep(&mut update.update).await;
                let (session, update) = (update.session_id, update.update);
                match session == process.session {
                    true => self.updated(process, update, unread).await,
                    false => self.child_updated(process, session, update, unread).await,
                }
            }
            Incoming::Elicitation { id, request } => {
                let (connection, output) = (&mut process.connection, &mut self.output);
                let asked = (id, &*request);
                self.questions.elicit(connection, output, asked).await
            }
            Incoming::ElicitationCompleted(id) => {
                let (connection, output) = (&mut process.connection, &mut self.output);
                self.questions.completed(connection, output, &id).await
            }
            Incoming::Permission { id, request } => self.permission(process, id, *request).await,
            Incoming::Withdrawn(id) => self.questions.withdrawn(&id).await,
            // Or it is the answer to a prompt that was given up.
            Incoming::Answer { number, answer } => {
                if let Some(why) = process.changed(number, answer) {
                    let words = format!("did not take the change: {why}");
                    self.output.say(&words).await?;
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

    /// Handles a request for permission, and the update of the call that the request contains.
    async fn permission(
        &mut self,
        process: &mut AgentProcess,
        id: RequestId,
        request: RequestPermissionRequest,
    ) -> Result<(), Halt> {
        let fields = request.tool_call.fields;
        let input = fields.raw_input.clone();
        let request = PermissionRequest {
            id,
            call: request.tool_call.tool_call_id,
            title: (self.turn)
                .title(fields.title.as_deref().unwrap_or_default())
                .await,
            options: request.options,
        };
        // What it says of the call is kept, whether the call goes on or not.
        let call = ToolCallUpdate::new(request.call.clone(), fields);
        let id = self.turn.call_id();
        if let Some(piece) = self.output.log.update(call, Vec::new(), || id) {
            self.output.show(piece).await?;
        }
        let logged = self.output.log.get(&request.call);
        let is_own = logged.is_some_and(LoggedCall::is_own) && process.tools.is_some();
        let connection = &mut process.connection;
        // co decides about the call itself when it comes.
        if is_own
            && self.turn.is_confined()
            && !self.turn.context.cancel.is_cancelled()
            && let Some(answer) = request.once()
        {
            let _stuck = connection.answer_permission(&request.id, Some(answer));
            return Ok(());
        }
        let asked = (logged, input);
        self.questions.ask(connection, request, asked).await
    }

    /// Tells the person about secret files that appeared since the agent started. If co cannot look for such files, tells the
    /// person that.
    async fn tell_secrets(&mut self, process: &AgentProcess) -> Result<(), Halt> {
        match self.secrets.news(&self.turn, process).await {
            Some(text) => self.output.show(AgentPiece::Note(text)).await,
            None => Ok(()),
        }
    }
}
