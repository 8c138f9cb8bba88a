//! Starts a server: starts its confined program or connects over HTTP, and does the handshake.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::environment::{ServerEnvironment, ServerSecrets};
use super::start::{START_TIMEOUT, ServerStart, StartFault};
use super::{CLIENT, download, home, http, level};
use crate::blocking::blocking;
use crate::cancellable::last_words;
use crate::config::{ServerConfinement, ServerKind, ServerProgram};
use crate::network::{self, HostAccess, OpenAccess};
use crate::program_places::{self, KnownDirectories};
use co_exec::{
    Caller, CommandSpec, Environment, ExecSettings, GrantedPlaces, OutputReading, Program,
    RunningCommand, Streams, UNTIL_IT_ENDS,
};
use co_mcp::{ServerConnection, ServerOffers, ServerTool};
use co_text::{end_of, printable};

/// The largest number of bytes of a server's standard error that are shown.
const LONGEST_OUTPUT: usize = 1_000;

/// A server that has completed the handshake.
pub(super) struct StartedServer {
    pub connection: ServerConnection,
    pub offers: ServerOffers,
    pub tools: Vec<ServerTool>,
    pub more_tools: bool,
    /// The process of the server. It is `None` for a server over HTTP.
    pub command: Option<RunningCommand>,
    /// The server's access to hosts. It is `None` if the server may connect to none.
    pub access: Option<OpenAccess>,
}

impl ServerStart {
    /// Starts the server, and asks for its tools.
    ///
    /// # Errors
    /// The server did not start, or did not answer. No process is left.
    pub(super) async fn start(
        &self,
        environment: ServerEnvironment,
    ) -> Result<StartedServer, StartFault> {
        let started = tokio::time::timeout(START_TIMEOUT, self.try_start(environment)).await;
        started.unwrap_or_else(|_| {
            Err(StartFault::Late {
                advice: download::advice(&self.settings).unwrap_or_default(),
            })
        })
    }

    /// Starts the server once and ends it, so that its downloader downloads it.
    ///
    /// # Errors
    /// The server did not start. The error is a reason for the person.
    pub async fn fetch(&self) -> Result<(), String> {
        let environment = ServerEnvironment::read(&self.settings).await?;
        let secrets = environment.secrets.clone();
        let started = self.start(environment).await;
        let started = started.map_err(|fault| secrets.hide(&fault.to_string()).text);
        if let Some(command) = started?.command {
            command.cancel();
            last_line(command).await;
        }
        Ok(())
    }

    async fn try_start(&self, environment: ServerEnvironment) -> Result<StartedServer, StartFault> {
        let (connection, command, access) = match &self.settings.kind {
            ServerKind::Program(program) => self.start_program(program, environment).await?,
            ServerKind::Http(server) => {
                let connection = http::connect(self, server, environment).await?;
                (connection, None, None)
            }
            ServerKind::Wrong(why) => return Err(StartFault::Settings(why.clone())),
        };
        let tools = connection.tools().await;
        let tools = tools.map_err(|error| http::tools_fault(&self.settings, &error));
        let (tools, more_tools) = tools?;
        let offers = connection.offers().await;
        Ok(StartedServer {
            connection,
            offers,
            tools,
            more_tools,
            command,
            access,
        })
    }

