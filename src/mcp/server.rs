//! A tool server with its state and its restarts, and the list of all running servers.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::environment::{ServerEnvironment, ServerSecrets};
use super::http;
use super::process::{StartedServer, end_of_log, last_line};
use super::start::{ServerStart, StartFault};
use crate::config::{HttpServer, McpServerSettings, ServerConfinement};
use crate::network::{HostReport, OpenAccess};
use crate::protocol::{NoticeLevel, ToEditor};
use co_exec::{OutputReading, RunningCommand};
use co_mcp::{
    AnswerPart, CallError, CallListener, Challenge, HttpFault, OpenArgument, ServerConnection,
    ServerOffers, ServerTool, ToolAnswer,
};
use co_text::start_of;

/// The pause before a failed server is started again. Each further failure doubles the pause, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The running time after which a server counts as stable. If the server fails after this time, the next pause is the shortest
/// pause again.
const SOUND_AFTER: Duration = Duration::from_secs(60);

/// The largest length of the reason why a server does not run, in bytes.
const LONGEST_REASON: usize = 1_500;

/// A tool server of a workspace. Dropping it ends the process and all processes that it started.
pub struct ToolServer {
    pub settings: McpServerSettings,
    pub workspace: PathBuf,
    state: Arc<watch::Sender<ServerState>>,
    wanted: WantedLogin,
    /// The task that starts the server and waits for its end.
    running: Mutex<Option<AbortOnDropHandle<()>>>,
}

/// The last challenge in which a server asked for a login. Clones share it.
#[derive(Clone, Default)]
struct WantedLogin(Arc<Mutex<Option<Challenge>>>);

impl WantedLogin {
    fn set(&self, challenge: Option<Challenge>) {
        *self.0.lock() = challenge;
    }

    /// Keeps the challenge in a fault. Returns true if the fault is about a login.
    fn take(&self, fault: &HttpFault) -> bool {
        let wanted = fault.wanted_login();
        if let Some(challenge) = wanted {
            self.set(challenge.cloned());
        }
        wanted.is_some()
    }
}

/// The state of a server.
#[derive(Clone)]
pub enum ServerState {
    /// No chat has needed the server yet.
    Idle,
    Starting,
    Ready(Arc<ReadyServer>),
    Failed {
        /// The reason why the server failed, for the person. The model does not get it, because the server may have written it.
        why: String,
        /// The time before which the server is not started again.
        until: Instant,
        /// The number of failures since the server last ran stably.
        failures: u32,
        /// True if the server asks for a login, so that `/mcp login` may help.
        needs_login: bool,
    },
}

/// A running server that has listed its tools.
pub struct ReadyServer {
    connection: ServerConnection,
    tools: Mutex<ToolList>,
    /// The secret files that the confinement hides from the server. The list was made when the server started.
    closed: HashSet<PathBuf>,
    /// The secret values of the server's variables and headers. co removes them from the texts of the server.
    pub secrets: ServerSecrets,
    /// The access of the running server to hosts. It is `None` if the server may connect to none.
    access: Option<OpenAccess>,
    /// The hosts that [`Self::new_hosts`] has already returned.
    told_hosts: Mutex<HostReport>,
    /// The resources and prompts of the server. The lists were read when the server started.
    pub offers: ServerOffers,
    wanted: WantedLogin,
    /// The standard error of the server. It is `None` for a server over HTTP.
    output: Option<Arc<OutputReading>>,
}

/// The tools of a server.
#[derive(Clone)]
struct ToolList {
    tools: Arc<[ServerTool]>,
    has_more: bool,
    /// The number of changes of the list that the server had reported before it sent the tools.
    changes: u64,
}

impl ReadyServer {
    /// Returns the tools. The second value is true if the server has more tools than co reads.
    pub fn tools(&self) -> (Arc<[ServerTool]>, bool) {
        let list = self.tools.lock();
        (Arc::clone(&list.tools), list.has_more)
    }

    /// Asks for the tools again if the server has reported a change of the list. The old list stays if this fails.
    ///
    /// # Errors
    /// The server ended, or refused the request.
    pub async fn refresh(&self) -> Result<(), CallError> {
        let changes = self.connection.changes();
        if self.tools.lock().changes == changes {
            return Ok(());
        }
        let (mut tools, has_more) = self.connection.tools().await?;
        tools.iter_mut().for_each(|it| self.secrets.hide_in(it));
        *self.tools.lock() = ToolList {
            tools: tools.into(),
            has_more,
            changes,
        };
        Ok(())
    }

