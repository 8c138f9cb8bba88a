//! The outcome of a command: data for the person and the model, also if the command failed.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::limits::Limit;

/// What a command came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// What the model reads: bounded, plain text, with a status line.
    pub output: String,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub cancelled: bool,
    pub flooded: bool,
    /// The limit for which co killed the command.
    pub limit: Option<Limit>,
    /// What was still running when the command's own process ended.
    pub background: Vec<Background>,
    /// That goes on: the command was a person's.
    pub kept: bool,
    pub wall: Duration,
    /// Of the raw stream.
    pub bytes: u64,
    pub lines: u64,
    /// The file of the whole stream, or of its first and its last part.
    pub spill: Option<PathBuf>,
    /// The part that this file leaves out.
    pub gap: Option<Gap>,
    /// What the kernel held the command to in fact: `plain`, `read-only`, `workspace`.
    pub level: &'static str,
    /// What it made in the workspace that other programs run unasked, and that nothing held it from.
    pub appeared: Vec<PathBuf>,
    /// Exit 1 of a program whose exit 1 means "nothing found" or "they differ".
    pub nothing_found: bool,
}

impl Outcome {
    /// Returns whether the command did what it was asked to.
    pub fn ok(&self) -> bool {
        let ended = self.timed_out || self.cancelled || self.flooded || self.limit.is_some();
        !ended && (self.exit == Some(0) || self.nothing_found)
    }
}

/// The part of an output that its file leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Gap {
    pub bytes: u64,
    /// Lines that end in it.
    pub lines: u64,
}

impl fmt::Display for Gap {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines > 0 {
            write!(to, "{}, ", count_lines(self.lines))?;
        }
        write!(to, "{} bytes", self.bytes)
    }
}

/// A process that a command left running.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Background {
    pub pid: i32,
    pub name: String,
}

/// Returns how much was printed, in words.
pub(crate) fn count_lines(count: u64) -> String {
    match count {
        0 => "no output".to_owned(),
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}
