//! The outcome of a command: data for the person and the model, also if the command failed.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::limits::ExceededLimit;
use co_text::counted;

/// The result of a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommandOutcome {
    /// Text for a model: bounded, plain, with a status line. If the output is withheld, it only says so.
    pub output: String,
    /// The bytes of this text before the status line.
    pub printed: usize,
    /// True if a secret appeared where the command could read. Then `output` is withheld from a model. Of the commands of a
    /// person, only trials find that out.
    pub withheld: bool,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub cancelled: bool,
    pub flooded: bool,
    /// The exceeded limit for which the command was killed.
    pub limit: Option<ExceededLimit>,
    /// The processes that still ran when the command itself ended.
    pub background: Vec<BackgroundProcess>,
    /// True if these processes go on, because the command was a person's.
    pub kept: bool,
    pub wall: Duration,
    /// The bytes of the raw output.
    pub bytes: u64,
    pub lines: u64,
    /// The file with the output, whole or without its middle.
    pub spill: Option<PathBuf>,
    /// The part that the file leaves out.
    pub gap: Option<OutputGap>,
    /// The name of the level at which the command ran, such as `read-only`.
    pub level: &'static str,
    /// The files that the command made or replaced in the workspace without being prevented, and that other programs
    /// run unasked.
    pub appeared: Vec<PathBuf>,
    /// A sentence about an end that the exit status does not explain, such as that of its container.
    pub note: Option<String>,
    /// True if the exit status is 1 and the program means "nothing found", "they differ" or "false" by it.
    pub nothing_found: bool,
}

impl CommandOutcome {
    /// Returns whether the command succeeded.
    pub fn ok(&self) -> bool {
        !self.was_ended() && (self.exit == Some(0) || self.nothing_found)
    }

    /// Returns whether a model is told that the command succeeded. It is not told of a failure if the output is withheld.
    pub fn told_ok(&self) -> bool {
        self.withheld || self.ok()
    }

    /// Returns whether the command ended by itself and did not succeed.
    pub fn failed(&self) -> bool {
        !self.was_ended() && !self.ok()
    }

    pub(crate) fn was_ended(&self) -> bool {
        self.timed_out || self.cancelled || self.flooded || self.limit.is_some()
    }
}

/// The part of an output that its file leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct OutputGap {
    pub bytes: u64,
    /// The number of lines that end in it.
    pub lines: u64,
}

impl fmt::Display for OutputGap {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines > 0 {
            write!(to, "{}, ", count_lines(self.lines))?;
        }
        write!(to, "{} bytes", self.bytes)
    }
}

/// A process that remains after its command.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct BackgroundProcess {
    pub pid: i32,
    pub name: String,
}

/// Returns a number of lines in words.
pub(crate) fn count_lines(count: u64) -> String {
    match count {
        0 => "no output".to_owned(),
        count => counted(count, "line"),
    }
}