    /// Calls a tool, and sends the server's progress reports and questions to `listener`. This function has no time-out. Dropping
    /// the returned future cancels the call.
    ///
    /// # Errors
    /// The server ended, or refused the request.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        listener: CallListener,
    ) -> Result<ToolAnswer, CallError> {
        let answer = self.connection.call(tool, arguments, listener).await;
        if let Err(CallError::Http(fault)) = &answer {
            self.wanted.take(fault);
        }
        answer
    }

    /// Returns the hosts that the server tried to connect to since the last call of this function.
    pub fn new_hosts(&self) -> HostReport {
        let Some(access) = &self.access else {
            return HostReport::default();
        };
        let mut told = self.told_hosts.lock();
        let now = access.report();
        let earlier = std::mem::replace(&mut *told, now.clone());
        now.since(&earlier)
    }

    /// Reads a resource. This function has no time-out.
    ///
    /// # Errors
    /// The server ended, or refused the request.
    pub async fn resource(&self, uri: &str) -> Result<Vec<AnswerPart>, CallError> {
        self.connection.resource(uri).await
    }

    /// Asks the server for a prompt with these arguments. This function has no time-out.
    ///
    /// # Errors
    /// The server ended, or refused the request.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Vec<AnswerPart>, CallError> {
        self.connection.prompt(name, arguments).await
    }

    /// Returns the end of the server's standard error as one line, without the server's secrets.
    pub fn end_of_log(&self) -> String {
        let output = self.output.as_ref();
        output.map_or_else(String::new, |it| end_of_log(it, &self.secrets))
    }

    /// Returns values that complete an argument. This function has no time-out.
    ///
    /// # Errors
    /// The server ended, or refused the request.
    pub async fn complete(&self, argument: OpenArgument) -> Result<Vec<String>, CallError> {
        self.connection.complete(argument).await
    }
}

impl ToolServer {
    fn new(start: &ServerStart) -> Self {
        Self {
            settings: start.settings.clone(),
            workspace: start.workspace.clone(),
            state: Arc::new(watch::Sender::new(ServerState::Idle)),
            wanted: WantedLogin::default(),
            running: Mutex::default(),
        }
    }

    /// Returns the current state.
    pub fn state(&self) -> ServerState {
        self.state.borrow().clone()
    }

    /// Starts the server if it does not run. Does nothing if it failed a short time ago.
    pub fn want(&self, start: &ServerStart) {
        let mut running = self.running.lock();
        let failures = match &*self.state.borrow() {
            ServerState::Idle => 0,
            ServerState::Failed {
                until, failures, ..
            } if Instant::now() >= *until => *failures,
            _ => return,
        };
        *running = Some(self.run(start, failures));
    }

    /// Returns true if the server does not run because it wants a login.
    pub fn needs_login(&self) -> bool {
        let state = self.state.borrow();
        matches!(
            &*state,
            ServerState::Failed {
                needs_login: true,
                ..
            }
        )
    }

    /// Returns the last challenge in which the server asked for a login.
    pub fn wanted_login(&self) -> Option<Challenge> {
        self.wanted.0.lock().clone()
    }

    /// Ends the connection because the login has changed. The next prompt or call connects again.
    pub fn forget_login(&self) {
        let mut running = self.running.lock();
        *running = None;
        self.wanted.set(None);
        self.state.send_replace(ServerState::Idle);
    }

    /// Restarts the server if a secret file has appeared in the workspace since `ready` was started, because the confinement does
    /// not hide that file. Returns true if a secret file has appeared or may have appeared.
    ///
    /// Does nothing for a server that is not confined, and for a server over HTTP.
    pub async fn close_secrets(&self, start: &ServerStart, ready: &Arc<ReadyServer>) -> bool {
        let program = self.settings.program();
        if program.is_none_or(|it| it.confinement == ServerConfinement::None) {
            return false;
        }
        match start.secrets().await {
            Ok(found) if found.is_subset(&ready.closed) => return false,
            Ok(_) => {}
            Err(_) => return true,
        }
        let mut running = self.running.lock();
        let is_same =
            matches!(&*self.state.borrow(), ServerState::Ready(it) if Arc::ptr_eq(it, ready));
        if is_same {
            // The old process ends first.
            *running = None;
            *running = Some(self.run(start, 0));
        }
        true
    }

    fn run(&self, start: &ServerStart, failures: u32) -> AbortOnDropHandle<()> {
        self.state.send_replace(ServerState::Starting);
        let state = Arc::clone(&self.state);
        let run = run(start.clone(), state, self.wanted.clone(), failures);
        AbortOnDropHandle::new(tokio::spawn(run))
    }

    /// Waits until the server has started or failed. Returns the state.
    pub async fn settled(&self) -> ServerState {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|it| !matches!(it, ServerState::Starting));
        // The sender lives as long as this server.
        settled.await.map_or(ServerState::Idle, |it| it.clone())
    }
}

