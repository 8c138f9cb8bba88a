//! Connects to a tool server over HTTP.

use crate::config::HttpServer;
use crate::network::HostAsker;
use co_mcp::ServerConnection;

/// Connects to the server `name`, and sends these headers with each request.
///
/// # Errors
/// A rule denies the server's host, or the server cannot be reached or refused the connection. The error is a sentence for the
/// person.
#[cfg(feature = "mcp-http")]
pub(super) async fn connect(
    name: &str,
    server: &HttpServer,
    headers: Vec<(String, String)>,
    hosts: &dyn HostAsker,
) -> Result<ServerConnection, String> {
    use super::CLIENT;
    use crate::blocking::blocking;
    use co_mcp::{HttpEndpoint, HttpFault, OpenError};

    let (host, port) = server.host();
    if let Some(rule) = hosts.rules().await?.denied(&host, port) {
        return Err(format!(
            "the rule `{rule}` about hosts denies {host}: :Co /rules lists the rules"
        ));
    }
    let endpoint = HttpEndpoint {
        url: server.url.clone(),
        headers,
    };
    let url = server.url.clone();
    // It reads the certificates of the system.
    let client = blocking(move || co_llm::http_client(&url).map_err(|it| it.to_string())).await?;
    let opened = ServerConnection::open_http(client, &endpoint, CLIENT).await;
    opened.map_err(|error| {
        let setting = format!("mcp_servers.{name}");
        let advice = match &error {
            OpenError::Http(HttpFault::Unauthorized | HttpFault::Forbidden) => format!(
                ": give it a token that it accepts by {setting}.headers, see :help co-tool-server-http"
            ),
            OpenError::Http(HttpFault::Redirect | HttpFault::Moved) => {
                format!(": set {setting}.url to its new address, if you trust that")
            }
            OpenError::Http(HttpFault::Status(404 | 405) | HttpFault::ContentType) => format!(
                ": {setting}.url must be the address for the protocol, which often ends with /mcp"
            ),
            _ => String::new(),
        };
        format!("{error}{advice}")
    })
}

#[cfg(not(feature = "mcp-http"))]
pub(super) async fn connect(
    _: &str,
    _: &HttpServer,
    _: Vec<(String, String)>,
    _: &dyn HostAsker,
) -> Result<ServerConnection, String> {
    let why = "this co-nvim was built without tool servers over HTTP (the feature mcp-http)";
    Err(why.to_owned())
}
