//! Checks that the container engine answers before an unconfined command uses it. If the engine does not run, starts it with
//! `docker_start_command`.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::protocol::NoticeLevel;
use crate::services::Services;
use co_exec::container::{Engine, FaultKind};
use co_exec::{Caller, CommandOutcome, CommandSpec, Confinement, Environment, Program};

/// The largest number of checks after co has started the engine.
const MAX_TRIES: u32 = 10;
/// The pause before each check.
const TRY_INTERVAL: Duration = Duration::from_secs(1);

/// Subcommands that do not use the engine, and options that can stand in place of a subcommand.
const WITHOUT_ENGINE: &[&str] = &[
    "--help",
    "-h",
    "help",
    "--version",
    "-v",
    "version",
    "context",
    "completion",
    "config",
];

/// Returns the engine that one of these simple commands uses; none if none of them uses an engine.
pub(crate) fn engine(commands: &[Vec<String>]) -> Option<&'static str> {
    commands.iter().find_map(|words| {
        let name = Path::new(words.first()?).file_name()?.to_str()?;
        let engine = match name {
            "docker" | "docker-compose" => "docker",
            "podman" | "podman-compose" => "podman",
            _ => return None,
        };
        let mut rest = words[1..].iter().map(String::as_str);
        let first = rest.next()?;
        let subcommand = if first == "compose" {
            rest.next()?
        } else {
            first
        };
        (!WITHOUT_ENGINE.contains(&subcommand)).then_some(engine)
    })
}

/// Waits until the container engine that a command uses answers. If the engine does not run, starts it with
/// `docker_start_command`.
///
/// # Errors
/// The engine does not answer. The text contains the engine's error message and the next step for the person.
pub(crate) async fn wait(
    services: &Services,
    commands: &[Vec<String>],
    environment: &[(OsString, OsString)],
) -> Result<(), String> {
    let Some(engine) = engine(commands).and_then(|name| Engine::find(name, environment).ok())
    else {
        return Ok(());
    };
    // co waits only for an engine that does not run. For every other fault, the command prints its own error.
    let silent = async || {
        let fault = engine.answers().await.err();
        fault.filter(|fault| fault.kind == FaultKind::NotRunning)
    };
    let Some(mut fault) = silent().await else {
        return Ok(());
    };
    let Some(argv) = services.config.docker_start_command.clone() else {
        return Err(format!(
            "{fault}, or set docker_start_command, which starts it"
        ));
    };
    let spec = CommandSpec {
        program: Program::Argv(argv),
        cwd: "/".into(),
        // The service may be a process that it leaves.
        caller: Caller::Person,
        stdin: None,
        timeout: services.config.max_timeout(),
        confinement: Confinement::Plain,
        environment: Environment::default(),
        extra_env: Vec::new(),
    };
    let start = services.executor.start(spec).await;
    let start = start.map_err(|error| format!("docker_start_command: {error}"))?;
    tokio::spawn(start.outcome());
    for number in 1..=MAX_TRIES {
        let told = format!("waiting for {}, {number} of {MAX_TRIES}", engine.name());
        services.notice(NoticeLevel::Info, told);
        tokio::time::sleep(TRY_INTERVAL).await;
        match silent().await {
            None => return Ok(()),
            Some(again) => fault = again,
        }
    }
    Err(format!(
        "{fault}; docker_start_command did not start it in {MAX_TRIES} s"
    ))
}

/// Returns a sentence with the number of containers that `compose up -d` reports as started. Returns `None` for other commands.
pub(crate) fn started(command: &str, outcome: &CommandOutcome) -> Option<String> {
    let detached = [" -d", " --detach"]
        .iter()
        .any(|option| command.contains(option));
    if !outcome.ok() || !command.contains("compose") || !command.contains(" up") || !detached {
        return None;
    }
    let starts = |line: &&str| {
        let line = line.trim();
        line.starts_with("Container ") && line.ends_with("Started")
            || line.ends_with("... done")
                && (line.starts_with("Starting ") || line.starts_with("Creating "))
    };
    let count = outcome.output.lines().filter(starts).count();
    match count {
        0 => None,
        1 => Some("Started 1 container".to_owned()),
        count => Some(format!("Started {count} containers")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_needed_by_its_own_commands() {
        let check = |text: &str, expected: Option<&str>| {
            let commands: Vec<Vec<String>> = text
                .split(';')
                .map(|one| one.split_whitespace().map(str::to_owned).collect())
                .collect();
            assert_eq!(engine(&commands), expected, "{text}");
        };
        check("docker ps", Some("docker"));
        check("ls; /usr/bin/podman run x", Some("podman"));
        check("docker-compose up -d", Some("docker"));
        check("docker compose config", None);
        check("docker --version", None);
        check("docker run -v .:/w image", Some("docker"));
        check("docker logs config", Some("docker"));
        check("docker", None);
        check("echo docker ps", None);
        check("", None);
    }

    #[test]
    fn compose_tells_what_it_started() {
        let ended = |output: &str| CommandOutcome {
            exit: Some(0),
            output: output.to_owned(),
            ..CommandOutcome::default()
        };
        let two =
            ended(" Network x  Created\n Container x-a-1  Started\n Container x-b-1  Started\n");
        let told = |command: &str, outcome: &CommandOutcome| started(command, outcome);
        assert_eq!(
            told("docker compose up -d", &two).unwrap(),
            "Started 2 containers"
        );
        assert_eq!(told("docker compose up", &two), None);
        let one = ended("Creating x_a_1 ... done\n");
        assert_eq!(
            told("docker-compose up --detach", &one).unwrap(),
            "Started 1 container"
        );
        assert_eq!(told("docker ps -d", &one), None);
        assert_eq!(told("ls -d compose updates", &ended("compose\n")), None);
    }
}
