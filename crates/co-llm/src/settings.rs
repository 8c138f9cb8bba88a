//! The settings of a provider.

use std::path::PathBuf;

use serde_json::Value;

use crate::effort::Effort;
use crate::provider_table::Protocol;

/// The choice of model, address and key. Every field may be left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProviderSettings {
    /// The name of the profile with these settings; none for the usual settings.
    pub name: Option<String>,
    /// A name of [`crate::provider_table::NAMES`]. None: see [`crate::make_provider()`].
    pub provider: Option<String>,
    pub model: Option<String>,
    /// The format of requests. None: the provider's usual protocol.
    pub protocol: Option<Protocol>,
    /// The effort of the model's thinking. None: the provider's usual effort.
    pub effort: Option<Effort>,
    pub base_url: Option<String>,
    /// The environment variable that holds the key, if not the provider's usual one.
    pub key_env: Option<String>,
    /// A file with mode 0600 that holds the key.
    pub key_file: Option<PathBuf>,
    /// A program that prints the key, as argv.
    pub key_cmd: Option<Vec<String>>,
    /// Added to every request.
    pub headers: Vec<(String, String)>,
    /// Merged into every request's body.
    pub extra_body: Option<Value>,
    /// The longest answer to ask for, in tokens.
    pub max_output_tokens: Option<u32>,
    /// The size of the model's context window in tokens, if it is not known.
    pub context_window: Option<u64>,
    /// True if the model takes images. None: what the server or the model's family says.
    pub images: Option<bool>,
}
