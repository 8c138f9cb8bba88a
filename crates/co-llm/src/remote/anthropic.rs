//! Anthropic's Messages API, which gateways and some other vendors support too.

mod reader;

use serde_json::{Value, json};

pub(super) use self::reader::MessageReader;
use super::caching::{self, CacheMarks};
use super::conversation::{CallResult, Conversation, Message, MessagePart};
use super::options::{self, LEAST_ROOM, RequestOptions};
use super::reasoning;
use super::request_info::RequestInfo;
use crate::provider_table::{self, Protocol};
use crate::request::ToolSpec;
use crate::transcript::Image;

/// Returns the body of a request to Anthropic's Messages API.
pub(super) fn body(info: &RequestInfo, options: &RequestOptions, chat: &Conversation) -> Value {
    let marks = CacheMarks::of(info);
    let mut body = json!({
        "model": info.model,
        "stream": true,
        "system": caching::block(marks, &chat.system),
    });
    if !chat.tools.is_empty() {
        body["tools"] = chat.tools.iter().map(tool).collect();
    }
    let messages = chat.messages.iter();
    let mut messages: Vec<Value> = messages.map(|it| message(info, marks, it)).collect();
    if marks == CacheMarks::Blocks {
        body["system"][0]["cache_control"] = caching::mark();
        caching::mark_last(&mut messages);
    }
    body["messages"] = messages.into();
    // The protocol demands this field.
    let usual = provider_table::output_limit(&info.model);
    let limit = options.cut(options.max_output_tokens.unwrap_or(usual));
    // Thoughts are a part of the answer.
    let limit = limit.max(options.thinking_budget().map_or(0, |it| it + LEAST_ROOM));
    body["max_tokens"] = limit.into();
    reasoning::add_effort(info, &mut body);
    if let Some(budget) = body.pointer_mut("/thinking/budget_tokens")
        && budget.as_u64().is_some_and(|budget| budget >= limit)
    {
        *budget = (limit / 2).into();
    }
    if marks == CacheMarks::Request {
        body["cache_control"] = caching::mark();
    }
    options::finish(&mut body, Protocol::Anthropic, options, chat.may_call);
    body
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "description": spec.description,
        "input_schema": spec.schema,
    })
}

fn message(info: &RequestInfo, marks: CacheMarks, message: &Message) -> Value {
    match message {
        Message::User { text, images } => {
            let images = images.iter().map(image).collect();
            json!({ "role": "user", "content": caching::content(marks, text, images) })
        }
        Message::Model(parts) => {
            let blocks: Vec<Value> = parts.iter().filter_map(|it| block(info, it)).collect();
            json!({ "role": "assistant", "content": blocks })
        }
        Message::Results(results) => {
            let blocks: Vec<Value> = results.iter().map(result).collect();
            json!({ "role": "user", "content": blocks })
        }
    }
}

fn image(image: &Image) -> Value {
    json!({
        "type": "image",
        "source": { "type": "base64", "media_type": image.media_type, "data": image.data },
    })
}

/// Returns the content block for a part of a message. Thinking between two calls stays between them.
fn block(info: &RequestInfo, part: &MessagePart) -> Option<Value> {
    Some(match part {
        MessagePart::Text(text) => json!({ "type": "text", "text": text }),
        MessagePart::Reasoning { text, signature } => {
            let signature = signature.as_deref();
            if let Some(Ok(block @ Value::Object(_))) = signature.map(serde_json::from_str) {
                // An encrypted block, which goes back as it came.
                return Some(block);
            }
            match signature {
                Some(signature) => {
                    json!({ "type": "thinking", "thinking": text, "signature": signature })
                }
                // Anthropic refuses thinking without its signature. Other vendors sign nothing and want it back.
                None if info.own || info.is_claude() || text.is_empty() => return None,
                None => json!({ "type": "thinking", "thinking": text }),
            }
        }
        MessagePart::Call(call) => json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": call.arguments,
        }),
    })
}

fn result(result: &CallResult) -> Value {
    let mut block = json!({
        "type": "tool_result",
        "tool_use_id": result.id,
        "content": result.text,
    });
    if !result.ok {
        block["is_error"] = true.into();
    }
    block
}
