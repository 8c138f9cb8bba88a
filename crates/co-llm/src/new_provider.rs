//! Makes a provider from settings and environment. No other module picks a provider.

use std::sync::Arc;
use std::time::Duration;

use crate::choice::Choice;
use crate::fault::Fault;
use crate::key::{self, Key};
use crate::provider::Provider;
use crate::remote::Remote;
use crate::server_memory::ServerMemory;
use crate::settings::ProviderSettings;

/// The longest silence of a server before its answer is given up.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the provider that the settings and the environment mean.
///
/// If no provider is set, a base address means the provider of the table that has this address, or else a server that speaks
/// OpenAI's protocol. Without an address, the name of the model may mean its vendor. Else the first provider of the table whose
/// key is in the environment is taken, else Ollama on this machine.
///
/// Sends nothing, and builds no HTTP client, before the first request.
pub fn make_provider(
    settings: &ProviderSettings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Provider>, Fault> {
    make_provider_with(settings, env, STALL_TIMEOUT, ServerMemory::default())
}

/// Does the same as [`make_provider`], with another longest silence of the server, and with the facts about servers so far.
pub fn make_provider_with(
    settings: &ProviderSettings,
    env: &dyn Fn(&str) -> Option<String>,
    stall: Duration,
    memory: ServerMemory,
) -> Result<Arc<dyn Provider>, Fault> {
    let choice = Choice::new(settings, env)?;
    let key = Key::find(&choice, settings, env)?;
    Ok(Arc::new(Remote::new(choice, key, settings, stall, memory)))
}

/// The provider that [`make_provider`] would return, described without a request.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderPreview {
    /// The name of the provider in the settings.
    pub provider: &'static str,
    pub base_url: String,
    /// The host of the address, with its port if it has one. The rest of an address may hold a password.
    pub host: String,
    /// The variable, file or program that has the key, never the key itself; none if no key is needed.
    pub key: Result<Option<String>, Fault>,
}

/// Describes the provider that [`make_provider`] would return. Sends no request and runs no program.
pub fn preview_provider(
    settings: &ProviderSettings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<ProviderPreview, Fault> {
    let choice = Choice::new(settings, env)?;
    let key = Key::find(&choice, settings, env);
    Ok(ProviderPreview {
        provider: choice.provider.name,
        key: key.map(|key| key.source_name()),
        host: choice.host(),
        base_url: choice.base_url,
    })
}

/// Returns the person's keys for all providers, for redaction.
///
/// The key that a program prints is not among them: [`Provider::secrets`] returns it after its first use.
pub fn known_keys(
    settings: &ProviderSettings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    key::known(settings, env)
}
