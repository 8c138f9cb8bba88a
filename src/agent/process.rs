//! The process of an agent: its start in its confinement, the handshake, and its end.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::home;
use super::hosts::TurnAsker;
use super::preset::AgentSpec;
use super::session::{SessionChange, SessionState};
use crate::blocking::blocking;
use crate::cancellable::last_words;
use crate::config::AgentConfinement;
use crate::network::{self, HostAccess, HostAsker, OpenAccess, OpenCommand, StartError};
use crate::program_places::{self, KnownDirectories};
use crate::services::Services;
use co_acp::schema::{
    AuthMethod, ErrorCode, InitializeResponse, SessionConfigOption, SessionId, SessionModeState,
    SessionUpdate,
};
use co_acp::{AgentAnswer, AgentConnection, ClientName, Incoming, RequestNumber, SendError};
use co_exec::{
    Caller, CommandSpec, Confinement, Environment, GrantedPlaces, Launcher, Program,
    RunningCommand, Streams, UNTIL_IT_ENDS,
};
use co_policy::{HostPattern, HostVerdict};
use co_proxy::Target;
use co_text::start_of;

/// The HTTPS port of the hosts of vendors.
const HTTPS: u16 = 443;

/// The most bytes of an agent's standard error that are shown.
const LONGEST_OUTPUT: usize = 2_000;

/// The most bytes of memory, about, that the messages of one turn or the messages before the session may take. An agent that
/// sends more is ended.
pub const MOST_MEMORY: u64 = 256 << 20;

/// The version of the protocol that co speaks.
const VERSION: &str = "1";

/// All that the start of an agent needs.
pub struct AgentStart {
    pub spec: AgentSpec,
    pub services: Arc<Services>,
    pub workspace: PathBuf,
    pub cwd: PathBuf,
    pub asker: Arc<TurnAsker>,
    /// The session of an earlier process, which goes on if the agent can continue it.
    pub past: Option<SessionId>,
    /// The agent gets the whole network, because no network of its own is possible here, and the person said yes.
    pub whole_network: bool,
}

/// The reason why an agent did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    #[error("{program} is not installed{}", hint(.install))]
    NotInstalled {
        program: String,
        install: Option<&'static str>,
    },
    #[error("the directory of the agent cannot be made: {0}")]
    Home(io::Error),
    #[error(transparent)]
    Command(#[from] co_exec::Error),
    #[error(transparent)]
    Network(#[from] StartError),
    #[error("the person did not allow the hosts that it needs: {0}")]
    Hosts(String),
    #[error("{0}")]
    HostRules(String),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error("it ended: {0}")]
    Ended(String),
    #[error("it speaks version {0} of the protocol, and co version {VERSION}")]
    Version(String),
    #[error("it needs a login: {0}")]
    Login(String),
    #[error(
        "it sent more before its session than {} of memory hold",
        co_text::size_text(MOST_MEMORY)
    )]
    Flood,
    #[error("the start was cancelled")]
    Cancelled,
    #[error("{0}")]
    Refused(String),
}

fn hint(install: &Option<&'static str>) -> String {
    install.map_or_else(String::new, |command| format!(" (`{command}`)"))
}

/// The way in which the session of a process began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionBegin {
    New,
    /// An earlier session goes on.
    Resumed,
    /// An earlier session goes on, and the early updates tell it again.
    Loaded,
    /// It is a new session, because the agent does not continue the earlier one, for this reason.
    Lost(String),
}

/// An update of an agent, and its parts that the types of the protocol do not know.
pub type EarlyUpdate = (SessionUpdate, Vec<String>);

/// A session that an agent opened.
struct OpenedSession {
    id: SessionId,
    begin: SessionBegin,
    state: SessionState,
}

