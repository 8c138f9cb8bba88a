//! OpenAI's Chat Completions API, which most other servers support too.

mod calls;
mod reader;

use serde_json::{Map, Value, json};

pub(super) use self::reader::ChunkReader;
use super::caching::{self, CacheMarks};
use super::conversation::{Conversation, Message, MessagePart, joined_text};
use super::options::{self, RequestOptions};
use super::reasoning::{self, Replay};
use super::request_info::RequestInfo;
use crate::provider_table::Protocol;
use crate::request::ToolSpec;
use crate::server_memory::Adaptation;
use crate::transcript::Image;

/// Returns the body of a request to the Chat Completions API.
pub(super) fn body(info: &RequestInfo, options: &RequestOptions, chat: &Conversation) -> Value {
    let adapted = |adaptation| info.adaptations.contains(&adaptation);
    let marks = CacheMarks::of(info);
    let mut body = json!({ "model": info.model, "stream": true });
    if !adapted(Adaptation::WithoutStreamOptions) {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if !chat.tools.is_empty() {
        body["tools"] = chat.tools.iter().map(tool).collect();
    }
    let mut writer = MessageWriter {
        marks,
        replay: Replay::of(info),
        no_content: match adapted(Adaptation::EmptyContent) {
            true => Value::String(String::new()),
            false => Value::Null,
        },
        messages: Vec::new(),
        in_tool_turn: false,
    };
    match (adapted(Adaptation::SystemInPrompt), &*chat.messages) {
        (true, [Message::User { text, images }, rest @ ..]) => {
            let text = format!("{}\n\n{text}", chat.system);
            let images = images.clone();
            writer.message(&Message::User { text, images });
            rest.iter().for_each(|message| writer.message(message));
        }
        (_, messages) => {
            let content = caching::block(marks, &chat.system);
            let system = json!({ "role": "system", "content": content });
            writer.messages.push(system);
            messages.iter().for_each(|message| writer.message(message));
        }
    }
    let mut messages = writer.messages;
    if marks == CacheMarks::Blocks {
        messages[0]["content"][0]["cache_control"] = caching::mark();
        caching::mark_last(&mut messages);
    }
    body["messages"] = messages.into();
    if let Some(tokens) = options.output_limit() {
        // OpenAI's newer models refuse the old name. Other servers know only that one.
        let new = info.is_openai() || adapted(Adaptation::NewTokenLimit);
        let name = if new {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body[name] = tokens.into();
    }
    caching::add_key(info, chat, &mut body);
    reasoning::add_effort(info, &mut body);
    if marks == CacheMarks::Request {
        body["cache_control"] = caching::mark();
    }
    options::finish(&mut body, Protocol::OpenAi, options, chat.may_call);
    body
}

pub(super) fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.schema,
        },
    })
}

struct MessageWriter {
    marks: CacheMarks,
    replay: Replay,
    /// The value of the field `content` in a message that has only calls.
    no_content: Value,
    messages: Vec<Value>,
    /// True after the first call since a prompt.
    in_tool_turn: bool,
}

impl MessageWriter {
    fn message(&mut self, message: &Message) {
        match message {
            Message::User { text, images } => {
                self.in_tool_turn = false;
                let images = images.iter().map(image).collect();
                let content = caching::content(self.marks, text, images);
                let message = json!({ "role": "user", "content": content });
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
                    "content": caching::block(self.marks, &result.text),
                })
            })),
        }
    }

    fn model(&mut self, parts: &[MessagePart]) -> Value {
        let text = joined_text(parts);
        let calls: Vec<Value> = parts.iter().filter_map(call).collect();
        self.in_tool_turn |= !calls.is_empty();
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        let content = match text.is_empty() {
            true => self.no_content.clone(),
            false => text.into(),
        };
        message.insert("content".to_owned(), content);
        self.reasoning(parts, !calls.is_empty(), &mut message);
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        message.into()
    }

    /// Adds to the message the reasoning that led to a call, in the form in which the server sent it.
    fn reasoning(&self, parts: &[MessagePart], calls: bool, message: &mut Map<String, Value>) {
        let mut thought = String::new();
        for part in parts {
            let MessagePart::Reasoning { text, signature } = part else {
                continue;
            };
            thought.push_str(text);
            let details = signature.as_deref().map(serde_json::from_str::<Value>);
            if let Some(Ok(details @ Value::Array(_))) = details
                && self.replay != Replay::Never
            {
                message.insert("reasoning_details".to_owned(), details);
            }
        }
        let sent = match self.replay {
            Replay::Never => return,
            Replay::WithCalls => calls && !thought.is_empty(),
            Replay::Demanded => calls || (self.in_tool_turn && !thought.is_empty()),
        };
        if sent && !message.contains_key("reasoning_details") {
            message.insert("reasoning_content".to_owned(), thought.into());
        }
    }
}

fn image(image: &Image) -> Value {
    json!({ "type": "image_url", "image_url": { "url": image.data_url() } })
}

fn call(part: &MessagePart) -> Option<Value> {
    let MessagePart::Call(call) = part else {
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
