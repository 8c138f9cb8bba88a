//! Collects the keys and secret headers of the provider settings that co can read without running a program, for redaction.

use secrecy::ExposeSecret;

use super::source::sources;
use crate::provider_table::{PROVIDERS, key_variables};
use crate::settings::ProviderSettings;

/// Returns the keys of all providers that co can read without running a program.
pub(crate) fn known(
    settings: &ProviderSettings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let found = sources(settings, key_variables());
    let mut keys: Vec<String> = found
        .iter()
        .filter_map(|source| source.read(env).ok().flatten())
        .map(|key| key.expose_secret().to_owned())
        .collect();
    for (name, value) in &settings.headers {
        if is_secret_header(name) {
            keys.push(value.clone());
            // The key alone, as in `Bearer abc`.
            keys.extend(value.split_once(' ').map(|(_, key)| key.to_owned()));
        }
    }
    let url = settings.base_url.as_deref().map(reqwest::Url::parse);
    if let Some(Ok(url)) = url {
        keys.extend(url.password().map(str::to_owned));
    }
    keys.retain(|key| !key.trim().is_empty());
    keys.sort();
    keys.dedup();
    keys
}

fn is_secret_header(name: &str) -> bool {
    const PARTS: [&str; 6] = ["auth", "key", "token", "secret", "password", "cookie"];
    let name = name.to_ascii_lowercase();
    let mut own = PROVIDERS.iter().map(|row| row.key_header);
    own.any(|own| own.eq_ignore_ascii_case(&name)) || PARTS.iter().any(|part| name.contains(part))
}
