//! The hosts that an agent may connect to, and the questions about them during a turn.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::network::HostAsker;
use crate::protocol::Asker;
use crate::services::Services;
use crate::tool::command::hosts::{PersonAsker, ReachingCommand};
use crate::tool::context::CallContext;
use co_exec::AGENT;
use co_policy::{HostPattern, HostRules};
use co_proxy::Target;

/// Asks the person about the hosts that an agent wants to connect to. It can ask only during a turn. Before the first turn and
/// between two turns, it refuses every host that no rule names.
///
/// An answer is valid until the end of the turn, unless the person chose a longer time.
pub struct TurnAsker {
    agent: String,
    services: Arc<Services>,
    workspace: PathBuf,
    state: Mutex<AskerState>,
}

#[derive(Default)]
struct AskerState {
    /// Asks the person in the current turn. It is `None` between two turns.
    turn: Option<Arc<PersonAsker>>,
    /// A token that is cancelled when a turn begins or ends. This withdraws open questions: they hold a sender to the chat, and
    /// would keep the turn running.
    period: CancellationToken,
    /// True if a host was refused without a question, because no turn ran.
    asked_nobody: bool,
    /// The hosts to which the agent may connect until it ends.
    granted: Vec<HostPattern>,
}

impl TurnAsker {
    /// Makes an asker for an agent. The asker also applies the host rules of `workspace`.
    pub fn new(agent: &str, services: Arc<Services>, workspace: PathBuf) -> Self {
        Self {
            agent: agent.to_owned(),
            services,
            workspace,
            state: Mutex::default(),
        }
    }

    /// Asks the person in this turn about hosts, until [`Self::end`] is called.
    pub fn begin(&self, context: &CallContext) {
        let (services, to_chat) = (Arc::clone(&context.services), Arc::clone(&context.to_chat));
        let person = PersonAsker::new(
            services,
            to_chat,
            &ReachingCommand {
                asker: Asker::Chat(context.chat),
                workspace: &context.workspace,
                command: &self.agent,
                cwd: &context.cwd,
                confinement: AGENT,
            },
        );
        self.set(Some(Arc::new(person)));
    }

    /// Allows the agent to connect to these hosts until it ends.
    pub(super) fn grant(&self, hosts: impl IntoIterator<Item = HostPattern>) {
        self.state.lock().granted.extend(hosts);
    }

    /// Stops asking, withdraws the open questions, and forgets the answers that were valid for the turn. Ends the connections
    /// that only these answers allow.
    pub fn end(&self) {
        self.set(None);
    }

    /// Returns true if a host was ever refused without a question, because no turn ran.
    pub(super) fn asked_nobody(&self) -> bool {
        self.state.lock().asked_nobody
    }

    fn set(&self, turn: Option<Arc<PersonAsker>>) {
        let mut state = self.state.lock();
        state.turn = turn;
        std::mem::take(&mut state.period).cancel();
    }
}

#[async_trait]
impl HostAsker for TurnAsker {
    async fn rules(&self) -> Result<HostRules, String> {
        let mut rules = self.services.host_rules(&self.workspace).await?;
        rules
            .allow
            .extend(self.state.lock().granted.iter().cloned());
        Ok(rules)
    }

    async fn ask(&self, targets: &[Target]) -> Result<(), String> {
        let (turn, period) = {
            let mut state = self.state.lock();
            state.asked_nobody |= state.turn.is_none();
            (state.turn.clone(), state.period.clone())
        };
        let turn = turn.ok_or("no turn of the agent runs, so nobody is asked")?;
        let asked = turn.ask_until(&period, targets).await;
        asked.map_err(|why| why.unwrap_or_else(|| "the turn of the agent has ended".to_owned()))
    }

    fn period(&self) -> CancellationToken {
        self.state.lock().period.clone()
    }
}
