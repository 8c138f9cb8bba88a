//! The parts of the answers of a scripted model.

use serde_json::json;

use co_llm::scripted::{Part, Scripted};
use co_llm::transcript::Call;
use co_llm::{Delta, Stop};

pub(super) fn text(text: &str) -> Part {
    Delta::Text(text.to_owned()).into()
}

pub(super) fn done() -> Part {
    Delta::Stop(Stop::Done).into()
}

/// A call of any tool.
pub(super) fn tool(id: &str, name: &str, arguments: serde_json::Value) -> Part {
    Part::Delta(Delta::Call(Call::new(id, name, arguments)))
}

/// A call whose arguments cannot be read.
pub(super) fn unread(id: &str) -> Part {
    Part::Delta(Delta::BadCall {
        call: Call::new(id, "run_shell_command", json!({})),
        detail: "expected `}`".to_owned(),
    })
}

pub(super) fn call(id: &str, command: &str) -> Part {
    tool(id, "run_shell_command", json!({ "cmd": command }))
}

/// An answer that is one call of a tool.
pub(super) fn asks_for(id: &str, name: &str, arguments: serde_json::Value) -> Vec<Part> {
    vec![tool(id, name, arguments), done()]
}

/// An answer that asks for these commands.
pub(super) fn calls(calls: &[(&str, &str)]) -> Vec<Part> {
    let parts = calls.iter().map(|(id, command)| call(id, command));
    parts.chain([done()]).collect()
}

pub(super) fn says(text: &str) -> Vec<Part> {
    Scripted::says(text)
}