/// A running agent with a session. Dropping it ends the agent and all that it started.
pub struct AgentProcess {
    pub connection: AgentConnection,
    pub session: SessionId,
    /// The way in which its session began.
    pub begin: SessionBegin,
    /// The updates before the session was there.
    pub early: Vec<EarlyUpdate>,
    pub state: SessionState,
    /// The changes of the session that have no answer, with the state before them.
    changes: Vec<(RequestNumber, SessionState)>,
    pub takes_images: bool,
    pub asker: Arc<TurnAsker>,
    /// The cost of the session that was told so far, in US dollars.
    pub cost: f64,
    /// The directories that it was started for.
    workspace: PathBuf,
    cwd: PathBuf,
    spec: AgentSpec,
    /// The secret files that were closed to it at its start.
    closed: HashSet<PathBuf>,
    command: RunningCommand,
    _access: Option<OpenAccess>,
}

impl AgentProcess {
    /// Returns whether the process can serve a turn: it is this agent, in these directories.
    pub fn serves(&self, start: &AgentStart) -> bool {
        self.spec == start.spec && self.workspace == start.workspace && self.cwd == start.cwd
    }

    /// Returns the secret files of the workspace that are not closed to the agent, because they appeared after its start.
    pub async fn open_secrets(&self, services: &Arc<Services>) -> Vec<PathBuf> {
        if self.spec.confinement == AgentConfinement::None {
            return Vec::new();
        }
        let mut found = secrets(services, &self.workspace).await;
        found.retain(|it| !self.closed.contains(it));
        found
    }

    /// Sends a change of the session. Its answer comes to [`Self::changed`].
    ///
    /// # Errors
    /// The agent does not read.
    pub fn change(&mut self, change: SessionChange) -> Result<(), SendError> {
        let before = self.state.clone();
        self.state.apply(&change);
        let sent = match change {
            SessionChange::Mode(mode) => self.connection.set_mode(&self.session, mode)?,
            SessionChange::Option(option, value) => {
                self.connection.set_option(&self.session, option, value)?
            }
        };
        self.changes.push((sent, before));
        Ok(())
    }

    /// Returns whether a change of the session has no answer yet.
    pub fn is_changing(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Takes the answer to a change of the session. Returns why the agent refused it, if it did.
    pub fn changed(
        &mut self,
        number: RequestNumber,
        answer: Result<AgentAnswer, co_acp::schema::Error>,
    ) -> Option<String> {
        let at = self.changes.iter().position(|(sent, _)| *sent == number)?;
        let (_, before) = self.changes.remove(at);
        match answer {
            Ok(AgentAnswer::OptionSet(options)) if !options.is_empty() => {
                self.state.options = options;
                None
            }
            Ok(_) => None,
            Err(error) => {
                let commands = std::mem::take(&mut self.state.commands);
                self.state = SessionState { commands, ..before };
                Some(error.message)
            }
        }
    }

    /// Ends the process, and returns the last that it said on its standard error.
    pub async fn last_words(self) -> String {
        self.command.cancel();
        last_words(self.command, LONGEST_OUTPUT).await
    }
}

impl AgentStart {
    /// Returns whether the agent would be confined, but without a network of its own.
    pub fn lacks_own_network(&self) -> bool {
        let launcher = self.services.executor.launcher();
        let report = launcher.map(Launcher::report);
        let lacks = report.is_some_and(|it| it.agents().is_ok() && it.own_network().is_err());
        self.spec.confinement == AgentConfinement::Workspace && lacks
    }

