//! Chooses a provider from the settings and the environment.
//!
//! Does no I/O. Facts about the providers are in [`crate::provider_table`].

use crate::fault::Fault;
use crate::provider_table::{COMPATIBLE, FALLBACK, PROVIDERS, Protocol, ProviderInfo};
use crate::settings::ProviderSettings;

/// The chosen provider and the facts that are known about it before the first request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub(super) provider: &'static ProviderInfo,
    pub(super) protocol: Protocol,
    /// The name to show to the person: `Anthropic`, or the host of another server.
    pub(super) title: String,
    /// The base address. It ends in a slash.
    pub(super) base_url: String,
    /// True if `base_url` is the address of the provider's own server.
    pub(super) own: bool,
    /// The name of the model. If it is `None`, the first request asks the server for its models and takes the preferred one.
    pub(super) model: Option<String>,
    /// True if no setting and no key chose the provider. Then it is the fallback, and its address is a guess.
    pub(super) guessed: bool,
}

impl Choice {
    pub(super) fn new(
        settings: &ProviderSettings,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Fault> {
        let (provider, guessed) = pick(settings, env)?;
        let base_url = match &settings.base_url {
            Some(given) => normalise(provider, given)?,
            None => match ollama_host(provider, env) {
                Some(given) => normalise(provider, &given)?,
                None if provider.needs_address() => {
                    return Err(Fault::NoAddress {
                        provider: provider.title.to_owned(),
                    });
                }
                None => provider.base_url.to_owned(),
            },
        };
        let own = provider.is_own(&base_url);
        let usual = match provider.protocol {
            // Its newer models refuse calls over chat completions, unless they do not reason.
            Protocol::OpenAi if own && provider.name == COMPATIBLE.name => Protocol::Responses,
            protocol => protocol,
        };
        Ok(Self {
            provider,
            protocol: settings.protocol.unwrap_or(usual),
            title: match own {
                true => provider.title.to_owned(),
                false => host(&base_url),
            },
            base_url,
            own,
            model: settings.model.clone(),
            guessed,
        })
    }

    /// Returns the HTTP header that carries the key.
    pub(super) fn key_header(&self) -> &'static str {
        match self.protocol {
            protocol if protocol == self.provider.protocol => self.provider.key_header,
            Protocol::Anthropic => "x-api-key",
            Protocol::Gemini => "x-goog-api-key",
            Protocol::OpenAi | Protocol::Responses | Protocol::Ollama => "Authorization",
        }
    }

    /// Returns the address for messages. The address has no password and no query, because they may contain a key.
    pub(super) fn shown_url(&self) -> String {
        let Ok(mut url) = reqwest::Url::parse(&self.base_url) else {
            return self.base_url.clone();
        };
        url.set_query(None);
        // Both fail for addresses without a host only, which `normalise` refuses.
        let _ = url.set_username("").and(url.set_password(None));
        url.into()
    }

    /// Returns the host of the address, with its port if it has one.
    pub(super) fn host(&self) -> String {
        host(&self.base_url)
    }
}

impl ProviderSettings {
    /// Returns the settings for a request to another model.
    ///
    /// If neither a provider nor an address is set, the model's name may select another vendor. In this case the result has no
    /// key, headers, fields and limits, because they were meant for the first vendor.
    pub fn with_model(&self, model: &str, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let other = Self {
            model: Some(model.to_owned()),
            ..self.clone()
        };
        let vendor = |settings| pick(settings, env).map(|(provider, _)| provider.name);
        if vendor(&other) == vendor(self) {
            return other;
        }
        Self {
            model: other.model,
            effort: self.effort,
            ..Self::default()
        }
    }
}

impl ProviderSettings {
    /// Returns the settings for a model of the given provider. The name of the model does not change the provider.
    ///
    /// The result keeps the key, headers, fields and limits only if they are meant for this provider.
    pub fn with_provider(
        &self,
        provider: &str,
        model: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let is_same = pick(self, env).is_ok_and(|(own, _)| own.name == provider);
        let kept = if is_same {
            self.clone()
        } else {
            Self::default()
        };
        Self {
            provider: Some(provider.to_owned()),
            model: Some(model.to_owned()),
            effort: self.effort,
            ..kept
        }
    }
}

