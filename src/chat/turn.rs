//! One turn: everything from a prompt to the end of its answer. A turn is a child task of the chat and works on a copy of the
//! transcript. It asks the chat to record, show and ask, and owns nothing that outlives it.

mod calls;
mod event;
mod loop_limits;
mod queue;
mod refusal;
mod requests;
mod thought;
mod to_chat;

use std::sync::Arc;

use tokio::sync::oneshot;

pub(super) use self::event::{Halt, MAX_WAITING_EVENTS, Snapshot, TurnEvent};
pub(super) use self::loop_limits::LoopLimits;
use self::loop_limits::{NO_STEPS_LEFT, NextStep, REPORT_NOW, STEPS_USED_UP};
pub(super) use self::queue::CallQueue;
pub(super) use self::refusal::RequestHistory;
use self::requests::ProposedCall;
pub(super) use self::requests::whole_text;
pub(super) use self::thought::LiveThought;
pub(super) use self::to_chat::ToChat;
use super::prompt::Budget;
use crate::agent::AgentProcess;
use crate::protocol::ChatState;
use crate::tool::ToolSet;
use crate::tool::call::CallResult;
use crate::tool::context::{CallContext, TurnKind};
use crate::tool::event::CallEvent;
use crate::tool::explore;
use crate::tool::permissions::TurnMemory;
use crate::tool::scout::ScoutTask;
use crate::tool::server::ChatServers;
use crate::workspace::confinement::Isolation;
use co_llm::transcript::{self, Call, Context, End, InstructionFile, Item, Surroundings, Usage};
use co_llm::{Fault, Stop};

/// A turn that runs, or is ready to run.
pub(super) struct Turn {
    /// The context of the calls that the turn makes.
    pub context: Arc<CallContext>,
    pub chat: ToChat,
    pub tools: ToolSet,
    /// The tool servers whose tools are in `tools`; none for a scout.
    pub servers: Option<ChatServers>,
    pub memory: TurnMemory,
    pub history: Arc<RequestHistory>,
    pub instructions: Vec<InstructionFile>,
    pub goal: TurnGoal,
    /// The names of the images in the prompt.
    pub images: Vec<String>,
    pub limits: LoopLimits,
    /// The context window in tokens that the next request must fit into. It is set after the provider refused a request as too
    /// long, until the provider accepts one.
    pub window_limit: Option<u64>,
    /// True if the model repeats the same calls.
    pub repeats_calls: bool,
    pub queue: CallQueue,
    /// The ids of the calls whose questions were withdrawn.
    pub unanswered: Vec<String>,
}

/// The purpose of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TurnGoal {
    /// Answer the person.
    Answer,
    /// Summarize the conversation so far.
    Compact,
    /// Send a scout for the person.
    Explore {
        task: String,
        attached: Vec<Context>,
    },
}

/// The result of a turn.
pub(super) struct TurnEnd {
    pub end: End,
    pub fault: Option<Fault>,
    /// A notice has told the person why it failed, and what to do.
    pub explained: bool,
    pub failed_confined: Vec<String>,
    /// The ids of the calls whose questions were not answered.
    pub unanswered: Vec<String>,
    /// The agent's process, if an agent works in the chat and its process survives the turn.
    pub agent: Option<Box<AgentProcess>>,
}

impl TurnEnd {
    /// Returns the end of a turn that failed before it began, or by a fault of co.
    pub(super) fn failed(fault: Option<Fault>) -> Self {
        Self {
            end: End::Failed,
            fault,
            explained: false,
            failed_confined: Vec::new(),
            unanswered: Vec::new(),
            agent: None,
        }
    }
}

/// The notice to the person after they revoked the trust in the instructions.
const INSTRUCTIONS_REVOKED: &str =
    "the old instructions are no longer sent; the model reads the chat from its start";

/// The notice of `/explore` if `max_scouts` is 0.
const NO_SCOUTS: &str = "no scout was sent: the setting `max_scouts` is 0";

impl Turn {
    /// Runs the turn to its end.
    pub(super) async fn run(mut self) -> TurnEnd {
        let done = match self.goal.clone() {
            TurnGoal::Answer => self.steps().await,
            TurnGoal::Compact => self.compact_all().await,
            TurnGoal::Explore { task, attached } => self.explore(task, attached).await,
        };
        let (end, fault) = match done {
            Ok(()) => (End::Done, None),
            Err(Halt::Cancelled) => (End::Cancelled, None),
            Err(Halt::Guarded) => (End::Guarded, None),
            Err(Halt::Unrecorded) => (End::Failed, None),
            Err(Halt::Fault(fault)) => (End::Failed, Some(fault)),
        };
        self.unanswered.extend(self.queue.unanswered());
        TurnEnd {
            end,
            fault,
            explained: false,
            unanswered: self.unanswered,
            failed_confined: self.memory.permissions.failed_confined,
            agent: None,
        }
    }

