//! The fields of a request's body that are added after all others.
//!
//! They come last so that the bytes before them, with the whole conversation, are the same in every request: providers
//! cache a prompt by its first bytes.

use serde_json::{Map, Value, json};

use crate::llm::choice::Protocol;

/// Returns the fields to add: co's own, then those that the person set (`person`), which win.
///
/// With `may_call` false the model is told to answer without a call. Ollama has no field for that.
pub(super) fn extra(protocol: Protocol, may_call: bool, person: Option<&Value>) -> Option<Value> {
    let mut fields = Value::Object(Map::new());
    if protocol == Protocol::Anthropic {
        // Anthropic caches nothing unasked. Asked like this, it caches the request up to its last message and finds
        // that again in the next one (platform.claude.com, "Prompt caching", automatic caching, 2026-11).
        fields["cache_control"] = json!({ "type": "ephemeral" });
    }
    if let Some(person) = person {
        merge(&mut fields, person);
    }
    if !may_call && let Some(choice) = no_calls(protocol) {
        merge(&mut fields, &choice);
    }
    let empty = fields.as_object().is_some_and(Map::is_empty);
    (!empty).then_some(fields)
}

fn no_calls(protocol: Protocol) -> Option<Value> {
    Some(match protocol {
        Protocol::Anthropic => json!({ "tool_choice": { "type": "none" } }),
        Protocol::OpenAi | Protocol::Responses => json!({ "tool_choice": "none" }),
        Protocol::Gemini => {
            json!({ "toolConfig": { "functionCallingConfig": { "mode": "NONE" } } })
        }
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
    fn what_the_person_set_wins() {
        let person = json!({ "cache_control": { "ttl": "1h" }, "top_k": 4 });
        assert_eq!(
            extra(Protocol::Anthropic, true, Some(&person)),
            Some(json!({ "cache_control": { "type": "ephemeral", "ttl": "1h" }, "top_k": 4 }))
        );
        assert_eq!(extra(Protocol::OpenAi, true, None), None);
    }
}
