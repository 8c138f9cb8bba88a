//! The server's side of one connection. It offers tools, and passes on the calls of a client that may be hostile.
//!
//! This module implements the few methods of such a server itself, because the crate `rmcp` would start a task for each message
//! of the client.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use co_lines::{BoundedLine, LineReader};
use rmcp::model::{ErrorCode, ProtocolVersion};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::connection::ServerTool;

/// The largest number of calls of one connection that may run at a time.
const MOST_CALLS: usize = 16;

/// The longest name of a client, in characters.
const LONGEST_NAME: usize = 100;

/// The time between two progress messages about a running call. Clients give up a call after a minute or more without a message.
const PROGRESS_PERIOD: Duration = Duration::from_secs(10);

/// The versions of the protocol that have the message format of this module.
const VERSIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2024_11_05,
];

/// A tool call of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientCall {
    /// The name that the client reported. It is empty if it reported none.
    pub client: String,
    pub tool: String,
    pub arguments: Map<String, Value>,
}

/// The result of a tool call, for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolReply {
    pub text: String,
    pub is_error: bool,
}

impl ToolReply {
    /// Makes the result of a failed call. `why` is the reason.
    pub fn failed(why: impl Into<String>) -> Self {
        Self {
            text: why.into(),
            is_error: true,
        }
    }
}

/// The future that carries out a call. It must end soon after its token is cancelled.
pub type ToolWork = Pin<Box<dyn Future<Output = ToolReply> + Send>>;

/// A server with tools.
pub trait ToolOffer: Send + Sync {
    /// Returns the name and the version of the server.
    fn name(&self) -> (&'static str, &'static str);

    /// Returns the instructions for the client about all tools together.
    fn instructions(&self) -> &'static str;

    fn tools(&self) -> Vec<ServerTool>;

    /// Returns the future that carries out the call. `cancel` is cancelled when the client cancels the call or ends the
    /// connection.
    fn call(&self, call: ClientCall, cancel: CancellationToken) -> ToolWork;
}

/// A call that runs.
struct OpenCall {
    /// Cancels the call when it is dropped.
    _cancel: DropGuard,
    /// The client's token for progress messages about this call, if it asked for them.
    progress: Option<Value>,
}

/// The state of one connection.
struct Serving<W> {
    server: Arc<dyn ToolOffer>,
    /// The name of the client. It is empty if the client reported none.
    client: String,
    output: W,
    open: HashMap<String, OpenCall>,
    calls: JoinSet<(Value, ToolReply)>,
    /// The number of times that progress messages were sent so far.
    ticks: u64,
}

/// Serves one client until its messages end.
///
/// # Errors
/// The connection fails, or a message is too large.
pub async fn serve(
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin,
    server: Arc<dyn ToolOffer>,
) -> io::Result<()> {
    let mut lines = LineReader::new(input).stopping();
    let mut serving = Serving {
        server,
        client: String::new(),
        output,
        open: HashMap::new(),
        calls: JoinSet::new(),
        ticks: 0,
    };
    let mut pace = tokio::time::interval(PROGRESS_PERIOD);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            line = lines.next() => match line? {
                Some(BoundedLine::Whole(line)) => serving.hear(&line).await?,
                Some(BoundedLine::TooLarge { .. }) => return Err(io::Error::other("a message is too large")),
                Some(BoundedLine::Partial(_)) | None => return Ok(()),
            },
            Some(done) = serving.calls.join_next() => {
                // A call that panicked has no answer: the client learns it by the end of the connection.
                let (id, reply) = done.map_err(io::Error::other)?;
                serving.ended(id, reply).await?;
            }
            _ = pace.tick(), if serving.open.values().any(|it| it.progress.is_some()) => {
                serving.tell_progress().await?;
            }
        }
    }
}

impl<W: AsyncWrite + Send + Unpin> Serving<W> {
    async fn hear(&mut self, line: &[u8]) -> io::Result<()> {
        let Ok(Value::Object(mut message)) = serde_json::from_slice(line) else {
            return self
                .refuse(
                    Value::Null,
                    ErrorCode::PARSE_ERROR,
                    "not one message of JSON",
                )
                .await;
        };
        let Some(Value::String(method)) = message.get("method") else {
            // An answer: this server asks nothing.
            return Ok(());
        };
        let method = method.clone();
        let params = match message.get_mut("params").map(Value::take) {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        match message.get_mut("id").map(Value::take) {
            Some(id @ (Value::String(_) | Value::Number(_))) => {
                self.asked(id, &method, params).await
            }
            Some(_) => {
                self.refuse(
                    Value::Null,
                    ErrorCode::INVALID_REQUEST,
                    "an id is a text or a number",
                )
                .await
            }
            None => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId")
                {
                    self.open.remove(&id.to_string());
                }
                Ok(())
            }
        }
    }

