//! Takes the checkpoints of calls: the state of the files before and after each call that may change them.

use std::sync::Arc;

use super::context::CallContext;
use super::job_list::checkpoint::{JobCheckpoint, append_record, try_append};
use crate::blocking::blocking;
use crate::checkpoint::{
    CallChanges, ChangeCause, CurrentFile, EditedFiles, Head, HeadMove, OpenCheckpoint, Record,
    Workspace,
};
use crate::workspace::edits::{AppliedChange, Proposal};
use co_llm::transcript::Decision;

/// The state of the files before a call.
pub struct CallCheckpoint {
    by: ChangeCause,
    /// The checkpoint, or the reason why there is none.
    open: Result<OpenCheckpoint, String>,
    /// The position of git's HEAD, if the call is an approved command.
    head: Option<Head>,
}

/// The state of the files before an edit.
pub(super) struct EditCheckpoint {
    by: ChangeCause,
    before: Option<EditedFiles>,
}

impl CallContext {
    /// Takes a checkpoint before a call during which files may change. `what` describes the call. Calls that run unasked need a
    /// checkpoint too: they change nothing themselves, but a job may change files while they run.
    pub async fn checkpoint(&self, what: String, decision: Decision) -> Option<CallCheckpoint> {
        if self.one_checkpoint {
            return None;
        }
        let is_read = decision == Decision::Unasked;
        let open = async {
            match self.services.checkpoints.missing(self.judge.root()) {
                Some(why) => Err(why),
                None => self.begin_checkpoint(Workspace::begin).await,
            }
        };
        let head = async {
            match is_read {
                true => None,
                false => self.head().await,
            }
        };
        let (open, head) = tokio::join!(open, head);
        let by = ChangeCause::command(what, decision);
        (open.is_ok() || !is_read).then_some(CallCheckpoint { by, open, head })
    }

    /// Takes a checkpoint before a turn of an agent. The changes of the turn can be recorded while it runs.
    pub async fn turn_checkpoint(&self, agent: String) -> CallCheckpoint {
        let by = ChangeCause::command(agent, Decision::Agent);
        let (chat, record) = (
            self.transcript_id.clone(),
            self.record_of(by.clone(), CallChanges::default(), false),
        );
        let begin = move |workspace: &Arc<Workspace>| workspace.begin_turn(chat, record);
        let (open, head) = tokio::join!(self.begin_checkpoint(begin), self.head());
        CallCheckpoint { by, open, head }
    }

    /// Records the changes that the turn of the agent has made so far.
    pub async fn record_turn(&self) {
        let (checkpoints, chat) = (
            Arc::clone(&self.services.checkpoints),
            self.transcript_id.clone(),
        );
        let recorded = blocking(move || checkpoints.record_open(&chat)).await;
        if let Err(error) = recorded {
            // They are recorded at the end of the turn, which says so if that fails too.
            tracing::warn!(%error, "the changes of an agent are not recorded yet");
        }
        self.services.checkpoints.tell_changed();
    }

    /// Waits until the first checkpoint of the workspace has been taken. Returns the reason if co cannot take it. Call this
    /// method before a turn of an agent begins, because all changes of the turn belong to one checkpoint.
    pub async fn first_checkpoint(&self) -> Option<String> {
        let (checkpoints, judge) = (Arc::clone(&self.services.checkpoints), self.judge.clone());
        let root = self.judge.root().to_owned();
        let prepare = move || {
            if let Ok(workspace) = checkpoints.workspace(&judge) {
                workspace.prepare();
            }
            checkpoints.missing(&root)
        };
        let prepared = tokio::task::spawn_blocking(prepare).await;
        prepared.unwrap_or_else(|error| Some(error.to_string()))
    }

    /// Returns the current state of the files that somebody has changed since this chat changed them.
    pub async fn changed_since(&self) -> Vec<CurrentFile> {
        let (checkpoints, chat) = (
            Arc::clone(&self.services.checkpoints),
            self.transcript_id.clone(),
        );
        let changed = self.with_workspace(move |workspace| {
            let changed = workspace.changed_since(&checkpoints.records(&chat));
            let told = |why: &String| tracing::warn!(why, "files cannot be compared");
            changed.inspect_err(told).ok()
        });
        changed.await.unwrap_or_default()
    }

    /// Takes a checkpoint at the start of an approved job. The checkpoint records the changes that the job makes while no call
    /// runs.
    pub(super) async fn job_checkpoint(
        &self,
        job: u64,
        command: &str,
        decision: &Decision,
    ) -> Option<JobCheckpoint> {
        if *decision == Decision::Unasked {
            return None;
        }
        let (open, head) = tokio::join!(self.begin_checkpoint(Workspace::begin_job), self.head());
        Some(JobCheckpoint {
            open: open.ok()?,
            head,
            judge: Arc::clone(&self.judge),
            services: Arc::clone(&self.services),
            transcript_id: self.transcript_id.clone(),
            by: ChangeCause::command(format!("job {job}: {command}"), decision.clone()),
        })
    }

