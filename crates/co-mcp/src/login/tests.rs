//! Logins at an authorization server made for the tests, and at hostile ones.

use std::sync::{Arc, Mutex};

use oauth2::{PkceCodeChallenge, PkceCodeVerifier};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::requests::RequestFault;
use super::*;
use crate::challenge::Challenge;
use crate::http::HttpEndpoint;
use crate::http::tests::{
    Asked, CLIENT, DEADLINE, OK_JSON, Reply, Site, call, http, status, usual, whole,
};
use crate::http_fault::HttpFault;
use crate::tests::{answered, text};
use crate::{OpenError, ServerConnection};

/// Lets a login reach all hosts but one.
struct Access {
    denied: &'static str,
}

#[async_trait]
impl HostAccess for Access {
    async fn client(&self, url: &Url) -> Result<reqwest::Client, String> {
        match url.host_str() == Some(self.denied) {
            true => Err(format!("a rule denies {}", self.denied)),
            false => Ok(http()),
        }
    }
}

fn access() -> Arc<dyn HostAccess> {
    Arc::new(Access {
        denied: "denied.example",
    })
}

fn server_login(store: &Arc<Memory>) -> ServerLogin {
    ServerLogin {
        store: Arc::clone(store) as Arc<_>,
        access: access(),
    }
}

/// Keeps a login in memory.
#[derive(Default)]
struct Memory {
    kept: Mutex<Option<KeptLogin>>,
    alone: Arc<tokio::sync::Mutex<()>>,
}

#[async_trait]
impl LoginStore for Memory {
    async fn load(&self) -> io::Result<Option<KeptLogin>> {
        Ok(self.kept.lock().unwrap().clone())
    }

    async fn save(&self, login: &KeptLogin) -> io::Result<()> {
        *self.kept.lock().unwrap() = Some(login.clone());
        Ok(())
    }

    async fn lock(&self) -> io::Result<Box<dyn Send>> {
        Ok(Box::new(Arc::clone(&self.alone).lock_owned().await))
    }
}

/// The tokens that the authorization server has given, and the one that the tool server takes.
#[derive(Default)]
struct Given {
    count: usize,
    /// The seconds for which the next token holds.
    lasts: Option<u64>,
    /// The tool server takes no token.
    takes_none: bool,
}

/// A tool server that is its own authorization server.
struct Place {
    site: Site,
    given: Arc<Mutex<Given>>,
}

/// Changes the answers of a place.
type Change = Box<dyn Fn(&Asked, &str) -> Option<Reply> + Send + Sync>;

fn as_json(body: &Value) -> Reply {
    whole(OK_JSON, &body.to_string())
}

/// Returns what an authorization server at an address says about itself.
fn metadata(base: &str) -> Value {
    json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "registration_endpoint": format!("{base}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "token_endpoint_auth_methods_supported": ["none"],
    })
}

const PROTECTED: &str = "/.well-known/oauth-protected-resource/mcp";
const METADATA: &str = "/.well-known/oauth-authorization-server";

impl Place {
    async fn new() -> Self {
        Self::changed(Box::new(|_, _| None)).await
    }

    async fn changed(change: Change) -> Self {
        let given = Arc::new(Mutex::new(Given::default()));
        let of_site = Arc::clone(&given);
        let site = Site::new(move |asked| {
            let base = format!("http://{}", asked.header("host").unwrap());
            let changed = change(asked, &base);
            changed.unwrap_or_else(|| answer(asked, &base, &of_site))
        });
        Self {
            site: site.await,
            given,
        }
    }

    fn url(&self) -> String {
        format!("{}/mcp", self.site.address)
    }

    /// Returns the number of requests for a path.
    fn count(&self, path: &str) -> usize {
        self.site
            .asked()
            .iter()
            .filter(|it| it.path == path)
            .count()
    }

    async fn open(&self, store: Option<&Arc<Memory>>) -> Result<ServerConnection, OpenError> {
        let login = store.map(server_login);
        let endpoint = HttpEndpoint {
            url: self.url(),
            headers: Vec::new(),
            login,
        };
        let opened = ServerConnection::open_http(http(), &endpoint, CLIENT);
        timeout(DEADLINE, opened).await.unwrap()
    }

