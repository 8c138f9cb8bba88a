//! The tool `list_files`: lists the files and directories below a directory.

use serde::Deserialize;
use serde_json::json;

use crate::tool::schema::{self, BadCall, arguments, number};
use crate::workspace::files::LIST as NAME;
use crate::workspace::files::limits::{FileQueryError, FileQueryResult, FileScope};
use crate::workspace::files::walk::{Walk, shown};
use co_exec::beneath::Dir;
use co_llm::ToolSpec;
use co_llm::transcript::Call;
use co_text::plural;

const DEFAULT_DEPTH: usize = 3;
const MOST_DEPTH: usize = 50;
const DEFAULT_ENTRIES: usize = 500;
const MOST_ENTRIES: usize = 5_000;

/// The arguments of a `list_files` call, as [`spec`] describes them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    path: Option<String>,
    depth: Option<i64>,
    limit: Option<i64>,
}

/// A query for the files and directories below a directory.
#[derive(Debug, Clone, PartialEq)]
pub struct ListQuery {
    pub(super) path: String,
    depth: usize,
    limit: usize,
}

/// Returns the description of `list_files` for a model.
pub(super) fn spec() -> ToolSpec {
    let description = "Returns the files and directories below a directory of the workspace, sorted, one on each line. \
        Directories end with /. Files that git ignores, .git and files that look like secrets are left out. \
        Runs at once. Directories outside the workspace are refused.";
    let properties = json!({
        "path": {
            "type": "string",
            "description": "The directory. A relative path starts at the working directory. Default: the working \
                directory.",
        },
        "depth": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_DEPTH,
            "description": format!("The levels of directories to go down. Default: {DEFAULT_DEPTH}."),
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_ENTRIES,
            "description": format!(
                "The most entries to return; the others are counted. Default: {DEFAULT_ENTRIES}."
            ),
        },
    });
    schema::spec(NAME, description.to_owned(), properties, &[])
}

impl ListQuery {
    pub(super) fn parse(call: &Call) -> Result<Self, BadCall> {
        let given: ListArguments = arguments(call)?;
        Ok(Self {
            depth: number(call, "depth", given.depth, DEFAULT_DEPTH, 1..=MOST_DEPTH)?,
            limit: number(
                call,
                "limit",
                given.limit,
                DEFAULT_ENTRIES,
                1..=MOST_ENTRIES,
            )?,
            path: given.path.unwrap_or_else(|| ".".to_owned()),
        })
    }

    pub(super) fn line(&self) -> String {
        format!("{NAME} {}", self.path)
    }

    pub(super) fn run(&self, scope: &FileScope) -> Result<FileQueryResult, FileQueryError> {
        if Dir::open(&scope.path).is_err() {
            return Err(FileQueryError(format!("{} is not a directory.", self.path)));
        }
        let mut walk = Walk::new(scope, Some(self.depth));
        let mut text = String::new();
        let (mut listed, mut rest, mut closed) = (0, 0, 0);
        for entry in walk.by_ref().filter(|entry| entry.depth > 0) {
            let kind = entry.kind;
            closed += usize::from(kind.is_dir() && entry.depth == self.depth);
            if listed >= self.limit || text.len() >= scope.bytes {
                rest += 1;
                continue;
            }
            listed += 1;
            text.push_str(&shown(&self.path, &scope.path, &entry.path));
            text.push_str(match kind {
                kind if kind.is_dir() => "/\n",
                kind if kind.is_symlink() => " (a link)\n",
                _ => "\n",
            });
        }
        let mut summary = plural(listed, "entry", "entries");
        if rest > 0 {
            summary.push_str(&format!("; {rest} more left out"));
        }
        if closed > 0 {
            let closed = plural(closed, "directory", "directories");
            summary.push_str(&format!("; {closed} at level {} not opened", self.depth));
        }
        summary.push_str(&walk.left_out());
        Ok(FileQueryResult {
            text,
            summary,
            short: String::new(),
            whole: None,
        })
    }
}
