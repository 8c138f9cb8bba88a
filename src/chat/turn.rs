//! One turn: from the person's text until the model stops. A child task on a snapshot of the transcript; what
//! it wants recorded, shown or asked it hands to its session, and it owns nothing that lasts.

mod audit_records;
mod calls;
mod compact;
mod file_calls;
mod jobs;
mod question;
mod queue;
mod run;
mod step;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

pub(super) use self::queue::Queue;
use super::jobs::Act;
use super::loop_limits::{Guard, StepVerdict};
use super::prompt::Budget;
use super::render;
use super::services::Services;
use crate::editor::Target;
use crate::protocol::{Ask, Scope, State, ToEditor};
use crate::tool::{confinement::Isolation, judge::Judge};
use co_exec::Screen;
use co_llm::transcript::{self, End, Item, Surroundings, Usage};
use co_llm::{Fault, Provider, Stop};

/// What a turn hands to its session.
pub(super) enum Event {
    /// On disk before the answer comes; `Err` where it could not be written.
    Record(Item, oneshot::Sender<Result<(), ()>>),
    /// A piece of the model's answer.
    Text(String),
    Snapshot(oneshot::Sender<Snapshot>),
    /// Text for the screen alone.
    Show(String),
    /// A command's output, shown as it comes until [`Event::BlockDone`].
    Block(Target, Arc<Screen>),
    BlockDone(ToEditor),
    /// Output that is there as a whole.
    Output(String),
    State(State, String),
    /// A question; a dropped reply is a no.
    Ask(Box<Ask>, oneshot::Sender<Reply>),
    /// A question needs no answer any more.
    Withdraw(u64),
    /// A scope that the person chose with `always`.
    Allow(Allowance),
    /// Something about the session's jobs.
    Job(Act),
    Usage(Usage),
}

/// Where the session stands before a request.
pub(super) struct Snapshot {
    /// The transcript so far.
    pub items: Vec<Item>,
    /// Jobs fail in the read-only sandbox also while a turn runs: their commands ask from now on.
    pub failed_confined: Vec<String>,
}

/// What a person said.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reply {
    Once,
    Always(Scope),
    Deny(Option<String>),
    Edited(String),
}

/// What `always` allows from now on.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Allowance {
    Rule(co_policy::Pattern),
    /// In the workspace it was asked in, wherever the session is by then.
    Saved(PathBuf, co_policy::Pattern),
    /// What is typed into this job.
    Job(u64),
    Everything,
}

/// What may run unasked in this session, as its person said so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    pub rules: Vec<co_policy::Pattern>,
    pub everything: bool,
    /// Jobs that may be typed into.
    pub jobs: Vec<u64>,
    /// Commands that failed in the read-only sandbox: the next time they ask.
    pub failed_confined: Vec<String>,
}

impl Standing {
    /// Whether nothing asks but what no deny rule could be tried on.
    pub(super) fn confirms(&self, services: &Services) -> bool {
        self.everything || services.config.auto_confirm
    }

    /// Takes over what a turn found to fail in the sandbox.
    pub(super) fn learn(&mut self, failed: Vec<String>) {
        let known = |command: &String| self.failed_confined.contains(command);
        let new: Vec<_> = failed.into_iter().filter(|it| !known(it)).collect();
        self.failed_confined.extend(new);
    }
}

/// What a turn is given.
pub(super) struct Turn {
    pub session: u64,
    /// The session's id in the store, for the audit log.
    pub log_id: String,
    pub services: Arc<Services>,
    /// The services of the chat, whenever its settings change.
    pub kits: watch::Receiver<Arc<Services>>,
    pub provider: Arc<dyn Provider>,
    pub judge: Arc<Judge>,
    pub workspace: PathBuf,
    pub cwd: PathBuf,
    pub instructions: Option<String>,
    pub purpose: Purpose,
    pub standing: Standing,
    pub events: mpsc::Sender<Event>,
    pub cancel: CancellationToken,
    pub guard: Guard,
    /// Set when the guard wants the person to look.
    pub circling: bool,
    pub queue: Queue,
}

