//! Checks that an engine mounts this machine's workspace. An engine on another machine would mount a directory of that machine.

use std::fs;
use std::path::Path;

use super::WORKSPACE_INSIDE;
use super::instance::Container;
use crate::beneath::Dir;
use crate::environment::Variables;
use crate::error::engine::{EngineFault, FaultKind};
use crate::process::env;

/// Returns whether the engine's client may use an engine on another machine, judging by its variables and its configuration.
fn may_be_remote(variables: &Variables) -> bool {
    let value = |name: &str| env::value(variables, name).and_then(|value| value.into_string().ok());
    let host = ["DOCKER_HOST", "CONTAINER_HOST"]
        .iter()
        .find_map(|name| value(name));
    if let Some(host) = host.filter(|host| !host.is_empty()) {
        return !host.starts_with("unix://");
    }
    let config =
        value("DOCKER_CONFIG").or_else(|| value("HOME").map(|home| format!("{home}/.docker")));
    let context = value("DOCKER_CONTEXT").or_else(|| {
        let text = fs::read(Path::new(&config?).join("config.json")).ok()?;
        let config: serde_json::Value = serde_json::from_slice(&text).ok()?;
        Some(config["currentContext"].as_str()?.to_owned())
    });
    context.is_some_and(|context| !matches!(context.as_str(), "" | "default"))
}

/// Checks that a new container has the workspace, if the engine may be on another machine. Creates a file in the workspace for
/// the check.
///
/// # Errors
/// The container has another directory in place of the workspace.
pub(super) async fn check(container: &Container) -> Result<(), EngineFault> {
    if !may_be_remote(&container.engine.env) {
        return Ok(());
    }
    let Ok(workspace) = Dir::open(container.workspace().0) else {
        return Ok(());
    };
    let Ok((probe, _)) = workspace.make_unfinished(".co-probe-", 0o600) else {
        // Nothing tells then.
        return Ok(());
    };
    let inside = format!("{WORKSPACE_INSIDE}/{}", probe.name());
    let script = "test -e \"$1\" && echo here || echo missing";
    let args = ["exec", &container.name, "sh", "-c", script, "co", &inside];
    let found = container.call(&args).await;
    drop(probe);
    match found?.trim() {
        "missing" => Err(container.fault(
            FaultKind::Mount,
            "it runs on another machine, where the workspace is not".to_owned(),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_or_a_context_may_be_another_machine() {
        let home = tempfile::tempdir().unwrap();
        let check = |variables: &[(&str, &str)], expected: bool| {
            let mut all: Variables = vec![("HOME".into(), home.path().into())];
            all.extend(
                variables
                    .iter()
                    .map(|(name, value)| (name.into(), value.into())),
            );
            assert_eq!(may_be_remote(&all), expected, "{variables:?}");
        };
        check(&[], false);
        check(&[("DOCKER_HOST", "unix:///run/docker.sock")], false);
        check(&[("DOCKER_HOST", "tcp://build:2375")], true);
        check(&[("CONTAINER_HOST", "ssh://build")], true);
        check(&[("DOCKER_CONTEXT", "default")], false);
        check(&[("DOCKER_CONTEXT", "build")], true);
        fs::create_dir(home.path().join(".docker")).unwrap();
        let config = home.path().join(".docker/config.json");
        fs::write(&config, r#"{"currentContext": "build"}"#).unwrap();
        check(&[], true);
        check(&[("DOCKER_CONTEXT", "default")], false);
    }
}
