//! The tools `read_file`, `list_files`, `search` and `editor_context`, which run in this process and change nothing.

mod call;
mod editor;
mod list;
mod read;
mod search;

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::event::{ShownCall, in_words};
use super::schema::{BadCall, BuiltIn};
use crate::workspace::files::{self, FileQueryError, FileQueryResult, FileScope};
use crate::workspace::judge::Judge;
use co_llm::transcript::Call;
use co_policy::Verdict;
use co_policy::paths::PathUse;

/// The tools that read files, each with its verb for the person.
pub const VERBS: [(&str, &str); 4] = [
    (files::READ, "read"),
    (files::LIST, "list"),
    (files::SEARCH, "search"),
    (files::EDITOR, "look up"),
];

/// A call of a tool that reads files or asks the editor.
#[derive(Debug, Clone, PartialEq)]
pub enum FileQuery {
    Read(read::ReadQuery),
    List(list::ListQuery),
    Search(search::SearchQuery),
    Editor(editor::EditorContext),
}

/// Returns the tools of this module.
pub(super) fn tools() -> [BuiltIn; 4] {
    let specs = [read::spec(), list::spec(), search::spec(), editor::spec()];
    specs.map(|spec| BuiltIn {
        spec,
        parse: |call| Ok(Box::new(FileQuery::parse(call)?)),
        shown_unread: |line| in_words(line, &VERBS).map(ShownCall::Query),
    })
}

impl FileQuery {
    /// Parses a call of one of the tools of this module.
    ///
    /// # Errors
    /// The arguments are invalid, or the call uses another tool.
    pub fn parse(call: &Call) -> Result<Self, BadCall> {
        match call.name.as_str() {
            files::READ => read::ReadQuery::parse(call).map(Self::Read),
            files::LIST => list::ListQuery::parse(call).map(Self::List),
            files::SEARCH => search::SearchQuery::parse(call).map(Self::Search),
            files::EDITOR => editor::EditorContext::parse(call).map(Self::Editor),
            _ => Err(BadCall::of_another_tool(call)),
        }
    }

    /// Returns a search for a text below the working directory.
    pub fn search_for(text: String) -> Self {
        Self::Search(search::SearchQuery::literal(text))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Read(_) => files::READ,
            Self::List(_) => files::LIST,
            Self::Search(_) => files::SEARCH,
            Self::Editor(_) => files::EDITOR,
        }
    }

    /// Returns the path that the model named.
    pub fn path(&self) -> &str {
        match self {
            Self::Read(query) => &query.path,
            Self::List(query) => &query.path,
            Self::Search(query) => &query.path,
            Self::Editor(query) => query.path(),
        }
    }

    fn wanted(&self) -> PathUse {
        match self {
            Self::Read(_) => PathUse::ReadFile,
            Self::List(_) | Self::Search(_) | Self::Editor(_) => PathUse::Read,
        }
    }

    /// Judges the query with [`Judge::judge_query`]. Blocks on files. Call it from `spawn_blocking`.
    pub fn judge(&self, judge: &Judge, cwd: &Path) -> Verdict {
        judge.judge_query(self.name(), self.path(), self.wanted(), cwd)
    }

    /// Returns the canonical path of the file or directory that the query reads. The path contains no symbolic link. `started` is
    /// the time at which the query started.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    ///
    /// # Errors
    /// The errors of [`Judge::query_place`].
    pub fn place(
        &self,
        judge: &Judge,
        cwd: &Path,
        started: Instant,
    ) -> Result<PathBuf, FileQueryError> {
        judge.query_place(self.path(), self.wanted(), cwd, started)
    }

    /// Returns the query as one line, for the person.
    pub fn line(&self) -> String {
        let line = match self {
            Self::Read(query) => query.line(),
            Self::List(query) => query.line(),
            Self::Search(query) => query.line(),
            Self::Editor(query) => query.line(),
        };
        co_text::one_line(&line)
    }

    /// Runs the query. Blocks on files. Call it from `spawn_blocking`.
    ///
    /// # Errors
    /// The path or the query cannot be used.
    pub fn run(&self, scope: &FileScope) -> Result<FileQueryResult, FileQueryError> {
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
