//! The events that a chat sends to its front end, in the order in which they happen.
//!
//! An event has data, not text in the language of a front end. `retell` makes the same events from a
//! transcript.

use std::path::PathBuf;
use std::sync::Arc;

use crate::tool::jobs;
use crate::tool::shell::ExecMode;
use co_exec::{Caller, Screen};
use co_llm::Fault;
use co_llm::transcript::{Context, Decision, End};

/// Shows a chat to its person.
pub trait FrontEnd: Send + Sync {
    /// Shows an event. It must not block.
    fn show(&self, event: ChatEvent);
}

/// The end of a call, for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnd {
    /// The number of the output of the command that the person typed; none for a call.
    pub typed: Option<u64>,
    pub ok: bool,
    /// The end in one line; empty if the decision says it.
    pub status: String,
    /// The part of the status that is not as usual. None means that no part is known to be usual.
    pub exceptions: Option<String>,
    /// The time that a command took, in words; empty for other calls.
    pub took: String,
    /// The number of secret values that co replaced in the result.
    pub hidden: usize,
    /// The file with its whole output, if that is long.
    pub spill: Option<PathBuf>,
    /// A notice about the end.
    pub notice: Option<String>,
}

/// An event of a chat. Its texts are printable, except those of the model and the person.
pub enum ChatEvent {
    /// The person sent a prompt.
    Prompt {
        text: String,
        context: Vec<Context>,
        /// Seconds since 1970, if they are known.
        at: Option<u64>,
    },
    TurnStarted,
    /// The text that follows is the model's answer, which `/retry` replaces.
    AnswerStarted,
    /// A piece of the model's text.
    Text(String),
    /// The model starts to think. This event and the next three are sent only if the settings show thoughts.
    ThinkingStarted,
    /// From line `from` on, the thought is now `lines`.
    Thinking {
        block: u64,
        from: usize,
        lines: Vec<String>,
    },
    /// The thought is complete.
    ThinkingEnded {
        block: u64,
    },
    /// A complete thought of a transcript.
    Thought(String),
    /// A call that runs a command.
    Command {
        command: String,
        mode: ExecMode,
    },
    /// A command that the person typed.
    TypedCommand {
        /// The number of its output.
        block: u64,
        command: String,
    },
    /// The person replaced the command of a call.
    CommandEdited {
        command: String,
        mode: ExecMode,
    },
    /// A call that reads, searches or changes files: the name of its tool and its subject, as one line.
    FileCall(String),
    /// A call about a job.
    JobCall(jobs::JobRequest),
    /// The reason why a call runs, or does not.
    Decision(Decision),
    /// The output of a command starts. It is read from the screen until [`ChatEvent::OutputEnded`].
    OutputStarted {
        block: u64,
        screen: Arc<Screen>,
    },
    OutputEnded {
        block: u64,
    },
    /// The whole output of a call.
    Output {
        block: u64,
        text: String,
    },
    /// A call, or a command that the person typed, ended.
    CallEnded(CallEnd),
    /// The line about a job that ended.
    JobEnded(String),
    /// A notice about the turn, or about a command that the person typed.
    Notice {
        text: String,
        caller: Caller,
    },
    /// A note from co to the model.
    ToldModel(String),
    /// The model gets a summary of the earlier turns.
    Summarised,
    /// From here on, the model gets older outputs and contexts in a shortened form.
    TextsShortened,
    /// The model no longer sees the text since [`ChatEvent::AnswerStarted`].
    AnswerDropped,
    /// The person asked for another answer.
    AskedAgain,
    /// The person asked the model to continue.
    AskedToContinue,
    TurnEnded {
        end: End,
        fault: Option<Fault>,
    },
    /// A slash command failed because of the provider.
    ProviderFailed(Fault),
    /// Another transcript replaces the one on the screen.
    Resumed {
        events: Vec<ChatEvent>,
        /// The last answer is the end of the transcript: `/retry` replaces it.
        answered: bool,
    },
    /// The person sees the end of a resumed text, and the front end is ready for the next part. `above` is the number of
    /// bytes that belong above the shown text.
    EarlierTextWanted {
        above: usize,
    },
}

impl ChatEvent {
    /// Returns whether a call of the model begins with it.
    pub fn begins_call(&self) -> bool {
        matches!(
            self,
            Self::Command { .. } | Self::FileCall(_) | Self::JobCall(_)
        )
    }
}
