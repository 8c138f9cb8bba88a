//! The running jobs of all chats, so that the person can end, keep and type to any of them.
//!
//! A job that the person keeps stays here after its chat has ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::workspace::job_input::UnfinishedLine;
use co_exec::{CommandInput, InputError, RunningCommand};

/// The running jobs of all chats of a backend, by the id of each job.
#[derive(Debug, Default)]
pub struct RunningJobs {
    controls: Mutex<HashMap<u64, JobControl>>,
}

/// Controls one job, even after the chat of the job has ended.
#[derive(Debug, Clone)]
pub(crate) struct JobControl {
    cancel: CancellationToken,
    input: Option<CommandInput>,
    /// The start of a typed line that has no line break yet.
    line: Arc<Mutex<UnfinishedLine>>,
    kept: Arc<AtomicBool>,
    /// Cancelled when the chat of the job ends.
    pub(crate) over: CancellationToken,
}

impl RunningJobs {
    pub(crate) fn put(&self, run: u64, control: JobControl) {
        self.controls.lock().insert(run, control);
    }

    /// Ends a job and its processes. Returns false if there is no such job.
    pub fn cancel(&self, run: u64) -> bool {
        let control = self.control(run);
        control.map(|control| control.cancel.cancel()).is_some()
    }

    /// Writes to a job's standard input. If `close` is true, then closes the input. Returns `None` if there is no such job.
    pub fn input(&self, run: u64, data: Vec<u8>, close: bool) -> Option<Result<(), InputError>> {
        Some(self.control(run)?.write(data, close))
    }

    /// Sets whether a job continues after its chat ends. Returns false if there is no such job.
    pub fn keep(&self, run: u64, keep: bool) -> bool {
        let Some(control) = self.control(run) else {
            return false;
        };
        control.kept.store(keep, Ordering::Release);
        if !keep && control.over.is_cancelled() {
            control.cancel.cancel();
        }
        true
    }

    /// Removes a job that has ended from the list.
    pub(crate) fn remove(&self, run: u64) {
        self.controls.lock().remove(&run);
    }

    fn control(&self, run: u64) -> Option<JobControl> {
        self.controls.lock().get(&run).cloned()
    }
}

impl JobControl {
    pub(crate) fn new(job: &RunningCommand, over: CancellationToken) -> Self {
        Self {
            cancel: job.canceller(),
            input: job.input(),
            line: Arc::default(),
            kept: Arc::default(),
            over,
        }
    }

    /// Writes to the job's standard input. If `close` is true, then closes the input.
    ///
    /// # Errors
    /// The input is full or closed.
    pub(crate) fn write(&self, data: Vec<u8>, close: bool) -> Result<(), InputError> {
        let input = self.input.as_ref().ok_or(InputError::Closed)?;
        let text = String::from_utf8_lossy(&data).into_owned();
        input.put(data, close)?;
        self.line.lock().push(&text);
        Ok(())
    }

    /// Returns the start of a typed line that has no line break yet.
    pub(crate) fn line(&self) -> String {
        self.line.lock().text().to_owned()
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.input.as_ref().is_some_and(CommandInput::is_terminal)
    }

    /// Returns true if the person keeps the job.
    pub(crate) fn kept(&self) -> bool {
        self.kept.load(Ordering::Acquire)
    }
}
