//! The executor on real processes.

mod environment;
mod faults;
mod floods;

mod leftovers;
mod limits;
mod namespaced;
mod run;
mod screen;
mod shell;
mod streams;

use std::path::Path;
use std::time::{Duration, Instant};

use co_exec::{
    Caller, CommandOutcome, CommandSpec, Confinement, Environment, ExecSettings, Executor,
    ExecutorSetup, Launcher, Program,
};
use tempfile::TempDir;

use crate::support::proc::{alive, holding};

/// The backend itself.
const BINARY: &str = env!("CARGO_BIN_EXE_co-nvim");

/// An executor in a directory of its own.
struct Bench {
    executor: Executor,
    dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ExecutorSetup)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut setup = ExecutorSetup::new(ExecSettings::new(dir.path().join("spill")));
        change(&mut setup);
        let executor = Executor::new(setup).expect("an executor");
        Self { executor, dir }
    }

    /// An executor whose commands are started by the backend's launcher.
    fn with_launcher(change: impl FnOnce(&mut ExecutorSetup)) -> Self {
        Self::with(|setup| {
            let home = "/nonexistent".into();
            setup.launcher = Some(Launcher::new(BINARY.into(), home, Vec::new()));
            change(setup);
        })
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn spec(&self, command: &str) -> CommandSpec {
        CommandSpec {
            program: Program::Shell(command.to_owned()),
            cwd: self.path().to_owned(),
            caller: Caller::Agent,
            stdin: None,
            timeout: Duration::from_secs(30),
            confinement: Confinement::Plain,
            environment: Environment::default(),
            extra_env: Vec::new(),
        }
    }

    async fn run(&self, command: &str) -> CommandOutcome {
        self.run_spec(self.spec(command)).await
    }

    async fn run_spec(&self, spec: CommandSpec) -> CommandOutcome {
        let running = self.executor.start(spec).await.expect("it starts");
        running.outcome().await
    }
}

/// Waits until `holds` does; fails after ten seconds.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
