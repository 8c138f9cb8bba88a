//! Messages to and from a server over streamable HTTP, with limits.
//!
//! The crate `rmcp` manages the session and the streams. This module makes the HTTP requests itself. So it parses no response
//! that would take too much memory, and sends no header to another server.

mod events;
mod shared;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use co_lines::{LARGEST_LINE, LONGEST_LINE, json_memory};
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Method, Request, RequestBuilder, Response, StatusCode, Url};
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransport,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio_util::sync::CancellationToken;

use self::events::Events;
use self::shared::SharedState;
use crate::body::body;
use crate::challenge::Challenge;
use crate::http_fault::HttpFault;
use crate::login::{ServerLogin, Tokens};
use crate::transport::{UnaskedMemory, request_id};

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// The largest number of redirects of a request. All must go to the same server.
const MOST_REDIRECTS: usize = 3;

/// The number of event streams that a server may end, between two requests of the client, before the client waits. Before each
/// further stream, the client waits: first for [`FIRST_PAUSE`], then each time twice as long, up to [`LONGEST_PAUSE`].
const FREE_STREAMS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The largest number of failed attempts to reopen a stream.
const MOST_ATTEMPTS: usize = 5;

/// The address of a server, and the HTTP headers for it.
#[derive(Clone)]
pub struct HttpEndpoint {
    pub url: String,
    /// The names and values of the headers. The values are secret, so nothing may show them.
    pub headers: Vec<(String, String)>,
    /// The login at the server. Each request has the token of this login. `None` if the server has no login, or if a header
    /// replaces the login.
    pub login: Option<ServerLogin>,
}

type PostError = StreamableHttpError<HttpFault>;

/// Makes the HTTP requests of one connection. Clones belong to the same connection.
#[derive(Clone)]
pub(crate) struct HttpClient {
    http: reqwest::Client,
    url: Url,
    tokens: Option<Arc<Tokens>>,
    shared: SharedState,
    /// The number of streams that the client has opened since its last request.
    streams: Arc<AtomicU32>,
    /// The number of failed attempts to reopen a stream since the last answer.
    attempts: Arc<AtomicUsize>,
}

impl HttpClient {
    /// Makes a client for the server at `endpoint`. A fault that ends the connection cancels the token `failed`.
    pub(crate) fn new(
        http: reqwest::Client,
        endpoint: &HttpEndpoint,
        unasked: UnaskedMemory,
        failed: CancellationToken,
    ) -> Result<Self, HttpFault> {
        let url = Url::parse(&endpoint.url).map_err(|_| HttpFault::Address)?;
        let login = endpoint.login.clone();
        let tokens = login.map(|it| Arc::new(Tokens::new(it, url.clone())));
        Ok(Self {
            http,
            url,
            tokens,
            shared: SharedState::new(unasked, failed),
            streams: Arc::default(),
            attempts: Arc::default(),
        })
    }

    /// Returns the fault that ended the connection.
    pub(crate) fn fault(&self) -> Option<HttpFault> {
        self.shared.fault()
    }

