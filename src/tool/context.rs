//! The context of a call: the services and data of its turn, and the interface to its chat.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::event::CallEvent;
use super::job_list::{JobListRequest, JobView};
use super::permissions::{Allowance, AllowedHost, Reply};
use super::scout::{RunningScout, ScoutTask};
use crate::buffers::{Buffers, OpenBuffers};
use crate::protocol::{PlannedCommand, Question};
use crate::services::{Services, withheld};
use crate::workspace::edits::{EditRange, SeenTexts};
use crate::workspace::judge::Judge;
use co_exec::Confinement;
use co_exec::secrets::redact::RedactedText;
use co_llm::Provider;
use co_llm::transcript::Item;

/// The longest time that a cancelled turn waits for redacted output.
const REDACTION_TIMEOUT: Duration = Duration::from_secs(1);

/// The result of a call that is not read-only, in a turn that only plans.
const ONLY_PLANS: &str =
    "Not run: /plan only looks.\nPut this into the plan. The person starts the work with /go.";

/// The result of a call that is not read-only, in the turn of a scout.
const ONLY_SCOUTS: &str =
    "Not run: a scout only looks.\nNobody is asked. Say in your report what is left to do.";

/// The reason why a call ends its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallHalt {
    Cancelled,
    /// The transcript file cannot be written, so the turn must do nothing more.
    Unrecorded,
}

/// Asks the person questions about commands: one implementation for the commands of a chat, and another one for the runs (`:Co!`)
/// of the person.
#[async_trait]
pub trait Questioner: Send + Sync {
    /// Asks the person a question. If the question is withdrawn, the sender of the reply is dropped.
    async fn ask(&self, question: Question) -> Result<oneshot::Receiver<Reply>, CallHalt>;

    /// Withdraws a question.
    async fn withdraw(&self, question: u64) -> Result<(), CallHalt>;

    /// Adds a permission that the person gave.
    async fn allow(&self, allowance: Allowance) -> Result<(), CallHalt>;

    /// Returns the hosts that confined commands of the chat may contact; empty for a run of the person.
    async fn allowed_hosts(&self) -> Result<Vec<AllowedHost>, CallHalt>;
}

/// The interface of a call to its chat: records and shows the call, and asks its questions.
#[async_trait]
pub trait CallChat: Questioner {
    /// Writes an item to the transcript file. When this method returns `Ok`, the item may be shown and acted on.
    async fn record(&self, item: Item) -> Result<(), CallHalt>;

    async fn show(&self, event: CallEvent) -> Result<(), CallHalt>;

    /// Tells the person what runs now. The text replaces the text of [`super::call::ReadyCall::runs`].
    async fn runs(&self, words: String) -> Result<(), CallHalt>;

    /// Sends a request to the list of jobs.
    async fn job(&self, request: JobListRequest) -> Result<(), CallHalt>;
}

/// Starts the scouts of a turn.
pub trait ScoutStarter: Send + Sync {
    /// Returns the future that runs a scout with the services of a turn. The future ends soon after the token in `context` is
    /// cancelled.
    fn scout(&self, context: CallContext, asked: ScoutTask) -> RunningScout;
}

/// The kind of a turn. It determines the calls that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnKind {
    /// A usual turn: the calls run if the person or their rules allow them.
    Work,
    /// A turn that carries out calls of co's own tools for a confined agent. Each call that is not read-only needs an answer of
    /// the person. No rule replaces this answer, because the agent may have written the code that the call runs.
    OfConfinedAgent,
    /// A turn that makes a plan. Calls that are not read-only are refused.
    Plan,
    /// The turn of a scout. Calls that are not read-only are refused, and the person is asked nothing.
    Scout {
        /// The id of the call that started the scout.
        call: String,
    },
}

impl TurnKind {
    /// Returns the result of a call that is not read-only, if the turn refuses such calls.
    pub fn refusal(&self) -> Option<&'static str> {
        match self {
            Self::Work | Self::OfConfinedAgent => None,
            Self::Plan => Some(ONLY_PLANS),
            Self::Scout { .. } => Some(ONLY_SCOUTS),
        }
    }
}

