//! The items of a chat. A transcript file holds one line of JSON for each.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::surroundings::Surroundings;
use super::usage::Usage;

/// One event of a chat. A transcript holds them in the order in which they happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum Item {
    /// A prompt of the person, with the context that it attaches.
    User {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        context: Vec<Context>,
        /// The time of the prompt, in seconds since 1970; none in files of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
    },
    /// Text of the model.
    Text { text: String },
    /// Reasoning of the model. The next request sends it back with its signature.
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A call of a tool that the model asks for.
    Call(Call),
    /// The decision about a call.
    Decision { call: String, decision: Decision },
    /// The result of a call.
    Outcome(Outcome),
    /// A job, which is a command in the background, is about to start. The item is on disk before the process starts. The result
    /// of the call tells the model about the job.
    JobStarted {
        /// The number of the job in this chat.
        job: u64,
        call: String,
        command: String,
    },
    /// A job ended.
    JobEnded {
        job: u64,
        /// The line for the model: the job, and how it ended.
        text: String,
        /// True if a result already told the model. It is then not told again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        told: bool,
    },
    /// A turn ended. `usage` counts the tokens of the turn.
    End {
        reason: End,
        #[serde(default)]
        usage: Usage,
    },
    /// A summary. The model is sent `text` instead of the items before it. They stay in the file.
    Summary {
        text: String,
        /// The number of items before this one that the model is sent as they are.
        #[serde(default, skip_serializing_if = "is_zero")]
        keep: usize,
    },
    /// The place that the chat works in. The model reads it in the system prompt or in a note.
    Surroundings(Surroundings),
    /// A note from co to the model, such as a change of the working directory. The person sees its first line.
    Note {
        text: String,
        /// True if the note concerns one answer only. A retry of that answer does not send it again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        once: bool,
    },
    /// The person chose a model or an effort for the chat. `model` is none for the model of the settings.
    ModelChosen {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The provider of the table that answers, if the person chose it with the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// The profile that `model` begins with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<String>,
        /// The agent that works in the chat in the place of a model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// The person asked for another answer. The model is no longer sent the last answer.
    Retried,
    /// Texts that the model is sent in part from here on, so that the chat fits its context window.
    Shortened { texts: Vec<Shortened> },
    /// All items before this one are sent as texts alone, the form with the fewest reasons for a refusal. Images are named, calls
    /// and their results are told as text, reasoning is left out.
    Reduced,
    /// A plan of the work: the model's answer to `/plan`, or what the person made of it. `/go` sends it as a prompt.
    Plan { text: String },
    /// The session of the agent that works in the chat. None if the next agent must not continue an earlier session.
    AgentSession {
        agent: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// A line for the person only. No model is sent it.
    Notice { text: String },
    /// The person put another command, as it is shown, in the place of the call's.
    CommandEdited { call: String, command: String },
    /// The person ran the command of this call, which ran as a trial, for real. A note tells the model.
    RanForReal { call: String },
    /// An item of a later version.
    #[serde(other)]
    Unknown,
}

impl Item {
    /// Makes a prompt without context.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User {
            text: text.into(),
            context: Vec::new(),
            at: None,
        }
    }
}

/// A piece of the editor that the person attached to a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The word of the prompt, and the file: `@buffer src/app.py`, `@file:src/main.rs`.
    pub name: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

/// A picture that the person attached, or of the result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Such as `image/png`.
    pub media_type: String,
    /// The bytes in base64.
    pub data: String,
}

impl Image {
    /// Returns the image as a URL that contains it (RFC 2397).
    pub(crate) fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }
}

/// One use of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The provider's id, unique in a chat.
    pub id: String,
    pub name: String,
    /// A JSON object.
    pub arguments: Value,
    /// The text that the provider wants back with the call (Gemini's thought signature).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl Call {
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments,
            signature: None,
        }
    }
}

/// The reason why a call ran or did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// The command only looks, so it runs without a question, at the read-only level if the kernel confines it.
    Unasked,
    /// The command runs as a trial: what it changes is kept only after a yes.
    Tried,
    /// A rule of the person allows it.
    Rule { rule: String },
    /// The setting `auto_confirm` is on.
    AutoConfirm,
    /// The person said yes.
    Approved,
    /// The person said no.
    Denied {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A deny rule refuses it.
    Forbidden { why: String },
    /// Nobody could answer the question, or the turn was cancelled while it waited.
    Withdrawn,
    /// Another agent carries it out itself, as far as the confinement of its process allows.
    Agent,
}

impl Decision {
    /// Returns true if the call may run.
    pub fn lets_run(&self) -> bool {
        match self {
            Self::Unasked
            | Self::Tried
            | Self::Rule { .. }
            | Self::AutoConfirm
            | Self::Approved
            | Self::Agent => true,
            Self::Denied { .. } | Self::Forbidden { .. } | Self::Withdrawn => false,
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The [`Call::id`] of the call.
    pub call: String,
    /// The text that the model reads.
    pub text: String,
    /// True if the call succeeded.
    pub ok: bool,
    /// The spill file with the whole output, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<std::path::PathBuf>,
    /// The number of secret values that were removed from the text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden: usize,
    /// The part of the result that the person saw; none in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<ShownPart>,
    /// The pictures that a model gets with the text, if it takes any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

impl Outcome {
    /// Makes an outcome that is only a text.
    pub fn new(call: impl Into<String>, text: impl Into<String>, ok: bool) -> Self {
        Self {
            call: call.into(),
            text: text.into(),
            ok,
            spill: None,
            hidden: 0,
            shown: None,
            images: Vec::new(),
        }
    }
}

/// The part of a result that the person saw.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownPart {
    /// The range of bytes of the result's text that is a block of output: its start and its end.
    #[serde(default)]
    pub output: [usize; 2],
    /// The end of the call in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The unusual part of `status`; none in files of earlier versions, and for calls that run no command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceptions: Option<String>,
    /// The time that a command took, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub took: String,
    /// A notice below the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// Lines above the output: the calls of a scout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looked: Vec<String>,
    /// The arguments of a call of another agent at its end, if they are not those with which it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<Value>>,
    /// True if `output` is the output of a trial: the person saw this output before they decided about the changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tried: bool,
}

impl ShownPart {
    /// Returns a line without output.
    pub fn line(status: impl Into<String>) -> Self {
        Self {
            status: status.into(),
            ..Self::default()
        }
    }
}

/// A long text of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LongText {
    /// The output of the call with this [`Call::id`].
    Output { call: String },
    /// A text that a prompt attaches, with its name and its size in bytes.
    Context { name: String, size: usize },
}

/// A text of which the model is sent a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortened {
    #[serde(flatten)]
    pub text: LongText,
    /// The number of bytes that are sent of its beginning, and of its end. With 0 one line replaces all of it.
    pub bytes: usize,
}

/// The reason why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The model had nothing more to do.
    Done,
    Cancelled,
    /// The provider or the network failed. The text so far is kept.
    Failed,
    /// A limit on steps or on repeated calls ended it.
    Guarded,
    /// The backend ended during the turn. Written when the chat is loaded again.
    Interrupted,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
