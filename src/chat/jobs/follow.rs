//! The task of one job. It waits for the job's end and reports the end to the chat.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::audit::Record;
use crate::cancellable;
use crate::config::Network;
use crate::editor::LiveOutput;
use crate::network::{OpenAccess, OpenCommand};
use crate::protocol::ToEditor;
use crate::services::Services;
use crate::services::audit_task;
use crate::services::running_jobs::JobControl;
use crate::tool::job_list::JobEnd;
use crate::workspace::confinement_hint;

/// The task that waits for the end of a job. It may outlive the chat.
pub(super) struct JobFollower {
    pub(super) services: Arc<Services>,
    pub(super) run: u64,
    pub(super) number: u64,
    pub(super) control: JobControl,
    pub(super) record: Option<Record>,
    pub(super) showing: LiveOutput,
    /// A short description of the confinement.
    pub(super) confinement: Option<&'static str>,
    pub(super) network: Network,
    pub(super) tell: watch::Sender<Option<Arc<JobEnd>>>,
    /// Sends the job's number to the chat, which may have ended.
    pub(super) ended: mpsc::UnboundedSender<u64>,
}

impl JobFollower {
    pub(super) async fn follow(self, (job, access): OpenCommand) {
        let outcome = cancellable::outcome(job, async {
            self.control.over.cancelled().await;
            if self.control.kept() {
                std::future::pending().await
            }
        });
        let outcome = outcome.await;
        let hosts = access.map(OpenAccess::close).unwrap_or_default();
        self.services.jobs.remove(self.run);
        let mut status = confinement_hint::status(&outcome, self.confinement, self.network);
        if let Some(hosts) = hosts.words() {
            status = format!("{status}; {hosts}");
        }
        self.showing.finish(ToEditor::RunEnded {
            run: self.run,
            status,
            exit: outcome.exit,
            spill: outcome.spill.clone(),
            left: false,
        });
        if let Some(record) = self.record {
            let record = Record {
                time: Record::now(),
                confinement: outcome.level.to_owned(),
                outcome: Some(outcome.status()),
                hosts: (!hosts.is_empty()).then(|| hosts.json()),
                ..record
            };
            audit_task::write(&self.services, record, outcome.spill.clone());
        }
        self.tell
            .send_replace(Some(Arc::new(JobEnd { outcome, hosts })));
        // It fails if the chat has ended.
        let _ = self.ended.send(self.number);
    }
}
