//! Connects to a tool server over HTTP.

use std::sync::Arc;

use super::environment::{ServerEnvironment, ServerSecrets};
use super::http_client::{self, LoginAccess};
use super::start::{ServerStart, StartFault};
use super::{CLIENT, WORKSPACE_FILE};
use crate::config::{HttpServer, McpServerSettings};
use co_llm::Url;
use co_mcp::{
    CallError, Challenge, HttpEndpoint, HttpFault, OpenError, ServerConnection, ServerLogin,
};

/// Returns the reason why a server over HTTP gives no answer, in a sentence that names the place where the person can change that.
pub(super) fn explained(settings: &McpServerSettings, fault: &HttpFault) -> String {
    let name = &settings.name;
    let place = match settings.of_workspace {
        true => format!("{name} in {WORKSPACE_FILE}"),
        false => format!("mcp_servers.{name}"),
    };
    let advice = match fault {
        HttpFault::Unauthorized(_) | HttpFault::Scope(_)
            if settings.http().is_some_and(HttpServer::may_log_in) =>
        {
            format!("`:Co /mcp login {name}` logs you in")
        }
        // The file of a workspace has no secrets.
        HttpFault::Unauthorized(_) | HttpFault::Forbidden | HttpFault::Scope(_)
            if settings.of_workspace =>
        {
            format!(
                "set mcp_servers.{name} to this server, with its url and with headers that have a token which it accepts, see :help \
             co-tool-server-http"
            )
        }
        HttpFault::Unauthorized(_) | HttpFault::Forbidden | HttpFault::Scope(_) => format!(
            "give it a token that it accepts by {place}.headers, see :help co-tool-server-http"
        ),
        HttpFault::Redirect | HttpFault::Moved => {
            format!("set the url of {place} to its new address, if you trust that")
        }
        HttpFault::Status(404 | 405) | HttpFault::ContentType | HttpFault::Address => format!(
            "the url of {place} must be the address for the protocol, which often ends with /mcp"
        ),
        // The reason may have words of an authorization server, and a call's fault is recorded.
        HttpFault::Login(_) => format!("`:Co /mcp login {name}` logs in again, if that stays so"),
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

/// Connects to the server with the headers of its environment, and with the token of its login if it has one.
///
/// # Errors
/// A rule denies the server's host, or the server cannot be reached or refused the connection. The error is a sentence for the
/// person.
pub(super) async fn connect(
    start: &ServerStart,
    server: &HttpServer,
    environment: ServerEnvironment,
) -> Result<ServerConnection, StartFault> {
    let login = login(start, server, &environment.secrets);
    connect_with(start, server, environment.headers, login).await
}

async fn connect_with(
    start: &ServerStart,
    server: &HttpServer,
    headers: Vec<(String, String)>,
    login: Option<ServerLogin>,
) -> Result<ServerConnection, StartFault> {
    let failed = |fault: &HttpFault| StartFault::Failed(explained(&start.settings, fault));
    let url = Url::parse(&server.url).map_err(|_| failed(&HttpFault::Address))?;
    let client = http_client::client(&*start.hosts, &url).await;
    let client = client.map_err(StartFault::Failed)?;
    let endpoint = HttpEndpoint {
        url: server.url.clone(),
        headers,
        login,
    };
    let opened = ServerConnection::open_http(client, &endpoint, CLIENT).await;
    opened.map_err(|error| match &error {
        OpenError::Http(fault) => needs_login(server, fault).unwrap_or_else(|| failed(fault)),
        _ => StartFault::Failed(error.to_string()),
    })
}

/// Asks the server without a login, and returns its words about the login that it wants; `None` if it says nothing about one.
///
/// # Errors
/// It cannot be reached: a sentence.
pub(super) async fn challenge(
    start: &ServerStart,
    server: &HttpServer,
    environment: ServerEnvironment,
) -> Result<Option<Challenge>, StartFault> {
    let tools = async {
        let connection = connect_with(start, server, environment.headers, None).await?;
        let tools = connection.tools().await;
        tools.map_err(|error| tools_fault(&start.settings, &error))
    };
    match tools.await {
        Ok(_) => Ok(None),
        Err(StartFault::Login(challenge)) => Ok(challenge),
        Err(fault) => Err(fault),
    }
}

/// Returns the login at a server, unless a header has its token.
fn login(start: &ServerStart, server: &HttpServer, secrets: &ServerSecrets) -> Option<ServerLogin> {
    let file = server.may_log_in().then(|| start.login_file(secrets));
    Some(ServerLogin {
        store: Arc::new(file??),
        access: Arc::new(LoginAccess(Arc::clone(&start.hosts))),
    })
}

/// Returns the fault of a server that wants a login, if that is the reason.
fn needs_login(server: &HttpServer, fault: &HttpFault) -> Option<StartFault> {
    let challenge = fault.wanted_login()?;
    let login = || StartFault::Login(challenge.cloned());
    server.may_log_in().then(login)
}

/// Returns the fault of a server whose tools cannot be read.
pub(super) fn tools_fault(settings: &McpServerSettings, error: &CallError) -> StartFault {
    let fault = match (error, settings.http()) {
        (CallError::Http(fault), Some(server)) => needs_login(server, fault),
        _ => None,
    };
    fault.unwrap_or_else(|| StartFault::Tools(failure(settings, error)))
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
            (
                false,
                HttpFault::Unauthorized(None),
                "by mcp_servers.s.headers",
            ),
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