    /// Returns the challenge of the server.
    async fn challenge(&self) -> Challenge {
        match self.open(None).await {
            Err(OpenError::Http(HttpFault::Unauthorized(Some(challenge)))) => challenge,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it wants no login"),
        }
    }

    async fn begin(&self) -> Result<OpenLogin, LoginFault> {
        let client = LoginClient {
            name: "co".to_owned(),
            ..LoginClient::default()
        };
        self.begin_as(client).await
    }

    async fn begin_as(&self, client: LoginClient) -> Result<OpenLogin, LoginFault> {
        let challenge = self.challenge().await;
        let server = self.url();
        let begun = OpenLogin::begin(LoginRequest {
            server: &server,
            challenge: Some(&challenge),
            client,
            earlier: None,
            redirect: "http://127.0.0.1:7/callback",
            access: access(),
        });
        timeout(DEADLINE, begun).await.unwrap()
    }

    async fn log_in(&self) -> Arc<Memory> {
        let login = self.begin().await.unwrap();
        let kept = login.finish(&self.callback(&login)).await.unwrap();
        let store = Arc::new(Memory::default());
        store.save(&kept).await.unwrap();
        store
    }

    /// Logs in with a token that ends at once. The next one lasts.
    async fn log_in_until_now(&self) -> Arc<Memory> {
        self.given.lock().unwrap().lasts = Some(0);
        let store = self.log_in().await;
        self.given.lock().unwrap().lasts = Some(3600);
        store
    }

    /// Returns the address at which the browser ends.
    fn callback(&self, login: &OpenLogin) -> String {
        let (state, issuer) = (login.state(), &self.site.address);
        format!("http://127.0.0.1:7/callback?code=the-code&state={state}&iss={issuer}")
    }
}

/// Returns a part of a form or of the query of an address.
fn part(text: &str, name: &str) -> Option<String> {
    let query = text.rsplit('?').next().unwrap();
    let url = Url::parse(&format!("http://x/?{query}")).unwrap();
    let mut parts = url.query_pairs();
    let found = parts.find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

fn answer(asked: &Asked, base: &str, given: &Mutex<Given>) -> Reply {
    let mut given = given.lock().unwrap();
    match asked.path.as_str() {
        PROTECTED => as_json(&json!({
            "resource": format!("{base}/mcp"),
            "authorization_servers": [base],
            "scopes_supported": ["read", "write"],
        })),
        METADATA => as_json(&metadata(base)),
        "/register" => {
            let body =
                json!({ "client_id": "the-client", "redirect_uris": asked.body["redirect_uris"] });
            whole(
                "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\n",
                &body.to_string(),
            )
        }
        "/token" => {
            given.count += 1;
            let mut tokens = json!({
                "access_token": format!("access-{}", given.count),
                "refresh_token": format!("refresh-{}", given.count),
                "token_type": "Bearer",
            });
            if let Some(lasts) = given.lasts {
                tokens["expires_in"] = lasts.into();
            }
            as_json(&tokens)
        }
        "/mcp" => {
            let wanted = format!("Bearer access-{}", given.count);
            let is_known = given.count > 0 && asked.header("authorization") == Some(&wanted);
            match is_known && !given.takes_none {
                true if asked.is("tools/call") => {
                    whole(OK_JSON, &asked.answer(text("3")).to_string())
                }
                true => usual(asked),
                false => unauthorized(base),
            }
        }
        _ => status("404 Not Found"),
    }
}

fn unauthorized(base: &str) -> Reply {
    let challenge = format!("www-authenticate: Bearer resource_metadata=\"{base}{PROTECTED}\"\r\n");
    whole(&format!("HTTP/1.1 401 Unauthorized\r\n{challenge}"), "")
}

#[tokio::test]
async fn a_login_is_found_and_its_token_goes_with_each_request() {
    let place = Place::new().await;
    let login = place.begin().await.unwrap();
    let page = login.page();
    assert!(
        page.starts_with(&format!("{}/authorize?", place.site.address)),
        "{page}"
    );
    assert_eq!(format!("http://{}", login.host()), place.site.address);
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "the-client"),
        ("code_challenge_method", "S256"),
        ("redirect_uri", "http://127.0.0.1:7/callback"),
        ("scope", "read write"),
        ("resource", &place.url()),
        ("state", login.state()),
    ] {
        assert_eq!(part(page, name).as_deref(), Some(value), "{name}");
    }
    let kept = login.finish(&place.callback(&login)).await.unwrap();
    assert_eq!(
        (kept.server(), kept.issuer()),
        (&*place.url(), &*place.site.address)
    );
    assert_eq!(kept.secrets(), ["access-1", "refresh-1"]);
    let asked = place.site.asked();
    let asked = asked.iter().find(|it| it.path == "/token").unwrap();
    let form = |name: &str| part(&asked.text, name).unwrap();
    assert_eq!(
        (&*form("code"), &*form("resource")),
        ("the-code", &*place.url())
    );
    let verifier = PkceCodeVerifier::new(form("code_verifier"));
    let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
    assert_eq!(
        part(page, "code_challenge").as_deref(),
        Some(challenge.as_str())
    );
    // As a file has it.
    let kept = serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap();
    let store = Arc::new(Memory::default());
    store.save(&kept).await.unwrap();
    let connection = place.open(Some(&store)).await.unwrap();
    assert_eq!(call(&connection).await, Ok(answered("3")));
}

