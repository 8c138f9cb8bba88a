//! The answers of the six kinds of servers.

use std::time::Duration;

use co_llm::transcript::{Item, Outcome};
use co_llm::{Delta, Fault, ModelRequest, Provider, ProviderSettings, ToolSpec};
use futures::StreamExt;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::support::http::{Response, Server};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    OpenAi,
    OpenRouter,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
}

pub(crate) const WIRES: [Wire; 6] = [
    Wire::OpenAi,
    Wire::OpenRouter,
    Wire::Responses,
    Wire::Anthropic,
    Wire::Gemini,
    Wire::Ollama,
];

/// An answer to send: its text in pieces, a call with its arguments in pieces, and why it stops.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said<'a> {
    pub(crate) texts: &'a [&'a str],
    pub(crate) arguments: Option<&'a [&'a str]>,
    pub(crate) length: bool,
}

impl Wire {
    pub(crate) fn provider(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenRouter => "openrouter",
            Self::Responses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        }
    }

    pub(crate) fn settings(self, url: &str) -> ProviderSettings {
        ProviderSettings {
            provider: Some(self.provider().into()),
            base_url: Some(url.into()),
            model: Some("test-model".into()),
            key_env: Some("TEST_API_KEY".into()),
            ..ProviderSettings::default()
        }
    }

    pub(crate) fn connect(self, server: &Server, stall: Duration) -> Arc<dyn Provider> {
        co_llm::make_provider_with(
            &self.settings(&server.url()),
            &key,
            stall,
            co_llm::ServerMemory::default(),
        )
        .expect("a provider")
    }

    /// A frame as it stands in the body.
    pub(crate) fn frame(self, data: &Value) -> Vec<u8> {
        match self {
            Self::Ollama => format!("{data}\n").into_bytes(),
            Self::Anthropic => {
                let event = data["type"].as_str().unwrap_or("message");
                format!("event: {event}\ndata: {data}\n\n").into_bytes()
            }
            _ => format!("data: {data}\n\n").into_bytes(),
        }
    }

    /// A frame that cannot be read.
    pub(crate) fn malformed(self) -> Vec<u8> {
        match self {
            Self::Ollama => b"{\"message\": {]}\n".to_vec(),
            Self::Anthropic => b"event: content_block_delta\ndata: {\"type\": {]}\n\n".to_vec(),
            _ => b"data: {\"x\": {]}\n\n".to_vec(),
        }
    }

    pub(crate) fn reply(self, frames: Vec<Vec<u8>>) -> Response {
        Response::new(200, self.content_type(), frames)
    }

    /// An answer of one text.
    pub(crate) fn says(self, text: &str) -> Response {
        let texts = &[text];
        self.reply(self.frames(&Said {
            texts,
            ..Said::default()
        }))
    }

    /// The frames of a whole answer.
    pub(crate) fn frames(self, said: &Said<'_>) -> Vec<Vec<u8>> {
        match self {
            Self::OpenAi | Self::OpenRouter => openai(said),
            Self::Responses => responses(said),
            Self::Anthropic => anthropic(said),
            Self::Gemini => gemini(said),
            Self::Ollama => ollama(said),
        }
        .into_iter()
        .map(|data| match data {
            Value::String(raw) => format!("data: {raw}\n\n").into_bytes(),
            data => self.frame(&data),
        })
        .collect()
    }

    /// Returns the number of frames of an answer before its texts.
    pub(crate) fn prelude(self) -> usize {
        match self {
            Self::Anthropic => 2,
            Self::Responses => 1,
            _ => 0,
        }
    }
}

