//! Scouts: read-only turns that a turn starts. Each scout has a transcript of its own, in memory. This module replaces the chat
//! of such a turn: it keeps the items, refuses requests that only a chat can fulfil, and tells the chat the tokens and a line
//! about each call.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};

use super::events::ChatEvent;
use super::turn::{
    CallQueue, LoopLimits, MAX_WAITING_EVENTS, Snapshot, ToChat, Turn, TurnEnd, TurnEvent, TurnGoal,
};
use crate::config::ModelChoice;
use crate::error;
use crate::protocol::ChatState;
use crate::tool::ToolSet;
use crate::tool::context::{CallContext, CallHalt, ScoutStarter, TurnKind};
use crate::tool::event::{CallEvent, ScoutProgress, ShownCall};
use crate::tool::explore;
use crate::tool::job_list::JobListRequest;
use crate::tool::permissions::TurnMemory;
use crate::tool::scout::{self, RunningScout, ScoutEnd, ScoutTask};
use crate::workspace::edits::SeenTexts;
use co_llm::Fault;
use co_llm::transcript::{self, End, InstructionFile, Item, Usage};
use co_text::start_of;

/// The largest number of tokens that a scout may use. Tokens that the model reads from its cache do not count.
const MOST_TOKENS: u64 = 400_000;

/// The largest number of bytes of a scout's report.
const LONGEST_REPORT: usize = 16 * 1024;

/// The largest number of lines about the calls of a scout that are kept.
const MOST_LINES: usize = 200;

const CANCELLED: &str = "Cancelled: the scout was ended before it reported.";
const NO_REPORT: &str = "The scout ended without a report.";
const REPEATED: &str =
    "The scout reached its limits or repeated the same calls, and ended without a report.";
const NO_JOBS: &str = "Not run: a scout starts no jobs. Run the command without `background`.";

/// Starts the scouts of a turn.
pub(super) struct Scouts {
    /// Sends messages to the chat of the turn.
    above: ToChat,
    /// The instructions of the turn.
    instructions: Arc<[InstructionFile]>,
    /// Has one permit for each scout that may run at the same time.
    permits: Arc<Semaphore>,
}

impl Scouts {
    pub(super) fn new(above: ToChat, instructions: Vec<InstructionFile>, most: usize) -> Self {
        Self {
            above,
            instructions: instructions.into(),
            permits: Arc::new(Semaphore::new(most)),
        }
    }
}

impl ScoutStarter for Scouts {
    fn scout(&self, context: CallContext, asked: ScoutTask) -> RunningScout {
        let (above, permits) = (self.above.clone(), Arc::clone(&self.permits));
        let instructions = Arc::clone(&self.instructions);
        Box::pin(async move {
            let permit = context.unless_cancelled(permits.acquire()).await;
            match permit {
                Ok(Ok(_permit)) => run(above, context, asked, instructions.to_vec()).await,
                _ => ScoutEnd::failed(CANCELLED),
            }
        })
    }
}

/// Runs a scout to its end. `context` is the context of the turn that started the scout, with the token that cancels the scout.
async fn run(
    above: ToChat,
    context: CallContext,
    asked: ScoutTask,
    instructions: Vec<InstructionFile>,
) -> ScoutEnd {
    let provider = match &context.services.config.scout_model {
        None => Ok(Arc::clone(&context.provider)),
        Some(model) => context.services.provider(&ModelChoice {
            model: Some(model.clone()),
            ..ModelChoice::default()
        }),
    };
    let provider = match provider {
        Ok(provider) => provider,
        Err(fault) => return ScoutEnd::failed(failure(&fault)),
    };
    let isolation = context.services.probe.isolation();
    let Ok(isolation) = context.unless_cancelled(isolation).await else {
        return ScoutEnd::failed(CANCELLED);
    };
    let (events, mut inbox) = mpsc::channel(MAX_WAITING_EVENTS);
    let chat = ToChat {
        events,
        new_services: above.new_services.clone(),
    };
    let cancel = context.cancel.clone();
    let most = explore::most_steps(context.services.config.max_steps);
    let own = CallContext {
        provider,
        seen_texts: SeenTexts::default(),
        kind: TurnKind::Scout {
            call: asked.call.clone(),
        },
        range: None,
        to_chat: Arc::new(chat.clone()),
        ..context
    };
    let tools = ToolSet::of_scouts(isolation.confines());
    tools.deny_by(Arc::clone(&own.judge)).await;
    let turn = Turn {
        context: Arc::new(own),
        chat,
        tools,
        servers: None,
        memory: TurnMemory::default(),
        history: Arc::default(),
        instructions,
        goal: TurnGoal::Answer,
        images: Vec::new(),
        limits: LoopLimits::new(most).with_tokens(MOST_TOKENS),
        window_limit: None,
        repeats_calls: false,
        queue: CallQueue::default(),
        unanswered: Vec::new(),
    };
    let task = tokio::spawn(turn.run());
    let mut scout = Scout::new(above, asked);
    while let Some(event) = inbox.recv().await {
        if scout.event(event).await.is_err() {
            // The chat has ended.
            cancel.cancel();
        }
    }
    match task.await {
        Ok(ended) => scout.end(ended),
        Err(error) => {
            tracing::error!(%error, "a scout ended badly");
            scout.ended(Err(NO_REPORT.to_owned()))
        }
    }
}

