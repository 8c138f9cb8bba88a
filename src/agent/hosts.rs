//! The hosts that an agent reaches, and the questions about them in the turn that runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::network::HostAsker;
use crate::protocol::Asker;
use crate::services::Services;
use crate::tool::command::hosts::{PersonAsker, ReachingCommand};
use crate::tool::context::CallContext;
use co_exec::AGENT;
use co_policy::{HostRules, HostVerdict};
use co_proxy::Target;

/// Asks about the hosts of an agent in the turn that runs. Between two turns, every host that no rule names is refused. An answer
/// holds until the end of its turn, unless the person gave it for longer.
pub struct TurnAsker {
    agent: String,
    state: Mutex<AskerState>,
}

#[derive(Default)]
struct AskerState {
    /// The turn that runs.
    turn: Option<Arc<AskingTurn>>,
    /// The number of beginnings and ends of turns so far.
    period: u64,
}

/// The turn in which the questions come.
struct AskingTurn {
    services: Arc<Services>,
    workspace: PathBuf,
    person: PersonAsker,
    /// Cancelled at the end of the turn. An open question would keep the turn running, because it holds the turn's way to the chat.
    ended: CancellationToken,
}

impl TurnAsker {
    pub fn new(agent: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            state: Mutex::default(),
        }
    }

    /// Asks in a turn from now on.
    pub fn begin(&self, context: &CallContext) {
        let (services, host) = (Arc::clone(&context.services), Arc::clone(&context.host));
        let person = PersonAsker::new(
            Arc::clone(&services),
            host,
            &ReachingCommand {
                asker: Asker::Chat(context.chat),
                workspace: &context.workspace,
                command: &self.agent,
                cwd: &context.cwd,
                confinement: AGENT,
            },
        );
        let workspace = context.workspace.clone();
        self.set(Some(AskingTurn {
            services,
            workspace,
            person,
            ended: CancellationToken::new(),
        }));
    }

    /// Asks no more, withdraws the open questions, and lets the answers of the turn be forgotten.
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

impl AskingTurn {
    /// Asks about the hosts that no rule names.
    async fn ask(&self, targets: &[Target]) -> Result<(), String> {
        // The person may have saved an answer in an earlier turn.
        let rules = host_rules(&self.services, &self.workspace).await?;
        let mut unknown = Vec::new();
        for target in targets {
            match rules.verdict(&target.host.to_string(), target.port) {
                HostVerdict::Allowed(_) => {}
                HostVerdict::Denied(rule) => return Err(format!("the rule `{rule}` denies it")),
                HostVerdict::Ask => unknown.push(target.clone()),
            }
        }
        match unknown.is_empty() {
            true => Ok(()),
            false => self.person.ask(&unknown).await,
        }
    }
}

#[async_trait]
impl HostAsker for TurnAsker {
    async fn ask(&self, targets: &[Target]) -> Result<(), String> {
        let turn = self.state().turn.clone();
        let turn = turn.ok_or("no turn of the agent runs, so nobody is asked")?;
        let asked = turn.ended.run_until_cancelled(turn.ask(targets)).await;
        asked.unwrap_or_else(|| Err("the turn of the agent has ended".to_owned()))
    }

    fn period(&self) -> u64 {
        self.state().period
    }
}

/// Returns the rules about hosts that hold in a workspace now, with what the person saved meanwhile.
///
/// # Errors
/// They cannot be read. Then nothing may be reached, because a rule may deny it.
pub(super) async fn host_rules(services: &Services, workspace: &Path) -> Result<HostRules, String> {
    let (judge, settings) = (services.judge(workspace), services.config.hosts.clone());
    let rules = blocking(move || Ok::<_, String>(judge.host_rules(&settings)));
    rules
        .await
        .map_err(|why| format!("the rules about hosts cannot be read: {why}"))
}
