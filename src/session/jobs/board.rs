//! What a person may do to the jobs that models started, whatever became of the sessions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::super::kit::Kit;
use super::super::trail;
use crate::audit::Record;
use crate::editor::Showing;
use crate::exec::{Input, Job, Outcome, Unwritten};
use crate::protocol::ToEditor;

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
    pub fn input(&self, run: u64, data: Vec<u8>, close: bool) -> Option<Result<(), Unwritten>> {
        let input = self.post(run)?.input;
        let input = input.ok_or(Unwritten::Closed);
        Some(input.and_then(|input| input.put(data, close)))
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
            kept: Arc::default(),
            over,
        }
    }

    /// Whether the person kept it.
    pub(super) fn kept(&self) -> bool {
        self.kept.load(Ordering::Acquire)
    }
}

/// The task that holds a job until it ends, also where its session ended before.
pub(super) struct Follower {
    pub(super) kit: Arc<Kit>,
    pub(super) run: u64,
    pub(super) number: u64,
    pub(super) post: Post,
    pub(super) record: Record,
    pub(super) showing: Showing,
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
        self.kit.jobs.posts().remove(&self.run);
        self.showing.finish(ToEditor::RunEnded {
            run: self.run,
            status: outcome.status(),
            exit: outcome.exit,
            spill: outcome.spill.clone(),
        });
        let record = Record {
            time: Record::now(),
            backend: outcome.level.to_owned(),
            outcome: Some(outcome.status()),
            ..self.record
        };
        trail::write(&self.kit, record, outcome.spill.clone());
        self.tell.send_replace(Some(Arc::new(outcome)));
        // A session that is gone needs no news.
        let _ = self.ended.send(self.number);
    }
}
