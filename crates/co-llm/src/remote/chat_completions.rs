//! OpenAI's chat completions, which most other servers speak too.

mod calls;
mod reader;

use serde_json::{Map, Value, json};

pub(super) use self::reader::ChunkReader;
use super::conversation::{Conversation, Message, Part, joined_text};
use super::options::{self, RequestOptions};
use super::request_info::RequestInfo;
use crate::provider_table::Protocol;
use crate::request::ToolSpec;

/// Returns the body of a request.
pub(super) fn body(info: &RequestInfo, options: &RequestOptions, chat: &Conversation) -> Value {
    let mut body = json!({
        "model": info.model,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if !chat.tools.is_empty() {
        body["tools"] = chat.tools.iter().map(tool).collect();
    }
    let mut writer = MessageWriter {
        info,
        messages: vec![json!({ "role": "system", "content": chat.system })],
        in_tool_turn: false,
    };
    for message in &chat.messages {
        writer.message(message);
    }
    body["messages"] = writer.messages.into();
    if let Some(tokens) = options.max_output_tokens {
        // OpenAI's newer models refuse the old name. Other servers know only that one.
        let name = if info.own {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body[name] = tokens.into();
    }
    options::finish(&mut body, Protocol::OpenAi, options, chat.may_call);
    body
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.schema,
        },
    })
}

struct MessageWriter<'a> {
    info: &'a RequestInfo,
    messages: Vec<Value>,
    /// True from the first call after a prompt on.
    in_tool_turn: bool,
}

impl MessageWriter<'_> {
    fn message(&mut self, message: &Message) {
        match message {
            Message::User(text) => {
                self.in_tool_turn = false;
                let message = json!({ "role": "user", "content": text });
                self.messages.push(message);
            }
            Message::Model(parts) => {
                let message = self.model(parts);
                self.messages.push(message);
            }
            Message::Results(results) => self.messages.extend(results.iter().map(|result| {
                json!({
                    "role": "tool",
                    "tool_call_id": result.id,
                    "content": result.text,
                })
            })),
        }
    }

    fn model(&mut self, parts: &[Part]) -> Value {
        let text = joined_text(parts);
        let calls: Vec<Value> = parts.iter().filter_map(call).collect();
        self.in_tool_turn |= !calls.is_empty();
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        let content = if text.is_empty() {
            Value::Null
        } else {
            text.into()
        };
        message.insert("content".to_owned(), content);
        self.reasoning(parts, !calls.is_empty(), &mut message);
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        message.into()
    }

    /// Adds the reasoning that led to a call, as the server sent it.
    fn reasoning(&self, parts: &[Part], calls: bool, message: &mut Map<String, Value>) {
        let mut thought = String::new();
        for part in parts {
            let Part::Reasoning { text, signature } = part else {
                continue;
            };
            thought.push_str(text);
            let details = signature.as_deref().map(serde_json::from_str::<Value>);
            if let Some(Ok(details @ Value::Array(_))) = details {
                message.insert("reasoning_details".to_owned(), details);
            }
        }
        if message.contains_key("reasoning_details") || self.info.own {
            return;
        }
        if calls && !thought.is_empty() {
            message.insert("reasoning_content".to_owned(), thought.into());
        }
    }
}

fn call(part: &Part) -> Option<Value> {
    let Part::Call(call) = part else {
        return None;
    };
    let mut written = json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": call.arguments.to_string() },
    });
    // Gemini's signature, as its compatible API sends it.
    let extra = call.signature.as_deref().map(serde_json::from_str::<Value>);
    if let Some(Ok(extra)) = extra {
        written["extra_content"] = extra;
    }
    Some(written)
}
