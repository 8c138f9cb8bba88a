//! The connection to servers over HTTP: one made with the protocol's crate, and hostile ones.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_client::StreamableHttpClient;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{HttpClient, HttpEndpoint};
use crate::http_fault::HttpFault;
use crate::tests::{answered, text};
use crate::transport::UnaskedMemory;
use crate::{
    CallError, CallListener, CallProgress, ClientName, OpenError, ServerConnection, ToolAnswer,
    call_events,
};

pub(crate) const CLIENT: ClientName = ClientName {
    name: "test",
    version: "1",
};

/// The time in which something must happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) const OK_JSON: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
const OK_EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

/// A request of the client.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) text: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn is(&self, method: &str) -> bool {
        self.body["method"] == method
    }

    /// Returns the answer to this request.
    pub(crate) fn answer(&self, result: Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result })
    }
}

/// The bytes that a server writes.
pub(crate) enum Reply {
    /// All of them; then it waits for the next request.
    Whole(String),
    /// These; then it closes the connection.
    Cut(String),
    /// The first, then the others without end.
    Endless(String, &'static str),
    /// These; then nothing more.
    Hanging(String),
}

type Script = Box<dyn Fn(&Asked) -> Reply + Send + Sync>;

/// A server that answers by a function.
pub(crate) struct Site {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    _accepts: AbortOnDropHandle<()>,
}

impl Site {
    pub(crate) async fn new(reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (asked, reply) = (Arc::new(Mutex::new(Vec::new())), Arc::new(reply));
        let seen = Arc::clone(&asked);
        let accept = async move {
            let mut open = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (seen, reply) = (Arc::clone(&seen), Arc::clone(&reply));
                open.spawn(async move { serve(stream, &seen, &*reply).await });
            }
        };
        Self {
            address,
            asked,
            _accepts: AbortOnDropHandle::new(tokio::spawn(accept)),
        }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits for a request that is meant.
    async fn wait(&self, what: &str, is_meant: impl Fn(&Asked) -> bool) -> Asked {
        let found = async {
            loop {
                if let Some(found) = self.asked().into_iter().find(&is_meant) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let found = timeout(DEADLINE, found).await;
        found.unwrap_or_else(|_| panic!("{what}: {:?}", self.asked()))
    }

    async fn open(&self) -> Result<ServerConnection, OpenError> {
        let token = ("Authorization".to_owned(), "Bearer hunter2".to_owned());
        open(&self.address, vec![token]).await
    }
}

async fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<Asked>>,
    reply: &(impl Fn(&Asked) -> Reply + ?Sized),
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let asked = request(&mut stream).await?;
        seen.lock().unwrap().push(asked.clone());
        match reply(&asked) {
            Reply::Whole(text) => stream.write_all(text.as_bytes()).await.ok()?,
            Reply::Cut(text) => {
                stream.write_all(text.as_bytes()).await.ok()?;
                return stream.shutdown().await.ok();
            }
            Reply::Endless(head, piece) => {
                stream.write_all(head.as_bytes()).await.ok()?;
                let many = piece.repeat((64 << 10) / piece.len());
                loop {
                    stream.write_all(many.as_bytes()).await.ok()?;
                }
            }
            Reply::Hanging(text) => {
                stream.write_all(text.as_bytes()).await.ok()?;
                std::future::pending().await
            }
        }
    }
}

/// Reads a request.
async fn request(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream
            .read_line(&mut line)
            .await
            .ok()
            .filter(|it| *it > 0)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut first = lines.first()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let header = |line: &String| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_ascii_lowercase(), value.to_owned()))
    };
    let headers: Vec<_> = lines[1..].iter().filter_map(header).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let text = String::from_utf8(body).unwrap();
    Some(Asked {
        method,
        path,
        headers,
        body: serde_json::from_str(&text).unwrap_or(Value::Null),
        text,
    })
}

