//! The tools `read_file`, `list_files` and `search`, which run in this process and change nothing.
//!
//! These modules read files and limit the size of results. [`super::judge`] decides which paths they may read.

mod list;
mod read;
mod search;
mod walk;

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::libc;
use tokio_util::sync::CancellationToken;

use super::BadCall;
use co_llm::ToolSpec;
use co_llm::transcript::Call;
use co_policy::paths::PathUse;

/// The longest time of one query.
pub const LONGEST: Duration = Duration::from_secs(30);

/// A call of one of these tools.
#[derive(Debug, Clone, PartialEq)]
pub enum FileQuery {
    Read(read::ReadQuery),
    List(list::ListQuery),
    Search(search::SearchQuery),
}

/// The names of these tools.
pub const NAMES: [&str; 3] = [read::NAME, list::NAME, search::NAME];

/// Returns whether the model may learn of a path that a walk meets.
pub type PathFilter = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// The path and the limits of a query.
pub struct FileScope {
    /// The real path of the file or directory.
    pub path: PathBuf,
    pub allowed: PathFilter,
    /// The most bytes of the result.
    pub bytes: usize,
    pub end: Deadline,
}

/// The end of a query: a cancellation, or the longest time.
#[derive(Debug, Clone)]
pub struct Deadline {
    cancel: CancellationToken,
    until: Instant,
}

/// The result of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    pub text: String,
    /// One line about the amount of text and the parts left out.
    pub summary: String,
}

/// A failed query. The text goes back to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileQueryError(pub String);

/// Returns the descriptions of these tools for a model.
pub(super) fn specs() -> [ToolSpec; 3] {
    [read::spec(), list::spec(), search::spec()]
}

impl FileQuery {
    /// Parses a call; none if it is of a tool that is not in [`NAMES`].
    pub(super) fn parse(call: &Call) -> Option<Result<Self, BadCall>> {
        Some(match call.name.as_str() {
            read::NAME => read::ReadQuery::parse(call).map(Self::Read),
            list::NAME => list::ListQuery::parse(call).map(Self::List),
            search::NAME => search::SearchQuery::parse(call).map(Self::Search),
            _ => return None,
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Read(_) => read::NAME,
            Self::List(_) => list::NAME,
            Self::Search(_) => search::NAME,
        }
    }

    /// Returns the path, as the model gave it.
    pub fn path(&self) -> &str {
        match self {
            Self::Read(query) => &query.path,
            Self::List(query) => &query.path,
            Self::Search(query) => &query.path,
        }
    }

    pub(super) fn wanted(&self) -> PathUse {
        match self {
            Self::Read(_) => PathUse::ReadFile,
            Self::List(_) | Self::Search(_) => PathUse::Read,
        }
    }

    /// Returns the query in a line, for a person.
    pub fn line(&self) -> String {
        match self {
            Self::Read(query) => query.line(),
            Self::List(query) => query.line(),
            Self::Search(query) => query.line(),
        }
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
        }
    }
}

impl Deadline {
    /// Returns a deadline that is [`LONGEST`] away, or at the cancellation if that is sooner.
    pub fn new(cancel: CancellationToken) -> Self {
        Self {
            cancel,
            until: Instant::now() + LONGEST,
        }
    }

    fn reached(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() >= self.until
    }

    /// Returns the reason for the end, for a summary.
    fn words(&self) -> String {
        match self.cancel.is_cancelled() {
            true => "cancelled".to_owned(),
            false => format!(
                "ended after {} s: look at less at a time",
                LONGEST.as_secs()
            ),
        }
    }
}

/// Opens a regular file without waiting, as a FIFO would.
fn open(path: &Path) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Returns the first `most` bytes of a line as text, with a note about the rest.
fn shorten(line: &[u8], most: usize, whole: u64) -> String {
    let kept = &line[..line.len().min(most)];
    let text = String::from_utf8_lossy(kept);
    match whole.saturating_sub(kept.len() as u64) {
        0 => text.into_owned(),
        more => format!("{text}… [{more} more bytes in this line]"),
    }
}

/// Returns a number from the model in its range, or `default` if the model gave none.
fn number(
    call: &Call,
    name: &str,
    given: Option<i64>,
    default: usize,
    range: std::ops::RangeInclusive<usize>,
) -> Result<usize, BadCall> {
    let Some(given) = given else {
        return Ok(default);
    };
    usize::try_from(given)
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            BadCall(format!(
                "{name} of {} is {} to {}.",
                call.name,
                range.start(),
                range.end()
            ))
        })
}

fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests;
