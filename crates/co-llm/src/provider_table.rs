//! The table of providers, and the limits of their models.
//!
//! To add a provider that speaks one of the protocols, add one row to `ROWS`. The settings, the help, error texts, the search for
//! a key and redaction all read the table. A new protocol is a new variant of [`Protocol`]; the compiler then names the places
//! that must know it.

use reqwest::Url;

use crate::family;

/// The format of requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Anthropic,
    /// OpenAI's Chat Completions API, which many servers support.
    OpenAi,
    /// OpenAI's Responses API.
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

    /// Returns the name of the protocol. Transcripts store the name with signatures, so the name must not change.
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
    /// The name in settings and labels. Transcripts store the name with signatures, so the name must not change.
    pub name: &'static str,
    /// The name that a person sees in messages.
    pub title: &'static str,
    pub protocol: Protocol,
    /// The address of the provider's own server. It ends in a slash. In Azure's address, a placeholder stands for the customer's
    /// part of the host name.
    pub base_url: &'static str,
    /// Further domains of the provider. All hosts in these domains belong to the provider.
    pub domains: &'static [&'static str],
    /// The environment variable in which the provider's own tools expect the key. It is `None` if the provider needs no key.
    pub key_variable: Option<&'static str>,
    /// The HTTP header that carries the key.
    pub key_header: &'static str,
    /// The path, relative to the base address, of a model list with more details than the list of the protocol. Older servers
    /// lack this path.
    pub models_path: Option<&'static str>,
    /// The prefixes of model names that choose this provider if no provider is set.
    pub model_prefixes: &'static [&'static str],
}

/// The placeholder for the customer's part of an address in the table.
const PLACEHOLDER: &str = "RESOURCE";

impl ProviderInfo {
    /// Returns true if the scheme, host and port of this address belong to a server of the provider.
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

    /// Returns true if each customer has a different address. Then the setting `base_url` must name it.
    pub(crate) fn needs_address(&self) -> bool {
        self.base_url.contains(PLACEHOLDER)
    }
}

/// Returns true if the host is this domain or a subdomain.
pub(crate) fn is_below(host: &str, domain: &str) -> bool {
    let above = host.strip_suffix(domain);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

impl ProviderInfo {
    /// Returns a provider whose server needs no key.
    const fn new(
        name: &'static str,
        title: &'static str,
        protocol: Protocol,
        base_url: &'static str,
    ) -> Self {
        Self {
            name,
            title,
            protocol,
            base_url,
            domains: &[],
            key_variable: None,
            key_header: "Authorization",
            models_path: None,
            model_prefixes: &[],
        }
    }

    /// Returns the server of another vendor that speaks Chat Completions.
    const fn compatible(name: &'static str, title: &'static str, base_url: &'static str) -> Self {
        Self::new(name, title, Protocol::OpenAi, base_url)
    }

    const fn key(self, variable: &'static str) -> Self {
        Self {
            key_variable: Some(variable),
            ..self
        }
    }

    const fn domains(self, domains: &'static [&'static str]) -> Self {
        Self { domains, ..self }
    }
}

const OPENAI: ProviderInfo = ProviderInfo {
    model_prefixes: &["gpt-"],
    ..ProviderInfo::compatible("openai", "OpenAI", "https://api.openai.com/v1/")
        .key("OPENAI_API_KEY")
        .domains(&["api.openai.com"])
};

const OLLAMA: ProviderInfo = ProviderInfo::new(
    "ollama",
    "Ollama",
    Protocol::Ollama,
    "http://localhost:11434/",
);

