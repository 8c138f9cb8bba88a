//! The checkpoint of a job: the files before it, for its changes while no call waits for it.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::services::Services;
use crate::checkpoint::{By, CallChanges, Record, Window};
use crate::protocol::NoticeLevel;

/// An approved job with the files at its start. Dropping it forgets the changes.
pub(in crate::chat) struct JobCheckpoint {
    pub(in crate::chat) services: Arc<Services>,
    pub(in crate::chat) transcript_id: String,
    pub(in crate::chat) workspace: PathBuf,
    pub(in crate::chat) by: By,
    pub(in crate::chat) window: Window,
}

impl JobCheckpoint {
    /// Keeps the changes of the job as those of a turn.
    pub(in crate::chat) async fn end(self, turn: usize) {
        let Self {
            services,
            transcript_id,
            workspace,
            by,
            window,
        } = self;
        let ended = tokio::task::spawn_blocking(move || window.end()).await;
        let found = ended.unwrap_or_default();
        if found == CallChanges::default() {
            return;
        }
        let record = Record {
            planned: false,
            turn,
            by,
            workspace,
            changes: found.changes,
            unclear: found.unclear,
            unknown: found.unknown,
        };
        append_record(&services, transcript_id, record).await;
    }
}

/// Adds a record to those of a chat. A failure is shown.
pub(in crate::chat) async fn append_record(services: &Services, chat: String, record: Record) {
    let checkpoints = Arc::clone(&services.checkpoints);
    let append = tokio::task::spawn_blocking(move || checkpoints.append(&chat, &record));
    if let Ok(Err(error)) = append.await {
        services.notice(
            NoticeLevel::Warn,
            format!(
                "the last changes cannot be taken back, because they could not be kept: {error}"
            ),
        );
    }
}
