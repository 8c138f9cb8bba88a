//! The options of a request beside its conversation.
//!
//! Most fields stand at the end of a body, so that the bytes before them are the same in each request of a chat.

use serde_json::{Value, json};

use crate::provider_table::Protocol;

/// The options of one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RequestOptions {
    pub(super) max_output_tokens: Option<u64>,
    /// The context window to ask Ollama for.
    pub(super) window: u64,
    /// Fields of the person. They replace our own.
    pub(super) extra_body: Option<Value>,
}

/// Adds the last fields of a body: those of the person, then the field that forbids calls.
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

/// Returns the field that forbids calls, and its value. Ollama has none.
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

/// Merges `more` into `value`. Objects are merged field by field. All other values are replaced.
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