    async fn asked(
        &mut self,
        id: Value,
        method: &str,
        params: Map<String, Value>,
    ) -> io::Result<()> {
        match method {
            "initialize" => {
                let client = params.get("clientInfo").and_then(|it| it["name"].as_str());
                let client = client.unwrap_or_default().chars().take(LONGEST_NAME);
                self.client = client.collect();
                let (name, version) = self.server.name();
                let asked = params.get("protocolVersion").and_then(Value::as_str);
                let known = VERSIONS.iter().find(|it| Some(it.as_str()) == asked);
                let result = json!({
                    "protocolVersion": known.unwrap_or(&VERSIONS[0]),
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": name, "version": version },
                    "instructions": self.server.instructions(),
                });
                self.answer(id, result).await
            }
            "ping" => self.answer(id, json!({})).await,
            "tools/list" => {
                let tool = |it: ServerTool| json!({ "name": it.name, "description": it.description, "inputSchema": it.schema });
                let tools: Vec<_> = self.server.tools().into_iter().map(tool).collect();
                self.answer(id, json!({ "tools": tools })).await
            }
            "tools/call" => self.call(id, params).await,
            // Among them the probe of the newest form of the protocol, after which clients use this one.
            _ => {
                self.refuse(
                    id,
                    ErrorCode::METHOD_NOT_FOUND,
                    "there is no such method here",
                )
                .await
            }
        }
    }

    /// Starts a call.
    async fn call(&mut self, id: Value, mut params: Map<String, Value>) -> io::Result<()> {
        let Some(Value::String(tool)) = params.remove("name") else {
            return self
                .refuse(
                    id,
                    ErrorCode::INVALID_PARAMS,
                    "a call needs the name of a tool",
                )
                .await;
        };
        let arguments = match params.remove("arguments") {
            Some(Value::Object(arguments)) => arguments,
            None | Some(Value::Null) => Map::new(),
            Some(_) => {
                return self
                    .refuse(id, ErrorCode::INVALID_PARAMS, "arguments are an object")
                    .await;
            }
        };
        let key = id.to_string();
        // The work on a cancelled call counts until it has ended.
        if self.calls.len() >= MOST_CALLS || self.open.contains_key(&key) {
            let why = "too many calls are open, or one has the same id: wait for their results";
            return self.refuse(id, ErrorCode::INVALID_REQUEST, why).await;
        }
        let progress = params
            .get_mut("_meta")
            .and_then(|it| it.get_mut("progressToken"));
        let cancel = CancellationToken::new();
        let call = ClientCall {
            client: self.client.clone(),
            tool,
            arguments,
        };
        let work = self.server.call(call, cancel.clone());
        let open = OpenCall {
            _cancel: cancel.drop_guard(),
            progress: progress.map(Value::take),
        };
        self.open.insert(key, open);
        self.calls.spawn(async move { (id, work.await) });
        Ok(())
    }

    async fn ended(&mut self, id: Value, reply: ToolReply) -> io::Result<()> {
        // The client waits for no answer to a call that it cancelled.
        if self.open.remove(&id.to_string()).is_none() {
            return Ok(());
        }
        let content = json!([{ "type": "text", "text": reply.text }]);
        self.answer(id, json!({ "content": content, "isError": reply.is_error }))
            .await
    }

    /// Sends a progress message for each running call, so that the client does not give up while the person is asked.
    async fn tell_progress(&mut self) -> io::Result<()> {
        self.ticks += 1;
        let tokens = self.open.values().filter_map(|it| it.progress.as_ref());
        let messages = tokens.map(|token| {
            let params = json!({ "progressToken": token, "progress": self.ticks });
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
        });
        for message in messages.collect::<Vec<_>>() {
            self.write(&message).await?;
        }
        Ok(())
    }

    async fn answer(&mut self, id: Value, result: Value) -> io::Result<()> {
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            .await
    }

    async fn refuse(&mut self, id: Value, code: ErrorCode, why: &str) -> io::Result<()> {
        let error = json!({ "code": code.0, "message": why });
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            .await
    }

    /// Writes a message. While the client does not read it, no further message of the client is read.
    async fn write(&mut self, message: &Value) -> io::Result<()> {
        let line = format!("{message}\n");
        self.output.write_all(line.as_bytes()).await?;
        self.output.flush().await
    }
}
