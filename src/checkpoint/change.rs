//! The change of a path, as the log keeps it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::RepositoryChange;

/// Returns `1 file` or `2 files`.
pub fn files(count: usize) -> String {
    format!("{count} {}", if count == 1 { "file" } else { "files" })
}

/// The name of a copy: the hash of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Blob(pub(super) String);

/// One file, link or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    File {
        mode: u32,
        /// None if co keeps no copy: the file is too large, or cannot be read.
        blob: Option<Blob>,
    },
    Link {
        target: PathBuf,
    },
    Dir {
        mode: u32,
    },
}

/// The change of one path. An entry is none where nothing was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path in the workspace.
    pub path: PathBuf,
    pub before: Option<Entry>,
    pub after: Option<Entry>,
}

/// The change of the workspace's repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRepository {
    /// The person's git.
    pub git: PathBuf,
    pub change: RepositoryChange,
    /// The new objects, as a pack of git.
    pub pack: Blob,
}
