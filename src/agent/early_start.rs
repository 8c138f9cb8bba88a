//! Starts an agent as soon as the person has chosen it, while they type the first prompt.

use std::future;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::process::{AgentProcess, AgentStart, OpenedAgent};

/// The process of a chat's agent between two turns.
#[derive(Default)]
pub enum IdleAgent {
    #[default]
    None,
    /// The process starts before the first prompt.
    Starting(EarlyStart),
    Ready(Box<AgentProcess>),
}

/// A start of an agent that asks the person nothing. Dropping it ends the start.
pub struct EarlyStart {
    cancel: DropGuard,
    task: JoinHandle<Option<Box<AgentProcess>>>,
}

impl IdleAgent {
    /// Starts an agent in the background. The result has no process if the start fails, or if the person must be asked first:
    /// about hosts, about the whole network, or about a login. The first turn then starts the agent again, asks, and tells what
    /// fails.
    pub fn start(start: AgentStart, cancel: CancellationToken) -> Self {
        if start.lacks_own_network() {
            return Self::None;
        }
        let task = tokio::spawn(open(start, cancel.clone()));
        let cancel = cancel.drop_guard();
        Self::Starting(EarlyStart { cancel, task })
    }

    /// Returns the process, if it has started.
    pub fn ready(&mut self) -> Option<&mut AgentProcess> {
        match self {
            Self::Ready(process) => Some(process),
            Self::None | Self::Starting(_) => None,
        }
    }

    /// Waits until a start in the background has ended, and keeps its process. Never completes if there is no such start. It can
    /// be dropped at any time.
    pub async fn started(&mut self) {
        let Self::Starting(start) = self else {
            return future::pending().await;
        };
        let process = (&mut start.task).await;
        *self = process.ok().flatten().into();
    }

    /// Returns the process, after its start if it starts. If `cancel` is cancelled meanwhile, the start ends first.
    pub async fn process(self, cancel: &CancellationToken) -> Option<AgentProcess> {
        let process = match self {
            Self::None => None,
            Self::Ready(process) => Some(process),
            Self::Starting(EarlyStart {
                cancel: guard,
                mut task,
            }) => {
                let started = cancel.run_until_cancelled(&mut task).await;
                let started = match started {
                    Some(started) => started,
                    None => {
                        drop(guard);
                        task.await
                    }
                };
                started.ok().flatten()
            }
        };
        process.map(|it| *it)
    }
}

impl From<Option<Box<AgentProcess>>> for IdleAgent {
    fn from(process: Option<Box<AgentProcess>>) -> Self {
        process.map_or(Self::None, Self::Ready)
    }
}

/// Starts an agent and opens its session.
async fn open(start: AgentStart, cancel: CancellationToken) -> Option<Box<AgentProcess>> {
    let opened = match start.start(&cancel).await {
        Ok(agent) => agent.open(&cancel).await,
        Err(fault) => Err(fault),
    };
    match opened {
        Ok(OpenedAgent::Ready(process)) => Some(process),
        Ok(OpenedAgent::NeedsLogin(agent, _)) => {
            agent.last_words().await;
            None
        }
        Err(fault) => {
            tracing::info!(%fault, "an agent does not start before the first prompt");
            None
        }
    }
}
