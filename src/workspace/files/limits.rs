//! The limits and the result of a query, and helpers that keep both small.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::buffers::OpenBuffers;
use crate::protocol::{BufferText, EditorAnswer};
use co_exec::beneath::{Dir, Node};
use co_text::counted;

/// The time-out of a query.
pub const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

/// The filter for the paths that the model may learn about.
pub type PathFilter = Arc<dyn PathRule>;

/// Decides whether the model may learn about a path that a walk finds.
pub trait PathRule: Send + Sync {
    /// Returns true if the model may learn about a file. Considers all hard links of the file. Blocks on files.
    fn allows(&self, path: &Path) -> bool;

    /// Returns true if the model may learn about a file. Considers only this path of the file. If the file has several hard
    /// links, also call [`Self::allows`] before reading the file.
    fn allows_name(&self, path: &Path) -> bool {
        self.allows(path)
    }
}

impl<F: Fn(&Path) -> bool + Send + Sync> PathRule for F {
    fn allows(&self, path: &Path) -> bool {
        self(path)
    }
}

/// The editor's answer to a query.
pub struct EditorFacts {
    pub answer: EditorAnswer,
    /// The canonical path of the working directory.
    pub cwd: PathBuf,
}

/// The path and the limits of a query.
pub struct FileScope {
    /// The canonical path of the file or directory. Opening the entries of the directory follows no symbolic link.
    pub path: PathBuf,
    /// The buffers to read instead of their files on disk.
    pub open: OpenBuffers,
    /// The answer of the editor; none if it was not asked.
    pub editor: Option<EditorFacts>,
    pub allowed: PathFilter,
    /// The largest number of bytes of the result.
    pub bytes: usize,
    pub end: Deadline,
}

/// The time or the cancellation that ends a query.
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
    /// A line about the amount of text, and about the parts that are left out.
    pub summary: String,
    /// A shorter form of the summary, such as `1-20`; empty if there is none.
    pub short: String,
    /// The whole text of the file that was read; none if it is too large or is not text.
    pub whole: Option<String>,
}

/// The error of a query, as a text for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileQueryError(pub String);

impl FileScope {
    /// Opens the directory of the query, or the directory that contains its file. Returns the directory and its path.
    pub(crate) fn open(&self) -> io::Result<(Dir, &Path)> {
        match Dir::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                let above = self.path.parent().unwrap_or(&self.path);
                Ok((Dir::open(above)?, above))
            }
            opened => Ok((opened?, &self.path)),
        }
    }

    /// Returns true if the model may read a file that a walk has found and opened. If the file has several hard links, checks all
    /// of them.
    pub(crate) fn allows_file(&self, path: &Path, node: &Node) -> bool {
        !node.is_linked() || self.allowed.allows(path)
    }

    /// Returns the buffer of a file; none if the file on disk must be read.
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

    /// Returns the result of a query that failed. `why` is the reason.
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
    /// Returns a deadline at [`QUERY_TIMEOUT`] from now. A cancellation ends the query earlier.
    pub fn new(cancel: CancellationToken) -> Self {
        Self::within(QUERY_TIMEOUT, cancel)
    }

    /// Returns a deadline at `most` from now. A cancellation ends the query earlier.
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

    /// Returns the reason why the query ended, for a summary.
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

/// Returns the first `most` bytes of a line as text. `whole` is the length of the line, of which `line` may be only the start. If
/// the result is shorter than the line, a mark shows how many bytes are missing. Bytes that are not UTF-8 are escaped.
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

/// Returns a text for a summary about the number of lines that [`shorten`] cut.
pub(crate) fn cut_lines(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!("; {} cut", counted(count, "line")),
    }
}
