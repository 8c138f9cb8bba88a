//! OpenAI's Responses API.

mod reader;

use serde_json::{Value, json};

pub(super) use self::reader::EventReader;
use super::caching;
use super::conversation::{Conversation, Message, MessagePart};
use super::options::{self, RequestOptions};
use super::reasoning;
use super::request_info::RequestInfo;
use crate::provider_table::{self, Protocol};
use crate::request::ToolSpec;
use crate::server_memory::Adaptation;

/// Returns the body of a request to the Responses API. The server stores nothing, so each request contains the whole chat.
pub(super) fn body(info: &RequestInfo, options: &RequestOptions, chat: &Conversation) -> Value {
    let adapted = |adaptation| info.adaptations.contains(&adaptation);
    let mut body = json!({
        "model": info.model,
        "stream": true,
        "store": false,
        "instructions": chat.system,
    });
    if !chat.tools.is_empty() {
        body["tools"] = chat.tools.iter().map(tool).collect();
    }
    body["input"] = chat.messages.iter().flat_map(items).collect();
    if provider_table::can_return_reasoning(&info.model) {
        if !adapted(Adaptation::WithoutSummary) {
            body["reasoning"] = json!({ "summary": "auto" });
        }
        if !adapted(Adaptation::WithoutEncrypted) {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        reasoning::add_effort(info, &mut body);
    }
    caching::add_key(info, chat, &mut body);
    if let Some(tokens) = options.output_limit() {
        body["max_output_tokens"] = tokens.into();
    }
    options::finish(&mut body, Protocol::Responses, options, chat.may_call);
    body
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.schema,
        // Otherwise the server demands that each argument is required.
        "strict": false,
    })
}

fn items(message: &Message) -> Vec<Value> {
    match message {
        Message::User { text, images } => {
            let images = images.iter();
            let images =
                images.map(|it| json!({ "type": "input_image", "image_url": it.data_url() }));
            let text = json!({ "type": "input_text", "text": text });
            let content: Vec<Value> = images.chain([text]).collect();
            vec![json!({ "type": "message", "role": "user", "content": content })]
        }
        Message::Model(parts) => parts.iter().filter_map(item).collect(),
        Message::Results(results) => results
            .iter()
            .map(|result| {
                json!({
                    "type": "function_call_output",
                    "call_id": result.id,
                    "output": result.text,
                })
            })
            .collect(),
    }
}

fn item(part: &MessagePart) -> Option<Value> {
    Some(match part {
        MessagePart::Text(text) => json!({
            "type": "message",
            "role": "assistant",
            "content": [{ "type": "output_text", "text": text }],
        }),
        MessagePart::Reasoning { text, signature } => {
            let summary = match text.is_empty() {
                true => json!([]),
                false => json!([{ "type": "summary_text", "text": text }]),
            };
            json!({
                "type": "reasoning",
                "summary": summary,
                "encrypted_content": signature.as_deref()?,
            })
        }
        MessagePart::Call(call) => json!({
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments.to_string(),
        }),
    })
}
