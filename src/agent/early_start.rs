//! Starts an agent as soon as the person has chosen it, while they type the first prompt.

use std::future;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::hosts::TurnAsker;
use super::process::{AgentProcess, AgentStart, IdleEvent, OpenedAgent, StartFault};
use crate::config::AgentConfinement;
use crate::protocol::NoticeLevel;
use co_text::{one_line, printable};

/// The process of a chat's agent while no turn has it.
#[derive(Default)]
pub enum IdleAgent {
    #[default]
    None,
    /// The process is starting.
    Starting(EarlyStart),
    Ready(Box<AgentProcess>),
}

/// A start of an agent before the first prompt. Dropping it ends the start.
pub struct EarlyStart {
    guard: DropGuard,
    asker: Arc<TurnAsker>,
    task: JoinHandle<Option<Box<AgentProcess>>>,
}

impl IdleAgent {
    /// Starts a confined agent in the background. The start ends without a process if it fails, or if the person must be asked
    /// first: about hosts, about the whole network, or about a login. The first turn then starts the agent again, asks, and tells
    /// what fails. An agent without confinement does not start before the first prompt, because the person may still choose
    /// another.
    pub fn start(start: AgentStart, cancel: CancellationToken) -> Self {
        if start.spec.confinement == AgentConfinement::None || start.lacks_own_network() {
            return Self::None;
        }
        let asker = Arc::clone(&start.asker);
        let task = tokio::spawn(open(start, cancel.clone()));
        let guard = cancel.drop_guard();
        Self::Starting(EarlyStart { guard, asker, task })
    }

    /// Returns the process, if it has started.
    pub fn ready(&mut self) -> Option<&mut AgentProcess> {
        match self {
            Self::Ready(process) => Some(process),
            Self::None | Self::Starting(_) => None,
        }
    }

    /// Waits for an event of an agent before its first turn: the end of its start, or a message. Never completes if there is no such
    /// agent. This method is cancel safe.
    pub async fn next_event(&mut self) -> IdleEvent {
        let event = match self {
            Self::Starting(start) => {
                let process = (&mut start.task).await;
                *self = process.ok().flatten().into();
                return IdleEvent::Started;
            }
            Self::Ready(process) if process.is_new => process.hear_before_turn().await,
            Self::None | Self::Ready(_) => return future::pending().await,
        };
        if let IdleEvent::Ended = event {
            *self = Self::None;
        }
        event
    }

    /// Waits for a running start, and returns its process. If `cancel` is cancelled meanwhile, the start ends first.
    pub async fn into_process(self, cancel: &CancellationToken) -> Option<AgentProcess> {
        let process = match self {
            Self::None => None,
            Self::Ready(process) => Some(process),
            Self::Starting(start) => start.process(cancel).await,
        };
        process.map(|it| *it)
    }
}

impl EarlyStart {
    /// Returns the asker of the agent, which asks nobody before its turn begins.
    pub fn asker(&self) -> &Arc<TurnAsker> {
        &self.asker
    }

    async fn process(mut self, cancel: &CancellationToken) -> Option<Box<AgentProcess>> {
        let started = cancel.run_until_cancelled(&mut self.task).await;
        let started = match started {
            Some(started) => started,
            None => {
                // The start may wait for an answer about a host.
                self.asker.end();
                drop(self.guard);
                self.task.await
            }
        };
        started.ok().flatten()
    }
}

impl From<Option<Box<AgentProcess>>> for IdleAgent {
    fn from(process: Option<Box<AgentProcess>>) -> Self {
        process.map_or(Self::None, Self::Ready)
    }
}

/// Starts an agent and opens its session.
async fn open(start: AgentStart, cancel: CancellationToken) -> Option<Box<AgentProcess>> {
    let (name, services) = (start.spec.name.clone(), Arc::clone(&start.services));
    let opened = match start.start(&cancel).await {
        Ok(agent) => agent.open(&cancel).await,
        Err(fault) => Err(fault),
    };
    match opened {
        Ok(OpenedAgent::Ready(process)) if process.asker.asked_nobody() => {
            // It did without a host that the person may want to allow.
            process.last_words().await;
            None
        }
        Ok(OpenedAgent::Ready(process)) => Some(process),
        Ok(OpenedAgent::NeedsLogin(agent, _)) => {
            agent.last_words().await;
            None
        }
        // The first turn asks.
        Err(StartFault::Hosts(_) | StartFault::Cancelled) => None,
        Err(fault) => {
            let text = format!(
                "{name} does not start: {}; the first prompt tries again, and /agent chooses another",
                one_line(&printable(&fault.to_string()))
            );
            services.notice(NoticeLevel::Warn, text);
            None
        }
    }
}
