//! The hosts that an agent reaches, and the questions about them in the turn that runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::network::HostAsker;
use crate::protocol::Asker;
use crate::tool::command::hosts::{PersonAsker, ReachingCommand};
use crate::tool::context::CallContext;
use co_exec::Confinement;
use co_proxy::Target;

/// Asks about the hosts of an agent in the turn that runs. Between two turns, every host that no rule names is refused.
pub struct TurnAsker {
    agent: String,
    turn: Mutex<Option<Arc<PersonAsker>>>,
}

impl TurnAsker {
    pub fn new(agent: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            turn: Mutex::default(),
        }
    }

    /// Asks in a turn from now on.
    pub fn begin(&self, context: &CallContext) {
        let (services, host) = (Arc::clone(&context.services), Arc::clone(&context.host));
        let asker = PersonAsker::new(
            services,
            host,
            &ReachingCommand {
                asker: Asker::Chat(context.chat),
                workspace: &context.workspace,
                command: &self.agent,
                cwd: &context.cwd,
                confinement: &Confinement::Agent {
                    workspace: context.workspace.clone(),
                    places: co_exec::GrantedPlaces::default(),
                    whole_network: false,
                },
            },
        );
        *self.turn() = Some(Arc::new(asker));
    }

    /// Asks no more.
    pub fn end(&self) {
        *self.turn() = None;
    }

    fn turn(&self) -> MutexGuard<'_, Option<Arc<PersonAsker>>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl HostAsker for TurnAsker {
    async fn ask(&self, targets: &[Target]) -> Result<(), String> {
        let turn = self.turn().clone();
        match turn {
            Some(turn) => turn.ask(targets).await,
            None => Err("no turn of the agent runs, so nobody is asked".to_owned()),
        }
    }
}