#[tokio::test]
async fn a_client_of_the_person_is_not_registered() {
    let place = Place::new().await;
    let client = LoginClient {
        id: Some("mine".to_owned()),
        secret: Some("hunter2".to_owned()),
        scopes: vec!["admin".to_owned()],
        ..LoginClient::default()
    };
    let login = place.begin_as(client).await.unwrap();
    assert_eq!(part(login.page(), "client_id").as_deref(), Some("mine"));
    assert_eq!(part(login.page(), "scope").as_deref(), Some("admin"));
    assert_eq!(place.count("/register"), 0);
    let kept = login.finish(&place.callback(&login)).await.unwrap();
    assert!(kept.secrets().contains(&"hunter2".to_owned()));
    assert_eq!(kept.scopes(), ["admin"]);
}

#[tokio::test]
async fn the_id_and_secret_of_a_client_go_only_to_the_server_that_gave_them() {
    let place = Place::new().await;
    let client = |issuer: &str| LoginClient {
        id: Some("mine".to_owned()),
        secret: Some("hunter2".to_owned()),
        issuer: Some(issuer.to_owned()),
        ..LoginClient::default()
    };
    let login = place.begin_as(client(&format!("{}/", place.site.address)));
    assert!(login.await.is_ok());
    let other = place.begin_as(client("https://other.example")).await;
    let fault = LoginFault::OtherIssuer(place.site.address.clone());
    assert_eq!(other.err(), Some(fault));
}

#[tokio::test]
async fn only_scopes_of_the_form_of_oauth_are_asked_for() {
    let place = Place::changed(Box::new(|asked, base| {
        (asked.path == PROTECTED).then(|| {
            as_json(&json!({
                "resource": format!("{base}/mcp"),
                "authorization_servers": [base],
                "scopes_supported": ["read", "x\n\nco has checked this login", "a b", "\u{202e}x", "\u{200b}", "read"],
            }))
        })
    }))
    .await;
    let login = place.begin().await.unwrap();
    assert_eq!(login.scopes(), ["read"]);
    assert_eq!(part(login.page(), "scope").as_deref(), Some("read"));
}

#[tokio::test]
async fn a_key_in_the_address_of_the_server_is_in_no_request_of_the_login() {
    let place = Place::changed(Box::new(|asked, _| {
        (asked.path == PROTECTED).then(|| status("404 Not Found"))
    }))
    .await;
    let server = format!("{}?key=hunter2", place.url());
    let begun = OpenLogin::begin(LoginRequest {
        server: &server,
        challenge: None,
        client: LoginClient::default(),
        earlier: None,
        redirect: "http://127.0.0.1:7/callback",
        access: access(),
    });
    let login = begun.await.unwrap();
    assert!(!login.page().contains("hunter2"), "{}", login.page());
    login.finish(&place.callback(&login)).await.unwrap();
    let asked = place.site.asked();
    assert!(asked.iter().all(|it| !it.text.contains("hunter2")));
}

