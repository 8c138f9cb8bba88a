//! Ollama's own API. Only this API lets a request set the size of the context window (`num_ctx`). Without this setting, the
//! server drops the beginning of a long chat without any report.

mod limits;
mod reader;

use serde_json::{Value, json};

pub(super) use self::limits::{ModelLimits, SHOW_TIMEOUT};
pub(super) use self::reader::LineReader;
use super::chat_completions::tool;
use super::conversation::{CallResult, Conversation, Message, MessagePart, joined_text};
use super::options::{self, RequestOptions};
use super::reasoning;
use super::request_info::RequestInfo;
use crate::provider_table::Protocol;

/// Returns the body of a request to Ollama.
pub(super) fn body(info: &RequestInfo, options: &RequestOptions, chat: &Conversation) -> Value {
    let mut body = json!({
        "model": info.model,
        "stream": true,
        "options": { "num_ctx": options.window },
    });
    if let Some(tokens) = options.output_limit() {
        body["options"]["num_predict"] = tokens.into();
    }
    if !chat.tools.is_empty() {
        body["tools"] = chat.tools.iter().map(tool).collect();
    }
    let system = json!({ "role": "system", "content": chat.system });
    let messages = chat.messages.iter().flat_map(messages);
    body["messages"] = std::iter::once(system).chain(messages).collect();
    reasoning::add_effort(info, &mut body);
    options::finish(&mut body, Protocol::Ollama, options, chat.may_call);
    body
}

fn messages(message: &Message) -> Vec<Value> {
    match message {
        Message::User { text, images } => {
            let mut message = json!({ "role": "user", "content": text });
            if !images.is_empty() {
                message["images"] = images.iter().map(|image| image.data.as_str()).collect();
            }
            vec![message]
        }
        Message::Model(parts) => vec![model(parts)],
        // One message for each result, in the order of the calls: there are no ids.
        Message::Results(results) => results.iter().map(result).collect(),
    }
}

fn model(parts: &[MessagePart]) -> Value {
    let mut message = json!({ "role": "assistant", "content": joined_text(parts) });
    let calls: Vec<Value> = parts
        .iter()
        .filter_map(|part| match part {
            MessagePart::Call(call) => Some(json!({
                "function": { "name": call.name, "arguments": call.arguments },
            })),
            _ => None,
        })
        .collect();
    if !calls.is_empty() {
        let thoughts = parts.iter().filter_map(|part| match part {
            MessagePart::Reasoning { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let thought: String = thoughts.collect();
        if !thought.is_empty() {
            // The model reads the thinking that led to its calls.
            message["thinking"] = thought.into();
        }
        message["tool_calls"] = calls.into();
    }
    message
}

fn result(result: &CallResult) -> Value {
    json!({ "role": "tool", "content": result.text, "tool_name": result.name })
}
