//! A model that follows a script, in OpenAI's `/v1/chat/completions`.
//!
//! Each request takes the next reply. A request after the last reply is answered with 418, and fails the test when the model is
//! dropped.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Gate, Request, Response, Server, Step};
use crate::support::{DEADLINE, proc};

/// One reply; parts are said in the order they were added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    steps: Vec<Step>,
    calls: usize,
}

impl Reply {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// An answer of one piece of text.
    pub(crate) fn text(text: &str) -> Self {
        Self::new().say(text)
    }

    /// An answer that is one call of `run_shell_command`.
    pub(crate) fn shell(id: &str, cmd: &str) -> Self {
        Self::new().and_shell(id, cmd)
    }

    /// One more call of `run_shell_command`.
    pub(crate) fn and_shell(self, id: &str, cmd: &str) -> Self {
        self.call(id, "run_shell_command", &json!({ "cmd": cmd }))
    }

    pub(crate) fn say(self, text: &str) -> Self {
        self.step(delta(&json!({ "content": text }), None))
    }

    /// A thought, as servers with reasoning models send it.
    pub(crate) fn think(self, text: &str) -> Self {
        self.step(delta(&json!({ "reasoning_content": text }), None))
    }

    /// A call in one piece.
    pub(crate) fn call(mut self, id: &str, name: &str, arguments: &Value) -> Self {
        let call = json!({
            "index": self.calls, "id": id, "type": "function",
            "function": { "name": name, "arguments": arguments.to_string() },
        });
        self.calls += 1;
        self.step(delta(&json!({ "tool_calls": [call] }), None))
    }

    /// Waits here until the gate is opened.
    pub(crate) fn hold(self, gate: &Gate) -> Self {
        self.step(Step::Wait(gate.clone()))
    }

    /// Says nothing for `time`.
    pub(crate) fn pause(self, time: Duration) -> Self {
        self.step(Step::Pause(time))
    }

    /// Notes the time when all before this was sent.
    #[allow(dead_code, reason = "for the benchmark of the editor")]
    pub(crate) fn note_time(self, time: &Arc<Mutex<Option<Instant>>>) -> Self {
        self.step(Step::Note(Arc::clone(time)))
    }

    /// Sends bytes as they are: half an event, half a character.
    pub(crate) fn raw(self, bytes: &[u8]) -> Self {
        self.step(Step::Bytes(bytes.to_vec()))
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    fn response(self) -> Response {
        let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
        let reason = ["stop", "tool_calls"][self.calls.min(1)];
        let mut response = Response::new(200, "text/event-stream", Vec::new());
        response.steps = self.steps;
        response.steps.extend([
            delta(&json!({}), Some(reason)),
            event(&json!({ "id": "scripted", "choices": [], "usage": usage })),
            Step::Bytes(b"data: [DONE]\n\n".to_vec()),
        ]);
        response
    }
}

fn delta(delta: &Value, finish: Option<&str>) -> Step {
    event(&json!({
        "id": "scripted", "object": "chat.completion.chunk", "created": 0, "model": "scripted",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    }))
}

fn event(value: &Value) -> Step {
    Step::Bytes(format!("data: {value}\n\n").into_bytes())
}

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    requests_past_end: usize,
}

/// The model; it stops when dropped.
pub(crate) struct Scripted {
    server: Server,
    script: Arc<Mutex<Script>>,
}

impl Scripted {
    pub(crate) fn start() -> Self {
        let script = Arc::new(Mutex::new(Script::default()));
        let shared = Arc::clone(&script);
        let server = Server::start(move |request, _| {
            if is_list(request) {
                let models = json!([{ "id": "scripted", "object": "model" }]);
                return Response::json(200, &json!({ "object": "list", "data": models }));
            }
            let mut script = shared.lock().unwrap();
            let next = script.replies.pop_front();
            script.requests_past_end += usize::from(next.is_none());
            match next {
                Some(reply) => reply.response(),
                None => Response::new(418, "text/plain", vec![b"no more replies".to_vec()]),
            }
        });
        Self { server, script }
    }

    /// Returns what to set as `base_url`.
    pub(crate) fn url(&self) -> String {
        format!("{}/v1/", self.server.url())
    }

    /// Adds a reply to the end of the script.
    pub(crate) fn reply(&self, reply: Reply) {
        self.script.lock().unwrap().replies.push_back(reply);
    }

    /// Returns the requests for an answer so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let mut requests = self.server.requests();
        requests.retain(|request| !is_list(request));
        requests
    }

    /// Waits until `count` requests have come, and returns all there are.
    #[track_caller]
    pub(crate) fn wait_requests(&self, count: usize) -> Vec<Request> {
        proc::wait_until(DEADLINE, &format!("request {count}"), || {
            let requests = self.requests();
            (requests.len() >= count).then_some(requests)
        })
    }

    /// Takes back the replies that nobody asked for yet.
    pub(crate) fn forget(&self) {
        self.script.lock().unwrap().replies.clear();
    }
}

fn is_list(request: &Request) -> bool {
    request.path.ends_with("/models")
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let past_end = self.script.lock().unwrap().requests_past_end;
        if past_end > 0 && !std::thread::panicking() {
            panic!("{past_end} requests came after the script's end");
        }
    }
}
