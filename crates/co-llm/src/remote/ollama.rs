//! Ollama's own chat: `genai` has no place in its request for the window, without which the server cuts off the
//! beginning of a conversation in silence, nor for `extra_body`.
//!
//! The answer comes as `genai`'s events, so that the reader is the same for everybody.

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

/// How long the question what a model can hold may take; without an answer its window is a guess.
const SHOW: Duration = Duration::from_secs(10);

/// Bytes of an error that are read; its sentence stands at its beginning.
const MAX_ERROR: usize = 64 << 10;

/// One request.
pub(super) struct OllamaRequest {
    pub(super) http: reqwest::Client,
    /// Ends in a slash.
    pub(super) base_url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
    /// How long the server may be silent.
    pub(super) stall: Duration,
    pub(super) frames: Arc<RawFrames>,
    pub(super) model: ModelIden,
}

/// What the server says of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ModelLimits {
    /// Tokens its window can hold.
    most: Option<u64>,
    /// Tokens its own settings give it.
    set: Option<u64>,
}

impl ModelLimits {
    /// Returns the window to ask for: `wanted`, what is set for the model or `usual`, and no more than it can hold.
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

/// Asks what a model can hold.
///
/// # Errors
/// Where the server did not answer; a server that does not know is no error.
pub(super) async fn show(
    http: &reqwest::Client,
    base_url: &str,
    headers: HeaderMap,
    model: &str,
) -> reqwest::Result<ModelLimits> {
    let asked = http
        .post(format!("{base_url}api/show"))
        .headers(headers)
        .timeout(SHOW)
        .json(&json!({ "model": model }))
        .send()
        .await?;
    if !asked.status().is_success() {
        return Ok(ModelLimits::default());
    }
    // A page, or anything else, says nothing.
    Ok(ModelLimits::read(&asked.json().await.unwrap_or_default()))
}

/// Sends it and returns the events of the answer.
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
        body: beginning(response, request.stall).await,
        headers,
    })
}

/// Reads what an error says: [`MAX_ERROR`] bytes at most, and what came until it failed or the time was over. The
/// status is known already, and says more than why its words were not all read.
async fn beginning(mut response: Response, patience: Duration) -> String {
    let mut body = Vec::new();
    let read = async {
        while body.len() < MAX_ERROR {
            match response.chunk().await {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) | Err(_) => break,
            }
        }
    };
    let _in_time = tokio::time::timeout(patience, read).await;
    body.truncate(MAX_ERROR);
    String::from_utf8_lossy(&body).into_owned()
}

/// Headers as the person set them; what is none is left out.
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