#[tokio::test]
async fn a_renewal_that_nobody_waits_for_any_more_is_kept() {
    let place = Place::new().await;
    let store = place.log_in_until_now().await;
    let url = Url::parse(&place.url()).unwrap();
    let tokens = super::Tokens::new(server_login(&store), url);
    let held = Arc::clone(&store.alone).lock_owned().await;
    // It waits for the lock of the login, and is dropped.
    assert!(
        futures::future::poll_immediate(tokens.token())
            .await
            .is_none()
    );
    drop(held);
    let renewed = async {
        loop {
            let kept = store.load().await.unwrap().unwrap();
            if kept.secrets().contains(&"refresh-2".to_owned()) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, renewed).await.unwrap();
}

#[tokio::test]
async fn a_token_that_ends_is_renewed_before_a_request() {
    let place = Place::new().await;
    let store = place.log_in_until_now().await;
    let connection = place.open(Some(&store)).await.unwrap();
    assert_eq!(call(&connection).await, Ok(answered("3")));
    assert_eq!(place.count("/token"), 2);
    let asked = place.site.asked();
    let renewal = asked
        .iter()
        .filter(|it| it.path == "/token")
        .nth(1)
        .unwrap();
    assert_eq!(
        part(&renewal.text, "refresh_token").as_deref(),
        Some("refresh-1")
    );
    assert_eq!(part(&renewal.text, "resource"), Some(place.url()));
    let kept = store.load().await.unwrap().unwrap();
    assert_eq!(kept.secrets(), ["access-2", "refresh-2"]);
}

/// Makes a token look as if it came long ago.
async fn age(store: &Memory) {
    let mut kept = store.load().await.unwrap().unwrap();
    kept.credentials.token_received_at = Some(1);
    store.save(&kept).await.unwrap();
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_for_all_requests() {
    let place = Place::new().await;
    let store = place.log_in().await;
    let connection = place.open(Some(&store)).await.unwrap();
    age(&store).await;
    // The server takes the next token only.
    place.given.lock().unwrap().count = 5;
    let calls = (call(&connection), call(&connection), call(&connection));
    let (one, two, three) = tokio::join!(calls.0, calls.1, calls.2);
    assert_eq!(
        [one, two, three],
        [Ok(answered("3")), Ok(answered("3")), Ok(answered("3"))]
    );
    assert_eq!(place.count("/token"), 2);
}

#[tokio::test]
async fn a_server_that_refuses_every_token_gets_two() {
    let place = Place::new().await;
    let store = place.log_in().await;
    age(&store).await;
    place.given.lock().unwrap().takes_none = true;
    let before = place.count("/mcp");
    for _ in 0..3 {
        let refused = place.open(Some(&store)).await.err();
        assert!(
            matches!(
                refused,
                Some(OpenError::Http(HttpFault::Unauthorized(Some(_))))
            ),
            "{refused:?}"
        );
    }
    // One for the login, one renewal: the new token is young.
    assert_eq!(place.count("/token"), 2);
    assert_eq!(place.count("/mcp") - before, 4);
}

#[tokio::test]
async fn a_refused_renewal_forgets_the_tokens() {
    let place = Place::changed(Box::new(|asked, _| {
        let is_renewal = asked.path == "/token" && asked.text.contains("grant_type=refresh_token");
        let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n";
        is_renewal.then(|| whole(head, r#"{"error":"invalid_grant"}"#))
    }))
    .await;
    let store = place.log_in().await;
    age(&store).await;
    place.given.lock().unwrap().takes_none = true;
    for _ in 0..2 {
        let refused = place.open(Some(&store)).await.err();
        assert!(
            matches!(refused, Some(OpenError::Http(HttpFault::Unauthorized(_)))),
            "{refused:?}"
        );
    }
    assert_eq!(place.count("/token"), 2);
    assert!(!store.load().await.unwrap().unwrap().has_token());
}

#[tokio::test]
async fn a_login_is_for_one_address() {
    let (place, other) = (Place::new().await, Place::new().await);
    let store = place.log_in().await;
    other.given.lock().unwrap().count = 1;
    let refused = other.open(Some(&store)).await.err();
    assert!(
        matches!(refused, Some(OpenError::Http(HttpFault::Unauthorized(_)))),
        "{refused:?}"
    );
    assert!(
        other
            .site
            .asked()
            .iter()
            .all(|it| it.header("authorization").is_none())
    );
}

#[tokio::test]
async fn a_server_may_want_more_rights() {
    let place = Place::changed(Box::new(|asked, _| {
        let head = "HTTP/1.1 403 Forbidden\r\nwww-authenticate: Bearer error=\"insufficient_scope\", scope=\"admin\"\r\n";
        asked.is("tools/call").then(|| whole(head, ""))
    }))
    .await;
    let store = place.log_in().await;
    let connection = place.open(Some(&store)).await.unwrap();
    let called = call(&connection).await;
    let Err(crate::CallError::Http(HttpFault::Scope(challenge))) = called else {
        panic!("{called:?}");
    };
    let (server, kept) = (place.url(), store.load().await.unwrap().unwrap());
    let begun = OpenLogin::begin(LoginRequest {
        server: &server,
        challenge: Some(&challenge),
        client: LoginClient::default(),
        earlier: Some(&kept),
        redirect: "http://127.0.0.1:7/callback",
        access: access(),
    });
    let login = begun.await.unwrap();
    assert_eq!(
        part(login.page(), "scope").as_deref(),
        Some("admin read write")
    );
}

#[tokio::test]
async fn only_the_answer_to_this_login_counts() {
    let place = Place::new().await;
    let login = place.begin().await.unwrap();
    let right = place.callback(&login);
    let state = login.state();
    for wrong in [
        "no address".to_owned(),
        "http://127.0.0.1:7/callback?code=x&state=other".to_owned(),
        "http://127.0.0.1:7/callback?code=x".to_owned(),
        format!("http://127.0.0.1:7/callback?state={state}"),
        format!("{right}&state=other"),
        format!("{right}&code=other"),
    ] {
        assert_eq!(
            login.finish(&wrong).await.err(),
            Some(LoginFault::State),
            "{wrong}"
        );
    }
    let start = format!("http://127.0.0.1:7/callback?code=x&state={state}");
    for wrong in [start.clone(), format!("{start}&iss=https://other.example")] {
        assert_eq!(
            login.finish(&wrong).await.err(),
            Some(LoginFault::Issuer),
            "{wrong}"
        );
    }
    let denied = format!("http://127.0.0.1:7/callback?error=access_denied&state={state}");
    let refused = LoginFault::Refused("access_denied".to_owned());
    assert_eq!(login.finish(&denied).await.err(), Some(refused));
    assert_eq!(place.count("/token"), 0);
    login.finish(&right).await.unwrap();
}

/// Returns a change of what an authorization server says about itself.
fn with(change: impl Fn(&mut Value, &str) + Send + Sync + 'static) -> Change {
    Box::new(move |asked, base| {
        (asked.path == METADATA).then(|| {
            let mut told = metadata(base);
            change(&mut told, base);
            as_json(&told)
        })
    })
}

fn field(name: &'static str, value: Value) -> Change {
    with(move |told, _| told[name] = value.clone())
}

#[tokio::test]
async fn hostile_servers_get_no_login() {
    let not_encrypted =
        |host: &str| LoginFault::Request(RequestFault::NotEncrypted(host.to_owned()));
    let too_large = LoginFault::Request(RequestFault::TooLarge("127.0.0.1".to_owned()));
    let endless = |path: &'static str| -> Change {
        Box::new(move |asked, _| {
            (asked.path == path).then(|| Reply::Endless(format!("{OK_JSON}\r\n"), "[[[["))
        })
    };
    let denied = LoginFault::Request(RequestFault::Denied(
        "a rule denies denied.example".to_owned(),
    ));
    let cases: Vec<(&str, Change, LoginFault)> = vec![
        (
            "another issuer",
            field("issuer", "https://other.example".into()),
            LoginFault::Issuer,
        ),
        (
            "no issuer",
            field("issuer", Value::Null),
            LoginFault::Issuer,
        ),
        (
            "a document of another place that speaks for an issuer",
            Box::new(|asked, base| {
                let at = format!("/x{METADATA}");
                let protected = json!({
                    "resource": format!("{base}/mcp"),
                    "authorization_servers": [format!("{base}{at}")],
                });
                let mut told = metadata(base);
                told["issuer"] = "https://bank.example".into();
                match &*asked.path {
                    PROTECTED => Some(as_json(&protected)),
                    path => (path == at).then(|| as_json(&told)),
                }
            }),
            LoginFault::Issuer,
        ),
        (
            "a page with a resource of its own",
            with(|told, base| {
                told["authorization_endpoint"] = format!("{base}/authorize?resource=x").into();
            }),
            LoginFault::Page,
        ),
        (
            "a page with a request of its own",
            with(|told, base| {
                told["authorization_endpoint"] = format!("{base}/authorize?request_uri=x").into();
            }),
            LoginFault::Page,
        ),
        (
            "a page with rights of its own",
            Box::new(|asked, base| {
                let mut told = metadata(base);
                told["authorization_endpoint"] = format!("{base}/authorize?scope=admin").into();
                let protected =
                    json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] });
                match &*asked.path {
                    PROTECTED => Some(as_json(&protected)),
                    METADATA => Some(as_json(&told)),
                    _ => None,
                }
            }),
            LoginFault::Page,
        ),
        (
            "a page with rights beside the scopes",
            with(|told, base| {
                told["authorization_endpoint"] =
                    format!("{base}/authorize?authorization_details=x").into();
            }),
            LoginFault::Page,
        ),
        (
            "a page with a login that looks like a host",
            with(|told, base| {
                let host = base.trim_start_matches("http://");
                told["authorization_endpoint"] = format!("http://bank.example@{host}/").into();
            }),
            LoginFault::Page,
        ),
        (
            "a page that is too long",
            with(|told, base| {
                let long = "x".repeat(9_000);
                told["authorization_endpoint"] = format!("{base}/authorize?a={long}").into();
            }),
            LoginFault::LongPage,
        ),
        (
            "a page at a name that may lead elsewhere",
            field("authorization_endpoint", "http://x.localhost/".into()),
            not_encrypted("x.localhost"),
        ),
        (
            "a hundred authorization servers",
            Box::new(|asked, base| {
                let servers: Vec<String> = (0..100).map(|it| format!("{base}/{it}")).collect();
                let told =
                    json!({ "resource": format!("{base}/mcp"), "authorization_servers": servers });
                match &*asked.path {
                    PROTECTED => Some(as_json(&told)),
                    METADATA => Some(status("404 Not Found")),
                    _ => None,
                }
            }),
            LoginFault::Request(RequestFault::TooMany),
        ),
        (
            "no PKCE",
            field("code_challenge_methods_supported", Value::Null),
            LoginFault::NoPkce,
        ),
        (
            "plain PKCE",
            field("code_challenge_methods_supported", json!(["plain"])),
            LoginFault::NoPkce,
        ),
        (
            "a page without TLS",
            field("authorization_endpoint", "http://other.example/".into()),
            not_encrypted("other.example"),
        ),
        (
            "a page of a program",
            field("authorization_endpoint", "file:///etc/passwd".into()),
            not_encrypted(""),
        ),
        (
            "a denied page",
            field("authorization_endpoint", "https://denied.example/".into()),
            denied.clone(),
        ),
        (
            "a denied registration",
            field("registration_endpoint", "https://denied.example/".into()),
            denied,
        ),
        (
            "a registration without TLS",
            field("registration_endpoint", "http://other.example/".into()),
            not_encrypted("other.example"),
        ),
        (
            "1 GB about the resource",
            endless(PROTECTED),
            too_large.clone(),
        ),
        ("1 GB about the login", endless(METADATA), too_large.clone()),
        ("1 GB of a registration", endless("/register"), too_large),
        (
            "a redirect of the registration",
            Box::new(|asked, _| {
                let head = "HTTP/1.1 307 Over There\r\nlocation: https://other.example/\r\n";
                (asked.path == "/register").then(|| whole(head, ""))
            }),
            LoginFault::Refused("Registration failed: HTTP 307 Temporary Redirect: ".to_owned()),
        ),
    ];
    for (what, change, expected) in cases {
        let place = Place::changed(change).await;
        assert_eq!(place.begin().await.err(), Some(expected), "{what}");
    }
}

