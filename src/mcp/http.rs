//! Connects to a tool server over HTTP.

use super::{CLIENT, WORKSPACE_FILE};
use crate::blocking::blocking;
use crate::config::{HttpServer, McpServerSettings};
use crate::network::HostAsker;
use co_mcp::{CallError, HttpEndpoint, HttpFault, OpenError, ServerConnection};

/// Returns the reason why a server over HTTP gives no answer, in a sentence that names the place where the person can change that.
pub(super) fn explained(settings: &McpServerSettings, fault: &HttpFault) -> String {
    let name = &settings.name;
    let place = match settings.of_workspace {
        true => format!("{name} in {WORKSPACE_FILE}"),
        false => format!("mcp_servers.{name}"),
    };
    let advice = match fault {
        // The file of a workspace has no secrets.
        HttpFault::Unauthorized(_) | HttpFault::Forbidden if settings.of_workspace => format!(
            "set mcp_servers.{name} to this server, with its url and with headers that have a token which it accepts, see :help \
             co-tool-server-http"
        ),
        HttpFault::Unauthorized(_) | HttpFault::Forbidden => format!(
            "give it a token that it accepts by {place}.headers, see :help co-tool-server-http"
        ),
        HttpFault::Redirect | HttpFault::Moved => {
            format!("set the url of {place} to its new address, if you trust that")
        }
        HttpFault::Status(404 | 405) | HttpFault::ContentType | HttpFault::Address => format!(
            "the url of {place} must be the address for the protocol, which often ends with /mcp"
        ),
        HttpFault::Header(header) => format!("change the header {header} of {place}"),
        HttpFault::Unreachable(_)
        | HttpFault::Broken
        | HttpFault::Status(_)
        | HttpFault::Rounds
        | HttpFault::Unreadable
        | HttpFault::TooLarge
        | HttpFault::TooMuch
        | HttpFault::Session => return fault.to_string(),
    };
    format!("{fault}: {advice}")
}

/// Returns the reason why a request to a server failed, for the person.
pub fn failure(settings: &McpServerSettings, error: &CallError) -> String {
    match error {
        CallError::Http(fault) => {
            format!("the server gave no result: {}", explained(settings, fault))
        }
        error => error.to_string(),
    }
}

/// Connects to the server `name`, and sends these headers with each request.
///
/// # Errors
/// A rule denies the server's host, or the server cannot be reached or refused the connection. The error is a sentence for the
/// person.
pub(super) async fn connect(
    settings: &McpServerSettings,
    server: &HttpServer,
    headers: Vec<(String, String)>,
    hosts: &dyn HostAsker,
) -> Result<ServerConnection, String> {
    let (host, port) = server.host();
    if let Some(rule) = hosts.rules().await?.denied(&host, port) {
        return Err(format!(
            "the rule `{rule}` about hosts denies {host}: :Co /rules lists the rules"
        ));
    }
    let endpoint = HttpEndpoint {
        url: server.url.clone(),
        headers,
        login: None,
    };
    let url = server.url.clone();
    // It reads the certificates of the system.
    let client = blocking(move || co_llm::http_client(&url).map_err(|it| it.to_string())).await?;
    let opened = ServerConnection::open_http(client, &endpoint, CLIENT).await;
    opened.map_err(|error| match &error {
        OpenError::Http(fault) => explained(settings, fault),
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_the_place_that_the_person_can_change() {
        let told = |of_workspace, fault| {
            let settings = McpServerSettings {
                name: "s".to_owned(),
                of_workspace,
                ..McpServerSettings::default()
            };
            explained(&settings, &fault)
        };
        for (of_workspace, fault, place) in [
            (false, HttpFault::Unauthorized(None), "by mcp_servers.s.headers"),
            (
                true,
                HttpFault::Unauthorized(None),
                "set mcp_servers.s to this server",
            ),
            (false, HttpFault::Moved, "the url of mcp_servers.s to"),
            (true, HttpFault::Redirect, "the url of s in .mcp.json to"),
            (
                true,
                HttpFault::Status(404),
                "the url of s in .mcp.json must",
            ),
            (
                true,
                HttpFault::Header("A".to_owned()),
                "header A of s in .mcp.json",
            ),
        ] {
            let told = told(of_workspace, fault.clone());
            assert!(
                told.starts_with(&format!("{fault}: ")) && told.contains(place),
                "{told}"
            );
        }
        assert_eq!(told(true, HttpFault::Broken), HttpFault::Broken.to_string());
    }
}
