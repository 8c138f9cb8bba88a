//! The table of providers, and rules about their models.
//!
//! To add a provider that speaks one of the protocols, add one row to `ROWS`. The settings, the help, error texts,
//! the search for a key and redaction all read the table. A new protocol is a new variant of [`Protocol`]; the compiler
//! then names the places that must know it.

use reqwest::Url;

use crate::family;

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

/// The names of all protocols.
pub const PROTOCOL_NAMES: [&str; 5] = [
    "anthropic",
    "openai",
    "openai_responses",
    "gemini",
    "ollama",
];

impl Protocol {
    /// Returns the protocol with this name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [
            Self::Anthropic,
            Self::OpenAi,
            Self::Responses,
            Self::Gemini,
            Self::Ollama,
        ];
        all.into_iter().find(|protocol| protocol.name() == name)
    }

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
    /// The address of the provider's own server. Ends in a slash. Azure's has a placeholder for the host.
    pub base_url: &'static str,
    /// Further domains of the provider. Every host below one of them is its own.
    pub domains: &'static [&'static str],
    /// The environment variable that the provider's own tools read the key from; none if it needs no key.
    pub key_variable: Option<&'static str>,
    /// The HTTP header that carries the key.
    pub key_header: &'static str,
    /// The path of a list of models that says more than the protocol's, below the base address. Older servers lack it.
    pub models_path: Option<&'static str>,
    /// A model whose name starts with one of these means this provider, if no provider is set.
    pub model_prefixes: &'static [&'static str],
}

/// The name that stands for the customer's own in an address of the table.
const PLACEHOLDER: &str = "RESOURCE";

impl ProviderInfo {
    /// Returns true if this address is at a server of the provider, by its scheme, host and port.
    pub(crate) fn is_own(&self, address: &str) -> bool {
        let (Ok(url), Ok(own)) = (Url::parse(address), Url::parse(self.base_url)) else {
            return false;
        };
        let host = url.host_str().unwrap_or_default();
        let mut domains = self.domains.iter();
        url.scheme() == own.scheme()
            && url.port() == own.port()
            && (url.host() == own.host() || domains.any(|domain| is_below(host, domain)))
    }

    /// Returns true if each customer has an address of their own, which `base_url` must name.
    pub(crate) fn needs_address(&self) -> bool {
        self.base_url.contains(PLACEHOLDER)
    }
}

/// Returns true if a host is this domain or below it.
pub(crate) fn is_below(host: &str, domain: &str) -> bool {
    let above = host.strip_suffix(domain);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

const ANTHROPIC: ProviderInfo = ProviderInfo {
    name: "anthropic",
    title: "Anthropic",
    protocol: Protocol::Anthropic,
    base_url: "https://api.anthropic.com/v1/",
    domains: &[],
    key_variable: Some("ANTHROPIC_API_KEY"),
    key_header: "x-api-key",
    models_path: None,
    model_prefixes: &["claude-"],
};

const OPENAI: ProviderInfo = ProviderInfo {
    domains: &["api.openai.com"],
    model_prefixes: &["gpt-"],
    ..compatible(
        "openai",
        "OpenAI",
        "https://api.openai.com/v1/",
        Some("OPENAI_API_KEY"),
    )
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
    domains: &[],
    key_variable: Some("GEMINI_API_KEY"),
    key_header: "x-goog-api-key",
    models_path: None,
    model_prefixes: &["gemini-"],
};

const OLLAMA: ProviderInfo = ProviderInfo {
    protocol: Protocol::Ollama,
    ..compatible("ollama", "Ollama", "http://localhost:11434/", None)
};

/// A server of another vendor that speaks chat completions.
const fn compatible(
    name: &'static str,
    title: &'static str,
    base_url: &'static str,
    key_variable: Option<&'static str>,
) -> ProviderInfo {
    ProviderInfo {
        name,
        title,
        protocol: Protocol::OpenAi,
        base_url,
        domains: &[],
        key_variable,
        key_header: "Authorization",
        models_path: None,
        model_prefixes: &[],
    }
}

const OPENROUTER: ProviderInfo = ProviderInfo {
    domains: &["openrouter.ai"],
    ..compatible(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1/",
        Some("OPENROUTER_API_KEY"),
    )
};

const XAI: ProviderInfo = ProviderInfo {
    domains: &["api.x.ai"],
    ..compatible("xai", "xAI", "https://api.x.ai/v1/", Some("XAI_API_KEY"))
};

const TOGETHER: ProviderInfo = ProviderInfo {
    domains: &["api.together.xyz"],
    ..compatible(
        "together",
        "Together",
        "https://api.together.ai/v1/",
        Some("TOGETHER_API_KEY"),
    )
};

const AZURE: ProviderInfo = ProviderInfo {
    domains: &[
        "openai.azure.com",
        "services.ai.azure.com",
        "cognitiveservices.azure.com",
    ],
    key_header: "api-key",
    ..compatible(
        "azure",
        "Azure OpenAI",
        "https://RESOURCE.openai.azure.com/openai/v1/",
        Some("AZURE_OPENAI_API_KEY"),
    )
};

const LMSTUDIO: ProviderInfo = ProviderInfo {
    models_path: Some("../api/v1/models"),
    ..compatible("lmstudio", "LM Studio", "http://localhost:1234/v1/", None)
};

const ROWS: [ProviderInfo; 15] = [
    ANTHROPIC,
    OPENAI,
    OPENAI_RESPONSES,
    GEMINI,
    OLLAMA,
    OPENROUTER,
    compatible(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com/v1/",
        Some("DEEPSEEK_API_KEY"),
    ),
    compatible(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1/",
        Some("MISTRAL_API_KEY"),
    ),
    compatible(
        "groq",
        "Groq",
        "https://api.groq.com/openai/v1/",
        Some("GROQ_API_KEY"),
    ),
    XAI,
    TOGETHER,
    AZURE,
    LMSTUDIO,
    compatible("vllm", "vLLM", "http://localhost:8000/v1/", None),
    compatible("llamacpp", "llama.cpp", "http://localhost:8080/v1/", None),
];

/// The number of rows that messages name. The others are presets, which the help lists.
const MAIN_ROWS: usize = 5;

/// Every provider. If neither a provider nor a model is set, the first provider whose key is in the environment answers.
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
    key_variables_of(&PROVIDERS)
}

