//! Checks the container engine, and the image in the settings.

use super::check::{Check, CheckLevel};
use crate::config::{Config, ConfinementSetting};
use crate::workspace::confinement::limits_words;
use co_exec::container::{Engine, EngineFault, missing_limits};

/// Checks that the container engine answers and has the image. A fault is an error only if the settings require containers.
pub(super) async fn check(config: &Config, found: Result<Engine, EngineFault>) -> Check {
    let settings = config.container();
    let tried = match found {
        Ok(engine) => {
            let missing = missing_limits(&engine, settings).await;
            missing.map(|missing| (engine, missing))
        }
        Err(fault) => Err(fault),
    };
    match tried {
        Ok((engine, missing)) => {
            let message = format!(
                "{} answers and has the image {}; {}",
                engine.program().display(),
                settings.image,
                limits_words(&engine.name(), &missing)
            );
            match missing.is_empty() {
                true => Check::ok("container", message),
                false => Check::bad(
                    "container",
                    CheckLevel::Warn,
                    message,
                    "rootless engines need cgroup v2 for limits; else run the engine as root, or use landlock",
                ),
            }
        }
        Err(fault) if config.sandbox_backend == ConfinementSetting::Docker => Check::bad(
            "container",
            CheckLevel::Error,
            fault.to_string(),
            "correct that, or set sandbox_backend to what works here",
        ),
        Err(fault) => Check::ok(
            "container",
            format!("your settings need none, and none can run: {fault}"),
        ),
    }
}