/// The services and data of a turn that its calls use. A context stays the same while a call runs. When the settings change, the
/// turn makes a new context.
#[derive(Clone)]
pub struct CallContext {
    /// The number of the chat.
    pub chat: u64,
    /// The id of the transcript in the store.
    pub transcript_id: String,
    /// The number of earlier turns in the chat.
    pub turn: usize,
    pub services: Arc<Services>,
    pub provider: Arc<dyn Provider>,
    pub judge: Arc<Judge>,
    pub workspace: PathBuf,
    pub cwd: PathBuf,
    /// The texts of files that the model has read.
    pub seen_texts: SeenTexts,
    pub kind: TurnKind,
    /// True if all calls of the turn share one checkpoint of the whole turn.
    pub one_checkpoint: bool,
    /// The lines that the person selected. Edits may change only these lines.
    pub range: Option<EditRange>,
    pub to_chat: Arc<dyn CallChat>,
    pub scouts: Arc<dyn ScoutStarter>,
    /// Asks the person on behalf of a job, which may outlive the turn.
    pub for_jobs: Arc<dyn Questioner>,
    pub cancel: CancellationToken,
}

impl CallContext {
    /// Waits for the result of `work`. Drops `work` when the turn is cancelled.
    ///
    /// # Errors
    /// The turn is cancelled.
    pub async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, CallHalt> {
        let done = self.cancel.run_until_cancelled(work).await;
        done.ok_or(CallHalt::Cancelled)
    }

    /// Returns the interface to Neovim's buffers. Its requests end with the turn.
    pub fn buffers(&self) -> Buffers {
        (self.services.buffers).of_turn(self.chat, self.cancel.clone())
    }

    /// Returns the loaded buffers of some files. The paths must be canonical.
    pub async fn read_buffers<'a>(&self, files: impl IntoIterator<Item = &'a Path>) -> OpenBuffers {
        self.buffers().read(files).await
    }

    /// Returns the reason why a plugin refuses a command. Returns `None` if no plugin refuses it, or if the turn is cancelled
    /// meanwhile.
    pub(super) async fn plugin_refusal(&self, command: PlannedCommand) -> Option<String> {
        let refusal = self.unless_cancelled(self.services.buffers.refusal(command));
        let why = refusal.await.ok().flatten();
        why.map(|why| format!("a plugin refuses it: {why}"))
    }

    /// Returns a text for the model without secret values; see [`Services::redact_for_model`] for `complete_at`. After a
    /// cancellation, waits only for a short time.
    ///
    /// # Errors
    /// The secrets cannot be found, or not in time. The error is a line that the model gets in place of the text.
    pub async fn redact_for_model(
        &self,
        text: &str,
        complete_at: Instant,
    ) -> Result<RedactedText, String> {
        // If a program supplies the key of the provider, co knows the key only after the first request.
        let keys = self.provider.secrets();
        let redact = self
            .services
            .redact_for_model(&self.workspace, text, &keys, complete_at);
        in_time(&self.cancel, redact).await
    }

    /// Reads the values of secrets before a command may change them.
    pub(super) async fn load_secret_values(&self, confinement: &Confinement) {
        if self.services.config.redact {
            let may_change = !confinement.only_looks();
            let load = self
                .services
                .load_secret_values(&self.workspace, may_change);
            // If the turn is cancelled, nothing runs that could change them.
            self.unless_cancelled(load).await.ok();
        }
    }

    /// Sends a request to the list of jobs, and returns the reply.
    pub(super) async fn jobs<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> JobListRequest,
    ) -> Result<T, CallHalt> {
        let (reply, answer) = oneshot::channel();
        self.to_chat.job(request(reply)).await?;
        answer.await.map_err(|_| CallHalt::Cancelled)
    }

    /// Returns the job with this number. The inner error is a text for the model.
    pub(super) async fn find_job(&self, number: u64) -> Result<Result<JobView, String>, CallHalt> {
        self.jobs(|reply| JobListRequest::Find(number, reply)).await
    }

    /// Notifies the list of jobs that the model now knows about the end of a job.
    pub async fn job_end_told(&self, job: u64) -> Result<(), CallHalt> {
        self.to_chat.job(JobListRequest::EndTold(job)).await
    }
}

/// Waits for a redacted text. After the turn is cancelled, waits only for a short time.
async fn in_time(
    cancel: &CancellationToken,
    redact: impl Future<Output = Result<RedactedText, String>>,
) -> Result<RedactedText, String> {
    let late = async {
        cancel.cancelled().await;
        tokio::time::sleep(REDACTION_TIMEOUT).await;
    };
    tokio::select! {
        text = redact => text,
        () = late => Err(withheld("the turn was cancelled")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancelled_turn_waits_a_short_time_for_redacted_output() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let soon = async {
            tokio::task::yield_now().await;
            Ok("text".to_owned().into())
        };
        assert_eq!(in_time(&cancel, soon).await.unwrap().text, "text");
        assert_eq!(
            in_time(&cancel, std::future::pending()).await,
            Err(
                "output withheld: co could not check it for secrets (the turn was cancelled)"
                    .to_owned()
            )
        );
    }
}