    /// Starts the agent and its session, unless that is cancelled. Do not drop the future: it ends the process before it returns.
    ///
    /// # Errors
    /// It did not start, or it ended, or it refused, or the start was cancelled. No process is left.
    pub async fn start(self, cancel: &CancellationToken) -> Result<AgentProcess, StartFault> {
        // Before the start: one that appears meanwhile counts as open.
        let closed = secrets(&self.services, &self.workspace).await;
        let (mut command, access) = self.spawn().await?;
        let Some(pipes) = command.take_pipes() else {
            return Err(StartFault::Ended(last_words(command, LONGEST_OUTPUT).await));
        };
        let mut connection = AgentConnection::new(pipes.output, pipes.input);
        let made = async {
            let sent = connection.initialize(ClientName {
                name: "co",
                version: env!("CARGO_PKG_VERSION"),
            })?;
            let mut early = Vec::new();
            let initialized = match answer(&mut connection, sent, &mut early).await? {
                HandshakeReply::Answer(AgentAnswer::Initialized(it)) => it,
                HandshakeReply::Refused(why, _) => return Err(StartFault::Refused(why)),
                HandshakeReply::Answer(_) => unreachable_answer()?,
            };
            let version = serde_json::to_string(&initialized.protocol_version).unwrap_or_default();
            if version != VERSION {
                return Err(StartFault::Version(version));
            }
            let opened = self.open(&mut connection, &initialized, &mut early).await?;
            Ok((initialized, opened, early))
        };
        let made = cancel.run_until_cancelled(made).await;
        match made.unwrap_or(Err(StartFault::Cancelled)) {
            Ok((initialized, opened, early)) => Ok(AgentProcess {
                connection,
                session: opened.id,
                begin: opened.begin,
                early,
                state: opened.state,
                changes: Vec::new(),
                takes_images: initialized.agent_capabilities.prompt_capabilities.image,
                asker: self.asker,
                cost: 0.0,
                workspace: self.workspace,
                cwd: self.cwd,
                spec: self.spec,
                closed: closed.into_iter().collect(),
                command,
                _access: access,
            }),
            Err(StartFault::Ended(_) | StartFault::Send(_)) => {
                drop(connection);
                Err(StartFault::Ended(last_words(command, LONGEST_OUTPUT).await))
            }
            Err(fault) => {
                command.cancel();
                last_words(command, LONGEST_OUTPUT).await;
                Err(fault)
            }
        }
    }

    /// Continues the earlier session if there is one and the agent can; otherwise opens a new session.
    async fn open(
        &self,
        connection: &mut AgentConnection,
        initialized: &InitializeResponse,
        early: &mut Vec<EarlyUpdate>,
    ) -> Result<OpenedSession, StartFault> {
        let mut begin = SessionBegin::New;
        if let Some(past) = &self.past {
            match self.go_on(connection, initialized, past, early).await? {
                Ok(opened) => return Ok(opened),
                Err(why) => begin = SessionBegin::Lost(why),
            }
            early.clear();
        }
        let sent = connection.new_session(self.cwd.clone())?;
        match answer(connection, sent, early).await? {
            HandshakeReply::Answer(AgentAnswer::Session(session)) => Ok(OpenedSession {
                id: session.session_id,
                begin,
                state: state(session.modes, session.config_options),
            }),
            HandshakeReply::Answer(_) => unreachable_answer()?,
            HandshakeReply::Refused(why, code) => Err(self.refused(initialized, why, code)),
        }
    }

    /// Continues a session. The inner error is why the agent does not.
    async fn go_on(
        &self,
        connection: &mut AgentConnection,
        initialized: &InitializeResponse,
        past: &SessionId,
        early: &mut Vec<EarlyUpdate>,
    ) -> Result<Result<OpenedSession, String>, StartFault> {
        let capabilities = &initialized.agent_capabilities;
        let sent = if capabilities.session_capabilities.resume.is_some() {
            connection.resume_session(past, self.cwd.clone())?
        } else if capabilities.load_session {
            connection.load_session(past, self.cwd.clone())?
        } else {
            return Ok(Err("it cannot continue sessions".to_owned()));
        };
        let (begin, state) = match answer(connection, sent, early).await? {
            HandshakeReply::Answer(AgentAnswer::Resumed(it)) => {
                (SessionBegin::Resumed, state(it.modes, it.config_options))
            }
            HandshakeReply::Answer(AgentAnswer::Loaded(it)) => {
                (SessionBegin::Loaded, state(it.modes, it.config_options))
            }
            HandshakeReply::Answer(_) => unreachable_answer()?,
            HandshakeReply::Refused(why, code @ ErrorCode::AuthRequired) => {
                return Err(self.refused(initialized, why, code));
            }
            HandshakeReply::Refused(why, _) => return Ok(Err(why)),
        };
        let id = past.clone();
        Ok(Ok(OpenedSession { id, begin, state }))
    }