/// Returns the provider. The second value is true if the provider is a guess.
fn pick(
    settings: &ProviderSettings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<(&'static ProviderInfo, bool), Fault> {
    let find = |wanted: &dyn Fn(&ProviderInfo) -> bool| PROVIDERS.iter().find(|row| wanted(row));
    if let Some(name) = &settings.provider {
        let unknown = || Fault::UnknownProvider { name: name.clone() };
        return Ok((find(&|row| row.name == name).ok_or_else(unknown)?, false));
    }
    if let Some(address) = &settings.base_url {
        let vendor = find(&|row| {
            row.protocol == COMPATIBLE.protocol && row.key_variable.is_some() && row.is_own(address)
        });
        return Ok((vendor.unwrap_or(&COMPATIBLE), false));
    }
    let makes = |row: &ProviderInfo, model: &str| {
        let mut prefixes = row.model_prefixes.iter();
        prefixes.any(|prefix| model.starts_with(prefix))
    };
    let has_key = |row: &ProviderInfo| {
        let key = row.key_variable.and_then(env);
        key.is_some_and(|key| !key.trim().is_empty())
    };
    let model = settings.model.as_deref();
    let by_model = model.and_then(|model| find(&|row| makes(row, model)));
    Ok(match by_model.or_else(|| find(&has_key)) {
        Some(provider) => (provider, false),
        None => (&FALLBACK, model.is_none()),
    })
}

/// Returns the address in the variable `OLLAMA_HOST`, which Ollama's own tools use. The variable may also hold only a host or a
/// port.
fn ollama_host(provider: &ProviderInfo, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let given = env("OLLAMA_HOST").filter(|_| provider.protocol == Protocol::Ollama)?;
    let given = given.trim();
    if given.is_empty() {
        return None;
    }
    if given.contains("://") {
        return Some(given.to_owned());
    }
    let (host, port) = match given.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, port),
        _ => (given, "11434"),
    };
    // A server listens at all addresses like this.
    let host = if matches!(host, "" | "0.0.0.0") {
        "127.0.0.1"
    } else {
        host
    };
    Some(format!("http://{host}:{port}"))
}

/// Returns the address in a form to which the paths of the API can be appended.
fn normalise(provider: &ProviderInfo, given: &str) -> Result<String, Fault> {
    let unusable = |cause: &str| Fault::Unreachable {
        url: without_secrets(given),
        cause: cause.to_owned(),
    };
    let mut url = reqwest::Url::parse(given).map_err(|error| unusable(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(unusable("not an http or https address"));
    }
    let mut path = url.path().trim_end_matches('/').to_owned() + "/";
    if provider.protocol == Protocol::Ollama && path == "/v1/" {
        // The address of its OpenAI-compatible API. The native API is beside it.
        path = "/".to_owned();
    }
    if path == "/" {
        // Only a host is given: the API has the same path there as on the provider's own server.
        let own = reqwest::Url::parse(provider.base_url);
        path = own.map_or(path, |own| own.path().to_owned());
    }
    url.set_path(&path);
    Ok(url.into())
}

/// Removes a password and a query from a text that is no valid address, so that messages can show it.
fn without_secrets(given: &str) -> String {
    let (rest, _) = given.split_once('?').unwrap_or((given, ""));
    let Some((_, host)) = rest.rsplit_once('@') else {
        return rest.to_owned();
    };
    match rest.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{host}"),
        None => host.to_owned(),
    }
}

