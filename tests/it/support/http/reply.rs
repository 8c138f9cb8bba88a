//! What the server is to say.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// Holds a reply until the test opens it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<bool>>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.lock().unwrap() = true;
    }

    pub(super) fn is_open(&self) -> bool {
        *self.0.lock().unwrap()
    }
}

/// One part of an answer, in order.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A `delta` of the stream.
    Delta(Value),
    /// Bytes as they are, where the stream is to be broken.
    Raw(Vec<u8>),
    LimitEnforcement(Gate),
    /// Nothing comes for a while, as from a model that is slow.
    Pause(Duration),
}

/// One reply; parts are said in the order they were added.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// For any status but 200: the body.
    pub(super) body: String,
    pub(super) steps: Vec<Step>,
    calls: usize,
    usage: (u64, u64),
}

impl Reply {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            body: String::new(),
            steps: Vec::new(),
            calls: 0,
            usage: (10, 5),
        }
    }

    /// An answer of one piece of text.
    pub(crate) fn text(text: &str) -> Self {
        Self::new().say(text)
    }

    /// An answer that is one call of `run_shell_command`.
    pub(crate) fn shell(id: &str, cmd: &str) -> Self {
        Self::new().call(id, "run_shell_command", &json!({ "cmd": cmd }))
    }

    /// A refusal.
    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self {
            status,
            body: body.to_owned(),
            ..Self::new()
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn say(self, text: &str) -> Self {
        self.step(Step::Delta(json!({ "content": text })))
    }

    /// A thought, as servers with reasoning models send it.
    pub(crate) fn think(self, text: &str) -> Self {
        self.step(Step::Delta(json!({ "reasoning_content": text })))
    }

    /// A call in one piece.
    pub(crate) fn call(self, id: &str, name: &str, arguments: &Value) -> Self {
        self.call_in_pieces(id, name, &[&arguments.to_string()])
    }

    /// A call whose arguments, as text, come in these pieces.
    pub(crate) fn call_in_pieces(mut self, id: &str, name: &str, pieces: &[&str]) -> Self {
        let index = self.calls;
        self.calls += 1;
        let head = json!({
            "index": index, "id": id, "type": "function",
            "function": { "name": name, "arguments": "" },
        });
        self.steps
            .push(Step::Delta(json!({ "tool_calls": [head] })));
        for piece in pieces {
            let part = json!({ "index": index, "function": { "arguments": piece } });
            self.steps
                .push(Step::Delta(json!({ "tool_calls": [part] })));
        }
        self
    }

    /// Waits here until the gate is opened.
    pub(crate) fn hold(self, gate: &Gate) -> Self {
        self.step(Step::LimitEnforcement(gate.clone()))
    }

    /// Says nothing for `time`.
    pub(crate) fn pause(self, time: Duration) -> Self {
        self.step(Step::Pause(time))
    }

    /// Sends bytes as they are: half an event, half a character.
    pub(crate) fn raw(self, bytes: &[u8]) -> Self {
        self.step(Step::Raw(bytes.to_vec()))
    }

    /// Counts these tokens in and out.
    pub(crate) fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = (input, output);
        self
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Returns why the answer ends.
    pub(super) fn reason(&self) -> &'static str {
        match self.calls {
            0 => "stop",
            _ => "tool_calls",
        }
    }

    pub(super) fn tokens(&self) -> Value {
        let (input, output) = self.usage;
        json!({
            "prompt_tokens": input,
            "completion_tokens": output,
            "total_tokens": input + output,
        })
    }
}
