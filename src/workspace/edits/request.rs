//! The model's request to change files.

use serde::Deserialize;

use super::EditPlace;
use co_edit::Edit;
use co_policy::Pattern;

/// The names by which rules refer to the tools that change files.
pub const NAMES: [&str; 4] = co_policy::rules::EDIT_TOOLS;

pub const EDIT: &str = NAMES[0];
pub const WRITE: &str = NAMES[1];
pub const DELETE: &str = NAMES[2];
pub const MOVE: &str = NAMES[3];

/// The model's request to change files: the name of the tool with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum EditRequest {
    #[serde(rename = "edit_file")]
    Edit {
        path: String,
        edits: Vec<Edit>,
        hash: Option<String>,
    },
    #[serde(rename = "write_file")]
    Write {
        path: String,
        text: String,
        hash: Option<String>,
    },
    #[serde(rename = "delete_file")]
    Delete { path: String },
    #[serde(rename = "move_file")]
    Move { from: String, to: String },
}

impl EditRequest {
    /// Returns an edit of a file that replaces nothing. It is only used to judge whether the file may be changed.
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

    /// Returns the call as one line, for the person.
    pub fn line(&self) -> String {
        co_text::one_line(&format!("{} {}", self.name(), self.paths().join(" ")))
    }

    /// Returns the words that rules are compared with: the name of the tool and the files.
    pub fn words(&self, places: &[EditPlace]) -> Vec<String> {
        let files = places.iter().map(|place| place.shown.clone());
        std::iter::once(self.name().to_owned())
            .chain(files)
            .collect()
    }

    /// Returns a clause about the effect of the call, for the person.
    pub fn does(&self) -> &'static str {
        match self {
            Self::Edit { .. } => "changes a file",
            Self::Write { .. } => "writes a whole file",
            Self::Delete { .. } => "deletes a file",
            Self::Move { .. } => "moves a file",
        }
    }

    /// Returns the hash of the text that the model has read; none if the model gave no hash.
    pub fn hash(&self) -> Option<&str> {
        match self {
            Self::Edit { hash, .. } | Self::Write { hash, .. } => hash.as_deref(),
            Self::Delete { .. } | Self::Move { .. } => None,
        }
    }

    /// Returns the paths that the model named.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Self::Edit { path, .. } | Self::Write { path, .. } | Self::Delete { path } => {
                vec![path]
            }
            Self::Move { from, to } => vec![from, to],
        }
    }
}
