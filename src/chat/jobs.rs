//! The jobs of a chat: commands that the model started in the background. They end with the chat, except those that the person
//! keeps.
//!
//! The chat owns the list of jobs. A turn gets a `JobView` of each job.

mod follow;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::follow::JobFollower;
use super::chat_context::ChatContext;
use super::events::ChatEvent;
use super::record::Recorder;
use crate::editor::Target;
use crate::protocol::{Owner, ToEditor};
use crate::services::Services;
use crate::services::running_jobs::JobControl;
use crate::tool::job_list::checkpoint::JobCheckpoint;
use crate::tool::job_list::{JobListRequest, JobView, StartedJob};
use co_llm::transcript::{self, Item};
use co_text::short_command;

/// The largest number of jobs of one chat that run at the same time.
const MAX_RUNNING: usize = 8;
/// The largest number of ended jobs of one chat whose output stays in memory.
const MAX_ENDED: usize = 16;
/// The longest time that a closing chat waits for its cancelled jobs to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);

/// The jobs of a chat.
pub(super) struct Jobs {
    services: Arc<Services>,
    chat: u64,
    next: u64,
    entries: BTreeMap<u64, JobEntry>,
    /// Cancelled to end all jobs except those that the person keeps.
    over: CancellationToken,
    tell: mpsc::UnboundedSender<u64>,
    ended: mpsc::UnboundedReceiver<u64>,
}

struct JobEntry {
    view: JobView,
    control: JobControl,
    /// True if the transcript has the end of the job.
    recorded: bool,
    /// The state of the files at the start of the job; none after its changes are recorded.
    checkpoint: Option<JobCheckpoint>,
}

/// The end of a job that the transcript must record.
struct JobEnd {
    job: u64,
    text: String,
    /// True if the model already knows about the end.
    told: bool,
}

impl Jobs {
    /// Returns an empty list. The numbers of new jobs continue those in the transcript, so that no number is used twice.
    pub(super) fn new(services: Arc<Services>, chat: u64, items: &[Item]) -> Self {
        // The channel needs no bound: it has one message for each job.
        let (tell, ended) = mpsc::unbounded_channel();
        Self {
            services,
            chat,
            next: transcript::last_job(items) + 1,
            entries: BTreeMap::new(),
            over: CancellationToken::new(),
            tell,
            ended,
        }
    }

    /// Waits until a job has ended.
    pub(super) async fn ended(&mut self) {
        // The list has a sender, so the channel never closes.
        self.ended.recv().await;
    }

    fn room(&self) -> Result<(), String> {
        let running: Vec<_> = self
            .entries
            .values()
            .filter(|job| job.view.runs())
            .collect();
        if running.len() >= MAX_RUNNING {
            return Err(format!(
                "Not run: {MAX_RUNNING} jobs run already, and there may be no more ({}). End one with job_cancel first.",
                list(running)
            ));
        }
        Ok(())
    }

    /// Returns true if at least one job runs.
    pub(super) fn any_runs(&self) -> bool {
        self.entries.values().any(|job| job.view.runs())
    }

    /// Returns the numbers of the jobs that have a checkpoint. `/undo` learns their changes only after they end.
    pub(super) fn with_checkpoints(&self) -> Vec<u64> {
        let jobs = self.entries.iter();
        jobs.filter_map(|(number, job)| job.checkpoint.is_some().then_some(*number))
            .collect()
    }

    fn number(&mut self) -> Result<u64, String> {
        self.room()?;
        self.next += 1;
        Ok(self.next - 1)
    }

    fn find(&self, number: u64) -> Result<JobView, String> {
        match self.entries.get(&number) {
            Some(job) => Ok(job.view.clone()),
            None if self.entries.is_empty() => Err(format!(
                "There is no job {number}: this chat has none. run_shell_command with background = true starts one."
            )),
            None => Err(format!(
                "There is no job {number} in this chat. Its jobs: {}.",
                list(self.entries.values())
            )),
        }
    }

    fn add(&mut self, started: StartedJob) -> JobView {
        let run = self.services.id();
        let control = JobControl::new(&started.job, self.over.clone());
        let (tell, end) = watch::channel(None);
        let view = JobView {
            number: started.number,
            short: short_command(&started.command),
            cwd: started.cwd.clone(),
            command: started.command.clone(),
            conditions: started.conditions,
            reading: started.job.reading(),
            control: control.clone(),
            cancel: started.job.canceller(),
            began: Instant::now(),
            end,
        };
        self.services.jobs.put(run, control.clone());
        self.services.editor.tell(ToEditor::RunStarted {
            run,
            command: started.command,
            cwd: started.cwd.display().to_string(),
            owner: Some(Owner {
                chat: self.chat,
                job: started.number,
                terminal: control.is_terminal(),
            }),
            detail: started.conditions.confinement.map(str::to_owned),
        });
        let showing = self
            .services
            .editor
            .show(Target::Run(run), started.job.screen());
        let follower = JobFollower {
            services: Arc::clone(&self.services),
            run,
            number: started.number,
            control: control.clone(),
            record: started.record,
            showing,
            confinement: started.conditions.confinement,
            network: started.conditions.network,
            tell,
            ended: self.tell.clone(),
        };
        tokio::spawn(follower.follow((started.job, started.access)));
        self.forget();
        let entry = JobEntry {
            view: view.clone(),
            control,
            recorded: false,
            checkpoint: started.checkpoint,
        };
        self.entries.insert(started.number, entry);
        view
    }

