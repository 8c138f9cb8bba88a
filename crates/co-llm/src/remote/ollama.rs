//! The chat with Ollama, without `genai`.
//!
//! A request of `genai` cannot hold the size of the context window (`num_ctx`), nor `extra_body`. Without `num_ctx` the
//! server drops the beginning of a long chat and reports nothing. The answer comes as events of `genai`, so that one
//! reader serves all providers.

mod body;
mod lines;

use std::sync::Arc;
use std::time::Duration;

use futures::TryFutureExt;
use futures::stream::{BoxStream, StreamExt};
use genai::ModelIden;
use genai::chat::ChatStreamEvent;
use genai::webc::StreamTimeout;
use reqwest::Response;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::raw_frames::RawFrames;

pub(super) use body::body;
use lines::{BoxError, broken};

/// The time-out of the request for a model's limits. Without an answer the default window is used.
const SHOW: Duration = Duration::from_secs(10);

/// The number of bytes of an error body that are read. The message is at its beginning.
const MAX_ERROR: usize = 64 << 10;

/// One request to `/api/chat`.
pub(super) struct OllamaRequest {
    pub(super) http: reqwest::Client,
    /// Ends in a slash.
    pub(super) base_url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
    /// The longest silence of the server.
    pub(super) stall: Duration,
    pub(super) frames: Arc<RawFrames>,
    pub(super) model: ModelIden,
}

/// The sizes of a model's context window, as the server reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ModelLimits {
    /// The most tokens that the model supports.
    most: Option<u64>,
    /// The tokens that the model's settings on the server say.
    set: Option<u64>,
}

impl ModelLimits {
    /// Returns the window to ask for: `wanted`, else the one set on the server, else `usual`. It is never larger than the
    /// model supports.
    pub(super) fn window(self, wanted: Option<u64>, usual: u64) -> u64 {
        let window = wanted.or(self.set).unwrap_or(usual);
        self.most.map_or(window, |most| window.min(most))
    }

    fn read(answer: &Value) -> Self {
        // `llama.context_length`, `qwen3.context_length`, ...
        let most = answer["model_info"].as_object().and_then(|facts| {
            let mut found = facts
                .iter()
                .filter(|(name, _)| name.ends_with(".context_length"));
            found.next()?.1.as_u64()
        });
        // Lines such as `num_ctx    16384`.
        let set = answer["parameters"].as_str().and_then(|parameters| {
            let mut lines = parameters.lines();
            let value = lines.find_map(|line| line.trim().strip_prefix("num_ctx "))?;
            value.trim().parse().ok()
        });
        Self { most, set }
    }
}

/// Asks the server for a model's limits.
///
/// # Errors
/// If the server does not answer. An answer without limits is no error.
pub(super) async fn model_limits(
    http: &reqwest::Client,
    base_url: &str,
    headers: HeaderMap,
    model: &str,
) -> reqwest::Result<ModelLimits> {
    let answer = http
        .post(format!("{base_url}api/show"))
        .headers(headers)
        .timeout(SHOW)
        .json(&json!({ "model": model }))
        .send()
        .await?;
    if !answer.status().is_success() {
        return Ok(ModelLimits::default());
    }
    // An answer that is not JSON has no limits.
    Ok(ModelLimits::read(&answer.json().await.unwrap_or_default()))
}

/// Sends a request and returns the events of its answer.
pub(super) fn stream(request: OllamaRequest) -> BoxStream<'static, genai::Result<ChatStreamEvent>> {
    let (stall, frames, model) = (
        request.stall,
        Arc::clone(&request.frames),
        request.model.clone(),
    );
    open(request)
        .map_ok(move |response| lines::events(response, stall, frames, model))
        .try_flatten_stream()
        .boxed()
}

async fn open(request: OllamaRequest) -> genai::Result<Response> {
    let broken = |error: BoxError| broken(&request.model, error);
    let sent = request
        .http
        .post(format!("{}api/chat", request.base_url))
        .headers(request.headers)
        .json(&request.body)
        .send();
    let response = match tokio::time::timeout(request.stall, sent).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(broken(Box::new(error))),
        Err(_) => return Err(broken(Box::new(StreamTimeout::Headers))),
    };
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let headers = Box::new(response.headers().clone());
    Err(genai::Error::HttpError {
        status,
        canonical_reason: status.canonical_reason().unwrap_or_default().to_owned(),
        body: error_body(response, request.stall).await,
        headers,
    })
}

/// Reads the body of an error, at most [`MAX_ERROR`] bytes, until it ends, fails or the time is over.
///
/// A failure here is not reported, since the status of the error is more important.
async fn error_body(mut response: Response, limit: Duration) -> String {
    let mut body = Vec::new();
    let read = async {
        while body.len() < MAX_ERROR {
            match response.chunk().await {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) | Err(_) => break,
            }
        }
    };
    let _in_time = tokio::time::timeout(limit, read).await;
    body.truncate(MAX_ERROR);
    String::from_utf8_lossy(&body).into_owned()
}

/// Returns the headers that the person set, without invalid ones.
pub(super) fn headers(list: Vec<(String, String)>) -> HeaderMap {
    list.into_iter()
        .filter_map(|(name, value)| {
            let name = HeaderName::try_from(name).ok()?;
            Some((name, HeaderValue::try_from(value).ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_is_wanted_as_far_as_the_model_holds_it() {
        let llama = json!({
            "model_info": { "general.architecture": "llama", "llama.context_length": 4096 },
            "parameters": "stop \"<|x|>\"\nnum_ctx                        2048",
        });
        let limits = ModelLimits::read(&llama);
        assert_eq!(limits.window(None, 8192), 2048);
        assert_eq!(limits.window(Some(3000), 8192), 3000);
        assert_eq!(limits.window(Some(100_000), 8192), 4096);
        let unknown = ModelLimits::read(&Value::Null);
        assert_eq!(unknown, ModelLimits::default());
        assert_eq!(unknown.window(None, 8192), 8192);
        assert_eq!(unknown.window(Some(100_000), 8192), 100_000);
    }
}