pub(crate) fn whole(head: &str, body: &str) -> Reply {
    Reply::Whole(format!(
        "{head}content-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

pub(crate) fn status(line: &str) -> Reply {
    whole(&format!("HTTP/1.1 {line}\r\n"), "")
}

fn events(messages: &[Value]) -> Reply {
    let event = |it: &Value| format!("event: message\ndata: {it}\n\n");
    let body: String = messages.iter().map(event).collect();
    whole(OK_EVENTS, &body)
}

/// Returns the replies of a server of the old form with one tool, except to its calls.
pub(crate) fn usual(asked: &Asked) -> Reply {
    if asked.method != "POST" {
        return status("405 Method Not Allowed");
    }
    let result = match asked.body["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "scripted", "version": "3" },
            });
            let head = format!("{OK_JSON}mcp-session-id: one\r\n");
            return whole(&head, &asked.answer(result).to_string());
        }
        "tools/list" => {
            json!({ "tools": [{ "name": "add", "inputSchema": { "type": "object" } }] })
        }
        "server/discover" => return status("400 Bad Request"),
        _ => return status("202 Accepted"),
    };
    whole(OK_JSON, &asked.answer(result).to_string())
}

/// Returns a site whose calls get this reply.
async fn calling(reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Site {
    Site::new(move |asked| match asked.is("tools/call") {
        true => reply(asked),
        false => usual(asked),
    })
    .await
}

async fn open(url: &str, headers: Vec<(String, String)>) -> Result<ServerConnection, OpenError> {
    let endpoint = HttpEndpoint {
        url: format!("{url}/mcp"),
        headers,
        login: None,
    };
    let opened = ServerConnection::open_http(http(), &endpoint, CLIENT);
    timeout(DEADLINE, opened).await.unwrap()
}

/// Returns a client as the backend makes it.
pub(crate) fn http() -> reqwest::Client {
    let _again = rustls::crypto::ring::default_provider().install_default();
    let none = reqwest::redirect::Policy::none();
    let builder = reqwest::Client::builder().redirect(none).no_proxy();
    builder.tls_certs_only([]).build().unwrap()
}

fn unfollowed() -> CallListener {
    call_events().0
}

pub(crate) async fn call(connection: &ServerConnection) -> Result<ToolAnswer, CallError> {
    let call = connection.call("add", Map::new(), unfollowed());
    timeout(DEADLINE, call).await.unwrap()
}

#[tokio::test]
async fn a_server_of_the_old_form_has_a_session_that_ends_with_the_connection() {
    let site = calling(|asked| whole(OK_JSON, &asked.answer(text("3")).to_string())).await;
    let connection = site.open().await.unwrap();
    assert_eq!(connection.protocol(), "2025-11-25");
    let (tools, _) = connection.tools().await.unwrap();
    assert_eq!(tools[0].name, "add");
    assert_eq!(call(&connection).await, Ok(answered("3")));
    drop(connection);
    site.wait("the end of the session", |it| it.method == "DELETE")
        .await;
    for asked in site.asked() {
        assert_eq!(asked.path, "/mcp");
        assert_eq!(asked.header("authorization"), Some("Bearer hunter2"));
        let has_session = !asked.is("server/discover") && !asked.is("initialize");
        assert_eq!(
            asked.header("mcp-session-id").is_some(),
            has_session,
            "{asked:?}"
        );
        if has_session {
            assert_eq!(asked.header("mcp-protocol-version"), Some("2025-11-25"));
        }
    }
}

#[tokio::test]
async fn a_stream_has_the_progress_the_questions_and_the_answer() {
    let site = calling(|asked| {
        let token = &asked.body["params"]["_meta"]["progressToken"];
        let progress = json!({ "progressToken": token, "progress": 1, "total": 4, "message": "adds" });
        let form = json!({ "message": "Which?", "requestedSchema": { "type": "object", "properties": {} } });
        let message = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let mut question = message("elicitation/create", form);
        question["id"] = json!("q");
        events(&[message("notifications/progress", progress), question, asked.answer(text("3"))])
    })
    .await;
    let connection = site.open().await.unwrap();
    let (listener, mut events) = call_events();
    let called = connection.call("add", Map::new(), listener).await;
    assert_eq!(called, Ok(answered("3")));
    let told = CallProgress {
        done: Some(0.25),
        words: "adds".to_owned(),
    };
    assert_eq!(*events.progress.borrow_and_update(), told);
    let question = events.questions.recv().await.unwrap();
    assert_eq!(question.message, "Which?");
    question.answer(crate::QuestionReply::Decline);
    let reply = site.wait("the reply", |it| it.body["id"] == "q").await;
    assert_eq!(reply.body["result"]["action"], "decline");
}

#[tokio::test]
async fn a_change_of_the_list_comes_by_a_stream_of_its_own() {
    let site = Site::new(|asked| match asked.method.as_str() {
        "GET" => {
            let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            Reply::Hanging(format!(
                "{OK_EVENTS}\r\n: comment\r\n\r\nretry: 5\r\ndata: {changed}\r\n\r\n"
            ))
        }
        _ => usual(asked),
    })
    .await;
    let connection = site.open().await.unwrap();
    let changed = async {
        while connection.changes() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, changed).await.unwrap();
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    let site = calling(|_| Reply::Hanging(format!("{OK_EVENTS}\r\n: wait\n\n"))).await;
    let connection = site.open().await.unwrap();
    let called = connection.call("add", Map::new(), unfollowed());
    let asked = site.wait("the call", |it| it.is("tools/call"));
    tokio::select! {
        _ = called => panic!("it has no answer"),
        _ = asked => {}
    }
    let is_cancel = |it: &Asked| it.is("notifications/cancelled");
    site.wait("the word that it is cancelled", is_cancel).await;
}

#[tokio::test]
async fn requests_that_are_given_up_keep_no_others_waiting() {
    for head in [String::new(), format!("{OK_EVENTS}\r\n: wait\n\n")] {
        let site = Site::new(move |asked| match asked.is("resources/read") {
            true => Reply::Hanging(head.clone()),
            false if asked.is("tools/call") => whole(OK_JSON, &asked.answer(text("3")).to_string()),
            false => usual(asked),
        })
        .await;
        let connection = site.open().await.unwrap();
        for at in 0..40 {
            let read = format!("x:{at}");
            let asked = site.wait(&read, |it| it.body["params"]["uri"] == read);
            tokio::select! {
                _ = connection.resource(&read) => panic!("it has no answer"),
                _ = asked => {}
            }
        }
        assert_eq!(call(&connection).await, Ok(answered("3")));
        let are_cancelled = async {
            let is_cancel = |it: &&Asked| it.is("notifications/cancelled");
            while site.asked().iter().filter(is_cancel).count() < 40 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(DEADLINE, are_cancelled).await.unwrap();
    }
}

#[tokio::test]
async fn hostile_answers_end_a_call() {
    let large = "x".repeat(9 << 20);
    let many = format!("[{}]", "[],".repeat(1 << 20));
    let headers = "x-many: y\r\n".repeat(100_000);
    let cases: Vec<(&str, Script, HttpFault)> = vec![
        (
            "an endless body",
            Box::new(|_| Reply::Endless(format!("{OK_JSON}\r\n"), "[")),
            HttpFault::TooLarge,
        ),
        (
            "a large body",
            Box::new(move |_| whole(OK_JSON, &large)),
            HttpFault::TooLarge,
        ),
        (
            "a body of many values",
            Box::new(move |_| whole(OK_JSON, &many)),
            HttpFault::TooLarge,
        ),
        (
            "an endless line of an event",
            Box::new(|_| Reply::Endless(format!("{OK_EVENTS}\r\ndata: "), "[")),
            HttpFault::TooLarge,
        ),
        (
            "an endless event",
            Box::new(|_| Reply::Endless(format!("{OK_EVENTS}\r\n"), "data: [1, 2, 3, 4]\n")),
            HttpFault::TooLarge,
        ),
        (
            "endless events",
            Box::new(|_| Reply::Endless(format!("{OK_EVENTS}\r\n"), "data: [1]\n\n")),
            HttpFault::TooMuch,
        ),
        (
            "endless comments",
            Box::new(|_| Reply::Endless(format!("{OK_EVENTS}\r\n"), ": wait\n")),
            HttpFault::TooMuch,
        ),
        (
            "another type",
            Box::new(|_| whole("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n", "<p>")),
            HttpFault::ContentType,
        ),
        (
            "no type",
            Box::new(|_| whole("HTTP/1.1 200 OK\r\n", "{}")),
            HttpFault::ContentType,
        ),
        (
            "no message",
            Box::new(|_| whole(OK_JSON, "{}")),
            HttpFault::Unreadable,
        ),
        (
            "a deep message",
            Box::new(|_| whole(OK_JSON, &"[".repeat(10_000))),
            HttpFault::Unreadable,
        ),
        (
            "many headers",
            Box::new(move |_| Reply::Whole(format!("{OK_JSON}{headers}\r\n{{}}"))),
            HttpFault::Broken,
        ),
        (
            "no answer",
            Box::new(|_| Reply::Cut(String::new())),
            HttpFault::Broken,
        ),
        (
            "a stream that breaks",
            Box::new(|_| Reply::Cut(format!("{OK_EVENTS}content-length: 9\r\n\r\ndata: {{"))),
            HttpFault::Broken,
        ),
        (
            "a stream without the answer",
            Box::new(|_| events(&[])),
            HttpFault::Broken,
        ),
        (
            "401",
            Box::new(|_| status("401 Unauthorized")),
            HttpFault::Unauthorized(None),
        ),
        (
            "403",
            Box::new(|_| status("403 Forbidden")),
            HttpFault::Forbidden,
        ),
        (
            "404",
            Box::new(|_| status("404 Not Found")),
            HttpFault::Session,
        ),
        (
            "429",
            Box::new(|_| status("429 Slow Down")),
            HttpFault::Status(429),
        ),
        (
            "500",
            Box::new(|_| status("500 Error")),
            HttpFault::Status(500),
        ),
        (
            "a redirect to nowhere",
            Box::new(|_| status("302 Found")),
            HttpFault::Status(302),
        ),
        (
            "a circle",
            Box::new(|_| whole("HTTP/1.1 307 Over There\r\nlocation: /mcp\r\n", "")),
            HttpFault::Rounds,
        ),
    ];
    for (what, reply, fault) in cases {
        let site = calling(reply).await;
        let connection = site.open().await.unwrap();
        let called = call(&connection).await;
        assert_eq!(called, Err(CallError::Http(fault.clone())), "{what}");
        let ends = matches!(fault, HttpFault::TooMuch | HttpFault::Unauthorized(_));
        if ends {
            timeout(DEADLINE, connection.ended()).await.unwrap();
            assert_eq!(connection.fault(), Some(fault), "{what}");
        }
    }
}

#[tokio::test]
async fn an_error_of_the_protocol_is_the_servers_own_word() {
    let site = calling(|asked| {
        let error = json!({ "code": -32602, "message": "no such sum" });
        let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
        whole(
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n",
            &body.to_string(),
        )
    })
    .await;
    let connection = site.open().await.unwrap();
    let refused = CallError::Refused("no such sum".to_owned());
    assert_eq!(call(&connection).await, Err(refused));
}

#[tokio::test]
async fn no_header_goes_to_another_server() {
    let other = Site::new(usual).await;
    let to = other.address.clone();
    let site = calling(move |_| {
        whole(
            &format!("HTTP/1.1 307 Over There\r\nlocation: {to}/mcp\r\n"),
            "",
        )
    })
    .await;
    let connection = site.open().await.unwrap();
    let fault = HttpFault::Redirect;
    assert_eq!(call(&connection).await, Err(CallError::Http(fault)));
    assert!(other.asked().is_empty(), "{:?}", other.asked());
}

#[tokio::test]
async fn a_server_that_answers_every_method_is_spoken_to_in_the_old_form() {
    let site = Site::new(|asked| match asked.is("server/discover") {
        true => whole(OK_JSON, &asked.answer(json!({})).to_string()),
        false => usual(asked),
    })
    .await;
    assert_eq!(site.open().await.unwrap().protocol(), "2025-11-25");
}

#[tokio::test]
async fn a_redirect_to_the_same_server_keeps_the_request() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/mcp" => whole("HTTP/1.1 307 Over There\r\nlocation: /mcp/\r\n", ""),
        _ if asked.is("tools/call") => whole(OK_JSON, &asked.answer(text("3")).to_string()),
        _ => usual(asked),
    })
    .await;
    let connection = site.open().await.unwrap();
    assert_eq!(call(&connection).await, Ok(answered("3")));
}

