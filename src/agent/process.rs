//! The process of an agent: its confined start, the handshake, and its end.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::home;
use super::hosts::TurnAsker;
use super::preset::AgentSpec;
use super::session::{SessionChange, SessionState};
use super::tools::{self, AgentTools};
use crate::blocking::blocking;
use crate::cancellable::last_words;
use crate::checkpoint::CurrentFile;
use crate::config::{AgentConfinement, ToolSource};
use crate::network::{self, HostAccess, HostAsker, OpenAccess, OpenCommand, StartError};
use crate::program_places::{self, KnownDirectories};
use crate::protocol::NoticeLevel;
use crate::services::Services;
use crate::tool::ToolSet;
use co_acp::schema::{
    AuthMethod, ErrorCode, InitializeResponse, SessionConfigOption, SessionId, SessionInfo,
    SessionModeState, SessionUpdate,
};
use co_acp::{
    AgentAnswer, AgentConnection, ClientName, Incoming, RequestNumber, SendError, SessionSetup,
};
use co_exec::{
    Caller, CommandSpec, Confinement, Environment, GrantedPlaces, Launcher, Program,
    RunningCommand, Streams, UNTIL_IT_ENDS,
};
use co_policy::{HostPattern, HostVerdict};
use co_proxy::Target;
use co_text::start_of;

/// The HTTPS port, which the hosts of vendors use.
pub(super) const HTTPS: u16 = 443;

/// The largest number of bytes of an agent's standard error that are shown.
const LONGEST_OUTPUT: usize = 2_000;

/// The largest number of bytes of memory that an agent's messages may take, roughly, before its session begins and in each turn.
/// co ends an agent that sends more.
pub const MOST_MEMORY: u64 = 256 << 20;

/// The time-out for an agent's list of its sessions.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest number of sessions that are listed.
const MOST_SESSIONS: usize = 200;
const MOST_PAGES: usize = 20;

/// The version of the protocol that co supports.
const VERSION: &str = "1";

/// The inputs for the start of an agent.
pub struct AgentStart {
    pub spec: AgentSpec,
    pub services: Arc<Services>,
    pub workspace: PathBuf,
    pub cwd: PathBuf,
    pub asker: Arc<TurnAsker>,
    /// The session of an earlier process. The agent continues this session if it can.
    pub past: Option<SessionId>,
    /// True if the agent gets the whole network. This requires two things: the person has agreed, and the system cannot give the
    /// agent a network namespace.
    pub whole_network: bool,
    /// True if co only asks the agent for its list of sessions. Then co does not ask the person about the hosts of the agent's
    /// vendor.
    pub only_lists: bool,
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
    #[error("co cannot find the secret files of the workspace, so it does not start: {0}")]
    Secrets(String),
    #[error(
        "it sent more before its session than {} of memory hold",
        co_text::size_text(MOST_MEMORY)
    )]
    Flood,
    #[error("co cannot switch its own tools off: remove tools = 'co' from its settings in agents")]
    OwnTools,
    #[error("the start was cancelled")]
    Cancelled,
    #[error("{0}")]
    Refused(String),
}

fn hint(install: &Option<&'static str>) -> String {
    install.map_or_else(String::new, |command| format!(" (`{command}`)"))
}

/// The way in which the session of an agent process began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionBegin {
    New,
    /// An earlier session continues. The agent does not repeat its content.
    Resumed,
    /// An earlier session continues. The early updates of the agent repeat its content.
    Loaded,
    /// The session is new, because the agent does not continue the earlier one. The text is the reason.
    Lost(String),
}

/// An update that an agent sent before its session began. The texts are the parts of the update that are unknown in this version
/// of the protocol.
pub type EarlyUpdate = (SessionUpdate, Vec<String>);

/// A session that the agent has opened.
struct OpenedSession {
    id: SessionId,
    begin: SessionBegin,
    state: SessionState,
}

/// The agent's reply to the request for a session.
enum OpenReply {
    Opened(OpenedSession),
    /// The agent requires a login first. The text is the reason.
    NeedsLogin(String),
}

