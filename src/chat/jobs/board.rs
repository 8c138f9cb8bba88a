//! What a person may do to the jobs that models started, whatever became of the sessions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::super::audit_task;
use super::super::services::Services;
use crate::audit::Record;
use crate::editor::LiveOutput;
use crate::protocol::ToEditor;
use crate::tool::job_input::Line;
use co_exec::{Input, InputError, Job, Outcome};

/// The running jobs of every session of one backend, by the number of their run.
#[derive(Debug, Default)]
pub struct Board {
    posts: Mutex<HashMap<u64, Post>>,
}

/// What is done to one job from outside of its session.
#[derive(Debug, Clone)]
pub(super) struct Post {
    cancel: CancellationToken,
    input: Option<Input>,
    /// What was typed of a line that has not ended, by whomever.
    line: Arc<Mutex<Line>>,
    kept: Arc<AtomicBool>,
    /// The session is over.
    over: CancellationToken,
}

impl Board {
    pub(super) fn put(&self, run: u64, post: Post) {
        self.posts().insert(run, post);
    }

    /// Ends a job and all it started; false where there is none of that number.
    pub fn cancel(&self, run: u64) -> bool {
        let post = self.post(run);
        post.map(|post| post.cancel.cancel()).is_some()
    }

    /// Writes to a job's standard input, and closes it if that is asked for; none where there is no such job.
    pub fn input(&self, run: u64, data: Vec<u8>, close: bool) -> Option<Result<(), InputError>> {
        Some(self.post(run)?.write(data, close))
    }

    /// Has a job outlive its session, or not; false where there is none of that number.
    pub fn keep(&self, run: u64, keep: bool) -> bool {
        let Some(post) = self.post(run) else {
            return false;
        };
        post.kept.store(keep, Ordering::Release);
        if !keep && post.over.is_cancelled() {
            post.cancel.cancel();
        }
        true
    }

    fn post(&self, run: u64) -> Option<Post> {
        self.posts().get(&run).cloned()
    }

    fn posts(&self) -> MutexGuard<'_, HashMap<u64, Post>> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Post {
    pub(super) fn new(job: &Job, over: CancellationToken) -> Self {
        Self {
            cancel: job.canceller(),
            input: job.input(),
            line: Arc::default(),
            kept: Arc::default(),
            over,
        }
    }

    /// Writes to its standard input, and closes it if that is asked for.
    ///
    /// # Errors
    /// Too much waits already, or nobody will ever read it.
    pub(super) fn write(&self, data: Vec<u8>, close: bool) -> Result<(), InputError> {
        let input = self.input.as_ref().ok_or(InputError::Closed)?;
        let text = String::from_utf8_lossy(&data).into_owned();
        input.put(data, close)?;
        self.typed().push(&text);
        Ok(())
    }

    /// What was typed of a line that has not ended.
    pub(super) fn line(&self) -> String {
        self.typed().text().to_owned()
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.input.as_ref().is_some_and(Input::is_terminal)
    }

    fn typed(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the person kept it.
    pub(super) fn kept(&self) -> bool {
        self.kept.load(Ordering::Acquire)
    }
}

/// The task that holds a job until it ends, also where its session ended before.
pub(super) struct Follower {
    pub(super) services: Arc<Services>,
    pub(super) run: u64,
    pub(super) number: u64,
    pub(super) post: Post,
    pub(super) record: Record,
    pub(super) showing: LiveOutput,
    pub(super) tell: watch::Sender<Option<Arc<Outcome>>>,
    /// The session, as long as it is there.
    pub(super) ended: mpsc::UnboundedSender<u64>,
}

impl Follower {
    pub(super) async fn follow(self, job: Job) {
        let outcome = job.outcome();
        tokio::pin!(outcome);
        let outcome = tokio::select! {
            outcome = &mut outcome => outcome,
            () = self.post.over.cancelled() => {
                if !self.post.kept() {
                    self.post.cancel.cancel();
                }
                outcome.await
            }
        };
        self.services.jobs.posts().remove(&self.run);
        self.showing.finish(ToEditor::RunEnded {
            run: self.run,
            status: outcome.status(),
            exit: outcome.exit,
            spill: outcome.spill.clone(),
            left: false,
        });
        let record = Record {
            time: Record::now(),
            backend: outcome.level.to_owned(),
            outcome: Some(outcome.status()),
            ..self.record
        };
        audit_task::write(&self.services, record, outcome.spill.clone());
        self.tell.send_replace(Some(Arc::new(outcome)));
        // A session that is gone needs no news.
        let _ = self.ended.send(self.number);
    }
}