/// Returns the host of an address, with its port if it has one.
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

    fn at(base_url: &str) -> ProviderSettings {
        ProviderSettings {
            base_url: Some(base_url.into()),
            ..ProviderSettings::default()
        }
    }

    fn choose(settings: &ProviderSettings, set: &[&str]) -> Choice {
        let env = |name: &str| set.contains(&name).then(|| "key".to_owned());
        Choice::new(settings, &env).unwrap()
    }

    #[test]
    fn the_first_key_that_is_set_names_the_provider() {
        let picked = |set: &[&str]| choose(&ProviderSettings::default(), set).provider.protocol;
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
        assert!(choose(&ProviderSettings::default(), &[]).guessed);
    }

    #[test]
    fn a_models_name_goes_before_the_keys() {
        let named = |model: &str, set: &[&str]| {
            let settings = ProviderSettings {
                model: Some(model.into()),
                ..ProviderSettings::default()
            };
            choose(&settings, set)
        };
        let claude = named("claude-sonnet-4-5", &["OPENAI_API_KEY"]);
        assert_eq!(claude.provider.protocol, Protocol::Anthropic);
        let unknown = named("smollm2", &["GEMINI_API_KEY"]);
        assert_eq!(unknown.provider.protocol, Protocol::Gemini);
        // A person who names a model means a server, so this is no guess.
        let local = named("smollm2", &[]);
        assert_eq!(
            (local.provider.protocol, local.guessed),
            (Protocol::Ollama, false)
        );
    }

    #[test]
    fn a_provider_that_was_chosen_keeps_a_model_whose_name_means_another() {
        let env = |name: &str| (name == "OPENAI_API_KEY").then(|| "key".to_owned());
        let at = |settings: &ProviderSettings, provider: &str| {
            let chosen = settings.with_provider(provider, "gpt-oss:20b", &env);
            (
                chosen.base_url.clone(),
                Choice::new(&chosen, &env).unwrap().provider.name,
            )
        };
        let usual = ProviderSettings::default();
        assert_eq!(at(&usual, "ollama"), (None, "ollama"));
        let own = ProviderSettings {
            provider: Some("ollama".into()),
            base_url: Some("http://box:11434".into()),
            ..usual
        };
        assert_eq!(at(&own, "ollama"), (own.base_url.clone(), "ollama"));
        assert_eq!(at(&own, "openai"), (None, "openai"));
    }

    #[test]
    fn a_blank_key_is_none() {
        let env = |name: &str| match name {
            "ANTHROPIC_API_KEY" => Some(" ".to_owned()),
            "GEMINI_API_KEY" => Some("key".to_owned()),
            _ => None,
        };
        let choice = Choice::new(&ProviderSettings::default(), &env).unwrap();
        assert_eq!(choice.provider.protocol, Protocol::Gemini);
    }

    #[test]
    fn a_providers_own_address_is_its_own_also_where_it_is_written_out() {
        let settings = at("https://api.openai.com/v1");
        let choice = choose(&settings, &[]);
        assert!(choice.own);
        assert_eq!(choice.title, "OpenAI");
        assert_eq!(choice.protocol, Protocol::Responses);
        assert_eq!(choice.model, None, "the server says what it has");
        let settings = ProviderSettings {
            protocol: Some(Protocol::OpenAi),
            ..settings
        };
        assert_eq!(choose(&settings, &[]).protocol, Protocol::OpenAi);
    }

    #[test]
    fn the_address_of_azure_must_be_named() {
        let settings = ProviderSettings {
            provider: Some("azure".into()),
            ..ProviderSettings::default()
        };
        let refused = Choice::new(&settings, &|_| None);
        assert!(
            matches!(refused, Err(Fault::NoAddress { .. })),
            "{refused:?}"
        );
        let settings = ProviderSettings {
            base_url: Some("https://name.services.ai.azure.com".into()),
            ..settings
        };
        let choice = choose(&settings, &[]);
        assert_eq!(
            choice.base_url,
            "https://name.services.ai.azure.com/openai/v1/"
        );
        assert_eq!(choice.title, "Azure OpenAI");
        assert_eq!(choice.key_header(), "api-key");
    }

    #[test]
    fn a_base_url_alone_is_an_openai_compatible_server() {
        let settings = at("http://127.0.0.1:8080");
        let choice = choose(&settings, &["ANTHROPIC_API_KEY"]);
        assert_eq!(choice.protocol, Protocol::OpenAi);
        assert_eq!(choice.base_url, "http://127.0.0.1:8080/v1/");
        assert_eq!(choice.title, "127.0.0.1:8080");
        assert_eq!(choice.model, None);
        assert!(!choice.own);
    }

    #[test]
    fn ollama_is_where_its_variable_says() {
        let check = |given: &str, expected: &str| {
            let env = |name: &str| (name == "OLLAMA_HOST").then(|| given.to_owned());
            let choice = Choice::new(&ProviderSettings::default(), &env).unwrap();
            assert_eq!(choice.base_url, expected, "{given}");
        };
        check("", "http://localhost:11434/");
        check("0.0.0.0", "http://127.0.0.1:11434/");
        check(":7000", "http://127.0.0.1:7000/");
        check("box", "http://box:11434/");
        check("box:7000", "http://box:7000/");
        check("https://box/ollama", "https://box/ollama/");
    }

    #[test]
    fn addresses_end_where_the_paths_begin() {
        let check = |provider: &str, given: &str, expected: &str| {
            let settings = ProviderSettings {
                provider: Some(provider.into()),
                base_url: Some(given.into()),
                ..ProviderSettings::default()
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
    fn an_address_is_shown_without_what_may_be_a_key() {
        let settings = at("https://me:secret@h:1/v1?key=secret");
        assert_eq!(choose(&settings, &[]).shown_url(), "https://h:1/v1/");
    }

    #[test]
    fn an_invalid_address_is_shown_without_what_may_be_a_key() {
        let check = |given: &str, expected: &str| {
            let settings = at(given);
            let Err(Fault::Unreachable { url, .. }) = Choice::new(&settings, &|_| None) else {
                panic!("{given} is refused");
            };
            assert_eq!(url, expected);
        };
        check(
            "http://me:secret@h:99999/v1?key=secret",
            "http://h:99999/v1",
        );
        check("ftp://me:se@cret@h/v1", "ftp://h/v1");
        check("me:secret@h", "h");
        check("localhost:8080", "localhost:8080");
        check("not a url", "not a url");
    }

    #[test]
    fn an_unknown_provider_is_named() {
        let settings = ProviderSettings {
            provider: Some("antropic".into()),
            ..ProviderSettings::default()
        };
        assert_eq!(
            Choice::new(&settings, &|_| None),
            Err(Fault::UnknownProvider {
                name: "antropic".into()
            })
        );
    }
}
