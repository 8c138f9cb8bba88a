//! Begins a login at a server over HTTP.

use std::sync::Arc;
use std::time::Duration;

use super::environment::{ServerEnvironment, ServerSecrets};
use super::http;
use super::http_client::LoginAccess;
use super::login_file::LoginFile;
use super::start::{START_TIMEOUT, ServerStart};
use co_mcp::{
    Challenge, LoginClient, LoginFault, LoginRequest, LoginStore, OpenLogin, RedirectListener,
};

/// The name of co for the person at the login page.
const CLIENT_TITLE: &str = "co (Neovim)";

/// The longest wait for a server to say how to log in.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(60);

/// A login that waits for the person's browser, and the file that will keep it.
pub struct BegunLogin {
    pub open: OpenLogin,
    pub file: LoginFile,
    pub listener: RedirectListener,
    /// The secrets that the words of a server must not show.
    pub secrets: ServerSecrets,
}

/// Begins a login at a server. `wanted` are the last words of the server about it.
///
/// # Errors
/// A sentence about why not.
pub async fn begin_login(
    start: &ServerStart,
    wanted: Option<Challenge>,
) -> Result<BegunLogin, String> {
    let name = &start.settings.name;
    let server = start
        .settings
        .http()
        .ok_or("it is a program of this machine")?;
    let environment = ServerEnvironment::read(&start.settings).await?;
    let file = start.login_file(&environment.secrets);
    let file = file.ok_or("it is a program of this machine")?;
    let (secrets, secret) = (
        environment.secrets.clone(),
        environment.client_secret.clone(),
    );
    let challenge = match wanted {
        Some(wanted) => Some(wanted),
        None => {
            let asked = http::challenge(start, server, environment);
            let asked = tokio::time::timeout(START_TIMEOUT, asked).await;
            let asked = asked.map_err(|_| "it gives no answer".to_owned())?;
            asked.map_err(|fault| secrets.hide(&fault.to_string()).text)?
        }
    };
    let port = server.oauth.port;
    let listener = RedirectListener::bind(port).await.map_err(|error| match port {
        Some(port) => format!(
            "co cannot listen on port {port} for the browser: {error}; change mcp_servers.{name}.oauth.port"
        ),
        None => format!("co cannot listen for the browser: {error}"),
    })?;
    let redirect = listener.address();
    // A login that cannot be read is made anew.
    let earlier = file.load().await.unwrap_or_default();
    let begun = OpenLogin::begin(LoginRequest {
        server: &server.url,
        challenge: challenge.as_ref(),
        client: LoginClient {
            name: CLIENT_TITLE.to_owned(),
            id: server.oauth.client_id.clone(),
            secret,
            issuer: server.oauth.issuer.clone(),
            scopes: server.oauth.scopes.clone(),
        },
        earlier: earlier.as_ref(),
        redirect: &redirect,
        access: Arc::new(LoginAccess(Arc::clone(&start.hosts))),
    });
    let begun = tokio::time::timeout(BEGIN_TIMEOUT, begun).await;
    let begun = begun.map_err(|_| "its authorization server gives no answer in time".to_owned())?;
    let open = begun.map_err(|fault| match fault {
        LoginFault::NoLogin if challenge.is_none() => {
            "it wants no login, or says nothing about one".to_owned()
        }
        LoginFault::NoRegistration(_) => format!(
            "{fault}: register co there with the address {redirect}, and set mcp_servers.{name}.oauth, see :help co-tool-server-login"
        ),
        LoginFault::OtherIssuer(_) => format!(
            "{fault}: if you trust it, register co there and set mcp_servers.{name}.oauth, see :help co-tool-server-login"
        ),
        LoginFault::LongPage => {
            format!("{fault}: mcp_servers.{name}.oauth.scopes can ask for fewer rights")
        }
        // A token that the person makes there needs no login.
        LoginFault::NoLogin
        | LoginFault::NoPkce
        | LoginFault::Issuer
        | LoginFault::Page
        | LoginFault::Metadata(_) => format!(
            "{}: give it a token by mcp_servers.{name}.headers, see :help co-tool-server-http",
            secrets.hide(&fault.to_string()).text
        ),
        fault => secrets.hide(&fault.to_string()).text,
    })?;
    Ok(BegunLogin {
        open,
        file,
        listener,
        secrets,
    })
}
