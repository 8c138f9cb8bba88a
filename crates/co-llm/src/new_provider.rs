//! Makes a provider from the settings and the environment. No other module chooses a provider.

use std::sync::Arc;
use std::time::Duration;

use crate::choice::Choice;
use crate::fault::Fault;
use crate::key::{self, Key};
use crate::provider::Provider;
use crate::remote::Remote;
use crate::server_memory::ServerMemory;
use crate::settings::ProviderSettings;

/// The time-out of a request while the server sends nothing.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the provider that the settings and the environment choose.
///
/// The first rule that applies chooses the provider:
/// - A set provider is taken.
/// - A base address chooses the provider of the table with this address, or else a server with OpenAI's protocol.
/// - The name of the model may choose its vendor.
/// - The first provider of the table whose key is in the environment is taken.
/// - Otherwise Ollama on this machine is taken.
///
/// Sends nothing, and builds no HTTP client, before the first request.
pub fn make_provider(
    settings: &ProviderSettings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Provider>, Fault> {
    make_provider_with(settings, env, STALL_TIMEOUT, ServerMemory::default())
}

/// Does the same as [`make_provider`]. `stall` is the time-out while the server sends nothing. `memory` has the facts about
/// servers that are known so far.
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

/// A description of the provider that [`make_provider`] would return. No request is sent to make the description.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderPreview {
    /// The name of the provider in the settings.
    pub provider: &'static str,
    pub base_url: String,
    /// The host of the address, with its port if it has one. The rest of the address is left out because it may contain a
    /// password.
    pub host: String,
    /// The variable, file or program that provides the key, never the key itself. It is `None` if no key is needed.
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
/// A key that a program prints is missing here: [`Provider::secrets`] returns it after its first use.
pub fn known_keys(
    settings: &ProviderSettings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    key::known(settings, env)
}
