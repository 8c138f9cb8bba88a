//! A proxy between scripted clients and servers on the loopback interface.

mod hostile;
mod outer;
mod tls;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Decider, ForwardedPort, OuterProxy, Permission, Proxy, ProxyLimits, ProxySetup, Resolver,
    Target, TargetTraffic,
};

/// The longest wait for something that must happen.
const DEADLINE: Duration = Duration::from_secs(60);

/// Allows targets and addresses of a list. While it is held, the questions wait.
struct ListDecider {
    targets: Mutex<Vec<String>>,
    addresses: Vec<String>,
    denied_addresses: Vec<String>,
    asked: Mutex<Vec<String>>,
    held: watch::Sender<bool>,
    /// The end of all permissions.
    ended: CancellationToken,
}

#[async_trait]
impl Decider for ListDecider {
    async fn decide(&self, target: &Target) -> Result<Permission, String> {
        self.asked.lock().push(target.to_string());
        let mut held = self.held.subscribe();
        let _ = held.wait_for(|held| !held).await;
        let host = target.host.to_string();
        match self.targets.lock().contains(&host) {
            true => Ok(Permission {
                ground: "the person".to_owned(),
                end: Box::pin(self.ended.clone().cancelled_owned()),
            }),
            false => Err("the person refused it".to_owned()),
        }
    }

    async fn refuses_port(&self, address: SocketAddr) -> Option<String> {
        let is_denied = self.denied_addresses.contains(&address.ip().to_string());
        is_denied.then(|| "no rule allows it any more".to_owned())
    }

    fn denies_address(&self, _target: &Target, address: IpAddr) -> Option<String> {
        let is_denied = self.denied_addresses.contains(&address.to_string());
        is_denied.then(|| "the rule `x` denies it".to_owned())
    }

    fn allows_address(&self, _target: &Target, address: IpAddr) -> bool {
        self.addresses.contains(&address.to_string())
    }
}

/// Knows names by heart. Each look at a name takes its next addresses.
#[derive(Default)]
struct ListResolver {
    names: HashMap<String, Vec<Vec<IpAddr>>>,
    looks: AtomicUsize,
}

#[async_trait]
impl Resolver for ListResolver {
    async fn resolve(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        let look = self.looks.fetch_add(1, Ordering::Relaxed);
        let known = self.names.get(name).ok_or(std::io::ErrorKind::NotFound)?;
        Ok(known[look.min(known.len() - 1)].clone())
    }
}

/// A proxy whose decider knows `good.example`, which is at 127.0.0.1.
struct Scene {
    address: std::net::SocketAddr,
    proxy: Proxy,
    decider: Arc<ListDecider>,
    resolver: Arc<ListResolver>,
}

/// The parts of a scene that a test changes.
struct Parts {
    limits: ProxyLimits,
    outer: OuterProxy,
    names: Vec<(&'static str, Vec<Vec<IpAddr>>)>,
    addresses: Vec<String>,
    denied_addresses: Vec<String>,
    ports: Vec<ForwardedPort>,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            limits: ProxyLimits::default(),
            outer: OuterProxy::none(),
            names: vec![
                ("good.example", vec![vec![ip("127.0.0.1")]]),
                ("bad.example", vec![vec![ip("127.0.0.1")]]),
            ],
            addresses: vec!["127.0.0.1".to_owned()],
            denied_addresses: Vec::new(),
            ports: Vec::new(),
        }
    }
}

