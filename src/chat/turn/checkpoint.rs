//! The checkpoints of a turn: the files before and after each call that may change them.

use std::sync::Arc;

use super::Turn;
use super::call::ParsedCall;
use super::queue::QueuedCall;
use crate::checkpoint::{By, CallChanges, EditedFiles, Record, Window};
use crate::protocol::Level;
use crate::tool::edits::{Applied, Proposal};
use co_llm::transcript::Decision;

/// A command or another call with the files before it.
pub(super) struct CallCheckpoint {
    by: By,
    /// The reason why there is none in the error.
    window: Result<Window, String>,
}

impl Turn {
    /// Takes a checkpoint before a command, or another call during which a job may change files.
    pub(super) async fn checkpoint(
        &self,
        next: &QueuedCall,
        decision: &Decision,
    ) -> Option<CallCheckpoint> {
        let approved = decision.lets_run() && *decision != Decision::Unasked;
        let (what, decision) = match &next.known {
            Ok(ParsedCall::Command(it)) if approved && it.no_room.is_none() => {
                (it.request.text(), decision.clone())
            }
            Ok(ParsedCall::JobInput(it)) if approved => (it.request.line(), decision.clone()),
            Ok(ParsedCall::Job(request)) => (request.line(), Decision::Unasked),
            _ => return None,
        };
        let is_read = decision == Decision::Unasked;
        let window = match self.services.checkpoints.missing(self.judge.root()) {
            Some(why) => Err(why),
            None => self.begin_window().await,
        };
        let by = By::Call {
            what,
            decision,
            command: true,
        };
        (window.is_ok() || !is_read).then_some(CallCheckpoint { by, window })
    }

    async fn begin_window(&self) -> Result<Window, String> {
        let (checkpoints, judge) = (Arc::clone(&self.services.checkpoints), self.judge.clone());
        let begin = move || {
            let workspace = checkpoints.workspace(&judge);
            workspace.map_err(|error| error.to_string())?.begin()
        };
        let begun = tokio::task::spawn_blocking(begin).await;
        begun.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Keeps the changes since a checkpoint. A cancelled turn does so too.
    pub(super) async fn keep_changes(&self, checkpoint: CallCheckpoint) {
        let CallCheckpoint { by, window } = checkpoint;
        let end = move || match window {
            Ok(window) => window.end(),
            Err(why) => CallChanges::unknown(why),
        };
        let ended = tokio::task::spawn_blocking(end).await;
        self.append_changes(by, ended.unwrap_or_default()).await;
    }

    /// Returns the files of an edit before it.
    pub(super) async fn before_edit(&self, files: Vec<std::path::PathBuf>) -> Option<EditedFiles> {
        let (checkpoints, judge) = (Arc::clone(&self.services.checkpoints), self.judge.clone());
        let read = move || checkpoints.workspace(&judge).ok()?.before_edit(&files).ok();
        tokio::task::spawn_blocking(read).await.ok().flatten()
    }

    /// Keeps the changes of an edit that is about to be made. They can be taken back also if co is killed meanwhile.
    pub(super) async fn plan_edit(
        &self,
        (what, decision): (String, Decision),
        before: Option<&EditedFiles>,
        proposal: &Proposal,
    ) {
        let (checkpoints, judge) = (Arc::clone(&self.services.checkpoints), self.judge.clone());
        let (Some(before), Some(old), Some(new)) =
            (before.cloned(), proposal.old_text(), proposal.new_text())
        else {
            return;
        };
        let (old, new) = (old.to_owned(), new.to_owned());
        let find = move || {
            let workspace = checkpoints.workspace(&judge).ok()?;
            Some(workspace.after_edit_of_buffer(before, &old, &new))
        };
        let found = tokio::task::spawn_blocking(find).await.ok().flatten();
        let by = By::Call {
            what,
            decision,
            command: false,
        };
        self.append_record(by, found.unwrap_or_default(), true)
            .await;
    }

    /// Notes that an edit that was planned was not made.
    pub(super) async fn drop_edit(&self, what: String, decision: Decision) {
        let by = By::Call {
            what,
            decision,
            command: false,
        };
        self.append_record(by, CallChanges::default(), false).await;
    }

    /// Keeps the changes of an edit that was made.
    pub(super) async fn keep_edit(
        &self,
        (what, decision): (String, Decision),
        before: Option<EditedFiles>,
        applied: &Applied,
    ) {
        let (checkpoints, judge) = (Arc::clone(&self.services.checkpoints), self.judge.clone());
        let proposal = &applied.proposal;
        let texts = match &applied.unsaved {
            // The file on the disk does not have the change.
            Some(_) => proposal.old_text().zip(proposal.new_text()),
            None => None,
        };
        let texts = texts.map(|(old, new)| (old.to_owned(), new.to_owned()));
        let find = move || {
            let workspace = checkpoints.workspace(&judge).ok()?;
            let before = before?;
            Some(match texts {
                Some((old, new)) => workspace.after_edit_of_buffer(before, &old, &new),
                None => workspace.after_edit(before),
            })
        };
        let found = tokio::task::spawn_blocking(find).await.ok().flatten();
        let unknown = || CallChanges::unknown("no copy of its file could be kept".to_owned());
        let by = By::Call {
            what,
            decision,
            command: false,
        };
        self.append_record(by, found.unwrap_or_else(unknown), false)
            .await;
    }

    async fn append_changes(&self, by: By, found: CallChanges) {
        if found != CallChanges::default() {
            self.append_record(by, found, false).await;
        }
    }

    async fn append_record(&self, by: By, found: CallChanges, planned: bool) {
        let record = Record {
            planned,
            turn: self.number,
            by,
            workspace: self.judge.root().to_owned(),
            changes: found.changes,
            unclear: found.unclear,
            unknown: found.unknown,
        };
        let (checkpoints, chat) = (
            Arc::clone(&self.services.checkpoints),
            self.transcript_id.clone(),
        );
        let append = tokio::task::spawn_blocking(move || checkpoints.append(&chat, &record));
        if let Ok(Err(error)) = append.await {
            self.services.notice(
                Level::Warn,
                format!(
                    "the last changes cannot be taken back, because they could not be kept: {error}"
                ),
            );
        }
    }
}
