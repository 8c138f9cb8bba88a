//! The tools a model may call: a closed set, each with its schema, its parser and its run.
//!
//! Knows the executor and the policy; knows nothing of sessions, providers' wire formats or Neovim.

pub mod backend;
pub mod facts;
pub mod files;
pub mod jobs;
pub mod judge;
pub mod rules;
pub mod shell;
pub mod trial;
pub mod typed;

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::llm::ToolSpec;
use crate::transcript::Call;

/// A call that co understands.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolCall {
    Shell(shell::Request),
    Look(files::Look),
    Job(jobs::Request),
}

/// A call that could not be read; the text goes back to the model, who can mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadCall(pub String);

impl ToolCall {
    /// Reads what a model asked for.
    ///
    /// # Errors
    /// Where there is no such tool or the arguments do not fit its schema.
    pub fn parse(call: &Call) -> Result<Self, BadCall> {
        if let Some(look) = files::Look::parse(call) {
            return look.map(Self::Look);
        }
        if let Some(job) = jobs::Request::parse(call) {
            return job.map(Self::Job);
        }
        match call.name.as_str() {
            shell::NAME => shell::Request::parse(arguments(call)?).map(Self::Shell),
            other => Err(BadCall(format!(
                "There is no tool called {other}. The tools are: {}, {}, {}.",
                shell::NAME,
                jobs::NAMES.join(", "),
                files::NAMES.join(", ")
            ))),
        }
    }
}

/// What a model is told of the tools.
///
/// `unasked` says in words what runs without a question here.
pub fn specs(max_timeout: u64, unasked: &str) -> Arc<[ToolSpec]> {
    let [read, list, search] = files::specs();
    let [output, write, cancel] = jobs::specs(max_timeout);
    let run = shell::spec(max_timeout, unasked);
    Arc::from([run, output, write, cancel, read, list, search])
}

fn arguments<T: DeserializeOwned>(call: &Call) -> Result<T, BadCall> {
    serde_json::from_value(call.arguments.clone()).map_err(|error| {
        BadCall(format!(
            "The arguments of {} do not fit: {error}.",
            call.name
        ))
    })
}

/// The JSON Schema of a tool's arguments, in the one dialect every provider takes.
fn schema<T: schemars::JsonSchema>() -> serde_json::Value {
    let mut settings = schemars::generate::SchemaSettings::draft07();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}