impl Scene {
    fn new(parts: Parts) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let decider = Arc::new(ListDecider {
            targets: Mutex::new(vec!["good.example".to_owned()]),
            addresses: parts.addresses,
            denied_addresses: parts.denied_addresses,
            asked: Mutex::default(),
            held: watch::channel(false).0,
            ended: CancellationToken::new(),
        });
        let names = parts.names.into_iter();
        let resolver = Arc::new(ListResolver {
            names: names.map(|(name, all)| (name.to_owned(), all)).collect(),
            looks: AtomicUsize::default(),
        });
        let proxy = Proxy::start(ProxySetup {
            listener,
            ports: parts.ports,
            decider: decider.clone(),
            resolver: resolver.clone(),
            outer: parts.outer,
            limits: parts.limits,
        });
        Self {
            address,
            proxy: proxy.unwrap(),
            decider,
            resolver,
        }
    }

    async fn client(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a text and returns all that comes back until the proxy closes.
    async fn send(&self, text: &str) -> String {
        let mut client = self.client().await;
        client.write_all(text.as_bytes()).await.unwrap();
        rest(&mut client).await
    }

    /// Returns a tunnel to a target, or the response that refuses it.
    async fn tunnel(&self, target: &str) -> Result<TcpStream, String> {
        let mut client = self.client().await;
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let head = head(&mut client).await;
        match head.starts_with("HTTP/1.1 200") {
            true => Ok(client),
            false => Err(head + &rest(&mut client).await),
        }
    }

    fn asked(&self) -> Vec<String> {
        self.decider.asked.lock().clone()
    }

    fn traffic(&self) -> Vec<TargetTraffic> {
        self.proxy.traffic()
    }

    /// Waits until the traffic is as wanted.
    async fn wait_for(&self, wanted: impl Fn(&[TargetTraffic]) -> bool) {
        wait_until(|| wanted(&self.traffic())).await;
    }
}

/// Waits until a condition holds.
async fn wait_until(holds: impl Fn() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waited)
        .await
        .expect("it comes to hold");
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Reads to the end of the stream. A reset counts as the end.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = async { while stream.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {} };
    tokio::time::timeout(DEADLINE, read)
        .await
        .expect("it closes");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads the head of a response, and no byte more.
async fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = async {
        while !bytes.ends_with(b"\r\n\r\n") {
            bytes.push(stream.read_u8().await.unwrap());
        }
    };
    tokio::time::timeout(DEADLINE, read)
        .await
        .expect("it answers");
    String::from_utf8(bytes).unwrap()
}

/// A server that answers each connection with a fixed text after the head of a request, and keeps the heads.
struct TextServer {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    _task: AbortOnDropHandle<()>,
}

impl TextServer {
    async fn start(answer: &'static str) -> Self {
        Self::start_with(answer, false).await
    }

    /// With `echoes`, what follows on a connection is sent back.
    async fn start_with(answer: impl Into<String>, echoes: bool) -> Self {
        let answer = answer.into();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&heads);
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (kept, answer) = (Arc::clone(&kept), answer.clone());
                tokio::spawn(async move {
                    let head = head(&mut stream).await;
                    kept.lock().push(head);
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    if echoes {
                        let (mut from, mut to) = stream.into_split();
                        let _ = tokio::io::copy(&mut from, &mut to).await;
                    }
                });
            }
        });
        Self {
            port,
            heads,
            _task: AbortOnDropHandle::new(task),
        }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().clone()
    }
}

/// A server that sends back what it gets.
async fn echo() -> (u16, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut from, mut to) = stream.into_split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            });
        }
    });
    (port, AbortOnDropHandle::new(task))
}

