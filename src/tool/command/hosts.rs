//! The hosts that a trial of the model may reach, and the question about others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use crate::blocking::blocking;
use crate::config::Network;
use crate::network::{HostAccess, HostAsker};
use crate::protocol::{AskedHost, Asker, Question, Scope};
use crate::services::Services;
use crate::text::one_line;
use crate::tool::context::{CallContext, CallHost};
use crate::tool::permissions::{Allowance, Reply};
use co_policy::HostPattern;
use co_proxy::Target;

/// The reason why only a key in the float allows a host.
const ALONE: &str = "what is sent cannot be taken back";

/// Asks in the chat of a call.
pub(super) struct ChatAsker {
    services: Arc<Services>,
    host: Arc<dyn CallHost>,
    workspace: PathBuf,
    question: Question,
}

/// Withdraws an open question when it is dropped.
struct Withdrawal {
    open: Option<(Arc<dyn CallHost>, u64)>,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        if let Some((host, id)) = self.open.take() {
            // If the chat has ended, so has the question.
            tokio::spawn(async move { host.withdraw(id).await.ok() });
        }
    }
}

/// Returns the hosts that a trial may reach; none if the settings give it no way to any.
pub(super) async fn access(context: &CallContext) -> Option<HostAccess> {
    let config = &context.services.config;
    if config.sandbox_network != Network::Ask {
        return None;
    }
    // Not the judge of the turn, which does not know a host that the person saved meanwhile.
    let judge = context.services.judge(&context.workspace);
    let settings = config.hosts.clone();
    let rules = blocking(move || Ok::<_, String>(judge.host_rules(&settings)));
    let environment: Vec<_> = std::env::vars_os().collect();
    Some(HostAccess::new(rules.await.ok()?, &environment))
}

impl ChatAsker {
    pub(super) fn new(context: &CallContext, command: String, cwd: &Path) -> Self {
        Self {
            services: Arc::clone(&context.services),
            host: Arc::clone(&context.host),
            workspace: context.workspace.clone(),
            question: Question {
                asker: Asker::Chat(context.chat),
                command: co_policy::printable(&command),
                cwd: one_line(&cwd.display().to_string()),
                confinement: "trial".to_owned(),
                alone: Some(ALONE.to_owned()),
                ..Question::default()
            },
        }
    }
}

#[async_trait]
impl HostAsker for ChatAsker {
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
