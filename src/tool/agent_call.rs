//! The calls that another agent carries out itself, as the transcript and the chat have them.

use serde_json::json;

use super::event::{ExecMode, ShownCall};
use crate::text::{one_line, start_of};
use co_llm::transcript::Call;
use co_policy::printable;

/// The name of these calls in the transcript. No model is offered such a tool.
pub const NAME: &str = "agent_call";

/// The most bytes of a title that are shown.
const LONGEST_TITLE: usize = 2_000;

/// A call of another agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCall {
    pub title: String,
    /// The kind in the words of the protocol, such as `execute`.
    pub kind: String,
    /// The input that the agent tells, as JSON.
    pub input: Option<String>,
}

impl AgentCall {
    /// Returns the call for the transcript.
    pub fn item(&self, id: String) -> Call {
        let arguments = json!({ "title": self.title, "kind": self.kind, "input": self.input });
        Call::new(id, NAME, arguments)
    }
}

/// Returns a call of another agent as the chat shows it.
pub(super) fn shown(call: &Call) -> ShownCall {
    let text = |name: &str| call.arguments.get(name).and_then(|it| it.as_str());
    let title = printable(start_of(
        text("title").unwrap_or(NAME).trim(),
        LONGEST_TITLE,
    ));
    match text("kind").unwrap_or_default() {
        "read" | "search" | "think" | "fetch" => ShownCall::Query(one_line(&title)),
        "edit" | "delete" | "move" => ShownCall::Edit(one_line(&title)),
        _ => ShownCall::Command {
            command: title,
            mode: ExecMode::default(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_decides_how_a_call_is_shown() {
        let shown = |kind: &str| {
            let call = AgentCall {
                title: "do\n it\u{1b}".to_owned(),
                kind: kind.to_owned(),
                input: Some("{}".to_owned()),
            };
            shown(&call.item("1".to_owned()))
        };
        assert!(matches!(shown("search"), ShownCall::Query(words) if words.starts_with("do")));
        assert!(matches!(shown("delete"), ShownCall::Edit(_)));
        for kind in ["execute", "other", "sing"] {
            match shown(kind) {
                ShownCall::Command { command, .. } => assert!(!command.contains('\u{1b}')),
                other => panic!("{other:?}"),
            }
        }
    }
}
