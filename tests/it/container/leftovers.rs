//! The containers that a killed backend left.

use std::process::{Command, Stdio};

use super::{BUSYBOX, Engine, engines, exec, workspace};
use crate::support::workspace::Workspace;
use crate::support::{BACKEND, DEADLINE, proc};

/// Starts a backend that runs a command until it is killed, and returns it once its container runs.
fn running(engine: &Engine, workspace: &Workspace) -> std::process::Child {
    let mut command = Command::new(BACKEND);
    command
        .args(["exec", "--backend", "docker", "echo up > up; sleep 500"])
        .current_dir(workspace.path())
        .env("CO_CLI_CONTAINER_ENGINE", &engine.program)
        .env("CO_CLI_DOCKER_IMAGE", BUSYBOX)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn().unwrap();
    proc::wait_until(DEADLINE, "the container", || {
        workspace.exists("up").then_some(())
    });
    child
}

#[test]
fn the_next_start_removes_them_and_no_others() {
    for engine in engines() {
        let (killed, lives, third) = (workspace(), workspace(), workspace());
        let mut dead = running(&engine, &killed);
        let mut living = running(&engine, &lives);
        proc::kill9(proc::children(i32::try_from(dead.id()).unwrap())[0]);
        dead.wait().unwrap();
        // The backend of another test may be the next one.
        proc::wait_until(DEADLINE, "its removal", || {
            let done = exec(&engine, &third, BUSYBOX, &["true"]);
            assert!(done.status.success(), "{done:?}");
            engine.containers(&killed).is_empty().then_some(())
        });
        let [name] = &engine.containers(&lives)[..] else {
            panic!("the living one has one container");
        };
        assert!(name.starts_with("co-runner-") && name.len() == 18, "{name}");
        let running = engine.call(&["inspect", "--format", "{{.State.Running}}", name]);
        assert_eq!(running.trim(), "true", "{engine:?}");
        proc::kill9(proc::children(i32::try_from(living.id()).unwrap())[0]);
        living.wait().unwrap();
        exec(&engine, &third, BUSYBOX, &["true"]);
    }
}
