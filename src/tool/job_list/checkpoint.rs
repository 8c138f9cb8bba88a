//! The checkpoint of a job: the state of the files at its start. Changes during the job count as changes of the job, unless a
//! call ran at the same time. Changes during a call count as changes of the call.

use std::sync::Arc;

use crate::blocking::blocking;
use crate::checkpoint::{CallChanges, ChangeCause, Head, HeadMove, OpenCheckpoint, Record};
use crate::protocol::NoticeLevel;
use crate::services::Services;
use crate::workspace::judge::Judge;

/// The checkpoint of an approved job. If it is dropped, the changes of the job are not recorded.
pub struct JobCheckpoint {
    pub(crate) services: Arc<Services>,
    pub(crate) transcript_id: String,
    pub(crate) judge: Arc<Judge>,
    pub(crate) by: ChangeCause,
    pub(crate) open: OpenCheckpoint,
    /// The position of git's HEAD at the start of the job.
    pub(crate) head: Option<Head>,
}

impl JobCheckpoint {
    /// Records the changes of the job as changes of a turn.
    pub(crate) async fn end(self, turn: usize) {
        let Self {
            services,
            transcript_id,
            judge,
            by,
            open,
            head,
        } = self;
        let ended = tokio::task::spawn_blocking(move || open.end());
        let now = Head::read(&services.executor, &judge);
        let (ended, now) = tokio::join!(ended, now);
        let found = CallChanges {
            head: HeadMove::between(head, now),
            ..ended.unwrap_or_default()
        };
        if found == CallChanges::default() {
            return;
        }
        let record = found.in_record(Record::new(turn, by, judge.root()));
        append_record(&services, transcript_id, record).await;
    }
}

/// Appends a record to the log of a chat. Notifies the person if that fails.
pub(crate) async fn append_record(services: &Services, chat: String, record: Record) {
    if let Err(error) = try_append(services, chat, record).await {
        services.notice(
            NoticeLevel::Warn,
            format!(
                "the last changes cannot be taken back, because they could not be kept: {error}"
            ),
        );
    }
}

/// Appends a record to the log of a chat.
///
/// # Errors
/// The record cannot be written.
pub(crate) async fn try_append(
    services: &Services,
    chat: String,
    record: Record,
) -> Result<(), String> {
    let checkpoints = Arc::clone(&services.checkpoints);
    blocking(move || checkpoints.append(&chat, &record)).await
}
