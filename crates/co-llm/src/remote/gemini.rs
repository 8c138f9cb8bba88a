//! Google's Gemini API.

mod reader;

use serde_json::{Value, json};

pub(super) use self::reader::CandidateReader;
use super::answer::is_servers_id;
use super::conversation::{CallResult, Conversation, Message, MessagePart};
use super::options::{self, RequestOptions};
use super::reasoning;
use super::request_info::RequestInfo;
use crate::provider_table::Protocol;
use crate::request::ToolSpec;
use crate::server_memory::Adaptation;
use crate::transcript::Call;

/// The signature for a call that another model made. From version 3 on, Gemini refuses a step whose first call has no signature
/// (ai.google.dev, "Thought signatures", 2026-11).
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Returns the body of a request to Gemini.
pub(super) fn body(info: &RequestInfo, options: &RequestOptions, chat: &Conversation) -> Value {
    let mut body = json!({ "systemInstruction": { "parts": [{ "text": chat.system }] } });
    if !chat.tools.is_empty() {
        let tools: Vec<Value> = chat.tools.iter().map(tool).collect();
        body["tools"] = json!([{ "functionDeclarations": tools }]);
    }
    let contents = chat.messages.iter().map(|message| content(info, message));
    body["contents"] = contents.collect();
    if let Some(tokens) = options.output_limit() {
        body["generationConfig"]["maxOutputTokens"] = tokens.into();
    }
    if !info.adaptations.contains(&Adaptation::WithoutThoughts) {
        body["generationConfig"]["thinkingConfig"] = json!({ "includeThoughts": true });
    }
    reasoning::add_effort(info, &mut body);
    options::finish(&mut body, Protocol::Gemini, options, chat.may_call);
    body
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "description": spec.description,
        "parametersJsonSchema": spec.schema,
    })
}

fn content(info: &RequestInfo, message: &Message) -> Value {
    match message {
        Message::User { text, images } => {
            let images = images
                .iter()
                .map(|it| json!({ "inlineData": { "mimeType": it.media_type, "data": it.data } }));
            let parts: Vec<Value> = images.chain([json!({ "text": text })]).collect();
            json!({ "role": "user", "parts": parts })
        }
        Message::Model(parts) => json!({ "role": "model", "parts": model_parts(info, parts) }),
        Message::Results(results) => {
            let parts: Vec<Value> = results.iter().map(result).collect();
            json!({ "role": "user", "parts": parts })
        }
    }
}

fn model_parts(info: &RequestInfo, parts: &[MessagePart]) -> Vec<Value> {
    let mut written = Vec::new();
    // A signature belongs to the part after it. It may be the last part by itself.
    let mut signature: Option<&str> = None;
    let mut calls = 0;
    for part in parts {
        let (mut part, own) = match part {
            MessagePart::Reasoning { signature: new, .. } => {
                signature = new.as_deref().or(signature);
                continue;
            }
            MessagePart::Text(text) => (json!({ "text": text }), None),
            MessagePart::Call(call) => {
                calls += 1;
                // Only the first one of a step must have a signature.
                let needs_one = calls == 1 && !is_old(&info.model);
                let none = needs_one.then_some(NO_SIGNATURE);
                (function_call(call), call.signature.as_deref().or(none))
            }
        };
        if let Some(signature) = signature.take().or(own) {
            part["thoughtSignature"] = signature.into();
        }
        written.push(part);
    }
    if let Some(signature) = signature {
        written.push(json!({ "text": "", "thoughtSignature": signature }));
    }
    written
}

/// Returns true if this version of Gemini accepts a call without a signature.
fn is_old(model: &str) -> bool {
    ["gemini-1", "gemini-2", "gemma"]
        .iter()
        .any(|old| model.contains(old))
}

fn function_call(call: &Call) -> Value {
    let mut function = json!({ "name": call.name, "args": call.arguments });
    if is_servers_id(&call.id) {
        function["id"] = call.id.as_str().into();
    }
    json!({ "functionCall": function })
}

fn result(result: &CallResult) -> Value {
    let field = if result.ok { "output" } else { "error" };
    let mut response = json!({
        "name": result.name,
        "response": { field: result.text },
    });
    if is_servers_id(&result.id) {
        response["id"] = result.id.as_str().into();
    }
    json!({ "functionResponse": response })
}
