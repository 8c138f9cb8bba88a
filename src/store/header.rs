//! The lines of a transcript file that are not items: the header, and later titles.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The version of the file format. It changes when the meaning of a line changes.
pub(super) const VERSION: u32 = 1;

/// The facts about a chat that are known when it begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    pub workspace: PathBuf,
    pub cwd: PathBuf,
    /// The title. If it is empty, lists show the first prompt instead.
    pub title: String,
}

/// The first line of a transcript file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) id: String,
    #[serde(default)]
    pub(super) workspace: PathBuf,
    #[serde(default)]
    pub(super) cwd: PathBuf,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) title: String,
    /// The time of creation in seconds since 1970.
    #[serde(default)]
    pub(super) created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) forked_from: Option<String>,
}

/// Returns the present time in seconds since 1970.
pub fn seconds_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}

/// A line with a new title of the chat.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Renamed {
    pub(super) title: String,
}

impl Header {
    pub(super) fn new(id: String, meta: Meta) -> Self {
        Self {
            version: VERSION,
            id,
            workspace: meta.workspace,
            cwd: meta.cwd,
            title: meta.title,
            created: seconds_now(),
            forked_from: None,
        }
    }

    pub(super) fn meta(&self) -> Meta {
        Meta {
            workspace: self.workspace.clone(),
            cwd: self.cwd.clone(),
            title: self.title.clone(),
        }
    }
}
