//! The fields of a request's body that are added after all others.
//!
//! They come last so that the bytes before them, with the whole conversation, are the same in every request: providers
//! cache a prompt by its first bytes.

use serde_json::{Map, Value, json};

use crate::provider_table::Protocol;

/// Returns the fields to add: co's own, over which those of the person win, then the choice of tools.
///
/// `own`: the request goes to the provider's own host. With `may_call` false the model must answer without a call; Ollama
/// has no field for that.
pub(super) fn extra(
    (protocol, own): (Protocol, bool),
    may_call: bool,
    person: Option<&Value>,
) -> Option<Value> {
    let mut fields = Value::Object(Map::new());
    if protocol == Protocol::Anthropic && own {
        // Anthropic caches nothing unasked. Asked like this, it caches the request up to its last message and finds
        // that again in the next one (platform.claude.com, "Prompt caching", automatic caching, 2026-11). Servers
        // that only speak its protocol may refuse the field.
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

/// Puts `more` into `value`: objects into objects, anything else in the place of what is there.
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