/// The agent's reply to the request to continue a session.
enum GoOnReply {
    Opened(OpenedSession),
    /// The agent requires a login before it continues the session. The text is the reason.
    NeedsLogin(String),
    /// The agent does not continue the session. The text is the reason.
    Lost(String),
}

/// A running agent without a session. Dropping it ends the agent and all processes that it started.
pub struct ConnectedAgent {
    pub connection: AgentConnection,
    initialized: Box<InitializeResponse>,
    /// The updates that were received so far.
    early: Vec<EarlyUpdate>,
    start: AgentStart,
    /// The secret files that the confinement hides from the agent. The list was made when the agent started.
    closed: HashSet<PathBuf>,
    tools: Option<AgentTools>,
    command: RunningCommand,
    access: Option<OpenAccess>,
}

/// The result of asking a running agent for a session.
pub enum OpenedAgent {
    Ready(Box<AgentProcess>),
    /// The agent opens no session before a login. The text is the reason.
    NeedsLogin(Box<ConnectedAgent>, String),
}

/// An event of an agent before its first turn.
#[derive(Debug)]
pub enum IdleEvent {
    /// The start has ended.
    Started,
    /// The state of the session may have changed.
    State,
    /// The agent refused to set a mode or an option of the session. The text is the reason.
    Refused(String),
    /// The message waits for the first turn.
    Waits,
    /// The process has ended or sent too much.
    Ended,
}

/// A running agent with a session. Dropping it ends the agent and all processes that it started.
pub struct AgentProcess {
    pub connection: AgentConnection,
    pub session: SessionId,
    /// The way in which the session began.
    pub begin: SessionBegin,
    /// True until a turn has begun the session.
    pub is_new: bool,
    /// The updates that were received before the session began.
    pub early: Vec<EarlyUpdate>,
    /// The other messages that were received since then and before the first turn.
    pub waiting: Vec<Incoming>,
    pub state: SessionState,
    /// The changes of the session that the agent has not answered. Each change comes with the state of the session before it.
    changes: Vec<(RequestNumber, SessionState)>,
    pub takes_images: bool,
    pub asker: Arc<TurnAsker>,
    /// The cost of the session that was reported so far, in US dollars.
    pub cost: f64,
    /// The files that other authors changed and that co told the agent of. Each file has its content at that time.
    pub told: Vec<CurrentFile>,
    /// The workspace for which the agent was started.
    workspace: PathBuf,
    /// The working directory for which the agent was started.
    cwd: PathBuf,
    spec: AgentSpec,
    /// The secret files that the confinement hides from the agent. The list was made when the agent started.
    closed: HashSet<PathBuf>,
    /// The tools of co that the agent can call. It is `None` if they could not be offered; then the person was warned.
    pub tools: Option<AgentTools>,
    command: RunningCommand,
    _access: Option<OpenAccess>,
}

impl AgentProcess {
    /// Returns true if the process can serve the turn of `start`: the agent and the directories are the same.
    pub fn serves(&self, start: &AgentStart) -> bool {
        self.spec == start.spec && self.workspace == start.workspace && self.cwd == start.cwd
    }

    /// Returns the secret files of the workspace that the confinement does not hide from the agent, because they appeared after
    /// its start.
    ///
    /// # Errors
    /// The secret files cannot be found, so the agent may be able to read some.
    pub async fn open_secrets(&self, services: &Arc<Services>) -> Result<Vec<PathBuf>, String> {
        if self.spec.confinement == AgentConfinement::None {
            return Ok(Vec::new());
        }
        let mut found = secrets(services, &self.workspace).await?;
        found.retain(|it| !self.closed.contains(it));
        Ok(found)
    }

    /// Sends a change of the session to the agent. Pass the answer to [`Self::changed`].
    ///
    /// # Errors
    /// The agent does not read its input.
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

