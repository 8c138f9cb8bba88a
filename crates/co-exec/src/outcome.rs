//! The outcome of a command that ran, whether it succeeded or failed: data for the person and for the model.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::limits::ExceededLimit;
use co_text::counted;

/// The result of a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommandOutcome {
    /// The output as text for a model: bounded, without escape sequences, and followed by status lines. If the output is
    /// withheld, the text only says so.
    pub output: String,
    /// The length in bytes of the part of `output` before the status lines.
    pub printed: usize,
    /// True if a secret appeared where the command could read it, so that `output` is withheld from a model. For commands of a
    /// person, co checks this only in trials.
    pub withheld: bool,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub cancelled: bool,
    pub flooded: bool,
    /// The exceeded limit for which the command was ended.
    pub limit: Option<ExceededLimit>,
    /// The processes that still ran when the command's own process ended.
    pub background: Vec<BackgroundProcess>,
    /// True if the processes in `background` continue, because a person ran the command.
    pub kept: bool,
    pub wall: Duration,
    /// The time at which the output was complete and the processes of the command had ended, except processes that go on
    /// running ([`Self::kept`]). `None` if co did not follow the command to its end.
    pub ended: Option<Instant>,
    /// The length of the raw output in bytes.
    pub bytes: u64,
    pub lines: u64,
    /// The file that contains the output, either whole or without its middle.
    pub spill: Option<PathBuf>,
    /// The part of the output that the output file leaves out, or `None` if the file is complete.
    pub gap: Option<OutputGap>,
    /// The name of the confinement level at which the command ran, such as `read-only`.
    pub level: &'static str,
    /// The files in the workspace that the command created or replaced, and that other programs run or load without a question,
    /// such as the hooks of git.
    pub appeared: Vec<PathBuf>,
    /// A sentence about an end that the exit status does not explain, for example that the container has stopped.
    pub note: Option<String>,
    /// True if the exit status is 1 and this means "nothing found", "they differ" or "false" for the program, not a failure.
    pub nothing_found: bool,
}

impl CommandOutcome {
    /// Returns whether the command succeeded.
    pub fn ok(&self) -> bool {
        !self.was_ended() && (self.exit == Some(0) || self.nothing_found)
    }

    /// Returns true if a model is told that the command succeeded. If the output is withheld, this is always true, so that the
    /// model does not learn of a failure.
    pub fn told_ok(&self) -> bool {
        self.withheld || self.ok()
    }

    /// Returns true if the command failed by itself: co did not end it, and it did not succeed.
    pub fn failed(&self) -> bool {
        !self.was_ended() && !self.ok()
    }

    /// Returns the time `ended`, or the present time if there is none. The output of the command is not newer.
    pub fn ended_or_now(&self) -> Instant {
        self.ended.unwrap_or_else(Instant::now)
    }

    pub(crate) fn was_ended(&self) -> bool {
        self.timed_out || self.cancelled || self.flooded || self.limit.is_some()
    }
}

/// The part of an output that the output file leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct OutputGap {
    pub bytes: u64,
    /// The number of newlines in the part that the file leaves out.
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

/// A process that still runs after its command has ended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct BackgroundProcess {
    pub pid: i32,
    pub name: String,
}

/// Returns a number of lines in words, such as `1 line`.
pub(crate) fn count_lines(count: u64) -> String {
    match count {
        0 => "no output".to_owned(),
        count => counted(count, "line"),
    }
}
