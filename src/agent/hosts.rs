//! The hosts that an agent reaches, and the questions about them in the turn that runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::network::HostAsker;
use crate::protocol::Asker;
use crate::services::Services;
use crate::tool::command::hosts::{PersonAsker, ReachingCommand};
use crate::tool::context::CallContext;
use co_exec::AGENT;
use co_policy::{HostPattern, HostRules};
use co_proxy::Target;

/// Asks about the hosts of an agent in the turn that runs. Between two turns, every host that no rule names is refused. An answer
/// holds until the end of its turn, unless the person gave it for longer.
pub struct TurnAsker {
    agent: String,
    services: Arc<Services>,
    workspace: PathBuf,
    state: Mutex<AskerState>,
}

#[derive(Default)]
struct AskerState {
    /// The turn that runs.
    turn: Option<Arc<AskingTurn>>,
    /// The number of beginnings and ends of turns so far.
    period: u64,
    /// The hosts that the agent may reach until it ends.
    granted: Vec<HostPattern>,
}

/// The turn in which the questions come.
struct AskingTurn {
    person: PersonAsker,
    /// Cancelled at the end of the turn. An open question would keep the turn running, because it holds the turn's way to the chat.
    ended: CancellationToken,
}

impl TurnAsker {
    /// Makes the asker of an agent. It applies the rules about hosts of `workspace`.
    pub fn new(agent: &str, services: Arc<Services>, workspace: PathBuf) -> Self {
        Self {
            agent: agent.to_owned(),
            services,
            workspace,
            state: Mutex::default(),
        }
    }

    /// Asks in a turn from now on.
    pub fn begin(&self, context: &CallContext) {
        let (services, host) = (Arc::clone(&context.services), Arc::clone(&context.host));
        let person = PersonAsker::new(
            services,
            host,
            &ReachingCommand {
                asker: Asker::Chat(context.chat),
                workspace: &context.workspace,
                command: &self.agent,
                cwd: &context.cwd,
                confinement: AGENT,
            },
        );
        self.set(Some(AskingTurn {
            person,
            ended: CancellationToken::new(),
        }));
    }

    /// Lets the agent reach hosts until it ends.
    pub(super) fn grant(&self, hosts: impl IntoIterator<Item = HostPattern>) {
        self.state().granted.extend(hosts);
    }

    /// Asks no more, withdraws the open questions, and forgets the answers of the turn.
    pub fn end(&self) {
        self.set(None);
    }

    fn set(&self, turn: Option<AskingTurn>) {
        let mut state = self.state();
        if let Some(earlier) = std::mem::replace(&mut state.turn, turn.map(Arc::new)) {
            earlier.ended.cancel();
        }
        state.period += 1;
    }

    fn state(&self) -> MutexGuard<'_, AskerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl HostAsker for TurnAsker {
    async fn rules(&self) -> Result<HostRules, String> {
        let mut rules = self.services.host_rules(&self.workspace).await?;
        rules.allow.extend(self.state().granted.iter().cloned());
        Ok(rules)
    }

    async fn ask(&self, targets: &[Target]) -> Result<(), String> {
        let turn = self.state().turn.clone();
        let turn = turn.ok_or("no turn of the agent runs, so nobody is asked")?;
        let asked = turn
            .ended
            .run_until_cancelled(turn.person.ask(targets))
            .await;
        asked.unwrap_or_else(|| Err("the turn of the agent has ended".to_owned()))
    }

    fn period(&self) -> u64 {
        self.state().period
    }
}
