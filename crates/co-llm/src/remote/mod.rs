//! A provider behind HTTP.
//!
//! This file puts the parts together. [`conversation`] makes the messages of a request, [`protocol`] writes them and reads
//! the answer in the format of the server, [`error`] turns errors into faults.

mod answer;
mod anthropic;
mod chat_completions;
mod conversation;
mod error;
mod frames;
mod gemini;
mod http;
mod lines;
mod listing;
mod ollama;
mod options;
mod protocol;
mod request_info;
mod responses;
mod retry_after;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use self::conversation::Conversation;
use self::listing::ListedModel;
use self::ollama::ModelLimits;
use self::options::RequestOptions;
use self::request_info::RequestInfo;
use crate::choice::Choice;
use crate::fault::Fault;
use crate::key::Key;
use crate::provider::{Delta, Provider};
use crate::provider_table::{self, Protocol};
use crate::request::ModelRequest;
use crate::settings::ProviderSettings;

/// The version of Anthropic's protocol that this code speaks.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// A provider behind HTTP.
#[derive(Debug)]
pub(super) struct Remote {
    choice: Choice,
    key: Arc<Key>,
    headers: Vec<(String, String)>,
    extra_body: Option<Value>,
    max_output_tokens: Option<u32>,
    context_window: Option<u64>,
    stall: Duration,
    client: OnceCell<reqwest::Client>,
    model: OnceCell<String>,
    /// The context window of an Ollama model, once the server reported it.
    limits: OnceCell<ModelLimits>,
}

impl Remote {
    pub(super) fn new(
        choice: Choice,
        key: Key,
        settings: &ProviderSettings,
        stall: Duration,
    ) -> Self {
        Self {
            model: OnceCell::new_with(choice.model.clone()),
            choice,
            key: Arc::new(key),
            headers: settings.headers.clone(),
            extra_body: settings.extra_body.clone(),
            max_output_tokens: settings.max_output_tokens,
            context_window: settings.context_window,
            stall,
            client: OnceCell::new(),
            limits: OnceCell::new(),
        }
    }

    /// Returns the client. It is made for the first request.
    async fn client(&self) -> Result<&reqwest::Client, Fault> {
        let url = &self.choice.base_url;
        self.client
            .get_or_try_init(|| async { http::client(url) })
            .await
    }

    async fn headers(&self) -> Result<HeaderMap, Fault> {
        let provider = self.choice.provider;
        let mut headers = vec![(
            "User-Agent".to_owned(),
            concat!("co-nvim/", env!("CARGO_PKG_VERSION")).to_owned(),
        )];
        if provider.protocol == Protocol::Anthropic {
            let version = ANTHROPIC_VERSION.to_owned();
            headers.push(("anthropic-version".to_owned(), version));
        }
        if let Some(key) = self.key.get().await? {
            let key = key.expose_secret();
            let value = match provider.key_header {
                "Authorization" => format!("Bearer {key}"),
                _ => key.to_owned(),
            };
            headers.push((provider.key_header.to_owned(), value));
        }
        // Those of the person replace ours.
        headers.extend(self.headers.iter().cloned());
        Ok(http::headers(headers))
    }

    async fn get(&self, path: &str, query: Option<&str>) -> Result<RequestBuilder, Fault> {
        let url = http::endpoint(&self.choice.base_url, path, query)?;
        let request = self.client().await?.get(url);
        Ok(request.headers(self.headers().await?))
    }

    async fn post(
        &self,
        path: &str,
        query: Option<&str>,
        body: &Value,
    ) -> Result<RequestBuilder, Fault> {
        let url = http::endpoint(&self.choice.base_url, path, query)?;
        let request = self.client().await?.post(url).json(body);
        Ok(request.headers(self.headers().await?))
    }

    /// Returns the model's name. If none is set, asks the server for its models.
    async fn model(&self) -> Result<&str, Fault> {
        self.model
            .get_or_try_init(|| async {
                let offered = self.list().await?.into_iter().next();
                offered
                    .map(|model| model.name)
                    .ok_or_else(|| Fault::NotFound {
                        provider: self.choice.title.clone(),
                        model: "(none is set)".to_owned(),
                        body: "the server offers no model".to_owned(),
                    })
            })
            .await
            .map(String::as_str)
    }

