//! The hosts that an agent reaches, and the questions about them in the turn that runs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::blocking::blocking;
use crate::network::HostAsker;
use crate::protocol::Asker;
use crate::services::Services;
use crate::tool::command::hosts::{PersonAsker, ReachingCommand};
use crate::tool::context::CallContext;
use co_exec::Confinement;
use co_policy::{HostRules, HostVerdict};
use co_proxy::Target;

/// Asks about the hosts of an agent in the turn that runs. Between two turns, every host that no rule names is refused. An answer
/// holds until the end of its turn, unless the person gave it for longer.
pub struct TurnAsker {
    agent: String,
    turn: Mutex<Option<Arc<AskingTurn>>>,
    /// The number of beginnings and ends of turns so far.
    period: AtomicU64,
}

/// The turn in which the questions come.
struct AskingTurn {
    services: Arc<Services>,
    workspace: PathBuf,
    person: PersonAsker,
}

impl TurnAsker {
    pub fn new(agent: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            turn: Mutex::default(),
            period: AtomicU64::new(0),
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
                confinement: &Confinement::Agent {
                    workspace: context.workspace.clone(),
                    places: co_exec::GrantedPlaces::default(),
                    whole_network: false,
                },
            },
        );
        let workspace = context.workspace.clone();
        self.set(Some(AskingTurn {
            services,
            workspace,
            person,
        }));
    }

    /// Asks no more, and lets the answers of the turn be forgotten.
    pub fn end(&self) {
        self.set(None);
    }

    fn set(&self, turn: Option<AskingTurn>) {
        *self.turn() = turn.map(Arc::new);
        self.period.fetch_add(1, Ordering::Relaxed);
    }

    fn turn(&self) -> MutexGuard<'_, Option<Arc<AskingTurn>>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl HostAsker for TurnAsker {
    async fn ask(&self, targets: &[Target]) -> Result<(), String> {
        let turn = self.turn().clone();
        let turn = turn.ok_or("no turn of the agent runs, so nobody is asked")?;
        // The person may have saved an answer in an earlier turn.
        let rules = host_rules(&turn.services, &turn.workspace).await?;
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
            false => turn.person.ask(&unknown).await,
        }
    }

    fn period(&self) -> u64 {
        self.period.load(Ordering::Relaxed)
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
