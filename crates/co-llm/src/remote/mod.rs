//! A provider behind HTTP, through the crate `genai`. Only the chat with Ollama is our own code, in [`ollama`].
//!
//! This file owns the HTTP client and makes it for the first request. [`message`] makes the messages of a request, [`reader`]
//! reads the answer, [`error`] turns errors into faults.

mod error;
mod extra;
mod message;
mod ollama;
mod raw_frames;
mod reader;
mod request_info;
mod retry_after;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, ReasoningEffort};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, Headers, ModelIden, ServiceTarget};
use secrecy::ExposeSecret;
use serde_json::Value;
use tokio::sync::OnceCell;

use self::raw_frames::RawFrames;
use self::request_info::RequestInfo;
use crate::choice::Choice;
use crate::fault::Fault;
use crate::key::Key;
use crate::provider::{Delta, Provider};
use crate::provider_table::{self, PROVIDERS, Protocol};
use crate::request::ModelRequest;
use crate::settings::ProviderSettings;

const CONNECT: Duration = Duration::from_secs(15);
/// Idle connections are closed soon, because an editor is open for days and a turn lasts minutes.
const IDLE: Duration = Duration::from_secs(60);

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
    clients: OnceCell<Clients>,
    model: OnceCell<String>,
    /// The context window of an Ollama model, once the server reported it.
    limits: OnceCell<ollama::ModelLimits>,
}

/// The HTTP client, alone and inside the client of `genai`.
#[derive(Debug)]
struct Clients {
    http: reqwest::Client,
    genai: Client,
}

impl Remote {
    pub(super) fn new(
        choice: Choice,
        key: Key,
        settings: &ProviderSettings,
        stall: Duration,
    ) -> Self {
        let model = OnceCell::new_with(choice.model.clone());
        let mut headers: Vec<_> = settings
            .headers
            .iter()
            .map(|(name, value)| (canonical(name), value.clone()))
            .collect();
        headers.push((
            "User-Agent".to_owned(),
            concat!("co-nvim/", env!("CARGO_PKG_VERSION")).to_owned(),
        ));
        Self {
            choice,
            key: Arc::new(key),
            headers,
            extra_body: settings.extra_body.clone(),
            max_output_tokens: settings.max_output_tokens,
            context_window: settings.context_window,
            stall,
            clients: OnceCell::new(),
            model,
            limits: OnceCell::new(),
        }
    }

    fn adapter(&self) -> AdapterKind {
        match self.choice.provider.protocol {
            Protocol::Anthropic => AdapterKind::Anthropic,
            Protocol::OpenAi => AdapterKind::OpenAI,
            Protocol::Responses => AdapterKind::OpenAIResp,
            Protocol::Gemini => AdapterKind::Gemini,
            Protocol::Ollama => AdapterKind::Ollama,
        }
    }

    async fn client(&self) -> Result<&Client, Fault> {
        Ok(&self.clients().await?.genai)
    }

    async fn clients(&self) -> Result<&Clients, Fault> {
        self.clients
            .get_or_try_init(|| async {
                let mut builder = reqwest::Client::builder()
                    .connect_timeout(CONNECT)
                    .pool_idle_timeout(IDLE)
                    // A redirect would take the key to another host.
                    .redirect(reqwest::redirect::Policy::none());
                if is_local(&self.choice.base_url) {
                    builder = builder.no_proxy();
                }
                let http = builder.build().map_err(|error| Fault::Unreachable {
                    url: self.choice.base_url.clone(),
                    cause: error::last_cause(&error),
                })?;
                let genai = Client::builder()
                    .with_reqwest(http.clone())
                    .with_adapter_kind(self.adapter())
                    .build()
                    .map_err(|error| Fault::Malformed {
                        detail: error.to_string(),
                    })?;
                Ok(Clients { http, genai })
            })
            .await
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::from_owned(self.choice.base_url.as_str())
    }