    async fn list(&self) -> Result<Vec<ListedModel>, Fault> {
        let (path, query) = listing::path(self.choice.provider.protocol);
        let request = self.get(path, query).await?;
        let info = self.info(String::new());
        let list = http::json(&info, request).await;
        let list = list.map_err(|fault| drop_refused_key(&self.key, fault))?;
        Ok(listing::read(&list))
    }

    fn info(&self, model: String) -> RequestInfo {
        let protocol = self.choice.provider.protocol;
        RequestInfo {
            protocol,
            title: self.choice.title.clone(),
            url: self.choice.base_url.clone(),
            host: self.choice.host(),
            own: self.choice.own,
            model,
            key_source: self.key.place(),
            keys: self.key.used(),
            guessed: self.choice.guessed,
            thinking: protocol == Protocol::Anthropic && self.thinking_enabled(),
            stall: self.stall,
        }
    }

    fn thinking_enabled(&self) -> bool {
        let kind = self
            .extra_body
            .as_ref()
            .and_then(|body| body.pointer("/thinking/type"));
        kind.is_some_and(|kind| kind == "enabled")
    }

    async fn options(&self) -> RequestOptions {
        RequestOptions {
            max_output_tokens: self.max_output_tokens.map(u64::from),
            window: match self.choice.provider.protocol {
                Protocol::Ollama => self.ollama_window().await,
                _ => 0,
            },
            extra_body: self.extra_body.clone(),
        }
    }

    /// Returns the context window to ask Ollama for.
    async fn ollama_window(&self) -> u64 {
        let limits = self.limits.get_or_try_init(|| async {
            let model = self.model().await?;
            let body = json!({ "model": model });
            let request = self.post("api/show", None, &body).await?;
            let request = request.timeout(ollama::SHOW);
            match http::json(&self.info(model.to_owned()), request).await {
                Ok(answer) => Ok(ModelLimits::read(&answer)),
                Err(fault @ (Fault::Unreachable { .. } | Fault::NoProvider)) => Err(fault),
                // An answer without limits is no error.
                Err(_) => Ok(ModelLimits::default()),
            }
        });
        let limits = match limits.await {
            Ok(limits) => *limits,
            Err(fault) => {
                // The request itself reports the fault. The next request asks for the limits again.
                tracing::debug!(%fault, "the model's window is not known");
                ModelLimits::default()
            }
        };
        let body = self.extra_body.as_ref();
        let in_body = body.and_then(|body| body.pointer("/options/num_ctx")?.as_u64());
        limits.window(
            in_body.or(self.context_window),
            provider_table::OLLAMA_WINDOW,
        )
    }
}

#[async_trait]
impl Provider for Remote {
    fn label(&self) -> String {
        match self.model.get() {
            Some(model) => format!("{}/{model}", self.choice.provider.name),
            None => self.choice.provider.name.to_owned(),
        }
    }

    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<Delta, Fault>>, Fault> {
        let model = self.model().await?.to_owned();
        // A program that prints the key runs first, so that errors do not repeat the key.
        self.key.get().await?;
        let info = self.info(model);
        let conversation = Conversation::new(&info, &request);
        let body = protocol::body(&info, &self.options().await, &conversation);
        let (path, query) = protocol::path(&info);
        let sent = self.post(&path, query, &body).await?;
        let response = http::open(&info, sent).await;
        let response = response.map_err(|fault| drop_refused_key(&self.key, fault))?;
        let key = Arc::clone(&self.key);
        let deltas = stream::deltas(response, info, &request.items);
        Ok(deltas
            .map(move |delta| delta.map_err(|fault| drop_refused_key(&key, fault)))
            .boxed())
    }

    async fn models(&self) -> Result<Vec<String>, Fault> {
        let models = self.list().await?.into_iter();
        Ok(models.map(|model| model.name).collect())
    }

    async fn window(&self) -> u64 {
        if self.choice.provider.protocol == Protocol::Ollama {
            return self.ollama_window().await;
        }
        self.context_window.unwrap_or_else(|| {
            provider_table::window(self.model.get().map(String::as_str).unwrap_or_default())
        })
    }

    fn secrets(&self) -> Vec<String> {
        self.key.used()
    }
}

/// Returns the fault, and drops the key if the server refused it.
fn drop_refused_key(key: &Key, fault: Fault) -> Fault {
    if matches!(fault, Fault::Unauthorized { .. } | Fault::Forbidden { .. }) {
        key.refused();
    }
    fault
}

#[cfg(test)]
mod tests;
