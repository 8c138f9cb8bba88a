//! The address and the headers of each call, as a server receives them.

use co_llm::provider_table::NAMES;
use co_llm::{ProviderSettings, STALL_TIMEOUT, ServerMemory};
use serde_json::json;

use super::wire::{WIRES, Wire, go};
use crate::support::http::{Request, Response, Server};

/// A preset: its name, its address, the variable with its key, the header with its key, the path of a request.
type Preset<'a> = (
    &'a str,
    &'a str,
    Option<&'a str>,
    (&'a str, &'a str),
    &'a str,
);

const BEARER: (&str, &str) = ("authorization", "Bearer ");

#[rustfmt::skip]
const PRESETS: [Preset<'_>; 15] = [
    ("anthropic", "https://api.anthropic.com/v1/", Some("ANTHROPIC_API_KEY"), ("x-api-key", ""), "/v1/messages"),
    ("openai", "https://api.openai.com/v1/", Some("OPENAI_API_KEY"), BEARER, "/v1/chat/completions"),
    ("openai_responses", "https://api.openai.com/v1/", Some("OPENAI_API_KEY"), BEARER, "/v1/responses"),
    ("gemini", "https://generativelanguage.googleapis.com/v1beta/", Some("GEMINI_API_KEY"), ("x-goog-api-key", ""),
     "/v1beta/models/m:streamGenerateContent?alt=sse"),
    ("ollama", "http://localhost:11434/", None, BEARER, "/api/chat"),
    ("openrouter", "https://openrouter.ai/api/v1/", Some("OPENROUTER_API_KEY"), BEARER, "/api/v1/chat/completions"),
    ("deepseek", "https://api.deepseek.com/v1/", Some("DEEPSEEK_API_KEY"), BEARER, "/v1/chat/completions"),
    ("mistral", "https://api.mistral.ai/v1/", Some("MISTRAL_API_KEY"), BEARER, "/v1/chat/completions"),
    ("groq", "https://api.groq.com/openai/v1/", Some("GROQ_API_KEY"), BEARER, "/openai/v1/chat/completions"),
    ("xai", "https://api.x.ai/v1/", Some("XAI_API_KEY"), BEARER, "/v1/chat/completions"),
    ("together", "https://api.together.ai/v1/", Some("TOGETHER_API_KEY"), BEARER, "/v1/chat/completions"),
    ("azure", "https://name.openai.azure.com/openai/v1/", Some("AZURE_OPENAI_API_KEY"), ("api-key", ""),
     "/openai/v1/chat/completions"),
    ("lmstudio", "http://localhost:1234/v1/", None, BEARER, "/v1/chat/completions"),
    ("vllm", "http://localhost:8000/v1/", None, BEARER, "/v1/chat/completions"),
    ("llamacpp", "http://localhost:8080/v1/", None, BEARER, "/v1/chat/completions"),
];

/// An environment with the key of every vendor, each with another value.
fn every_key(name: &str) -> Option<String> {
    name.ends_with("_API_KEY").then(|| format!("key-in-{name}"))
}

/// Returns the headers with a key of the environment in them.
fn keys(received: &Request) -> Vec<(&str, &str)> {
    let headers = received.headers.iter();
    let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
    headers
        .filter(|(_, value)| value.contains("key-in-"))
        .collect()
}

/// Answers a list of models, and everything else.
fn answer(wire: Wire, received: &Request) -> Response {
    let model = json!({"id": "m", "name": "m", "context_length": 9_000});
    match received.method.as_str() {
        "GET" => Response::json(200, &json!({"data": [model], "models": [model]})),
        _ if received.path.contains("/api/show") => Response::json(200, &json!({})),
        _ => wire.says("ok"),
    }
}

async fn answers_of(wire: Wire) -> Server {
    Server::start(move |received, _| answer(wire, received))
}

