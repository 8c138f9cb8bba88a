//! The clients for requests to servers over HTTP and to the places of their logins, within the person's rules about hosts.

use std::sync::Arc;

use async_trait::async_trait;

use crate::blocking::blocking;
use crate::network::HostAsker;
use co_llm::Url;
use co_mcp::{Client, HostAccess};

/// Returns a client for requests to an address. It follows no redirect.
///
/// # Errors
/// A rule denies the host, or the rules or the certificates of the system cannot be read. The error is a sentence.
pub(super) async fn client(hosts: &dyn HostAsker, url: &Url) -> Result<Client, String> {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let port = url.port_or_known_default().unwrap_or(443);
    if let Some(rule) = hosts.rules().await?.denied(host, port) {
        return Err(format!(
            "the rule `{rule}` about hosts denies {host}: :Co /rules lists the rules"
        ));
    }
    let url = url.to_string();
    blocking(move || co_llm::http_client(&url).map_err(|it| it.to_string())).await
}

/// Lets a login reach the hosts that no rule denies.
pub(super) struct LoginAccess(pub Arc<dyn HostAsker>);

#[async_trait]
impl HostAccess for LoginAccess {
    async fn client(&self, url: &Url) -> Result<Client, String> {
        client(&*self.0, url).await
    }
}
