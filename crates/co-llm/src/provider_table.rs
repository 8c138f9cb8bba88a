//! The table of providers, and rules about their models.
//!
//! To add a provider that speaks one of the protocols, add one row to [`PROVIDERS`]. The settings, the help, error texts,
//! the search for a key and redaction all read the table. A new protocol is a new variant of [`Protocol`]; the compiler
//! then names the places that must know it.

/// The format of requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Anthropic,
    /// OpenAI's chat completions, which many servers understand.
    OpenAi,
    /// OpenAI's Responses.
    Responses,
    Gemini,
    Ollama,
}

impl Protocol {
    /// Returns its name. Transcripts hold it with signatures, so it must not change.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Responses => "openai_responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }
}

/// The fixed facts about one provider.
#[derive(Debug, PartialEq, Eq)]
pub struct ProviderInfo {
    /// The name in settings and labels. Transcripts hold it with signatures, so it must not change.
    pub name: &'static str,
    /// The name that a person reads in messages.
    pub title: &'static str,
    pub protocol: Protocol,
    /// The address of the provider's own server. Ends in a slash.
    pub base_url: &'static str,
    /// The environment variable that the provider's own tools read the key from; none if it needs no key.
    pub key_variable: Option<&'static str>,
    /// The HTTP header that carries the key.
    pub key_header: &'static str,
    /// The model that is used if none is set; none means the first one that the server offers.
    pub default_model: Option<&'static str>,
    /// A model whose name starts with one of these means this provider, if no provider is set.
    pub model_prefixes: &'static [&'static str],
}

const ANTHROPIC: ProviderInfo = ProviderInfo {
    name: "anthropic",
    title: "Anthropic",
    protocol: Protocol::Anthropic,
    base_url: "https://api.anthropic.com/v1/",
    key_variable: Some("ANTHROPIC_API_KEY"),
    key_header: "x-api-key",
    default_model: Some("claude-sonnet-4-5"),
    model_prefixes: &["claude-"],
};

const OPENAI: ProviderInfo = ProviderInfo {
    name: "openai",
    title: "OpenAI",
    protocol: Protocol::OpenAi,
    base_url: "https://api.openai.com/v1/",
    key_variable: Some("OPENAI_API_KEY"),
    key_header: "Authorization",
    default_model: Some("gpt-5.1"),
    model_prefixes: &["gpt-"],
};

const OPENAI_RESPONSES: ProviderInfo = ProviderInfo {
    name: "openai_responses",
    protocol: Protocol::Responses,
    model_prefixes: &[],
    ..OPENAI
};

const GEMINI: ProviderInfo = ProviderInfo {
    name: "gemini",
    title: "Gemini",
    protocol: Protocol::Gemini,
    base_url: "https://generativelanguage.googleapis.com/v1beta/",
    key_variable: Some("GEMINI_API_KEY"),
    key_header: "x-goog-api-key",
    default_model: Some("gemini-2.5-pro"),
    model_prefixes: &["gemini-"],
};

const OLLAMA: ProviderInfo = ProviderInfo {
    name: "ollama",
    title: "Ollama",
    protocol: Protocol::Ollama,
    base_url: "http://localhost:11434/",
    key_variable: None,
    key_header: "Authorization",
    default_model: None,
    model_prefixes: &[],
};

const ROWS: [ProviderInfo; 5] = [ANTHROPIC, OPENAI, OPENAI_RESPONSES, GEMINI, OLLAMA];

/// Every provider. If neither a provider nor a model is set, the first one answers whose key is in the environment.
pub static PROVIDERS: [ProviderInfo; ROWS.len()] = ROWS;

/// The provider that is assumed if only a server's address is set. Most servers speak its protocol.
pub static COMPATIBLE: ProviderInfo = OPENAI;

/// The provider that is tried if nothing is set and no key is found.
pub static FALLBACK: ProviderInfo = OLLAMA;