    /// Removes the oldest ended jobs from the list.
    fn forget(&mut self) {
        let ended = self
            .entries
            .iter()
            .filter(|(_, job)| job.recorded)
            .map(|(number, _)| *number);
        let ended: Vec<_> = ended.collect();
        for number in ended.iter().rev().skip(MAX_ENDED) {
            self.entries.remove(number);
        }
    }

    /// Returns the jobs that have ended since the last call.
    fn take_new_ends(&mut self) -> Vec<JobView> {
        let ended = self.entries.values_mut();
        let ended = ended.filter(|job| !job.recorded && !job.view.runs());
        ended
            .map(|job| {
                job.recorded = true;
                job.view.clone()
            })
            .collect()
    }

    /// Carries out a request of a turn about jobs.
    pub(super) async fn carry_out(&mut self, request: JobListRequest, recorder: &mut Recorder) {
        // If the turn was cancelled meanwhile, nobody takes the reply.
        match request {
            JobListRequest::CheckRoom(reply) => drop(reply.send(self.room())),
            JobListRequest::NewNumber(reply) => drop(reply.send(self.number())),
            JobListRequest::Started(started, reply) => drop(reply.send(self.add(*started))),
            JobListRequest::Find(number, reply) => drop(reply.send(self.find(number))),
            JobListRequest::EndTold(number) => {
                if let Some(job) = self.entries.get_mut(&number)
                    && !std::mem::replace(&mut job.recorded, true)
                {
                    let text = job.view.end_line();
                    let ended = JobEnd {
                        job: number,
                        text,
                        told: true,
                    };
                    self.record_end(ended, recorder, true).await;
                }
            }
        }
    }

    /// Records and shows the ends of jobs. Returns the commands that failed in the read-only confinement. Call it only between
    /// two steps or turns, never within an answer of the model, and never between a call and its outcome.
    pub(super) async fn tell_ends(
        &mut self,
        context: &ChatContext,
        recorder: &mut Recorder,
        in_turn: bool,
    ) -> Vec<String> {
        let mut failed_confined = Vec::new();
        for job in self.take_new_ends() {
            let text = job.end_line();
            let ended = JobEnd {
                job: job.number,
                text: text.clone(),
                told: false,
            };
            self.record_end(ended, recorder, in_turn).await;
            context.show(ChatEvent::JobEnded(text));
            if job.failed_confined() {
                failed_confined.push(job.command);
            }
        }
        failed_confined
    }

    /// Ends all jobs except those that the person keeps, and records their ends. Call it before the chat closes or resumes
    /// another transcript.
    pub(super) async fn end_all(&mut self, neovim_is_gone: bool, recorder: &mut Recorder) {
        for (job, text) in self.end(neovim_is_gone).await {
            let told = false;
            let ended = JobEnd { job, text, told };
            self.record_end(ended, recorder, false).await;
        }
    }

    /// Records the end of a job, and the changes that the job made.
    async fn record_end(&mut self, end: JobEnd, recorder: &mut Recorder, in_turn: bool) {
        let JobEnd { job, text, told } = end;
        let entry = self.entries.get_mut(&job);
        if let Some(checkpoint) = entry.and_then(|it| it.checkpoint.take()) {
            checkpoint.end(recorder.last_turn(in_turn)).await;
        }
        recorder.record(Item::JobEnded { job, text, told }).await;
    }

    /// Ends all jobs except those that the person keeps. Returns the number of each job and a line about it for the transcript.
    /// If Neovim is gone, the executor ends the kept jobs too.
    async fn end(&mut self, neovim_is_gone: bool) -> Vec<(u64, String)> {
        self.over.cancel();
        let ends = self.entries.values_mut().filter(|job| !job.control.kept());
        let ends = ends.map(|job| async { job.view.ended().await });
        let all = futures::future::join_all(ends);
        if tokio::time::timeout(CANCEL_TIMEOUT, all).await.is_err() {
            tracing::warn!("the jobs of a chat that ended are still there");
        }
        let ended = self.take_new_ends();
        let mut told: Vec<_> = ended
            .iter()
            .map(|job| (job.number, job.end_line()))
            .collect();
        for job in self.entries.values_mut().filter(|job| !job.recorded) {
            job.recorded = true;
            let JobView { number, short, .. } = &job.view;
            let what = match (job.control.kept(), neovim_is_gone) {
                (true, false) => "continues: the person kept it, and it is no longer this chat's",
                (true, true) => "ended with Neovim",
                (false, _) => "could not be ended",
            };
            told.push((*number, format!("job {number} ({short}) {what}")));
        }
        told
    }
}

impl Drop for Jobs {
    /// Ends the jobs when the chat ends for any reason.
    fn drop(&mut self) {
        self.over.cancel();
    }
}

fn list<'a>(jobs: impl IntoIterator<Item = &'a JobEntry>) -> String {
    let jobs = jobs.into_iter().map(|job| {
        let JobView { number, short, .. } = &job.view;
        let state = if job.view.runs() { "running" } else { "ended" };
        format!("{number} {state} ({short})")
    });
    jobs.collect::<Vec<_>>().join(", ")
}