/// Runs a server until it ends. Does not start it again.
async fn run(
    start: ServerStart,
    state: Arc<watch::Sender<ServerState>>,
    wanted: WantedLogin,
    failures: u32,
) {
    let name = &start.settings.name;
    let end = |why: String, failures: u32, needs_login: bool| {
        // A server may have written it.
        let why = start_of(&co_text::printable(&why), LONGEST_REASON).to_owned();
        let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(16));
        state.send_replace(ServerState::Failed {
            why,
            until: Instant::now() + pause.min(LONGEST_PAUSE),
            failures: failures + 1,
            needs_login,
        });
    };
    let fail = |why: String, failures: u32| end(why, failures, false);
    // Before the start: one that appears meanwhile counts as open.
    let closed = match start.secrets().await {
        Ok(closed) => closed,
        Err(why) => return fail(why, failures),
    };
    let environment = match ServerEnvironment::read(&start.settings).await {
        Ok(read) => read,
        Err(why) => return fail(why, failures),
    };
    let secrets = environment.secrets.clone();
    let StartedServer {
        connection,
        offers,
        mut tools,
        more_tools,
        command,
        access,
    } = match start.start(environment).await {
        Ok(started) => started,
        Err(StartFault::Login(challenge)) => {
            wanted.set(challenge);
            return end(login_advice(name), failures, true);
        }
        Err(fault) => {
            let fault = secrets.hide(&fault.to_string()).text;
            tracing::info!(name, fault, "a tool server did not start");
            return fail(fault, failures);
        }
    };
    tools.iter_mut().for_each(|it| secrets.hide_in(it));
    let since = Instant::now();
    let ready = Arc::new(ReadyServer {
        tools: Mutex::new(ToolList {
            tools: tools.into(),
            has_more: more_tools,
            changes: connection.changes(),
        }),
        connection,
        closed,
        secrets: secrets.clone(),
        access,
        told_hosts: Mutex::default(),
        offers,
        wanted: wanted.clone(),
        output: command.as_ref().map(RunningCommand::reading),
    });
    state.send_replace(ServerState::Ready(Arc::clone(&ready)));
    ready.connection.ended().await;
    let fault = ready.connection.fault();
    drop(ready);
    let needs_login = fault.as_ref().is_some_and(|it| wanted.take(it))
        && start.settings.http().is_some_and(HttpServer::may_log_in);
    let words = match command {
        Some(command) => last_line(command).await,
        None => fault.map_or_else(String::new, |it| http::explained(&start.settings, &it)),
    };
    let words = secrets.hide(&words).text;
    let failures = match since.elapsed() >= SOUND_AFTER {
        true => 0,
        false => failures,
    };
    let why = match words.as_str() {
        _ if needs_login => login_advice(name),
        "" => "it ended by itself".to_owned(),
        words => format!("it ended: {words}"),
    };
    start.editor.tell(ToEditor::Notice {
        level: NoticeLevel::Warn,
        message: format!("the tool server {name} does not run any more, and is started again when it is needed: {why}"),
        answer: false,
    });
    end(why, failures, needs_login);
}

/// Returns the reason for the person why a server that asks for a login does not run, with the command that logs in.
fn login_advice(name: &str) -> String {
    format!("it wants a login: `:Co /mcp login {name}` logs you in")
}

/// The tool servers of all chats, by workspace and name.
#[derive(Default)]
pub struct ToolServers {
    servers: Mutex<HashMap<(PathBuf, String), Weak<ToolServer>>>,
    /// The open logins, by the name of their server. Cancelling the token ends a login.
    logins: Mutex<HashMap<String, CancellationToken>>,
}

impl ToolServers {
    /// Returns the server with these settings in a workspace. The server runs as long as a chat holds the returned value.
    pub fn get(&self, start: &ServerStart) -> Arc<ToolServer> {
        let mut servers = self.servers.lock();
        servers.retain(|_, it| it.strong_count() > 0);
        let key = (start.workspace.clone(), start.settings.name.clone());
        let known = servers.get(&key).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|it| it.settings == start.settings) {
            return known;
        }
        let server = Arc::new(ToolServer::new(start));
        servers.insert(key, Arc::downgrade(&server));
        server
    }

    /// Ends all connections to the server with these settings, because its login has changed.
    pub fn forget_login(&self, settings: &McpServerSettings) {
        let servers: Vec<_> = self
            .servers
            .lock()
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        for server in servers.iter().filter(|it| it.settings == *settings) {
            server.forget_login();
        }
    }

    /// Begins a login at the server `name`, and ends an earlier one. The next login or the end of the chat cancels the token.
    pub fn begin_login(&self, name: &str, chat: &CancellationToken) -> CancellationToken {
        let token = chat.child_token();
        let earlier = self.logins.lock().insert(name.to_owned(), token.clone());
        if let Some(earlier) = earlier {
            earlier.cancel();
        }
        token
    }

    /// Ends the open login at the server `name`, if there is one.
    pub fn end_login(&self, name: &str) {
        if let Some(open) = self.logins.lock().remove(name) {
            open.cancel();
        }
    }
}