    fn refused(
        &self,
        initialized: &InitializeResponse,
        why: String,
        code: ErrorCode,
    ) -> StartFault {
        match code {
            ErrorCode::AuthRequired => {
                StartFault::Login(self.login(&initialized.auth_methods, &why))
            }
            _ => StartFault::Refused(why),
        }
    }

    /// Starts the process.
    async fn spawn(&self) -> Result<OpenCommand, StartFault> {
        let services = &self.services;
        let is_confined = self.spec.confinement == AgentConfinement::Workspace;
        let (spec, workspace) = (self.spec.clone(), self.workspace.clone());
        let of_agent = Arc::clone(services);
        let prepared = blocking(move || Ok::<_, String>(prepare(&spec, &of_agent, &workspace)));
        let PreparedAgent { argv, env, places } = prepared.await.map_err(StartFault::Refused)??;
        let has_own_network = is_confined && !self.whole_network;
        if has_own_network {
            self.grant_hosts().await?;
        }
        let spec = CommandSpec {
            program: Program::Argv(argv),
            cwd: self.cwd.clone(),
            caller: Caller::Agent,
            stdin: None,
            timeout: UNTIL_IT_ENDS,
            confinement: match is_confined {
                true => Confinement::Agent {
                    workspace: self.workspace.clone(),
                    places,
                    whole_network: self.whole_network,
                },
                false => Confinement::Plain,
            },
            environment: Environment::default(),
            extra_env: env,
        };
        let settings = co_exec::ExecSettings {
            memory: services.config.agent_memory,
            processes: services.config.agent_processes,
            ..services.executor.settings().clone()
        };
        let executor = services.executor.with(settings)?;
        let asker: Arc<dyn HostAsker> = self.asker.clone();
        let access = has_own_network.then(|| HostAccess::new(asker));
        Ok(network::start(&executor, spec, Streams::Pipes, access).await?)
    }

    /// Lets the agent reach the hosts of its settings, and after one question the hosts of its vendor.
    async fn grant_hosts(&self) -> Result<(), StartFault> {
        self.asker.grant(self.spec.allowed_hosts.iter().cloned());
        let rules = self.asker.rules().await;
        let rules = rules.map_err(StartFault::HostRules)?;
        let unknown = self.spec.vendor_hosts.iter().filter(|host| {
            let verdict = rules.verdict(host, HTTPS);
            matches!(verdict, HostVerdict::Ask)
        });
        let targets = unknown.filter_map(|host| Target::parse(host, Some(HTTPS)).ok());
        let targets: Vec<_> = targets.collect();
        if !targets.is_empty() {
            self.asker.ask(&targets).await.map_err(StartFault::Hosts)?;
            let exact = |it: &Target| HostPattern::exact(&it.host.to_string(), it.port);
            self.asker.grant(targets.iter().map(exact));
        }
        Ok(())
    }