/// Returns the variables that messages name, each once.
pub fn main_key_variables() -> Vec<&'static str> {
    key_variables_of(&PROVIDERS[..MAIN_ROWS])
}

fn key_variables_of(rows: &[ProviderInfo]) -> Vec<&'static str> {
    let mut variables: Vec<_> = rows.iter().filter_map(|row| row.key_variable).collect();
    variables.dedup();
    variables
}

/// Returns the prefixes of model names that choose a provider.
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

/// The context window that Ollama is asked for by default. It needs little memory. The server's own default is 4096 tokens or
/// more, by the memory of the graphics card.
pub(crate) const OLLAMA_WINDOW: u64 = 8_192;

/// The most tokens of an answer that Anthropic's protocol asks for from an unknown model.
const DEFAULT_OUTPUT: u64 = 64_000;

/// Returns the tokens that the window of a model of a known family holds, by the model's name.
pub(crate) fn known_window(model: &str) -> Option<u64> {
    family::find(model).and_then(|family| family.window)
}

/// Returns true if a request may ask for reasoning. The Responses API refuses that for a model without any.
pub(crate) fn can_return_reasoning(model: &str) -> bool {
    !model.starts_with("gpt-4")
}

/// Returns the most tokens that an answer of a model may have.
pub(crate) fn output_limit(model: &str) -> u64 {
    let known = family::find(model).and_then(|family| family.output);
    known.unwrap_or(DEFAULT_OUTPUT)
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
            main_key_variables(),
            ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"]
        );
        assert_eq!(model_prefixes(), ["claude-", "gpt-", "gemini-"]);
        assert_eq!(FALLBACK.key_variable, None);
        assert_eq!(alternatives(&["a", "b", "c"]), "a, b or c");
        assert_eq!(alternatives(&["a"]), "a");
    }

    #[test]
    fn windows_of_well_known_models() {
        assert_eq!(known_window("claude-sonnet-4-5"), Some(200_000));
        assert_eq!(known_window("anthropic/claude-sonnet-4-5"), Some(200_000));
        assert_eq!(known_window("gpt-4.1-mini"), Some(1_047_576));
        assert_eq!(known_window("smollm2"), None);
        assert_eq!(known_window(""), None);
    }

    #[test]
    fn reasoning_is_requested_if_the_model_has_it() {
        assert!(!can_return_reasoning("gpt-4o"));
        assert!(can_return_reasoning("gpt-5.1"));
    }
}
