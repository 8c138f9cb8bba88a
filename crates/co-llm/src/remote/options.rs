//! The options of a request, such as limits. The conversation is not one of them.
//!
//! Most of these fields stand at the end of the body, so that the bytes before them stay the same in all requests of a chat.

use serde_json::{Value, json};

use crate::provider_table::Protocol;

/// The options of one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RequestOptions {
    /// The output limit in tokens that the person set.
    pub(super) max_output_tokens: Option<u64>,
    /// The number of tokens that the conversation leaves free in the context window. It is `None` if this is unknown.
    pub(super) room: Option<u64>,
    /// The largest output limit in tokens that the server accepts. It is known after the server refused a larger one.
    pub(super) answer_limit: Option<u64>,
    /// The context window in tokens that a request to Ollama sets.
    pub(super) window: u64,
    /// Body fields that the person set. If co sets a field of the same name, the person's value replaces it.
    pub(super) extra_body: Option<Value>,
}

/// The smallest output limit in tokens that co asks for, even if less room seems to be left. The estimate of a conversation's
/// size is usually too high. Half of this number is the smallest thinking budget that Anthropic accepts.
pub(super) const LEAST_ROOM: u64 = 2048;

impl RequestOptions {
    /// Returns `limit`, reduced to the free part of the context window and to the limit of the server. Servers refuse a larger
    /// limit.
    pub(super) fn cut(&self, limit: u64) -> u64 {
        let room = self.room.map(|room| room.max(LEAST_ROOM));
        let most = [room, self.answer_limit].into_iter().flatten().min();
        most.map_or(limit, |most| limit.min(most))
    }

    /// Returns the thinking budget for Claude that the person set.
    pub(super) fn thinking_budget(&self) -> Option<u64> {
        let body = self.extra_body.as_ref()?;
        body.pointer("/thinking/budget_tokens")?.as_u64()
    }

    /// Returns the output limit that the person set, reduced by [`Self::cut`].
    pub(super) fn output_limit(&self) -> Option<u64> {
        self.max_output_tokens.map(|limit| self.cut(limit))
    }
}

/// Returns the output limit that the body of a request contains.
pub(super) fn limit_in(body: &Value) -> Option<u64> {
    let places = [
        "/max_tokens",
        "/max_completion_tokens",
        "/max_output_tokens",
        "/generationConfig/maxOutputTokens",
        "/options/num_predict",
    ];
    places
        .iter()
        .find_map(|place| body.pointer(place)?.as_u64())
}

/// Adds the last fields of a body: the fields of the person, and then the field that forbids calls.
pub(super) fn finish(
    body: &mut Value,
    protocol: Protocol,
    options: &RequestOptions,
    may_call: bool,
) {
    if let Some(person) = &options.extra_body {
        merge(body, person);
    }
    if !may_call && let Some((name, choice)) = no_calls(protocol) {
        body[name] = choice;
    }
}

/// Returns the name and the value of the field that forbids calls. Ollama has no such field.
fn no_calls(protocol: Protocol) -> Option<(&'static str, Value)> {
    Some(match protocol {
        Protocol::Anthropic => ("tool_choice", json!({ "type": "none" })),
        Protocol::OpenAi | Protocol::Responses => ("tool_choice", json!("none")),
        Protocol::Gemini => (
            "toolConfig",
            json!({ "functionCallingConfig": { "mode": "NONE" } }),
        ),
        Protocol::Ollama => return None,
    })
}

/// Merges `more` into `value`. Objects are merged field by field. Other values are replaced.
fn merge(value: &mut Value, more: &Value) {
    match (value, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (name, more) in more {
                merge(fields.entry(name).or_insert(Value::Null), more);
            }
        }
        (value, more) => *value = more.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_merged_and_all_else_takes_its_place() {
        let mut value = json!({ "options": { "num_ctx": 8192, "a": [1] }, "stream": true });
        merge(
            &mut value,
            &json!({ "options": { "a": [2], "temperature": 0 }, "think": true }),
        );
        let expected = json!({
            "options": { "num_ctx": 8192, "a": [2], "temperature": 0 },
            "stream": true,
            "think": true,
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn the_limit_of_an_answer_is_cut_to_what_is_left() {
        let limit = |set: Option<u64>, room| {
            let options = RequestOptions {
                max_output_tokens: set,
                room,
                ..RequestOptions::default()
            };
            options.output_limit()
        };
        assert_eq!(limit(None, Some(9_000)), None);
        assert_eq!(limit(Some(8_192), None), Some(8_192));
        assert_eq!(limit(Some(8_192), Some(9_000)), Some(8_192));
        assert_eq!(limit(Some(8_192), Some(5_000)), Some(5_000));
        assert_eq!(limit(Some(8_192), Some(0)), Some(LEAST_ROOM));
        assert_eq!(limit(Some(100), Some(0)), Some(100));
    }

    #[test]
    fn what_the_person_set_wins_but_for_the_last_request() {
        let set = |person: Value, may_call| {
            let options = RequestOptions {
                extra_body: Some(person),
                ..RequestOptions::default()
            };
            let mut body = json!({ "cache_control": { "type": "ephemeral" } });
            finish(&mut body, Protocol::Anthropic, &options, may_call);
            body
        };
        assert_eq!(
            set(
                json!({ "cache_control": { "ttl": "1h" }, "top_k": 4 }),
                true
            ),
            json!({ "cache_control": { "type": "ephemeral", "ttl": "1h" }, "top_k": 4 })
        );
        let person = json!({ "tool_choice": { "type": "tool", "name": "run" } });
        assert_eq!(set(person, false)["tool_choice"], json!({ "type": "none" }));
    }
}
