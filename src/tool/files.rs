//! The tools `read_file`, `list_files`, `search` and `editor_context`, which run in this process and change nothing.
//!
//! These modules read files, ask the editor, and limit the size of results. `tool::judge` decides which paths they may read.

pub mod attached;
mod editor;
pub(crate) mod ignore_rules;
mod limits;
mod list;
pub mod places;
mod read;
mod search;
pub(crate) mod walk;

use super::schema::BadCall;
use co_llm::ToolSpec;
use co_llm::transcript::Call;
use co_policy::paths::PathUse;

pub(crate) use walk::Walk;

pub use limits::{
    Deadline, EditorFacts, FileFacts, FileQueryError, FileScope, PathFilter, PathRule,
    QUERY_TIMEOUT,
};

/// A call of one of these tools.
#[derive(Debug, Clone, PartialEq)]
pub enum FileQuery {
    Read(read::ReadQuery),
    List(list::ListQuery),
    Search(search::SearchQuery),
    Editor(editor::EditorContext),
}

/// The names of these tools.
pub const NAMES: [&str; 4] = [read::NAME, list::NAME, search::NAME, editor::NAME];

/// Returns the descriptions of these tools for a model.
pub(super) fn specs() -> [ToolSpec; 4] {
    [read::spec(), list::spec(), search::spec(), editor::spec()]
}

impl FileQuery {
    /// Parses a call; none if it is of a tool that is not in [`NAMES`].
    pub(super) fn parse(call: &Call) -> Option<Result<Self, BadCall>> {
        Some(match call.name.as_str() {
            read::NAME => read::ReadQuery::parse(call).map(Self::Read),
            list::NAME => list::ListQuery::parse(call).map(Self::List),
            search::NAME => search::SearchQuery::parse(call).map(Self::Search),
            editor::NAME => editor::EditorContext::parse(call).map(Self::Editor),
            _ => return None,
        })
    }

    /// Returns the search for a text below the working directory.
    pub fn search_for(text: String) -> Self {
        Self::Search(search::SearchQuery::literal(text))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Read(_) => read::NAME,
            Self::List(_) => list::NAME,
            Self::Search(_) => search::NAME,
            Self::Editor(_) => editor::NAME,
        }
    }

    /// Returns the path, as the model gave it.
    pub fn path(&self) -> &str {
        match self {
            Self::Read(query) => &query.path,
            Self::List(query) => &query.path,
            Self::Search(query) => &query.path,
            Self::Editor(query) => query.path(),
        }
    }

    pub(super) fn wanted(&self) -> PathUse {
        match self {
            Self::Read(_) => PathUse::ReadFile,
            Self::List(_) | Self::Search(_) | Self::Editor(_) => PathUse::Read,
        }
    }

    /// Returns the query in a line, for a person.
    pub fn line(&self) -> String {
        let line = match self {
            Self::Read(query) => query.line(),
            Self::List(query) => query.line(),
            Self::Search(query) => query.line(),
            Self::Editor(query) => query.line(),
        };
        co_policy::one_line(&line)
    }

    /// Runs the query. It blocks on files: call it from `spawn_blocking`.
    ///
    /// # Errors
    /// The path or the query cannot be used.
    pub fn run(&self, scope: &FileScope) -> Result<FileFacts, FileQueryError> {
        match self {
            Self::Read(query) => query.run(scope),
            Self::List(query) => query.run(scope),
            Self::Search(query) => query.run(scope),
            Self::Editor(query) => query.run(scope),
        }
    }
}

#[cfg(test)]
mod tests;
