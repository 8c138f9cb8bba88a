//! A server that sends exactly the bytes it is told to, and breaks off as it is told to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) bytes: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As it should.
    Whole,
    /// The connection is closed in the middle of a chunked body.
    Cut,
    /// The connection is reset.
    Reset,
    /// Nothing comes any more.
    Hang,
}

/// A reply, byte by byte.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    head: String,
    /// Each is one chunk of the body.
    pieces: Vec<Vec<u8>>,
    chunked: bool,
    ending: Ending,
}

impl Reply {
    pub(crate) fn new(status: u16, content_type: &str, pieces: Vec<Vec<u8>>) -> Self {
        Self {
            head: format!(
                "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\nconnection: close\r\n"
            ),
            pieces,
            chunked: true,
            ending: Ending::Whole,
        }
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(
            status,
            "application/json",
            vec![body.to_string().into_bytes()],
        )
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub(crate) fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// The body ends where the connection does: nothing tells a cut from an end.
    pub(crate) fn until_close(mut self) -> Self {
        self.chunked = false;
        self
    }

    /// Not even a status line.
    pub(crate) fn nothing(ending: Ending) -> Self {
        Self {
            head: String::new(),
            pieces: Vec::new(),
            chunked: false,
            ending,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        if self.head.is_empty() {
            return Vec::new();
        }
        let mut bytes = self.head.clone().into_bytes();
        if self.chunked {
            bytes.extend(b"transfer-encoding: chunked\r\n");
        }
        bytes.extend(b"\r\n");
        for piece in self.pieces.iter().filter(|piece| !piece.is_empty()) {
            if self.chunked {
                bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
                bytes.extend(piece);
                bytes.extend(b"\r\n");
            } else {
                bytes.extend(piece);
            }
        }
        if self.chunked && self.ending == Ending::Whole {
            bytes.extend(b"0\r\n\r\n");
        }
        bytes
    }
}

/// Where Ollama says what a model can hold.
pub(crate) const SHOW: &str = "/api/show";

/// Ends with its handle.
pub(crate) struct Server {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Answers each request with what `reply` makes of it and of how many came before it.
    pub(crate) async fn start(
        reply: impl Fn(&Received, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let received = Arc::new(Mutex::new(Vec::new()));
        let seen = received.clone();
        let reply = Arc::new(reply);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, reply.clone(), seen.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            received,
            task,
        }
    }

    /// Answers every request the same, but for the question what a model can hold: it does not know.
    pub(crate) async fn always(reply: Reply) -> Self {
        let unknown = Reply::json(404, &serde_json::json!({"error": "model not found"}));
        Self::start(move |received, _| match received.path == SHOW {
            true => unknown.clone(),
            false => reply.clone(),
        })
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns how often it was asked what a model can hold.
    pub(crate) fn shows(&self) -> usize {
        let received = self.received.lock().expect("no panic in the server");
        received.iter().filter(|one| one.path == SHOW).count()
    }

    /// Returns the requests so far, less the questions what a model can hold.
    pub(crate) fn received(&self) -> Vec<Received> {
        let received = self.received.lock().expect("no panic in the server");
        let asked = |one: &&Received| one.path != SHOW;
        received.iter().filter(asked).cloned().collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    reply: Arc<impl Fn(&Received, usize) -> Reply>,
    seen: Arc<Mutex<Vec<Received>>>,
) {
    let Some(request) = read(&mut stream).await else {
        return;
    };
    let reply = {
        let mut seen = seen.lock().expect("no panic in the server");
        let reply = reply(&request, seen.len());
        seen.push(request);
        reply
    };
    if stream.write_all(&reply.bytes()).await.is_err() {
        return;
    }
    match reply.ending {
        Ending::Whole | Ending::Cut => {
            let _ = stream.shutdown().await;
        }
        Ending::Reset => {
            // Closing with a linger of nothing sends a reset.
            let _ = stream.flush().await;
            #[allow(deprecated, reason = "the reset is the point; nothing blocks at 0 s")]
            let _ = stream.set_linger(Some(std::time::Duration::ZERO));
        }
        Ending::Hang => {
            // Until the other side closes.
            let mut rest = [0; 64];
            while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Received {
        method,
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        bytes: body,
    })
}
