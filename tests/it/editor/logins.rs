//! Logins at tool servers over HTTP, by a browser that the test plays.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::scene::Scene;
use crate::support::http::{Reply, Request, Response, Server};
use crate::support::workspace::Workspace;

/// The tokens of the login.
const TOKEN: &str = "hunter2-the-access";
const RENEWAL: &str = "hunter2-the-refresh";

/// A tool server that is its own authorization server.
struct Place {
    server: Server,
    /// The server takes no token any more.
    revoked: Arc<AtomicBool>,
}

impl Place {
    fn start() -> Self {
        let revoked = Arc::new(AtomicBool::new(false));
        let is_revoked = Arc::clone(&revoked);
        let server =
            Server::start(move |asked, _| answer(asked, is_revoked.load(Ordering::SeqCst)));
        Self { server, revoked }
    }

    /// Returns the number of requests for a path.
    fn count(&self, path: &str) -> usize {
        let received = self.server.received();
        received.iter().filter(|it| it.path == path).count()
    }

    fn settings(&self) -> Value {
        json!({ "mcp_servers": { "hub": { "url": format!("{}/mcp", self.server.url()) } } })
    }

    fn scene(&self) -> Scene {
        let scene = Scene::in_workspace(Workspace::new(), self.settings(), &[]);
        // The browser of the person.
        let browser = "vim.ui.open = function(address) co_opened = address return {} end";
        scene.lua(browser, json!([]));
        scene
    }
}

fn answer(asked: &Request, is_revoked: bool) -> Response {
    let base = format!("http://{}", asked.header("host").unwrap());
    match asked.path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => Response::json(
            200,
            &json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] }),
        ),
        "/.well-known/oauth-authorization-server" => Response::json(
            200,
            &json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "code_challenge_methods_supported": ["S256"],
            }),
        ),
        "/register" => Response::json(201, &json!({ "client_id": "c", "redirect_uris": [] })),
        "/token" if is_revoked => Response::json(400, &json!({ "error": "invalid_grant" })),
        "/token" => Response::json(
            200,
            &json!({ "access_token": TOKEN, "refresh_token": RENEWAL, "token_type": "Bearer" }),
        ),
        "/mcp"
            if is_revoked || asked.header("authorization") != Some(&format!("Bearer {TOKEN}")) =>
        {
            let about = format!(
                "Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\""
            );
            Response::new(401, "text/plain", Vec::new()).header("www-authenticate", &about)
        }
        "/mcp" => tools(asked),
        _ => Response::new(404, "text/plain", Vec::new()),
    }
}

fn tools(asked: &Request) -> Response {
    let result = match asked.body["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "scripted", "version": "3" },
        }),
        "tools/list" => {
            json!({ "tools": [{ "name": "add", "inputSchema": { "type": "object" } }] })
        }
        "tools/call" => {
            json!({ "content": [{ "type": "text", "text": format!("3 for {TOKEN}") }] })
        }
        "server/discover" => return Response::new(400, "text/plain", Vec::new()),
        _ if asked.method == "GET" => return Response::new(405, "text/plain", Vec::new()),
        _ => return Response::new(202, "text/plain", Vec::new()),
    };
    let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result });
    Response::json(200, &body)
}

/// Returns a part of the query of an address, which has no characters that are escaped otherwise.
fn part(address: &str, name: &str) -> String {
    let query = address.split('?').nth(1).unwrap();
    let mut parts = query.split('&').filter_map(|it| it.split_once('='));
    let (_, value) = parts.find(|(key, _)| *key == name).unwrap();
    value.replace("%3A", ":").replace("%2F", "/")
}

/// Returns the address at which the browser ends after this login page.
fn end_of(page: &str) -> String {
    format!(
        "{}?code=the-code&state={}",
        part(page, "redirect_uri"),
        part(page, "state")
    )
}

