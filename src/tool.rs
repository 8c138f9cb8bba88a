//! The tools that a model may call, a closed set: their schemas and parsers.
//!
//! A tool that reads files is a variant of [`query::FileQuery`], any other one a variant of [`ToolCall`]. [`specs`] has their
//! schemas; `chat::turn::calls` carries calls out.

pub mod edit;
pub mod event;
pub mod jobs;
pub mod query;
pub mod rename;
mod schema;
pub mod shell;

use std::sync::Arc;

use co_llm::ToolSpec;
use co_llm::transcript::Call;

use event::{ShownCall, in_words};
pub use schema::BadCall;
use schema::arguments;

use crate::workspace::{edits, files};

/// A parsed call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolCall {
    Shell(shell::CommandRequest),
    File(query::FileQuery),
    Job(jobs::JobRequest),
    Edit(edits::EditRequest),
    Rename(rename::RenameRequest),
}

impl ToolCall {
    /// Parses a call of a model.
    ///
    /// # Errors
    /// There is no such tool, or the arguments do not fit its schema.
    pub fn parse(call: &Call) -> Result<Self, BadCall> {
        if let Some(query) = query::FileQuery::parse(call) {
            return query.map(Self::File);
        }
        if let Some(job) = jobs::JobRequest::parse(call) {
            return job.map(Self::Job);
        }
        if let Some(edit) = edit::parse(call) {
            return edit.map(Self::Edit);
        }
        if let Some(rename) = rename::RenameRequest::parse(call) {
            return rename.map(Self::Rename);
        }
        match call.name.as_str() {
            shell::NAME => shell::CommandRequest::parse(arguments(call)?).map(Self::Shell),
            // The person sees the first line.
            other => Err(BadCall(format!(
                "There is no tool called {other}.\nThe tools are: {}, {}, {}, {}, {}.",
                shell::NAME,
                jobs::NAMES.join(", "),
                files::NAMES.join(", "),
                edits::NAMES.join(", "),
                edits::RENAME
            ))),
        }
    }
}

/// Returns a call as the chat shows it, also if it is not valid.
pub fn shown(call: &Call) -> ShownCall {
    match ToolCall::parse(call) {
        Ok(ToolCall::Shell(request)) => request.shown(),
        Ok(ToolCall::File(query)) => query.shown(),
        Ok(ToolCall::Job(request)) => request.shown(),
        Ok(ToolCall::Edit(request)) => edit::shown(&request.line()),
        Ok(ToolCall::Rename(request)) => edit::shown(&request.line()),
        Err(_) => {
            let line = command_of(call);
            let query = in_words(&line, &query::VERBS).map(ShownCall::Query);
            let edit = || in_words(&line, &edit::VERBS).map(ShownCall::Edit);
            query.or_else(edit).unwrap_or_else(|| ShownCall::Command {
                command: co_policy::printable(&line),
                mode: event::ExecMode::default(),
            })
        }
    }
}

/// Returns the command of a call, or its name and the paths and patterns that it is about.
fn command_of(call: &Call) -> String {
    let text = |name: &str| call.arguments.get(name)?.as_str();
    if let Some(cmd) = text("cmd") {
        return cmd.to_owned();
    }
    if let Some(argv) = call.arguments.get("argv").and_then(|argv| argv.as_array()) {
        let words: Vec<_> = argv.iter().filter_map(|word| word.as_str()).collect();
        return words.join(" ");
    }
    // The arguments can be those of a tool that does not exist.
    let about = ["path", "from", "to", "pattern", "command"];
    let words = std::iter::once(call.name.as_str()).chain(about.into_iter().filter_map(text));
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the descriptions of all tools for a model.
///
/// They are the same in every request, so that providers can cache them.
pub fn specs() -> Arc<[ToolSpec]> {
    let mut specs = vec![shell::spec()];
    specs.extend(jobs::specs());
    specs.extend(query::specs());
    specs.extend(edit::specs());
    specs.push(rename::spec());
    Arc::from(specs)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// If a change of the text is meant, copy the left side of the failure into the file.
    #[test]
    fn a_model_is_told_of_these_tools() {
        let tools = specs();
        let told: Vec<_> = tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                })
            })
            .collect();
        let told = serde_json::to_string_pretty(&told).unwrap();
        let expected = include_str!("../tests/fixtures/tools.json");
        assert!(told == expected.trim_end(), "{told}");
    }

    #[test]
    fn a_call_that_cannot_be_read_is_told_without_its_arguments() {
        let told = |name: &str, arguments| command_of(&Call::new("1", name, arguments));
        let edit = serde_json::json!({ "new": "x\ny", "old": 1, "path": "a.rs" });
        assert_eq!(told("edit_file", edit), "edit_file a.rs");
        assert_eq!(
            told("frob", serde_json::json!({ "command": "ls -l" })),
            "frob ls -l"
        );
        assert_eq!(told("frob", serde_json::json!(["x"])), "frob");
    }

    fn sample(schema: &Value) -> Value {
        match schema["type"].as_str() {
            Some("string") => schema["enum"].get(0).cloned().unwrap_or(json!("x")),
            Some("boolean") => json!(true),
            Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("array") => json!([sample(&schema["items"])]),
            Some("object") => {
                let properties = schema["properties"].as_object().unwrap();
                properties
                    .iter()
                    .map(|(name, it)| (name.clone(), sample(it)))
                    .collect()
            }
            other => panic!("{other:?} has no sample"),
        }
    }

    fn parse(tool: &ToolSpec, arguments: Value) -> Result<ToolCall, BadCall> {
        ToolCall::parse(&Call::new("1", tool.name.clone(), arguments))
    }

    #[test]
    fn what_a_schema_offers_is_what_its_parser_takes() {
        for tool in specs().iter() {
            let properties = tool.schema["properties"].as_object().unwrap();
            let samples = properties.iter();
            let mut all: serde_json::Map<_, _> = samples
                .map(|(name, schema)| (name.clone(), sample(schema)))
                .collect();
            if tool.name == shell::NAME {
                // A call has one or the other.
                let argv = all.shift_remove("argv").unwrap();
                assert_eq!(parse(tool, json!({ "argv": argv })).err(), None);
            }
            let parsed = parse(tool, Value::Object(all.clone()));
            assert_eq!(parsed.err(), None, "{}", tool.name);
            all.insert("unheard_of".into(), json!(1));
            let refused = parse(tool, Value::Object(all)).unwrap_err();
            assert!(refused.0.contains("unheard_of"), "{refused}");
        }
    }
}
