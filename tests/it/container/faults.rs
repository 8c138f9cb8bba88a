//! A container that cannot run: one sentence with the engine's words and the next step, before anything is asked.

use serde_json::json;

use super::{BUSYBOX, Engine, engines, exec, workspace};
use crate::support::http::Reply;
use crate::support::scene::Scene;

#[test]
fn a_model_learns_it_before_the_person_is_asked() {
    let settings =
        json!({ "sandbox_backend": "docker", "container_engine": "/nonexistent/podman" });
    let scene = Scene::in_workspace(workspace(), settings, &[]);
    scene.replies([
        Reply::shell("c1", "echo x > made"),
        Reply::text("I cannot."),
    ]);
    scene.co("write");
    scene.wait_turns(1);
    let told = scene.told(1);
    assert_eq!(
        told,
        "there is no program /nonexistent/podman; install docker or podman, or set container_engine to its path"
    );
    assert_eq!(scene.events("CoApprovalRequested"), 0);
    scene.co("/sandbox docker");
    scene.wait_text("the sandbox is not changed: there is no program");
    scene.run("echo x > made");
    scene.wait_shell("not run: there is no program /nonexistent/podman");
    assert!(!scene.workspace.exists("made"));
}

#[test]
fn each_fault_has_its_next_step() {
    for engine in engines() {
        let workspace = workspace();
        let check = |engine: &Engine, image: &str, args: &[&str], parts: &[&str]| {
            let done = exec(engine, &workspace, image, args);
            assert_eq!(done.status.code(), Some(125), "{done:?}");
            let told = String::from_utf8_lossy(&done.stderr);
            assert_eq!(told.lines().count(), 1, "{told}");
            for part in parts {
                assert!(told.contains(part), "{engine:?}: {part} in {told}");
            }
        };
        let missing = ["no image co-none:test", "set docker_image"];
        check(&engine, "co-none:test", &["echo"], &missing);
        let name = engine.program.file_name().unwrap().to_str().unwrap();
        if name == "docker" {
            let dir = tempfile::tempdir().unwrap();
            let stopped = Engine {
                program: dir.path().join("docker"),
            };
            let text = std::fs::read_to_string(&engine.program).unwrap();
            let line = text
                .lines()
                .find(|line| line.contains("DOCKER_HOST"))
                .unwrap();
            let text = text.replace(line, "export DOCKER_HOST=unix:///nonexistent.sock");
            std::fs::write(&stopped.program, text).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&stopped.program, mode).unwrap();
            let parts = ["docker does not answer (", "start its service"];
            check(&stopped, BUSYBOX, &["echo"], &parts);
        }
    }
}

/// Writes an executable `docker` into a new directory, and returns the directory.
fn fake(script: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("docker");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    dir
}

#[test]
fn a_command_of_the_engine_waits_until_it_answers() {
    let dir = fake(
        "here=$(dirname \"$0\")\n\
         [ -e $here/up ] || { echo 'Cannot connect to the Docker daemon' >&2; exit 1; }\n\
         [ \"$1\" = version ] && exit\n\
         printf ' Container a-1  Started\\n Container b-1  Started\\n'",
    );
    let path = format!(
        "{}:{}",
        dir.path().display(),
        std::env::var("PATH").unwrap()
    );
    let up = dir.path().join("up");
    for (settings, told) in [
        (
            json!({}),
            "not run: docker does not answer (Cannot connect to the Docker daemon); start its service, or set docker_start_command",
        ),
        (
            json!({ "docker_start_command": ["touch", up] }),
            "Started 2 containers",
        ),
    ] {
        let scene = Scene::in_workspace(workspace(), settings, &[("PATH", &path)]);
        scene.run("env X=1 docker compose up -d");
        scene.wait_shell(told);
        if told.starts_with("not run") {
            scene.replies([
                Reply::shell("c1", "bash -c 'docker ps'"),
                Reply::text("It is down."),
            ]);
            scene.co("what runs?");
            scene.approve();
            scene.wait_turns(1);
            let told = scene.told(1);
            assert!(told.starts_with("docker does not answer"), "{told}");
            scene.co("!docker ps");
            scene
                .nvim
                .wait_text("not run: docker does not answer (Cannot connect");
        } else {
            scene.wait_text("waiting for docker, 1 of 10");
        }
    }
}

#[test]
fn a_wait_for_the_engine_can_be_cancelled() {
    let dir = fake("echo 'Cannot connect to the Docker daemon' >&2; exit 1");
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", dir.path().display());
    let settings = json!({ "docker_start_command": ["true"] });
    let scene = Scene::in_workspace(workspace(), settings, &[("PATH", &path)]);
    scene.co("!docker ps");
    scene.wait_text("waiting for docker, 1 of 10");
    scene.interrupt();
    scene.wait_text("✗ !docker ps  cancelled");
}

/// An engine that tells what it is asked for.
#[test]
fn the_image_is_built_in_the_shell_buffer_outside_of_the_confinement() {
    let dir = fake("echo \"args: $*\"\ngrep ^FROM\necho \"host: $DOCKER_HOST\"");
    let program = dir.path().join("docker");
    let settings = Engine { program }.settings("mine:1");
    let env = [("DOCKER_HOST", "tcp://x")];
    let scene = Scene::in_workspace(workspace(), settings, &env);
    scene.co("/sandbox build");
    scene.wait_shell(
        "$ /sandbox build\nargs: build --tag mine:1 -\nFROM python:3.12-slim\nhost: tcp://x\nexit 0",
    );
}

#[test]
fn an_engine_of_another_machine_does_not_have_the_workspace() {
    for engine in engines() {
        let (workspace, elsewhere) = (workspace(), tempfile::tempdir().unwrap());
        // It mounts another directory, as an engine of another machine does.
        let dir = fake(&format!(
            "for word; do shift; set -- \"$@\" \"$(echo \"$word\" | sed 's#source={}\"#source={}\"#')\"; done\n\
             exec {} \"$@\"",
            workspace.path().display(),
            elsewhere.path().display(),
            engine.program.display()
        ));
        let remote = Engine {
            program: dir.path().join("docker"),
        };
        let run = |host: &str| {
            let mut command = std::process::Command::new(crate::support::BACKEND);
            command
                .args(["exec", "--backend", "docker", "ls"])
                .current_dir(workspace.path())
                .env("CO_CLI_CONTAINER_ENGINE", &remote.program)
                .env("CO_CLI_DOCKER_IMAGE", BUSYBOX)
                .env("DOCKER_HOST", host);
            command.output().unwrap()
        };
        let done = run("tcp://build:2375");
        let told = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(125), "{done:?}");
        assert!(
            told.contains("it runs on another machine, where the workspace is not"),
            "{told}"
        );
        let left = std::fs::read_dir(workspace.path()).unwrap().flatten();
        assert!(left.map(|it| it.file_name()).all(|name| name == ".git"));
    }
}
