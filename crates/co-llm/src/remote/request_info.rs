//! The facts about one request that its messages, its answer and its errors depend on.

use std::time::Duration;

use crate::provider_table::ProviderInfo;

/// One request: the provider and its address, the model and the keys.
#[derive(Debug, Clone)]
pub(super) struct RequestInfo {
    pub(super) provider: &'static ProviderInfo,
    /// The provider's name for a person; a host if the server is not the provider's own.
    pub(super) title: String,
    pub(super) url: String,
    /// True if the request goes to the provider's own server.
    pub(super) own: bool,
    pub(super) model: String,
    /// The variable, file or program that has the key.
    pub(super) key_source: String,
    /// Keys to remove from a server's error text, which may repeat them.
    pub(super) keys: Vec<String>,
    /// True if the address is a guess because nothing is set.
    pub(super) guessed: bool,
    /// True if Anthropic's thinking is on. Each call must then follow the reasoning that led to it.
    pub(super) thinking: bool,
    /// The longest silence of the server.
    pub(super) stall: Duration,
}
