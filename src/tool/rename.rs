//! The tool `rename_symbol`: renames a symbol with the person's language server. The rename is one change of several files.

mod call;

use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use super::schema;
use crate::protocol::{EditorQuery, EditorTopic};
use crate::workspace::edits::{EditRefused, RENAME as NAME};
use co_llm::ToolSpec;

pub(super) use call::tool;

/// A call of `rename_symbol`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenameRequest {
    path: String,
    name: String,
    new_name: String,
    line: Option<u64>,
}

fn spec() -> ToolSpec {
    let text = |description: &str| json!({ "type": "string", "description": description });
    schema::spec(
        NAME,
        "Renames a variable, function, type or the like in every file of the workspace that uses it, by the language \
         server of a file that is open in the editor: all places or none. The person sees the difference and is asked."
            .to_owned(),
        json!({
            "path": text("A file that is open in the editor and has the name. A relative path starts at the working directory."),
            "name": text("The name, as it stands in the file."),
            "new_name": text("The new name."),
            "line": {
                "type": "integer",
                "minimum": 1,
                "description": "The line in which `name` stands. Default: the first that the language server knows it in.",
            },
        }),
        &["path", "name", "new_name"],
    )
}

impl RenameRequest {
    /// Returns the call as one line, for the person.
    pub fn line(&self) -> String {
        let line = format!("{NAME} {} {} in {}", self.name, self.new_name, self.path);
        co_text::one_line(&line)
    }

    /// Returns the path of the file with the symbol, as the model named it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the message to the editor. `file` is the canonical path of the file.
    pub fn message(&self, file: &Path) -> EditorQuery {
        EditorQuery {
            topic: EditorTopic::Rename,
            file: file.to_str().map(str::to_owned),
            name: Some(self.name.clone()),
            line: self.line,
            new_name: Some(self.new_name.clone()),
        }
    }

    pub fn refuse(&self, why: impl std::fmt::Display) -> EditRefused {
        EditRefused(format!("cannot rename {}: {why}", self.name))
    }
}
