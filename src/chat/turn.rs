//! One turn: all that follows a prompt. It is a child task of the chat and works on a copy of the transcript. It
//! sends the chat all that should be recorded, shown or asked, and owns nothing that outlives it.

mod audit_records;
mod call;
mod call_queue;
mod calls;
mod checkpoint;
mod compact;
mod edited_command;
mod edits;
mod event;
mod file_calls;
mod jobs;
mod loop_limits;
mod permissions;
mod question;
mod refusal;
mod renames;
mod run;
mod server_edits;
mod step;
mod thought;
mod trial;
mod trial_keep;
mod trial_run;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

pub(super) use self::call::{CLOSED, CUT_OFF};
pub(super) use self::call_queue::CallQueue;
pub(super) use self::compact::whole_text;
use self::event::Halt;
pub(super) use self::event::{Snapshot, TurnEvent};
pub(super) use self::loop_limits::LoopLimits;
use self::loop_limits::{NO_STEPS_LEFT, NextStep, STEPS_USED_UP};
pub use self::permissions::Reply;
pub(super) use self::permissions::{Allowance, Permissions};
pub(super) use self::refusal::RequestHistory;
use super::events::ChatEvent;
use super::prompt::Budget;
use super::retell;
use crate::protocol::ChatState;
use crate::services::Services;
use crate::workspace::{confinement::Isolation, edits::EditRange, edits::SeenTexts, judge::Judge};
use co_exec::Caller;
use co_llm::transcript::{self, End, InstructionFile, Item, Surroundings, Usage};
use co_llm::{Fault, Provider, Stop};

/// A turn that runs or will run.
pub(super) struct Turn {
    /// The number of the chat.
    pub chat: u64,
    /// The transcript's id in the store.
    pub transcript_id: String,
    /// The number of earlier turns of the chat.
    pub number: usize,
    pub services: Arc<Services>,
    /// Receives new services if the settings change.
    pub new_services: watch::Receiver<Arc<Services>>,
    pub provider: Arc<dyn Provider>,
    pub history: Arc<RequestHistory>,
    pub judge: Arc<Judge>,
    pub workspace: PathBuf,
    pub cwd: PathBuf,
    pub instructions: Vec<InstructionFile>,
    pub purpose: Purpose,
    pub permissions: Permissions,
    /// The texts of files that the model has read.
    pub seen_texts: SeenTexts,
    /// The lines that the person asked to change.
    pub range: Option<EditRange>,
    /// The names of the images of the prompt.
    pub images: Vec<String>,
    pub events: mpsc::Sender<TurnEvent>,
    pub cancel: CancellationToken,
    pub limits: LoopLimits,
    /// The limit for the model's window after the provider refused a request for its length.
    pub window_limit: Option<u64>,
    /// The model repeats the same calls.
    pub repeats_calls: bool,
    /// The model was told that the confinement may have caused a failure.
    pub told_confinement: bool,
    pub queue: CallQueue,
    /// The number of calls of the turn that have ended.
    pub calls_ended: usize,
    /// The calls whose questions were withdrawn.
    pub unanswered: Vec<String>,
}

/// The purpose of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To answer the person.
    Answer,
    /// To sum up the conversation so far.
    Compact,
}

/// The result of a turn.
pub(super) struct TurnEnd {
    pub end: End,
    pub fault: Option<Fault>,
    pub failed_confined: Vec<String>,
    /// The calls whose questions nobody answered.
    pub unanswered: Vec<String>,
}

/// The notice to the person if they no longer trust the instructions.
const INSTRUCTIONS_REVOKED: &str =
    "the old instructions are no longer sent; the model reads the chat from its start";

impl Turn {
    /// Runs the turn to its end.
    pub(super) async fn run(mut self) -> TurnEnd {
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
        self.unanswered.extend(self.queue.unanswered());
        TurnEnd {
            end,
            fault,
            unanswered: self.unanswered,
            failed_confined: self.permissions.failed_confined,
        }
    }

