//! `co-nvim mcp`: offers the tools of co to the agent that starts it. If co started the agent, this program relays bytes between
//! the agent and the backend. In a terminal of Neovim, it passes each call to this Neovim.

use std::io::{self, IsTerminal, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::thread;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::agent::tools::{PORT_VARIABLE, SERVER, TOKEN_VARIABLE, offered};
use crate::nvim::remote::{RemoteCall, RemoteNeovim};
use crate::tool::call::CANCELLED;
use crate::tool::{OF_TERMINALS, ToolSet};
use co_mcp::{ClientCall, ServerTool, ToolOffer, ToolReply, ToolWork};

/// The environment variable with the address of Neovim. Neovim sets it for the programs in its terminals.
const NVIM_VARIABLE: &str = "NVIM";

const NO_AGENT: &str = "co-nvim mcp is a tool server, which agents start: there is nothing to start by hand. :help co-terminal-agents says how \
    to name it in the settings of an agent";

const INSTRUCTIONS: &str = "These tools belong to co, a plugin of the Neovim in whose terminal you run. The person is asked once whether you \
    may use them, and about each rename. `editor_context` knows what no command finds out: diagnostics, definitions and references of \
    the language servers, the open files, the place of the cursor.";

const NO_NEOVIM: &str = "co offers no tools here, because the variable NVIM is not set. Either this is no terminal of Neovim, or the \
    settings of this tool server do not let the variable through.";

/// Offers the tools until the agent or co ends.
///
/// # Errors
/// No agent started the program, or the chat has ended. The error is a sentence.
pub(super) fn run() -> Result<(), String> {
    let variable = |name| std::env::var(name).ok();
    match (variable(PORT_VARIABLE), variable(TOKEN_VARIABLE)) {
        (Some(port), Some(token)) => relay_to_chat(&port, &token),
        _ if io::stdin().is_terminal() => Err(NO_AGENT.to_owned()),
        _ => serve_terminal(variable(NVIM_VARIABLE)),
    }
}

/// Offers the tools to an agent in a terminal. `address` is the address of the Neovim with this terminal.
fn serve_terminal(address: Option<String>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| format!("the runtime did not start ({error})"))?;
    let server = Arc::new(TerminalTools {
        address,
        neovim: Arc::default(),
    });
    let served = co_mcp::serve(tokio::io::stdin(), tokio::io::stdout(), server);
    let served = runtime.block_on(served);
    // A read of standard input that waits would keep it alive.
    runtime.shutdown_background();
    served.map_err(|error| format!("the agent sent what is no message ({error})"))
}

/// The tools for an agent in a terminal of Neovim.
struct TerminalTools {
    /// The address of Neovim. It is `None` in any other terminal.
    address: Option<String>,
    /// The connection to Neovim. The first call makes it.
    neovim: Arc<Mutex<Option<Arc<RemoteNeovim>>>>,
}

impl ToolOffer for TerminalTools {
    fn name(&self) -> (&'static str, &'static str) {
        (SERVER, env!("CARGO_PKG_VERSION"))
    }

    fn instructions(&self) -> &'static str {
        match self.address {
            Some(_) => INSTRUCTIONS,
            None => NO_NEOVIM,
        }
    }

    fn tools(&self) -> Vec<ServerTool> {
        let specs = match self.address {
            Some(_) => ToolSet::of_agents(&OF_TERMINALS).specs(),
            None => Arc::default(),
        };
        specs.iter().map(offered).collect()
    }

    fn call(&self, call: ClientCall, cancel: CancellationToken) -> ToolWork {
        let (address, neovim) = (self.address.clone(), Arc::clone(&self.neovim));
        Box::pin(async move {
            let work = call_neovim(address.as_deref(), &neovim, call);
            let done = cancel.run_until_cancelled(work).await;
            done.unwrap_or_else(|| ToolReply::failed(CANCELLED))
        })
    }
}

/// Passes a call to Neovim. Connects first if there is no connection or it was lost.
async fn call_neovim(
    address: Option<&str>,
    known: &Mutex<Option<Arc<RemoteNeovim>>>,
    call: ClientCall,
) -> ToolReply {
    let Some(address) = address else {
        return ToolReply::failed(NO_NEOVIM);
    };
    let neovim = {
        let mut known = known.lock().await;
        match known.as_ref().filter(|it| !it.is_closed()) {
            Some(neovim) => Arc::clone(neovim),
            None => match RemoteNeovim::connect(address).await {
                Ok(neovim) => Arc::clone(known.insert(Arc::new(neovim))),
                Err(why) => return ToolReply::failed(why),
            },
        }
    };
    let cwd = std::env::current_dir().unwrap_or_default();
    let call = RemoteCall {
        agent: call.client,
        tool: call.tool,
        arguments: serde_json::Value::Object(call.arguments).to_string(),
        cwd: cwd.into_os_string().into_vec(),
    };
    neovim.call(call).await
}

/// Relays bytes between the agent of a chat and the backend.
fn relay_to_chat(port: &str, token: &str) -> Result<(), String> {
    let port: u16 = port.parse().map_err(|_| NO_AGENT.to_owned())?;
    let gone = |error: io::Error| {
        format!(
            "co does not offer its tools any more ({error}): start the agent again from its chat"
        )
    };
    let mut backend = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(gone)?;
    backend.set_nodelay(true).map_err(gone)?;
    backend
        .write_all(format!("{token}\n").as_bytes())
        .map_err(gone)?;
    let mut to_backend = backend.try_clone().map_err(gone)?;
    // It ends with the process. If the agent closes the input, the backend closes the connection.
    thread::spawn(move || {
        let _ended = relay(io::stdin().lock(), &mut to_backend);
        let _closed = to_backend.shutdown(Shutdown::Write);
    });
    relay(backend, io::stdout().lock()).map_err(gone)
}

/// Copies bytes until the end. `io::copy` would use `splice`, which locks the agent's pipe while it waits for the socket. The
/// agent could then not read data in the pipe.
fn relay(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&buffer[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