#[tokio::test]
async fn presets() {
    assert_eq!(PRESETS.map(|(name, ..)| name), NAMES);
    for (name, address, variable, (header, before), path) in PRESETS {
        let mut settings = ProviderSettings {
            provider: Some(name.into()),
            model: Some("m".into()),
            base_url: (name == "azure").then(|| "https://name.openai.azure.com".into()),
            ..ProviderSettings::default()
        };
        let preview = co_llm::preview_provider(&settings, &every_key).expect("a provider");
        assert_eq!(preview.base_url, address, "{name}");
        assert_eq!(preview.key, Ok(variable.map(str::to_owned)), "{name}");
        let wire = match name {
            "anthropic" => Wire::Anthropic,
            "openai_responses" => Wire::Responses,
            "gemini" => Wire::Gemini,
            "ollama" => Wire::Ollama,
            _ => Wire::OpenAi,
        };
        let server = answers_of(wire).await;
        // At another address the preset's own path follows the host, and no key goes there that is not named.
        settings.base_url = Some(server.url());
        for key_env in [None, Some(variable.unwrap_or("MY_API_KEY"))] {
            settings.key_env = key_env.map(str::to_owned);
            let provider = co_llm::make_provider(&settings, &every_key).expect("a provider");
            let deltas = go(provider.as_ref()).await;
            assert!(deltas.iter().all(Result::is_ok), "{name}: {deltas:?}");
            let received = server.received().pop().expect("a request");
            assert_eq!(received.path, path, "{name}");
            let key = key_env.map(|variable| format!("{before}key-in-{variable}"));
            let expected: Vec<_> = key.iter().map(|key| (header, key.as_str())).collect();
            assert_eq!(keys(&received), expected, "{name}");
        }
    }
}

#[tokio::test]
async fn an_address_with_a_path_and_a_query_holds_for_every_call() {
    const BASE: &str = "/gate/way/v1";
    for wire in WIRES {
        let server = answers_of(wire).await;
        let settings = ProviderSettings {
            model: None,
            ..wire.settings(&format!("{}{BASE}?api-version=7&x=%2F", server.url()))
        };
        let provider = co_llm::make_provider_with(
            &settings,
            &every_key,
            STALL_TIMEOUT,
            ServerMemory::default(),
        );
        let provider = provider.expect("a provider");
        assert_eq!(provider.models().await.expect("models"), ["m"], "{wire:?}");
        let window = provider.window().await;
        assert_eq!(window, if wire == Wire::Ollama { 8_192 } else { 9_000 });
        let deltas = go(provider.as_ref()).await;
        assert!(deltas.iter().all(Result::is_ok), "{wire:?}: {deltas:?}");
        let mut paths = std::collections::BTreeSet::new();
        for received in server.received() {
            let (path, query) = received.path.split_once('?').expect("a query");
            assert!(
                query.starts_with("api-version=7&x=%2F"),
                "{wire:?}: {query}"
            );
            paths.insert(path.strip_prefix(BASE).expect("the path").to_owned());
        }
        let expected: &[&str] = match wire {
            Wire::OpenAi | Wire::OpenRouter => &["/chat/completions", "/models"],
            Wire::Responses => &["/models", "/responses"],
            Wire::Anthropic => &["/messages", "/models"],
            Wire::Gemini => &["/models", "/models/m:streamGenerateContent"],
            Wire::Ollama => &["/api/chat", "/api/show", "/api/tags"],
        };
        assert_eq!(Vec::from_iter(paths), expected, "{wire:?}");
    }
}

/// A newer version says in a list of its own what each model was loaded with. An older one has no such list.
#[tokio::test]
async fn lm_studio_says_what_a_model_was_loaded_with() {
    let models = json!([{
        "type": "llm", "key": "m", "max_context_length": 131_072,
        "loaded_instances": [{ "id": "m", "config": { "context_length": 4_096 } }],
    }]);
    let newer = json!({ "models": models });
    let older = json!({ "error": "Unexpected endpoint or method. (GET /api/v1/models)" });
    for (own, window) in [(newer, 4_096), (older, 32_768)] {
        let server = Server::start(move |received, _| match received.path.as_str() {
            "/api/v1/models" => Response::json(200, &own),
            _ => Response::json(200, &json!({ "data": [{ "id": "m" }] })),
        });
        let settings = ProviderSettings {
            provider: Some("lmstudio".into()),
            base_url: Some(server.url()),
            ..ProviderSettings::default()
        };
        let provider = co_llm::make_provider(&settings, &|_| None).expect("a provider");
        assert_eq!(provider.models().await.expect("models"), ["m"]);
        assert_eq!(provider.window().await, window);
    }
}
