//! Checks each provider: the key, the server, its models, and the context window of the model in use.

use std::time::Duration;

use futures::future::join_all;

use super::check::{Check, CheckLevel};
use crate::config::{Config, Env};
use crate::error::ErrorText;
use co_llm::{Fault, ProviderPreview, ProviderSettings, ServerMemory};

/// The time-out for one provider. It includes the time of the program that prints the key, because the program may ask for a
/// passphrase.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The time-out while a server sends nothing. It is shorter than [`TIMEOUT`], so that a slow program is not mistaken for a slow
/// server.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks the usual provider and the provider of each profile in the settings.
pub(super) async fn checks(config: &Config, env: Env<'_>) -> Vec<Check> {
    if let Err(fault) = config.check() {
        return vec![refused("all", &fault)];
    }
    let all = std::iter::once(&config.llm).chain(&config.providers);
    join_all(all.map(|settings| check(settings, env))).await
}

async fn check(settings: &ProviderSettings, env: Env<'_>) -> Check {
    let preview = co_llm::preview_provider(settings, env);
    let name = match (&settings.name, &preview) {
        (Some(name), _) => name.clone(),
        (None, Ok(preview)) => preview.provider.to_owned(),
        (None, Err(_)) => "the usual one".to_owned(),
    };
    let asked = tokio::time::timeout(TIMEOUT, ask(settings, env, preview));
    let answer = asked.await.unwrap_or_else(|_| Err(timed_out(settings)));
    answer.map_or_else(
        |fault| refused(&name, &fault),
        |found| Check::ok("provider", format!("{name}{found}")),
    )
}

/// Asks the server of a provider for its models. Returns the result as a text that follows the provider's name.
async fn ask(
    settings: &ProviderSettings,
    env: Env<'_>,
    preview: Result<ProviderPreview, Fault>,
) -> Result<String, Fault> {
    let ProviderPreview { host, key, .. } = preview?;
    let key = match key? {
        Some(source) => format!("the key is in {source}"),
        None => "no key is needed".to_owned(),
    };
    let provider =
        co_llm::make_provider_with(settings, env, STALL_TIMEOUT, ServerMemory::default())?;
    let models = provider.models().await?.len();
    if models == 0 {
        return Err(Fault::NotFound {
            provider: provider.label(),
            model: String::new(),
            body: String::new(),
            near: Vec::new(),
        });
    }
    let window = provider.window().await;
    let label = provider.label();
    Ok(format!(
        " at {host}: {key}, {models} models, {label} has a window of {window} tokens"
    ))
}

/// Returns the fault of a provider that took longer than [`TIMEOUT`].
fn timed_out(settings: &ProviderSettings) -> Fault {
    match &settings.key_cmd {
        Some(argv) => Fault::KeyUnusable {
            source_name: format!("`{}`", argv.join(" ")),
            cause: format!(
                "it took more than {} s: run it in a terminal to see why",
                TIMEOUT.as_secs()
            ),
        },
        None => Fault::Stalled(TIMEOUT),
    }
}

fn refused(name: &str, fault: &Fault) -> Check {
    let text = ErrorText::from(fault);
    let (level, message, advice) = match fault {
        Fault::NotFound { .. } => (
            CheckLevel::Warn,
            "the server lists no models".to_owned(),
            "name one with the setting model".to_owned(),
        ),
        Fault::Cut | Fault::Stalled(_) | Fault::Server { .. } | Fault::RateLimited { .. } => {
            let advice = "start the server, or try again later".to_owned();
            (CheckLevel::Error, text.message, advice)
        }
        _ => (
            CheckLevel::Error,
            text.without_hint(),
            text.hint.unwrap_or_default(),
        ),
    };
    Check::bad("provider", level, format!("{name}: {message}"), advice)
}
