//! The questions of commands that outlive a turn: jobs, and commands that the person typed. They are about hosts.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use crate::protocol::Question;
use crate::tool::context::{Halt, QuestionHost};
use crate::tool::permissions::{Allowance, AllowedHost, Reply};

/// The events that wait. A command sends few, and waits for room.
const MAX_WAITING: usize = 16;

/// The channel from the commands of a chat to the chat.
pub(super) struct CommandQuestions {
    host: Arc<CommandHost>,
    events: mpsc::Receiver<CommandEvent>,
}

/// An event of a command that outlives the turn.
pub(super) enum CommandEvent {
    Question(Box<Question>, oneshot::Sender<Reply>),
    Withdraw(u64),
    Allow(Allowance),
    AllowedHosts(oneshot::Sender<Vec<AllowedHost>>),
}

/// The way from a command to its chat. If the chat has ended, each function fails.
struct CommandHost(mpsc::Sender<CommandEvent>);

impl CommandQuestions {
    pub(super) fn new() -> Self {
        let (send, events) = mpsc::channel(MAX_WAITING);
        Self {
            host: Arc::new(CommandHost(send)),
            events,
        }
    }

    /// Returns the way to the chat for a command.
    pub(super) fn host(&self) -> Arc<dyn QuestionHost> {
        Arc::<CommandHost>::clone(&self.host)
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
impl QuestionHost for CommandHost {
    async fn ask(&self, question: Question) -> Result<oneshot::Receiver<Reply>, Halt> {
        let (reply, answer) = oneshot::channel();
        self.send(CommandEvent::Question(Box::new(question), reply))
            .await?;
        Ok(answer)
    }

    async fn withdraw(&self, question: u64) -> Result<(), Halt> {
        self.send(CommandEvent::Withdraw(question)).await
    }

    async fn allow(&self, allowance: Allowance) -> Result<(), Halt> {
        self.send(CommandEvent::Allow(allowance)).await
    }

    async fn allowed_hosts(&self) -> Result<Vec<AllowedHost>, Halt> {
        let (reply, hosts) = oneshot::channel();
        self.send(CommandEvent::AllowedHosts(reply)).await?;
        hosts.await.map_err(|_| Halt::Cancelled)
    }
}

impl CommandHost {
    async fn send(&self, event: CommandEvent) -> Result<(), Halt> {
        self.0.send(event).await.map_err(|_| Halt::Cancelled)
    }
}
