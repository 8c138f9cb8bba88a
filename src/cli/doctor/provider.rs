//! Checks of the model: its provider, its key, and the connection to a server on this machine.

use std::time::Duration;

use reqwest::Url;

use super::check::{Check, CheckLevel};
use crate::config::{Config, Env};
use co_llm::Fault;

/// Checks the provider, its key, and a local server.
pub(super) async fn checks(config: &Config, env: Env<'_>) -> Vec<Check> {
    let prospect = match co_llm::preview(&config.llm, env) {
        Ok(prospect) => prospect,
        Err(fault) => return vec![refused("provider", &fault)],
    };
    let model = prospect.model.map_or_else(
        || "the first model it offers".to_owned(),
        |model| format!("model {model}"),
    );
    let mut checks = vec![
        Check::ok("provider", format!("{}, {model}", prospect.provider)),
        match &prospect.key {
            Ok(Some(source)) => Check::ok("key", format!("{source} has it")),
            Ok(None) => Check::ok("key", "none is needed"),
            Err(fault) => refused("key", fault),
        },
    ];
    if let Some(url) = Url::parse(&prospect.base_url).ok().filter(local) {
        checks.push(server(&url).await);
    }
    checks
}

fn refused(name: &'static str, fault: &Fault) -> Check {
    let (message, advice) = match fault {
        Fault::NoKey { variable, .. } => (
            format!("{fault}: {variable} is not in the environment Neovim was started from"),
            "set it, or name what has the key with api_key_env, api_key_file or api_key_cmd",
        ),
        Fault::KeyUnusable { cause, .. } => (
            format!("{fault}: {cause}"),
            "correct it, or set another of api_key_env, api_key_file and api_key_cmd",
        ),
        other => (
            other.to_string(),
            "correct provider and base_url; :help co-settings",
        ),
    };
    Check::bad(name, CheckLevel::Error, message, advice)
}

/// Returns the host without the brackets that a URL puts around an IPv6 address.
fn host(url: &Url) -> &str {
    let host = url.host_str().unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']')
}

fn local(url: &Url) -> bool {
    let address = host(url).parse::<std::net::IpAddr>();
    host(url) == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Checks that a server accepts a connection. The message has host and port only, because a URL may hold a password.
async fn server(url: &Url) -> Check {
    let host = host(url);
    let port = url.port_or_known_default().unwrap_or(80);
    let connect = tokio::net::TcpStream::connect((host, port));
    match tokio::time::timeout(Duration::from_secs(3), connect).await {
        Ok(Ok(_)) => Check::ok("server", format!("{host} port {port} answers")),
        Ok(Err(_)) | Err(_) => Check::bad(
            "server",
            CheckLevel::Error,
            format!("nothing answers at {host} port {port}"),
            "start the server, or set provider and base_url to another",
        ),
    }
}
