//! A server on 127.0.0.1 that sends exactly the bytes it is told to, and breaks off as it is told to.

mod scripted;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) use scripted::{Reply, Scripted};

/// The path at which Ollama tells the size of a model's window.
pub(crate) const SHOW: &str = "/api/show";

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Null if it is not JSON.
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) bytes: Vec<u8>,
}

impl Request {
    fn read(stream: &TcpStream) -> Option<Self> {
        let mut input = BufReader::new(stream);
        let mut lines = (&mut input).lines().map_while(Result::ok);
        let first = lines.next()?;
        let mut words = first.split(' ').map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        let headers = lines.map_while(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        });
        let mut request = Self {
            method,
            path,
            headers: headers.collect(),
            body: Value::Null,
            bytes: Vec::new(),
        };
        let length = request.header("content-length").unwrap_or("0");
        request.bytes = vec![0; length.parse().ok()?];
        input.read_exact(&mut request.bytes).ok()?;
        request.body = serde_json::from_slice(&request.bytes).unwrap_or_default();
        Some(request)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the text of the last message of `role`.
    pub(crate) fn last(&self, role: &str) -> Option<String> {
        let messages = self.body["messages"].as_array()?;
        let message = messages.iter().rfind(|message| message["role"] == role)?;
        let content = &message["content"];
        let parts = content.as_array().into_iter().flatten();
        let joined: String = parts.filter_map(|part| part["text"].as_str()).collect();
        Some(content.as_str().map_or(joined, str::to_owned))
    }
}

/// Holds a response until the test opens it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<AtomicBool>);

impl Gate {
    pub(crate) fn open(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The end of a response.
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

/// A part of a body.
#[derive(Debug, Clone)]
enum Step {
    /// One chunk.
    Bytes(Vec<u8>),
    Wait(Gate),
    Pause(Duration),
    /// Writes the time down.
    Note(Arc<Mutex<Option<Instant>>>),
}

/// A response, byte by byte.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    /// The status line and the headers. If there are none, nothing is sent.
    head: String,
    steps: Vec<Step>,
    chunked: bool,
    ending: Ending,
}

impl Response {
    pub(crate) fn new(status: u16, content_type: &str, pieces: Vec<Vec<u8>>) -> Self {
        let steps = pieces.into_iter().map(Step::Bytes).collect();
        Self {
            head: format!("HTTP/1.1 {status} X\r\nconnection: close\r\n"),
            steps,
            chunked: true,
            ending: Ending::Whole,
        }
        .header("content-type", content_type)
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", vec![body.to_string().into()])
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
        let nothing = Self::new(0, "", Vec::new()).until_close().ending(ending);
        Self {
            head: String::new(),
            ..nothing
        }
    }

    fn send(&self, stream: &mut TcpStream, closing: &AtomicBool) -> io::Result<()> {
        stream.set_nodelay(true)?;
        if !self.head.is_empty() {
            let chunked = if self.chunked {
                "transfer-encoding: chunked\r\n"
            } else {
                ""
            };
            write!(stream, "{}{chunked}\r\n", self.head)?;
        }
        for step in &self.steps {
            match step {
                Step::Bytes(bytes) if bytes.is_empty() => {}
                Step::Bytes(bytes) if self.chunked => {
                    // In one write, so that pieces arrive as they were made.
                    let size = format!("{:x}\r\n", bytes.len());
                    stream.write_all(&[size.as_bytes(), bytes, b"\r\n"].concat())?;
                }
                Step::Bytes(bytes) => stream.write_all(bytes)?,
                Step::Wait(gate) => wait(stream, || {
                    gate.0.load(Ordering::Acquire) || closing.load(Ordering::Acquire)
                })?,
                Step::Pause(time) => std::thread::sleep(*time),
                Step::Note(time) => *time.lock().unwrap() = Some(Instant::now()),
            }
        }
        match self.ending {
            Ending::Whole if self.chunked => stream.write_all(b"0\r\n\r\n"),
            Ending::Whole | Ending::Cut => Ok(()),
            // To linger for no time sends a reset.
            Ending::Reset => Ok(rustix::net::sockopt::set_socket_linger(
                stream,
                Some(Duration::ZERO),
            )?),
            Ending::Hang => wait(stream, || closing.load(Ordering::Acquire)),
        }
    }
}

/// Waits until `is_over`. Fails if the other side hangs up first.
fn wait(stream: &mut TcpStream, is_over: impl Fn() -> bool) -> io::Result<()> {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    stream.set_read_timeout(Some(Duration::from_millis(20)))?;
    while !is_over() {
        match stream.read(&mut [0; 64]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if !matches!(error.kind(), WouldBlock | TimedOut | Interrupted) => {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

#[derive(Default)]
struct State {
    requests: Mutex<Vec<Request>>,
    hangups: AtomicUsize,
    closing: AtomicBool,
}

/// The server; it stops when dropped.
pub(crate) struct Server {
    port: u16,
    state: Arc<State>,
    listens: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers each request with the result of `respond`, which gets the request and the number of requests before it.
    pub(crate) fn start(
        respond: impl Fn(&Request, usize) -> Response + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let (shared, respond) = (Arc::clone(&state), Arc::new(respond));
        let listens = std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                if shared.closing.load(Ordering::Acquire) {
                    return;
                }
                let (state, respond) = (Arc::clone(&shared), Arc::clone(&respond));
                std::thread::spawn(move || {
                    let Some(request) = Request::read(&stream) else {
                        return;
                    };
                    let response = {
                        let mut seen = state.requests.lock().unwrap();
                        let response = respond(&request, seen.len());
                        seen.push(request);
                        response
                    };
                    if response.send(&mut stream, &state.closing).is_err() {
                        state.hangups.fetch_add(1, Ordering::AcqRel);
                    }
                });
            }
        });
        Self {
            port,
            state,
            listens: Some(listens),
        }
    }

    /// Gives the same answer to every request, except to Ollama's `/api/show`: it does not know the window.
    pub(crate) fn always(response: Response) -> Self {
        let unknown = Response::json(404, &serde_json::json!({"error": "model not found"}));
        Self::start(move |request, _| match request.path == SHOW {
            true => unknown.clone(),
            false => response.clone(),
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Returns how many responses were broken off by the other side.
    pub(crate) fn hangups(&self) -> usize {
        self.state.hangups.load(Ordering::Acquire)
    }

    /// Returns the number of requests for the size of a model's window.
    pub(crate) fn shows(&self) -> usize {
        let requests = self.requests().into_iter();
        requests.filter(|request| request.path == SHOW).count()
    }

    /// Returns the requests so far, without those for the size of a model's window.
    pub(crate) fn received(&self) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| request.path != SHOW);
        requests
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.closing.store(true, Ordering::Release);
        // Wakes the listener.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        let _ = self.listens.take().map(JoinHandle::join);
    }
}
