//! The requests of both directions.

use std::collections::HashMap;
use std::path::PathBuf;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    CancelNotification, ClientCapabilities, ContentBlock, Error as AgentError, Implementation,
    InitializeRequest, NewSessionRequest, PermissionOptionId, PromptRequest, RequestId,
    RequestPermissionOutcome, RequestPermissionResponse, SelectedPermissionOutcome, SessionId,
    SessionNotification, ToolCallContent, ToolCallStatus,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::incoming::{AgentAnswer, Incoming, RequestNumber};
use crate::lines::{AgentLine, LineReader};
use crate::outgoing::{Outgoing, SendError};

/// The most bytes of a message of the agent. An update may have an image, or both texts of a large file.
const LONGEST_LINE: usize = 8 << 20;

/// The most bytes that are kept of a line that is no message.
const GARBAGE_START: usize = 200;

/// About the bytes that a JSON value takes in memory beside its text. `[]` in a message takes two bytes there.
const VALUE_BYTES: u64 = 72;

/// The most questions of the agent that may wait for an answer. An agent that asks more is answered with an error.
const MAX_ASKED: usize = 32;

/// The name and the version that the client gives itself.
#[derive(Debug, Clone, Copy)]
pub struct ClientName {
    pub name: &'static str,
    pub version: &'static str,
}

/// The kind of a request of the client, which says how its answer is read.
#[derive(Debug, Clone, Copy)]
enum Method {
    Initialize,
    NewSession,
    Prompt,
}

/// The connection to one agent.
pub struct AgentConnection {
    lines: LineReader<Box<dyn AsyncRead + Send + Sync + Unpin>>,
    outgoing: Outgoing,
    requests: i64,
    /// The requests of the client that have no answer.
    sent: HashMap<i64, Method>,
    /// The agent's requests for permission that have no answer.
    asked: Vec<RequestId>,
    ended: bool,
    memory_taken: u64,
}

