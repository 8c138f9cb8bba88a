//! The events that a chat sends to its front end, in the order in which they happen.
//!
//! An event contains data, not the text that a front end shows. `retell` makes the same events from a transcript.

use crate::tool::event::CallEvent;
use co_exec::Caller;
use co_llm::Fault;
use co_llm::transcript::{Context, End};

/// Shows the events of a chat to the person.
pub trait FrontEnd: Send + Sync {
    /// Shows an event. The implementation must not block.
    fn show(&self, event: ChatEvent);
}

/// An event of a chat. Its texts are printable, except the texts that come from the model or the person.
pub enum ChatEvent {
    /// The person sent a prompt.
    Prompt {
        text: String,
        context: Vec<Context>,
        /// The time of the prompt, in seconds since 1970; none if unknown.
        at: Option<u64>,
    },
    TurnStarted,
    /// The model's answer starts. `/retry` replaces the text of the events after this one.
    AnswerStarted,
    /// A piece of the model's text.
    Text(String),
    /// The model starts to think. co sends the events about thoughts only if the settings show thoughts.
    ThinkingStarted,
    /// The lines of the thought from index `from` on are now `lines`.
    Thinking {
        block: u64,
        from: usize,
        lines: Vec<String>,
    },
    /// The thought on the screen is complete.
    ThinkingEnded {
        block: u64,
    },
    /// A complete thought, from a transcript.
    Thought(String),
    /// A command that the person typed.
    TypedCommand {
        /// The number of the block with the command's output.
        block: u64,
        command: String,
    },
    /// An event of a call, or of a command that the person typed.
    Call(CallEvent),
    /// A line about the end of a job.
    JobEnded(String),
    /// A notice about the turn, or about a command that the person typed.
    Notice {
        text: String,
        caller: Caller,
    },
    /// A note of co to the model.
    ToldModel(String),
    /// From here on, the model gets a summary in place of the earlier turns.
    Summarised,
    /// From here on, the model gets older outputs and contexts in a shortened form.
    TextsShortened,
    /// The text since [`ChatEvent::AnswerStarted`] is no longer sent to the model.
    AnswerDropped,
    /// The person asked for another answer to the last prompt.
    AskedAgain,
    /// The person asked the model to continue its last answer.
    AskedToContinue,
    TurnEnded {
        end: End,
        fault: Option<Fault>,
        /// True if an agent did the turn. `/retry` does not repeat such a turn.
        by_agent: bool,
        /// A notice before it says why the turn failed, and what to do.
        explained: bool,
    },
    /// A slash command failed because the provider failed.
    ProviderFailed(Fault),
    /// A resumed transcript replaces the one on the screen.
    Resumed {
        events: Vec<ChatEvent>,
        /// True if the transcript ends with an answer, which `/retry` replaces.
        answered: bool,
    },
    /// The person has reached the top of a resumed text, and the front end can take the next part. `above` is the number of bytes
    /// of the text that are not shown yet.
    EarlierTextWanted {
        above: usize,
    },
}

impl From<CallEvent> for ChatEvent {
    fn from(event: CallEvent) -> Self {
        Self::Call(event)
    }
}
