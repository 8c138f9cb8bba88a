//! The arguments of calls: their description for a model, and their parsing.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use co_llm::ToolSpec;
use co_llm::transcript::Call;

/// A call that cannot be parsed. The text goes back to the model, which can correct it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadCall(pub String);

/// Parses the arguments of a call.
pub(super) fn arguments<T: DeserializeOwned>(call: &Call) -> Result<T, BadCall> {
    serde_json::from_value(call.arguments.clone()).map_err(|error| {
        BadCall(format!(
            "The arguments of {} do not fit: {error}.",
            call.name
        ))
    })
}

/// Returns a tool whose arguments are an object with these properties (JSON Schema), of which `required` must be given.
pub(super) fn spec(
    name: &str,
    description: String,
    properties: Value,
    required: &[&str],
) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description,
        schema: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
    }
}
