//! Runs shell commands. The kernel can confine them, their output is bounded, and their processes do not outlive them.
//!
//! [`Executor::start`] starts the command of a [`CommandSpec`] and returns a [`RunningCommand`]. While it runs, its [`Screen`]
//! has what the command prints. At the end, [`RunningCommand::outcome`] returns its [`CommandOutcome`].
//!
//! A module may use only the modules below it in this table:
//!
//! | module | content |
//! |---|---|
//! | `executor` | starts commands, follows each to its end, and checks its bounds |
//! | [`container`] | the engine, docker or podman, that runs containers |
//! | [`sandbox`] | confinement by the kernel: Landlock, seccomp, mounts |
//! | `output` | what a command prints, for an editor, a terminal and a model |
//! | `process` | processes, groups, streams, terminals; the watchdog that ends them if this process dies |
//! | [`secrets`] | the secret files of a workspace and their values |
//! | [`watcher`] | the directories of a workspace that have changed |
//! | [`repository`] | the git directories of a workspace, which the sandbox protects |
//! | [`beneath`] | the files of a workspace, opened without following symbolic links |
//! | [`regular`] | other files, by their paths |
//! | `outcome` | the result of a command |
//! | `limits` | the limits of a command and of each of its processes |
//! | `settings` | the settings, with their ranges |
//! | `command` | a command to run |
//! | `confinement` | the levels of confinement, each in a file |
//! | `environment` | the source of a command's variables |
//! | `places` | the places outside the workspace that confined commands may read: `places/system.rs`, `places/home.rs` |
//! | `error` | the reasons why a command did not start |
//! | `timed_output` | runs programs for co itself, with a time limit |
//! | `program_search` | finds programs on a PATH |
//! | `directory_lock`, `fork`, [`free_memory`], `inherited`, [`parallel`], [`path_list`], [`path_map`] | modules that use no other module |
//!
//! The crate knows nothing of Neovim, models or approval. From `co-policy`, it uses the names of secret files, the names of files
//! that programs run or read as configuration, and the functions that normalize paths.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "co-exec needs Linux 5.13 or later: it confines and finds commands by features of that kernel"
);

pub mod beneath;
mod command;
mod confinement;
pub mod container;
pub mod directory_lock;
mod environment;
mod error;
mod executor;
mod fork;
pub mod free_memory;
mod inherited;
mod limits;
mod outcome;
mod output;
pub mod parallel;
pub mod path_list;
pub mod path_map;
mod places;
mod process;
mod program_search;
pub mod regular;
pub mod repository;
pub mod sandbox;
pub mod secrets;
mod settings;
#[cfg(test)]
mod test_files;
mod timed_output;
pub mod watcher;

pub use command::{Caller, CommandSpec, Program, UNTIL_IT_ENDS};
pub use confinement::level::{GrantedPlaces, Level, Network, ShownSecrets};
pub use confinement::{
    AGENT, AGENT_WORDS, CONTAINER_WORDS, Confinement, READ_ONLY, SERVER, ServerAccess, TRIAL_WORDS,
    WORKSPACE_WORDS, WRITING_SERVER,
};
pub use environment::{Environment, GIT_ENVIRONMENT, HostEnvironment};
pub use error::Error;
pub use executor::running_command::RunningCommand;
pub use executor::supervisor::DRAIN_TIMEOUT;
pub use executor::{Executor, ExecutorSetup};
pub use limits::{ExceededLimit, Quota};
pub use outcome::{BackgroundProcess, CommandOutcome, OutputGap};
pub use output::feed::Feed;
pub use output::reading::{NewOutput, OutputReading};
pub use output::screen::{Screen, ScreenPatch, Style};
pub use output::spill::shown_lines;
pub use places::home::CERTIFICATES;
pub use process::cgroup::LimitEnforcement;
pub use process::command_processes::STOP_GRACE_PERIOD;
pub use process::cwd::confine_cwd;
pub use process::env::{LISTS as ENVIRONMENT, forced as forced_environment};
pub use process::input::{CommandInput, InputError};
pub use process::pty::TerminalSize;
pub use process::streams::{CommandPipes, Streams};
pub use process::terminal::detach_terminal;
pub use process::time_limit::{TimeHold, TimeLimit};
pub use process::{privacy, watchdog};
pub use program_search::search as find_program;
pub use sandbox::Launcher;
pub use settings::{ExecSettings, names_variables};
pub use timed_output::timed_output;
