//! The container engine, and the image of the settings.

use std::ffi::OsString;

use super::check::{Check, CheckLevel};
use crate::config::{Config, SandboxBackend};
use co_exec::container::Engine;

/// Checks that the engine answers and has the image. A fault is a warning only if the settings need a container.
pub(super) async fn check(config: &Config, environment: &[(OsString, OsString)]) -> Check {
    let settings = config.container();
    let found = match Engine::find(&settings.engine, environment) {
        Ok(engine) => engine.check(&settings.image).await.map(|()| engine),
        Err(fault) => Err(fault),
    };
    match found {
        Ok(engine) => Check::ok(
            "container",
            format!(
                "{} answers and has the image {}",
                engine.program().display(),
                settings.image
            ),
        ),
        Err(fault) if config.sandbox_backend == SandboxBackend::Docker => Check::bad(
            "container",
            CheckLevel::Error,
            fault.to_string(),
            "correct that, or set sandbox_backend to what works here",
        ),
        Err(fault) => Check::ok("container", format!("no command can run in one: {fault}")),
    }
}