#[tokio::test]
async fn a_server_that_forgot_the_session_gets_another_one() {
    let forgets = Mutex::new(true);
    let site = calling(
        move |asked| match std::mem::take(&mut *forgets.lock().unwrap()) {
            true => status("404 Not Found"),
            false => whole(OK_JSON, &asked.answer(text("3")).to_string()),
        },
    )
    .await;
    let connection = site.open().await.unwrap();
    assert_eq!(call(&connection).await, Ok(answered("3")));
    let begun = site.asked().iter().filter(|it| it.is("initialize")).count();
    assert_eq!(begun, 2);
}

#[tokio::test]
async fn a_server_that_is_not_there_or_refuses_is_no_connection() {
    let is_fault = |opened: Result<ServerConnection, OpenError>, expected: HttpFault| match opened {
        Err(OpenError::Http(fault)) => assert_eq!(fault, expected),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is open"),
    };
    let site = Site::new(|_| status("401 Unauthorized")).await;
    is_fault(site.open().await, HttpFault::Unauthorized(None));
    let site = Site::new(|_| status("403 Forbidden")).await;
    is_fault(site.open().await, HttpFault::Forbidden);
    let site = Site::new(|_| status("404 Not Found")).await;
    is_fault(site.open().await, HttpFault::Status(404));
    let site = Site::new(|_| status("503 Busy")).await;
    is_fault(site.open().await, HttpFault::Status(503));
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n";
    let site = Site::new(move |_| whole(page, "<p>")).await;
    is_fault(site.open().await, HttpFault::ContentType);
    let wrong = ("A".to_owned(), "b\r\nC: d".to_owned());
    is_fault(
        open(&site.address, vec![wrong]).await,
        HttpFault::Header("A".to_owned()),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    match open(&address, Vec::new()).await.err() {
        Some(OpenError::Http(HttpFault::Unreachable(why))) => {
            assert!(
                why.contains("refused") && !why.contains("127.0.0.1"),
                "{why}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_went_away_ends_the_connection() {
    let site = calling(|asked| whole(OK_JSON, &asked.answer(text("3")).to_string())).await;
    let connection = site.open().await.unwrap();
    drop(site);
    let Err(CallError::Http(fault)) = call(&connection).await else {
        panic!("it is gone");
    };
    // The first call may still meet the old connection.
    assert!(
        matches!(fault, HttpFault::Broken | HttpFault::Unreachable(_)),
        "{fault}"
    );
    call(&connection).await.unwrap_err();
    timeout(DEADLINE, connection.ended()).await.unwrap();
    assert!(matches!(
        connection.fault(),
        Some(HttpFault::Unreachable(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_its_streams_makes_the_client_wait() {
    let (unasked, ended) = (UnaskedMemory::default(), CancellationToken::new());
    // Nothing listens there.
    let url = "http://127.0.0.1:1";
    let endpoint = HttpEndpoint {
        url: url.to_owned(),
        headers: Vec::new(),
        login: None,
    };
    let client = HttpClient::new(http(), &endpoint, unasked, ended).unwrap();
    let since = tokio::time::Instant::now();
    let open = async || {
        let opened = client.get_stream(url.into(), None, None, None, HashMap::new());
        assert!(opened.await.is_err());
        since.elapsed().as_secs()
    };
    let mut waited = Vec::new();
    for _ in 0..10 {
        waited.push(open().await);
    }
    assert_eq!(waited, [0, 0, 0, 1, 3, 7, 15, 31, 61, 91]);
    // After a request of the client, it does not wait.
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let ping = serde_json::from_value(ping).unwrap();
    let sent = client.post_message(url.into(), ping, None, None, HashMap::new());
    assert!(sent.await.is_err());
    assert_eq!(open().await, 91);
}

/// Returns the replies of a server of the newest form, whose subscriptions end at once.
fn newest(asked: &Asked) -> Reply {
    let result = match asked.body["method"].as_str().unwrap_or_default() {
        "server/discover" => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": { "listChanged": true } },
            "ttlMs": 0,
            "cacheScope": "private",
        }),
        "subscriptions/listen" => {
            let about = json!({ "io.modelcontextprotocol/subscriptionId": asked.body["id"] });
            let begun = json!({
                "jsonrpc": "2.0",
                "method": "notifications/subscriptions/acknowledged",
                "params": { "_meta": about, "notifications": { "toolsListChanged": true } },
            });
            return events(&[begun, asked.answer(json!({ "_meta": about }))]);
        }
        _ => return status("202 Accepted"),
    };
    whole(OK_JSON, &asked.answer(result).to_string())
}

#[tokio::test]
async fn a_subscription_that_ends_is_opened_again() {
    let site = Site::new(newest).await;
    let connection = site.open().await.unwrap();
    assert_eq!(connection.protocol(), "2026-07-28");
    let opened = async {
        let is_meant = |it: &Asked| it.is("subscriptions/listen");
        while site.asked().into_iter().filter(is_meant).count() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, opened).await.unwrap();
    // A change between two streams would be missed.
    assert!(connection.changes() > 0);
}

/// A server made with the protocol's crate.
#[derive(Clone)]
struct Adder {
    version: ProtocolVersion,
}

impl ServerHandler for Adder {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        vec![self.version.clone()].into()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object" });
        let schema = schema.as_object().cloned().unwrap_or_default();
        Ok(ListToolsResult::with_all_items(vec![Tool::new(
            "add",
            "Adds.",
            Arc::new(schema),
        )]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, 1.0).with_total(2.0);
            context.peer.notify_progress(progress).await.ok();
        }
        let sum = request.arguments.unwrap_or_default();
        let sum: u64 = sum.values().filter_map(Value::as_u64).sum();
        Ok(CallToolResult::success(vec![ContentBlock::text(sum.to_string())]).into())
    }
}

#[tokio::test]
async fn servers_of_both_forms_made_with_the_protocols_crate_answer() {
    for version in [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28] {
        for json_response in [true, false] {
            let adder = Adder {
                version: version.clone(),
            };
            let mut config = StreamableHttpServerConfig::default();
            config.json_response = json_response;
            config.legacy_session_mode = !json_response;
            let sessions = Arc::new(LocalSessionManager::default());
            let service = StreamableHttpService::new(move || Ok(adder.clone()), sessions, config);
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            let accept = async move {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let service = TowerToHyperService::new(service.clone());
                    let http = hyper::server::conn::http1::Builder::new();
                    tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
                }
            };
            let _accepts = AbortOnDropHandle::new(tokio::spawn(accept));
            let connection = open(&address, Vec::new()).await.unwrap();
            assert_eq!(connection.protocol(), version.to_string());
            let (tools, _) = connection.tools().await.unwrap();
            assert_eq!(tools[0].name, "add");
            let numbers = json!({ "a": 1, "b": 2 })
                .as_object()
                .cloned()
                .unwrap_or_default();
            let (listener, mut events) = call_events();
            let called = connection.call("add", numbers, listener);
            let called = timeout(DEADLINE, called).await.unwrap();
            assert_eq!(called, Ok(answered("3")), "{version} {json_response}");
            assert_eq!(events.progress.borrow_and_update().done, Some(0.5));
        }
    }
}
