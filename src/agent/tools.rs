//! The tools of co for an agent. The agent starts `co-nvim mcp`, which connects to a port that only this agent can reach.
//! `co-nvim mcp` sends the agent's token and then relays bytes. This module speaks the protocol, and passes each call to the
//! current turn.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use co_acp::schema::{EnvVariable, McpServer, McpServerStdio};
use co_llm::ToolSpec;
use co_mcp::{ClientCall, ServerTool, ToolOffer, ToolReply, ToolWork};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The name of the tool server, as agents show it.
pub const SERVER: &str = "co";

/// The subcommand of co-nvim that an agent starts.
pub const SUBCOMMAND: &str = "mcp";

/// The environment variable that tells `co-nvim mcp` the port for its agent.
pub const PORT_VARIABLE: &str = "CO_TOOLS_PORT";
/// The environment variable that tells `co-nvim mcp` the token of its agent.
pub const TOKEN_VARIABLE: &str = "CO_TOOLS_TOKEN";

/// The number of random bytes in a token. The token is sent as hexadecimal digits and a line break.
const TOKEN_BYTES: usize = 32;

/// The time-out for a connection to send the token.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest number of connections at a time that have sent the token. An agent needs one for each session and sub-agent.
const MOST_CONNECTIONS: usize = 32;

/// The largest number of connections at a time that have not sent the token. A further connection ends the oldest one. This limit
/// does not affect `co-nvim mcp`, which sends the token at once.
const MOST_SILENT: usize = 32;

/// The pause after the system refused to accept a connection because it lacks descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The largest number of calls that wait while another call of the turn runs. Further calls are refused.
const MOST_WAITING: usize = 32;

/// The largest number of calls in one turn of the agent. It is limited because the transcript keeps all calls.
const MOST_CALLS_OF_TURN: usize = 1_000;
const MOST_ARGUMENTS: usize = 64 << 10;

/// The instructions for an agent that also has its own tools.
pub(super) const INSTRUCTIONS: &str = "These tools belong to co, the agent and shell in the person's Neovim that started you. The person sees each \
    call, and is asked about what changes something. `editor_context` knows what no command finds out: diagnostics, definitions and \
    references of the language servers, the selection, unsaved buffers.";

/// The instructions for an agent that has only these tools.
pub(super) const ALONE: &str = "These tools belong to co, the agent and shell in the person's Neovim that started you. You have no others: \
    read, list and search files, change them, and run commands by these. The person sees each call, and is asked about what changes \
    something.";

const NO_TURN: &str = "Not run: the person's prompt has been answered, and co takes calls only while a prompt is worked on.";
const TOO_MANY: &str = "Not run: too many calls wait. Call again when one has its result.";
const NO_SUCH_TOOL: &str = "Not run: co has no tool of this name. List the tools again.";
const TOO_LONG: &str =
    "Not run: the arguments are too long. Write a file, and name it in the call.";
const TOO_OFTEN: &str =
    "Not run: too many calls in this turn. End the turn, and tell the person what is left.";
const ENDED: &str = "Cancelled: the turn ended before this call did.";

/// A call of the agent that waits for the current turn.
pub struct AskedOwnCall {
    pub call: ClientCall,
    /// Cancelled when the agent no longer waits for the result.
    pub cancel: CancellationToken,
    pub reply: oneshot::Sender<ToolReply>,
}

/// The tools of co for one agent. Dropping the value ends all connections.
pub struct AgentTools {
    link: Arc<TurnLink>,
    server: McpServer,
    _accepting: AbortOnDropHandle<()>,
}

/// The connection of the tools to the current turn: passes calls of the agent to it.
struct TurnLink {
    tools: Vec<ServerTool>,
    instructions: &'static str,
    turn: Mutex<Option<mpsc::Sender<AskedOwnCall>>>,
    calls_of_turn: AtomicUsize,
}

