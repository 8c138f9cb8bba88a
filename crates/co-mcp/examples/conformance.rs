//! A client for the protocol's conformance tests. It connects to the address in its last argument, logs in if the server wants that,
//! calls each tool once, and answers each form with the form's default values. `scripts/test_agents.py` runs it.

use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use co_mcp::{
    CallError, CallEvents, Challenge, ClientName, HostAccess, HttpEndpoint, HttpFault, KeptLogin,
    LoginClient, LoginRequest, LoginStore, OpenError, OpenLogin, QuestionReply, ServerConnection,
    ServerLogin, ServerQuestion, ServerTool, call_events,
};
use reqwest::Url;
use reqwest::header::LOCATION;
use serde_json::{Map, Value, json};

const CLIENT: ClientName = ClientName {
    name: "co",
    version: env!("CARGO_PKG_VERSION"),
};

/// The most logins. A person would give up too.
const MOST_LOGINS: usize = 2;

/// The address to which the browser would come back. Nothing listens there.
const REDIRECT: &str = "http://127.0.0.1:3000/callback";

/// The client of the tests that is a document at an address.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().next_back().unwrap_or_default();
    let person = Arc::new(Person {
        http: client()?,
        kept: Mutex::default(),
    });
    let login = ServerLogin {
        store: Arc::clone(&person) as Arc<_>,
        access: Arc::clone(&person) as Arc<_>,
    };
    let endpoint = HttpEndpoint {
        url,
        headers: Vec::new(),
        login: Some(login),
    };
    for _ in 0..MOST_LOGINS {
        match work(&person, &endpoint).await? {
            None => return Ok(()),
            Some(challenge) => person.log_in(&endpoint.url, &challenge).await?,
        }
    }
    match work(&person, &endpoint).await? {
        None => Ok(()),
        Some(_) => Err("the server wants a login again and again".into()),
    }
}

fn client() -> reqwest::Result<reqwest::Client> {
    let _again = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    http.no_proxy().tls_certs_only([]).build()
}

/// Connects and calls each tool. Returns the server's words about a login if it wants one.
async fn work(
    person: &Person,
    endpoint: &HttpEndpoint,
) -> Result<Option<Challenge>, Box<dyn Error>> {
    let opened = ServerConnection::open_http(person.http.clone(), endpoint, CLIENT).await;
    let connection = match opened {
        Ok(connection) => connection,
        Err(OpenError::Http(HttpFault::Unauthorized(Some(challenge)))) => {
            return Ok(Some(challenge));
        }
        Err(error) => return Err(error.into()),
    };
    match use_tools(&connection).await {
        Ok(()) => Ok(None),
        Err(CallError::Http(
            HttpFault::Unauthorized(Some(challenge)) | HttpFault::Scope(challenge),
        )) => Ok(Some(challenge)),
        Err(error) => Err(error.into()),
    }
}

async fn use_tools(connection: &ServerConnection) -> Result<(), CallError> {
    let (tools, _) = connection.tools().await?;
    for tool in &tools {
        call(connection, tool).await?;
    }
    Ok(())
}

/// A person whose login page asks nothing, and the login that they have.
struct Person {
    http: reqwest::Client,
    kept: Mutex<Option<KeptLogin>>,
}

impl Person {
    async fn log_in(
        self: &Arc<Self>,
        url: &str,
        challenge: &Challenge,
    ) -> Result<(), Box<dyn Error>> {
        let earlier = self.load().await?;
        let login = OpenLogin::begin(LoginRequest {
            server: url,
            challenge: Some(challenge),
            client: login_client(),
            earlier: earlier.as_ref(),
            redirect: REDIRECT,
            access: Arc::clone(self) as Arc<_>,
        });
        let login = login.await?;
        let page = self.http.get(login.page()).send().await?;
        let ended_at = page.headers().get(LOCATION).ok_or("no redirect")?;
        let kept = login.finish(ended_at.to_str()?).await?;
        Ok(self.save(&kept).await?)
    }
}

/// Returns the client as the tests say in their variables.
fn login_client() -> LoginClient {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let context: Value =
        serde_json::from_str(&variable("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    let given = |name: &str| context[name].as_str().map(str::to_owned);
    let is_document = variable("MCP_CONFORMANCE_SCENARIO") == "auth/basic-cimd";
    LoginClient {
        name: CLIENT.name.to_owned(),
        id: given("client_id").or(is_document.then(|| DOCUMENT.to_owned())),
        secret: given("client_secret"),
        ..LoginClient::default()
    }
}

#[async_trait]
impl HostAccess for Person {
    async fn client(&self, _: &Url) -> Result<reqwest::Client, String> {
        Ok(self.http.clone())
    }
}

#[async_trait]
impl LoginStore for Person {
    async fn load(&self) -> io::Result<Option<KeptLogin>> {
        Ok(self.kept.lock().map_err(|_| io::ErrorKind::Other)?.clone())
    }

    async fn save(&self, login: &KeptLogin) -> io::Result<()> {
        *self.kept.lock().map_err(|_| io::ErrorKind::Other)? = Some(login.clone());
        Ok(())
    }

    async fn lock(&self) -> io::Result<Box<dyn Send>> {
        Ok(Box::new(()))
    }
}

/// Calls a tool, and answers the forms that the server sends during the call.
async fn call(connection: &ServerConnection, tool: &ServerTool) -> Result<(), CallError> {
    let (listener, mut events) = call_events();
    let called = connection.call(&tool.name, arguments(&tool.schema), listener);
    tokio::pin!(called);
    loop {
        let CallEvents { questions, .. } = &mut events;
        tokio::select! {
            answer = &mut called => {
                answer?;
                return Ok(());
            }
            Some(question) = questions.recv() => {
                let reply = QuestionReply::Accept(defaults(&question));
                question.answer(reply);
            }
        }
    }
}

/// Makes arguments that match a schema.
fn arguments(schema: &Map<String, Value>) -> Map<String, Value> {
    let argument = |(name, field): (&String, &Value)| {
        let value = match field["type"].as_str() {
            Some("number" | "integer") => json!(2),
            Some("boolean") => json!(true),
            _ => json!("text"),
        };
        (name.clone(), value)
    };
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.into_iter().flatten().map(argument).collect()
}

/// Returns the default values of a form.
fn defaults(question: &ServerQuestion) -> Map<String, Value> {
    let fields = question.schema["properties"].as_object();
    let default = |(name, field): (&String, &Value)| {
        let value = field.get("default")?.clone();
        Some((name.clone(), value))
    };
    fields.into_iter().flatten().filter_map(default).collect()
}
