//! The jobs of a session: commands that a model started in the background. They end with the session, but for those
//! that the person keeps.
//!
//! The session owns the list; a turn gets a `Seen` of one, which reads it, types to it and ends it.

mod board;
mod status;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

pub use board::Board;
pub(super) use status::Seen;

use self::board::{Follower, Post};
use super::advice::Conditions;
use super::services::Services;
use super::{Session, render};
use crate::audit::Record;
use crate::editor::Target;
use crate::protocol::{Owner, ToEditor};
use co_llm::transcript::{self, Item};

/// Jobs of one session that run at once.
const MOST: usize = 8;
/// Ended jobs of one session that can still be read: what they printed is in memory.
const REMEMBERED: usize = 16;
/// How long the jobs of a session that ends are waited for; the executor ends them within.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a turn wants of the list.
pub(super) enum Act {
    /// Whether there may be one more.
    Room(oneshot::Sender<Result<(), String>>),
    /// A number for one more job.
    Number(oneshot::Sender<Result<u64, String>>),
    /// Takes a job over.
    Began(Box<Begun>, oneshot::Sender<Seen>),
    Find(u64, oneshot::Sender<Result<Seen, String>>),
    /// The model has read how it ended.
    Heard(u64),
}

/// A job whose process runs.
pub(super) struct Begun {
    pub number: u64,
    pub command: String,
    pub cwd: PathBuf,
    pub conditions: Conditions,
    /// The audit line that is to say what it came to.
    pub record: Record,
    pub job: co_exec::Job,
}

/// The list.
pub(super) struct Jobs {
    services: Arc<Services>,
    session: u64,
    next: u64,
    held: BTreeMap<u64, Held>,
    /// Ends all but the kept ones.
    over: CancellationToken,
    tell: mpsc::UnboundedSender<u64>,
    ended: mpsc::UnboundedReceiver<u64>,
}

struct Held {
    seen: Seen,
    post: Post,
    /// Its end is in the transcript.
    recorded: bool,
}

impl Jobs {
    /// The jobs of a conversation, counted on from those it had: no number means two of them.
    pub(super) fn new(services: Arc<Services>, session: u64, items: &[Item]) -> Self {
        // As many as there are jobs.
        let (tell, ended) = mpsc::unbounded_channel();
        Self {
            services,
            session,
            next: transcript::last_job(items) + 1,
            held: BTreeMap::new(),
            over: CancellationToken::new(),
            tell,
            ended,
        }
    }

    /// Waits until a job has ended.
    pub(super) async fn ended(&mut self) {
        // The list holds a sender itself, so this never closes.
        self.ended.recv().await;
    }

    fn room(&self) -> Result<(), String> {
        let running: Vec<_> = self.held.values().filter(|job| job.seen.runs()).collect();
        if running.len() >= MOST {
            return Err(format!(
                "Not run: {MOST} jobs run already, and there may be no more ({}). End one with job_cancel first.",
                list(running)
            ));
        }
        Ok(())
    }

    /// Whether any of them runs.
    pub(super) fn any_runs(&self) -> bool {
        self.held.values().any(|job| job.seen.runs())
    }

    fn number(&mut self) -> Result<u64, String> {
        self.room()?;
        self.next += 1;
        Ok(self.next - 1)
    }

    fn find(&self, number: u64) -> Result<Seen, String> {
        match self.held.get(&number) {
            Some(job) => Ok(job.seen.clone()),
            None if self.held.is_empty() => Err(format!(
                "There is no job {number}: this conversation has none. run_shell_command with background = true starts one."
            )),
            None => Err(format!(
                "There is no job {number} in this conversation. Its jobs: {}.",
                list(self.held.values())
            )),
        }
    }

    fn begin(&mut self, begun: Begun) -> Seen {
        let run = self.services.id();
        let post = Post::new(&begun.job, self.over.clone());
        let (tell, end) = watch::channel(None);
        let seen = Seen {
            number: begun.number,
            short: render::short(&begun.command),
            cwd: begun.cwd.clone(),
            command: begun.command.clone(),
            conditions: begun.conditions,
            reading: begun.job.reading(),
            post: post.clone(),
            cancel: begun.job.canceller(),
            began: Instant::now(),
            end,
        };
        self.services.jobs.put(run, post.clone());
        self.services.editor.tell(ToEditor::RunStarted {
            run,
            command: begun.command,
            cwd: begun.cwd.display().to_string(),
            owner: Some(Owner {
                session: self.session,
                job: begun.number,
                terminal: post.is_terminal(),
            }),
        });
        let showing = self
            .services
            .editor
            .show(Target::Run(run), begun.job.screen());
        let follower = Follower {
            services: Arc::clone(&self.services),
            run,
            number: begun.number,
            post: post.clone(),
            record: begun.record,
            showing,
            tell,
            ended: self.tell.clone(),
        };
        tokio::spawn(follower.follow(begun.job));
        self.forget();
        let held = Held {
            seen: seen.clone(),
            post,
            recorded: false,
        };
        self.held.insert(begun.number, held);
        seen
    }

