//! The events that a chat sends to its front end, in the order in which they happen.
//!
//! An event has data, not text in the language of a front end. `retell` makes the same events from a
//! transcript.

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

/// Makes the front end of the chat with this number.
pub type MakeFrontEnd = Arc<dyn Fn(u64) -> Arc<dyn FrontEnd> + Send + Sync>;

/// An event of a chat. Its texts are printable, except those of the model and the person.
pub enum ChatEvent {
    /// The person sent a prompt.
    Prompt {
        text: String,
        context: Vec<Context>,
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
    /// A call that runs a command, or a command that the person typed.
    Command {
        command: String,
        mode: ExecMode,
        caller: Caller,
    },
    /// The person replaced the command of a call.
    CommandEdited {
        command: String,
        mode: ExecMode,
    },
    /// A call that reads, searches or changes files, as one line.
    FileCall(String),
    /// A call about a job.
    JobCall(jobs::JobRequest),
    /// The reason why a call runs, or does not.
    Decision(Decision),
    /// The reason why a command or another call could not run.
    NotRun {
        why: String,
        caller: Caller,
    },
    /// The output of a command starts. It is read from the screen until [`ChatEvent::OutputEnded`].
    OutputStarted {
        block: u64,
        screen: Arc<Screen>,
        caller: Caller,
    },
    OutputEnded {
        block: u64,
        /// Nothing was printed, so there is no block.
        empty: bool,
    },
    /// The whole output of a call.
    Output {
        block: u64,
        text: String,
    },
    /// The number of secret values that co replaced in the result of a call.
    Hidden(usize),
    /// The outcome of a call, as one line.
    Outcome(String),
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