/// Returns the reason why a scout failed, as a sentence.
fn failure(fault: &Fault) -> String {
    let text = error::text_of(fault);
    let why = match fault {
        // Their hints are about the answers of a chat.
        Fault::Malformed { .. }
        | Fault::Cut
        | Fault::AnswerTooLong
        | Fault::Stalled(_)
        | Fault::RateLimited { .. }
        | Fault::Server { .. }
        | Fault::Overflow { .. }
        | Fault::TooLarge { .. }
        | Fault::BadRequest { .. } => text.without_hint(),
        _ => text.plain(),
    };
    format!("The scout failed: {why}.")
}

/// A running scout. For the turn of the scout, it takes the place of the chat: it handles the events of this turn.
struct Scout {
    above: ToChat,
    asked: ScoutTask,
    items: Vec<Item>,
    /// The running call.
    call: Option<ShownCall>,
    lines: Vec<String>,
    calls: usize,
    usage: Usage,
}

impl Scout {
    fn new(above: ToChat, asked: ScoutTask) -> Self {
        let task = Item::User {
            text: asked.task.clone(),
            context: asked.attached.clone(),
            at: None,
        };
        Self {
            above,
            asked,
            items: vec![task],
            call: None,
            lines: Vec::new(),
            calls: 0,
            usage: Usage::default(),
        }
    }

    /// Handles an event of the scout's turn, in place of a chat. Fails if the chat that the scout works for has ended.
    async fn event(&mut self, event: TurnEvent) -> Result<(), CallHalt> {
        match event {
            TurnEvent::Record(item, done) => {
                self.items.push(item);
                // It fails if the turn was cancelled meanwhile.
                done.send(Ok(())).ok();
            }
            TurnEvent::Text(piece) => match self.items.last_mut() {
                Some(Item::Text { text }) => text.push_str(&piece),
                _ => self.items.push(Item::Text { text: piece }),
            },
            TurnEvent::Snapshot(reply) => {
                let snapshot = Snapshot {
                    items: self.items.clone(),
                    failed_confined: Vec::new(),
                };
                reply.send(snapshot).ok();
            }
            TurnEvent::Show(ChatEvent::Call(CallEvent::Begun(shown))) => self.call = Some(shown),
            TurnEvent::Show(ChatEvent::Call(CallEvent::Ended(end))) => {
                let line = self.call.take().map(|shown| scout::line(&shown, &end));
                let line = line.unwrap_or_default();
                self.calls += 1;
                if self.lines.len() < MOST_LINES {
                    self.lines.push(line.clone());
                }
                self.show(line).await?;
            }
            TurnEvent::State(ChatState::Retrying, why) => {
                self.show(format!("retries {why}")).await?
            }
            TurnEvent::Usage(usage) => {
                self.usage += usage;
                self.above.send(TurnEvent::Usage(usage)).await?;
            }
            TurnEvent::Job(JobListRequest::NewNumber(reply)) => {
                reply.send(Err(NO_JOBS.to_owned())).ok();
            }
            TurnEvent::AllowedHosts(reply) => drop(reply.send(Vec::new())),
            // Only agents send these.
            TurnEvent::AgentState(_)
            | TurnEvent::AgentLogin(_)
            | TurnEvent::LoginCommand(_)
            | TurnEvent::Title(_)
            | TurnEvent::PlanRemoved
            | TurnEvent::Steer(_) => {}
            // A scout asks nothing and allows nothing. A dropped reply denies.
            TurnEvent::Question(question, _) => {
                tracing::error!(command = question.command, "a scout wanted to ask");
            }
            TurnEvent::Job(_) | TurnEvent::Withdraw(_) | TurnEvent::Allow(_) => {}
            TurnEvent::TakeSteering | TurnEvent::WindowUsed(_) => {}
            TurnEvent::Show(_) | TurnEvent::State(..) => {}
        }
        Ok(())
    }

    /// Shows the person the progress of the scout.
    async fn show(&self, details: String) -> Result<(), CallHalt> {
        let progress = ScoutProgress {
            call: self.asked.call.clone(),
            words: scout::calls_in_words(self.calls),
            details,
            ..ScoutProgress::default()
        };
        self.above.show(CallEvent::Scouted(progress)).await
    }

    fn end(self, turn: TurnEnd) -> ScoutEnd {
        let report = transcript::last_answer(&self.items);
        let report = report.trim();
        let start = start_of(report, LONGEST_REPORT);
        let report = match (turn.end, turn.fault) {
            (End::Cancelled, _) => Err(CANCELLED.to_owned()),
            (_, Some(fault)) => Err(failure(&fault)),
            (End::Guarded, None) if report.is_empty() => Err(REPEATED.to_owned()),
            _ if report.is_empty() => Err(NO_REPORT.to_owned()),
            _ if start.len() < report.len() => {
                let left = report.len() - start.len();
                Ok(format!(
                    "{start}\n[{left} bytes of the report are left out]"
                ))
            }
            _ => Ok(report.to_owned()),
        };
        self.ended(report)
    }

    fn ended(self, report: Result<String, String>) -> ScoutEnd {
        ScoutEnd {
            report,
            looked: self.lines,
            calls: self.calls,
            usage: self.usage,
        }
    }
}
