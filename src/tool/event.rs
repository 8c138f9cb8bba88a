//! The events of a call, in the order in which they happen, as a front end shows them.

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
    /// A call that reads or searches, in words such as `read src/main.rs`.
    Query(String),
    /// A call that changes files, in words such as `edit src/main.rs`.
    Edit(String),
    /// The steps of the model's work, a line for each.
    Plan(Vec<String>),
    /// Questions to the person, in words such as `asks: Which database?`.
    Question(String),
    /// A call of another agent.
    Agent(ShownAgentCall),
    /// A scout.
    Scout {
        /// The id of the call.
        call: String,
        task: String,
    },
    /// A call about a job, in words, and the text that it types.
    Job {
        words: String,
        typed: Option<String>,
    },
}

/// Returns the line of a call with the verb of its tool in place of the tool's name; none if `verbs` has no such tool.
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
    /// The id of its call.
    pub call: String,
    pub task: String,
    /// The number of its calls so far, in a few words.
    pub words: String,
    /// The last call of the scout, or the reason why the scout waits.
    pub details: String,
}

/// An event of a call, or of a command that the person typed. Its texts are printable, except those of the model and the person.
pub enum CallEvent {
    Begun(ShownCall),
    /// A scout was sent, or has looked. Several may look at once: the first such event of a scout comes before
    /// [`CallEvent::Begun`] of its call, and a retold scout has none.
    Scouted(ScoutProgress),
    /// The person replaced the command.
    Edited {
        command: String,
        mode: ExecMode,
    },
    /// The reason why it runs, or does not.
    Decision(Decision),
    /// The output of a command starts. It is read from the screen until [`CallEvent::OutputEnded`].
    OutputStarted {
        block: u64,
        screen: Arc<Screen>,
    },
    OutputEnded {
        block: u64,
    },
    /// Another agent says more about its call.
    AgentCallChanged(ShownAgentCall),
    /// The output so far of a call of another agent: from the line `from` on, it has these lines. The whole output follows.
    OutputLines {
        block: u64,
        from: usize,
        lines: Vec<String>,
    },
    /// The whole output.
    Output {
        block: u64,
        text: String,
    },
    Ended(CallEnd),
}

/// The end of a call, for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnd {
    /// The number of the output of the command that the person typed; none for a call.
    pub typed: Option<u64>,
    pub ok: bool,
    pub shown: ShownPart,
    /// The number of secret values that co replaced in the result.
    pub hidden: usize,
    /// The file with the whole output of the call, if the output is long.
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