    /// Returns the position of git's HEAD in the workspace; none if git fails.
    async fn head(&self) -> Option<Head> {
        Head::read(&self.services.executor, &self.judge).await
    }

    /// Returns the move of git's HEAD since the start of a command.
    async fn moved_since(&self, before: Option<Head>) -> Option<HeadMove> {
        HeadMove::between(Some(before?), self.head().await)
    }

    async fn begin_checkpoint(
        &self,
        begin: impl FnOnce(&Arc<Workspace>) -> Result<OpenCheckpoint, String> + Send + 'static,
    ) -> Result<OpenCheckpoint, String> {
        let (checkpoints, judge) = (Arc::clone(&self.services.checkpoints), self.judge.clone());
        let begun = tokio::task::spawn_blocking(move || {
            let workspace = checkpoints.workspace(&judge);
            begin(&workspace.map_err(|error| error.to_string())?)
        });
        let begun = begun.await;
        begun.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Records the changes since a checkpoint. Does so even if the turn is cancelled.
    pub async fn keep_changes(&self, checkpoint: CallCheckpoint) {
        let CallCheckpoint { by, open, head } = checkpoint;
        let end = move || match open {
            Ok(open) => open.end(),
            Err(why) => CallChanges::unknown(why),
        };
        let ended = tokio::task::spawn_blocking(end);
        let (ended, head) = tokio::join!(ended, self.moved_since(head));
        let found = CallChanges {
            head,
            ..ended.unwrap_or_default()
        };
        self.append_changes(by, found).await;
    }

    /// Records the files and the planned changes before an edit. `/undo` can then take the changes back, even if co is killed
    /// during the edit.
    pub(super) async fn begin_edit(
        &self,
        what: String,
        decision: Decision,
        proposal: &Proposal,
    ) -> EditCheckpoint {
        let by = ChangeCause::change(what, decision);
        let files = proposal.files();
        let before = self.with_workspace(move |workspace| workspace.before_edit(&files).ok());
        let before = before.await;
        let planned = self.planned_changes(before.clone(), proposal).await;
        if let Some(planned) = planned {
            self.append_record(by.clone(), planned, true).await;
        }
        EditCheckpoint { by, before }
    }

    /// Records the changes of an edit. `applied` is `None` if the edit was not made.
    pub(super) async fn end_edit(
        &self,
        checkpoint: EditCheckpoint,
        applied: Option<&AppliedChange>,
    ) {
        let EditCheckpoint { by, before } = checkpoint;
        let found = match applied {
            None => Some(CallChanges::default()),
            // The file on the disk does not have the change.
            Some(applied) if applied.unsaved.is_some() => {
                self.planned_changes(before, &applied.proposal).await
            }
            Some(_) => {
                self.with_workspace(move |workspace| Some(workspace.after_edit(before?)))
                    .await
            }
        };
        let unknown = || CallChanges::unknown("no copy of its file could be kept".to_owned());
        self.append_record(by, found.unwrap_or_else(unknown), false)
            .await;
    }

    /// Returns the changes of files that a proposal would make.
    async fn planned_changes(
        &self,
        before: Option<EditedFiles>,
        proposal: &Proposal,
    ) -> Option<CallChanges> {
        let (before, edit) = (before?, proposal.planned().ok()?);
        self.with_workspace(move |workspace| Some(workspace.planned(before, &edit)))
            .await
    }

    async fn with_workspace<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Workspace) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let (checkpoints, judge) = (Arc::clone(&self.services.checkpoints), self.judge.clone());
        let work = move || work(&*checkpoints.workspace(&judge).ok()?);
        tokio::task::spawn_blocking(work).await.ok().flatten()
    }

    async fn append_changes(&self, by: ChangeCause, found: CallChanges) {
        if found != CallChanges::default() {
            self.append_record(by, found, false).await;
        }
    }

    pub(super) async fn append_record(&self, by: ChangeCause, found: CallChanges, planned: bool) {
        let record = self.record_of(by, found, planned);
        append_record(&self.services, self.transcript_id.clone(), record).await;
    }

    /// Appends a record to the log of the chat. Unlike [`Self::append_record`], does not notify the person of a failure.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(super) async fn try_append(
        &self,
        by: ChangeCause,
        found: CallChanges,
        planned: bool,
    ) -> Result<(), String> {
        let record = self.record_of(by, found, planned);
        try_append(&self.services, self.transcript_id.clone(), record).await
    }

    fn record_of(&self, by: ChangeCause, found: CallChanges, planned: bool) -> Record {
        found.in_record(Record {
            planned,
            ..Record::new(self.turn, by, self.judge.root())
        })
    }
}
