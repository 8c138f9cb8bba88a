//! The connection to one server: the handshake, the list of tools, and the calls.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientRequest,
    ElicitationCapability, FormElicitationCapability, Implementation, InitializeRequestParams,
    InputRequest, InputRequests, InputResponses, PaginatedRequestParams, ProtocolVersion,
    ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, NotificationContext, Peer,
    PeerRequestOptions, RequestHandle, RunningService, ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::Transport;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::answer::{AnswerPart, ToolAnswer};
use crate::call_events::{CallListener, QuestionReply};
use crate::http::{HttpClient, HttpEndpoint, fault_of};
use crate::http_fault::HttpFault;
use crate::offers::{self, OpenArgument, ServerOffers};
use crate::pipes::Pipes;
use crate::transport::{BoundedTransport, UnaskedMemory};
use co_lines::LONGEST_LINE;

/// The largest number of tools that are read from one list.
pub const MOST_TOOLS: usize = 1_000;

/// The largest size of one list of tools, in bytes of JSON. A model gets far fewer bytes.
pub(crate) const MOST_LIST_BYTES: usize = 1 << 20;

/// The largest number of pages that are read of one list.
const MOST_PAGES: usize = 100;

/// The largest number of times that one call is sent, if the server asks questions before it carries out the call.
const MOST_ROUNDS: usize = 5;

/// The pause before a subscription that ended is opened again, and the longest pause. Each one doubles it, until a subscription
/// lasts for the longest pause.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The name and the version of the client, which the client tells the server.
#[derive(Debug, Clone, Copy)]
pub struct ClientName {
    pub name: &'static str,
    pub version: &'static str,
}

/// The reason why the handshake failed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The server closed its output, or sent a line that is too long.
    #[error("it ended, or wrote something else than messages")]
    Ended,
    #[error("it speaks another version of the protocol")]
    Version,
    #[error("it refused the connection: {0}")]
    Refused(String),
    #[error(transparent)]
    Http(#[from] HttpFault),
}

/// The reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The server ended, or sent a message that is too large.
    #[error("the server ended, or sent a message of more than {} MiB or of too many values", LONGEST_LINE >> 20)]
    Ended,
    #[error("the server does not read what it is sent")]
    Stuck,
    #[error("the server gave no result: {0}")]
    Http(HttpFault),
    /// The server refused the request with this error message.
    #[error("{0}")]
    Refused(String),
    #[error("the server asks again and again, or for something that the client does not offer")]
    AsksBack,
    #[error("the answer of the server is of another kind")]
    Unreadable,
}

/// A tool, as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    pub name: String,
    pub description: String,
    /// The JSON schema of the tool's arguments.
    pub schema: Map<String, Value>,
}

impl ServerTool {
    /// Returns the size in bytes of the tool's texts and schema.
    fn size(&self) -> usize {
        let schema = serde_json::to_string(&self.schema).map_or(0, |it| it.len());
        self.name.len() + self.description.len() + schema
    }
}

/// A connection to one server. Dropping it closes the server's standard input; over HTTP, it ends the session.
pub struct ServerConnection {
    service: RunningService<RoleClient, Listener>,
    changes: watch::Receiver<u64>,
    ended: CancellationToken,
    http: Option<HttpClient>,
    _subscription: Option<AbortOnDropHandle<()>>,
}

/// Counts the server's notifications that its list of tools has changed.
struct Listener {
    client: ClientName,
    changes: watch::Sender<u64>,
}

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn get_info(&self) -> InitializeRequestParams {
        let client = Implementation::new(self.client.name, self.client.version);
        let mut capabilities = ClientCapabilities::default();
        let forms = FormElicitationCapability::new();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(forms));
        InitializeRequestParams::new(capabilities, client)
    }
}

impl ServerConnection {
    /// Opens a connection over the server's standard output and input. This function has no time-out. Call it within a tokio
    /// runtime.
    ///
    /// # Errors
    /// The server ended, or refused the handshake.
    pub async fn open(
        output: impl AsyncRead + Send + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
        client: ClientName,
    ) -> Result<Self, OpenError> {
        let (unasked, ended) = (UnaskedMemory::default(), CancellationToken::new());
        let pipes = Pipes::new(output, input, unasked.clone(), ended.clone());
        let transport =
            BoundedTransport::new(pipes, unasked, CancellationToken::new(), ended.clone());
        Self::over(transport, ended, client).await
    }

    /// Opens a connection to a server over HTTP. The client `http` must not follow redirects. This function has no time-out. Call
    /// it within a tokio runtime.
    ///
    /// # Errors
    /// The server cannot be reached, or refused the handshake.
    pub async fn open_http(
        http: reqwest::Client,
        endpoint: &HttpEndpoint,
        client: ClientName,
    ) -> Result<Self, OpenError> {
        let unasked = UnaskedMemory::default();
        let (failed, ended) = (CancellationToken::new(), CancellationToken::new());
        let http = HttpClient::new(http, endpoint, unasked.clone(), failed.clone())?;
        let channel = http.channel(&endpoint.headers)?;
        let transport = BoundedTransport::new(channel, unasked, failed, ended.clone());
        match Self::over(transport, ended, client).await {
            Ok(connection) => Ok(Self {
                http: Some(http),
                ..connection
            }),
            Err(error) => Err(http.fault().map_or(error, OpenError::Http)),
        }
    }