    /// Returns how to log in.
    fn login(&self, methods: &[AuthMethod], why: &str) -> String {
        let command = self.spec.preset().map(|it| it.login);
        let offered = methods.iter().filter_map(|it| match it {
            AuthMethod::Agent(it) => Some(it.name.clone()),
            AuthMethod::Terminal(it) => Some(it.name.clone()),
            _ => None,
        });
        let offered: Vec<_> = offered.collect();
        match command {
            Some(command) => format!("`:Co! ++pty {command}`, then send the prompt again ({why})"),
            None => format!("{why}; it offers: {}", offered.join(", ")),
        }
    }
}

/// Returns the secret files and directories of a workspace, in their order.
async fn secrets(services: &Arc<Services>, workspace: &Path) -> Vec<PathBuf> {
    let judge = services.judge(workspace);
    let read = move || {
        let survey = judge.survey();
        let mut names: Vec<_> = survey.closed_names().map(Path::to_owned).collect();
        names.sort();
        names.dedup();
        Ok::<_, String>(names)
    };
    // It fails only if the survey panicked, which is logged.
    blocking(read).await.unwrap_or_default()
}

/// The command line of an agent with the path of its program, and what its process gets.
struct PreparedAgent {
    argv: Vec<String>,
    env: Vec<(String, String)>,
    places: GrantedPlaces,
}

/// Finds the program of an agent, and makes the agent's directory. It blocks.
fn prepare(
    spec: &AgentSpec,
    services: &Services,
    workspace: &Path,
) -> Result<PreparedAgent, StartFault> {
    let path = services.executor.agent_environment();
    let path = path.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.clone()).unwrap_or_default();
    let preset = spec.preset();
    let program = spec.installed(&path);
    let program = program.ok_or_else(|| StartFault::NotInstalled {
        program: spec.cmd.first().cloned().unwrap_or_default(),
        install: preset.map(|it| it.install),
    })?;
    let mut argv = spec.cmd.clone();
    if let Some(first) = argv.first_mut() {
        *first = program.display().to_string();
    }
    let keys = preset.map_or(&[][..], |it| it.keys);
    let keys = keys.iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        Some(((*name).to_owned(), value))
    });
    let mut env: Vec<_> = keys.chain(spec.env.iter().cloned()).collect();
    let around = KnownDirectories {
        home: &services.places.home,
        workspace,
        path: &path,
    };
    let mut places = GrantedPlaces {
        read: program_places::of(&program, &argv[1..], &around),
        write: Vec::new(),
    };
    let is_confined = spec.confinement == AgentConfinement::Workspace;
    if let Some(preset) = preset.filter(|_| is_confined) {
        let own = spec.own_home(&services.places.agents, workspace);
        home::prepare(&own, &preset.home, &spec.person_homes, &mut places)
            .map_err(StartFault::Home)?;
        let inside = preset.home.variables.iter();
        let inside = inside.map(|(name, inside)| (*name, own.join(inside)));
        env.extend(inside.map(|(name, dir)| (name.to_owned(), dir.display().to_string())));
    }
    Ok(PreparedAgent { argv, env, places })
}

/// The reply to a request of the handshake.
enum HandshakeReply {
    Answer(AgentAnswer),
    Refused(String, ErrorCode),
}

fn state(
    modes: Option<SessionModeState>,
    options: Option<Vec<SessionConfigOption>>,
) -> SessionState {
    SessionState {
        modes,
        options: options.unwrap_or_default(),
        commands: Vec::new(),
    }
}

/// Waits for the answer to a request. Updates before it are kept, questions are cancelled, and other messages are logged.
async fn answer(
    connection: &mut AgentConnection,
    sent: RequestNumber,
    early: &mut Vec<EarlyUpdate>,
) -> Result<HandshakeReply, StartFault> {
    loop {
        match connection.next().await {
            Incoming::Answer { number, answer } if number == sent => {
                return Ok(match answer {
                    Ok(answer) => HandshakeReply::Answer(answer),
                    Err(error) => HandshakeReply::Refused(error.message, error.code),
                });
            }
            Incoming::Ended => return Err(StartFault::Ended(String::new())),
            Incoming::Update { update, unread } => early.push((update.update, unread)),
            Incoming::Permission { .. } | Incoming::Elicitation { .. } => {
                connection.cancel_questions()?;
            }
            other => {
                let other = format!("{other:?}");
                let message = start_of(&other, LONGEST_OUTPUT);
                tracing::info!(message, "an agent spoke before its session");
            }
        }
        if connection.memory_taken() > MOST_MEMORY {
            return Err(StartFault::Flood);
        }
    }
}

/// Fails. An answer is read by the method of its request, so an answer of another kind cannot come.
fn unreachable_answer<T>() -> Result<T, StartFault> {
    Err(StartFault::Refused(
        "its answer is of another kind".to_owned(),
    ))
}
