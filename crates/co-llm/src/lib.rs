//! Models: a request in, a stream of deltas out.
//!
//! Knows nothing of Neovim, tools' meaning or approval. [`connect`] is the one place that picks a provider.

mod answer;
mod choice;
mod fault;
mod key;
mod price;
pub mod provider_table;
mod remote;
pub mod retry;
pub mod scripted;
pub mod transcript;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::Value;

use crate::transcript::{Call, Item, Usage};

pub use answer::Answer;
pub use price::{Price, Prices};

/// How long a server may send nothing before the answer is given up.
pub const STALL: Duration = Duration::from_secs(120);

/// One request to a model: a step of a turn.
#[derive(Debug, Clone)]
pub struct Request {
    pub system: String,
    /// The conversation so far; every call in it has an outcome.
    pub items: Arc<[Item]>,
    /// Empty: calls of the past are told as text.
    pub tools: Arc<[ToolSpec]>,
    /// False: the model must answer with text. The tools stay in the request, so that it begins like the one before it.
    pub may_call: bool,
}

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema (draft 7) of the arguments.
    pub schema: Value,
}

/// A piece of a model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// The signature of the reasoning before it, to be sent back with it; alone, a block that came encrypted.
    ///
    /// It names the provider it is for: nobody else is sent it.
    Signature(String),
    /// A complete call: its arguments are a JSON object.
    Call(Call),
    /// A call whose arguments are not a JSON object, as `detail` says; `call` has none. It keeps its place among the calls.
    BadCall {
        call: Call,
        detail: String,
    },
    Usage(Usage),
    /// The last delta of a stream that ended as it should.
    Stop(Stop),
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Done,
    /// Its answer reached the output limit.
    Length,
    /// The provider withheld the rest.
    Refused,
}

/// Why there is no answer, or no more of it. By type, never by text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    #[error("no provider is set up")]
    NoProvider,
    #[error("there is no provider called {name}")]
    UnknownProvider { name: String },
    /// The key's file or command is set, but gives no key that may be used.
    #[error("the key from {source_name} cannot be used")]
    KeyUnusable { source_name: String, cause: String },
    #[error("the key for {provider} is missing")]
    NoKey { provider: String, variable: String },
    #[error("nothing answers at {url} ({cause})")]
    Unreachable { url: String, cause: String },
    #[error("{provider} refused the key (HTTP {status})")]
    Unauthorized {
        provider: String,
        status: u16,
        /// The variable, file or program that has the key; where there is none, the variable that would.
        source_name: String,
    },
    #[error("{provider} does not know the model {model} (HTTP 404)")]
    NotFound {
        provider: String,
        model: String,
        body: String,
    },
    #[error("{provider} asks to slow down (HTTP 429)")]
    RateLimited {
        provider: String,
        retry_after: Option<Duration>,
    },
    /// What was paid for, or may be used, is used up: waiting does not help.
    #[error("the quota of {provider} is used up (HTTP {status})")]
    QuotaUsedUp { provider: String, status: u16 },
    #[error("{provider} failed (HTTP {status})")]
    Server {
        provider: String,
        status: u16,
        retry_after: Option<Duration>,
    },
    #[error("the conversation is longer than the model's window")]
    Overflow { body: String },
    #[error("{provider} refused the request (HTTP 400)")]
    BadRequest { provider: String, body: String },
    #[error("a web page came back instead of an answer")]
    HtmlPage { url: String },
    #[error("the answer broke off")]
    Cut,
    #[error("the answer could not be read")]
    Malformed { detail: String },
    #[error("no byte came for {0:?}")]
    Stalled(Duration),
}

/// A model somebody answers for.
#[async_trait]
pub trait Provider: Send + Sync {
    /// What the person reads in the winbar, e.g. `anthropic/claude-sonnet-4-5`.
    fn label(&self) -> String;

    /// Starts one request. The stream ends after [`Delta::Stop`] or the first [`Fault`].
    ///
    /// Dropping the stream closes the connection.
    async fn stream(
        &self,
        request: Request,
    ) -> Result<BoxStream<'static, Result<Delta, Fault>>, Fault>;

    /// Names of the models the server offers.
    async fn models(&self) -> Result<Vec<String>, Fault>;

    /// Tokens the model's window holds, as far as co knows. May ask the server, once.
    async fn window(&self) -> u64 {
        provider_table::DEFAULT_WINDOW
    }

    /// Keys that were found out only when they were needed (a `key_cmd`'s), for the redactor.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Returns the provider the settings and the environment name.
///
/// Nothing is sent, and no HTTP client is built, before the first request.
pub fn connect(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Provider>, Fault> {
    connect_with_stall(settings, env, STALL)
}

/// The same, with another time a server may be silent.
pub fn connect_with_stall(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
    stall: Duration,
) -> Result<Arc<dyn Provider>, Fault> {
    let choice = choice::Choice::new(settings, env)?;
    let key = key::Key::find(&choice, settings, env)?;
    Ok(Arc::new(remote::Remote::new(choice, key, settings, stall)))
}

/// What is known of a provider before anything is sent to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Prospect {
    /// As it is written in the settings.
    pub provider: &'static str,
    /// None: the first one the server offers.
    pub model: Option<String>,
    pub base_url: String,
    /// The variable, file or program that has the key; none where it needs none. Never the key.
    pub key: Result<Option<String>, Fault>,
}

/// Says what [`connect`] would take, and from where, without a request and without running a program.
pub fn prospect(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Prospect, Fault> {
    let choice = choice::Choice::new(settings, env)?;
    let key = key::Key::find(&choice, settings, env);
    Ok(Prospect {
        provider: choice.provider.name,
        key: key.map(|key| key.source_name()),
        model: choice.model,
        base_url: choice.base_url,
    })
}

/// Returns the person's own keys, so that they can be taken out of whatever is shown or written.
///
/// What a `key_cmd` prints is not among them: [`Provider::secrets`] has it once it was needed.
pub fn secrets(settings: &Settings, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    key::known(settings, env)
}

/// Which model, where, with what key. Every field may be left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// `anthropic`, `openai`, `openai_responses`, `gemini`, `ollama`; none: the first of
    /// `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY` that is set, else Ollama's local address.
    pub provider: Option<String>,
    pub model: Option<String>,
    pub base_url: Option<String>,
    /// The variable that holds the key, where it is not the provider's usual one.
    pub key_env: Option<String>,
    /// A file, mode 0600, that holds the key.
    pub key_file: Option<std::path::PathBuf>,
    /// A program that prints the key, as argv.
    pub key_cmd: Option<Vec<String>>,
    pub headers: Vec<(String, String)>,
    /// Merged into every request's body.
    pub extra_body: Option<Value>,
    /// Tokens of answer asked for at most.
    pub max_output_tokens: Option<u32>,
    /// Tokens the model's window holds, where co does not know.
    pub context_window: Option<u64>,
}
