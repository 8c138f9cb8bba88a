//! The hosts that a confined command may contact, and the questions about other hosts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::config::Network;
use crate::network::{HostAccess, HostAsker};
use crate::protocol::{AskedHost, Asker, NoticeLevel, Question, Scope};
use crate::services::Services;
use crate::tool::context::Questioner;
use crate::tool::permissions::{Allowance, AllowedHost, Reply};
use co_exec::Confinement;
use co_policy::{HostPattern, HostRules};
use co_proxy::Target;
use co_text::one_line;

/// The reason why only a key in the float can allow a host.
const ALONE: &str = "what is sent cannot be taken back";

/// The reason of the refusal after the chat of the command has ended.
const GONE: &str = "the chat of the command has ended, so nobody can be asked";

/// A command that may contact hosts. The questions about hosts show it.
pub(crate) struct ReachingCommand<'a> {
    pub(crate) asker: Asker,
    pub(crate) workspace: &'a Path,
    pub(crate) command: &'a str,
    pub(crate) cwd: &'a Path,
    /// The name of the command's level of confinement.
    pub(crate) confinement: &'static str,
}

/// Asks the person about the hosts that one command wants to contact.
pub(crate) struct PersonAsker {
    services: Arc<Services>,
    questioner: Arc<dyn Questioner>,
    workspace: PathBuf,
    /// The hosts that the command may contact without a question: the hosts that its chat allowed before the command started, or
    /// the hosts of its agent. A connection to such a host does not wait for an open question about other hosts.
    granted: Vec<HostPattern>,
    question: Question,
}

/// Withdraws an open question when it is dropped.
struct Withdrawal {
    open: Option<(Arc<dyn Questioner>, u64)>,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        if let Some((questioner, id)) = self.open.take() {
            // If the chat has ended, so has the question.
            tokio::spawn(async move { questioner.withdraw(id).await.ok() });
        }
    }
}

/// Returns the access of a command to hosts. Returns `None` if its confinement or the settings allow no such access.
pub(crate) async fn access(
    services: &Arc<Services>,
    questioner: Arc<dyn Questioner>,
    confinement: &Confinement,
    command: &ReachingCommand<'_>,
) -> Option<HostAccess> {
    if services.config.sandbox_network != Network::Ask || !confinement.has_own_network() {
        return None;
    }
    // A chat that has ended allows none.
    let of_chat = questioner.allowed_hosts().await.unwrap_or_default();
    let mut asker = PersonAsker::new(Arc::clone(services), questioner, command);
    let of_chat = of_chat.into_iter();
    asker.granted = of_chat
        .filter_map(|it| it.for_command(&asker.question.command))
        .collect();
    Some(HostAccess::new(Arc::new(asker)))
}

/// Returns the access of a command to these hosts, and to other hosts that the person allows. Ignores the settings.
pub(crate) fn access_to(
    services: &Arc<Services>,
    questioner: Arc<dyn Questioner>,
    command: &ReachingCommand<'_>,
    hosts: Vec<HostPattern>,
) -> HostAccess {
    let mut asker = PersonAsker::new(Arc::clone(services), questioner, command);
    asker.granted = hosts;
    HostAccess::new(Arc::new(asker))
}

impl PersonAsker {
    pub(crate) fn new(
        services: Arc<Services>,
        questioner: Arc<dyn Questioner>,
        command: &ReachingCommand<'_>,
    ) -> Self {
        Self {
            services,
            questioner,
            workspace: command.workspace.to_owned(),
            granted: Vec::new(),
            question: Question {
                asker: command.asker.clone(),
                command: co_text::printable(command.command),
                cwd: one_line(&command.cwd.display().to_string()),
                confinement: command.confinement.to_owned(),
                alone: Some(ALONE.to_owned()),
                ..Question::default()
            },
        }
    }