#[tokio::test]
async fn an_allowed_host_is_reached_by_plain_http() {
    let server = TextServer::start("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    let (port, scene) = (server.port, Scene::new(Parts::default()));
    let request = format!(
        "GET http://good.example:{port}/a?b HTTP/1.1\r\nHost: good.example:{port}\r\nProxy-Connection: x\r\nX-Own: 1\r\n\
         Connection: close, x-secret\r\nX-Secret: 1\r\nUpgrade: h2c\r\nProxy-Authorization: Basic x\r\n\r\n"
    );
    let answer = scene.send(&request).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhi"),
        "{answer}"
    );
    let head = server.heads().remove(0);
    assert!(head.starts_with("GET /a?b HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("X-Own: 1\r\n"), "{head}");
    for removed in ["Proxy-", "Secret", "Upgrade", "h2c"] {
        assert!(!head.contains(removed), "{head}");
    }
    let traffic = scene.traffic().remove(0);
    assert_eq!(traffic.target.to_string(), format!("good.example:{port}"));
    assert_eq!(traffic.sent, head.len() as u64);
    assert!(
        traffic.connections > 0 && traffic.received > 2 && traffic.refused.is_none(),
        "{traffic:?}"
    );
}

#[tokio::test]
async fn an_allowed_host_is_reached_by_connect() {
    let ((port, _server), scene) = (echo().await, Scene::new(Parts::default()));
    let mut tunnel = scene
        .tunnel(&format!("GOOD.example.:{port}"))
        .await
        .unwrap();
    tunnel.write_all(b"there and back").await.unwrap();
    tunnel.shutdown().await.unwrap();
    assert_eq!(rest(&mut tunnel).await, "there and back");
    let traffic = scene.traffic().remove(0);
    assert_eq!((traffic.sent, traffic.received), (14, 14));
}

#[tokio::test]
async fn a_refused_host_gets_no_connection_and_the_command_one_line() {
    let (server, scene) = (TextServer::start("").await, Scene::new(Parts::default()));
    let port = server.port;
    let plain =
        format!("GET http://bad.example:{port}/ HTTP/1.1\r\nHost: bad.example:{port}\r\n\r\n");
    let refused = format!("\r\n\r\nco: bad.example:{port} is not allowed: the person refused it\n");
    let answer = scene.send(&plain).await;
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.ends_with(&refused),
        "{answer}"
    );
    let answer = scene
        .tunnel(&format!("bad.example:{port}"))
        .await
        .unwrap_err();
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.ends_with(&refused),
        "{answer}"
    );
    assert_eq!(
        scene.resolver.looks.load(Ordering::Relaxed),
        0,
        "no name is looked up"
    );
    assert!(server.heads().is_empty());
    let traffic = scene.traffic();
    assert_eq!(traffic.len(), 1);
    assert!(traffic[0].connections == 0 && traffic[0].refused.is_some());
}

#[tokio::test]
async fn each_request_on_a_kept_connection_is_decided_anew() {
    let server = TextServer::start("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    let (port, scene) = (server.port, Scene::new(Parts::default()));
    let request =
        |host: &str| format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    let both = request("good.example") + &request("good.example") + &request("bad.example");
    let answer = scene.send(&both).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 403 ").count(), 1, "{answer}");
    assert_eq!(server.heads().len(), 2);
    let hosts = ["good.example", "good.example", "bad.example"];
    assert_eq!(scene.asked(), hosts.map(|host| format!("{host}:{port}")));
}

#[tokio::test]
async fn the_body_of_a_request_and_of_a_response_goes_through_in_parts() {
    let scene = Scene::new(Parts::default());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = head(&mut stream).await;
        let mut body = Vec::new();
        while !body.ends_with(b"0\r\n\r\n") {
            body.push(stream.read_u8().await.unwrap());
        }
        let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        (head, body)
    });
    let mut client = scene.client().await;
    let host = format!("good.example:{port}");
    let request = format!(
        "POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    );
    client.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(head(&mut client).await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"4\r\nabcd\r\n").await.unwrap();
    client.write_all(b"6\r\nefghij\r\n0\r\n\r\n").await.unwrap();
    let answer = rest(&mut client).await;
    assert!(
        answer.ends_with("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        "{answer}"
    );
    let (head, body) = server.await.unwrap();
    assert!(!head.to_lowercase().contains("expect"), "{head}");
    let letters: Vec<u8> = body.into_iter().filter(u8::is_ascii_lowercase).collect();
    assert_eq!(letters, b"abcdefghij");
}

#[tokio::test]
async fn a_connection_waits_for_the_decision() {
    let ((port, _server), scene) = (echo().await, Scene::new(Parts::default()));
    scene.decider.held.send_replace(true);
    let target = format!("good.example:{port}");
    let waiting = scene.tunnel(&target);
    tokio::pin!(waiting);
    let asked = async {
        while scene.asked().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = &mut waiting => panic!("nobody has decided"),
        () = asked => {}
    }
    assert_eq!(scene.resolver.looks.load(Ordering::Relaxed), 0);
    scene.decider.held.send_replace(false);
    assert!(waiting.await.is_ok());
}

#[tokio::test]
async fn a_port_of_this_machine_is_forwarded() {
    let (port, _server) = echo().await;
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // No server is at the first address.
    let leads_to = [("127.0.0.3", port), ("127.0.0.1", port)];
    let leads_to = leads_to.map(|(host, port)| SocketAddr::new(ip(host), port));
    let scene = Scene::new(Parts {
        ports: vec![ForwardedPort {
            listener,
            leads_to: leads_to.into(),
        }],
        ..Parts::default()
    });
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"local").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut client).await, "local");
    let traffic = scene.traffic().remove(0);
    assert_eq!(traffic.target.to_string(), format!("127.0.0.1:{port}"));
    assert_eq!((traffic.sent, traffic.received), (5, 5));
    assert!(scene.asked().is_empty());
}

