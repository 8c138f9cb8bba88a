//! The events of a call that a front end shows, in the order in which they happen.

use std::path::PathBuf;
use std::sync::Arc;

use super::agent_call::ShownAgentCall;
use co_exec::Screen;
use co_llm::transcript::{Decision, Outcome, ShownPart};

/// Options for running a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExecMode {
    /// True if the command runs in a terminal.
    pub terminal: bool,
    /// True if the command runs as a job of the chat.
    pub background: bool,
}

/// A call as the chat shows it. The texts are printable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShownCall {
    /// A command that the model asks for.
    Command { command: String, mode: ExecMode },
    /// A call that reads or searches, such as `read src/main.rs`.
    Query(String),
    /// A call that changes files, such as `edit src/main.rs`.
    Edit(String),
    /// The steps of the model's plan, one line for each step.
    Plan(Vec<String>),
    /// Questions to the person, such as `asks: Which database?`.
    Question(String),
    /// A call that another agent carries out.
    Agent(ShownAgentCall),
    /// A scout that is sent.
    Scout {
        /// The id of the call that sends the scout.
        call: String,
        task: String,
    },
    /// A call about a job, and the text that it sends to the job's input.
    Job {
        words: String,
        typed: Option<String>,
    },
}

/// Returns the line about a call, with a verb in place of the name of the tool. Returns `None` if `verbs` does not contain the
/// tool.
pub(super) fn in_words(line: &str, verbs: &[(&str, &str)]) -> Option<String> {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (_, verb) = verbs.iter().find(|(tool, _)| *tool == name)?;
    let rest = rest.strip_suffix(" in .").unwrap_or(rest);
    let words = format!("{verb} {rest}");
    Some(co_text::printable(words.trim_end()))
}

/// The progress of a scout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScoutProgress {
    /// The id of the call that sent the scout.
    pub call: String,
    pub task: String,
    /// A text with the number of the scout's calls so far.
    pub words: String,
    /// The last call of the scout, or the reason why the scout waits.
    pub details: String,
}

/// An event of a call, or of a command that the person typed. Its texts are printable, except the texts of the model and the
/// person.
pub enum CallEvent {
    Begun(ShownCall),
    /// A scout was sent, or has made another call. Several scouts may run at the same time, so the first such event of a scout
    /// comes before [`CallEvent::Begun`] of its call. A resumed transcript has no such events.
    Scouted(ScoutProgress),
    /// The person replaced the command by another one.
    Edited {
        command: String,
        mode: ExecMode,
    },
    /// The decision to run the call, or not to run it.
    Decision(Decision),
    /// The output of a command starts. Read it from the screen until [`CallEvent::OutputEnded`].
    OutputStarted {
        block: u64,
        screen: Arc<Screen>,
    },
    OutputEnded {
        block: u64,
    },
    /// Another agent has updated one of its calls.
    AgentCallChanged(ShownAgentCall),
    /// The lines from index `from` on in the output of another agent's call. The whole output follows at the end of the call.
    OutputLines {
        block: u64,
        from: usize,
        lines: Vec<String>,
    },
    /// The whole output of a call.
    Output {
        block: u64,
        text: String,
    },
    Ended(CallEnd),
}

/// The end of a call, as the person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnd {
    /// The number of the block with the output of a command that the person typed; none for a call of the model.
    pub typed: Option<u64>,
    pub ok: bool,
    pub shown: ShownPart,
    /// The number of secret values that co removed from the result.
    pub hidden: usize,
    /// The file with the whole output; none if the output is short.
    pub spill: Option<PathBuf>,
}

impl CallEnd {
    /// Returns the end of a call of the model.
    pub(crate) fn of(outcome: &Outcome, shown: ShownPart) -> Self {
        Self {
            typed: None,
            ok: outcome.ok,
            shown,
            hidden: outcome.hidden,
            spill: outcome.spill.clone(),
        }
    }
}
