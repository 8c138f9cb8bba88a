//! Commands in containers of real engines: dockerd and podman, which `scripts/containers.py` starts.

mod command_line;
mod editor;
mod faults;
mod leftovers;
mod protection;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::runner::Runner;
use crate::support::workspace::Workspace;
use crate::support::{BACKEND, DEADLINE, proc};

/// The image with busybox alone, and the one with bash and coreutils.
const BUSYBOX: &str = "co-busybox:test";
const BASH: &str = "co-bash:test";

/// A container engine.
#[derive(Debug, Clone)]
struct Engine {
    program: PathBuf,
}

/// Returns both engines; none if the person wants no tests with containers.
///
/// # Panics
/// If they cannot run here.
#[track_caller]
fn engines() -> Vec<Engine> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if variable("CO_TEST_NO_CONTAINERS").is_some_and(|value| value == "1") {
        return Vec::new();
    }
    if let Some(why) = variable("CO_TEST_ENGINES_MISSING") {
        panic!(
            "no container engine runs here: {why}; CO_TEST_NO_CONTAINERS=1 leaves these tests out"
        );
    }
    let Some(place) = variable("CO_TEST_ENGINES") else {
        panic!(
            "CO_TEST_ENGINES is not set: run the tests with `make test` or by scripts/containers.py"
        );
    };
    ["docker", "podman"]
        .map(|name| Engine {
            program: PathBuf::from(&place).join(name).join(name),
        })
        .into()
}

impl Engine {
    /// Calls the engine and returns what it prints.
    #[track_caller]
    fn call(&self, args: &[&str]) -> String {
        let done = Command::new(&self.program).args(args).output().unwrap();
        assert!(done.status.success(), "{self:?} {args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Returns those who can use the engine. Another user would have images of podman of their own.
    fn runners(&self) -> Vec<Runner> {
        let mut all = Runner::all();
        all.retain(|runner| self.program.ends_with("docker") || !runner.is_somebody());
        all
    }

    /// Returns the settings that make approved commands run in a container of this image.
    fn settings(&self, image: &str) -> Value {
        json!({
            "sandbox_backend": "docker",
            "container_engine": self.program,
            "docker_image": image,
        })
    }

    /// Returns the names of the containers that have the workspace.
    fn containers(&self, workspace: &Workspace) -> Vec<String> {
        let all = self.call(&["ps", "--all", "--format", "{{.Names}}"]);
        let mounts = "{{range .Mounts}}{{.Source}} {{end}}";
        let has = |name: &&str| {
            let mut inspect = Command::new(&self.program);
            // Another test may have removed it meanwhile.
            let told = inspect.args(["inspect", "--format", mounts, name]).output();
            let told = String::from_utf8(told.unwrap().stdout).unwrap();
            told.split_whitespace()
                .any(|path| path == workspace.path().to_str().unwrap())
        };
        let mut names: Vec<_> = all.lines().filter(has).map(str::to_owned).collect();
        names.sort();
        names
    }
}

/// Returns a workspace that the user inside may write. The tests may run as root, whose commands run as 1000.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    give_away(&workspace);
    workspace
}

/// Gives all files of a workspace to someone who runs co, or to the user inside.
fn give(workspace: &Workspace, runner: Runner) {
    match runner.is_somebody() {
        true => runner.give(workspace.path()),
        false => give_away(workspace),
    }
}

/// Gives all files of a workspace to the user inside.
fn give_away(workspace: &Workspace) {
    if nix::unistd::geteuid().is_root() {
        let mut chown = Command::new("chown");
        let done = chown
            .args(["-R", "1000:1000"])
            .arg(workspace.path())
            .status();
        assert!(done.unwrap().success());
    }
}

/// Runs `co-nvim exec --json` with an engine.
fn exec(engine: &Engine, workspace: &Workspace, image: &str, args: &[&str]) -> Output {
    exec_by(Runner::default(), engine, workspace, image, args)
}

/// Runs `co-nvim exec --json` with an engine, as a user on a kernel.
fn exec_by(
    runner: Runner,
    engine: &Engine,
    workspace: &Workspace,
    image: &str,
    args: &[&str],
) -> Output {
    let home = tempfile::tempdir().unwrap();
    let backend = runner.backend(home.path());
    runner.give(home.path());
    let mut command = runner.co(&backend);
    command
        .args(["exec", "--json", "--backend", "docker"])
        .args(args)
        .current_dir(workspace.path())
        .env_remove("XDG_CONFIG_HOME")
        .env("HOME", home.path())
        .env("XDG_STATE_HOME", home.path().join("state"))
        .env("CO_CLI_CONTAINER_ENGINE", &engine.program)
        .env("CO_CLI_DOCKER_IMAGE", image)
        .env("CO_TEST_OF_HOST", "leaked");
    command.output().unwrap()
}

/// Starts a backend that runs a command until it is killed. Returns it once the command has made the file `up`.
fn running(engine: &Engine, workspace: &Workspace, line: &str) -> Child {
    let mut command = Command::new(BACKEND);
    command
        .args(["exec", "--backend", "docker", line])
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

/// Returns what `co-nvim exec` tells of a command that ran.
#[track_caller]
fn told(done: &Output) -> Value {
    serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
}
