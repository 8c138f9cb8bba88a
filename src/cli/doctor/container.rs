//! The container engine, and the image of the settings.

use super::check::{Check, CheckLevel};
use crate::config::{Config, ConfinementSetting};
use co_exec::container::{Engine, EngineFault};

/// Shows if the engine answers and has the image. A fault is an error only if the settings need a container.
pub(super) fn check(config: &Config, found: Result<Engine, EngineFault>) -> Check {
    match found {
        Ok(engine) => Check::ok(
            "container",
            format!(
                "{} answers and has the image {}",
                engine.program().display(),
                config.container().image
            ),
        ),
        Err(fault) if config.sandbox_backend == ConfinementSetting::Docker => Check::bad(
            "container",
            CheckLevel::Error,
            fault.to_string(),
            "correct that, or set sandbox_backend to what works here",
        ),
        Err(fault) => Check::ok("container", format!("no command can run in one: {fault}")),
    }
}
