//! The hosts that a confined command may reach, and the question about others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use crate::blocking::blocking;
use crate::config::Network;
use crate::network::{HostAccess, HostAsker};
use crate::protocol::{AskedHost, Asker, Question, Scope};
use crate::services::Services;
use crate::text::one_line;
use crate::tool::context::QuestionHost;
use crate::tool::permissions::{Allowance, Reply};
use co_exec::Confinement;
use co_policy::HostPattern;
use co_proxy::Target;

/// The reason why only a key in the float allows a host.
const ALONE: &str = "what is sent cannot be taken back";

/// A command that may reach hosts, for the questions about them.
pub(crate) struct ReachingCommand<'a> {
    pub(crate) asker: Asker,
    pub(crate) workspace: &'a Path,
    pub(crate) command: &'a str,
    pub(crate) cwd: &'a Path,
    /// The name of its level.
    pub(crate) confinement: &'static str,
}

/// Asks the person about the hosts of one command.
pub(crate) struct PersonAsker {
    services: Arc<Services>,
    host: Arc<dyn QuestionHost>,
    workspace: PathBuf,
    question: Question,
}

/// Withdraws an open question when it is dropped.
struct Withdrawal {
    open: Option<(Arc<dyn QuestionHost>, u64)>,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        if let Some((host, id)) = self.open.take() {
            // If the chat has ended, so has the question.
            tokio::spawn(async move { host.withdraw(id).await.ok() });
        }
    }
}

/// Returns the hosts that a command may reach; none if its confinement or the settings give it no way to any.
pub(crate) async fn access(
    services: &Services,
    host: &dyn QuestionHost,
    workspace: &Path,
    confinement: &Confinement,
) -> Option<HostAccess> {
    let config = &services.config;
    if config.sandbox_network != Network::Ask || !confinement.has_own_network() {
        return None;
    }
    // Not the judge of a turn, which does not know a host that the person saved meanwhile.
    let judge = services.judge(workspace);
    let mut settings = config.hosts.clone();
    // So that the command does not wait for them behind an open question.
    settings.allow.extend(host.allowed_hosts().await.ok()?);
    let rules = blocking(move || Ok::<_, String>(judge.host_rules(&settings)));
    let environment: Vec<_> = std::env::vars_os().collect();
    Some(HostAccess::new(rules.await.ok()?, &environment))
}

impl PersonAsker {
    pub(crate) fn new(
        services: Arc<Services>,
        host: Arc<dyn QuestionHost>,
        command: &ReachingCommand<'_>,
    ) -> Self {
        Self {
            services,
            host,
            workspace: command.workspace.to_owned(),
            question: Question {
                asker: command.asker,
                command: co_policy::printable(command.command),
                cwd: one_line(&command.cwd.display().to_string()),
                confinement: command.confinement.to_owned(),
                alone: Some(ALONE.to_owned()),
                ..Question::default()
            },
        }
    }
}

#[async_trait]
impl HostAsker for PersonAsker {
    async fn ask(&self, targets: &[Target]) -> Result<(), String> {
        let gone = || "the command has ended".to_owned();
        let id = self.services.id();
        let question = Question {
            id,
            hosts: targets.iter().map(asked).collect(),
            ..self.question.clone()
        };
        let answer = self.host.ask(question).await.map_err(|_| gone())?;
        let mut withdrawal = Withdrawal {
            open: Some((Arc::clone(&self.host), id)),
        };
        let reply = answer.await;
        // The turn ends only when nothing of it has its host any more.
        withdrawal.open = None;
        let rules = || {
            let exact = |it: &Target| HostPattern::exact(&it.host.to_string(), it.port);
            targets.iter().map(exact).collect()
        };
        let allowance = match reply {
            Ok(Reply::Always(Scope::HostsSaved)) => {
                Some(Allowance::SavedHosts(self.workspace.clone(), rules()))
            }
            Ok(Reply::Always(_)) => Some(Allowance::Hosts(rules())),
            Ok(Reply::Deny(Some(reason))) => {
                return Err(format!("the person refused it: {reason}"));
            }
            Ok(Reply::Once) => None,
            Ok(_) => return Err("the person refused it".to_owned()),
            Err(_) => return Err("nobody answered".to_owned()),
        };
        if let Some(allowance) = allowance {
            self.host.allow(allowance).await.map_err(|_| gone())?;
        }
        Ok(())
    }
}

/// Returns a target for a question.
fn asked(target: &Target) -> AskedHost {
    AskedHost {
        host: target.host.to_string(),
        port: target.port,
        special: target.host.special().map(str::to_owned),
    }
}
