//! One interface for the five protocols.

use serde_json::Value;

use super::conversation::Conversation;
use super::frame_reader::FrameReader;
use super::frames::Framing;
use super::options::RequestOptions;
use super::request_info::RequestInfo;
use super::{anthropic, chat_completions, gemini, ollama, responses};
use crate::provider_table::Protocol;

/// Returns the path of a request, relative to the base address, and its query.
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

/// Returns the body of a request in the protocol of the server.
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
        Protocol::Gemini => Box::new(gemini::CandidateReader),
        Protocol::Ollama => Box::new(ollama::LineReader),
    }
}

pub(super) fn framing(protocol: Protocol) -> Framing {
    match protocol {
        Protocol::Ollama => Framing::Lines,
        _ => Framing::Events,
    }
}
