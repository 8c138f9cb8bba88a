//! Checks of the model: its provider, its key, and the connection to a server on this machine.

use std::time::Duration;

use reqwest::Url;

use super::check::{Check, CheckLevel};
use crate::config::{Config, Env};
use co_llm::{Fault, ProviderSettings, ServerMemory};

/// The longest wait for a server's list of models.
const PATIENCE: Duration = Duration::from_secs(5);

/// Checks the usual provider, and each further one of the settings.
pub(super) async fn checks(config: &Config, env: Env<'_>) -> Vec<Check> {
    let mut checks = usual(config, env).await;
    for settings in &config.providers {
        checks.push(profile(settings, env).await);
    }
    checks
}

/// Checks a provider of the setting `providers`: its key, its models and the window of the one that it uses.
async fn profile(settings: &ProviderSettings, env: Env<'_>) -> Check {
    let name = settings.name.as_deref().unwrap_or_default();
    let bad = |fault: &Fault| {
        let Check {
            message, advice, ..
        } = refused("provider", fault);
        let advice = advice.unwrap_or_default();
        Check::bad(
            "provider",
            CheckLevel::Error,
            format!("{name}: {message}"),
            advice,
        )
    };
    let prospect = match co_llm::preview(settings, env) {
        Ok(prospect) => prospect,
        Err(fault) => return bad(&fault),
    };
    let key = match prospect.key {
        Ok(Some(source)) => format!("the key is in {source}"),
        Ok(None) => "no key is needed".to_owned(),
        Err(fault) => return bad(&fault),
    };
    if settings.key_cmd.is_some() && settings.key_env.is_none() {
        let message = format!("{name}: a program prints the key, so the server is not asked");
        return Check::ok("provider", message);
    }
    let connected = co_llm::connect_with(settings, env, PATIENCE, ServerMemory::default());
    let provider = match connected {
        Ok(provider) => provider,
        Err(fault) => return bad(&fault),
    };
    match provider.models().await {
        Ok(models) => {
            let (count, window) = (models.len(), provider.window().await);
            let label = provider.label();
            let message =
                format!("{name}: {key}, {count} models, {label} has a window of {window} tokens");
            Check::ok("provider", message)
        }
        Err(fault) => bad(&fault),
    }
}

/// Checks the usual provider, its key, and a local server.
async fn usual(config: &Config, env: Env<'_>) -> Vec<Check> {
    let prospect = match co_llm::preview(&config.llm, env) {
        Ok(prospect) => prospect,
        Err(fault) => return vec![refused("provider", &fault)],
    };
    let model = prospect.model.map_or_else(
        || "the preferred one of its models".to_owned(),
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
        Fault::Unreachable { .. } | Fault::Tls { .. } | Fault::Stalled(_) => {
            (fault.to_string(), "start the server, or correct base_url")
        }
        Fault::Unauthorized { .. } => (fault.to_string(), "correct the key"),
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