const ROWS: [ProviderInfo; 15] = [
    ProviderInfo {
        key_header: "x-api-key",
        model_prefixes: &["claude-"],
        ..ProviderInfo::new(
            "anthropic",
            "Anthropic",
            Protocol::Anthropic,
            "https://api.anthropic.com/v1/",
        )
        .key("ANTHROPIC_API_KEY")
    },
    OPENAI,
    ProviderInfo {
        name: "openai_responses",
        protocol: Protocol::Responses,
        model_prefixes: &[],
        ..OPENAI
    },
    ProviderInfo {
        key_header: "x-goog-api-key",
        model_prefixes: &["gemini-"],
        ..ProviderInfo::new(
            "gemini",
            "Gemini",
            Protocol::Gemini,
            "https://generativelanguage.googleapis.com/v1beta/",
        )
        .key("GEMINI_API_KEY")
    },
    OLLAMA,
    ProviderInfo::compatible("openrouter", "OpenRouter", "https://openrouter.ai/api/v1/")
        .key("OPENROUTER_API_KEY")
        .domains(&["openrouter.ai"]),
    ProviderInfo::compatible("deepseek", "DeepSeek", "https://api.deepseek.com/v1/")
        .key("DEEPSEEK_API_KEY"),
    ProviderInfo::compatible("mistral", "Mistral", "https://api.mistral.ai/v1/")
        .key("MISTRAL_API_KEY"),
    ProviderInfo::compatible("groq", "Groq", "https://api.groq.com/openai/v1/").key("GROQ_API_KEY"),
    ProviderInfo::compatible("xai", "xAI", "https://api.x.ai/v1/")
        .key("XAI_API_KEY")
        .domains(&["api.x.ai"]),
    ProviderInfo::compatible("together", "Together", "https://api.together.ai/v1/")
        .key("TOGETHER_API_KEY")
        .domains(&["api.together.xyz"]),
    ProviderInfo {
        key_header: "api-key",
        ..ProviderInfo::compatible(
            "azure",
            "Azure OpenAI",
            "https://RESOURCE.openai.azure.com/openai/v1/",
        )
        .key("AZURE_OPENAI_API_KEY")
        .domains(&[
            "openai.azure.com",
            "services.ai.azure.com",
            "cognitiveservices.azure.com",
        ])
    },
    ProviderInfo {
        models_path: Some("../api/v1/models"),
        ..ProviderInfo::compatible("lmstudio", "LM Studio", "http://localhost:1234/v1/")
    },
    ProviderInfo::compatible("vllm", "vLLM", "http://localhost:8000/v1/"),
    ProviderInfo::compatible("llamacpp", "llama.cpp", "http://localhost:8080/v1/"),
];

/// The number of rows that messages name, from the start of the table. The other rows are presets, which the help lists.
const MAIN_ROWS: usize = 5;

/// All providers. If neither a provider nor a model is set, co chooses the first provider whose key is in the environment.
pub static PROVIDERS: [ProviderInfo; ROWS.len()] = ROWS;

/// The provider that is assumed if only the address of a server is set. Most servers support its protocol.
pub static COMPATIBLE: ProviderInfo = OPENAI;

/// The provider that is used if nothing is set and no key is found.
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

/// Returns the variables that may hold a key, without duplicates.
pub fn key_variables() -> Vec<&'static str> {
    key_variables_of(&PROVIDERS)
}

/// Returns the variables that messages name, without duplicates.
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

/// Returns a list in words: `a, b or c`.
pub fn alternatives(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}

/// The context window in tokens of a model whose window co does not know.
pub(crate) const DEFAULT_WINDOW: u64 = 32_768;

/// The default size in tokens of the context window that co asks Ollama for. This size needs little memory. The server's own
/// default is 4096 tokens or more, depending on the memory of the graphics card.
pub(crate) const OLLAMA_WINDOW: u64 = 8_192;

/// The output limit in tokens that co sends to an unknown model in Anthropic's protocol. This protocol requires a limit.
const DEFAULT_OUTPUT: u64 = 64_000;

/// Returns the size in tokens of a model's context window, if the name of the model belongs to a known family.
pub(crate) fn known_window(model: &str) -> Option<u64> {
    family::find(model).and_then(|family| family.window)
}

/// Returns true if a request may ask for the model's reasoning. The Responses API refuses such a request for a model that does
/// not reason.
pub(crate) fn can_return_reasoning(model: &str) -> bool {
    !model.starts_with("gpt-4")
}

/// Returns the largest number of tokens that an answer of the model may have.
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
