//! The saved answers of reviews that have not ended: one file for each chat.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::paths::{self, private_dir};
use crate::protocol::PartAnswer;
use crate::shared_file;

/// The saved answer about a part of a change. The part is identified by its lines, so that the answer is found again after the
/// file has changed elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptAnswer {
    pub workspace: PathBuf,
    /// The base commit, if the review compares with a branch. Such answers stay saved after the review if they accept the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The path relative to the workspace.
    pub path: PathBuf,
    /// The number of the first line of the part at the time of the answer. Lines are numbered from 1.
    pub line: usize,
    /// The hash of the text of the part.
    pub part: String,
    /// The first lines of the part. Each line begins with its mark, such as `+` or `-`.
    pub text: String,
    pub answer: PartAnswer,
}

/// Returns the saved answers of a chat.
pub(super) fn read(store: &Path, chat: &str) -> Vec<KeptAnswer> {
    let text = fs::read(file(store, chat)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Replaces the saved answers of a chat.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(store: &Path, chat: &str, answers: &[KeptAnswer]) -> io::Result<()> {
    if answers.is_empty() {
        remove(store, chat);
        return Ok(());
    }
    let path = file(store, chat);
    let dir = path.parent().unwrap_or(store);
    private_dir(dir)?;
    let written = shared_file::replace(&path, &serde_json::to_string(answers)?);
    Ok(written.map_err(|error| paths::Error::write(dir, error))?)
}

/// Removes the saved answers of a chat. Does nothing if it has none.
pub(super) fn remove(store: &Path, chat: &str) {
    if let Err(error) = fs::remove_file(file(store, chat))
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "the answers of a review were not removed");
    }
}

fn file(store: &Path, chat: &str) -> PathBuf {
    store.join("reviews").join(format!("{chat}.json"))
}
