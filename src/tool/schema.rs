//! The interface of a tool: its description for a model, and the parsing of its arguments.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::call::PlannedCall;
use super::event::ShownCall;
use co_llm::ToolSpec;
use co_llm::transcript::Call;

/// A call that cannot be parsed. The text goes back to the model, which can correct it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadCall(pub String);

impl BadCall {
    pub(super) fn of_another_tool(call: &Call) -> Self {
        Self(format!("{} is another tool.", call.name))
    }
}

/// A tool that the model can call.
pub trait Tool: Send + Sync {
    /// Returns the description for a model. It must not change, so that providers can cache it.
    fn spec(&self) -> &ToolSpec;

    /// Returns the names by which a rule can refer to the whole tool.
    fn rule_names(&self) -> Vec<String> {
        vec![self.spec().name.clone()]
    }

    /// Parses a call of this tool.
    ///
    /// # Errors
    /// The arguments do not match the schema.
    fn parse(&self, call: &Call) -> Result<Box<dyn PlannedCall>, BadCall>;

    /// Returns the form in which the chat shows an invalid call of this tool. `line` contains the name of the tool and the
    /// subject of the call.
    fn shown_unread(&self, line: &str) -> Option<ShownCall>;
}

/// A tool that belongs to co itself.
pub(super) struct BuiltIn {
    pub spec: ToolSpec,
    pub parse: fn(&Call) -> Result<Box<dyn PlannedCall>, BadCall>,
    pub shown_unread: fn(&str) -> Option<ShownCall>,
}

impl Tool for BuiltIn {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn parse(&self, call: &Call) -> Result<Box<dyn PlannedCall>, BadCall> {
        (self.parse)(call)
    }

    fn shown_unread(&self, line: &str) -> Option<ShownCall> {
        (self.shown_unread)(line)
    }
}

/// The names of arguments that are whole numbers.
const NUMBERS: [&str; 9] = [
    "timeout", "offset", "limit", "depth", "context", "job", "since", "wait", "line",
];

/// The names of arguments that are true or false.
const FLAGS: [&str; 6] = [
    "pty",
    "background",
    "real",
    "close",
    "literal",
    "ignore_case",
];

/// Corrects arguments that models often send in another form: `30.0` or `"30"` for a number, and `"true"` for a flag. Removes the
/// argument `description`, and removes `timeout`, `offset` and `line` if they are 0. If the model sends both `argv` and `cmd`,
/// and one of them is empty, removes the empty one.
fn lenient(mut arguments: Value) -> Value {
    let Some(fields) = arguments.as_object_mut() else {
        return arguments;
    };
    fields.remove("description");
    for name in NUMBERS {
        let Some(value) = fields.get_mut(name) else {
            continue;
        };
        let number = match &*value {
            Value::String(text) => text.trim().parse::<f64>().ok(),
            other => other.as_f64(),
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole and small, as checked"
        )]
        if let Some(number) = number.filter(|it| it.fract() == 0.0 && it.abs() < 9e15) {
            *value = (number as i64).into();
        }
    }
    for name in ["timeout", "offset", "line"] {
        fields.retain(|field, value| field != name || *value != 0);
    }
    for name in FLAGS {
        let text = fields.get(name).and_then(Value::as_str);
        if let Some(flag) = text.and_then(|text| text.trim().parse::<bool>().ok()) {
            fields[name] = flag.into();
        }
    }
    let empty = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        other => other.is_null(),
    };
    for (one, other) in [("argv", "cmd"), ("cmd", "argv")] {
        let given = fields.get(other).is_some_and(|value| !empty(value));
        if given && fields.get(one).is_some_and(empty) {
            fields.remove(one);
        }
    }
    arguments
}

/// Parses the arguments of a call.
pub(super) fn arguments<T: DeserializeOwned>(call: &Call) -> Result<T, BadCall> {
    parsed(call, lenient(call.arguments.clone()))
}

/// Parses a call as the enum variant whose name is the name of the tool.
pub(super) fn named<T: DeserializeOwned>(call: &Call) -> Result<T, BadCall> {
    let arguments = lenient(call.arguments.clone());
    parsed(call, json!({ call.name.as_str(): arguments }))
}

fn parsed<T: DeserializeOwned>(call: &Call, value: Value) -> Result<T, BadCall> {
    serde_json::from_value(value).map_err(|error| {
        BadCall(format!(
            "The arguments of {} do not fit: {error}.",
            call.name
        ))
    })
}

/// Returns the description of a tool. Its arguments are an object with these properties (JSON Schema). The properties in
/// `required` must be given.
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

/// Returns a number that the model gave, or `default` if it gave none. Fails if the number is outside of its range.
pub(super) fn number(
    call: &Call,
    name: &str,
    given: Option<i64>,
    default: usize,
    range: std::ops::RangeInclusive<usize>,
) -> Result<usize, BadCall> {
    let Some(given) = given else {
        return Ok(default);
    };
    usize::try_from(given)
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            BadCall(format!(
                "{name} of {} is {} to {}.",
                call.name,
                range.start(),
                range.end()
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_models_often_send_is_taken_for_what_they_mean() {
        let check = |given: Value, expected: Value| assert_eq!(lenient(given), expected);
        check(
            json!({"cmd": "ls", "timeout": 30.0}),
            json!({"cmd": "ls", "timeout": 30}),
        );
        check(
            json!({"cmd": "ls", "timeout": "30"}),
            json!({"cmd": "ls", "timeout": 30}),
        );
        check(json!({"cmd": "ls", "timeout": 0}), json!({"cmd": "ls"}));
        check(json!({"path": "a", "offset": "0"}), json!({"path": "a"}));
        check(
            json!({"cmd": "ls", "description": "Lists files", "argv": [], "pty": "true"}),
            json!({"cmd": "ls", "pty": true}),
        );
        check(json!({"cmd": "", "argv": ["ls"]}), json!({"argv": ["ls"]}));
        check(json!({"job": 0, "wait": 5}), json!({"job": 0, "wait": 5}));
        // These are for the model to correct.
        for wrong in [
            json!({"cmd": "ls", "timeout": 1.5}),
            json!({"cmd": "ls", "timeout": "soon"}),
            json!({"cmd": "ls", "timeout": -5}),
            json!({"cmd": "ls", "argv": ["ls"]}),
            json!({"argv": []}),
            json!([1]),
        ] {
            check(wrong.clone(), wrong);
        }
    }
}