    /// Returns the added headers of a request. They hold the key for Ollama, whose adapter does not send it.
    async fn extra_headers(&self) -> Result<Vec<(String, String)>, Fault> {
        let mut headers = self.headers.clone();
        if self.choice.provider.protocol == Protocol::Ollama
            && let Some(key) = self.key.get().await?
        {
            let value = format!("Bearer {}", key.expose_secret());
            headers.insert(0, (self.choice.provider.key_header.to_owned(), value));
        }
        Ok(headers)
    }

    async fn auth(&self) -> Result<AuthData, Fault> {
        let key = self.key.get().await?;
        // A server that needs no key ignores this word, but the adapter must have one.
        Ok(AuthData::from_single(match &key {
            Some(key) => key.expose_secret(),
            None => "none",
        }))
    }

    /// Returns the model's name. If none is set, asks the server for its models.
    async fn model(&self) -> Result<&str, Fault> {
        self.model
            .get_or_try_init(|| async {
                let offered = self.list().await?;
                offered.into_iter().next().ok_or_else(|| Fault::NotFound {
                    provider: self.choice.title.clone(),
                    model: "(none is set)".to_owned(),
                    body: "the server offers no model".to_owned(),
                })
            })
            .await
            .map(String::as_str)
    }

    async fn list(&self) -> Result<Vec<String>, Fault> {
        let client = self.client().await?;
        let auth = self.auth().await?;
        let listing = client.all_model_names(self.adapter(), (self.endpoint(), auth));
        let info = self.info(String::new());
        match tokio::time::timeout(self.stall, listing).await {
            Ok(Ok(models)) => Ok(models),
            Ok(Err(error)) => Err(drop_refused_key(&self.key, info.fault(&error))),
            Err(_) => Err(Fault::Stalled(self.stall)),
        }
    }

    fn info(&self, model: String) -> RequestInfo {
        RequestInfo {
            provider: self.choice.provider,
            title: self.choice.title.clone(),
            url: self.choice.base_url.clone(),
            own: self.choice.own,
            model,
            key_source: self.key.place(),
            keys: self.key.used(),
            guessed: self.choice.guessed,
            thinking: self.choice.provider.protocol == Protocol::Anthropic
                && self.thinking_enabled(),
            stall: self.stall,
        }
    }

    fn options(&self, info: &RequestInfo, may_call: bool, frames: Arc<RawFrames>) -> ChatOptions {
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_tool_calls(true)
            .with_capture_reasoning_content(provider_table::can_return_reasoning(
                info.provider.protocol,
                &info.model,
            ))
            // Without these time-outs a silent server would hold a turn forever.
            .with_stream_header_timeout(self.stall)
            .with_stream_read_timeout(self.stall)
            .with_raw_frame_sink_arc(frames);
        if let Some(body) = self.extra(may_call) {
            options = options.with_extra_body(body);
        }
        if let Some(tokens) = self.max_output_tokens {
            options = options.with_max_tokens(tokens);
        }
        if matches!(
            self.choice.provider.protocol,
            Protocol::OpenAi | Protocol::Responses
        ) {
            // Otherwise `genai` cuts `-max` or `-low` off a model's name and takes it for an effort.
            options = options.with_reasoning_effort(ReasoningEffort::Budget(0));
        }
        options
    }

    fn extra(&self, may_call: bool) -> Option<Value> {
        let server = (self.choice.provider.protocol, self.choice.own);
        extra::extra(server, may_call, self.extra_body.as_ref())
    }

    fn thinking_enabled(&self) -> bool {
        let kind = self
            .extra_body
            .as_ref()
            .and_then(|body| body.pointer("/thinking/type"));
        kind.is_some_and(|kind| kind == "enabled")
    }

