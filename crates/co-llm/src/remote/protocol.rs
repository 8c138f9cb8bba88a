//! The five protocols behind one interface.

use serde_json::Value;

use super::answer::Answer;
use super::conversation::Conversation;
use super::error::malformed;
use super::frames::Framing;
use super::options::RequestOptions;
use super::request_info::RequestInfo;
use super::{anthropic, chat_completions, gemini, ollama, responses};
use crate::fault::Fault;
use crate::provider_table::Protocol;

/// Reads the frames of one answer.
pub(super) trait FrameReader: Send {
    /// Adds what a frame says.
    fn frame(&mut self, frame: Value, info: &RequestInfo, answer: &mut Answer)
    -> Result<(), Fault>;

    /// Returns true once the server gave a reason for its end. What follows is not needed.
    fn complete(&self) -> bool;

    /// Ends the answer after the last frame. It is called only if [`FrameReader::complete`].
    fn finish(&mut self, info: &RequestInfo, answer: &mut Answer) -> Result<(), Fault>;
}

/// Returns the path of a request below the base address, and its query.
pub(super) fn path(info: &RequestInfo) -> (String, Option<&'static str>) {
    match info.protocol {
        Protocol::Anthropic => ("messages".to_owned(), None),
        Protocol::OpenAi => ("chat/completions".to_owned(), None),
        Protocol::Responses => ("responses".to_owned(), None),
        Protocol::Gemini => {
            let path = format!("models/{}:streamGenerateContent", info.model);
            (path, Some("alt=sse"))
        }
        Protocol::Ollama => ("api/chat".to_owned(), None),
    }
}

/// Returns the body of a request.
pub(super) fn body(info: &RequestInfo, options: &RequestOptions, chat: &Conversation) -> Value {
    match info.protocol {
        Protocol::Anthropic => anthropic::body(info, options, chat),
        Protocol::OpenAi => chat_completions::body(info, options, chat),
        Protocol::Responses => responses::body(info, options, chat),
        Protocol::Gemini => gemini::body(info, options, chat),
        Protocol::Ollama => ollama::body(info, options, chat),
    }
}

pub(super) fn reader(protocol: Protocol) -> Box<dyn FrameReader> {
    match protocol {
        Protocol::Anthropic => Box::new(anthropic::MessageReader::default()),
        Protocol::OpenAi => Box::new(chat_completions::ChunkReader::default()),
        Protocol::Responses => Box::new(responses::EventReader::default()),
        Protocol::Gemini => Box::new(gemini::CandidateReader::default()),
        Protocol::Ollama => Box::new(ollama::LineReader::default()),
    }
}

pub(super) fn framing(protocol: Protocol) -> Framing {
    match protocol {
        Protocol::Ollama => Framing::Lines,
        _ => Framing::Events,
    }
}

/// Returns the text of a field; empty if it is missing, null or no text.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Returns the number at a path; 0 if there is none.
pub(super) fn count(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

/// Returns arguments that a server sends as an object as text.
pub(super) fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) if text.trim().is_empty() => String::new(),
        // Text of JSON inside a JSON string is no object, and must not become one.
        other => other.to_string(),
    }
}

/// Returns the fault for a reason that means a failure of the server or the model.
pub(super) fn stopped_with(reason: &str) -> Fault {
    malformed(&format!("the model stopped with {reason}"))
}

/// Returns the notice for a reason that this version does not know.
pub(super) fn unknown_reason(reason: &str) -> String {
    format!("the model stopped for a reason that co does not know: {reason}")
}

/// Returns the fault for an answer that announced a call and has none.
pub(super) fn missing_call() -> Fault {
    malformed("it announced a call and made none")
}