    /// Returns true if the agent has not yet answered a change of the session.
    pub fn is_changing(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Handles the agent's answer to a change of the session. Returns the reason if the agent refused the change.
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

    /// Waits for the next message of a process whose first turn has not begun. Applies changes of modes, options and commands at
    /// once, and keeps other messages for the turn. This method is cancel safe.
    pub async fn hear_before_turn(&mut self) -> IdleEvent {
        let incoming = self.connection.next().await;
        match incoming {
            Incoming::Ended => return IdleEvent::Ended,
            Incoming::Answer { number, answer } => {
                return match self.changed(number, answer) {
                    Some(why) => IdleEvent::Refused(why),
                    None => IdleEvent::State,
                };
            }
            Incoming::Update { update, unread } => {
                let is_own = update.session_id == self.session;
                if is_own && unread.is_empty() && self.state.take(&update.update) {
                    return IdleEvent::State;
                }
                self.waiting.push(Incoming::Update { update, unread });
            }
            other => self.waiting.push(other),
        }
        match self.connection.memory_taken() > MOST_MEMORY {
            true => IdleEvent::Ended,
            false => IdleEvent::Waits,
        }
    }

    /// Ends the process, and returns the end of its standard error.
    pub async fn last_words(self) -> String {
        self.command.cancel();
        last_words(self.command, LONGEST_OUTPUT).await
    }
}

impl AgentStart {
    /// Makes the inputs for a new session of an agent that gets its own network namespace.
    pub fn new(spec: AgentSpec, services: Arc<Services>, (workspace, cwd): (&Path, &Path)) -> Self {
        let asker = TurnAsker::new(&spec.name, Arc::clone(&services), workspace.to_owned());
        Self {
            asker: Arc::new(asker),
            spec,
            services,
            workspace: workspace.to_owned(),
            cwd: cwd.to_owned(),
            past: None,
            whole_network: false,
            only_lists: false,
        }
    }

    /// Returns true if the agent should be confined, but the system cannot give it a network namespace.
    pub fn lacks_own_network(&self) -> bool {
        let launcher = self.services.executor.launcher();
        let report = launcher.map(Launcher::report);
        let lacks = report.is_some_and(|it| it.agents().is_ok() && it.own_network().is_err());
        self.spec.confinement == AgentConfinement::Workspace && lacks
    }

