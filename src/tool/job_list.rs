//! The requests of a call to the list of jobs: to start, read, end and type to a job. The chat owns the list.

pub mod checkpoint;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use self::checkpoint::JobCheckpoint;
use crate::audit::Record;
use crate::network::{HostReport, OpenAccess};
use crate::services::running_jobs::JobControl;
use crate::tool::conditions::Conditions;
use co_exec::{CommandOutcome, InputError, NewOutput, OutputReading};

/// The time without new output after which co assumes that a job has finished printing for now.
const SETTLE_PAUSE: Duration = Duration::from_millis(500);

/// A request of a call to the list of jobs in its chat.
pub enum JobListRequest {
    /// Asks whether another job may start.
    CheckRoom(oneshot::Sender<Result<(), String>>),
    /// Asks for the number of a new job.
    NewNumber(oneshot::Sender<Result<u64, String>>),
    /// Adds a job that has started.
    Started(Box<StartedJob>, oneshot::Sender<JobView>),
    Find(u64, oneshot::Sender<Result<JobView, String>>),
    /// Reports that the model knows about the end of this job. The chat then records the end.
    EndTold(u64),
}

/// A job that has just started.
pub struct StartedJob {
    pub number: u64,
    pub command: String,
    pub cwd: PathBuf,
    pub conditions: Conditions,
    /// The line for the audit file, to which the outcome of the job will be added.
    pub record: Option<Record>,
    pub job: co_exec::RunningCommand,
    /// The job's access to hosts; none if it has no such access.
    pub access: Option<OpenAccess>,
    /// The state of the files before the job; none if the job cannot change files, or if there is no undo.
    pub checkpoint: Option<JobCheckpoint>,
}

/// The end of a job.
#[derive(Debug)]
pub struct JobEnd {
    pub outcome: CommandOutcome,
    /// The hosts that the job contacted, or wanted to contact.
    pub hosts: HostReport,
}

/// A view of a job of the chat. Dropping it does not end the job.
#[derive(Debug, Clone)]
pub struct JobView {
    pub number: u64,
    pub command: String,
    /// The start of the job's command.
    pub short: String,
    pub cwd: PathBuf,
    pub conditions: Conditions,
    pub(crate) reading: Arc<OutputReading>,
    pub(crate) control: JobControl,
    pub(crate) cancel: CancellationToken,
    pub(crate) began: Instant,
    pub(crate) end: watch::Receiver<Option<Arc<JobEnd>>>,
}

impl JobView {
    /// Returns true until the end of the job is known.
    pub(crate) fn runs(&self) -> bool {
        self.end.borrow().is_none()
    }

    /// Returns the end of the job; none if the job still runs.
    pub(crate) fn end_of(&self) -> Option<Arc<JobEnd>> {
        self.end.borrow().clone()
    }

    /// Waits for the end of the job.
    pub(crate) async fn ended(&self) {
        let mut end = self.end.clone();
        // It fails if the job's task has ended, and then the job has ended too.
        let _ = end.wait_for(Option::is_some).await;
    }

    /// Waits until the job has printed something new and then paused, or until the job ends. Waits at most `most`.
    pub(crate) async fn settled(&self, most: Duration) {
        let settled = async {
            self.reading.settled(SETTLE_PAUSE).await;
            if self.reading.is_over() {
                self.ended().await;
            }
        };
        let _ = tokio::time::timeout(most, settled).await;
    }

    /// Ends the job and its processes.
    pub(crate) async fn end(&self) {
        self.cancel.cancel();
        self.ended().await;
    }

    /// Sends `text` to the job's input. If `close` is true, then closes the input.
    ///
    /// # Errors
    /// The input is full or closed.
    pub(crate) fn write(&self, text: &str, close: bool) -> Result<(), InputError> {
        // The return key of a terminal sends `\r`.
        let text = match self.control.is_terminal() {
            true => text.replace('\n', "\r"),
            false => text.to_owned(),
        };
        self.control.write(text.into_bytes(), close)
    }

    /// Returns the last line that was sent to the job's input, if the line has no line break yet; otherwise an empty text.
    pub(crate) fn line(&self) -> String {
        self.control.line()
    }

    /// Returns the output from line `since` on. If `since` is `None`, returns the output since the last read.
    pub(crate) async fn read(&self, since: Option<u64>) -> Option<NewOutput> {
        let reading = Arc::clone(&self.reading);
        let read = tokio::task::spawn_blocking(move || match since {
            None => reading.next(),
            Some(line) => reading.from_line(line),
        });
        read.await.ok().flatten()
    }

    /// Returns a text about the state of the job, for the model.
    pub(crate) fn status(&self, end: Option<&JobEnd>) -> String {
        let Some(JobEnd { outcome, hosts }) = end else {
            return format!(
                "[job {} runs, for {} s so far, {}]",
                self.number,
                self.began.elapsed().as_secs(),
                self.reading.amount()
            );
        };
        let spill = outcome.spill.as_ref();
        let all = spill.map_or_else(String::new, |path| format!("; kept in {}", path.display()));
        let mut line = format!(
            "[job {} ended: {}{all}]",
            self.number,
            outcome.told_status()
        );
        for more in hosts
            .for_model()
            .into_iter()
            .chain(self.conditions.advice(outcome))
        {
            line.push('\n');
            line.push_str(&more);
        }
        line
    }

    /// Returns the line about the job's end.
    pub(crate) fn end_line(&self) -> String {
        let start = format!("job {} ({}) ended: ", self.number, self.short);
        let Some(end) = self.end_of() else {
            return start;
        };
        let JobEnd { outcome, hosts } = &*end;
        let hint = self.conditions.hint(outcome);
        let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
        let line = format!("{start}{}{hint}", outcome.told_status());
        // The read-only level may have caused the failure: the model may try again.
        let to_blame = self.conditions.may_be_to_blame(outcome);
        let advice = self.conditions.advice(outcome).filter(|_| to_blame);
        let more = hosts.for_model().into_iter().chain(advice);
        more.fold(line, |line, more| format!("{line}. {more}"))
    }

    /// Returns true if the job failed and its confinement may be the cause.
    pub(crate) fn failed_confined(&self) -> bool {
        let end = self.end_of();
        end.is_some_and(|it| self.conditions.may_be_to_blame(&it.outcome))
    }
}
