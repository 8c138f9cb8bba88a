//! Reads and walks the files of a workspace, within limits. `workspace::judge` decides which paths may be read.

pub mod attached;
pub(crate) mod ignore_rules;
pub(crate) mod limits;
pub mod places;
pub(crate) mod walk;

pub(crate) use walk::Walk;

pub use limits::{
    Deadline, EditorFacts, FileQueryError, FileQueryResult, FileScope, PathFilter, PathRule,
    QUERY_TIMEOUT,
};

/// The name, in rules, of the tool that reads a file.
pub const READ: &str = "read_file";
/// The name, in rules, of the tool that lists files.
pub const LIST: &str = "list_files";
/// The name, in rules, of the tool that searches files.
pub const SEARCH: &str = "search";
/// The name, in rules, of the tool that queries the editor about files.
pub const EDITOR: &str = "editor_context";

/// The names of all tools that read files.
pub const NAMES: [&str; 4] = [READ, LIST, SEARCH, EDITOR];