    /// Lets go of the oldest that ended.
    fn forget(&mut self) {
        let ended = self
            .held
            .iter()
            .filter(|(_, job)| job.recorded)
            .map(|(number, _)| *number);
        let ended: Vec<_> = ended.collect();
        for number in ended.iter().rev().skip(REMEMBERED) {
            self.held.remove(number);
        }
    }

    /// Returns what the transcript does not know yet of the jobs' ends.
    fn untold(&mut self) -> Vec<Seen> {
        let ended = self.held.values_mut();
        let ended = ended.filter(|job| !job.recorded && !job.seen.runs());
        ended
            .map(|job| {
                job.recorded = true;
                job.seen.clone()
            })
            .collect()
    }

    /// Ends all but those that the person kept; returns what the transcript is to know of it. Where Neovim is gone, the
    /// executor ends the kept ones too.
    async fn end(&mut self, neovim_is_gone: bool) -> Vec<(u64, String)> {
        self.over.cancel();
        let ends = self.held.values_mut().filter(|job| !job.post.kept());
        let ends = ends.map(|job| async { job.seen.ended().await });
        let all = futures::future::join_all(ends);
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            tracing::warn!("the jobs of a session that ended are still there");
        }
        let ended = self.untold();
        let mut told: Vec<_> = ended
            .iter()
            .map(|job| (job.number, job.end_line()))
            .collect();
        for job in self.held.values_mut().filter(|job| !job.recorded) {
            job.recorded = true;
            let Seen { number, short, .. } = &job.seen;
            let what = match (job.post.kept(), neovim_is_gone) {
                (true, false) => {
                    "goes on: the person kept it, and it is no longer this conversation's"
                }
                (true, true) => "ended with Neovim",
                (false, _) => "could not be ended",
            };
            told.push((*number, format!("job {number} ({short}) {what}")));
        }
        told
    }
}

impl Drop for Jobs {
    /// However the session ends, its jobs end with it.
    fn drop(&mut self) {
        self.over.cancel();
    }
}

impl Session {
    /// Does what a turn wants of the list of jobs.
    pub(super) async fn job(&mut self, act: Act) {
        // Who asked may have been cancelled meanwhile: then nobody takes the answer.
        match act {
            Act::Room(reply) => drop(reply.send(self.jobs.room())),
            Act::Number(reply) => drop(reply.send(self.jobs.number())),
            Act::Began(begun, reply) => drop(reply.send(self.jobs.begin(*begun))),
            Act::Find(number, reply) => drop(reply.send(self.jobs.find(number))),
            Act::Heard(number) => {
                if let Some(job) = self.jobs.held.get_mut(&number)
                    && !std::mem::replace(&mut job.recorded, true)
                {
                    let text = job.seen.end_line();
                    self.record_end(number, text, true).await;
                }
            }
        }
    }

    /// Puts the ends of jobs on record and shows them, where nothing that was said is torn by it.
    pub(super) async fn tell_job_ends(&mut self) {
        for job in self.jobs.untold() {
            let text = job.end_line();
            self.record_end(job.number, text.clone(), false).await;
            self.paragraph(&format!("*{text}*"));
            if job.failed_confined() {
                self.standing.learn(vec![job.command]);
            }
        }
    }

    /// Ends the jobs of the conversation, before it is left.
    pub(super) async fn end_jobs(&mut self) {
        for (number, text) in self.jobs.end(self.app.is_cancelled()).await {
            self.record_end(number, text, false).await;
        }
    }

    async fn record_end(&mut self, job: u64, text: String, told: bool) {
        self.recorder
            .record(Item::JobEnded { job, text, told })
            .await;
    }
}

fn list<'a>(jobs: impl IntoIterator<Item = &'a Held>) -> String {
    let jobs = jobs.into_iter().map(|job| {
        let Seen { number, short, .. } = &job.seen;
        let state = if job.seen.runs() { "running" } else { "ended" };
        format!("{number} {state} ({short})")
    });
    jobs.collect::<Vec<_>>().join(", ")
}
