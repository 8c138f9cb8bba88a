//! The open questions about runs: the questions about the changes of the person's trials, and about the hosts that a command
//! wants to contact.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::chat::questions::OpenQuestions;
use crate::editor::Editor;
use crate::protocol::{Question, QuestionAnswer};
use crate::tool::context::{CallHalt, Questioner};
use crate::tool::permissions::{Allowance, AllowedHost, Reply};

/// The open questions about runs.
#[derive(Clone)]
pub(super) struct RunQuestions(Arc<Mutex<OpenQuestions>>);

impl RunQuestions {
    pub(super) fn new(editor: Editor) -> Self {
        Self(Arc::new(Mutex::new(OpenQuestions::new(editor))))
    }

    /// Handles the person's answer. Does nothing if the answer belongs to a question of a chat.
    pub(super) fn answer(&self, answered: QuestionAnswer) {
        self.open().answer(answered.id, answered.into());
    }

    /// Sends the next part of a text under review. Does nothing if the question does not belong to a run.
    pub(super) fn show_part(&self, id: u64, file: usize, from: usize) {
        self.open().show_part(id, file, from);
    }

    pub(super) fn open(&self) -> MutexGuard<'_, OpenQuestions> {
        self.0.lock()
    }
}

#[async_trait]
impl Questioner for RunQuestions {
    async fn ask(&self, question: Question) -> Result<oneshot::Receiver<Reply>, CallHalt> {
        let (reply, answer) = oneshot::channel();
        self.open().put(question, reply);
        Ok(answer)
    }

    async fn withdraw(&self, question: u64) -> Result<(), CallHalt> {
        self.open().withdraw(question);
        Ok(())
    }

    async fn allowed_hosts(&self) -> Result<Vec<AllowedHost>, CallHalt> {
        Ok(Vec::new())
    }

    /// Does nothing. Permissions belong to a chat, and a run has no chat.
    async fn allow(&self, _allowance: Allowance) -> Result<(), CallHalt> {
        Ok(())
    }
}