/// What a turn is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To answer the person.
    Answer,
    /// To sum up the conversation so far.
    Compact,
}

/// How a turn ended.
pub(super) struct Ended {
    pub end: End,
    pub fault: Option<Fault>,
    pub failed_confined: Vec<String>,
}

/// Tells the model that this is the last request of the turn.
const STEPS_USED_UP: &str = "The steps of this turn are used up, and no more tools can be called. Sum up for the person: what you \
     did, what came of it, and what is left to do.";

/// Told of a call that the model makes all the same.
const NO_STEPS_LEFT: &str = "Not run: the steps of this turn are used up.";

/// Told the person if trust in the instructions ended.
const ANEW: &str = "the old instructions of the workspace are no longer sent; the model reads the conversation anew";

/// Why a turn goes no further.
enum Halt {
    Cancelled,
    Fault(Fault),
    Guarded,
    /// The session's file cannot be written, so nothing more may happen.
    Unrecorded,
}

impl Turn {
    /// Runs it to its end.
    pub(super) async fn run(mut self) -> Ended {
        let done = match self.purpose {
            Purpose::Answer => self.steps().await,
            Purpose::Compact => self.compact_all().await,
        };
        let (end, fault) = match done {
            Ok(()) => (End::Done, None),
            Err(Halt::Cancelled) => (End::Cancelled, None),
            Err(Halt::Guarded) => (End::Guarded, None),
            Err(Halt::Unrecorded) => (End::Failed, None),
            Err(Halt::Fault(fault)) => (End::Failed, Some(fault)),
        };
        Ended {
            end,
            fault,
            failed_confined: self.standing.failed_confined,
        }
    }

    async fn steps(&mut self) -> Result<(), Halt> {
        self.orient().await?;
        let mut told = self.services.probe.name();
        loop {
            self.renew();
            if told != self.services.probe.name() {
                self.orient().await?;
                told = self.services.probe.name();
            }
            let may_call = match self.guard.step() {
                StepVerdict::Go => true,
                StepVerdict::Summarise => {
                    self.tell_model(STEPS_USED_UP.to_owned(), true).await?;
                    false
                }
                StepVerdict::Stop => return Err(Halt::Guarded),
            };
            let answer = match self.step(may_call).await {
                // The last text stands.
                Err(Halt::Fault(fault)) if !may_call => {
                    tracing::warn!(%fault, "the turn could not be summed up");
                    return Err(Halt::Guarded);
                }
                answer => answer?,
            };
            if !may_call {
                for asked in &answer.calls {
                    self.not_run(&asked.call, NO_STEPS_LEFT.to_owned()).await?;
                }
                return Err(Halt::Guarded);
            }
            if answer.calls.is_empty() {
                match answer.stop {
                    Stop::Length => {
                        self.note(
                            "the answer reached the model's output limit; `:Co /continue` goes on",
                        )
                        .await?
                    }
                    Stop::Refused => {
                        self.note("the provider withheld the rest of this answer")
                            .await?
                    }
                    Stop::Done if !answer.spoke => {
                        self.note("the model answered with nothing; `:Co /retry` asks it again")
                            .await?
                    }
                    Stop::Done => {}
                }
                return Ok(());
            }
            self.calls(answer.calls).await?;
            if self.circling {
                self.note("the same call came back with the same result five times")
                    .await?;
                return Err(Halt::Guarded);
            }
        }
    }

    /// Takes over what changed in the settings meanwhile.
    pub(super) fn renew(&mut self) {
        if self.kits.has_changed().unwrap_or(false) {
            self.services = Arc::clone(&self.kits.borrow_and_update());
            self.judge = self.services.judge(&self.workspace);
            self.guard.set_max_steps(self.services.config.max_steps);
        }
    }