impl AgentConnection {
    /// Makes a connection of the agent's standard output and input. Call it within a tokio runtime.
    pub fn new(
        output: impl AsyncRead + Send + Sync + Unpin + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            lines: LineReader::new(Box::new(output), LONGEST_LINE),
            outgoing: Outgoing::new(input),
            requests: 0,
            sent: HashMap::new(),
            asked: Vec::new(),
            ended: false,
            memory_taken: 0,
        }
    }

    /// Begins the connection. The answer is [`AgentAnswer::Initialized`].
    ///
    /// The client offers no files and no terminals: an agent uses its own.
    ///
    /// # Errors
    /// The agent does not read.
    pub fn initialize(&mut self, client: ClientName) -> Result<RequestNumber, SendError> {
        let info = Implementation::new(client.name, client.version);
        // Agents refuse a higher version instead of naming theirs.
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::new())
            .client_info(info);
        self.request(Method::Initialize, &request)
    }

    /// Starts a session in a directory, an absolute path. The answer is [`AgentAnswer::Session`].
    ///
    /// # Errors
    /// The agent does not read.
    pub fn new_session(&mut self, cwd: PathBuf) -> Result<RequestNumber, SendError> {
        self.request(Method::NewSession, &NewSessionRequest::new(cwd))
    }

    /// Sends a prompt. The answer is [`AgentAnswer::Prompted`]; the updates come before it.
    ///
    /// # Errors
    /// The agent does not read.
    pub fn prompt(
        &mut self,
        session: &SessionId,
        prompt: Vec<ContentBlock>,
    ) -> Result<RequestNumber, SendError> {
        let request = PromptRequest::new(session.clone(), prompt);
        self.request(Method::Prompt, &request)
    }

    /// Asks the agent to end its prompt, and answers all its questions with `cancelled`. The answer to the prompt still comes.
    ///
    /// # Errors
    /// The agent does not read.
    pub fn cancel(&mut self, session: &SessionId) -> Result<(), SendError> {
        let params = CancelNotification::new(session.clone());
        self.send(json!({ "method": "session/cancel", "params": to_value(&params) }))?;
        for id in std::mem::take(&mut self.asked) {
            self.answer(&id, to_value(&permission(None)))?;
        }
        Ok(())
    }

    /// Answers a request for permission with an option, or with `cancelled`. Does nothing if it was answered or withdrawn before.
    ///
    /// # Errors
    /// The agent does not read.
    pub fn answer_permission(
        &mut self,
        id: &RequestId,
        option: Option<PermissionOptionId>,
    ) -> Result<(), SendError> {
        let Some(at) = self.asked.iter().position(|it| it == id) else {
            return Ok(());
        };
        self.asked.remove(at);
        self.answer(id, to_value(&permission(option)))
    }

    /// Returns about how many bytes of memory all messages of the agent took so far.
    pub fn memory_taken(&self) -> u64 {
        self.memory_taken
    }

    /// Returns the next message of the agent. If the future is dropped, no message is lost.
    pub async fn next(&mut self) -> Incoming {
        loop {
            if self.ended {
                return Incoming::Ended;
            }
            let line = match self.lines.next().await {
                Ok(Some(AgentLine::Whole(line))) => line,
                Ok(Some(AgentLine::Partial(line))) => return self.garbage(&line, line.len()),
                Ok(Some(AgentLine::TooLong { start, length })) => {
                    return self.garbage(&start, length);
                }
                Ok(None) | Err(_) => {
                    self.ended = true;
                    continue;
                }
            };
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if let Some(message) = self.message(&line) {
                return message;
            }
        }
    }

    /// Returns a line that cannot be read, and counts its bytes.
    fn garbage(&mut self, line: &[u8], length: usize) -> Incoming {
        self.memory_taken += length as u64;
        garbage(line, length)
    }

    /// Reads a message, and answers it if that needs no decision. Returns none if nobody has to know of it.
    fn message(&mut self, line: &[u8]) -> Option<Incoming> {
        self.memory_taken += line.len() as u64;
        let Ok(Value::Object(mut message)) = serde_json::from_slice(line) else {
            return Some(garbage(line, line.len()));
        };
        let values: u64 = message.values().map(values).sum();
        self.memory_taken += values * VALUE_BYTES;
        let id = message.shift_remove("id");
        let id = id.map(serde_json::from_value::<RequestId>);
        match (message.shift_remove("method"), id) {
            (Some(Value::String(method)), None) => self.notified(method, params(message)),
            (Some(Value::String(method)), Some(Ok(id))) => {
                Some(self.asked(method, id, params(message)))
            }
            (None, Some(Ok(RequestId::Number(number)))) => match self.sent.remove(&number) {
                Some(sent) => Some(Incoming::Answer {
                    number: RequestNumber(number),
                    answer: answer(sent, message),
                }),
                None => Some(garbage(line, line.len())),
            },
            _ => Some(garbage(line, line.len())),
        }
    }

    fn notified(&mut self, method: String, params: Value) -> Option<Incoming> {
        match method.as_str() {
            "session/update" => match read::<SessionNotification>(&params) {
                Ok(update) => Some(Incoming::Update {
                    unread: unread(&params),
                    update: Box::new(update),
                }),
                Err(_) => Some(unknown(method, &params)),
            },
            "$/cancel_request" => {
                let id = params.get("requestId").map(read::<RequestId>)?.ok()?;
                let at = self.asked.iter().position(|it| *it == id)?;
                self.asked.remove(at);
                let cancelled = AgentError::request_cancelled();
                self.refuse(&id, &cancelled);
                Some(Incoming::Withdrawn(id))
            }
            // Such messages may be ignored.
            _ if method.starts_with("$/") => None,
            _ => Some(unknown(method, &params)),
        }
    }

    fn asked(&mut self, method: String, id: RequestId, params: Value) -> Incoming {
        let error = match method.as_str() {
            "session/request_permission" => match read(&params) {
                Ok(request) if self.asked.len() < MAX_ASKED && !self.asked.contains(&id) => {
                    self.asked.push(id.clone());
                    return Incoming::Permission {
                        id,
                        request: Box::new(request),
                    };
                }
                _ => AgentError::invalid_params(),
            },
            _ => AgentError::method_not_found(),
        };
        self.refuse(&id, &error);
        unknown(method, &params)
    }

    fn request(
        &mut self,
        method: Method,
        params: &impl Serialize,
    ) -> Result<RequestNumber, SendError> {
        self.requests += 1;
        let number = self.requests;
        let params = to_value(params);
        self.send(json!({ "id": number, "method": method.name(), "params": params }))?;
        self.sent.insert(number, method);
        Ok(RequestNumber(number))
    }

    fn answer(&self, id: &RequestId, result: Value) -> Result<(), SendError> {
        self.send(json!({ "id": id, "result": result }))
    }

    fn refuse(&self, id: &RequestId, error: &AgentError) {
        // If the agent reads no more, it does not wait for the answer either.
        let _unread = self.send(json!({ "id": id, "error": error }));
    }

    fn send(&self, message: Value) -> Result<(), SendError> {
        let mut whole = json!({ "jsonrpc": "2.0" });
        if let (Value::Object(whole), Value::Object(message)) = (&mut whole, message) {
            whole.extend(message);
        }
        self.outgoing.send(whole.to_string())
    }
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::NewSession => "session/new",
            Self::Prompt => "session/prompt",
        }
    }
}

