//! The container of a command: finds an engine, docker or podman, and calls its command line.
//!
//! This module knows nothing of approval, output or time limits.

mod engine;
mod fault;
mod settings;

pub use engine::Engine;
pub use fault::{EngineFault, FaultKind};
pub use settings::{ContainerSettings, is_engine, is_image, is_network, is_user};
