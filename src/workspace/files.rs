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

/// The names by which rules refer to the tools that read files.
pub const READ: &str = "read_file";
pub const LIST: &str = "list_files";
pub const SEARCH: &str = "search";
pub const EDITOR: &str = "editor_context";

/// All names of the tools that read files.
pub const NAMES: [&str; 4] = [READ, LIST, SEARCH, EDITOR];
