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
mod watchdog;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use co_exec::{
    Caller, CommandInput, CommandOutcome, CommandSpec, Confinement, Environment, Error,
    ExecSettings, Executor, ExecutorSetup, Feed, Launcher, Network, Program, RunningCommand,
    ShownSecrets, Streams, TerminalSize,
};
use tempfile::TempDir;

use crate::support::BACKEND;
use crate::support::proc::{alive, holding};

const SIZE: TerminalSize = TerminalSize {
    columns: 91,
    rows: 23,
};
const TERMINAL: Streams = Streams::Terminal(SIZE);

/// An executor in a directory of its own.
pub(crate) struct Bench {
    pub(crate) executor: Executor,
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
    pub(crate) fn with_launcher(change: impl FnOnce(&mut ExecutorSetup)) -> Self {
        Self::with(|setup| {
            let home = "/nonexistent".into();
            setup.launcher = Some(Launcher::new(BACKEND.into(), home, Vec::new()));
            change(setup);
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn spec(&self, command: &str) -> CommandSpec {
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

    fn by_person(&self, command: &str) -> CommandSpec {
        CommandSpec {
            caller: Caller::Person,
            ..self.spec(command)
        }
    }

    /// A command at the read-only level.
    pub(crate) fn read_only(&self, command: &str) -> CommandSpec {
        let [confinement, _] = self.levels();
        CommandSpec {
            confinement,
            ..self.spec(command)
        }
    }

    pub(crate) fn levels(&self) -> [Confinement; 2] {
        levels(self.path())
    }

    async fn start(&self, command: &str) -> RunningCommand {
        self.start_spec(self.spec(command)).await
    }

    pub(crate) async fn start_spec(&self, spec: CommandSpec) -> RunningCommand {
        self.executor.start(spec).await.expect("it starts")
    }

    /// Starts a command whose standard input is open.
    pub(crate) async fn start_open(&self, spec: CommandSpec) -> RunningCommand {
        let started = self.executor.start_on(spec, Streams::Open).await;
        started.expect("it starts")
    }

    async fn start_on(&self, command: &str, streams: Streams) -> RunningCommand {
        let started = self.executor.start_on(self.spec(command), streams).await;
        started.expect("it starts")
    }

    async fn run(&self, command: &str) -> CommandOutcome {
        self.run_spec(self.spec(command)).await
    }

    pub(crate) async fn run_spec(&self, spec: CommandSpec) -> CommandOutcome {
        self.start_spec(spec).await.outcome().await
    }

    /// Returns the reason why a command does not start.
    async fn refused(&self, spec: CommandSpec) -> Error {
        self.executor.start(spec).await.unwrap_err()
    }
}

/// The read-only and the workspace level.
pub(crate) fn levels(workspace: &Path) -> [Confinement; 2] {
    let workspace = workspace.to_owned();
    [
        Confinement::ReadOnly {
            workspace: workspace.clone(),
        },
        Confinement::Workspace {
            workspace,
            network: Network::None,
            shown: ShownSecrets::default(),
        },
    ]
}

/// Waits until `holds` does; fails after ten seconds.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A command in a terminal, with all that it has printed.
struct Watched {
    running: RunningCommand,
    feed: Arc<Feed>,
    seen: String,
}

impl Watched {
    async fn start(bench: &Bench, spec: CommandSpec) -> Self {
        let running = bench.executor.start_on(spec, TERMINAL).await;
        let running = running.expect("it starts");
        Self {
            feed: running.feed(),
            running,
            seen: String::new(),
        }
    }

    fn input(&self) -> CommandInput {
        self.running.input().expect("a terminal has an input")
    }

    async fn until(&mut self, text: &str) {
        let more = async {
            while !self.seen.contains(text) {
                assert!(self.feed.changed().await, "{text} in {:?}", self.seen);
                self.seen.push_str(&self.feed.take().unwrap_or_default());
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(20), more).await;
        assert!(in_time.is_ok(), "{text}");
    }
}