/// The names of all providers, in the order of the table.
pub const NAMES: [&str; ROWS.len()] = {
    let mut names = [""; ROWS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = ROWS[at].name;
        at += 1;
    }
    names
};

/// Returns the variables that may hold a key, each once.
pub fn key_variables() -> Vec<&'static str> {
    let mut variables: Vec<_> = PROVIDERS
        .iter()
        .filter_map(|row| row.key_variable)
        .collect();
    variables.dedup();
    variables
}

/// Returns the beginnings of model names that mean a provider.
pub fn model_prefixes() -> Vec<&'static str> {
    let prefixes = PROVIDERS.iter().flat_map(|row| row.model_prefixes);
    prefixes.copied().collect()
}

/// Returns the words as a person reads them: `a, b or c`.
pub fn alternatives(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}

/// The context window in tokens that is assumed of an unknown model.
pub(crate) const DEFAULT_WINDOW: u64 = 32_768;

/// The context window that Ollama is asked for by default. It is twice the server's own default, and needs little memory.
pub(crate) const OLLAMA_WINDOW: u64 = 8_192;

/// Returns the tokens that the window of a model holds, by the model's name.
pub(crate) fn window(model: &str) -> u64 {
    // Longest prefix first.
    const WINDOWS: [(&str, u64); 12] = [
        ("claude-", 200_000),
        ("gpt-4.1", 1_047_576),
        ("gpt-4o", 128_000),
        ("gpt-4", 128_000),
        ("gpt-5", 400_000),
        ("gpt-6", 400_000),
        ("o1", 200_000),
        ("o3", 200_000),
        ("o4", 200_000),
        ("gemini-", 1_048_576),
        ("deepseek-", 128_000),
        ("kimi-", 256_000),
    ];
    // A gateway's names look like `anthropic/claude-…`.
    let bare = model.rsplit('/').next().unwrap_or(model);
    WINDOWS
        .iter()
        .find(|(prefix, _)| bare.starts_with(prefix))
        .map_or(DEFAULT_WINDOW, |(_, window)| *window)
}

/// Returns true if a request may ask for reasoning. The Responses API refuses that for a model without any.
pub(crate) fn can_return_reasoning(model: &str) -> bool {
    !model.starts_with("gpt-4")
}

/// Returns the most tokens that an answer of a model may have.
pub(crate) fn output_limit(model: &str) -> u64 {
    const LIMITS: [(&str, u64); 4] = [
        ("claude-3-5", 8_192),
        ("claude-3", 4_096),
        ("claude-opus-4-1", 32_000),
        ("claude-opus-4-0", 32_000),
    ];
    let bare = model.rsplit('/').next().unwrap_or(model);
    LIMITS
        .iter()
        .find(|(prefix, _)| bare.starts_with(prefix))
        .map_or(64_000, |(_, limit)| *limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_complete() {
        for row in &PROVIDERS {
            assert!(row.base_url.ends_with('/'), "{row:?}");
            assert_eq!(PROVIDERS.iter().filter(|it| it.name == row.name).count(), 1);
        }
        assert_eq!(
            key_variables(),
            ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"]
        );
        assert_eq!(model_prefixes(), ["claude-", "gpt-", "gemini-"]);
        assert_eq!(FALLBACK.key_variable, None);
        assert_eq!(alternatives(&["a", "b", "c"]), "a, b or c");
        assert_eq!(alternatives(&["a"]), "a");
    }

    #[test]
    fn windows_of_well_known_models() {
        assert_eq!(window("claude-sonnet-4-5"), 200_000);
        assert_eq!(window("anthropic/claude-sonnet-4-5"), 200_000);
        assert_eq!(window("gpt-4.1-mini"), 1_047_576);
        assert_eq!(window("smollm2"), DEFAULT_WINDOW);
        assert_eq!(window(""), DEFAULT_WINDOW);
    }

    #[test]
    fn reasoning_is_requested_if_the_model_has_it() {
        assert!(!can_return_reasoning("gpt-4o"));
        assert!(can_return_reasoning("gpt-5.1"));
    }
}
