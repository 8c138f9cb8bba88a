//! The events that a chat sends to its front end, in the order in which they happen.
//!
//! An event has data, not text in the language of a front end. `retell` makes the same events from a
//! transcript.

use crate::tool::event::CallEvent;
use co_exec::Caller;
use co_llm::Fault;
use co_llm::transcript::{Context, End};

/// Shows a chat to its person.
pub trait FrontEnd: Send + Sync {
    /// Shows an event. It must not block.
    fn show(&self, event: ChatEvent);
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
    /// A command that the person typed.
    TypedCommand {
        /// The number of its output.
        block: u64,
        command: String,
    },
    /// An event of a call, or of a command that the person typed.
    Call(CallEvent),
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
        /// It was the turn of an agent, which no `/retry` asks again.
        by_agent: bool,
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

impl From<CallEvent> for ChatEvent {
    fn from(event: CallEvent) -> Self {
        Self::Call(event)
    }
}