    async fn start_program(
        &self,
        program: &ServerProgram,
        environment: ServerEnvironment,
    ) -> Result<(ServerConnection, Option<RunningCommand>, Option<OpenAccess>), StartFault> {
        let (start, program) = (self.clone(), program.clone());
        let prepare = move || Ok::<_, String>(start.prepare(&program, &environment));
        let prepared = blocking(prepare).await;
        let spec = prepared.map_err(StartFault::Failed)??;
        let settings = ExecSettings {
            memory: self.limits[0],
            processes: self.limits[1],
            // A server gets only the variables that its own settings name.
            env_allow: Vec::new(),
            ..self.executor.settings().clone()
        };
        let executor = self.executor.with(settings)?;
        let has_hosts = spec.confinement.has_own_network();
        if let Some(launcher) = executor.launcher().filter(|_| has_hosts) {
            let network = launcher.report().own_network();
            network.map_err(StartFault::NoNetwork)?;
        }
        let access = has_hosts.then(|| HostAccess::new(Arc::clone(&self.hosts)));
        let started = network::start(&executor, spec, Streams::Pipes, access);
        let (mut command, access) = started.await?;
        let Some(pipes) = command.take_pipes() else {
            return Err(StartFault::Failed(last_line(command).await));
        };
        match ServerConnection::open(pipes.output, pipes.input, CLIENT).await {
            Ok(connection) => Ok((connection, Some(command), access)),
            Err(error) => {
                let words = last_line(command).await;
                let advice = download::advice(&self.settings);
                let words = [words, advice.unwrap_or_default()];
                let words = words.into_iter().filter(|it| !it.is_empty());
                let words = words.collect::<Vec<_>>().join("; ");
                Err(StartFault::Open { error, words })
            }
        }
    }

    /// Returns the secret files of the workspace. The confinement hides them from a server that starts now.
    ///
    /// # Errors
    /// The secret files cannot be found.
    pub(super) async fn secrets(&self) -> Result<HashSet<PathBuf>, String> {
        let judge = Arc::clone(&self.judge);
        let read = move || {
            let survey = judge.survey();
            Ok::<_, String>(survey.closed_names().map(Path::to_owned).collect())
        };
        blocking(read).await
    }

    /// Finds the program of the server, and makes its home directory. Blocks on file operations.
    fn prepare(
        &self,
        settings: &ServerProgram,
        environment: &ServerEnvironment,
    ) -> Result<CommandSpec, StartFault> {
        let path = self.executor.agent_environment();
        let path = path.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| value.clone()).unwrap_or_default();
        let (program, arguments) = settings
            .cmd
            .split_first()
            .map_or(("", &[][..]), |(program, words)| (program.as_str(), words));
        let found = match Path::new(program).is_absolute() {
            true => Some(PathBuf::from(program)).filter(|it| it.is_file()),
            false => co_exec::find_program(program, &path),
        };
        let found = found.ok_or_else(|| StartFault::NotInstalled(program.to_owned()))?;
        let is_confined = settings.confinement != ServerConfinement::None;
        let own_home = home::place(&self.servers, &self.settings, &self.workspace);
        let (home, mut extra_env) = match is_confined {
            true => (&own_home, home::prepare(&own_home)?),
            false => (&self.person_home, Vec::new()),
        };
        if settings.hosts.is_empty() && is_confined {
            let offline = download::OFFLINE.iter();
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            extra_env.extend(offline.map(owned));
        }
        extra_env.extend(environment.of_home(home));
        let around = KnownDirectories {
            home: &self.person_home,
            workspace: &self.workspace,
            path: &path,
        };
        // A file of the workspace chooses no places by arguments.
        let is_free = !self.settings.of_workspace;
        let places = if is_free { arguments } else { &[] };
        let read = program_places::of(&found, places, &around);
        let words = std::iter::once(found.display().to_string()).chain(arguments.iter().cloned());
        Ok(CommandSpec {
            program: Program::Argv(words.collect()),
            cwd: self.workspace.clone(),
            caller: Caller::Agent,
            stdin: None,
            timeout: UNTIL_IT_ENDS,
            confinement: level::confinement(
                settings,
                &self.workspace,
                GrantedPlaces {
                    read,
                    write: vec![own_home],
                },
            ),
            environment: Environment::default(),
            extra_env,
        })
    }
}

/// Waits a short time for a server to end, then ends it. Returns the end of its standard error as one line.
pub(super) async fn last_line(command: RunningCommand) -> String {
    in_a_line(&last_words(command, LONGEST_OUTPUT).await)
}

/// Joins the lines of a text into one line.
fn in_a_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

/// Returns the end of a running server's standard error as one line, without the server's secrets.
pub(super) fn end_of_log(output: &OutputReading, secrets: &ServerSecrets) -> String {
    let printed = secrets.hide(&String::from_utf8_lossy(&output.end())).text;
    in_a_line(end_of(&printable(printed.trim()), LONGEST_OUTPUT))
}
