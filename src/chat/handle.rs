//! The handle to a chat.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Chat;
use super::events::FrontEnd;
use super::message::{Msg, WorkDirs};
use crate::services::Services;
use crate::tool::ToolSet;

/// A handle to a chat. Dropping it ends the chat.
pub struct ChatHandle {
    messages: mpsc::UnboundedSender<Msg>,
    cancel: CancellationToken,
    tools: ToolSet,
    task: JoinHandle<()>,
}

impl ChatHandle {
    /// Starts a chat.
    pub fn spawn(
        id: u64,
        front_end: Arc<dyn FrontEnd>,
        services: Arc<Services>,
        dirs: WorkDirs,
        app: &CancellationToken,
    ) -> Self {
        // A person types these: the channel needs no bound.
        let (messages, inbox) = mpsc::unbounded_channel();
        let chat = Chat::new(id, front_end, services, dirs, app.clone());
        let (cancel, tools) = (chat.context.cancel.clone(), chat.tools.clone());
        let task = tokio::spawn(chat.run(inbox));
        Self {
            messages,
            cancel,
            tools,
            task,
        }
    }

    /// Sends a message. Returns false if the chat has ended.
    pub fn send(&self, message: Msg) -> bool {
        self.messages.send(message).is_ok()
    }

    /// Returns the tools of the chat, to which a program can add its own.
    pub fn tools(&self) -> &ToolSet {
        &self.tools
    }

    /// Cancels all work of the chat and waits until the transcript is on disk.
    pub async fn close(self) {
        self.cancel.cancel();
        drop(self.messages);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "a chat ended badly");
        }
    }
}