    /// Starts the agent. To stop the start, cancel `cancel` instead of dropping the returned future: the future then waits until
    /// the process has ended.
    ///
    /// # Errors
    /// The agent did not start, or it ended, or the start was cancelled. No process is left.
    pub async fn start(self, cancel: &CancellationToken) -> Result<ConnectedAgent, StartFault> {
        if self.spec.cannot_do_without_tools() {
            return Err(StartFault::OwnTools);
        }
        // Before the start: one that appears meanwhile counts as open.
        let closed = match self.spec.confinement {
            AgentConfinement::Workspace => secrets(&self.services, &self.workspace).await,
            AgentConfinement::None => Ok(Vec::new()),
        };
        let closed = closed.map_err(StartFault::Secrets)?;
        let (mut command, mut access) = self.spawn().await?;
        let tools = self.offer_tools(access.as_mut());
        let Some(pipes) = command.take_pipes() else {
            return Err(StartFault::Ended(last_words(command, LONGEST_OUTPUT).await));
        };
        let mut connection = AgentConnection::new(pipes.output, pipes.input);
        let mut early = Vec::new();
        let initialized = initialize(&mut connection, &mut early);
        let initialized = cancel.run_until_cancelled(initialized).await;
        match initialized.unwrap_or(Err(StartFault::Cancelled)) {
            Ok(initialized) => Ok(ConnectedAgent {
                connection,
                initialized,
                early,
                start: self,
                closed: closed.into_iter().collect(),
                tools,
                command,
                access,
            }),
            Err(fault) => Err(failed(fault, connection, command).await),
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
        if has_own_network && !self.only_lists {
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
        let access = has_own_network.then(|| HostAccess::new(asker).with_own_port());
        Ok(network::start(&executor, spec, Streams::Pipes, access).await?)
    }

    /// Offers the tools of co to the agent. If the agent has its own network namespace, the tools are at a port in this
    /// namespace.
    fn offer_tools(&self, access: Option<&mut OpenAccess>) -> Option<AgentTools> {
        let own = access.and_then(OpenAccess::take_own_port);
        let specs = ToolSet::of_agents(self.spec.co_tools()).specs();
        let instructions = match self.spec.tools {
            ToolSource::Own => tools::INSTRUCTIONS,
            ToolSource::Co => tools::ALONE,
        };
        let opened = AgentTools::open(own, &self.services.places.program, (&specs, instructions));
        match opened {
            Ok(tools) => Some(tools),
            Err(error) => {
                let name = &self.spec.name;
                let text = format!("{name} does not get the tools of co: {error}");
                self.services.notice(NoticeLevel::Warn, text);
                None
            }
        }
    }

    /// Allows the agent to connect to the hosts in its settings. Asks the person one question about the hosts of the agent's
    /// vendor that no rule names, and allows these hosts too. Fails if the person refuses.
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
}

impl ConnectedAgent {
    /// Opens a session. Continues the earlier session if the agent can. To stop, cancel `cancel` instead of dropping the returned
    /// future: the future then waits until the process has ended.
    ///
    /// # Errors
    /// The agent ended or refused the session, or the call was cancelled. No process is left.
    pub async fn open(mut self, cancel: &CancellationToken) -> Result<OpenedAgent, StartFault> {
        let opened = cancel.run_until_cancelled(self.try_open()).await;
        match opened.unwrap_or(Err(StartFault::Cancelled)) {
            Ok(OpenReply::Opened(opened)) => {
                let capabilities = &self.initialized.agent_capabilities;
                Ok(OpenedAgent::Ready(Box::new(AgentProcess {
                    takes_images: capabilities.prompt_capabilities.image,
                    connection: self.connection,
                    session: opened.id,
                    begin: opened.begin,
                    is_new: true,
                    early: self.early,
                    waiting: Vec::new(),
                    state: opened.state,
                    changes: Vec::new(),
                    asker: self.start.asker,
                    cost: 0.0,
                    told: Vec::new(),
                    workspace: self.start.workspace,
                    cwd: self.start.cwd,
                    spec: self.start.spec,
                    closed: self.closed,
                    tools: self.tools,
                    command: self.command,
                    _access: self.access,
                })))
            }
            Ok(OpenReply::NeedsLogin(why)) => Ok(OpenedAgent::NeedsLogin(Box::new(self), why)),
            Err(fault) => Err(failed(fault, self.connection, self.command).await),
        }
    }

    /// Asks the agent for the sessions in its working directory, and ends the process.
    ///
    /// # Errors
    /// The agent does not list its sessions, or not within the time-out. The error is the reason.
    pub async fn sessions(mut self) -> Result<Vec<SessionInfo>, String> {
        let asked = tokio::time::timeout(LIST_TIMEOUT, self.ask_sessions()).await;
        self.last_words().await;
        let late = || {
            Err(format!(
                "it did not answer within {} s",
                LIST_TIMEOUT.as_secs()
            ))
        };
        asked.unwrap_or_else(|_| late())
    }

    async fn ask_sessions(&mut self) -> Result<Vec<SessionInfo>, String> {
        let capabilities = &self.initialized.agent_capabilities;
        let sessions = &capabilities.session_capabilities;
        if sessions.list.is_none() {
            return Err("it does not list its sessions".to_owned());
        }
        if sessions.resume.is_none() && !capabilities.load_session {
            return Err("it cannot continue sessions".to_owned());
        }
        let mut found = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let cwd = self.start.cwd.clone();
            let sent = self.connection.list_sessions(cwd, cursor);
            let sent = sent.map_err(|error| error.to_string())?;
            let reply = answer(&mut self.connection, sent, &mut self.early).await;
            match reply.map_err(|fault| fault.to_string())? {
                HandshakeReply::Answer(AgentAnswer::Sessions(page)) => {
                    found.extend(page.sessions);
                    cursor = page.next_cursor;
                }
                HandshakeReply::Answer(_) => return Err("its answer is of another kind".to_owned()),
                HandshakeReply::Refused(why, _) => return Err(why),
            }
            if cursor.is_none() || found.len() >= MOST_SESSIONS {
                break;
            }
        }
        found.truncate(MOST_SESSIONS);
        Ok(found)
    }

    /// Returns the login methods that the agent offers.
    pub fn login_methods(&self) -> &[AuthMethod] {
        &self.initialized.auth_methods
    }

    /// Ends the process, and returns the end of its standard error.
    pub async fn last_words(self) -> String {
        self.command.cancel();
        last_words(self.command, LONGEST_OUTPUT).await
    }

    async fn try_open(&mut self) -> Result<OpenReply, StartFault> {
        let mut begin = SessionBegin::New;
        if let Some(past) = self.start.past.clone() {
            match self.go_on(past).await? {
                GoOnReply::Opened(opened) => return Ok(OpenReply::Opened(opened)),
                GoOnReply::NeedsLogin(why) => return Ok(OpenReply::NeedsLogin(why)),
                GoOnReply::Lost(why) => begin = SessionBegin::Lost(why),
            }
            self.early.clear();
        }
        let setup = self.setup();
        let sent = self.connection.new_session(setup)?;
        match answer(&mut self.connection, sent, &mut self.early).await? {
            HandshakeReply::Answer(AgentAnswer::Session(session)) => {
                Ok(OpenReply::Opened(OpenedSession {
                    id: session.session_id,
                    begin,
                    state: state(session.modes, session.config_options),
                }))
            }
            HandshakeReply::Answer(_) => unreachable_answer()?,
            HandshakeReply::Refused(why, ErrorCode::AuthRequired) => Ok(OpenReply::NeedsLogin(why)),
            HandshakeReply::Refused(why, _) => Err(StartFault::Refused(why)),
        }
    }

    /// Returns what its sessions start or go on with.
    fn setup(&self) -> SessionSetup {
        SessionSetup {
            cwd: self.start.cwd.clone(),
            servers: self.tools.iter().map(AgentTools::server).collect(),
            meta: self.start.spec.session_meta(),
        }
    }

    /// Asks the agent to continue a session. Returns the reason if the agent cannot.
    async fn go_on(&mut self, id: SessionId) -> Result<GoOnReply, StartFault> {
        let setup = self.setup();
        let connection = &mut self.connection;
        let capabilities = &self.initialized.agent_capabilities;
        let sent = if capabilities.session_capabilities.resume.is_some() {
            connection.resume_session(&id, setup)?
        } else if capabilities.load_session {
            connection.load_session(&id, setup)?
        } else {
            return Ok(GoOnReply::Lost("it cannot continue sessions".to_owned()));
        };
        let (begin, state) = match answer(connection, sent, &mut self.early).await? {
            HandshakeReply::Answer(AgentAnswer::Resumed(it)) => {
                (SessionBegin::Resumed, state(it.modes, it.config_options))
            }
            HandshakeReply::Answer(AgentAnswer::Loaded(it)) => {
                (SessionBegin::Loaded, state(it.modes, it.config_options))
            }
            HandshakeReply::Answer(_) => unreachable_answer()?,
            HandshakeReply::Refused(why, ErrorCode::AuthRequired) => {
                return Ok(GoOnReply::NeedsLogin(why));
            }
            HandshakeReply::Refused(why, _) => return Ok(GoOnReply::Lost(why)),
        };
        Ok(GoOnReply::Opened(OpenedSession { id, begin, state }))
    }
}

/// Sends the first request of the handshake, and returns the agent's answer.
async fn initialize(
    connection: &mut AgentConnection,
    early: &mut Vec<EarlyUpdate>,
) -> Result<Box<InitializeResponse>, StartFault> {
    let sent = connection.initialize(ClientName {
        name: "co",
        version: env!("CARGO_PKG_VERSION"),
    })?;
    let initialized = match answer(connection, sent, early).await? {
        HandshakeReply::Answer(AgentAnswer::Initialized(it)) => it,
        HandshakeReply::Refused(why, _) => return Err(StartFault::Refused(why)),
        HandshakeReply::Answer(_) => unreachable_answer()?,
    };
    let version = serde_json::to_string(&initialized.protocol_version).unwrap_or_default();
    match version == VERSION {
        true => Ok(initialized),
        false => Err(StartFault::Version(version)),
    }
}

/// Ends a process whose start failed. If the process ended by itself, the returned fault has the end of its standard error.
async fn failed(
    fault: StartFault,
    connection: AgentConnection,
    command: RunningCommand,
) -> StartFault {
    match fault {
        StartFault::Ended(_) | StartFault::Send(_) => {
            drop(connection);
            StartFault::Ended(last_words(command, LONGEST_OUTPUT).await)
        }
        fault => {
            command.cancel();
            last_words(command, LONGEST_OUTPUT).await;
            fault
        }
    }
}

/// Returns the secret files and directories of a workspace, sorted by path.
///
/// # Errors
/// The secret files cannot be found.
async fn secrets(services: &Arc<Services>, workspace: &Path) -> Result<Vec<PathBuf>, String> {
    let judge = services.judge(workspace);
    let read = move || {
        let survey = judge.survey();
        let mut names: Vec<_> = survey.closed_names().map(Path::to_owned).collect();
        names.sort();
        names.dedup();
        Ok::<_, String>(names)
    };
    blocking(read).await
}

/// The places and environment variables that a program of an agent gets besides those that every command gets.
pub(super) struct AgentGrants {
    pub(super) env: Vec<(String, String)>,
    pub(super) places: GrantedPlaces,
}

/// The command line of an agent with the full path of its program, and the environment and places of its process.
struct PreparedAgent {
    argv: Vec<String>,
    env: Vec<(String, String)>,
    places: GrantedPlaces,
}

/// Finds the program of an agent, and makes the agent's private directory. Blocks on file operations.
fn prepare(
    spec: &AgentSpec,
    services: &Services,
    workspace: &Path,
) -> Result<PreparedAgent, StartFault> {
    let program = spec.installed(&path_variable(services));
    let program = program.ok_or_else(|| StartFault::NotInstalled {
        program: spec.cmd.first().cloned().unwrap_or_default(),
        install: spec.preset().map(|it| it.install),
    })?;
    let mut argv = spec.cmd.clone();
    if let Some(first) = argv.first_mut() {
        *first = program.display().to_string();
    }
    let grants = AgentGrants::of(spec, (&program, &argv[1..]), services, workspace);
    let AgentGrants { env, mut places } = grants.map_err(StartFault::Home)?;
    // It starts co-nvim for the tools of co.
    places.read.push(services.places.program.clone());
    Ok(PreparedAgent { argv, env, places })
}

/// Returns the variable `PATH` for commands.
pub(super) fn path_variable(services: &Services) -> OsString {
    let environment = services.executor.agent_environment();
    let path = environment.into_iter().find(|(name, _)| name == "PATH");
    path.map(|(_, value)| value).unwrap_or_default()
}

impl AgentGrants {
    /// Returns the grants for a program of an agent, and makes the agent's private directory. Blocks on file operations.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub(super) fn of(
        spec: &AgentSpec,
        (program, arguments): (&Path, &[String]),
        services: &Services,
        workspace: &Path,
    ) -> io::Result<Self> {
        let preset = spec.preset();
        let keys = preset.map_or(&[][..], |it| it.keys);
        let keys = keys.iter().filter_map(|name| {
            let value = std::env::var(name).ok()?;
            Some(((*name).to_owned(), value))
        });
        let mut env: Vec<_> = keys.chain(spec.env.iter().cloned()).collect();
        let around = KnownDirectories {
            home: &services.places.home,
            workspace,
            path: &path_variable(services),
        };
        let mut places = GrantedPlaces {
            read: program_places::of(program, arguments, &around),
            write: Vec::new(),
        };
        let is_confined = spec.confinement == AgentConfinement::Workspace;
        if let Some(preset) = preset.filter(|_| is_confined) {
            let own = spec.own_home(&services.places.agents, workspace);
            home::prepare(&own, &preset.home, &spec.person_homes, &mut places)?;
            let inside = preset.home.variables.iter();
            let inside = inside.map(|(name, inside)| (*name, own.join(inside)));
            env.extend(inside.map(|(name, dir)| (name.to_owned(), dir.display().to_string())));
        }
        Ok(Self { env, places })
    }
}

/// The agent's reply to a request of the handshake.
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

/// Waits for the answer to a request. Until then, keeps updates, cancels questions, and logs other messages.
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

/// Always fails. The method of a request determines how its answer is parsed, so an answer of another kind is impossible.
fn unreachable_answer<T>() -> Result<T, StartFault> {
    Err(StartFault::Refused(
        "its answer is of another kind".to_owned(),
    ))
}