    /// Returns a turn that carries out one call of an agent.
    pub(super) fn of_call(
        context: CallContext,
        chat: ToChat,
        tools: ToolSet,
        memory: TurnMemory,
    ) -> Self {
        Self {
            limits: LoopLimits::new(context.services.config.max_steps),
            context: Arc::new(context),
            chat,
            tools,
            servers: None,
            memory,
            history: Arc::default(),
            instructions: Vec::new(),
            goal: TurnGoal::Answer,
            images: Vec::new(),
            window_limit: None,
            repeats_calls: false,
            queue: CallQueue::default(),
            unanswered: Vec::new(),
        }
    }

    /// Carries out one call of an agent.
    pub(super) async fn carry_out(&mut self, call: Call) -> Result<(), Halt> {
        self.chat.record(Item::Call(call.clone())).await?;
        let unread = None;
        self.calls(vec![ProposedCall { call, unread }]).await
    }

    async fn steps(&mut self) -> Result<(), Halt> {
        let provider = Arc::clone(&self.context.provider);
        tokio::spawn(async move { provider.prepare().await });
        self.read_range().await;
        self.orient().await?;
        self.name_left_out_images().await?;
        self.begin_servers().await?;
        let mut told = self.context.services.probe.name();
        loop {
            self.renew();
            if told != self.context.services.probe.name() {
                self.orient().await?;
                told = self.context.services.probe.name();
            }
            if let Some(servers) = &self.servers {
                for notice in servers.catch_up(&self.tools) {
                    self.chat.note(&notice).await?;
                }
            }
            let may_call = match self.limits.step() {
                NextStep::Go => true,
                NextStep::Summarise => {
                    let words = match self.context.kind {
                        TurnKind::Scout { .. } => REPORT_NOW,
                        TurnKind::Work | TurnKind::OfConfinedAgent | TurnKind::Plan => {
                            STEPS_USED_UP
                        }
                    };
                    self.chat.tell_model(words.to_owned(), true).await?;
                    false
                }
                NextStep::Stop => return Err(Halt::Guarded),
            };
            let answer = match self.step(may_call).await {
                // The turn ends with the text so far.
                Err(Halt::Fault(fault)) if !may_call => {
                    tracing::warn!(%fault, "the turn could not be summed up");
                    return Err(Halt::Guarded);
                }
                answer => answer?,
            };
            if !may_call {
                for asked in &answer.calls {
                    self.chat
                        .show(CallEvent::Begun(self.tools.shown(&asked.call)))
                        .await?;
                    self.conclude(&asked.call, CallResult::not_run(NO_STEPS_LEFT))
                        .await?;
                }
                return Err(Halt::Guarded);
            }
            if answer.calls.is_empty() {
                match answer.stop {
                    Stop::Length => {
                        self.chat.note(
                            "the answer reached the model's output limit; `:Co /continue` continues it",
                        )
                        .await?
                    }
                    Stop::Refused => {
                        self.chat.note("the provider withheld the rest of this answer")
                            .await?
                    }
                    Stop::Done if !answer.spoke => {
                        self.chat.note("the model answered with nothing; `:Co /retry` asks it again")
                            .await?
                    }
                    Stop::Done => {}
                }
                return Ok(());
            }
            self.calls(answer.calls).await?;
            // While the model answers. A call may have looked at the whole workspace.
            tokio::task::spawn_blocking(co_exec::free_memory::give_back);
            if self.repeats_calls {
                self.chat
                    .note("the same call came back with the same result five times")
                    .await?;
                return Err(Halt::Guarded);
            }
        }
    }

    /// Sends a scout for the person. The scout's report is the answer of the turn.
    async fn explore(&mut self, task: String, attached: Vec<Context>) -> Result<(), Halt> {
        if !self.tools.has(explore::NAME) {
            return Ok(self.chat.note(NO_SCOUTS).await?);
        }
        let id = format!("explore-{}", self.context.services.id());
        let call = explore::call_of_person(id, &task);
        self.chat.record(Item::Call(call.clone())).await?;
        let asked = ScoutTask {
            call: call.id.clone(),
            task,
            attached,
        };
        let scout = explore::send(&self.context, asked).await?;
        self.chat
            .show(CallEvent::Begun(self.tools.shown(&call)))
            .await?;
        self.chat.state(ChatState::Running, explore::NAME).await?;
        let (result, report) = scout.answer(&self.context).await;
        self.conclude(&call, result).await?;
        if self.context.cancel.is_cancelled() {
            return Err(Halt::Cancelled);
        }
        match report {
            Some(report) => Ok(self.chat.send(TurnEvent::Text(report)).await?),
            None => Ok(()),
        }
    }

