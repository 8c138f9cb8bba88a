//! The arguments of the tools that change files.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::tool::schema::{BadCall, arguments};
use co_edit::Edit;
use co_llm::transcript::Call;

const EDIT: &str = "edit_file";
const WRITE: &str = "write_file";
const DELETE: &str = "delete_file";
const MOVE: &str = "move_file";

/// The names of these tools.
pub const NAMES: [&str; 4] = [EDIT, WRITE, DELETE, MOVE];

/// A call of one of these tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditRequest {
    Edit { path: String, edits: Vec<Edit> },
    Write { path: String, text: String },
    Delete { path: String },
    Move { from: String, to: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditArguments {
    path: String,
    edits: Vec<Edit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    path: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveArguments {
    from: String,
    to: String,
}

impl EditRequest {
    /// Parses a call; none if it is of a tool that is not in [`NAMES`].
    pub(in crate::tool) fn parse(call: &Call) -> Option<Result<Self, BadCall>> {
        Some(match call.name.as_str() {
            EDIT => arguments(call).map(|EditArguments { path, edits }| Self::Edit { path, edits }),
            WRITE => {
                arguments(call).map(|WriteArguments { path, text }| Self::Write { path, text })
            }
            DELETE => arguments(call).map(|DeleteArguments { path }| Self::Delete { path }),
            MOVE => arguments(call).map(|MoveArguments { from, to }| Self::Move { from, to }),
            _ => return None,
        })
    }

    /// Parses a call in JSON: an object with the `name` of the tool and its `arguments`. The arguments alone suffice for
    /// every tool but `delete_file`, because they tell which tool it is.
    ///
    /// # Errors
    /// The text is no such call.
    pub fn from_json(text: &str) -> Result<Self, BadCall> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| BadCall(format!("The request is not JSON: {error}.")))?;
        let Value::Object(mut fields) = value else {
            return Err(BadCall("The request is not a JSON object.".to_owned()));
        };
        let (name, arguments) = match fields.remove("name") {
            Some(name) => {
                let arguments = fields.remove("arguments").unwrap_or_default();
                if let Some(other) = fields.keys().next() {
                    return Err(BadCall(format!(
                        "The request has `{other}` beside `name` and `arguments`: leave it out."
                    )));
                }
                (name.as_str().unwrap_or_default().to_owned(), arguments)
            }
            None => (name_of(&fields).to_owned(), Value::Object(fields)),
        };
        let call = Call {
            id: String::new(),
            name,
            arguments,
            signature: None,
        };
        Self::parse(&call).unwrap_or_else(|| {
            let names = NAMES.join(", ");
            Err(BadCall(format!(
                "The `name` of the request must be one of {names}."
            )))
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Edit { .. } => EDIT,
            Self::Write { .. } => WRITE,
            Self::Delete { .. } => DELETE,
            Self::Move { .. } => MOVE,
        }
    }

    /// Returns the paths, as the model gave them.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Self::Edit { path, .. } | Self::Write { path, .. } | Self::Delete { path } => {
                vec![path]
            }
            Self::Move { from, to } => vec![from, to],
        }
    }
}

/// Returns the name of the tool that takes such arguments, or nothing.
fn name_of(arguments: &Map<String, Value>) -> &'static str {
    let tools = [("edits", EDIT), ("text", WRITE), ("from", MOVE)];
    let found = tools
        .iter()
        .find(|(field, _)| arguments.contains_key(*field));
    found.map_or("", |(_, name)| name)
}
