//! Runs shell commands: confined by the kernel if wanted, with bounded output, and without processes that outlive them.
//!
//! [`Executor::start`] starts the command of a [`CommandSpec`] and returns a [`RunningCommand`]. While it runs, its
//! [`Screen`] shows what it prints. At the end, [`RunningCommand::outcome`] returns its [`CommandOutcome`].
//!
//! - `command`, `environment`, `settings`, `outcome`, `error`: the values that callers give and get.
//! - `executor`, `running_command`: start a command, and follow it.
//! - `program_search`, `timed_output`: programs on a PATH; programs of co's own with a time limit.
//! - `process`: its processes, streams and limits; the watchdog that ends them if this process dies.
//! - `output`: what it prints, for an editor, a terminal and a model.
//! - [`sandbox`]: its confinement by Landlock, seccomp and mounts.
//! - [`container`]: the engine, docker or podman, that runs containers.
//! - [`beneath`], [`regular`]: the files of a workspace, below its handle and through no link; other files, by their paths.
//! - [`watcher`]: the directories of a workspace that have changed.
//! - [`secrets`], [`repository`]: the secret files of a workspace and its git directories, which the sandbox protects.
//!
//! The crate knows nothing of Neovim, models or approval. Of the policy it uses the names of
//! secrets and of files that programs obey, and the functions that normalize paths and make texts printable.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "co-exec needs Linux 5.13 or later: it confines and finds commands by features of that kernel"
);

pub mod beneath;
mod command;
pub mod container;
mod directory_lock;
mod environment;
mod error;
mod executor;
mod fork;
mod inherited;
mod limits;
mod outcome;
mod output;
pub mod path_list;
mod process;
mod program_search;
pub mod regular;
pub mod repository;
mod running_command;
pub mod sandbox;
pub mod secrets;
mod settings;
#[cfg(test)]
mod test_files;
mod timed_output;
pub mod watcher;

pub use command::{Caller, CommandSpec, Confinement, Program, ShownSecrets, UNTIL_IT_ENDS};
pub use environment::{Environment, GIT_ENVIRONMENT, HostEnvironment};
pub use error::Error;
pub use executor::{Executor, ExecutorSetup};
pub use limits::{ExceededLimit, Quota, size_text};
pub use outcome::{BackgroundProcess, CommandOutcome, OutputGap};
pub use output::feed::Feed;
pub use output::reading::{NewOutput, OutputReading};
pub use output::screen::{Screen, ScreenPatch, Style};
pub use output::spill::shown_lines;
pub use process::cgroup::LimitEnforcement;
pub use process::command_processes::STOP_GRACE_PERIOD;
pub use process::cwd::confine_cwd;
pub use process::env::{LISTS as ENVIRONMENT, forced as forced_environment};
pub use process::input::{CommandInput, InputError};
pub use process::pty::TerminalSize;
pub use process::streams::Streams;
pub use process::supervisor::DRAIN_TIMEOUT;
pub use process::terminal::detach_terminal;
pub use process::time_limit::{TimeHold, TimeLimit};
pub use process::{privacy, watchdog};
pub use program_search::search as find_program;
pub use running_command::RunningCommand;
pub use sandbox::Launcher;
pub use settings::{ExecSettings, names_variables};
pub use timed_output::timed_output;
