//! Allows a tool server to contact only the hosts of its settings.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use super::ServerCall;
use crate::network::{HostAsker, HostReport};
use crate::services::Services;
use crate::tool::call::CallResult;
use co_policy::{HostPattern, HostRules};
use co_proxy::Target;

/// Allows a server to contact the hosts of its settings, except those that a rule denies. Denies all other hosts without a
/// question.
pub(super) struct ServerHosts {
    pub(super) services: Arc<Services>,
    pub(super) workspace: PathBuf,
    pub(super) hosts: Vec<HostPattern>,
}

#[async_trait]
impl HostAsker for ServerHosts {
    async fn rules(&self) -> Result<HostRules, String> {
        let HostRules { deny, .. } = self.services.host_rules(&self.workspace).await?;
        Ok(HostRules {
            allow: self.hosts.clone(),
            deny,
        })
    }

    async fn ask(&self, _: &[Target]) -> Result<(), String> {
        Err("the setting `hosts` of this tool server does not name it".to_owned())
    }
}

impl ServerCall {
    /// Adds a remark to the result of a call. The remark tells the person and the model which hosts the server tried to contact
    /// and co refused.
    pub(super) fn with_hosts(&self, mut result: CallResult, hosts: HostReport) -> CallResult {
        if let Some(refused) = hosts.refused() {
            let name = &self.server.settings.name;
            result = result.noted(&format!(
                "it was refused {refused}, which mcp_servers.{name}.hosts does not name or a rule denies"
            ));
            result = result.told(&format!(
                "The tool server was not allowed to reach {refused}. Do not try to reach it in another way."
            ));
        }
        if let Some(effect) = &mut result.effect {
            effect.hosts = hosts;
        }
        result
    }
}
