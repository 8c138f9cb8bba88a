//! The connection to an agent: sends the requests of the client, and receives the messages of the agent.

use std::collections::HashMap;
use std::path::PathBuf;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AuthCapabilities, AuthMethodId, AuthenticateRequest, BooleanConfigOptionCapabilities,
    CancelNotification, ClientCapabilities, ClientSessionCapabilities, CompactionCapabilities,
    CompleteElicitationNotification, ContentBlock, CreateElicitationResponse, ElicitationAction,
    ElicitationCapabilities, ElicitationFormCapabilities, ElicitationUrlCapabilities,
    Error as AgentError, Implementation, InitializeRequest, ListSessionsRequest,
    LoadSessionRequest, McpServer, NewSessionRequest, NoticeCapabilities, PermissionOptionId,
    PlanCapabilities, PromptRequest, RequestId, RequestPermissionOutcome,
    RequestPermissionResponse, ResumeSessionRequest, SelectedPermissionOutcome, SessionConfigId,
    SessionConfigOptionValue, SessionConfigOptionsCapabilities, SessionId, SessionModeId,
    SessionNotification, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SubagentCapabilities,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::incoming::{AgentAnswer, Incoming, RequestNumber};
use co_lines::{BoundedLine, LineReader, LineWriter, SendError};

/// The largest number of bytes that co keeps of an invalid line.
const GARBAGE_START: usize = 200;

/// The largest number of the agent's questions that may wait for an answer. The client answers each further question with an
/// error.
const MAX_ASKED: usize = 32;

/// The name and the version of the client, which the client tells the agent.
#[derive(Debug, Clone, Copy)]
pub struct ClientName {
    pub name: &'static str,
    pub version: &'static str,
}

/// The inputs for a session that starts or goes on.
#[derive(Debug, Clone, Default)]
pub struct SessionSetup {
    /// The directory, an absolute path.
    pub cwd: PathBuf,
    /// Tool servers that the agent starts.
    pub servers: Vec<McpServer>,
    /// Fields that only some agents know.
    pub meta: Option<Map<String, Value>>,
}

/// The kind of a request of the client. It decides how the client reads the answer.
#[derive(Debug, Clone, Copy)]
enum Method {
    Initialize,
    Authenticate,
    ListSessions,
    NewSession,
    LoadSession,
    ResumeSession,
    SetMode,
    SetOption,
    Prompt,
}

/// The kind of an unanswered question of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AskedKind {
    Permission,
    Elicitation,
}

/// The connection to one agent.
pub struct AgentConnection {
    lines: LineReader<Box<dyn AsyncRead + Send + Sync + Unpin>>,
    outgoing: LineWriter,
    requests: i64,
    /// The requests of the client that the agent has not answered.
    sent: HashMap<i64, Method>,
    /// The agent's questions that the client has not answered.
    asked: Vec<(RequestId, AskedKind)>,
    ended: bool,
}

