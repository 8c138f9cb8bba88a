//! The arguments of the tools that change files.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::EditPlace;
use crate::tool::schema::{self, BadCall, arguments};
use co_edit::Edit;
use co_llm::ToolSpec;
use co_llm::transcript::Call;
use co_policy::Pattern;

const EDIT: &str = "edit_file";
const WRITE: &str = "write_file";
const DELETE: &str = "delete_file";
const MOVE: &str = "move_file";

/// The names of these tools.
pub const NAMES: [&str; 4] = [EDIT, WRITE, DELETE, MOVE];

/// A call of one of these tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditRequest {
    Edit {
        path: String,
        edits: Vec<Edit>,
        hash: Option<String>,
    },
    Write {
        path: String,
        text: String,
        hash: Option<String>,
    },
    Delete {
        path: String,
    },
    Move {
        from: String,
        to: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditArguments {
    path: String,
    edits: Vec<Edit>,
    #[serde(default)]
    hash: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    path: String,
    text: String,
    #[serde(default)]
    hash: Option<String>,
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

/// Returns the descriptions of these tools for a model.
pub(in crate::tool) fn specs() -> [ToolSpec; 4] {
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

impl EditRequest {
    /// Parses a call; none if it is of a tool that is not in [`NAMES`].
    pub(in crate::tool) fn parse(call: &Call) -> Option<Result<Self, BadCall>> {
        Some(match call.name.as_str() {
            EDIT => arguments(call).map(|EditArguments { path, edits, hash }| Self::Edit {
                path,
                edits,
                hash,
            }),
            WRITE => arguments(call).map(|WriteArguments { path, text, hash }| Self::Write {
                path,
                text,
                hash,
            }),
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
        let call = Call::new("", name, arguments);
        Self::parse(&call).unwrap_or_else(|| {
            let names = NAMES.join(", ");
            Err(BadCall(format!(
                "The `name` of the request must be one of {names}."
            )))
        })
    }

    /// Returns an edit of a file that says nothing of its text, to judge the file.
    pub fn any_of(path: &str) -> Self {
        Self::Edit {
            path: path.to_owned(),
            edits: Vec::new(),
            hash: None,
        }
    }

    /// Returns the rules that allow every edit of a file of the workspace.
    pub fn every_edit() -> [Pattern; 2] {
        [EDIT, WRITE].map(|tool| Pattern::prefix([tool, "**"]))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Edit { .. } => EDIT,
            Self::Write { .. } => WRITE,
            Self::Delete { .. } => DELETE,
            Self::Move { .. } => MOVE,
        }
    }

    /// Returns the call in a line, for a person.
    pub fn line(&self) -> String {
        co_policy::one_line(&format!("{} {}", self.name(), self.paths().join(" ")))
    }

    /// Returns the words that rules match: the name of the tool and the files.
    pub fn words(&self, places: &[EditPlace]) -> Vec<String> {
        let files = places.iter().map(|place| place.shown.clone());
        std::iter::once(self.name().to_owned())
            .chain(files)
            .collect()
    }

    /// Returns what the call does, in words for the person.
    pub fn does(&self) -> &'static str {
        match self {
            Self::Edit { .. } => "changes a file",
            Self::Write { .. } => "writes a whole file",
            Self::Delete { .. } => "deletes a file",
            Self::Move { .. } => "moves a file",
        }
    }

    /// Returns the hash of the text that the model has read.
    pub fn hash(&self) -> Option<&str> {
        match self {
            Self::Edit { hash, .. } | Self::Write { hash, .. } => hash.as_deref(),
            Self::Delete { .. } | Self::Move { .. } => None,
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