fn openai(said: &Said<'_>) -> Vec<Value> {
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "choices":
               [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut frames: Vec<Value> = said
        .texts
        .iter()
        .map(|text| chunk(json!({"content": text}), Value::Null))
        .collect();
    for (at, piece) in said.arguments.unwrap_or_default().iter().enumerate() {
        let mut call = json!({"index": 0, "function": {"arguments": piece}});
        if at == 0 {
            call["id"] = json!("call_7");
            call["type"] = json!("function");
            call["function"]["name"] = json!("run");
        }
        frames.push(chunk(json!({"tool_calls": [call]}), Value::Null));
    }
    let finish = match (said.length, said.arguments) {
        (true, _) => "length",
        (false, Some(_)) => "tool_calls",
        (false, None) => "stop",
    };
    frames.push(chunk(json!({}), json!(finish)));
    frames.push(
        json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 3,
                "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 5}}}),
    );
    frames.push(json!("[DONE]"));
    frames
}

fn responses(said: &Said<'_>) -> Vec<Value> {
    let mut frames = vec![json!({"type": "response.created", "response": {"id": "r"}})];
    for text in said.texts {
        frames.push(
            json!({"type": "response.output_text.delta", "output_index": 0,
                           "content_index": 0, "delta": text}),
        );
    }
    if let Some(pieces) = said.arguments {
        let item = |arguments: &str| {
            json!({"type": "function_call", "id": "fc", "call_id": "call_7", "name": "run",
                   "arguments": arguments})
        };
        frames.push(
            json!({"type": "response.output_item.added", "output_index": 1, "item": item("")}),
        );
        for piece in pieces {
            frames.push(
                json!({"type": "response.function_call_arguments.delta", "output_index": 1,
                               "delta": piece}),
            );
        }
        if !said.length {
            frames.push(
                json!({"type": "response.output_item.done", "output_index": 1,
                               "item": item(&pieces.concat())}),
            );
        }
    }
    let status = if said.length {
        "incomplete"
    } else {
        "completed"
    };
    frames.push(json!({"type": format!("response.{status}"), "response": {
        "id": "r", "status": status, "model": "test-model", "output": [],
        "usage": {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14,
                  "input_tokens_details": {"cached_tokens": 5},
                  "output_tokens_details": {"reasoning_tokens": 0}}}}));
    frames
}

fn anthropic(said: &Said<'_>) -> Vec<Value> {
    let mut frames = vec![
        json!({"type": "message_start", "message": {"id": "m", "usage":
               {"input_tokens": 6, "cache_read_input_tokens": 5, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ];
    for text in said.texts {
        frames.push(json!({"type": "content_block_delta", "index": 0,
                           "delta": {"type": "text_delta", "text": text}}));
    }
    frames.push(json!({"type": "content_block_stop", "index": 0}));
    if let Some(pieces) = said.arguments {
        frames.push(
            json!({"type": "content_block_start", "index": 1, "content_block":
                           {"type": "tool_use", "id": "call_7", "name": "run", "input": {}}}),
        );
        for piece in pieces {
            frames.push(json!({"type": "content_block_delta", "index": 1,
                               "delta": {"type": "input_json_delta", "partial_json": piece}}));
        }
        if !said.length {
            frames.push(json!({"type": "content_block_stop", "index": 1}));
        }
    }
    let reason = match (said.length, said.arguments) {
        (true, _) => "max_tokens",
        (false, Some(_)) => "tool_use",
        (false, None) => "end_turn",
    };
    frames.push(
        json!({"type": "message_delta", "delta": {"stop_reason": reason},
                       "usage": {"output_tokens": 3}}),
    );
    frames.push(json!({"type": "message_stop"}));
    frames
}

fn gemini(said: &Said<'_>) -> Vec<Value> {
    let part = |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]});
    let mut frames: Vec<Value> = said
        .texts
        .iter()
        .map(|text| part(json!({"text": text})))
        .collect();
    if let Some(pieces) = said.arguments.filter(|_| !said.length) {
        // It sends them whole.
        let whole = pieces.concat();
        let args: Value = serde_json::from_str(&whole).unwrap_or(json!(whole));
        frames.push(part(
            json!({"functionCall": {"name": "run", "args": args, "id": "call_7"},
                                "thoughtSignature": "c2ln"}),
        ));
    }
    let reason = if said.length { "MAX_TOKENS" } else { "STOP" };
    frames.push(json!({"candidates": [{"finishReason": reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 3, "totalTokenCount": 14,
                          "cachedContentTokenCount": 5}}));
    frames
}

fn ollama(said: &Said<'_>) -> Vec<Value> {
    let line = |message: Value| json!({"model": "test-model", "message": message, "done": false});
    let mut frames: Vec<Value> = said
        .texts
        .iter()
        .map(|text| line(json!({"role": "assistant", "content": text})))
        .collect();
    if let Some(pieces) = said.arguments.filter(|_| !said.length) {
        let whole = pieces.concat();
        let arguments: Value = serde_json::from_str(&whole).unwrap_or(json!(whole));
        frames.push(line(
            json!({"role": "assistant", "content": "", "tool_calls":
            [{"id": "call_7", "function": {"name": "run", "arguments": arguments}}]}),
        ));
    }
    let reason = if said.length { "length" } else { "stop" };
    frames.push(
        json!({"model": "test-model", "message": {"role": "assistant", "content": ""},
        "done": true, "done_reason": reason, "prompt_eval_count": 11, "eval_count": 3,
        "prompt_eval_cached_count": 5}),
    );
    frames
}

/// The person's environment: a key for whoever wants one.
pub(crate) fn key(name: &str) -> Option<String> {
    name.ends_with("_API_KEY").then(|| "test-key".to_owned())
}

pub(crate) fn user(text: &str) -> Item {
    Item::user(text)
}

/// The outcome of a call.
pub(crate) fn outcome(call: &str, text: &str, ok: bool) -> Item {
    Item::Outcome(Outcome::new(call, text, ok))
}

pub(crate) fn request(items: Vec<Item>) -> ModelRequest {
    let schema =
        json!({"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]});
    ModelRequest {
        system: "You are a test.".into(),
        items: items.into(),
        tools: Arc::new([ToolSpec {
            name: "run".into(),
            description: "Runs a command.".into(),
            schema,
        }]),
        may_call: true,
        cache_key: Some("this-chat".into()),
        room: None,
    }
}

/// Returns all deltas of the answer to a request.
pub(crate) async fn ask(
    provider: &dyn Provider,
    request: ModelRequest,
) -> Vec<Result<Delta, Fault>> {
    let all = async {
        match provider.stream(request).await {
            Ok(stream) => stream.collect().await,
            Err(fault) => vec![Err(fault)],
        }
    };
    tokio::time::timeout(Duration::from_secs(240), all)
        .await
        .expect("an answer ends")
}

/// Returns all deltas of the answer to the prompt "go".
pub(crate) async fn go(provider: &dyn Provider) -> Vec<Result<Delta, Fault>> {
    ask(provider, request(vec![user("go")])).await
}

/// Checks that an answer came to its end.
#[track_caller]
pub(crate) fn assert_whole(deltas: &[Result<Delta, Fault>], wire: Wire) {
    assert!(
        deltas.last().is_some_and(Result::is_ok),
        "{wire:?}: {deltas:?}"
    );
}

/// The text of an answer.
pub(crate) fn text(deltas: &[Result<Delta, Fault>]) -> String {
    deltas
        .iter()
        .filter_map(|delta| match delta {
            Ok(Delta::Text(text)) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}
