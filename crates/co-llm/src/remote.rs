//! A provider behind HTTP.
//!
//! This file connects the other modules. [`conversation`] makes the messages of a request. [`protocol`] writes the messages and
//! reads the answer in the format of the server. [`error`] turns errors into faults.

mod adapt;
mod answer;
mod anthropic;
mod caching;
mod chat_completions;
mod conversation;
mod error;
mod frame_reader;
mod frames;
mod gemini;
mod http;
mod images;
mod lines;
mod listing;
mod ollama;
mod options;
mod overflow;
mod protocol;
mod proxy;
mod reasoning;
mod request_info;
mod responses;
mod retry_after;
mod rules;
mod stream;
#[cfg(test)]
mod strict;

pub use http::client as http_client;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{RequestBuilder, Response};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use self::conversation::Conversation;
use self::ollama::ModelLimits;
use self::options::RequestOptions;
use self::request_info::RequestInfo;
use crate::choice::Choice;
use crate::effort::Effort;
use crate::family;
use crate::fault::Fault;
use crate::key::Key;
use crate::listed_model::ListedModel;
use crate::price::Price;
use crate::provider::{Delta, Provider};
use crate::provider_table::{self, Protocol};
use crate::request::ModelRequest;
use crate::server_memory::{Adaptation, RequestKey, ServerMemory};
use crate::settings::ProviderSettings;

/// The version of Anthropic's protocol that this code speaks.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// A provider behind HTTP.
#[derive(Debug)]
pub(super) struct Remote {
    /// The name of the profile. Without a profile, it is the name of the provider.
    name: String,
    choice: Choice,
    key: Arc<Key>,
    headers: Vec<(String, String)>,
    extra_body: Option<Value>,
    max_output_tokens: Option<u32>,
    context_window: Option<u64>,
    images: Option<bool>,
    effort: Option<Effort>,
    stall: Duration,
    memory: ServerMemory,
    client: OnceCell<reqwest::Client>,
    model: OnceCell<String>,
    /// True after the person was told the name of the model.
    said_model: AtomicBool,
    /// The limits of an Ollama model, after the server reported them.
    limits: OnceCell<ModelLimits>,
}

impl Remote {
    pub(super) fn new(
        choice: Choice,
        key: Key,
        settings: &ProviderSettings,
        stall: Duration,
        memory: ServerMemory,
    ) -> Self {
        Self {
            name: settings
                .name
                .clone()
                .unwrap_or_else(|| choice.provider.name.to_owned()),
            model: OnceCell::new_with(choice.model.clone()),
            choice,
            key: Arc::new(key),
            headers: settings.headers.clone(),
            extra_body: settings.extra_body.clone(),
            max_output_tokens: settings.max_output_tokens,
            context_window: settings.context_window,
            images: settings.images,
            effort: settings.effort,
            stall,
            memory,
            said_model: AtomicBool::new(false),
            client: OnceCell::new(),
            limits: OnceCell::new(),
        }
    }