#[tokio::test]
async fn a_distant_server_without_tls_gets_no_login() {
    let begun = OpenLogin::begin(LoginRequest {
        server: "http://tools.example/mcp",
        challenge: None,
        client: LoginClient::default(),
        earlier: None,
        redirect: "http://127.0.0.1:7/callback",
        access: access(),
    });
    let fault = RequestFault::NotEncrypted("tools.example".to_owned());
    assert_eq!(begun.await.err(), Some(LoginFault::Request(fault)));
}

#[tokio::test]
async fn what_is_for_another_server_is_no_login() {
    let place = Place::changed(Box::new(|asked, base| {
        let told = json!({ "resource": "https://bank.example/", "authorization_servers": [base] });
        (asked.path == PROTECTED).then(|| as_json(&told))
    }))
    .await;
    let fault = place.begin().await.err().unwrap();
    assert!(
        matches!(&fault, LoginFault::Metadata(it) if it.contains("bank.example")),
        "{fault}"
    );
    let place = Place::changed(Box::new(|asked, _| {
        matches!(&*asked.path, PROTECTED | METADATA).then(|| status("404 Not Found"))
    }))
    .await;
    assert_eq!(place.begin().await.err(), Some(LoginFault::NoLogin));
}

#[tokio::test]
async fn a_token_comes_only_from_where_a_login_may_go() {
    let not_encrypted = RequestFault::NotEncrypted("other.example".to_owned());
    let too_large = RequestFault::TooLarge("127.0.0.1".to_owned());
    let kind: Change = Box::new(|asked, _| {
        let tokens = json!({ "access_token": "a", "token_type": "mac" });
        (asked.path == "/token").then(|| as_json(&tokens))
    });
    let unread: Change = Box::new(|asked, _| {
        let tokens = json!({ "access_token": 12345678 });
        (asked.path == "/token").then(|| as_json(&tokens))
    });
    let endless: Change = Box::new(|asked, _| {
        (asked.path == "/token").then(|| Reply::Endless(format!("{OK_JSON}\r\n"), "[[[["))
    });
    let cases = [
        (
            field("token_endpoint", "http://other.example/".into()),
            LoginFault::Request(not_encrypted),
        ),
        (endless, LoginFault::Request(too_large)),
        (kind, LoginFault::TokenKind),
        (unread, LoginFault::NoToken),
    ];
    for (change, expected) in cases {
        let place = Place::changed(change).await;
        let login = place.begin().await.unwrap();
        let finished = login.finish(&place.callback(&login)).await;
        assert_eq!(finished.err(), Some(expected));
    }
}