    /// Records the place that the chat works in, and tells the model what has changed there since it was told last.
    async fn orient(&mut self) -> Result<(), Halt> {
        let services = Arc::clone(&self.services);
        let isolation = tokio::select! {
            () = self.cancel.cancelled() => return Err(Halt::Cancelled),
            isolation = services.probe.isolation() => isolation,
        };
        let now = self.surroundings(&isolation);
        let items = self.snapshot().await?;
        let told = transcript::last_surroundings(&items);
        let anew = told.is_some_and(|told| told.ends_instructions(&now));
        let change = told.map_or(Some(String::new()), |told| told.change(&now));
        let Some(change) = change else {
            return Ok(());
        };
        self.record(Item::Surroundings(now)).await?;
        if !change.is_empty() {
            self.tell_model(change, false).await?;
        }
        match anew {
            true => self.note(ANEW).await,
            false => Ok(()),
        }
    }

    fn surroundings(&self, isolation: &Isolation) -> Surroundings {
        let asks = self.instructions.as_deref().map(str::trim);
        Surroundings {
            cwd: self.cwd.display().to_string(),
            workspace: self.workspace.display().to_string(),
            os: std::env::consts::OS.to_owned(),
            shell: "bash".to_owned(),
            date: today(),
            backend: isolation.approved_for_model().to_owned(),
            unasked: isolation.unasked_for_model().to_owned(),
            instructions: asks.filter(|text| !text.is_empty()).map(str::to_owned),
        }
    }

    /// Sends the model a note from co with the next request; `once`: it concerns one answer only.
    async fn tell_model(&mut self, text: String, once: bool) -> Result<(), Halt> {
        let shown = render::note(&text);
        self.record(Item::Note { text, once }).await?;
        self.show(&shown).await
    }

    async fn budget(&self) -> Result<Budget, Halt> {
        tokio::select! {
            () = self.cancel.cancelled() => Err(Halt::Cancelled),
            window = self.provider.window() => Ok(Budget { window }),
        }
    }

    /// Records an item: it is on disk when this returns, and may be shown and acted on.
    async fn record(&mut self, item: Item) -> Result<(), Halt> {
        let (done, written) = oneshot::channel();
        self.send(Event::Record(item, done)).await?;
        match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(())) => Err(Halt::Unrecorded),
            Err(_) => Err(Halt::Cancelled),
        }
    }

    async fn note(&mut self, text: &str) -> Result<(), Halt> {
        let text = text.to_owned();
        self.record(Item::Notice { text: text.clone() }).await?;
        self.show(&format!("> {text}")).await
    }

    /// Shows a paragraph.
    async fn show(&self, text: &str) -> Result<(), Halt> {
        self.send(Event::Show(text.to_owned())).await
    }

    /// Tells what a request used, with its price where that is known.
    async fn used(&self, mut usage: Usage) -> Result<(), Halt> {
        if usage == Usage::default() {
            return Ok(());
        }
        let price = self.services.config.prices.find(&self.provider.label());
        usage.cost = price.map(|price| price.of(&usage));
        self.send(Event::Usage(usage)).await
    }

    /// The transcript so far; what failed in the sandbox meanwhile is learnt.
    async fn snapshot(&mut self) -> Result<Vec<Item>, Halt> {
        let (reply, snapshot) = oneshot::channel();
        self.send(Event::Snapshot(reply)).await?;
        let snapshot = snapshot.await.map_err(|_| Halt::Cancelled)?;
        self.standing.learn(snapshot.failed_confined);
        Ok(snapshot.items)
    }

    async fn state(&self, state: State, detail: impl Into<String>) -> Result<(), Halt> {
        self.send(Event::State(state, detail.into())).await
    }

    async fn send(&self, event: Event) -> Result<(), Halt> {
        self.events.send(event).await.map_err(|_| Halt::Cancelled)
    }
}

/// What one step came to.
struct Answer {
    calls: Vec<step::Asked>,
    /// It has text.
    spoke: bool,
    stop: Stop,
}

/// The date for the model, in UTC.
fn today() -> String {
    let now = time::OffsetDateTime::now_utc();
    format!("{} (UTC)", now.date())
}