    /// Returns the HTTP client. The first call makes it on a thread for blocking work, because making it may read the system's
    /// certificates.
    async fn client(&self) -> Result<&reqwest::Client, Fault> {
        self.client
            .get_or_try_init(|| async {
                let (memory, url) = (self.memory.clone(), self.choice.base_url.clone());
                let make = move || memory.client(&url, http::client);
                match tokio::task::spawn_blocking(make).await {
                    Ok(made) => made,
                    Err(error) => match error.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        // The backend ends.
                        Err(error) => Err(Fault::Unreachable {
                            url: self.choice.shown_url(),
                            cause: error.to_string(),
                        }),
                    },
                }
            })
            .await
    }

    async fn headers(&self, more: Option<(String, String)>) -> Result<HeaderMap, Fault> {
        let header = self.choice.key_header();
        let mut headers = vec![(
            "User-Agent".to_owned(),
            concat!("co-nvim/", env!("CARGO_PKG_VERSION")).to_owned(),
        )];
        if self.choice.protocol == Protocol::Anthropic {
            let version = ANTHROPIC_VERSION.to_owned();
            headers.push(("anthropic-version".to_owned(), version));
        }
        if let Some(key) = self.key.get().await? {
            let key = key.expose_secret();
            let value = match header {
                "Authorization" => format!("Bearer {key}"),
                _ => key.to_owned(),
            };
            headers.push((header.to_owned(), value));
        }
        headers.extend(more);
        // Those of the person replace ours.
        headers.extend(self.headers.iter().cloned());
        Ok(http::headers(headers))
    }

    async fn get(&self, path: &str, query: Option<&str>) -> Result<RequestBuilder, Fault> {
        let url = http::endpoint(&self.choice.base_url, path, query)?;
        let request = self.client().await?.get(url);
        Ok(request.headers(self.headers(None).await?))
    }

    async fn post(
        &self,
        path: &str,
        query: Option<&str>,
        body: Vec<u8>,
        header: Option<(String, String)>,
    ) -> Result<RequestBuilder, Fault> {
        let url = http::endpoint(&self.choice.base_url, path, query)?;
        let request = self.client().await?.post(url).body(body);
        let request = request.header(CONTENT_TYPE, "application/json");
        Ok(request.headers(self.headers(header).await?))
    }

    /// Returns the name of the model. If no model is set, asks the server for its models and chooses one.
    async fn model(&self) -> Result<&str, Fault> {
        self.model
            .get_or_try_init(|| async {
                let offered = self.list().await?;
                let chosen = family::choose(&offered);
                chosen
                    .map(|model| model.name.clone())
                    .ok_or_else(|| Fault::NotFound {
                        provider: self.choice.title.clone(),
                        model: "(none is set)".to_owned(),
                        body: "the server offers no model".to_owned(),
                        near: Vec::new(),
                    })
            })
            .await
            .map(String::as_str)
    }

    /// Asks the server for its models and returns them. Each call sends a new request.
    async fn list(&self) -> Result<Arc<[ListedModel]>, Fault> {
        let mut models = match self.choice.provider.models_path {
            Some(path) => self.list_at(path, None).await.unwrap_or_default(),
            None => Vec::new(),
        };
        if models.is_empty() {
            let (path, query) = listing::path(self.choice.protocol);
            models = self.list_at(path, query).await?;
        }
        let models: Arc<[ListedModel]> = models.into();
        let url = &self.choice.base_url;
        self.memory
            .keep_models(&self.name, url, Arc::clone(&models));
        Ok(models)
    }

    async fn list_at(&self, path: &str, query: Option<&str>) -> Result<Vec<ListedModel>, Fault> {
        let request = self.get(path, query).await?;
        let info = self.info(String::new());
        let list = http::json(&info, request).await;
        let list = list.map_err(|fault| drop_refused_key(&self.key, fault))?;
        Ok(listing::read(&list))
    }

    /// Returns the server's information about the model. Asks the server until it sends a list of models or shows that it has no
    /// list.
    async fn listed(&self, model: &str) -> Option<ListedModel> {
        let url = &self.choice.base_url;
        let models = match self.memory.models(&self.name, url) {
            Some(models) => models,
            None => match self.list().await {
                Ok(models) => models,
                Err(fault) => {
                    tracing::debug!(%fault, "the server lists no models");
                    if shows_no_list(&fault) {
                        self.memory.keep_models(&self.name, url, Arc::new([]));
                    }
                    return None;
                }
            },
        };
        models.iter().find(|listed| listed.name == model).cloned()
    }

    fn info(&self, model: String) -> RequestInfo {
        let host = self.choice.host();
        let adaptations = self.memory.adaptations(&host, &model);
        let protocol = if adaptations.contains(&Adaptation::UseResponses) {
            Protocol::Responses
        } else if adaptations.contains(&Adaptation::UseChatCompletions) {
            Protocol::OpenAi
        } else {
            self.choice.protocol
        };
        let mut info = RequestInfo {
            protocol,
            title: self.choice.title.clone(),
            url: self.choice.shown_url(),
            host,
            own: self.choice.own,
            model,
            key_source: self.key.place(),
            key_variable: self.key.variable(),
            keys: self.key.used(),
            guessed: self.choice.guessed,
            images: false,
            thinking: protocol == Protocol::Anthropic && self.thinking_enabled(),
            stall: self.stall,
            effort: self.effort,
            adaptations,
        };
        info.thinking |= reasoning::has_budget(&info);
        info
    }

    fn thinking_enabled(&self) -> bool {
        let kind = self
            .extra_body
            .as_ref()
            .and_then(|body| body.pointer("/thinking/type"));
        kind.is_some_and(|kind| kind == "enabled")
    }

    async fn options(&self, room: Option<u64>) -> RequestOptions {
        let ollama = self.choice.protocol == Protocol::Ollama;
        let is_known = room.is_some() && (ollama || self.known_window().await.is_some());
        RequestOptions {
            max_output_tokens: self.max_output_tokens.map(u64::from),
            // A guess must not cut answers short.
            room: room.filter(|_| is_known),
            answer_limit: None,
            window: match self.choice.protocol {
                Protocol::Ollama => self.ollama_window().await,
                _ => 0,
            },
            extra_body: self.extra_body.clone(),
        }
    }

    /// Returns the notices for the person before the first answer: the name of the model, if the person chose none.
    fn first_words(&self, model: &str) -> Vec<String> {
        let first = !self.said_model.swap(true, Ordering::Relaxed);
        let title = &self.choice.title;
        let words = || format!("{model} answers; `:Co /model` lists what else {title} has");
        let chosen = first && self.choice.model.is_none();
        chosen.then(words).into_iter().collect()
    }

    /// Sends a request. Returns the earlier fault if the server has refused the same request before.
    async fn send(
        &self,
        info: &RequestInfo,
        conversation: &Conversation,
        body: &Value,
    ) -> Result<Accepted, Fault> {
        let body = body.to_string();
        let (path, query) = protocol::path(info);
        let address = format!("{}{path}", self.choice.base_url);
        let key = RequestKey::new(&address, &self.headers, body.as_bytes());
        if let Some(fault) = self.memory.refusal(key) {
            tracing::info!(%fault, "the server has refused this request; it is not sent again");
            return Err(fault);
        }
        let header = caching::key_header(info, conversation);
        let sent = self.post(&path, query, body.into_bytes(), header).await?;
        match http::open(info, sent).await {
            Ok(response) => Ok(Accepted { key, response }),
            Err(fault) => {
                self.memory.keep_refusal(key, &fault);
                Err(drop_refused_key(&self.key, fault))
            }
        }
    }

    /// Sends a request. If the server asks for a change of the request, changes it and sends it again. Adds a notice about each
    /// change that the person should know of.
    async fn adapted(
        &self,
        model: &str,
        request: &ModelRequest,
        notices: &mut Vec<String>,
    ) -> Result<(RequestInfo, Accepted), Fault> {
        let mut room = request.room;
        let images = request.has_images() && self.takes_images().await;
        let mut tries = 0;
        loop {
            let mut info = self.info(model.to_owned());
            info.images = images;
            let mut options = self.options(room).await;
            options.answer_limit = info.answer_limit();
            let conversation = Conversation::new(&info, request);
            let body = protocol::body(&info, &options, &conversation);
            let fault = match self.send(&info, &conversation, &body).await {
                Ok(accepted) => {
                    let left_out = conversation.left_out.into_iter();
                    notices.extend(left_out.map(|image| format!("left out: {image}")));
                    return Ok((info, accepted));
                }
                Err(fault) => fault,
            };
            tries += 1;
            let limit = options::limit_in(&body);
            if tries <= adapt::MAX_ADAPTATIONS
                && let Some(new_room) = self.learn_room(&fault, limit, room).await
            {
                tracing::info!(%fault, new_room, "the request is sent with a shorter answer");
                room = Some(new_room);
                continue;
            }
            match adapt::find(&info, &fault, limit) {
                Some(wanted)
                    if tries <= adapt::MAX_ADAPTATIONS
                        && self.memory.learn(&info.host, model, wanted) =>
                {
                    tracing::info!(%fault, ?wanted, "the request is sent in another form");
                    notices.extend(adapt::notice(&info, wanted));
                }
                _ => return Err(self.with_near_names(fault).await),
            }
        }
    }

    /// Learns the size of the context window from a refusal, if the conversation and `limit` together exceed the window. `limit`
    /// is the output limit of the refused request.
    ///
    /// Returns the number of tokens that the conversation leaves free. Returns `None` if the server reports another fault, or if
    /// the window was known.
    async fn learn_room(
        &self,
        fault: &Fault,
        limit: Option<u64>,
        room: Option<u64>,
    ) -> Option<u64> {
        let Fault::Overflow { body } = fault else {
            return None;
        };
        let window = overflow::window_of_sum(body, limit?)?;
        let before = self.window().await;
        let used = before.saturating_sub(room?);
        let known = self.known_window().await;
        if known.is_some_and(|known| known <= window) {
            return None;
        }
        self.learn_window(Some(window));
        Some(window.saturating_sub(used))
    }

    /// Adds to a "model not found" fault the names of the models on offer that are most similar to the unknown name.
    async fn with_near_names(&self, mut fault: Fault) -> Fault {
        if let Fault::NotFound { model, near, .. } = &mut fault
            && let Ok(models) = self.list().await
        {
            *near = listing::nearest(model, &models);
        }
        fault
    }

    /// Returns the limits that Ollama reports for the model. Asks the server only once.
    async fn ollama_limits(&self) -> ModelLimits {
        let limits = self.limits.get_or_try_init(|| async {
            let model = self.model().await?;
            let body = json!({ "model": model });
            let body = body.to_string().into_bytes();
            let request = self.post("api/show", None, body, None).await?;
            let request = request.timeout(ollama::SHOW_TIMEOUT);
            match http::json(&self.info(model.to_owned()), request).await {
                Ok(answer) => Ok(ModelLimits::read(&answer)),
                Err(fault @ (Fault::Unreachable { .. } | Fault::NoProvider)) => Err(fault),
                // An answer without limits is no error.
                Err(_) => Ok(ModelLimits::default()),
            }
        });
        match limits.await {
            Ok(limits) => *limits,
            Err(fault) => {
                // The request itself reports the fault. The next request asks for the limits again.
                tracing::debug!(%fault, "the model's limits are not known");
                ModelLimits::default()
            }
        }
    }

    /// Returns the context window of a model on a server other than Ollama. Returns `None` if the size is unknown.
    async fn known_window(&self) -> Option<u64> {
        let model = self.model().await.unwrap_or_default();
        let window = match self.context_window {
            Some(window) => Some(window),
            // The server knows the size of what it runs.
            None => match self.listed(model).await.and_then(|listed| listed.window) {
                Some(window) => Some(window),
                None => provider_table::known_window(model),
            },
        };
        [window, self.learned_window()].into_iter().flatten().min()
    }

    /// Returns the context window that refusals and answers of the server have shown.
    fn learned_window(&self) -> Option<u64> {
        let model = self.model.get()?;
        self.memory.window(&self.choice.host(), model)
    }

    /// Returns the context window that requests to Ollama set.
    async fn ollama_window(&self) -> u64 {
        let limits = self.ollama_limits().await;
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
            Some(model) => format!("{}/{model}", self.name),
            None => self.name.clone(),
        }
    }

    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<Delta, Fault>>, Fault> {
        let model = self.model().await?.to_owned();
        // A program that prints the key runs first, so that errors do not repeat the key.
        self.key.get().await?;
        let mut notices = self.first_words(&model);
        let (info, accepted) = self.adapted(&model, &request, &mut notices).await?;
        let (key, memory) = (Arc::clone(&self.key), self.memory.clone());
        let deltas = stream::deltas(accepted.response, info, &request);
        let notices = notices.into_iter().map(|notice| Ok(Delta::Notice(notice)));
        Ok(futures::stream::iter(notices)
            .chain(deltas)
            .map(move |delta| {
                delta.map_err(|fault| {
                    memory.keep_refusal(accepted.key, &fault);
                    drop_refused_key(&key, fault)
                })
            })
            .boxed())
    }

    async fn models(&self) -> Result<Vec<String>, Fault> {
        let models = self.list().await?;
        Ok(models.iter().map(|model| model.name.clone()).collect())
    }

    async fn offers(&self, model: &str) -> Result<bool, Fault> {
        let has = |models: &[ListedModel]| models.iter().any(|listed| listed.name == model);
        let known = self.memory.models(&self.name, &self.choice.base_url);
        if known.is_some_and(|models| has(&models)) {
            return Ok(true);
        }
        Ok(has(&self.list().await?))
    }

    async fn prepare(&self) {
        if let Err(fault) = self.client().await {
            tracing::debug!(%fault, "no client yet");
        }
    }

    async fn window(&self) -> u64 {
        if self.choice.protocol == Protocol::Ollama {
            let asked_for = self.ollama_window().await;
            return self
                .learned_window()
                .map_or(asked_for, |it| it.min(asked_for));
        }
        self.known_window()
            .await
            .unwrap_or(provider_table::DEFAULT_WINDOW)
    }

    fn learn_window(&self, tokens: Option<u64>) {
        let model = self.model.get().map(String::as_str).unwrap_or_default();
        self.memory.learn_window(&self.choice.host(), model, tokens);
    }

    async fn takes_images(&self) -> bool {
        let model = self.model().await.unwrap_or_default();
        let by_server = match (self.images, self.choice.protocol) {
            (Some(set), _) => return set,
            (None, Protocol::Ollama) => self.ollama_limits().await.images,
            (None, _) => self.listed(model).await.and_then(|listed| listed.images),
        };
        let by_family = || family::find(model).is_some_and(|family| family.images);
        by_server.unwrap_or_else(by_family)
    }

    fn list_price(&self) -> Option<Price> {
        let model = self.model.get().filter(|_| self.choice.own)?;
        family::list_price(model)
    }

    fn secrets(&self) -> Vec<String> {
        self.key.used()
    }
}

/// A request that the server has accepted, with the start of the answer.
struct Accepted {
    key: RequestKey,
    response: Response,
}

/// Returns true if the fault shows that the server has no list of models, or takes too long to send it.
fn shows_no_list(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::NotFound { .. }
            | Fault::Forbidden { .. }
            | Fault::BadRequest { .. }
            | Fault::HtmlPage { .. }
            | Fault::Malformed { .. }
            | Fault::Stalled(_)
    )
}

/// Drops the key if the server refused it, and returns the fault.
fn drop_refused_key(key: &Key, fault: Fault) -> Fault {
    if matches!(fault, Fault::Unauthorized { .. } | Fault::Forbidden { .. }) {
        key.refused();
    }
    fault
}

#[cfg(test)]
mod tests;