/// Reads the answer to a request of the client.
fn answer(method: Method, mut message: Map<String, Value>) -> Result<AgentAnswer, AgentError> {
    if let Some(error) = message.shift_remove("error") {
        return Err(read(&error).unwrap_or_else(|_| {
            AgentError::internal_error().data(Value::String(error.to_string()))
        }));
    }
    let result = message.shift_remove("result").unwrap_or(Value::Null);
    let answer = match method {
        Method::Initialize => read(&result).map(|it| AgentAnswer::Initialized(Box::new(it))),
        Method::NewSession => read(&result).map(|it| AgentAnswer::Session(Box::new(it))),
        Method::Prompt => read(&result).map(AgentAnswer::Prompted),
    };
    answer.map_err(|error| {
        let what = format!("the answer to {} cannot be read: {error}", method.name());
        AgentError::new(-32603, what)
    })
}

/// Returns the parts of a call that the protocol's types leave out, as JSON.
fn unread(params: &Value) -> Vec<String> {
    let content = params.pointer("/update/content").and_then(Value::as_array);
    let content = content.into_iter().flatten();
    let content = content.filter(|it| read::<ToolCallContent>(it).is_err());
    let status = params.pointer("/update/status");
    let status = status.filter(|it| !it.is_null() && read::<ToolCallStatus>(it).is_err());
    content.chain(status).map(Value::to_string).collect()
}

fn permission(option: Option<PermissionOptionId>) -> RequestPermissionResponse {
    RequestPermissionResponse::new(match option {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option)),
        None => RequestPermissionOutcome::Cancelled,
    })
}

/// Returns the number of values in a value, itself included. The parser limits how deep they lie.
fn values(value: &Value) -> u64 {
    1 + match value {
        Value::Array(parts) => parts.iter().map(values).sum(),
        Value::Object(parts) => parts.values().map(values).sum(),
        _ => 0,
    }
}

fn params(mut message: Map<String, Value>) -> Value {
    message.shift_remove("params").unwrap_or(Value::Null)
}

fn read<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(value)
}

fn to_value(params: &impl Serialize) -> Value {
    serde_json::to_value(params).expect("the types of the protocol have texts as keys")
}

fn unknown(method: String, params: &Value) -> Incoming {
    let text = params.to_string();
    Incoming::Unknown { method, text }
}

fn garbage(line: &[u8], length: usize) -> Incoming {
    let start = &line[..line.len().min(GARBAGE_START)];
    let start = String::from_utf8_lossy(start).into_owned();
    Incoming::Garbage { start, length }
}