    /// Asks the person about targets, until `cancelled` is cancelled. An answer that arrives just before the cancellation still
    /// takes full effect.
    ///
    /// # Errors
    /// The reason why the command may not contact the targets; none if nobody answered before the token was cancelled.
    pub(crate) async fn ask_until(
        &self,
        cancelled: &CancellationToken,
        targets: &[Target],
    ) -> Result<(), Option<String>> {
        let reply = cancelled.run_until_cancelled(self.reply(targets)).await;
        let reply = reply.ok_or(None)?.map_err(Some)?;
        self.take(reply, targets).await.map_err(Some)
    }

    /// Asks the person about targets. If the returned future is dropped, the question is withdrawn.
    async fn reply(&self, targets: &[Target]) -> Result<Reply, String> {
        let gone = || GONE.to_owned();
        let id = self.services.id();
        let question = Question {
            id,
            hosts: targets.iter().map(asked).collect(),
            ..self.question.clone()
        };
        let answer = self.questioner.ask(question).await.map_err(|_| gone())?;
        let mut withdrawal = Withdrawal {
            open: Some((Arc::clone(&self.questioner), id)),
        };
        let reply = answer.await;
        // The turn ends only when nothing of it holds its questioner any more.
        withdrawal.open = None;
        // The chat withdrew the question at its end.
        reply.map_err(|_| gone())
    }

    /// Handles the person's reply about targets. When this method returns, the permission also applies to later connections.
    async fn take(&self, reply: Reply, targets: &[Target]) -> Result<(), String> {
        let exact = |it: &Target| HostPattern::exact(&it.host.to_string(), it.port);
        let hosts = targets.iter().map(exact);
        let in_chat = |command: Option<&String>| {
            let command = command.cloned();
            let allowed = hosts.clone().map(|host| AllowedHost {
                host,
                command: command.clone(),
            });
            Some(Allowance::Hosts(allowed.collect()))
        };
        let allowance = match reply {
            Reply::Always(Scope::HostsSaved) => match self.save(hosts.clone().collect()).await {
                true => None,
                false => in_chat(None),
            },
            Reply::Always(Scope::Hosts) => in_chat(None),
            Reply::Always(_) => in_chat(Some(&self.question.command)),
            Reply::Deny(Some(reason)) => {
                return Err(format!("the person refused it: {reason}"));
            }
            Reply::Once => None,
            _ => return Err("the person refused it".to_owned()),
        };
        if let Some(allowance) = allowance {
            let allowed = self.questioner.allow(allowance).await;
            allowed.map_err(|_| GONE.to_owned())?;
        }
        Ok(())
    }

    /// Saves hosts for the workspace, even if the returned future is dropped. If that fails, tells the person and returns false.
    async fn save(&self, hosts: Vec<HostPattern>) -> bool {
        let (services, workspace) = (Arc::clone(&self.services), self.workspace.clone());
        let holds = match self.question.asker {
            Asker::Chat(_) => "for this chat",
            Asker::Run(_) | Asker::Agent(_) => "for this command",
        };
        let saved = tokio::spawn(async move {
            let saved = services.save_hosts(workspace, hosts).await;
            if let Err(error) = &saved {
                let text = format!(
                    "the hosts are allowed {holds} only, because they could not be saved: {error}"
                );
                services.notice(NoticeLevel::Error, text);
            }
            saved.is_ok()
        });
        saved.await.unwrap_or_default()
    }
}

#[async_trait]
impl HostAsker for PersonAsker {
    async fn rules(&self) -> Result<HostRules, String> {
        let mut rules = self.services.host_rules(&self.workspace).await?;
        rules.allow.extend(self.granted.iter().cloned());
        Ok(rules)
    }

    async fn ask(&self, targets: &[Target]) -> Result<(), String> {
        let reply = self.reply(targets).await?;
        self.take(reply, targets).await
    }
}

/// Returns a target in the form that a question shows.
fn asked(target: &Target) -> AskedHost {
    AskedHost {
        host: target.host.to_string(),
        port: target.port,
        special: target.host.special().map(str::to_owned),
    }
}