impl AgentTools {
    /// Serves the tools on a port that the agent can connect to. The port is `own`, or a new one on this machine's loopback
    /// interface. `program` is the path of co-nvim.
    ///
    /// # Errors
    /// The system refuses the socket or the random bytes, or the program no longer exists.
    pub(super) fn open(
        own: Option<StdListener>,
        program: &Path,
        (specs, instructions): (&[ToolSpec], &'static str),
    ) -> io::Result<Self> {
        if !program.is_file() {
            let why = format!(
                "{} is not there any more: install co again, then restart Neovim",
                program.display()
            );
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        let listener = own.map_or_else(|| StdListener::bind((Ipv4Addr::LOCALHOST, 0)), Ok)?;
        let (port, token) = (listener.local_addr()?.port(), new_token()?);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let link = Arc::new(TurnLink {
            tools: specs.iter().map(offered).collect(),
            instructions,
            turn: Mutex::default(),
            calls_of_turn: AtomicUsize::new(0),
        });
        let variables = vec![
            EnvVariable::new(PORT_VARIABLE, port.to_string()),
            EnvVariable::new(TOKEN_VARIABLE, token.clone()),
        ];
        let server = McpServerStdio::new(SERVER, program)
            .args(vec![SUBCOMMAND.to_owned()])
            .env(variables);
        let accepting = accept(listener, token.into(), Arc::clone(&link));
        Ok(Self {
            link,
            server: McpServer::Stdio(server),
            _accepting: AbortOnDropHandle::new(tokio::spawn(accepting)),
        })
    }

    /// Returns the configuration of the tool server, for the agent's sessions.
    pub(super) fn server(&self) -> McpServer {
        self.server.clone()
    }

    /// Starts to accept calls of the agent, and returns their receiver. After the receiver is dropped, calls are refused.
    pub fn begin(&self) -> mpsc::Receiver<AskedOwnCall> {
        let (sender, calls) = mpsc::channel(MOST_WAITING);
        self.link.calls_of_turn.store(0, Ordering::Relaxed);
        *self.link.turn.lock() = Some(sender);
        calls
    }
}

impl ToolOffer for TurnLink {
    fn name(&self) -> (&'static str, &'static str) {
        (SERVER, env!("CARGO_PKG_VERSION"))
    }

    fn instructions(&self) -> &'static str {
        self.instructions
    }

    fn tools(&self) -> Vec<ServerTool> {
        self.tools.clone()
    }

    fn call(&self, call: ClientCall, cancel: CancellationToken) -> ToolWork {
        let refused = self.refused(&call);
        let turn = self.turn.lock();
        let turn = turn.clone();
        Box::pin(async move {
            if let Some(why) = refused {
                return ToolReply::failed(why);
            }
            let Some(turn) = turn else {
                return ToolReply::failed(NO_TURN);
            };
            let (reply, result) = oneshot::channel();
            let asked = AskedOwnCall {
                call,
                cancel,
                reply,
            };
            match turn.try_send(asked) {
                Err(mpsc::error::TrySendError::Closed(_)) => ToolReply::failed(NO_TURN),
                Err(mpsc::error::TrySendError::Full(_)) => ToolReply::failed(TOO_MANY),
                Ok(()) => result.await.unwrap_or_else(|_| ToolReply::failed(ENDED)),
            }
        })
    }
}

/// Returns the reason why a call of an agent is refused before it is recorded or asked about. Returns `None` if it is not
/// refused. `is_offered` is true if the agent has the tool.
pub fn refused_before(is_offered: bool, arguments: &Map<String, Value>) -> Option<&'static str> {
    if !is_offered {
        return Some(NO_SUCH_TOOL);
    }
    let length = serde_json::to_string(arguments).map_or(usize::MAX, |it| it.len());
    (length > MOST_ARGUMENTS).then_some(TOO_LONG)
}

impl TurnLink {
    /// Returns the reason why a call is not passed to the turn, or `None` if it is passed. The turn records every call that it
    /// gets.
    fn refused(&self, call: &ClientCall) -> Option<&'static str> {
        let is_offered = self.tools.iter().any(|it| it.name == call.tool);
        let refused = refused_before(is_offered, &call.arguments);
        if refused.is_some() {
            return refused;
        }
        let earlier = self.calls_of_turn.fetch_add(1, Ordering::Relaxed);
        (earlier >= MOST_CALLS_OF_TURN).then_some(TOO_OFTEN)
    }
}

/// Returns the description of a tool for a client.
pub fn offered(spec: &ToolSpec) -> ServerTool {
    ServerTool {
        name: spec.name.clone(),
        description: spec.description.clone(),
        schema: spec.schema.as_object().cloned().unwrap_or_default(),
    }
}

/// Returns a new random token as hexadecimal digits.
fn new_token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The two directions of a connection that has sent the token.
type AuthenticatedStreams = (BufReader<OwnedReadHalf>, OwnedWriteHalf);

/// Accepts connections forever. Connections without a token have a limit of their own, so they cannot block connections that have
/// sent the token.
async fn accept(listener: TcpListener, token: Arc<str>, link: Arc<TurnLink>) {
    let mut silent: VecDeque<AbortHandle> = VecDeque::new();
    let mut greetings = JoinSet::new();
    let mut served = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    silent.retain(|it| !it.is_finished());
                    if silent.len() >= MOST_SILENT && let Some(oldest) = silent.pop_front() {
                        oldest.abort();
                    }
                    silent.push_back(greetings.spawn(greet(stream, Arc::clone(&token))));
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection of an agent was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(greeted) = greetings.join_next() => match greeted {
                Ok(Ok(_)) if served.len() >= MOST_CONNECTIONS => {
                    tracing::info!("an agent has too many connections to the tools");
                }
                Ok(Ok((input, output))) => {
                    served.spawn(co_mcp::serve(input, output, Arc::clone(&link) as Arc<dyn ToolOffer>));
                }
                Ok(Err(error)) => tracing::info!(%error, "a connection to the tools was refused"),
                // It made room.
                Err(_) => {}
            },
            Some(ended) = served.join_next() => {
                if let Ok(Err(error)) = ended {
                    tracing::info!(%error, "a connection of an agent to the tools ended");
                }
            }
        }
    }
}

/// Waits until a connection sends the token.
async fn greet(stream: TcpStream, token: Arc<str>) -> io::Result<AuthenticatedStreams> {
    stream.set_nodelay(true)?;
    let (input, output) = stream.into_split();
    let mut input = BufReader::new(input);
    let mut shown = [0; 2 * TOKEN_BYTES + 1];
    tokio::time::timeout(TOKEN_TIMEOUT, input.read_exact(&mut shown)).await??;
    match is_same(&shown, format!("{token}\n").as_bytes()) {
        true => Ok((input, output)),
        false => {
            let why = "a wrong token";
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
    }
}

/// Compares two texts in constant time. Texts of different length are never equal.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let different = |all, (one, other): (&u8, &u8)| all | (one ^ other);
    one.len() == other.len() && std::hint::black_box(one.iter().zip(other).fold(0, different)) == 0
}