    async fn steps(&mut self) -> Result<(), Halt> {
        self.read_range().await;
        self.orient().await?;
        self.name_left_out_images().await?;
        let mut told = self.services.probe.name();
        loop {
            self.renew();
            if told != self.services.probe.name() {
                self.orient().await?;
                told = self.services.probe.name();
            }
            let may_call = match self.limits.step() {
                NextStep::Go => true,
                NextStep::Summarise => {
                    self.tell_model(STEPS_USED_UP.to_owned(), true).await?;
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
                    self.show(retell::begun(&asked.call)).await?;
                    self.not_run(&asked.call, NO_STEPS_LEFT.to_owned()).await?;
                }
                return Err(Halt::Guarded);
            }
            if answer.calls.is_empty() {
                match answer.stop {
                    Stop::Length => {
                        self.note(
                            "the answer reached the model's output limit; `:Co /continue` continues it",
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
            if self.repeats_calls {
                self.note("the same call came back with the same result five times")
                    .await?;
                return Err(Halt::Guarded);
            }
        }
    }

    /// Applies changed settings.
    pub(super) fn renew(&mut self) {
        if self.new_services.has_changed().unwrap_or(false) {
            self.services = Arc::clone(&self.new_services.borrow_and_update());
            self.judge = self.services.judge(&self.workspace);
            self.limits.set_max_steps(self.services.config.max_steps);
        }
    }

    /// Records the directories, the sandbox and the instructions of the chat, and tells the model about changes of them.
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
            true => self.note(INSTRUCTIONS_REVOKED).await,
            false => Ok(()),
        }
    }

    fn surroundings(&self, isolation: &Isolation) -> Surroundings {
        Surroundings {
            cwd: self.cwd.display().to_string(),
            workspace: self.workspace.display().to_string(),
            os: std::env::consts::OS.to_owned(),
            shell: "bash".to_owned(),
            date: today(),
            backend: isolation.approved_for_model().to_owned(),
            unasked: isolation.unasked_for_model().to_owned(),
            instruction_files: self.instructions.clone(),
        }
    }

    /// Records a note for the model. With `once`, a retry of the answer does not send the note again.
    async fn tell_model(&mut self, text: String, once: bool) -> Result<(), Halt> {
        let shown = ChatEvent::ToldModel(text.clone());
        self.record(Item::Note { text, once }).await?;
        self.show(shown).await
    }

    async fn budget(&self) -> Result<Budget, Halt> {
        tokio::select! {
            () = self.cancel.cancelled() => Err(Halt::Cancelled),
            window = self.provider.window() => Ok(Budget {
                window: self.window_limit.map_or(window, |limit| limit.min(window)),
            }),
        }
    }

    /// Writes an item to the transcript file. When this returns, the item may be shown and acted on.
    async fn record(&mut self, item: Item) -> Result<(), Halt> {
        let (done, written) = oneshot::channel();
        self.send(TurnEvent::Record(item, done)).await?;
        match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(())) => Err(Halt::Unrecorded),
            Err(_) => Err(Halt::Cancelled),
        }
    }

    /// Tells the person which images the model cannot see.
    async fn name_left_out_images(&mut self) -> Result<(), Halt> {
        if self.images.is_empty() || self.provider.takes_images().await {
            return Ok(());
        }
        let text = format!(
            "left out: {}; {} is not known to take images, which the setting `images` can say",
            self.images.join(", "),
            self.provider.label()
        );
        self.note(&text).await
    }

    async fn note(&mut self, text: &str) -> Result<(), Halt> {
        let text = text.to_owned();
        self.record(Item::Notice { text: text.clone() }).await?;
        let caller = Caller::Agent;
        self.show(ChatEvent::Notice { text, caller }).await
    }

    async fn show(&self, event: impl Into<ChatEvent>) -> Result<(), Halt> {
        self.send(TurnEvent::Show(event.into())).await
    }

    /// Reports the tokens of a request, with their price if it is known.
    async fn used(&self, usage: Usage) -> Result<(), Halt> {
        if usage == Usage::default() {
            return Ok(());
        }
        let usage = usage.priced(self.services.price(&*self.provider));
        self.send(TurnEvent::Usage(usage)).await
    }

    /// Returns the transcript so far. Adds the commands that failed in the sandbox to the turn's permissions.
    async fn snapshot(&mut self) -> Result<Vec<Item>, Halt> {
        let (reply, snapshot) = oneshot::channel();
        self.send(TurnEvent::Snapshot(reply)).await?;
        let snapshot = snapshot.await.map_err(|_| Halt::Cancelled)?;
        self.permissions.learn(snapshot.failed_confined);
        Ok(snapshot.items)
    }

    async fn state(&self, state: ChatState, detail: impl Into<String>) -> Result<(), Halt> {
        self.send(TurnEvent::State(state, detail.into())).await
    }

    async fn send(&self, event: TurnEvent) -> Result<(), Halt> {
        self.events.send(event).await.map_err(|_| Halt::Cancelled)
    }
}

/// Returns the date in UTC.
fn today() -> String {
    let now = time::OffsetDateTime::now_utc();
    format!("{} (UTC)", now.date())
}
