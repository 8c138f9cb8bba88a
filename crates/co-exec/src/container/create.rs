//! Makes the engine's arguments that create a container: its limits, its user and its mounts.

use std::ffi::OsString;

use super::WORKSPACE_INSIDE;
use super::instance::Container;
use super::mounts::{self, Masks};
use super::owner::{LABEL, Owner};
use crate::settings::container::ContainerSettings;

/// The most processes in a container.
pub(super) const MAX_PROCESSES: u64 = 256;

/// The program of the container, which keeps the container alive. The engine's own init process reaps orphans.
const IDLE_SCRIPT: &str = "while :; do sleep 86400; done";

/// Returns the arguments that create a container.
///
/// # Errors
/// The masks that hide secrets cannot be created.
pub(super) fn arguments(
    container: &Container,
    owner: &Owner,
    masks: &Masks,
) -> std::io::Result<Vec<OsString>> {
    let (workspace, read_only) = container.workspace();
    let label = format!("{LABEL}={}", owner.label());
    let mut args: Vec<OsString> = [
        "run",
        "--detach",
        "--init",
        "--name",
        &container.name,
        "--label",
        &label,
        "--env",
        "HOME=/tmp",
        "--workdir",
        WORKSPACE_INSIDE,
        "--entrypoint",
        "sh",
    ]
    .map(OsString::from)
    .into();
    let limits = limits(&container.settings, read_only);
    args.extend(limits.into_iter().map(OsString::from));
    if container.engine.name().contains("podman") && !rustix::process::geteuid().is_root() {
        // The caller's files are the caller's inside too.
        args.push("--userns=keep-id".into());
    }
    let mounts = mounts::arguments((workspace, read_only), &container.mounted, masks);
    args.extend(mounts?);
    args.extend([container.image(), "-c", IDLE_SCRIPT].map(OsString::from));
    Ok(args)
}

/// Returns the arguments that set the limits of a container.
pub(super) fn limits(settings: &ContainerSettings, read_only: bool) -> Vec<String> {
    let network = match read_only {
        true => "none",
        false => &settings.network,
    };
    let tmp = format!(
        "/tmp:rw,exec,nosuid,nodev,size={},mode=1777",
        settings.tmp_size
    );
    let memory = settings.memory.to_string();
    let mut args = vec!["--pull=never".to_owned()];
    for (option, value) in [
        ("--network", network),
        ("--memory", &memory),
        ("--memory-swap", &memory),
        ("--cpus", &settings.cpus.to_string()),
        ("--pids-limit", &MAX_PROCESSES.to_string()),
        ("--cap-drop", "ALL"),
        ("--security-opt", "no-new-privileges"),
        ("--user", &settings.user()),
        ("--tmpfs", &tmp),
    ] {
        args.extend([option.to_owned(), value.to_owned()]);
    }
    if settings.read_only || read_only {
        args.push("--read-only".to_owned());
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_of_the_settings_is_for_approved_commands_only() {
        let settings = ContainerSettings {
            network: "bridge".to_owned(),
            ..ContainerSettings::default()
        };
        let network = |read_only: bool| {
            let args = limits(&settings, read_only);
            let at = args.iter().position(|arg| arg == "--network").unwrap();
            args[at + 1].clone()
        };
        assert_eq!(
            (network(false), network(true)),
            ("bridge".into(), "none".into())
        );
    }
}