impl AgentConnection {
    /// Makes a connection from the agent's standard output and standard input. Call it within a tokio runtime.
    pub fn new(
        output: impl AsyncRead + Send + Sync + Unpin + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            lines: LineReader::new(Box::new(output)),
            outgoing: LineWriter::new("agent", input),
            requests: 0,
            sent: HashMap::new(),
            asked: Vec::new(),
            ended: false,
        }
    }

    /// Begins the connection. The answer is [`AgentAnswer::Initialized`].
    ///
    /// The client offers the agent no access to files and no terminals. It lists the kinds of content that it can render, so that
    /// agents send no other kind.
    ///
    /// # Errors
    /// The agent does not read its input.
    pub fn initialize(&mut self, client: ClientName) -> Result<RequestNumber, SendError> {
        let info = Implementation::new(client.name, client.version);
        // Agents refuse a higher version instead of naming theirs.
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(capabilities())
            .client_info(info);
        self.request(Method::Initialize, &request)
    }

    /// Logs in by one of the agent's methods. The method must not need a terminal. The answer is [`AgentAnswer::Authenticated`].
    ///
    /// # Errors
    /// The agent does not read its input.
    pub fn authenticate(&mut self, method: &AuthMethodId) -> Result<RequestNumber, SendError> {
        let request = AuthenticateRequest::new(method.clone());
        self.request(Method::Authenticate, &request)
    }

    /// Asks for one page of the list of sessions in a directory. If `cursor` is `None`, this is the first page. The answer is
    /// [`AgentAnswer::Sessions`].
    ///
    /// # Errors
    /// The agent does not read its input.
    pub fn list_sessions(
        &mut self,
        cwd: PathBuf,
        cursor: Option<String>,
    ) -> Result<RequestNumber, SendError> {
        let request = ListSessionsRequest::new().cwd(cwd).cursor(cursor);
        self.request(Method::ListSessions, &request)
    }

    /// Starts a session. The answer is [`AgentAnswer::Session`].
    ///
    /// # Errors
    /// The agent does not read.
    pub fn new_session(&mut self, setup: SessionSetup) -> Result<RequestNumber, SendError> {
        let SessionSetup { cwd, servers, meta } = setup;
        let request = NewSessionRequest::new(cwd).mcp_servers(servers).meta(meta);
        self.request(Method::NewSession, &request)
    }

    /// Continues a session. The agent first sends all updates of the session once more; the answer is [`AgentAnswer::Loaded`].
    ///
    /// # Errors
    /// The agent does not read its input.
    pub fn load_session(
        &mut self,
        session: &SessionId,
        setup: SessionSetup,
    ) -> Result<RequestNumber, SendError> {
        let SessionSetup { cwd, servers, meta } = setup;
        let request = LoadSessionRequest::new(session.clone(), cwd);
        let request = request.mcp_servers(servers).meta(meta);
        self.request(Method::LoadSession, &request)
    }

    /// Continues a session. The agent does not send the earlier updates again. The answer is [`AgentAnswer::Resumed`].
    ///
    /// # Errors
    /// The agent does not read its input.
    pub fn resume_session(
        &mut self,
        session: &SessionId,
        setup: SessionSetup,
    ) -> Result<RequestNumber, SendError> {
        let SessionSetup { cwd, servers, meta } = setup;
        let request = ResumeSessionRequest::new(session.clone(), cwd);
        let request = request.mcp_servers(servers).meta(meta);
        self.request(Method::ResumeSession, &request)
    }

    /// Sets the mode of a session. The answer is [`AgentAnswer::ModeSet`].
    ///
    /// # Errors
    /// The agent does not read its input.
    pub fn set_mode(
        &mut self,
        session: &SessionId,
        mode: SessionModeId,
    ) -> Result<RequestNumber, SendError> {
        let request = SetSessionModeRequest::new(session.clone(), mode);
        self.request(Method::SetMode, &request)
    }

    /// Sets an option of a session. The answer is [`AgentAnswer::OptionSet`].
    ///
    /// # Errors
    /// The agent does not read its input.
    pub fn set_option(
        &mut self,
        session: &SessionId,
        option: SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> Result<RequestNumber, SendError> {
        let request = SetSessionConfigOptionRequest::new(session.clone(), option, value);
        self.request(Method::SetOption, &request)
    }

    /// Sends a prompt. The agent sends the updates first, and then the answer [`AgentAnswer::Prompted`].
    ///
    /// # Errors
    /// The agent does not read its input.
    pub fn prompt(
        &mut self,
        session: &SessionId,
        prompt: Vec<ContentBlock>,
    ) -> Result<RequestNumber, SendError> {
        let request = PromptRequest::new(session.clone(), prompt);
        self.request(Method::Prompt, &request)
    }

    /// Asks the agent to stop its work on the prompt, and answers all questions of the agent with `cancelled`. The agent still
    /// answers the prompt.
    ///
    /// # Errors
    /// The agent does not read its input.
    pub fn cancel(&mut self, session: &SessionId) -> Result<(), SendError> {
        let params = CancelNotification::new(session.clone());
        self.send(json!({ "method": "session/cancel", "params": to_value(&params) }))?;
        self.cancel_questions()
    }

    /// Answers all questions of the agent with `cancelled`.
    ///
    /// # Errors
    /// The agent does not read its input.
    pub fn cancel_questions(&mut self) -> Result<(), SendError> {
        for (id, kind) in std::mem::take(&mut self.asked) {
            let answer = match kind {
                AskedKind::Permission => to_value(&permission(None)),
                AskedKind::Elicitation => elicited(ElicitationAction::Cancel),
            };
            self.answer(&id, answer)?;
        }
        Ok(())
    }

    /// Answers a request for permission with an option, or with `cancelled`. Does nothing if the request was already answered or
    /// withdrawn.
    ///
    /// # Errors
    /// The agent does not read its input.
    pub fn answer_permission(
        &mut self,
        id: &RequestId,
        option: Option<PermissionOptionId>,
    ) -> Result<(), SendError> {
        match self.take_asked(id) {
            Some(AskedKind::Permission) => self.answer(id, to_value(&permission(option))),
            _ => Ok(()),
        }
    }

    /// Answers an [`Incoming::Elicitation`]. Does nothing if the question was already answered or withdrawn.
    ///
    /// # Errors
    /// The agent does not read its input.
    pub fn answer_elicitation(
        &mut self,
        id: &RequestId,
        action: ElicitationAction,
    ) -> Result<(), SendError> {
        match self.take_asked(id) {
            Some(AskedKind::Elicitation) => self.answer(id, elicited(action)),
            _ => Ok(()),
        }
    }

    fn take_asked(&mut self, id: &RequestId) -> Option<AskedKind> {
        let at = self.asked.iter().position(|(asked, _)| asked == id)?;
        Some(self.asked.remove(at).1)
    }

    /// Returns roughly how many bytes of memory all messages of the agent have taken so far.
    pub fn memory_taken(&self) -> u64 {
        self.lines.taken()
    }

    /// Returns the next message of the agent. If the future is dropped, no message is lost.
    pub async fn next(&mut self) -> Incoming {
        loop {
            if self.ended {
                return Incoming::Ended;
            }
            let line = match self.lines.next().await {
                Ok(Some(BoundedLine::Whole(line))) => line,
                Ok(Some(BoundedLine::Partial(line))) => return garbage(&line, line.len()),
                Ok(Some(BoundedLine::TooLarge { start, length })) => {
                    return garbage(&start, length);
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

    /// Reads a message, and answers the message if the answer needs no decision. Returns `None` if the caller need not know of
    /// the message.
    fn message(&mut self, line: &[u8]) -> Option<Incoming> {
        let Ok(Value::Object(mut message)) = serde_json::from_slice(line) else {
            return Some(garbage(line, line.len()));
        };
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
                    unread: unread(&params, &update.update),
                    update: Box::new(update),
                }),
                Err(_) => Some(unknown(method, &params)),
            },
            "elicitation/complete" => match read::<CompleteElicitationNotification>(&params) {
                Ok(completed) => Some(Incoming::ElicitationCompleted(completed.elicitation_id)),
                Err(_) => Some(unknown(method, &params)),
            },
            "$/cancel_request" => {
                let id = params.get("requestId").map(read::<RequestId>)?.ok()?;
                self.take_asked(&id)?;
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
        let may_ask =
            self.asked.len() < MAX_ASKED && !self.asked.iter().any(|(asked, _)| *asked == id);
        let error = match method.as_str() {
            "session/request_permission" => match read(&params) {
                Ok(request) if may_ask => {
                    self.asked.push((id.clone(), AskedKind::Permission));
                    return Incoming::Permission {
                        id,
                        request: Box::new(request),
                    };
                }
                _ => AgentError::invalid_params(),
            },
            "elicitation/create" => match read(&params) {
                Ok(request) if may_ask => {
                    self.asked.push((id.clone(), AskedKind::Elicitation));
                    return Incoming::Elicitation {
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
        self.outgoing.queue().send(whole.to_string())
    }
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Authenticate => "authenticate",
            Self::ListSessions => "session/list",
            Self::NewSession => "session/new",
            Self::LoadSession => "session/load",
            Self::ResumeSession => "session/resume",
            Self::SetMode => "session/set_mode",
            Self::SetOption => "session/set_config_option",
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
        Method::Authenticate => Ok(AgentAnswer::Authenticated),
        Method::ListSessions => read(&result).map(|it| AgentAnswer::Sessions(Box::new(it))),
        Method::NewSession => read(&result).map(|it| AgentAnswer::Session(Box::new(it))),
        // Some agents answer with null.
        Method::LoadSession => read_object(&result).map(|it| AgentAnswer::Loaded(Box::new(it))),
        Method::ResumeSession => read_object(&result).map(|it| AgentAnswer::Resumed(Box::new(it))),
        Method::SetMode => Ok(AgentAnswer::ModeSet),
        Method::SetOption => read::<SetSessionConfigOptionResponse>(&result)
            .map(|it| AgentAnswer::OptionSet(it.config_options)),
        Method::Prompt => read(&result).map(AgentAnswer::Prompted),
    };
    answer.map_err(|error| {
        let what = format!("the answer to {} cannot be read: {error}", method.name());
        AgentError::new(-32603, what)
    })
}

/// The names of the fields of an update that the client renders.
const RENDERED: &[&str] = &[
    "content",
    "status",
    "kind",
    "title",
    "name",
    "locations",
    "rawInput",
    "rawOutput",
    "entries",
    "plan",
    "availableCommands",
    "configOptions",
    "cost",
    "description",
    "summary",
    "error",
    "state",
];

/// The names of fields and their default values. The protocol's types omit a field with its default value when they are
/// serialized.
const DEFAULTS: &[(&str, &str)] = &[("status", "pending"), ("kind", "other")];

/// Returns, as JSON, the parts of an update that the protocol's types drop or replace when they parse it.
fn unread(params: &Value, update: &SessionUpdate) -> Vec<String> {
    // Pieces of a message come often. One with a content of an unknown kind cannot be read at all.
    let is_chunk = matches!(
        update,
        SessionUpdate::AgentMessageChunk(_)
            | SessionUpdate::AgentThoughtChunk(_)
            | SessionUpdate::UserMessageChunk(_)
    );
    let Some(Value::Object(sent)) = params.get("update").filter(|_| !is_chunk) else {
        return Vec::new();
    };
    let read = to_value(update);
    let mut unread = Vec::new();
    for name in RENDERED {
        let sent = sent.get(*name).filter(|it| !is_empty(it));
        match (sent, read.get(*name)) {
            (None, _) => {}
            (Some(sent), None) => {
                let is_default = |(field, value): &(&str, &str)| field == name && sent == value;
                if !DEFAULTS.iter().any(is_default) {
                    unread.push(sent);
                }
            }
            (Some(Value::Array(sent)), Some(Value::Array(read))) if sent.len() > read.len() => {
                let is_read = |sent: &&Value| read.iter().any(|read| is_part(read, sent));
                unread.extend(sent.iter().filter(|it| !is_read(it)));
            }
            (Some(sent @ Value::String(_)), Some(read)) if sent != read => unread.push(sent),
            _ => {}
        }
    }
    unread.into_iter().map(Value::to_string).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(parts) => parts.is_empty(),
        _ => false,
    }
}

/// Returns true if `whole` contains `part`. `part` may lack some fields of `whole`.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            let mut both = part
                .iter()
                .filter_map(|(name, part)| Some((part, whole.get(name)?)));
            part.is_empty()
                || both.next().is_some_and(|first| {
                    std::iter::once(first)
                        .chain(both)
                        .all(|(part, whole)| is_part(part, whole))
                })
        }
        (Value::Array(part), Value::Array(whole)) => part
            .iter()
            .all(|part| whole.iter().any(|whole| is_part(part, whole))),
        _ => part == whole,
    }
}

fn elicited(action: ElicitationAction) -> Value {
    to_value(&CreateElicitationResponse::new(action))
}

/// Returns the capabilities of the client: the kinds of content that it renders.
fn capabilities() -> ClientCapabilities {
    let boolean = BooleanConfigOptionCapabilities::new();
    let session = ClientSessionCapabilities::new()
        .config_options(SessionConfigOptionsCapabilities::new().boolean(boolean))
        .notices(NoticeCapabilities::new())
        .compaction(CompactionCapabilities::new());
    let elicitation = ElicitationCapabilities::new()
        .form(ElicitationFormCapabilities::new())
        .url(ElicitationUrlCapabilities::new());
    ClientCapabilities::new()
        .auth(AuthCapabilities::new().terminal(true))
        .session(session)
        .subagents(SubagentCapabilities::new())
        .plan(PlanCapabilities::new())
        .elicitation(elicitation)
}

fn permission(option: Option<PermissionOptionId>) -> RequestPermissionResponse {
    RequestPermissionResponse::new(match option {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option)),
        None => RequestPermissionOutcome::Cancelled,
    })
}

fn params(mut message: Map<String, Value>) -> Value {
    message.shift_remove("params").unwrap_or(Value::Null)
}

fn read<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(value)
}

/// Reads a result in which each field is optional.
fn read_object<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    match value {
        Value::Null => T::deserialize(Value::Object(Map::new())),
        value => T::deserialize(value),
    }
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