    async fn over<C>(
        transport: BoundedTransport<C>,
        ended: CancellationToken,
        client: ClientName,
    ) -> Result<Self, OpenError>
    where
        C: Transport<RoleClient> + 'static,
        C::Error: std::error::Error + Send + Sync + 'static,
    {
        let (sender, changes) = watch::channel(0);
        let listener = Listener {
            client,
            changes: sender.clone(),
        };
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let service = serve_client_with_lifecycle(listener, transport, lifecycle).await?;
        // Each list is asked for once, so a copy would only take memory.
        let cache = ClientCacheConfig::disabled();
        service.peer().set_response_cache_config(cache).await;
        let subscription = subscribe(service.peer().clone(), sender);
        Ok(Self {
            service,
            changes,
            ended,
            http: None,
            _subscription: subscription,
        })
    }

    /// Returns the name and the version of the server, as it reported them.
    pub fn server(&self) -> Option<(String, String)> {
        let info = self.service.peer_info()?;
        let server = info.server_info.as_ref()?;
        Some((server.name.clone(), server.version.clone()))
    }

    /// Returns the version of the protocol that the client and the server agreed on.
    pub fn protocol(&self) -> String {
        let info = self.service.peer_info();
        info.map_or_else(String::new, |it| it.protocol_version.to_string())
    }

    /// Returns the number of times that the list of tools has changed so far.
    pub fn changes(&self) -> u64 {
        *self.changes.borrow()
    }

    /// Returns the tools of the server. There are at most [`MOST_TOOLS`], and fewer if they are large. The second value is true
    /// if the server has more tools.
    ///
    /// # Errors
    /// The server ended, or refused the request.
    pub async fn tools(&self) -> Result<(Vec<ServerTool>, bool), CallError> {
        let tools = self.read_tools().await;
        tools.map_err(|error| self.explained(error))
    }

    async fn read_tools(&self) -> Result<(Vec<ServerTool>, bool), CallError> {
        let has_tools = self.service.peer_info();
        if has_tools.is_some_and(|it| it.capabilities.tools.is_none()) {
            return Ok((Vec::new(), false));
        }
        let (mut tools, mut cursor, mut room) = (Vec::new(), None, MOST_LIST_BYTES);
        for _ in 0..MOST_PAGES {
            let asked = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.service.list_tools(Some(asked)).await;
            let page = page.map_err(CallError::from)?;
            for tool in page.tools {
                let tool = ServerTool {
                    name: tool.name.into_owned(),
                    description: tool.description.unwrap_or_default().into_owned(),
                    schema: Arc::unwrap_or_clone(tool.input_schema),
                };
                match room.checked_sub(tool.size()) {
                    Some(left) if tools.len() < MOST_TOOLS => room = left,
                    _ => return Ok((tools, true)),
                }
                tools.push(tool);
            }
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok((tools, false)),
            }
        }
        Ok((tools, true))
    }

    /// Returns the resources and prompts of the server. If a list cannot be read, it is empty.
    pub async fn offers(&self) -> ServerOffers {
        ServerOffers::read(self.service.peer()).await
    }

    /// Reads a resource. This function has no time-out.
    ///
    /// # Errors
    /// The server ended, or refused the request.
    pub async fn resource(&self, uri: &str) -> Result<Vec<AnswerPart>, CallError> {
        let read = offers::read_resource(self.service.peer(), uri).await;
        let read = read.map_err(|error| self.explained(error.into()))?;
        read.ok_or(CallError::AsksBack)
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
        let read = offers::read_prompt(self.service.peer(), name, arguments).await;
        let read = read.map_err(|error| self.explained(error.into()))?;
        read.ok_or(CallError::AsksBack)
    }

    /// Returns at most 100 values that complete an argument. This function has no time-out.
    ///
    /// # Errors
    /// The server ended, or refused the request.
    pub async fn complete(&self, argument: OpenArgument) -> Result<Vec<String>, CallError> {
        let values = offers::complete(self.service.peer(), argument).await;
        values.map_err(|error| self.explained(error.into()))
    }

    /// Calls a tool, and sends the server's progress reports and questions to `listener`. This function has no time-out. If the
    /// returned future is dropped, the server is told that the call is cancelled.
    ///
    /// # Errors
    /// The server ended, or refused the request. A tool that reports a failure is no error.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        listener: CallListener,
    ) -> Result<ToolAnswer, CallError> {
        let answer = self.try_call(tool, arguments, listener).await;
        answer.map_err(|error| self.explained(error))
    }

    async fn try_call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        listener: CallListener,
    ) -> Result<ToolAnswer, CallError> {
        let mut asked = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        for _ in 0..MOST_ROUNDS {
            let mut request = CallToolRequest::new(asked.clone());
            request.extensions.insert(listener.clone());
            let request = ClientRequest::CallToolRequest(request);
            let options = PeerRequestOptions::no_options();
            let sent = self.service.send_cancellable_request(request, options);
            let required = match OpenCall(Some(sent.await?)).answer().await? {
                ServerResult::CallToolResult(result) => return Ok(ToolAnswer::new(result)),
                ServerResult::EmptyResult(_) => return Ok(ToolAnswer::default()),
                ServerResult::InputRequiredResult(required) => required,
                _ => return Err(CallError::Unreadable),
            };
            // In the newest form of the protocol, a server asks by its answer, and the call is sent anew with the replies.
            let replies = replies(required.input_requests.unwrap_or_default(), &listener).await?;
            asked = asked.with_input_responses(replies);
            if let Some(state) = required.request_state {
                asked = asked.with_request_state(state);
            }
        }
        Err(CallError::AsksBack)
    }

    /// Replaces the error "ended" of a connection over HTTP by the HTTP fault that ended the connection. Returns any other error
    /// unchanged.
    fn explained(&self, error: CallError) -> CallError {
        if let (CallError::Ended, Some(http)) = (&error, &self.http) {
            return CallError::Http(http.fault().unwrap_or(HttpFault::Broken));
        }
        error
    }

    /// Returns the fault that ended a connection over HTTP.
    pub fn fault(&self) -> Option<HttpFault> {
        self.http.as_ref().and_then(HttpClient::fault)
    }

    /// Waits until the connection has ended: the server closed its output, sent too much, or does not read its input.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

