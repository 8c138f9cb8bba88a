//! Fields at the end of a request's body.
//!
//! They come last, so that the bytes before them are the same in each request of a chat. Providers cache a prompt by its
//! first bytes.

use serde_json::{Map, Value, json};

use crate::provider_table::Protocol;

/// Returns the fields to add: our own, replaced by those of the person, then the field that forbids calls.
///
/// `own` is true if the request goes to the provider's own server. If `may_call` is false, the model must answer without a
/// call. Ollama has no field for that.
pub(super) fn extra(
    (protocol, own): (Protocol, bool),
    may_call: bool,
    person: Option<&Value>,
) -> Option<Value> {
    let mut fields = Value::Object(Map::new());
    if protocol == Protocol::Anthropic && own {
        // Without this field Anthropic caches nothing. With it, it caches the request up to its last message
        // (platform.claude.com, "Prompt caching", automatic caching, 2026-11). Other servers that speak its protocol
        // may refuse the field.
        fields["cache_control"] = json!({ "type": "ephemeral" });
    }
    if let Some(person) = person {
        merge(&mut fields, person);
    }
    if !may_call && let Some((name, choice)) = no_calls(protocol) {
        fields[name] = choice;
    }
    let empty = fields.as_object().is_some_and(Map::is_empty);
    (!empty).then_some(fields)
}

/// Returns the field that forbids calls, and its value.
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
pub(super) fn merge(value: &mut Value, more: &Value) {
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
        let person = json!({ "cache_control": { "ttl": "1h" }, "top_k": 4 });
        assert_eq!(
            extra((Protocol::Anthropic, true), true, Some(&person)),
            Some(json!({ "cache_control": { "type": "ephemeral", "ttl": "1h" }, "top_k": 4 }))
        );
        for other in [(Protocol::OpenAi, true), (Protocol::Anthropic, false)] {
            assert_eq!(extra(other, true, None), None);
        }
        let person = json!({ "tool_choice": { "type": "tool", "name": "run" } });
        assert_eq!(
            extra((Protocol::Anthropic, false), false, Some(&person)),
            Some(json!({ "tool_choice": { "type": "none" } }))
        );
    }
}
