//! The settings of a provider.

use std::path::PathBuf;

use serde_json::Value;

use crate::effort::Effort;
use crate::provider_table::Protocol;

/// The settings that choose a model, its address and its key. Each of them may be missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProviderSettings {
    /// The name of the profile with these settings. It is `None` for the settings outside profiles.
    pub name: Option<String>,
    /// The name of the provider, one of [`crate::provider_table::NAMES`]. If it is `None`, [`crate::make_provider()`] chooses a
    /// provider.
    pub provider: Option<String>,
    pub model: Option<String>,
    /// The protocol. If it is `None`, the provider's usual protocol is used.
    pub protocol: Option<Protocol>,
    /// The effort of the model's thinking. If it is `None`, requests set no effort.
    pub effort: Option<Effort>,
    pub base_url: Option<String>,
    /// The environment variable with the key. If it is `None`, the provider's usual variable is used.
    pub key_env: Option<String>,
    /// A file with the key. Its mode must be 0600.
    pub key_file: Option<PathBuf>,
    /// The command line (argv) of a program that prints the key.
    pub key_cmd: Option<Vec<String>>,
    /// Names and values of HTTP headers to add to each request.
    pub headers: Vec<(String, String)>,
    /// JSON to merge into the body of each request.
    pub extra_body: Option<Value>,
    /// The output limit of an answer, in tokens.
    pub max_output_tokens: Option<u32>,
    /// The size of the model's context window in tokens. If it is `None`, co uses the size that it knows or the server reports.
    pub context_window: Option<u64>,
    /// True if the model accepts images. If it is `None`, the server's list or the model's family decides.
    pub images: Option<bool>,
}
