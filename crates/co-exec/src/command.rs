//! A command to run: its program, its working directory, and its confinement.

use std::path::PathBuf;
use std::time::Duration;

use crate::confinement::Confinement;
use crate::environment::Environment;

/// The time-out of a command that has no limit: the command ends by itself, or is cancelled.
pub const UNTIL_IT_ENDS: Duration = Duration::MAX;

/// A command, with everything that is needed to run it.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    pub program: Program,
    /// The working directory, an absolute path. For a command of an agent, it must be canonical: no component may have become a
    /// symbolic link.
    pub cwd: PathBuf,
    /// The caller for whom the command runs. It decides which variables get forced values, and whether processes that remain
    /// after the command may continue.
    pub caller: Caller,
    /// The text for standard input. `None` means that standard input is `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// The time-out: at least a second. For an agent, co caps it at the setting `max_timeout`, unless it is [`UNTIL_IT_ENDS`].
    pub timeout: Duration,
    pub confinement: Confinement,
    /// The source of the command's shell and variables.
    pub environment: Environment,
    /// Environment variables to add.
    pub extra_env: Vec<(String, String)>,
}

/// The program of a command: a text for a shell, or a program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A text for `bash --noprofile --norc -c`, or for the shell of [`Environment::Inherit`].
    Shell(String),
    /// A program and its arguments, which start without a shell.
    Argv(Vec<String>),
}

/// The caller for whom a command runs: a model or a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A model. co names the processes that remain after its command, and ends them.
    Agent,
    /// A person. co names the processes that remain after the command, and keeps them running. After a trial, co ends them.
    Person,
}