#[tokio::test]
async fn a_port_that_no_rule_allows_any_more_is_not_forwarded() {
    let (port, _server) = echo().await;
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let scene = Scene::new(Parts {
        ports: vec![ForwardedPort {
            listener,
            leads_to: vec![SocketAddr::new(ip("127.0.0.1"), port)],
        }],
        denied_addresses: vec!["127.0.0.1".to_owned()],
        ..Parts::default()
    });
    let mut client = TcpStream::connect(address).await.unwrap();
    assert_eq!(rest(&mut client).await, "");
    let traffic = scene.traffic().remove(0);
    let refused = format!("127.0.0.1:{port} is not allowed: no rule allows it any more");
    assert_eq!((traffic.connections, traffic.refused), (0, Some(refused)));
}

#[tokio::test]
async fn the_question_of_a_client_that_left_is_dropped() {
    let (port, _server) = echo().await;
    let limits = ProxyLimits {
        left: Duration::from_millis(10),
        ..ProxyLimits::default()
    };
    let scene = Scene::new(Parts {
        limits,
        ..Parts::default()
    });
    scene.decider.held.send_replace(true);
    let host = format!("good.example:{port}");
    let connect = format!("CONNECT {host} HTTP/1.1\r\n\r\n");
    let get = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let waiting = || scene.decider.held.receiver_count();
    // Some have sent more than the request.
    for text in [&connect, &get, &format!("{connect}more"), &get.repeat(3)] {
        let mut client = scene.client().await;
        client.write_all(text.as_bytes()).await.unwrap();
        wait_until(|| waiting() == 1).await;
        drop(client);
        wait_until(|| waiting() == 0).await;
    }
    assert_eq!(scene.resolver.looks.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn connections_end_with_their_permission() {
    let ((port, _echo), scene) = (echo().await, Scene::new(Parts::default()));
    // The response has more than the server sends.
    let server = TextServer::start("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi").await;
    let mut tunnel = scene.tunnel(&format!("good.example:{port}")).await.unwrap();
    let mut silent = scene.tunnel(&format!("good.example:{port}")).await.unwrap();
    let host = format!("good.example:{}", server.port);
    let request = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut client = scene.client().await;
    client.write_all(request.as_bytes()).await.unwrap();
    assert!(head(&mut client).await.starts_with("HTTP/1.1 200 OK"));
    tunnel.write_all(b"x").await.unwrap();
    assert_eq!(tunnel.read_u8().await.unwrap(), b'x');
    scene.decider.ended.cancel();
    assert_eq!(rest(&mut tunnel).await, "");
    assert_eq!(rest(&mut silent).await, "");
    assert!(!rest(&mut client).await.contains("HTTP/1.1"));
    // One that comes too late sends nothing.
    let mut late = scene.tunnel(&format!("good.example:{port}")).await.unwrap();
    late.write_all(b"late").await.ok();
    assert_eq!(rest(&mut late).await, "");
    assert_eq!(scene.traffic()[0].sent, 1);
}

#[tokio::test]
async fn dropping_the_proxy_ends_its_connections() {
    let ((port, _server), scene) = (echo().await, Scene::new(Parts::default()));
    let mut tunnel = scene.tunnel(&format!("good.example:{port}")).await.unwrap();
    let address = scene.address;
    drop(scene);
    assert_eq!(rest(&mut tunnel).await, "");
    let closed = async { while TcpStream::connect(address).await.is_ok() {} };
    tokio::time::timeout(DEADLINE, closed)
        .await
        .expect("nobody listens");
}
