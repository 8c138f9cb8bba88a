//! The questions of commands that outlive a turn: jobs, and commands that the person typed. They are about hosts.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use crate::protocol::Question;
use crate::tool::context::{CallHalt, Questioner};
use crate::tool::permissions::{Allowance, AllowedHost, Reply};

/// The events that wait. A command sends few, and waits for room.
const MAX_WAITING: usize = 16;

/// The events that the commands of a chat send to it.
pub(super) struct CommandEvents {
    sender: Arc<CommandEventSender>,
    events: mpsc::Receiver<CommandEvent>,
}

/// An event of a command that outlives the turn.
pub(super) enum CommandEvent {
    Question(Box<Question>, oneshot::Sender<Reply>),
    Withdraw(u64),
    Allow(Allowance),
    AllowedHosts(oneshot::Sender<Vec<AllowedHost>>),
}

/// Sends the events of a command to its chat. If the chat has ended, each function fails.
struct CommandEventSender(mpsc::Sender<CommandEvent>);

impl CommandEvents {
    pub(super) fn new() -> Self {
        let (send, events) = mpsc::channel(MAX_WAITING);
        Self {
            sender: Arc::new(CommandEventSender(send)),
            events,
        }
    }

    /// Returns the questioner of a command of this chat.
    pub(super) fn questioner(&self) -> Arc<dyn Questioner> {
        Arc::<CommandEventSender>::clone(&self.sender)
    }

    /// Waits for the next event.
    pub(super) async fn next_event(&mut self) -> CommandEvent {
        match self.events.recv().await {
            Some(event) => event,
            // Never: this value itself holds a sender, so the channel stays open.
            None => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Questioner for CommandEventSender {
    async fn ask(&self, question: Question) -> Result<oneshot::Receiver<Reply>, CallHalt> {
        let (reply, answer) = oneshot::channel();
        self.send(CommandEvent::Question(Box::new(question), reply))
            .await?;
        Ok(answer)
    }

    async fn withdraw(&self, question: u64) -> Result<(), CallHalt> {
        self.send(CommandEvent::Withdraw(question)).await
    }

    async fn allow(&self, allowance: Allowance) -> Result<(), CallHalt> {
        self.send(CommandEvent::Allow(allowance)).await
    }

    async fn allowed_hosts(&self) -> Result<Vec<AllowedHost>, CallHalt> {
        let (reply, hosts) = oneshot::channel();
        self.send(CommandEvent::AllowedHosts(reply)).await?;
        hosts.await.map_err(|_| CallHalt::Cancelled)
    }
}

impl CommandEventSender {
    async fn send(&self, event: CommandEvent) -> Result<(), CallHalt> {
        self.0.send(event).await.map_err(|_| CallHalt::Cancelled)
    }
}
