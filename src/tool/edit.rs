//! The tools `edit_file`, `write_file`, `delete_file` and `move_file`, which change files of the workspace.

use serde_json::{Map, Value, json};

pub(super) mod call;

use super::event::{ShownCall, in_words};
use super::schema::{self, BadCall};
use crate::workspace::edits::{DELETE, EDIT, EditRequest, MOVE, NAMES, RENAME, WRITE};
use co_llm::ToolSpec;
use co_llm::transcript::Call;

pub(super) use call::tools;

/// The tools that change files, each with its verb for the person.
pub(super) const VERBS: [(&str, &str); 5] = [
    (EDIT, "edit"),
    (WRITE, "write"),
    (DELETE, "delete"),
    (MOVE, "move"),
    (RENAME, "rename"),
];

/// Returns the form in which the chat shows a call that changes files. `line` is a text about the call.
pub(super) fn shown(line: String) -> ShownCall {
    shown_unread(&line).unwrap_or(ShownCall::Edit(line))
}

/// Returns the form in which the chat shows an invalid call of a tool that changes files. `line` is a text about the call.
pub(super) fn shown_unread(line: &str) -> Option<ShownCall> {
    in_words(line, &VERBS).map(ShownCall::Edit)
}

fn specs() -> [ToolSpec; 4] {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let path = text("The file. A relative path starts at the working directory.");
    let hash = text(
        "The hash that read_file or the last change of the file told. If the text has changed since, nothing is changed.",
    );
    let edit = json!({
        "type": "object",
        "properties": {
            "old": text("The text to replace, copied exactly from the file, with enough lines around it to stand once."),
            "new": text("The text in its place."),
            "all": { "type": "boolean", "description": "Replaces each place. Default: false." },
        },
        "required": ["old", "new"],
        "additionalProperties": false,
    });
    let edits = json!({
        "type": "array",
        "items": edit,
        "description": "The replacements, in order. Each applies to the text that the ones before it left.",
    });
    [
        schema::spec(
            EDIT,
            "Replaces texts in one file of the workspace: all of them or none. The person sees the difference and is \
             asked. Line breaks, encoding and mode stay as they are. Read the file first."
                .to_owned(),
            json!({ "path": path, "edits": edits, "hash": hash }),
            &["path", "edits"],
        ),
        schema::spec(
            WRITE,
            "Writes a new file of the workspace with its directories, or replaces the whole text of one. The person sees \
             the difference and is asked. To change parts of a file, use edit_file."
                .to_owned(),
            json!({ "path": path, "text": text("The whole text of the file."), "hash": hash }),
            &["path", "text"],
        ),
        schema::spec(
            DELETE,
            "Deletes one file of the workspace. The person is asked.".to_owned(),
            json!({ "path": path }),
            &["path"],
        ),
        schema::spec(
            MOVE,
            "Gives one file of the workspace another name, and makes the directories of that name. Never replaces a file. \
             The person is asked."
                .to_owned(),
            json!({ "from": path, "to": text("The new name. No file may have it.") }),
            &["from", "to"],
        ),
    ]
}

/// Parses a call in JSON: an object with the `name` of the tool and its `arguments`. For every tool except `delete_file`, the
/// object may contain only the arguments, because they identify the tool.
///
/// # Errors
/// The text is not such a call.
pub fn from_json(text: &str) -> Result<EditRequest, BadCall> {
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
    if !NAMES.contains(&name.as_str()) {
        let names = NAMES.join(", ");
        return Err(BadCall(format!(
            "The `name` of the request must be one of {names}."
        )));
    }
    schema::named(&Call::new("", name, arguments))
}

/// Returns the name of the tool that has such arguments; empty if there is no such tool.
fn name_of(arguments: &Map<String, Value>) -> &'static str {
    let tools = [("edits", EDIT), ("text", WRITE), ("from", MOVE)];
    let found = tools
        .iter()
        .find(|(field, _)| arguments.contains_key(*field));
    found.map_or("", |(_, name)| name)
}

#[cfg(test)]
mod tests;
