//! The restricted executor: runs one command, and nothing of it outlives its end.
//!
//! Knows nothing of Neovim, models or approval. Of policy it knows only [`Proved`]. [`Executor`] starts a [`Spec`] and gives a
//! [`Job`]; the job's [`Screen`] shows what is printed as it comes, its [`Outcome`] says what it came to.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "co-exec needs Linux 5.13 or later: it confines and finds commands by features of that kernel"
);

mod capture;
mod cgroup;
mod children;
mod cwd;
mod env;
mod error;
mod executor;
mod feed;
pub mod guard;
mod host;
mod inherited;
mod input;
mod job;
mod limits;
mod login;
mod long_script;
mod mark;
mod model;
pub mod privacy;
mod process;
mod procfs;
mod pty;
mod reader;
mod reading;
pub mod regular;
pub mod repository;
pub mod sandbox;
mod screen;
pub mod secrets;
mod settings;
mod sgr;
mod spawn;
mod spill;
mod status;
mod streams;
mod supervisor;
mod terminal;
mod text;
mod tree;
mod watch;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use cgroup::Hold;
pub use cwd::confine_cwd;
pub use env::{LISTS as ENVIRONMENT, forced as forced_environment};
pub use error::Error;
pub use executor::{Executor, Setup};
pub use feed::Feed;
pub use host::{Environment, Host};
pub use input::{Input, Unwritten};
pub use job::Job;
pub use limits::Limit;
pub use reading::Reading;
pub use sandbox::Launcher;
pub use screen::Screen;
pub use settings::{Settings, names_variables};
pub use streams::{Size, Streams};
pub use supervisor::DRAIN;
pub use terminal::detach_terminal;
pub use tree::GRACE;

use co_policy::Proved;

/// The time of a command that ends by itself or is ended: no ceiling holds for it.
pub const UNTIL_IT_ENDS: Duration = Duration::MAX;

/// What to run and how.
#[derive(Debug, Clone)]
pub struct Spec {
    pub program: Program,
    /// An absolute path.
    pub cwd: PathBuf,
    /// Who the command runs for: decides the forced variables and what becomes of leftovers.
    pub caller: Caller,
    /// Text for standard input; none is `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// At least a second. An agent's is cut down to the settings' ceiling, but for [`UNTIL_IT_ENDS`].
    pub timeout: Duration,
    pub confinement: Confinement,
    /// The source of its shell and variables.
    pub environment: Environment,
    /// Variables set on top of those.
    pub extra_env: Vec<(String, String)>,
}

/// The forms of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// `bash --noprofile --norc -c TEXT`, or what [`Environment::Inherit`] says in its place.
    Shell(String),
    /// No shell at all.
    Argv(Vec<String>),
    /// A command that only looks. bash runs its script, whatever the environment says, with the variables that the
    /// proof sets. It starts in the read-only confinement, or plain if nothing can confine commands.
    Proved(Box<Proved>),
}

impl Program {
    /// Returns the variables that a proof sets for it.
    fn env(&self) -> &[(String, String)] {
        match self {
            Self::Proved(proved) => proved.env(),
            Self::Shell(_) | Self::Argv(_) => &[],
        }
    }
}

/// Who a command runs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A model: what it leaves running is named and ended.
    Agent,
    /// A person: what it leaves running is named and kept.
    Person,
}

/// What the kernel holds a command to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Confinement {
    #[default]
    Plain,
    /// No write but a private temporary directory, no network, no reads of credentials.
    ReadOnly { workspace: PathBuf },
    /// Writes in the workspace and a private temporary directory.
    Workspace {
        workspace: PathBuf,
        network: bool,
        shown: Shown,
    },
}

/// The secrets of the workspace that a command may open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Shown {
    #[default]
    Nothing,
    /// Files and directories by their real paths.
    These(Vec<PathBuf>),
    Everything,
}

impl Shown {
    /// True if a command may open the secret file or directory at `path`.
    pub fn includes(&self, path: &Path) -> bool {
        match self {
            Self::Nothing => false,
            Self::These(paths) => paths.iter().any(|shown| shown.starts_with(path)),
            Self::Everything => true,
        }
    }
}

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

    /// Returns one line for a person: how it ended, how long it took and how many lines it printed.
    pub fn status(&self) -> String {
        status::line(self)
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
            write!(to, "{}, ", status::lines(self.lines))?;
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

/// A change to what a screen shows of a run: its lines from `from` on are now `lines`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Patch {
    /// How many lines of the run came before the first one shown.
    pub skipped: u64,
    /// Index, among the lines shown, of the first one that changes.
    pub from: usize,
    pub lines: Vec<String>,
    /// Colours and styles of `lines`.
    pub styles: Vec<Style>,
}

/// A styled stretch of one line of a [`Patch`].
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Style {
    /// Index into [`Patch::lines`].
    pub line: usize,
    /// Bytes, end exclusive.
    pub start: usize,
    pub end: usize,
    /// SGR parameters in force, normalised, e.g. `1;31` or `38;5;208`.
    pub sgr: String,
}
