//! A connection to a Neovim that already runs, at the address that Neovim gives to programs in its terminals. `co-nvim mcp` uses
//! it to call co's tools.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use nvim_rs::{Handler, Neovim};
use parking_lot::Mutex;
use rmpv::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};
use tokio_util::task::AbortOnDropHandle;

use super::stdio::{NvimInput, NvimOutput, Pipe};
use crate::protocol::PROTOCOL;
use co_mcp::ToolReply;

/// The Lua code that passes a call to the plugin. It returns nil, or a sentence with the reason why the plugin does not accept
/// the call.
const CALL: &str = "
local call, too_old, no_plugin = ...
local is_there, calls = pcall(require, 'co.backend.agent_calls')
if is_there then
  return calls.call(call)
end
return pcall(require, 'co.version') and too_old or no_plugin
";
const CANCEL: &str = "require('co.backend.agent_calls').cancel(...)";

/// The name of the notification with the result of a call. Its arguments are the number of the call, the text of the result, and
/// true if the call failed.
const DONE: &str = "co_agent_call_done";

const TOO_OLD: &str = "Not run: the plugin co in the Neovim of this terminal is older than this co-nvim, and does not know agents in \
    terminals. The person updates the plugin and restarts Neovim.";
const NO_PLUGIN: &str = "Not run: the Neovim of this terminal has no plugin co.";
const CLOSED: &str = "Not run: the Neovim of this terminal was closed.";
const CUT_OFF: &str = "cut off: the Neovim of this terminal was closed while the call ran; whether it took effect is not known";

/// A tool call for the plugin.
#[derive(Debug)]
pub struct RemoteCall {
    /// The name of the agent, as it reported it.
    pub agent: String,
    pub tool: String,
    /// The arguments as JSON.
    pub arguments: String,
    /// The working directory of the agent.
    pub cwd: Vec<u8>,
}

/// A connection to a running Neovim. Dropping it ends the connection.
pub struct RemoteNeovim {
    neovim: Neovim<Pipe>,
    /// The id of this connection's channel in Neovim.
    channel: u64,
    next: AtomicU64,
    waiting: Waiting,
    _reading: AbortOnDropHandle<()>,
}

/// The calls that have no result yet, by number. It is `None` after Neovim has ended.
type Waiting = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<ToolReply>>>>>;

/// Receives the results of calls.
#[derive(Clone)]
struct Results(Waiting);

#[async_trait]
impl Handler for Results {
    type Writer = Pipe;

    async fn handle_notify(&self, name: String, args: Vec<Value>, _: Neovim<Pipe>) {
        let (DONE, [number, text, failed]) = (name.as_str(), args.as_slice()) else {
            return;
        };
        let number = number.as_u64().unwrap_or_default();
        let reply = self.0.lock().as_mut().and_then(|it| it.remove(&number));
        if let Some(reply) = reply {
            // It fails if the agent gave the call up.
            let _given_up = reply.send(ToolReply {
                text: text.as_str().unwrap_or_default().to_owned(),
                is_error: failed.as_bool().unwrap_or(true),
            });
        }
    }
}

impl RemoteNeovim {
    /// Connects to the Neovim at an address: the path of a socket, or a host and a port.
    ///
    /// # Errors
    /// No Neovim answers at the address. The error is a sentence.
    pub async fn connect(address: &str) -> Result<Self, String> {
        let gone = |error: &dyn std::fmt::Display| {
            format!("{CLOSED} Its address {address} cannot be reached ({error}).")
        };
        let (input, output) = open(address).await.map_err(|error| gone(&error))?;
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let results = Results(Arc::clone(&waiting));
        let (neovim, io_loop) = Neovim::new(input.compat(), output.compat_write(), results);
        let at_end = Arc::clone(&waiting);
        let reading = tokio::spawn(async move {
            let ended = io_loop.await;
            tracing::debug!(?ended, "neovim closed the connection");
            *at_end.lock() = None;
        });
        let reading = AbortOnDropHandle::new(reading);
        let info = neovim.get_api_info().await.map_err(|error| gone(&error))?;
        let channel = info.first().and_then(Value::as_u64).unwrap_or_default();
        Ok(Self {
            neovim,
            channel,
            next: AtomicU64::new(1),
            waiting,
            _reading: reading,
        })
    }

    /// Returns true if Neovim has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.waiting.lock().is_none()
    }

    /// Carries out a call and returns its result. If the returned future is dropped, the call is cancelled.
    pub async fn call(&self, call: RemoteCall) -> ToolReply {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, result) = oneshot::channel();
        match self.waiting.lock().as_mut() {
            Some(waiting) => waiting.insert(number, reply),
            None => return ToolReply::failed(CLOSED),
        };
        let mut cancels = CancelsCall {
            neovim: self.neovim.clone(),
            args: Some(vec![self.channel.into(), number.into()]),
        };
        let message = [
            ("protocol", PROTOCOL.into()),
            ("channel", self.channel.into()),
            ("number", number.into()),
            ("agent", call.agent.into()),
            ("tool", call.tool.into()),
            ("arguments", call.arguments.into()),
            ("cwd", Value::Binary(call.cwd)),
        ];
        let message = message.map(|(name, value)| (name.into(), value));
        let args = vec![Value::Map(message.into()), TOO_OLD.into(), NO_PLUGIN.into()];
        let taken = match self.neovim.exec_lua(CALL, args).await {
            Ok(Value::Nil) => result.await.map_err(|_| CUT_OFF.to_owned()),
            Ok(why) => Err(why.as_str().unwrap_or_default().to_owned()),
            Err(_) if self.is_closed() => Err(CLOSED.to_owned()),
            Err(error) => Err(format!(
                "Not run: the plugin co in Neovim failed ({error})."
            )),
        };
        cancels.args = None;
        taken.unwrap_or_else(ToolReply::failed)
    }
}

/// Cancels a call on drop, unless the call has ended.
struct CancelsCall {
    neovim: Neovim<Pipe>,
    args: Option<Vec<Value>>,
}

impl Drop for CancelsCall {
    fn drop(&mut self) {
        if let Some(args) = self.args.take() {
            let neovim = self.neovim.clone();
            // When this process ends, Neovim finds out by itself.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { neovim.exec_lua(CANCEL, args).await });
            }
        }
    }
}

async fn open(address: &str) -> io::Result<(NvimInput, NvimOutput)> {
    match address.contains('/') {
        true => Ok(halves(UnixStream::connect(address).await?)),
        false => Ok(halves(TcpStream::connect(address).await?)),
    }
}

fn halves(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> (NvimInput, NvimOutput) {
    let (input, output) = tokio::io::split(stream);
    (Box::new(input), Box::new(output))
}
