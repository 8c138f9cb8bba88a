//! Which provider is meant, where it is, and what is known of its models.
//!
//! Pure: settings and environment in, a choice out.

use super::{Fault, Settings};

/// The window assumed of a model nobody knows.
pub(super) const WINDOW: u64 = 32_768;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Anthropic,
    OpenAi,
    Responses,
    Gemini,
    Ollama,
}

impl Protocol {
    const ALL: [Self; 5] = [
        Self::Anthropic,
        Self::OpenAi,
        Self::Responses,
        Self::Gemini,
        Self::Ollama,
    ];

    /// As it is written in the settings and in signatures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Responses => "openai_responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// As a person reads it.
    fn title(self) -> &'static str {
        match self {
            Self::Anthropic => "Anthropic",
            Self::OpenAi | Self::Responses => "OpenAI",
            Self::Gemini => "Gemini",
            Self::Ollama => "Ollama",
        }
    }

    fn home(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com/v1/",
            Self::OpenAi | Self::Responses => "https://api.openai.com/v1/",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
            Self::Ollama => "http://localhost:11434/",
        }
    }

    /// The path of the API on a server that was named by host alone.
    fn path(self) -> &'static str {
        match self {
            Self::Anthropic | Self::OpenAi | Self::Responses => "v1/",
            Self::Gemini => "v1beta/",
            Self::Ollama => "",
        }
    }

    /// The variable the provider's own tools read; none where no key is usual.
    pub(super) fn variable(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi | Self::Responses => Some("OPENAI_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }

    fn default_model(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("claude-sonnet-4-5"),
            Self::OpenAi | Self::Responses => Some("gpt-5.1"),
            Self::Gemini => Some("gemini-2.5-pro"),
            Self::Ollama => None,
        }
    }

    fn of_model(model: &str) -> Option<Self> {
        const PREFIXES: [(&str, Protocol); 3] = [
            ("claude-", Protocol::Anthropic),
            ("gemini-", Protocol::Gemini),
            ("gpt-", Protocol::OpenAi),
        ];
        PREFIXES
            .iter()
            .find(|(prefix, _)| model.starts_with(prefix))
            .map(|(_, protocol)| *protocol)
    }
}

/// A provider, as far as it is known before the first request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub(super) protocol: Protocol,
    /// As a person reads it: `Anthropic`, or the host of a server of their own.
    pub(super) title: String,
    /// Ends in a slash.
    pub(super) base_url: String,
    /// Whether `base_url` is the provider's own.
    pub(super) own: bool,
    /// None: the first one the server offers.
    pub(super) model: Option<String>,
    /// Nothing was set: Ollama's local address is a guess.
    pub(super) guessed: bool,
}

