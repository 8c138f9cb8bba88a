//! The limits of a query, its result, and helpers that keep both small.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::buffers::OpenBuffers;
use crate::protocol::{BufferText, EditorAnswer};
use co_exec::beneath::{Dir, Node};
use co_text::counted;

/// The longest time of one query.
pub const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

/// The rule about the paths of which the model may learn.
pub type PathFilter = Arc<dyn PathRule>;

/// Decides whether the model may learn of a path that a walk meets.
pub trait PathRule: Send + Sync {
    /// Decides by all names of the file. Blocks on files.
    fn allows(&self, path: &Path) -> bool;

    /// Decides by this name. If the file has several names, also ask [`Self::allows`] before it is read.
    fn allows_name(&self, path: &Path) -> bool {
        self.allows(path)
    }
}

impl<F: Fn(&Path) -> bool + Send + Sync> PathRule for F {
    fn allows(&self, path: &Path) -> bool {
        self(path)
    }
}

/// The answer of the editor.
pub struct EditorFacts {
    pub answer: EditorAnswer,
    /// The real path of the working directory.
    pub cwd: PathBuf,
}

/// The path and the limits of a query.
pub struct FileScope {
    /// The real path of the file or directory. Entries of the directory are opened through no link.
    pub path: PathBuf,
    /// The buffers to read instead of their files.
    pub open: OpenBuffers,
    /// The answer of the editor, if it was asked.
    pub editor: Option<EditorFacts>,
    pub allowed: PathFilter,
    /// The most bytes of the result.
    pub bytes: usize,
    pub end: Deadline,
}

/// The end of a query: a cancellation, or the longest time.
#[derive(Debug, Clone)]
pub struct Deadline {
    cancel: CancellationToken,
    most: Duration,
    until: Instant,
}

/// The result of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileQueryResult {
    pub text: String,
    /// One line about the amount of text and the parts left out.
    pub summary: String,
    /// The summary in a few characters, such as `1-20`; empty if it is not shorter.
    pub short: String,
    /// The whole text of the file that was read; none if it is too large or is not text.
    pub whole: Option<String>,
}

/// A failed query. The text goes back to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileQueryError(pub String);

impl FileScope {
    /// Opens the directory of the query, or that of its file. Returns it with its path.
    pub(crate) fn open(&self) -> io::Result<(Dir, &Path)> {
        match Dir::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                let above = self.path.parent().unwrap_or(&self.path);
                Ok((Dir::open(above)?, above))
            }
            opened => Ok((opened?, &self.path)),
        }
    }

    /// Returns whether an open file that a walk met may be read.
    pub(crate) fn allows_file(&self, path: &Path, node: &Node) -> bool {
        !node.is_linked() || self.allowed.allows(path)
    }

    /// Returns the buffer of a file, if it is to be read instead of the file.
    pub(crate) fn buffer(&self, file: &Path) -> Option<&BufferText> {
        self.open.get(file).filter(|it| it.problem.is_none())
    }
}

impl FileQueryResult {
    /// Adds a remark to the summary.
    pub(crate) fn add(&mut self, remark: &str) {
        self.summary.push_str(remark);
        self.short.push_str(remark);
    }

    /// Returns the result of a query that failed.
    pub fn failed(why: String) -> Self {
        Self {
            text: String::new(),
            summary: why,
            short: String::new(),
            whole: None,
        }
    }
}

impl Deadline {
    /// Returns a deadline that is [`QUERY_TIMEOUT`] away, or at the cancellation if that is sooner.
    pub fn new(cancel: CancellationToken) -> Self {
        Self::within(QUERY_TIMEOUT, cancel)
    }

    /// Returns a deadline after the time `most`, or at the cancellation if the cancellation comes sooner.
    pub fn within(most: Duration, cancel: CancellationToken) -> Self {
        Self {
            cancel,
            most,
            until: Instant::now() + most,
        }
    }

    pub(crate) fn reached(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() >= self.until
    }

    /// Returns the reason for the end, for a summary.
    pub(crate) fn words(&self) -> String {
        match self.cancel.is_cancelled() {
            true => "cancelled".to_owned(),
            false => format!(
                "ended after {} s: look at less at a time",
                self.most.as_secs()
            ),
        }
    }
}

/// Returns the first `most` bytes of a line as text, with a mark for the rest. Bytes that are no UTF-8 are escapes.
pub(crate) fn shorten(line: &[u8], most: usize, whole: u64) -> String {
    let mut kept = &line[..line.len().min(most)];
    if (kept.len() as u64) < whole
        && let Err(error) = str::from_utf8(kept)
        && error.error_len().is_none()
    {
        // The cut is within a character.
        kept = &kept[..error.valid_up_to()];
    }
    let text = match str::from_utf8(kept) {
        Ok(text) => text.to_owned(),
        Err(_) => co_edit::escape(kept),
    };
    match whole.saturating_sub(kept.len() as u64) {
        0 => text,
        more => format!("{text}… [{more} more bytes in this line]"),
    }
}

/// Returns the part of a summary about lines that [`shorten`] cut.
pub(crate) fn cut_lines(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!("; {} cut", counted(count, "line")),
    }
}