/// Visits an address of this machine as a browser does.
fn visit(address: &str) -> String {
    let (host, path) = address
        .trim_start_matches("http://")
        .split_once('/')
        .unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Returns the files of the logins.
fn files(scene: &Scene) -> Vec<PathBuf> {
    let logins = scene.home.path().join("state/co-nvim/logins");
    let directories = std::fs::read_dir(logins).into_iter().flatten().flatten();
    let files = directories.map(|it| it.path().join("login.json"));
    files.filter(|it| it.exists()).collect()
}

fn opened(scene: &Scene) -> String {
    scene
        .wait_for("co_opened", "the browser")
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_login_by_the_browser_lets_the_chat_use_the_server() {
    let place = Place::start();
    let mut scene = place.scene();
    scene.replies([Reply::text("Without.")]);
    scene.co("go");
    let chat = scene.wait_chat("Without.");
    let told = "the tool server hub needs a login, so its tools cannot be used: `:Co /mcp login hub` logs you in";
    assert!(chat.replace('\n', " ").contains(told), "{chat}");
    scene.co("/mcp hub");
    scene.wait_notice("hub: needs a login: /mcp login hub");
    scene.co("/mcp login hub");
    let screen = scene.wait_text("Log in to the tool server hub?").join("\n");
    assert!(
        screen.contains("Its login page is at 127.0.0.1"),
        "{screen}"
    );
    assert_eq!(scene.eval("co_opened or false"), Value::Bool(false));
    scene.answer("y");
    let page = opened(&scene);
    assert!(
        page.starts_with(&format!("{}/authorize?", place.server.url())),
        "{page}"
    );
    // Another page of the browser cannot end the login.
    let wrong = format!("{}?code=other&state=other", part(&page, "redirect_uri"));
    assert!(visit(&wrong).starts_with("HTTP/1.1 400"));
    assert!(visit(&end_of(&page)).starts_with("HTTP/1.1 200"));
    scene.wait_notice(&format!(
        "you are logged in to the tool server hub at {}",
        place.server.url()
    ));
    let kept = files(&scene);
    assert_eq!(kept.len(), 1);
    assert_eq!(
        kept[0].metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    scene.replies([calls_hub("1"), Reply::text("Added.")]);
    scene.co("add");
    scene.answer_text("hub: add {", "y");
    let chat = scene.wait_chat("Added.");
    let told = scene.outcome(2, "1");
    assert!(
        told.contains("3 for [redacted: secret of a tool server]"),
        "{told}"
    );
    assert!(!chat.contains("hunter2"), "{chat}");
    for request in scene.server.requests() {
        assert!(!request.body.to_string().contains("hunter2"));
    }
    // Only the file of the login has a token.
    let found = std::process::Command::new("grep")
        .args(["-rl", "hunter2"])
        .arg(scene.home.path())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&found.stdout).trim(),
        kept[0].display().to_string()
    );
    // The next Neovim uses the login.
    scene.restart_with(place.settings());
    scene.replies([calls_hub("1"), Reply::text("Again.")]);
    scene.co("add");
    scene.answer_text("hub: add {", "y");
    scene.wait_chat("Again.");
    assert_eq!(place.count("/token"), 1);
    scene.co("/mcp logout hub");
    scene.wait_notice("logged out of the tool server hub");
    assert_eq!(files(&scene), [""; 0].map(PathBuf::from));
    // The model still knows the tool. Nobody is asked about a call that cannot run.
    scene.replies([calls_hub("2"), Reply::text("Without again.")]);
    scene.co("go");
    scene.wait_chat("Without again.");
    scene.wait_chat("needs a login");
    let told = scene.outcome(6, "2");
    assert!(
        told.contains("Not run: the tool server hub needs a login"),
        "{told}"
    );
}

fn calls_hub(id: &str) -> Reply {
    Reply::new().call(id, "hub__add", &json!({ "a": 1 }))
}

#[test]
fn the_address_may_be_pasted_and_a_login_given_up() {
    let place = Place::start();
    let scene = place.scene();
    scene.co("/mcp login hub");
    scene.wait_text("Log in to the tool server hub?");
    scene.answer("n");
    scene.wait_notice("not logged in to the tool server hub: you did not want to");
    scene.co("/mcp login hub");
    // The first question may still be on the screen.
    scene.wait_text("chat 1 · #2");
    scene.answer("1");
    let page = opened(&scene);
    scene.wait_text("The browser opens the page");
    for address in ["http://127.0.0.1/other".to_owned(), end_of(&page)] {
        scene.answer("e");
        scene.wait_mode("i");
        scene.type_keys(&format!("{address}<CR>"));
        if address != end_of(&page) {
            scene.wait_text("That is not the address");
        }
    }
    scene.wait_notice("you are logged in to the tool server hub");
    assert_eq!(files(&scene).len(), 1);
}

#[test]
fn a_login_that_the_server_takes_back_is_asked_for_once() {
    let place = Place::start();
    let scene = place.scene();
    scene.co("/mcp login hub");
    scene.wait_text("Log in to the tool server hub?");
    scene.answer("y");
    visit(&end_of(&opened(&scene)));
    scene.wait_notice("you are logged in to the tool server hub");
    place.revoked.store(true, Ordering::SeqCst);
    for turn in 1..=3 {
        scene.replies([Reply::text(&format!("Turn {turn}."))]);
        scene.co("go");
        scene.wait_chat(&format!("Turn {turn}."));
    }
    let chat = scene.chat();
    assert_eq!(chat.matches("needs a login").count(), 1, "{chat}");
    // The token was new, so co asked for no other one.
    assert_eq!(place.count("/token"), 1);
}

#[test]
fn what_cannot_be_logged_in_to_says_why() {
    let denied = Place::start();
    let servers = json!({
        "hub": { "url": format!("{}/mcp", denied.server.url()) },
        "given": { "url": "http://127.0.0.1:1/mcp", "headers": { "Authorization": "Bearer x" } },
        "gone": { "url": "http://127.0.0.1:1/mcp" },
        "git": { "cmd": ["true"] },
    });
    let scene = Scene::in_workspace(
        Workspace::new(),
        json!({ "mcp_servers": servers, "deny_hosts": [denied.server.url().trim_start_matches("http://")] }),
        &[],
    );
    for (name, why) in [
        ("none", "there is no tool server none"),
        ("git", "the tool server git is a program of this machine"),
        (
            "given",
            "mcp_servers.given.headers gives the server a token",
        ),
        (
            "gone",
            "not logged in to the tool server gone: it cannot be reached",
        ),
        ("hub", "about hosts denies 127.0.0.1"),
    ] {
        scene.co(&format!("/mcp login {name}"));
        scene.wait_notice(why);
    }
    scene.co("/mcp logout hub");
    scene.wait_notice("you are not logged in to the tool server hub");
    scene.co("/mcp login");
    scene.wait_notice("name the server: /mcp login NAME");
    assert_eq!(denied.count("/mcp"), 0);
}
