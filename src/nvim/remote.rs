//! A connection to a Neovim that already runs, at the address that Neovim gives to programs in its terminals. `co-nvim mcp` uses
//! it to call co's tools.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use nvim_rs::error::CallError;
use nvim_rs::{Handler, Neovim};
use parking_lot::Mutex;
use rmpv::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};
use tokio_util::task::AbortOnDropHandle;

use super::stdio::{NvimInput, NvimOutput, Pipe};
use crate::protocol::PROTOCOL;
use co_mcp::ToolReply;
use co_text::{one_line, start_of};

/// The Lua code that passes a call to the plugin. It returns nil, or a sentence with the reason why the plugin does not accept
/// the call.
const CALL: &str = "
local call, too_old, no_plugin = ...
local name = 'co.backend.agent_calls'
local is_there, calls = pcall(require, name)
if is_there then
  return calls.call(call)
elseif not tostring(calls):find((\"module '%s' not found\"):format(name), 1, true) then
  error(calls, 0)
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

/// The most bytes of an error of the plugin.
const LONGEST_ERROR: usize = 1_000;

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
        let neovim = self.neovim.clone();
        // A separate task sends the message: if this future is dropped, a half-written message would spoil all later messages.
        let sent = tokio::spawn(async move { neovim.exec_lua(CALL, args).await });
        let mut cancels = CancelsCall {
            neovim: self.neovim.clone(),
            args: Some(vec![self.channel.into(), number.into()]),
            sent: Some(sent),
        };
        let taken = match cancels.sent().await {
            Some(Ok(Value::Nil)) => result.await.map_err(|_| CUT_OFF.to_owned()),
            Some(Ok(why)) => Err(why.as_str().unwrap_or_default().to_owned()),
            _ if self.is_closed() => Err(CLOSED.to_owned()),
            Some(Err(error)) => Err(failed(&error.to_string())),
            None => Err(failed("the message was not sent")),
        };
        cancels.args = None;
        taken.unwrap_or_else(ToolReply::failed)
    }
}

fn failed(why: &str) -> String {
    let why = one_line(start_of(why, LONGEST_ERROR));
    format!(
        "Not run: the plugin co in the Neovim of this terminal failed ({why}). The person runs :checkhealth co there."
    )
}

/// A call that a separate task sends to Neovim.
type SentCall = JoinHandle<Result<Value, Box<CallError>>>;

/// Cancels a call on drop, unless the call has ended.
struct CancelsCall {
    neovim: Neovim<Pipe>,
    args: Option<Vec<Value>>,
    /// The call, until Neovim has answered that it takes it.
    sent: Option<SentCall>,
}

impl CancelsCall {
    /// Waits for Neovim's answer to the message; none if the task failed.
    async fn sent(&mut self) -> Option<Result<Value, Box<CallError>>> {
        let answer = self.sent.as_mut()?.await;
        self.sent = None;
        answer.ok()
    }
}

impl Drop for CancelsCall {
    fn drop(&mut self) {
        if let Some(args) = self.args.take() {
            let (neovim, sent) = (self.neovim.clone(), self.sent.take());
            // When this process ends, Neovim finds out by itself.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move {
                    // The call comes first.
                    if let Some(sent) = sent {
                        let _taken = sent.await;
                    }
                    neovim.exec_lua(CANCEL, args).await
                });
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;
    use tokio::time::timeout;

    use super::*;

    /// The time in which something must happen.
    const DEADLINE: Duration = Duration::from_secs(30);

    /// Neovim's side of a connection.
    struct OtherSide {
        stream: UnixStream,
        bytes: Vec<u8>,
    }

    impl OtherSide {
        async fn accept(listener: &UnixListener) -> Self {
            let (stream, _) = listener.accept().await.unwrap();
            let mut side = Self {
                stream,
                bytes: Vec::new(),
            };
            let asked = side.next().await;
            let info = Value::Array(vec![7.into(), Value::Map(Vec::new())]);
            let answer = vec![1.into(), asked[1].clone(), Value::Nil, info];
            let mut bytes = Vec::new();
            rmpv::encode::write_value(&mut bytes, &Value::Array(answer)).unwrap();
            side.stream.write_all(&bytes).await.unwrap();
            side
        }

        /// Returns the parts of the next message.
        async fn next(&mut self) -> Vec<Value> {
            loop {
                let mut rest = self.bytes.as_slice();
                if let Ok(Value::Array(parts)) = rmpv::decode::read_value(&mut rest) {
                    self.bytes = rest.to_vec();
                    return parts;
                }
                let read = self.stream.read_buf(&mut self.bytes);
                let read = timeout(DEADLINE, read).await.unwrap().unwrap();
                assert!(read > 0, "the connection ended");
            }
        }
    }

    #[tokio::test]
    async fn a_call_that_is_given_up_is_sent_whole_and_then_cancelled() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nvim");
        let listener = UnixListener::bind(&path).unwrap();
        let address = path.display().to_string();
        let connect = RemoteNeovim::connect(&address);
        let (neovim, mut other) = tokio::join!(connect, OtherSide::accept(&listener));
        let neovim = neovim.unwrap();
        // More than the socket takes at once.
        let call = RemoteCall {
            agent: "a".to_owned(),
            tool: "t".to_owned(),
            arguments: "x".repeat(4 << 20),
            cwd: Vec::new(),
        };
        tokio::select! {
            _ = neovim.call(call) => panic!("nobody answers"),
            begun = timeout(DEADLINE, other.stream.readable()) => begun.unwrap().unwrap(),
        }
        for code in [CALL, CANCEL] {
            let message = other.next().await;
            assert_eq!(message[2].as_str(), Some("nvim_exec_lua"));
            assert_eq!(message[3][0].as_str(), Some(code));
            let answer = Value::Array(vec![1.into(), message[1].clone(), Value::Nil, Value::Nil]);
            let mut bytes = Vec::new();
            rmpv::encode::write_value(&mut bytes, &answer).unwrap();
            other.stream.write_all(&bytes).await.unwrap();
        }
    }
}
