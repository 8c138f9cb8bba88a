//! A command to run: its program, its place, and the confinement that it runs in.

use std::path::PathBuf;
use std::time::Duration;

use crate::confinement::Confinement;
use crate::environment::Environment;

/// A time-out without a limit, for a command that ends by itself or is cancelled.
pub const UNTIL_IT_ENDS: Duration = Duration::MAX;

/// A command and all that it needs.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    pub program: Program,
    /// An absolute path. For a command of an agent, a canonical path, no component of which may have become a symbolic link.
    pub cwd: PathBuf,
    /// Decides the forced variables, and whether remaining processes are kept.
    pub caller: Caller,
    /// The text for standard input. `None` means `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// At least a second. For an agent, at most the `max_timeout` of the settings, unless it is [`UNTIL_IT_ENDS`].
    pub timeout: Duration,
    pub confinement: Confinement,
    /// The source of its shell and variables.
    pub environment: Environment,
    /// Further variables.
    pub extra_env: Vec<(String, String)>,
}

/// The forms of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// `bash --noprofile --norc -c TEXT`, or the shell of [`Environment::Inherit`].
    Shell(String),
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

/// The one for whom a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A model. Processes that remain after its command are named and ended.
    Agent,
    /// A person. Processes that remain after their command are named and kept. Those of a trial are ended.
    Person,
}