    /// Applies the settings that have changed.
    fn renew(&mut self) {
        let new = &mut self.chat.new_services;
        if new.has_changed().unwrap_or(false) {
            let services = Arc::clone(&new.borrow_and_update());
            let most = match self.context.kind {
                TurnKind::Scout { .. } => explore::most_steps(services.config.max_steps),
                TurnKind::Work | TurnKind::OfConfinedAgent | TurnKind::Plan => {
                    services.config.max_steps
                }
            };
            self.limits.set_max_steps(most);
            let context = Arc::make_mut(&mut self.context);
            context.judge = services.judge(&context.workspace);
            context.services = services;
        }
    }

    /// Waits until the tool servers have started, and adds their tools to the tools of the turn.
    async fn begin_servers(&mut self) -> Result<(), Halt> {
        let Some(servers) = &self.servers else {
            return Ok(());
        };
        if !servers.wanted(&self.context.services.config).is_empty() {
            let what = "waits for tool servers";
            self.chat.state(ChatState::Thinking, what).await?;
        }
        for notice in servers.begin(&self.context, &self.tools).await? {
            self.chat.note(&notice).await?;
        }
        if let Some(words) = servers.new_words(self.context.chat) {
            self.context.services.editor.tell(words);
        }
        Ok(())
    }

    /// Reads the lines that the person selected for the prompt, so that co finds them again after they move.
    async fn read_range(&mut self) {
        let Some(mut range) = self.context.range.clone() else {
            return;
        };
        let open = self.context.read_buffers([range.file()]);
        let open = self.context.unless_cancelled(open).await;
        let open = open.unwrap_or_default();
        let read = tokio::task::spawn_blocking(move || {
            range.read(&open);
            range
        });
        Arc::make_mut(&mut self.context).range = read.await.ok();
    }

    /// Records the directories, the sandbox and the instructions of the chat. Tells the model if any of these have changed.
    async fn orient(&mut self) -> Result<(), Halt> {
        let services = Arc::clone(&self.context.services);
        let isolation = services.probe.isolation();
        let isolation = self.context.unless_cancelled(isolation).await?;
        let now = self.surroundings(&isolation);
        let items = self.snapshot().await?;
        let told = transcript::last_surroundings(&items);
        let anew = told.is_some_and(|told| told.ends_instructions(&now));
        let change = told.map_or(Some(String::new()), |told| told.change(&now));
        let Some(change) = change else {
            return Ok(());
        };
        self.chat.record(Item::Surroundings(now)).await?;
        if !change.is_empty() {
            self.chat.tell_model(change, false).await?;
        }
        match anew {
            true => Ok(self.chat.note(INSTRUCTIONS_REVOKED).await?),
            false => Ok(()),
        }
    }

    fn surroundings(&self, isolation: &Isolation) -> Surroundings {
        Surroundings {
            cwd: self.context.cwd.display().to_string(),
            workspace: self.context.workspace.display().to_string(),
            os: std::env::consts::OS.to_owned(),
            shell: "bash".to_owned(),
            date: today(),
            backend: isolation.approved_for_model().to_owned(),
            unasked: isolation.unasked_for_model().to_owned(),
            instruction_files: self.instructions.clone(),
        }
    }

    async fn budget(&self) -> Result<Budget, Halt> {
        let window = self.context.provider.window();
        let window = self.context.unless_cancelled(window).await?;
        Ok(Budget {
            window: self.window_limit.map_or(window, |limit| limit.min(window)),
        })
    }

    /// Tells the person which images in the prompt the model does not get.
    async fn name_left_out_images(&mut self) -> Result<(), Halt> {
        if self.images.is_empty() || self.context.provider.takes_images().await {
            return Ok(());
        }
        let text = format!(
            "left out: {}; {} is not known to take images, which the setting `images` can say",
            self.images.join(", "),
            self.context.provider.label()
        );
        Ok(self.chat.note(&text).await?)
    }

    /// Tells the chat the number of tokens that a request used, with their price if it is known.
    async fn used(&mut self, usage: Usage) -> Result<(), Halt> {
        if usage == Usage::default() {
            return Ok(());
        }
        self.limits.used(&usage);
        let usage = usage.priced(self.context.services.price(&*self.context.provider));
        Ok(self.chat.send(TurnEvent::Usage(usage)).await?)
    }

    /// Returns the transcript so far, and adds the commands that failed in the sandbox to the turn's permissions.
    async fn snapshot(&mut self) -> Result<Vec<Item>, Halt> {
        let (reply, snapshot) = oneshot::channel();
        self.chat.send(TurnEvent::Snapshot(reply)).await?;
        let snapshot = snapshot.await.map_err(|_| Halt::Cancelled)?;
        self.memory.permissions.learn(snapshot.failed_confined);
        Ok(snapshot.items)
    }
}

/// Returns the date in UTC.
fn today() -> String {
    let now = time::OffsetDateTime::now_utc();
    format!("{} (UTC)", now.date())
}
