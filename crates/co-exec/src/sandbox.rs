//! The kernel sandbox of a command: Landlock, a seccomp filter and a mount namespace.
//!
//! The executor starts its own program again with a hidden first argument. The new process, the launcher, restricts itself while
//! it has only one thread and no runtime, and then becomes the command by exec. If the system allows it, the launcher forks
//! first; see the module `pid_namespace`. So the backend itself never forks. This module knows nothing of approval, output or
//! time limits.

mod appeared;
mod filter;
mod git;
mod grants;
mod launch;
mod launcher;
mod layer;
mod mounts;
mod namespaces;
mod network;
mod pid_namespace;
mod placeholder;
mod plan;
mod removal;
mod report;
mod restriction;
mod rules;
mod start_gate;
mod support;
mod tmp;
mod trial;
mod variables;
mod wrapped;

pub use crate::error::refusal::{HidingRefusal, SandboxRefusal};
pub use grants::is_tool_directory;
pub use launch::launch_main;
pub use launcher::Launcher;
pub use layer::{LAYER_CACHES, LAYER_DOWNLOADS, LAYER_FILES};
pub use removal::Removals;
pub use report::SandboxReport;
pub use support::SandboxSupport;
pub use tmp::{PrivateTmp, prune_in};
pub use wrapped::ConfinedCommand;

pub(crate) use appeared::WatchedPaths;
pub(crate) use launcher::{LaunchRequest, ProtectedPaths};
pub(crate) use placeholder::Placeholders;
pub(crate) use start_gate::GateEnd;
pub(crate) use tmp::prune;

/// The path of the running program. It stays valid even if an update replaces the file, so the launcher is always the same build
/// as the process that starts it.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// The first argument that makes this program act as the launcher.
const LAUNCH: &str = "__launch";