impl Choice {
    pub(super) fn new(
        settings: &Settings,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Fault> {
        let (protocol, guessed) = pick(settings, env)?;
        let base_url = match &settings.base_url {
            Some(given) => normalise(protocol, given)?,
            None => protocol.home().to_owned(),
        };
        let own = base_url.starts_with(protocol.home());
        let model = settings.model.clone().or_else(|| {
            own.then(|| protocol.default_model().map(str::to_owned))
                .flatten()
        });
        let title = if own {
            protocol.title().to_owned()
        } else {
            host(&base_url)
        };
        Ok(Self {
            protocol,
            title,
            base_url,
            own,
            model,
            guessed,
        })
    }
}

/// What a model of Ollama's is given where nobody says: twice the server's own default, and little memory.
pub(super) const OLLAMA_WINDOW: u64 = 8_192;

/// Tokens the window of a model holds, where nobody said.
pub(super) fn window(model: &str) -> u64 {
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
        .map_or(WINDOW, |(_, window)| *window)
}

fn pick(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<(Protocol, bool), Fault> {
    if let Some(name) = &settings.provider {
        return Protocol::ALL
            .into_iter()
            .find(|protocol| protocol.name() == name)
            .map(|protocol| (protocol, false))
            .ok_or_else(|| Fault::UnknownProvider { name: name.clone() });
    }
    if settings.base_url.is_some() {
        return Ok((Protocol::OpenAi, false));
    }
    if let Some(protocol) = settings.model.as_deref().and_then(Protocol::of_model) {
        return Ok((protocol, false));
    }
    let keyed = [Protocol::Anthropic, Protocol::OpenAi, Protocol::Gemini]
        .into_iter()
        .find(|protocol| {
            protocol
                .variable()
                .and_then(env)
                .is_some_and(|key| !key.trim().is_empty())
        });
    Ok(match keyed {
        Some(protocol) => (protocol, false),
        None => (Protocol::Ollama, settings.model.is_none()),
    })
}

fn normalise(protocol: Protocol, given: &str) -> Result<String, Fault> {
    let unusable = |cause: &str| Fault::Unreachable {
        url: given.to_owned(),
        cause: cause.to_owned(),
    };
    let mut url = reqwest::Url::parse(given).map_err(|error| unusable(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(unusable("not an http or https address"));
    }
    let mut path = url.path().trim_end_matches('/').to_owned() + "/";
    if protocol == Protocol::Ollama && path == "/v1/" {
        // The address of its OpenAI-compatible side; the native one is beside it.
        path = "/".to_owned();
    }
    if path == "/" {
        path.push_str(protocol.path());
    }
    url.set_path(&path);
    Ok(url.into())
}

fn host(base_url: &str) -> String {
    reqwest::Url::parse(base_url)
        .ok()
        .and_then(|url| {
            let host = url.host_str()?.to_owned();
            Some(match url.port() {
                Some(port) => format!("{host}:{port}"),
                None => host,
            })
        })
        .unwrap_or_else(|| base_url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(settings: &Settings, set: &[&str]) -> Choice {
        let env = |name: &str| set.contains(&name).then(|| "key".to_owned());
        Choice::new(settings, &env).unwrap()
    }

    #[test]
    fn the_first_key_that_is_set_names_the_provider() {
        let picked = |set: &[&str]| choose(&Settings::default(), set).protocol;
        assert_eq!(
            picked(&["GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"]),
            Protocol::Anthropic
        );
        assert_eq!(
            picked(&["GEMINI_API_KEY", "OPENAI_API_KEY"]),
            Protocol::OpenAi
        );
        assert_eq!(picked(&["GEMINI_API_KEY"]), Protocol::Gemini);
        assert_eq!(picked(&[]), Protocol::Ollama);
        assert!(choose(&Settings::default(), &[]).guessed);
    }

    #[test]
    fn a_models_name_goes_before_the_keys() {
        let named = |model: &str, set: &[&str]| {
            let settings = Settings {
                model: Some(model.into()),
                ..Settings::default()
            };
            choose(&settings, set)
        };
        let claude = named("claude-sonnet-4-5", &["OPENAI_API_KEY"]);
        assert_eq!(claude.protocol, Protocol::Anthropic);
        let unknown = named("smollm2", &["GEMINI_API_KEY"]);
        assert_eq!(unknown.protocol, Protocol::Gemini);
        // Who names a model means a server: one that does not answer is no guess.
        let local = named("smollm2", &[]);
        assert_eq!((local.protocol, local.guessed), (Protocol::Ollama, false));
    }

    #[test]
    fn a_blank_key_is_none() {
        let env = |name: &str| match name {
            "ANTHROPIC_API_KEY" => Some(" ".to_owned()),
            "GEMINI_API_KEY" => Some("key".to_owned()),
            _ => None,
        };
        let choice = Choice::new(&Settings::default(), &env).unwrap();
        assert_eq!(choice.protocol, Protocol::Gemini);
    }

    #[test]
    fn a_providers_own_address_is_its_own_also_where_it_is_written_out() {
        let settings = Settings {
            base_url: Some("https://api.openai.com/v1".into()),
            ..Settings::default()
        };
        let choice = choose(&settings, &[]);
        assert!(choice.own);
        assert_eq!(choice.title, "OpenAI");
        assert_eq!(choice.model.as_deref(), Some("gpt-5.1"));
    }

    #[test]
    fn a_base_url_alone_is_an_openai_compatible_server() {
        let settings = Settings {
            base_url: Some("http://127.0.0.1:8080".into()),
            ..Settings::default()
        };
        let choice = choose(&settings, &["ANTHROPIC_API_KEY"]);
        assert_eq!(choice.protocol, Protocol::OpenAi);
        assert_eq!(choice.base_url, "http://127.0.0.1:8080/v1/");
        assert_eq!(choice.title, "127.0.0.1:8080");
        assert_eq!(choice.model, None);
        assert!(!choice.own);
    }

    #[test]
    fn addresses_end_where_the_paths_begin() {
        let check = |provider: &str, given: &str, expected: &str| {
            let settings = Settings {
                provider: Some(provider.into()),
                base_url: Some(given.into()),
                ..Settings::default()
            };
            assert_eq!(choose(&settings, &[]).base_url, expected, "{given}");
        };
        check("openai", "http://h:1/v1", "http://h:1/v1/");
        check("openai", "http://h:1/api/v3/", "http://h:1/api/v3/");
        check("anthropic", "http://h:1/", "http://h:1/v1/");
        check("gemini", "http://h:1", "http://h:1/v1beta/");
        check("ollama", "http://h:1/v1", "http://h:1/");
        check("ollama", "http://h:1", "http://h:1/");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for given in ["localhost:8080", "ftp://h", "not a url"] {
            let settings = Settings {
                base_url: Some(given.into()),
                ..Settings::default()
            };
            let refused = Choice::new(&settings, &|_| None);
            assert!(
                matches!(refused, Err(Fault::Unreachable { .. })),
                "{given}: {refused:?}"
            );
        }
    }

    #[test]
    fn an_unknown_provider_is_named() {
        let settings = Settings {
            provider: Some("antropic".into()),
            ..Settings::default()
        };
        assert_eq!(
            Choice::new(&settings, &|_| None),
            Err(Fault::UnknownProvider {
                name: "antropic".into()
            })
        );
    }

    #[test]
    fn windows_of_well_known_models() {
        assert_eq!(window("claude-sonnet-4-5"), 200_000);
        assert_eq!(window("anthropic/claude-sonnet-4-5"), 200_000);
        assert_eq!(window("gpt-4.1-mini"), 1_047_576);
        assert_eq!(window("smollm2"), WINDOW);
        assert_eq!(window(""), WINDOW);
    }
}