    /// Returns the context window to ask Ollama for.
    async fn ollama_window(&self) -> u64 {
        let limits = self.limits.get_or_try_init(|| async {
            let http = &self.clients().await?.http;
            let model = self.model().await?;
            let headers = ollama::headers(self.extra_headers().await?);
            let url = &self.choice.base_url;
            let limits = ollama::model_limits(http, url, headers, model).await;
            limits.map_err(|error| Fault::Unreachable {
                url: url.clone(),
                cause: error::last_cause(&error),
            })
        });
        let limits = match limits.await {
            Ok(limits) => *limits,
            Err(fault) => {
                // The request itself reports the fault. The next request asks for the limits again.
                tracing::debug!(%fault, "the model's window is not known");
                ollama::ModelLimits::default()
            }
        };
        let body = self.extra_body.as_ref();
        let in_body = body.and_then(|body| body.pointer("/options/num_ctx")?.as_u64());
        limits.window(
            in_body.or(self.context_window),
            provider_table::OLLAMA_WINDOW,
        )
    }

    async fn ollama_stream(
        &self,
        info: &RequestInfo,
        frames: Arc<RawFrames>,
        chat: ChatRequest,
    ) -> Result<BoxStream<'static, genai::Result<ChatStreamEvent>>, Fault> {
        let window = self.ollama_window().await;
        let mut body = ollama::body(&info.model, chat, window, self.max_output_tokens);
        if let Some(more) = self.extra(true) {
            extra::merge(&mut body, &more);
        }
        Ok(ollama::stream(ollama::OllamaRequest {
            http: self.clients().await?.http.clone(),
            base_url: self.choice.base_url.clone(),
            headers: ollama::headers(self.extra_headers().await?),
            body,
            stall: self.stall,
            frames,
            model: ModelIden::new(self.adapter(), info.model.as_str()),
        }))
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
        let client = self.client().await?.clone();
        let target = ServiceTarget {
            endpoint: self.endpoint(),
            auth: self.auth().await?,
            model: ModelIden::new(self.adapter(), model.as_str()),
        };
        let info = self.info(model);
        let frames = Arc::new(RawFrames::new(self.choice.provider.protocol));
        let may_call = request.may_call || request.tools.is_empty();
        let headers = Headers::from(self.extra_headers().await?);
        let options = self
            .options(&info, may_call, frames.clone())
            .with_extra_headers(headers);
        let chat = message::chat(&info, &request);
        let source = match self.choice.provider.protocol {
            Protocol::Ollama => self.ollama_stream(&info, Arc::clone(&frames), chat).await?,
            _ => client
                .exec_chat_stream(target.clone(), chat, Some(&options))
                .await
                .map_err(|error| drop_refused_key(&self.key, info.fault(&error)))?
                .stream
                .boxed(),
        };
        let key = Arc::clone(&self.key);
        let answer = reader::AnswerReader::new(
            source,
            reader::AnswerContext {
                info,
                frames,
                client,
                target,
                options,
                ids: reader::used_ids(&request.items),
            },
        );
        let answer = answer.into_stream();
        Ok(answer
            .map(move |delta| delta.map_err(|fault| drop_refused_key(&key, fault)))
            .boxed())
    }

    async fn models(&self) -> Result<Vec<String>, Fault> {
        let mut models = self.list().await?;
        for model in &mut models {
            // Gemini lists them as `models/gemini-…`.
            if let Some(bare) = model.strip_prefix("models/") {
                *model = bare.to_owned();
            }
        }
        Ok(models)
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
    if matches!(fault, Fault::Unauthorized { .. }) {
        key.refused();
    }
    fault
}

/// Returns the spelling of a header that `genai` uses. Only so the person's header replaces that of `genai`.
fn canonical(name: &str) -> String {
    let own = PROVIDERS.iter().map(|row| row.key_header);
    own.chain(["anthropic-version"])
        .find(|own| own.eq_ignore_ascii_case(name))
        .unwrap_or(name)
        .to_owned()
}

/// Returns true for a server on this machine. It is reached without a proxy.
fn is_local(base_url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(base_url) else {
        return false;
    };
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

#[cfg(test)]
mod tests;
