//! The handle to a session, and the messages it takes.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::services::Services;
use crate::protocol::{Answer, RunOptions, Scope};
use co_llm::transcript::Context;

/// A message to a session.
pub enum Msg {
    Prompt(Prompt),
    /// The turn; once more with nothing typed since, the queue too.
    Cancel,
    Command {
        name: String,
        args: String,
    },
    /// A `!` line.
    Run {
        command: String,
        options: RunOptions,
    },
    Answer(Answered),
    /// The settings changed: this is the services of a chat that would begin now.
    Settings(Arc<Services>),
}

/// A prompt, as the person sent it.
#[derive(Debug, Clone)]
pub struct Prompt {
    pub text: String,
    pub context: Vec<Context>,
}

/// The answer to one question.
#[derive(Debug, Clone)]
pub struct Answered {
    pub id: u64,
    pub decision: Answer,
    pub reason: Option<String>,
    pub scope: Option<Scope>,
    pub command: Option<String>,
}

/// The directories a session works in.
#[derive(Debug, Clone)]
pub struct Place {
    pub workspace: PathBuf,
    pub cwd: PathBuf,
}

/// A handle to a session. Dropping it ends the session.
pub struct Handle {
    messages: mpsc::UnboundedSender<Msg>,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Handle {
    /// Starts a session.
    pub fn spawn(id: u64, services: Arc<Services>, place: Place, app: &CancellationToken) -> Self {
        // A person types these: the channel needs no bound.
        let (messages, inbox) = mpsc::unbounded_channel();
        let session = Session::new(id, services, place, app.clone());
        let cancel = session.cancel.clone();
        let task = tokio::spawn(session.run(inbox));
        Self {
            messages,
            cancel,
            task,
        }
    }

    /// Hands over a message. Returns false if the session has ended.
    pub fn send(&self, message: Msg) -> bool {
        self.messages.send(message).is_ok()
    }

    /// Cancels what it does and waits until all is on disk.
    pub async fn close(self) {
        self.cancel.cancel();
        drop(self.messages);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "a session ended badly");
        }
    }
}
