//! The process of a server: its start in its confinement, and the handshake.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::environment::ServerEnvironment;
use super::home;
use crate::blocking::blocking;
use crate::cancellable::last_words;
use crate::config::McpServerSettings;
use crate::editor::Editor;
use crate::paths;
use crate::program_places::{self, KnownDirectories};
use crate::workspace::judge::Judge;
use co_exec::{
    Caller, CommandSpec, Confinement, Environment, ExecSettings, Executor, GrantedPlaces, Program,
    RunningCommand, Streams, UNTIL_IT_ENDS,
};
use co_mcp::{CallError, ClientName, OpenError, ServerConnection, ServerTool};

/// The time for a server to start and to tell its tools.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The most bytes of a server's standard error that are shown.
const LONGEST_OUTPUT: usize = 1_000;

/// Programs that download a server when it is first started.
const DOWNLOADERS: [(&str, &str); 4] = [
    ("npx", "npm install -g"),
    ("uvx", "uv tool install"),
    ("pipx", "pipx install"),
    ("bunx", "bun install -g"),
];

/// All that the start of a server needs.
#[derive(Clone)]
pub struct ServerStart {
    pub settings: McpServerSettings,
    pub workspace: PathBuf,
    /// It knows the secret files of the workspace.
    pub judge: Arc<Judge>,
    pub executor: Executor,
    /// The limits of its memory and its processes.
    pub limits: [Option<u64>; 2],
    /// The person's home directory.
    pub person_home: PathBuf,
    /// The parent of the homes of all servers.
    pub servers: PathBuf,
    /// Notifies the person if a running server ends.
    pub editor: Editor,
}

/// The reason why a server did not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartFault {
    #[error("its program {0} is not installed")]
    NotInstalled(String),
    #[error(transparent)]
    Home(#[from] paths::Error),
    #[error(transparent)]
    Command(#[from] co_exec::Error),
    #[error("{0}")]
    Failed(String),
    #[error("{error}{}", after(.words))]
    Open { error: OpenError, words: String },
    #[error("its tools cannot be read: {0}")]
    Tools(CallError),
    #[error("it did not answer within {} s{}", START_TIMEOUT.as_secs(), after(.advice))]
    Late { advice: String },
}

/// Returns the last words of a server after a sentence about it.
fn after(words: &str) -> String {
    match words {
        "" => String::new(),
        words => format!(": {words}"),
    }
}

/// A server that has answered.
pub(super) struct StartedServer {
    pub connection: ServerConnection,
    pub tools: Vec<ServerTool>,
    pub more_tools: bool,
    pub command: RunningCommand,
}

impl ServerStart {
    /// Starts the server, and asks for its tools.
    ///
    /// # Errors
    /// It did not start, or did not answer. No process is left.
    pub(super) async fn start(
        &self,
        environment: ServerEnvironment,
    ) -> Result<StartedServer, StartFault> {
        let started = tokio::time::timeout(START_TIMEOUT, self.try_start(environment)).await;
        started.unwrap_or_else(|_| {
            Err(StartFault::Late {
                advice: self.advice().unwrap_or_default(),
            })
        })
    }

    async fn try_start(&self, environment: ServerEnvironment) -> Result<StartedServer, StartFault> {
        let start = self.clone();
        let prepared = blocking(move || Ok::<_, String>(start.prepare(&environment))).await;
        let spec = prepared.map_err(StartFault::Failed)??;
        let settings = ExecSettings {
            memory: self.limits[0],
            processes: self.limits[1],
            // A server gets only the variables that its own settings name.
            env_allow: Vec::new(),
            ..self.executor.settings().clone()
        };
        let executor = self.executor.with(settings)?;
        let mut command = executor.start_on(spec, Streams::Pipes).await?;
        let Some(pipes) = command.take_pipes() else {
            return Err(StartFault::Failed(last_line(command).await));
        };
        let client = ClientName {
            name: "co",
            version: env!("CARGO_PKG_VERSION"),
        };
        let connection = match ServerConnection::open(pipes.output, pipes.input, client).await {
            Ok(connection) => connection,
            Err(error) => {
                let words = last_line(command).await;
                let words = self.advice().unwrap_or(words);
                return Err(StartFault::Open { error, words });
            }
        };
        let (tools, more_tools) = connection.tools().await.map_err(StartFault::Tools)?;
        Ok(StartedServer {
            connection,
            tools,
            more_tools,
            command,
        })
    }

    /// Returns the secret files of the workspace, which a server that starts now cannot read.
    ///
    /// # Errors
    /// They cannot be found.
    pub(super) async fn secrets(&self) -> Result<HashSet<PathBuf>, String> {
        let judge = Arc::clone(&self.judge);
        let read = move || {
            let survey = judge.survey();
            Ok::<_, String>(survey.closed_names().map(Path::to_owned).collect())
        };
        blocking(read).await
    }

    /// Finds the program, and makes the home. It blocks.
    fn prepare(&self, environment: &ServerEnvironment) -> Result<CommandSpec, StartFault> {
        let McpServerSettings {
            cmd, of_workspace, ..
        } = &self.settings;
        let path = self.executor.agent_environment();
        let path = path.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| value.clone()).unwrap_or_default();
        let (program, arguments) = cmd
            .split_first()
            .map_or(("", &[][..]), |(program, words)| (program.as_str(), words));
        let found = match Path::new(program).is_absolute() {
            true => Some(PathBuf::from(program)).filter(|it| it.is_file()),
            false => co_exec::find_program(program, &path),
        };
        let found = found.ok_or_else(|| StartFault::NotInstalled(program.to_owned()))?;
        let home = home::place(&self.servers, &self.settings, &self.workspace);
        let mut extra_env = home::prepare(&home)?;
        extra_env.extend(environment.of_home(&home));
        let around = KnownDirectories {
            home: &self.person_home,
            workspace: &self.workspace,
            path: &path,
        };
        // A file of the workspace chooses no places by arguments.
        let places = if *of_workspace { &[] } else { arguments };
        let read = program_places::of(&found, places, &around);
        let words = std::iter::once(found.display().to_string()).chain(arguments.iter().cloned());
        Ok(CommandSpec {
            program: Program::Argv(words.collect()),
            cwd: self.workspace.clone(),
            caller: Caller::Agent,
            stdin: None,
            timeout: UNTIL_IT_ENDS,
            confinement: Confinement::Server {
                workspace: self.workspace.clone(),
                places: GrantedPlaces {
                    read,
                    write: vec![home],
                },
            },
            environment: Environment::default(),
            extra_env,
        })
    }

    /// Returns what to do if the command would download the server, which it cannot without a network.
    fn advice(&self) -> Option<String> {
        let program = Path::new(self.settings.cmd.first()?)
            .file_name()?
            .to_str()?;
        let (_, install) = DOWNLOADERS.iter().find(|(name, _)| *name == program)?;
        Some(format!(
            "{program} downloads it at the first start, and a server has no network; install it (`{install} ...`) and set cmd to its program"
        ))
    }
}

/// Waits a short time for the end of a server, then ends it. Returns the end of its standard error, in a line.
pub(super) async fn last_line(command: RunningCommand) -> String {
    let words = last_words(command, LONGEST_OUTPUT).await;
    let lines = words.lines().map(str::trim).filter(|it| !it.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}