    /// Makes the transport for messages. Call it within a tokio runtime.
    pub(crate) fn channel(
        &self,
        headers: &[(String, String)],
    ) -> Result<impl Transport<RoleClient, Error = PostError> + use<>, HttpFault> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str());
        for (name, value) in headers {
            let wrong = || HttpFault::Header(name.clone());
            let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            let name = HeaderName::try_from(name).map_err(|_| wrong())?;
            config.custom_headers.insert(name, value);
        }
        let mut retries = ExponentialBackoff::default();
        retries.max_times = Some(MOST_ATTEMPTS);
        retries.max_delay = Some(LONGEST_PAUSE);
        config.retry_config = Arc::new(retries);
        Ok(StreamableHttpClientTransport::with_client(
            self.clone(),
            config,
        ))
    }

    fn request(
        &self,
        method: Method,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> RequestBuilder {
        let mut all: HeaderMap = headers.into_iter().collect();
        if let Some(session) = session.and_then(|it| HeaderValue::try_from(it).ok()) {
            all.insert(SESSION, session);
        }
        self.http.request(method, self.url.clone()).headers(all)
    }

    /// Sends a request with the token of the login, if there is one. If the server refuses the token, sends the request once more
    /// with another one.
    async fn send(&self, request: RequestBuilder) -> Result<Response, HttpFault> {
        let request = request.build().map_err(|_| HttpFault::Address)?;
        let answer = match &self.tokens {
            None => self.follow(request).await?,
            Some(tokens) => self.send_with(tokens, request).await?,
        };
        let challenge = || Challenge::of(answer.headers());
        match answer.status() {
            StatusCode::UNAUTHORIZED => Err(self.shared.end(HttpFault::Unauthorized(challenge()))),
            StatusCode::FORBIDDEN => Err(match challenge() {
                Some(challenge) if challenge.wants_scope() => HttpFault::Scope(challenge),
                _ => HttpFault::Forbidden,
            }),
            _ => Ok(answer),
        }
    }

    /// Sends a request with a token.
    async fn send_with(&self, tokens: &Tokens, request: Request) -> Result<Response, HttpFault> {
        let again = request.try_clone();
        let Some(token) = tokens.token().await? else {
            return self.follow(request).await;
        };
        let answer = self.follow(with_token(request, &token)).await?;
        let Some(again) = again.filter(|_| answer.status() == StatusCode::UNAUTHORIZED) else {
            return Ok(answer);
        };
        match tokens.instead_of(&token).await? {
            Some(token) => self.follow(with_token(again, &token)).await,
            None => Ok(answer),
        }
    }

    /// Sends a request. Follows a redirect only to the same server.
    async fn follow(&self, mut request: Request) -> Result<Response, HttpFault> {
        for _ in 0..=MOST_REDIRECTS {
            let next = request.try_clone();
            let answer = self.http.execute(request).await;
            let answer = answer.map_err(|error| match error.is_connect() {
                true => HttpFault::Unreachable(last_cause(&error)),
                false => HttpFault::Broken,
            })?;
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            let to = self.redirect(&answer)?;
            request = next.ok_or(HttpFault::Broken)?;
            *request.url_mut() = to;
        }
        Err(HttpFault::Rounds)
    }

    /// Returns the target of a redirect. Fails if the target is another server, or if the redirect may change the method of the
    /// request.
    fn redirect(&self, answer: &Response) -> Result<Url, HttpFault> {
        let to = answer.headers().get(LOCATION);
        let to = to.and_then(|it| answer.url().join(it.to_str().ok()?).ok());
        let Some(to) = to else {
            return Err(HttpFault::Status(answer.status().as_u16()));
        };
        let keeps = matches!(
            answer.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        match keeps && to.origin() == self.url.origin() {
            true => Ok(to),
            false if to.origin() == self.url.origin() => Err(HttpFault::Moved),
            false => Err(HttpFault::Redirect),
        }
    }

    /// Reads and parses a JSON response.
    async fn json(&self, answer: Response) -> Result<ServerJsonRpcMessage, HttpFault> {
        let body = body(answer, LONGEST_LINE).await;
        let body = body.map_err(|_| HttpFault::Broken)?;
        let body = body.ok_or(HttpFault::TooLarge)?;
        let memory = json_memory(&body);
        if memory > LARGEST_LINE {
            return Err(HttpFault::TooLarge);
        }
        self.shared.count(memory)?;
        serde_json::from_slice(&body).map_err(|_| HttpFault::Unreadable)
    }

    /// Returns the server-sent events of a response.
    fn events(&self, answer: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let events = Some(Events::new(self.shared.clone(), answer));
        let next = |events: Option<Events>| async {
            let mut events = events?;
            match events.next().await {
                Ok(event) => event.map(|it| (Ok(it), Some(events))),
                Err(fault) => Some((Err(SseError::Body(Box::new(fault))), None)),
            }
        };
        futures::stream::unfold(events, next).boxed()
    }

    /// Waits before another stream is opened, if the server has ended many streams.
    async fn pause(&self) {
        let opened = self.streams.fetch_add(1, Ordering::Relaxed);
        if let Some(more) = opened.checked_sub(FREE_STREAMS) {
            let pause = FIRST_PAUSE.saturating_mul(1 << more.min(16));
            tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
        }
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, PostError> {
        let request = self.request(Method::POST, session.as_deref(), headers);
        let request = request.header(ACCEPT, format!("{JSON}, {EVENTS}"));
        let asked = request_id(&message);
        let is_request = asked.is_some();
        if is_request {
            self.streams.store(0, Ordering::Relaxed);
        }
        let answer = self.send(request.json(&message)).await;
        let answer = answer.map_err(|it| match it {
            HttpFault::Unreachable(_) => fault(self.shared.end(it)),
            it => fault(it),
        })?;
        let status = answer.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        let kind = media_type(answer.headers());
        if !status.is_success() {
            let told = match kind.as_deref() {
                Some(JSON) => self.json(answer).await.ok(),
                _ => None,
            };
            let told = told.filter(|it| matches!(it, JsonRpcMessage::Error(_)));
            if let Some(id) = probe(&message).filter(|_| status.is_client_error()) {
                return Ok(StreamableHttpPostResponse::Json(refusal(told, id), None));
            }
            let status = HttpFault::Status(status.as_u16());
            let told = told.ok_or_else(|| fault(status))?;
            return Ok(StreamableHttpPostResponse::Json(with_id(told, asked), None));
        }
        self.attempts.store(0, Ordering::Relaxed);
        let new = answer.headers().get(SESSION);
        let new = new.and_then(|it| Some(it.to_str().ok()?.to_owned()));
        match kind.as_deref() {
            Some(EVENTS) => Ok(StreamableHttpPostResponse::Sse(self.events(answer), new)),
            // Nobody waits for an answer to anything but a request.
            _ if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            Some(JSON) => {
                let told = self.json(answer).await.map_err(fault)?;
                Ok(StreamableHttpPostResponse::Json(with_id(told, asked), new))
            }
            _ => Err(fault(HttpFault::ContentType)),
        }
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFault;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, PostError> {
        self.post(message, session, headers).await
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), PostError> {
        let request = self.request(Method::DELETE, Some(&session), headers);
        self.send(request).await.map_err(fault)?;
        Ok(())
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, PostError> {
        self.pause().await;
        let is_again = last_event.is_some();
        let request = self.request(Method::GET, session.as_deref(), headers);
        let mut request = request.header(ACCEPT, EVENTS);
        if let Some(last) = last_event.and_then(|it| HeaderValue::try_from(it).ok()) {
            request = request.header(LAST_EVENT, last);
        }
        let opened = self.send(request).await.and_then(|answer| {
            let status = answer.status();
            if status == StatusCode::METHOD_NOT_ALLOWED {
                return Ok(None);
            }
            if !status.is_success() {
                return Err(HttpFault::Status(status.as_u16()));
            }
            match media_type(answer.headers()).as_deref() {
                Some(EVENTS) => Ok(Some(self.events(answer))),
                _ => Err(HttpFault::ContentType),
            }
        });
        match opened {
            Ok(stream) => {
                self.attempts.store(0, Ordering::Relaxed);
                stream.ok_or(StreamableHttpError::ServerDoesNotSupportSse)
            }
            Err(it) if !is_again => Err(fault(it)),
            Err(it) => {
                // The protocol's crate tries no more then, so the person would not learn of a lost server.
                let failed = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
                Err(fault(match failed < MOST_ATTEMPTS {
                    true => it,
                    false => self.shared.end(it),
                }))
            }
        }
    }
}

/// Returns a request with a token.
fn with_token(mut request: Request, token: &str) -> Request {
    // A token that no header can have is refused like a wrong one.
    if let Ok(mut value) = HeaderValue::try_from(format!("Bearer {token}")) {
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    request
}

fn fault(fault: HttpFault) -> PostError {
    StreamableHttpError::Client(fault)
}

/// Returns the HTTP fault in an error of the transport.
pub(crate) fn fault_of(
    error: &(dyn std::error::Error + Send + Sync + 'static),
) -> Option<HttpFault> {
    Some(match error.downcast_ref::<PostError>()? {
        StreamableHttpError::Client(fault) => fault.clone(),
        StreamableHttpError::SessionExpired
        | StreamableHttpError::SessionRecoveryTimeout
        | StreamableHttpError::ReinitializationFailed(_) => HttpFault::Session,
        _ => HttpFault::Broken,
    })
}

/// Returns the innermost cause of an error. The outer causes contain the address.
fn last_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut text = None;
    while let Some(deeper) = cause {
        text = Some(deeper.to_string());
        cause = deeper.source();
    }
    text.unwrap_or_else(|| "no connection".to_owned())
}

/// Returns the media type in lower case, without its parameters.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let kind = kind.split(';').next().unwrap_or_default();
    Some(kind.trim().to_ascii_lowercase())
}

/// Returns the id of the message if it is the probe for the newest version of the protocol.
fn probe(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    let JsonRpcMessage::Request(request) = message else {
        return None;
    };
    let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
    is_probe.then(|| request.id.clone())
}

/// Returns the response to a request. If an error has no id, it gets the id of the request, because a server that could not parse
/// the request does not know its id.
fn with_id(told: ServerJsonRpcMessage, asked: Option<RequestId>) -> ServerJsonRpcMessage {
    match told {
        JsonRpcMessage::Error(it) if it.id.is_none() => JsonRpcMessage::error(it.error, asked),
        told => told,
    }
}

/// Returns the error with which a server refused the probe for the newest version of the protocol. Some servers send it without
/// the id of the request.
fn refusal(told: Option<ServerJsonRpcMessage>, id: RequestId) -> ServerJsonRpcMessage {
    let error = match told {
        Some(JsonRpcMessage::Error(it)) => it.error,
        _ => ErrorData::invalid_request("the server refused the request", None),
    };
    JsonRpcMessage::error(error, Some(id))
}
