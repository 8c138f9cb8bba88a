//! Runs commands in containers: finds an engine, docker or podman, and calls its command line. A backend has two containers for
//! each workspace: one for approved commands, and one for read-only commands.
//!
//! The supervisor of a command watches only the engine's client; `inside` handles the processes in the container.
//!
//! This module knows nothing of approval, output or time limits.

mod control;
mod create;
mod engine;
mod inside;
mod instance;
mod limits;
mod mounts;
mod owner;
mod remote;
mod runner;
mod script;
mod setuid;

pub use crate::error::engine::{EngineFault, FaultKind};
pub use crate::settings::container::{ContainerSettings, is_engine, is_image, is_network, is_user};
pub use engine::{Engine, check_engine};
pub use limits::missing_limits;

pub(crate) use control::Control;
pub(crate) use inside::{Inside, InsideRequest, OUTER_TIMEOUT_MARGIN};
pub(crate) use instance::{Container, ContainerUse};
pub(crate) use runner::Containers;

/// The path of the workspace in the container.
pub const WORKSPACE_INSIDE: &str = "/workspace";
