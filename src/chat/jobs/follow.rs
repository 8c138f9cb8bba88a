//! The task of one job: waits for its end and reports it.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::audit::Record;
use crate::cancellable;
use crate::editor::LiveOutput;
use crate::protocol::ToEditor;
use crate::services::Services;
use crate::services::audit_task;
use crate::services::running_jobs::JobControl;
use crate::workspace::confinement_hint;
use co_exec::{CommandOutcome, RunningCommand};

/// The task that waits for the end of a job. It may outlive the chat.
pub(super) struct JobFollower {
    pub(super) services: Arc<Services>,
    pub(super) run: u64,
    pub(super) number: u64,
    pub(super) control: JobControl,
    pub(super) record: Option<Record>,
    pub(super) showing: LiveOutput,
    /// The confinement in a few words.
    pub(super) confinement: Option<&'static str>,
    pub(super) tell: watch::Sender<Option<Arc<CommandOutcome>>>,
    /// Sends the job's number to the chat, which may have ended.
    pub(super) ended: mpsc::UnboundedSender<u64>,
}

impl JobFollower {
    pub(super) async fn follow(self, job: RunningCommand) {
        let outcome = cancellable::outcome(job, async {
            self.control.over.cancelled().await;
            if self.control.kept() {
                std::future::pending().await
            }
        });
        let outcome = outcome.await;
        self.services.jobs.remove(self.run);
        let network = self.services.config.sandbox_network;
        self.showing.finish(ToEditor::RunEnded {
            run: self.run,
            status: confinement_hint::status(&outcome, self.confinement, network),
            exit: outcome.exit,
            spill: outcome.spill.clone(),
            left: false,
        });
        if let Some(record) = self.record {
            let record = Record {
                time: Record::now(),
                confinement: outcome.level.to_owned(),
                outcome: Some(outcome.status()),
                ..record
            };
            audit_task::write(&self.services, record, outcome.spill.clone());
        }
        self.tell.send_replace(Some(Arc::new(outcome)));
        // It fails if the chat has ended.
        let _ = self.ended.send(self.number);
    }
}
