//! The processes of a command: how they start, what they share with this process, and how they end.
//!
//! [`spawn`] starts a process. [`command_processes`] finds and kills the processes of a command. This module knows nothing of the
//! confinement of a command, or of the meaning of its output.

pub(crate) mod cgroup;
pub(crate) mod children;
pub(crate) mod command_processes;
pub(crate) mod cwd;
pub(crate) mod disk_checks;
pub(crate) mod env;
pub(crate) mod input;
pub(crate) mod login;
pub(crate) mod mark;
pub(crate) mod memory;
pub(crate) mod open_files;
pub mod privacy;
pub(crate) mod procfs;
pub(crate) mod pty;
pub(crate) mod shared_counters;
pub(crate) mod spawn;
pub(crate) mod streams;
pub(crate) mod terminal;
pub(crate) mod time_limit;
pub mod watchdog;