/// Sends the questions of a server to the person, one by one, and returns the replies.
async fn replies(
    asked: InputRequests,
    listener: &CallListener,
) -> Result<InputResponses, CallError> {
    let mut replies = InputResponses::new();
    for (name, asked) in asked {
        let InputRequest::Elicitation(asked) = asked else {
            return Err(CallError::AsksBack);
        };
        let reply = match listener.ask(&asked.params) {
            Some(reply) => reply.await.unwrap_or(QuestionReply::Cancel),
            None => QuestionReply::Decline,
        };
        let reply = serde_json::to_value(reply.into_result());
        replies.insert(name, reply.map_err(|_| CallError::Unreadable)?);
    }
    Ok(replies)
}

/// A call that has no answer yet. Dropping it tells the server that the call is cancelled.
struct OpenCall(Option<RequestHandle<RoleClient>>);

impl OpenCall {
    async fn answer(mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.0 else {
            return Err(ServiceError::TransportClosed);
        };
        let answer = (&mut handle.rx).await;
        self.0 = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            tokio::spawn(handle.cancel(None));
        }
    }
}

/// Follows the changes of the list of tools, if the server's version of the protocol lets clients subscribe to them. A subscription
/// that ends is opened again.
fn subscribe(peer: Peer<RoleClient>, changes: watch::Sender<u64>) -> Option<AbortOnDropHandle<()>> {
    let info = peer.peer_info()?;
    let changing = info.capabilities.tools.as_ref()?.list_changed?;
    if !changing || info.protocol_version.has_initialize() {
        return None;
    }
    let follow = async move {
        let mut pause = FIRST_PAUSE;
        loop {
            let since = Instant::now();
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            match peer.listen(filter).await {
                Ok(mut subscription) => {
                    while let Ok(Some(_)) = subscription.next().await {
                        changes.send_modify(|count| *count += 1);
                    }
                }
                // The server does not let clients subscribe, or has ended.
                Err(ServiceError::McpError(_) | ServiceError::TransportClosed) => return,
                Err(_) => {}
            }
            if since.elapsed() >= LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            tokio::time::sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
            // The list may have changed meanwhile.
            changes.send_modify(|count| *count += 1);
        }
    };
    Some(AbortOnDropHandle::new(tokio::spawn(follow)))
}

impl From<ClientInitializeError> for OpenError {
    fn from(error: ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::JsonRpcError(error) => Self::Refused(error.message.into_owned()),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => (*fallback).into(),
            ClientInitializeError::TransportError { error, .. } => {
                fault_of(error.error.as_ref()).map_or(Self::Ended, Self::Http)
            }
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => Self::Version,
            _ => Self::Ended,
        }
    }
}

impl From<ServiceError> for CallError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::Refused(error.message.into_owned()),
            ServiceError::TransportSend(error) => {
                fault_of(error.error.as_ref()).map_or(Self::Stuck, Self::Http)
            }
            ServiceError::UnexpectedResponse => Self::Unreadable,
            _ => Self::Ended,
        }
    }
}
