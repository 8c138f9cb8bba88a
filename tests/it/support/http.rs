//! A model server that follows a script, in OpenAI's `/v1/chat/completions`, on 127.0.0.1.
//!
//! Each request takes the next reply. One past the script is answered with 418 and fails the test when
//! the server is dropped.

mod reply;
mod wire;

use std::collections::VecDeque;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

pub(crate) use reply::{Gate, Reply};
use wire::Ended;

use super::{DEADLINE, proc};

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Null where it was not JSON.
    pub(crate) body: Value,
}

impl Request {
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

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    requests: Vec<Request>,
    past_script: usize,
    hangups: usize,
    closing: bool,
}

/// The server; it stops when dropped.
pub(crate) struct Server {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.lock().unwrap().closing {
                    return;
                }
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { port, state }
    }

    /// Returns what to set as `base_url`.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1/", self.port)
    }

    /// Adds a reply to the end of the script.
    pub(crate) fn reply(&self, reply: Reply) {
        self.state.lock().unwrap().replies.push_back(reply);
    }

    /// Returns the requests for an answer so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.lock().unwrap().requests.clone()
    }

    /// Waits until `count` requests have come, and returns all there are.
    #[track_caller]
    pub(crate) fn wait_requests(&self, count: usize) -> Vec<Request> {
        proc::wait_until(DEADLINE, &format!("request {count}"), || {
            let requests = self.requests();
            (requests.len() >= count).then_some(requests)
        })
    }

    /// Waits until `count` replies were broken off by the other side.
    #[track_caller]
    pub(crate) fn wait_hangups(&self, count: usize) {
        proc::wait_until(DEADLINE, &format!("hang-up {count}"), || {
            (self.state.lock().unwrap().hangups >= count).then_some(())
        });
    }

    /// Takes back the replies that nobody asked for yet.
    pub(crate) fn forget(&self) {
        self.state.lock().unwrap().replies.clear();
    }

    /// Returns how many replies are left.
    pub(crate) fn left(&self) -> usize {
        self.state.lock().unwrap().replies.len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let past_script = {
            let mut state = self.state.lock().unwrap();
            state.closing = true;
            state.past_script
        };
        // Wakes the listener.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if past_script > 0 && !std::thread::panicking() {
            panic!("{past_script} requests came after the script's end");
        }
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let Some(request) = wire::read(&stream) else {
        return;
    };
    if request.path.ends_with("/models") {
        let body = serde_json::json!({ "object": "list", "data": [{ "id": "scripted", "object": "model" }] });
        let _ = wire::plain(&mut stream, 200, &[], &body.to_string());
        return;
    }
    let reply = {
        let mut state = state.lock().unwrap();
        state.requests.push(request);
        let next = state.replies.pop_front();
        state.past_script += usize::from(next.is_none());
        next.unwrap_or_else(|| Reply::status(418, "the script has no more replies"))
    };
    let closing = || state.lock().unwrap().closing;
    if let Ok(Ended::HungUp) | Err(_) = wire::answer(&mut stream, &reply, &closing) {
        state.lock().unwrap().hangups += 1;
    }
}
