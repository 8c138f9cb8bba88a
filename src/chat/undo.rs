//! `/undo` takes the chat's changes of files back, and `/redo` brings them back. `/review` and `/changes` take back parts of the
//! changes.
//!
//! A separate task compares the files, asks the person and changes the files, because Neovim may answer slowly about its buffers.

mod base;
mod changes;
mod count;
mod event;
mod plan;
mod review;
mod task;
mod texts;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(super) use self::changes::fill_list;
pub(super) use self::count::{Count, OpenChanges};
pub(super) use self::event::UndoEvent;
pub(super) use self::task::UndoTask;
pub(super) use self::texts::NO_CHANGES;
use self::texts::turns;
use super::chat_context::ChatContext;
use super::jobs::Jobs;
use super::questions::OpenQuestions;
use super::record::Recorder;
use super::rewind::RewindPoint;
use crate::checkpoint::ChangeCause;
use crate::protocol::PartAnswer;

/// The undo task of a chat, and the notes that it left.
#[derive(Default)]
pub(super) struct ChatUndo {
    open: Option<OpenUndo>,
    /// The notes that `/undo` and `/review` left during an agent's turn. The next prompt contains these notes.
    notes: Vec<String>,
}

/// An `/undo`, `/redo`, `/review` or review of `/changes` that has not ended.
struct OpenUndo {
    events: mpsc::Receiver<UndoEvent>,
    /// The prompt to which `/rewind` rewinds the chat after the files were taken back; none if the chat is not rewound.
    then: Option<RewindPoint>,
    /// Cancelled if the task's question is no longer needed.
    cancel: CancellationToken,
    question: Option<u64>,
    /// Cancelled when the task has ended.
    ended: CancellationToken,
    /// Sends the answers of an open `/review` to the task.
    answers: Option<mpsc::UnboundedSender<review::FileAnswers>>,
    /// The slash command: `/undo`, `/redo`, `/rewind` or `/review`.
    command: &'static str,
}

/// A request to take changes back, or to bring them back.
pub(super) struct UndoRequest {
    pub by: ChangeCause,
    /// The first turn to take back. All later turns are taken back too. If it is `None`, only the last turn that changed files is
    /// taken back.
    pub from: Option<usize>,
    /// The prompt to which the chat is rewound after the files were taken back; none if the chat is not rewound.
    pub then: Option<RewindPoint>,
}

impl UndoRequest {
    /// Returns a request for the last turn that changed files.
    pub(super) fn last(by: ChangeCause) -> Self {
        Self {
            by,
            from: None,
            then: None,
        }
    }
}

impl ChatUndo {
    /// Returns the id of the task's question, if the question is open.
    pub(super) fn question(&self) -> Option<u64> {
        self.open.as_ref().and_then(|it| it.question)
    }

    /// Returns the slash command whose question is open or will soon be asked; none if there is no such command.
    pub(super) fn unanswered(&self, questions: &OpenQuestions) -> Option<&'static str> {
        let undo = (self.open.as_ref()).filter(|undo| !undo.cancel.is_cancelled())?;
        let waits = undo.question.is_none_or(|it| questions.is_open(it));
        waits.then_some(undo.command)
    }

    /// Cancels a task whose question has not been answered.
    pub(super) fn cancel(&mut self, questions: &mut OpenQuestions) {
        if let Some(undo) = &mut self.open {
            undo.cancel.cancel();
            undo.then = None;
            if let Some(question) = undo.question.take() {
                questions.withdraw(question);
            }
        }
    }

    /// Cancels a task whose question has not been answered, and forgets the task, because the chat no longer has the transcript
    /// of the task.
    pub(super) fn forget(&mut self, questions: &mut OpenQuestions) {
        self.cancel(questions);
        self.open = None;
    }

    /// Returns a new task that takes changes back. The new task replaces an earlier one, which must be cancelled already. Returns
    /// `None` if the chat has no changes.
    pub(super) fn begin(
        &mut self,
        request: UndoRequest,
        context: &ChatContext,
        recorder: &Recorder,
        jobs: &Jobs,
    ) -> Option<UndoTask> {
        let transcript = recorder.id()?;
        let ended = CancellationToken::new();
        // The chat takes them one by one.
        let (events, receiver) = mpsc::channel(1);
        let cancel = context.cancel.child_token();
        let jobs = jobs.with_checkpoints();
        let task = UndoTask {
            services: Arc::clone(&context.services),
            chat: context.id,
            transcript,
            cwd: context.dirs.cwd.clone(),
            by: request.by,
            from: request.from,
            with_chat: request.then.is_some(),
            turns: turns(recorder.items()),
            jobs: jobs.into_iter().map(texts::running_job).collect(),
            events,
            cancel: cancel.clone(),
            after: self.open.as_ref().map(|it| it.ended.clone()),
            _ended: ended.clone().drop_guard(),
        };
        self.open = Some(OpenUndo {
            events: receiver,
            then: request.then,
            cancel,
            question: None,
            ended,
            answers: None,
            command: task.command(),
        });
        Some(task)
    }

    /// Starts the task as a `/review`. The review is about the changes that the person has neither accepted nor rejected yet. If
    /// `base` is set, it contains a workspace and the name of a branch. The review is then about the changes in the workspace
    /// since this branch.
    pub(super) fn review(&mut self, task: UndoTask, base: Option<(PathBuf, String)>) {
        let (answers, kept) = mpsc::unbounded_channel();
        if let Some(open) = &mut self.open {
            open.answers = Some(answers);
            open.command = "/review";
        }
        tokio::spawn(task.review_open(base, kept));
    }

    /// Saves the answers about a file of the review.
    pub(super) fn keep_answers(&self, id: u64, file: usize, answers: Vec<PartAnswer>) {
        let open = self.open.as_ref().filter(|it| it.question == Some(id));
        if let Some(kept) = open.and_then(|it| it.answers.as_ref()) {
            // It fails if the review has ended.
            let _ended = kept.send((file, answers));
        }
    }

    /// Waits for a message of the task. Returns `None` when the task has ended. Without a task, waits forever.
    pub(super) async fn next_event(&mut self) -> Option<UndoEvent> {
        match &mut self.open {
            Some(undo) => undo.events.recv().await,
            None => std::future::pending().await,
        }
    }

    /// Forgets a task that has ended.
    pub(super) fn ended(&mut self) {
        self.open = None;
    }

    /// Stores the id of the task's question. Returns false if the task has been cancelled, so that the question must not be
    /// asked.
    pub(super) fn may_ask(&mut self, question: u64) -> bool {
        let open = self.open.as_mut().filter(|it| !it.cancel.is_cancelled());
        open.map(|undo| undo.question = Some(question)).is_some()
    }

    /// Returns the prompt to which the chat must be rewound, because the files have now been taken back.
    pub(super) fn take_rewind(&mut self) -> Option<RewindPoint> {
        self.open.as_mut().and_then(|undo| undo.then.take())
    }

    /// Stores a note for the model. The next prompt after the running turn will contain the note.
    pub(super) fn add_note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Removes the kept notes and returns them.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}
