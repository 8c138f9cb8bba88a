//! The calls that another agent carries out itself, in the form in which the transcript stores them and the chat shows them.

use serde_json::{Value, json};

use co_llm::transcript::Call;
use co_text::{one_line, printable, start_of};

/// The name of such calls in the transcript. co offers no tool with this name to a model.
pub const NAME: &str = "agent_call";

/// The largest number of bytes of a title that the chat shows.
const LONGEST_TITLE: usize = 2_000;

/// The largest number of bytes of an input that the chat shows.
const LONGEST_INPUT: usize = 8_000;

/// The largest number of places in files that the chat shows of one call.
const MOST_PLACES: usize = 20;

/// A call that another agent carries out itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCall {
    pub title: String,
    /// The kind of the call in the words of the protocol, such as `execute`.
    pub kind: String,
    /// The arguments of the call as the agent reports them, as JSON.
    pub input: Option<String>,
    /// The places in files that the call is about, such as `src/main.rs:10`.
    pub places: Vec<String>,
}

/// The sort of an agent's call, which decides how the chat shows the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentCallSort {
    Looks,
    Edits,
    Other,
}

/// An agent's call as the chat shows it. The texts are printable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownAgentCall {
    pub sort: AgentCallSort,
    pub title: String,
    /// The lines of the input; empty if the title contains the whole input.
    pub input: Vec<String>,
    pub places: Vec<String>,
}

impl AgentCall {
    /// Returns the call as an item of the transcript.
    pub fn item(&self, id: String) -> Call {
        Call::new(id, NAME, self.arguments())
    }

    /// Returns the call as a JSON object. The item of the call in the transcript has this object as its arguments.
    pub fn arguments(&self) -> Value {
        let mut arguments = json!({ "title": self.title, "kind": self.kind, "input": self.input });
        if !self.places.is_empty() {
            arguments["places"] = json!(self.places);
        }
        arguments
    }
}

impl ShownAgentCall {
    /// Parses the arguments that [`AgentCall::arguments`] writes.
    pub fn new(arguments: &Value) -> Self {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let title = text("title").unwrap_or(NAME).trim();
        let title = one_line(&printable(start_of(title, LONGEST_TITLE)));
        let places = arguments.get("places").and_then(Value::as_array);
        let places = places.into_iter().flatten().filter_map(Value::as_str);
        let places = places.take(MOST_PLACES);
        Self {
            sort: match text("kind").unwrap_or_default() {
                "read" | "search" | "think" | "fetch" => AgentCallSort::Looks,
                "edit" | "delete" | "move" => AgentCallSort::Edits,
                _ => AgentCallSort::Other,
            },
            input: input_lines(text("input").unwrap_or_default(), &title),
            title,
            places: places.map(|it| one_line(&printable(it))).collect(),
        }
    }
}

/// Returns the lines of an input. Returns no lines if the title already contains all texts of the input.
fn input_lines(input: &str, title: &str) -> Vec<String> {
    // A long one is cut, so it need not be JSON.
    if serde_json::from_str(input).is_ok_and(|value| is_in(&value, title)) {
        return Vec::new();
    }
    let start = start_of(input, LONGEST_INPUT);
    let mut lines: Vec<_> = start.lines().map(printable).collect();
    if start.len() < input.len() {
        lines.push(format!("[{} more bytes]", input.len() - start.len()));
    }
    lines
}

/// Returns true if `text` contains all texts and numbers of a JSON value.
fn is_in(value: &Value, text: &str) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => text.contains(&number.to_string()),
        Value::String(part) => text.contains(part.trim()),
        Value::Array(parts) => parts.iter().all(|it| is_in(it, text)),
        Value::Object(parts) => parts.values().all(|it| is_in(it, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_decides_how_a_call_is_shown() {
        let shown = |kind: &str, input: &str| {
            let call = AgentCall {
                title: "do\n it\u{1b}".to_owned(),
                kind: kind.to_owned(),
                input: Some(input.to_owned()),
                places: vec!["a.rs:3".to_owned()],
            };
            ShownAgentCall::new(&call.item("1".to_owned()).arguments)
        };
        for (kind, sort) in [
            ("search", AgentCallSort::Looks),
            ("delete", AgentCallSort::Edits),
            ("execute", AgentCallSort::Other),
            ("sing", AgentCallSort::Other),
        ] {
            let call = shown(kind, "{}");
            assert_eq!(call.sort, sort, "{kind}");
            assert!(!call.title.contains(['\n', '\u{1b}']));
            assert_eq!((call.input.len(), call.places.len()), (0, 1));
        }
        // An input is shown if the title does not say it.
        assert_eq!(
            shown("execute", r#"{"command":"it","cwd":null}"#).input,
            [""; 0]
        );
        assert_eq!(
            shown("other", r#"{"url":"x.test"}"#).input,
            [r#"{"url":"x.test"}"#]
        );
        let long = shown(
            "other",
            &format!(r#"{{"a":"{}"}}"#, "y".repeat(LONGEST_INPUT)),
        );
        assert_eq!(long.input.last().unwrap(), "[8 more bytes]");
    }
}