#[tokio::test]
async fn a_distant_server_sends_no_login_to_this_machine() {
    let requests = |server: &str| {
        let server = Url::parse(server).unwrap();
        requests::LoginRequests::new(access(), server)
    };
    let distant = requests("https://tools.example/mcp");
    for local in [
        "http://127.0.0.1:1/",
        "https://localhost/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://0.0.0.0/",
        "http://a.localhost./",
    ] {
        let client = distant.client(&Url::parse(local).unwrap()).await;
        assert!(matches!(client, Err(RequestFault::Loopback(_))), "{local}");
    }
    let other = Url::parse("https://login.example/").unwrap();
    distant.client(&other).await.unwrap();
    requests("http://127.0.0.1:1/")
        .client(&other)
        .await
        .unwrap();
}

/// Sends a request to an address as a browser does, and returns the status.
async fn visit(address: &str, method: &str) -> String {
    let url = Url::parse(address).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", url.port().unwrap()))
        .await
        .unwrap();
    let target = format!("{}?{}", url.path(), url.query().unwrap());
    let request = format!("{method} {target} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn the_listener_waits_for_the_browser_of_the_login() {
    let listener = RedirectListener::bind(None).await.unwrap();
    let base = listener.address();
    let wrong = async {
        // Browsers connect in advance.
        let _silent = TcpStream::connect(
            base.trim_start_matches("http://")
                .trim_end_matches("/callback"),
        )
        .await
        .unwrap();
        assert_eq!(
            visit(&format!("{base}?state=other&code=x"), "GET").await,
            "400"
        );
        assert_eq!(
            visit(&format!("{base}?state=one&code=x"), "POST").await,
            "404"
        );
        assert_eq!(
            visit(&format!("{base}/x?state=one&code=x"), "GET").await,
            "404"
        );
        assert_eq!(
            visit(&format!("{base}?state=one&code=x"), "GET").await,
            "200"
        );
    };
    let found = async { tokio::join!(listener.next("one"), wrong).0 };
    let found = timeout(DEADLINE, found).await.unwrap();
    assert_eq!(found, format!("{base}?state=one&code=x"));
}
