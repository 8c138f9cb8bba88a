//! The task and the result of a scout. The module `chat` runs the scout.

use std::pin::Pin;

use super::event::{CallEnd, ShownCall};
use co_llm::transcript::{Context, Usage};
use co_text::{counted, one_line, short_command, shorten};

/// The largest number of bytes of a line about a scout's call.
const LONGEST_LINE: usize = 300;

/// The task of a scout.
#[derive(Debug, Clone)]
pub struct ScoutTask {
    /// The id of the call that sends the scout.
    pub call: String,
    pub task: String,
    /// The contexts that the person attached to the task.
    pub attached: Vec<Context>,
}

/// The result of a scout.
#[derive(Debug)]
pub struct ScoutEnd {
    /// The report, or a sentence with the reason why there is none.
    pub report: Result<String, String>,
    /// The first lines about the scout's calls.
    pub looked: Vec<String>,
    /// The number of the scout's calls.
    pub calls: usize,
    pub usage: Usage,
}

/// A running scout.
pub type RunningScout = Pin<Box<dyn Future<Output = ScoutEnd> + Send>>;

impl ScoutEnd {
    /// Returns the result of a scout that did nothing.
    pub fn failed(why: impl Into<String>) -> Self {
        Self {
            report: Err(why.into()),
            looked: Vec::new(),
            calls: 0,
            usage: Usage::default(),
        }
    }
}

/// Returns the number of a scout's calls in words.
pub fn calls_in_words(calls: usize) -> String {
    match calls {
        0 => String::new(),
        calls => counted(calls, "call"),
    }
}

/// Returns a line about a scout's call that has ended.
pub fn line(shown: &ShownCall, end: &CallEnd) -> String {
    let what = match shown {
        ShownCall::Command { command, .. } => format!("$ {}", short_command(command)),
        ShownCall::Query(words) => words.clone(),
        // A scout has no other tools, but a model may ask for them.
        ShownCall::Edit(words) | ShownCall::Question(words) | ShownCall::Job { words, .. } => {
            words.clone()
        }
        ShownCall::Agent(call) => call.title.clone(),
        ShownCall::Plan(_) => "plan".to_owned(),
        ShownCall::Scout { task, .. } => format!("explore {task}"),
    };
    let shown = &end.shown;
    let ended = shown.exceptions.as_ref().filter(|it| !it.is_empty());
    let ended = ended.unwrap_or(&shown.status);
    let line = one_line(&format!("{what}  {ended}"));
    shorten(line.trim_end(), LONGEST_LINE)
}
