//! Adds the marks that make Anthropic's models cache a request, and the cache key that other vendors accept.
//!
//! The cache key routes all requests of a chat to the server that has the beginning of the chat in its cache. Other providers
//! need neither marks nor a key.

use serde_json::{Value, json};

use super::conversation::Conversation;
use super::request_info::RequestInfo;
use crate::provider_table::Protocol;
use crate::server_memory::Adaptation;

/// The way in which a request marks the parts to cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheMarks {
    None,
    /// One field of the request turns the cache on. The server itself chooses the parts to cache. (platform.claude.com "Prompt
    /// caching", openrouter.ai "Prompt caching", 2026-11)
    Request,
    /// The system prompt and the last messages have a field that marks them. Gateways translate this field for Bedrock, Vertex
    /// and Azure.
    Blocks,
}

impl CacheMarks {
    pub(super) fn of(info: &RequestInfo) -> Self {
        let anthropic = info.protocol == Protocol::Anthropic;
        let claude = info.is_claude() && info.protocol == Protocol::OpenAi;
        match info.adaptations.contains(&Adaptation::WithoutCacheMarks) {
            false if anthropic && info.own => Self::Request,
            false if claude && info.is_at("openrouter.ai") => Self::Request,
            false if anthropic || claude => Self::Blocks,
            _ => Self::None,
        }
    }
}

/// Adds the cache key of the chat to the body, for the hosts that accept this field. (developers.openai.com, docs.mistral.ai and
/// docs.x.ai "Prompt caching", 2026-11)
pub(super) fn add_key(info: &RequestInfo, chat: &Conversation, body: &mut Value) {
    let in_body = info.is_openai()
        || info.is_at("api.mistral.ai")
        || (is_grok(info) && info.protocol == Protocol::Responses);
    if let Some(key) = &chat.cache_key
        && in_body
        && !info.adaptations.contains(&Adaptation::WithoutCacheKey)
    {
        body["prompt_cache_key"] = key.as_str().into();
    }
}

/// Returns the header with the cache key of the chat. xAI expects this header in the chat completions API.
pub(super) fn key_header(info: &RequestInfo, chat: &Conversation) -> Option<(String, String)> {
    let key = chat.cache_key.clone()?;
    let in_header = is_grok(info) && info.protocol == Protocol::OpenAi;
    in_header.then(|| ("x-grok-conv-id".to_owned(), key))
}

fn is_grok(info: &RequestInfo) -> bool {
    info.is_at("api.x.ai")
}

/// Returns the value of the field that marks a part to cache.
pub(super) fn mark() -> Value {
    json!({ "type": "ephemeral" })
}

/// Returns a message content that has this text. With [`CacheMarks::Blocks`], the content is a list with one block, because only
/// a block can have a mark.
///
/// All messages have the same form. So when a message is no longer the last one, only its mark changes. Marks are not part of the
/// cached text.
pub(super) fn block(marks: CacheMarks, text: &str) -> Value {
    match marks {
        CacheMarks::Blocks => json!([{ "type": "text", "text": text }]),
        CacheMarks::None | CacheMarks::Request => text.into(),
    }
}

/// Returns a message content with a person's text and images. Without images, it is the same as [`block`].
pub(super) fn content(marks: CacheMarks, text: &str, images: Vec<Value>) -> Value {
    if images.is_empty() {
        return block(marks, text);
    }
    let text = json!({ "type": "text", "text": text });
    images.into_iter().chain([text]).collect()
}

/// Marks two blocks: the last block of the last message, and the block that the previous request marked last.
pub(super) fn mark_last(messages: &mut [Value]) {
    let answers = |message: &Value| message["role"] == "assistant";
    let before = messages.iter().rposition(answers);
    let last = messages.len().checked_sub(1);
    let places = [before.and_then(|at| at.checked_sub(1)), last];
    for at in places.into_iter().flatten() {
        let blocks = messages[at]["content"].as_array_mut();
        if let Some(block) = blocks.and_then(|blocks| blocks.last_mut()) {
            block["cache_control"] = mark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::request_info::test_info;

    #[test]
    fn marks_by_protocol_host_and_model() {
        let check = |protocol, host: &str, model: &str, own, expected| {
            let info = RequestInfo {
                host: host.into(),
                model: model.into(),
                own,
                ..test_info(protocol)
            };
            assert_eq!(CacheMarks::of(&info), expected, "{host} {model}");
        };
        use Protocol::{Anthropic, OpenAi, Responses};
        check(
            Anthropic,
            "api.anthropic.com",
            "claude-x",
            true,
            CacheMarks::Request,
        );
        check(Anthropic, "gateway", "claude-x", false, CacheMarks::Blocks);
        check(
            OpenAi,
            "openrouter.ai",
            "anthropic/claude-x",
            false,
            CacheMarks::Request,
        );
        check(
            OpenAi,
            "gateway",
            "anthropic/claude-x",
            false,
            CacheMarks::Blocks,
        );
        check(OpenAi, "gateway", "gpt-x", false, CacheMarks::None);
        check(Responses, "api.openai.com", "gpt-x", true, CacheMarks::None);
    }

    #[test]
    fn the_last_message_and_the_end_of_the_request_before_are_marked() {
        let text = |role: &str| json!({"role": role, "content": [{"type": "text", "text": "x"}]});
        let roles = ["user", "assistant", "user", "assistant", "user", "user"];
        let mut messages: Vec<Value> = roles.iter().map(|role| text(role)).collect();
        mark_last(&mut messages);
        let marked = messages
            .iter()
            .map(|it| it["content"][0]["cache_control"].is_object());
        let marked: Vec<bool> = marked.collect();
        assert_eq!(marked, [false, false, true, false, false, true]);
    }
}
