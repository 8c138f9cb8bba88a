//! The engine's arguments that make a container: its limits, its user and its mounts.

use std::ffi::OsString;

use super::WORKSPACE_INSIDE;
use super::instance::Container;
use super::mounts::{self, Masks};
use super::owner::{LABEL, Owner};

/// The most processes of a container.
const MAX_PROCESSES: &str = "256";

/// Keeps the container alive. The engine's own init process reaps orphans.
const IDLE_SCRIPT: &str = "while :; do sleep 86400; done";

/// Returns the arguments that make a container.
///
/// # Errors
/// The masks for secrets cannot be made.
pub(super) fn arguments(
    container: &Container,
    owner: &Owner,
    masks: &Masks,
) -> std::io::Result<Vec<OsString>> {
    let Container {
        purpose, settings, ..
    } = container;
    let network = match purpose.read_only {
        true => "none",
        false => &settings.network,
    };
    let tmp = format!(
        "/tmp:rw,exec,nosuid,nodev,size={},mode=1777",
        settings.tmp_size
    );
    let memory = settings.memory.to_string();
    let mut args: Vec<OsString> = ["run", "--detach", "--pull=never", "--init"]
        .map(OsString::from)
        .into();
    for (option, value) in [
        ("--name", container.name.as_str()),
        ("--label", &format!("{LABEL}={}", owner.label())),
        ("--network", network),
        ("--memory", &memory),
        ("--memory-swap", &memory),
        ("--cpus", &settings.cpus.to_string()),
        ("--pids-limit", MAX_PROCESSES),
        ("--cap-drop", "ALL"),
        ("--security-opt", "no-new-privileges"),
        ("--user", &settings.user()),
        ("--tmpfs", &tmp),
        ("--env", "HOME=/tmp"),
        ("--workdir", WORKSPACE_INSIDE),
        ("--entrypoint", "sh"),
    ] {
        args.extend([option.into(), value.into()]);
    }
    if settings.read_only || purpose.read_only {
        args.push("--read-only".into());
    }
    if container.engine.name().contains("podman") && !rustix::process::geteuid().is_root() {
        // The caller's files are the caller's inside too.
        args.push("--userns=keep-id".into());
    }
    args.extend(mounts::arguments(
        container.workspace(),
        &container.covers,
        masks,
    )?);
    args.extend([container.image.as_str(), "-c", IDLE_SCRIPT].map(OsString::from));
    Ok(args)
}
