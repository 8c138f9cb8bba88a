//! Tools that look at the workspace: in this process, changing nothing, starting nothing.
//!
//! Knows how to look, and how much of it a model is told; [`super::judge`] says where it may.

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

/// How long one look may take.
pub const LONGEST: Duration = Duration::from_secs(30);

/// One look that a model asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum FileQuery {
    Read(read::ReadQuery),
    List(list::ListQuery),
    Search(search::SearchQuery),
}

/// The names of the tools that look.
pub const NAMES: [&str; 3] = [read::NAME, list::NAME, search::NAME];

/// Says of a path that a walk meets whether it may be told of.
pub type PathFilter = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// Where and within what a look is taken.
pub struct FileScope {
    /// The real path.
    pub path: PathBuf,
    pub may: PathFilter,
    /// Bytes the model reads at most.
    pub bytes: usize,
    pub end: Deadline,
}

/// When a look ends that has not ended by itself.
#[derive(Debug, Clone)]
pub struct Deadline {
    cancel: CancellationToken,
    until: Instant,
}

/// What a look came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    pub text: String,
    /// One line: how much of it there is, and what was left out.
    pub summary: String,
}

/// Why nothing was seen; the text goes back to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileQueryError(pub String);

/// What a model is told of these tools.
pub(super) fn specs() -> [ToolSpec; 3] {
    [read::spec(), list::spec(), search::spec()]
}

impl FileQuery {
    /// Reads a call of one of [`NAMES`]; none where it is of another tool.
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

    /// Where it looks, as the model named it.
    pub fn path(&self) -> &str {
        match self {
            Self::Read(request) => &request.path,
            Self::List(request) => &request.path,
            Self::Search(request) => &request.path,
        }
    }

    pub(super) fn wanted(&self) -> PathUse {
        match self {
            Self::Read(_) => PathUse::ReadFile,
            Self::List(_) | Self::Search(_) => PathUse::Read,
        }
    }

    /// The look as a person reads it.
    pub fn line(&self) -> String {
        match self {
            Self::Read(request) => request.line(),
            Self::List(request) => request.line(),
            Self::Search(request) => request.line(),
        }
    }

    /// Looks. Blocks on files: call it from `spawn_blocking`.
    ///
    /// # Errors
    /// Where there is nothing to be seen.
    pub fn take(&self, scope: &FileScope) -> Result<FileFacts, FileQueryError> {
        match self {
            Self::Read(request) => request.take(scope),
            Self::List(request) => request.take(scope),
            Self::Search(request) => request.take(scope),
        }
    }
}

impl Deadline {
    /// Ends what it is given to when that is cancelled, or took too long.
    pub fn new(cancel: CancellationToken) -> Self {
        Self {
            cancel,
            until: Instant::now() + LONGEST,
        }
    }

    fn reached(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() >= self.until
    }

    /// What is said of a look that it ended.
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

/// Opens a regular file, and nothing that would make the reader wait.
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

/// Returns the first `most` bytes of a line, decoded, and says how much more there was.
fn shorten(line: &[u8], most: usize, whole: u64) -> String {
    let kept = &line[..line.len().min(most)];
    let text = String::from_utf8_lossy(kept);
    match whole.saturating_sub(kept.len() as u64) {
        0 => text.into_owned(),
        more => format!("{text}… [{more} more bytes in this line]"),
    }
}

/// Returns a number that a model gave, or what it stands for where it gave none.
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
