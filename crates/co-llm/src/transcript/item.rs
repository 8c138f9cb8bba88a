//! The items of a chat. A transcript file has one line of JSON for each item.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::surroundings::Surroundings;
use super::usage::Usage;

/// One event of a chat. A transcript stores the events in order of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum Item {
    /// A prompt of the person, with the attached context.
    User {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        context: Vec<Context>,
        /// The time of the prompt in seconds since 1970. It is `None` in files of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
    },
    /// Text of the model.
    Text { text: String },
    /// Reasoning of the model. The next request sends the reasoning back with its signature.
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A tool call of the model.
    Call(Call),
    /// The decision about a call.
    Decision { call: String, decision: Decision },
    /// The result of a call.
    Outcome(Outcome),
    /// A job (a command in the background) is about to start. The item is written to disk before the process starts. The model
    /// learns of the job from the result of the call.
    JobStarted {
        /// The number of the job in this chat.
        job: u64,
        call: String,
        command: String,
    },
    /// A job ended.
    JobEnded {
        job: u64,
        /// The message to the model about the job and its end.
        text: String,
        /// True if the model already learned of the end from a result. Then the message is not sent again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        told: bool,
    },
    /// A turn ended. `usage` has the token counts of the turn.
    End {
        reason: End,
        #[serde(default)]
        usage: Usage,
        /// A note before it says why the turn failed, and what to do.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        explained: bool,
    },
    /// A summary of older items. The model gets `text` instead of these items. The file keeps them.
    Summary {
        text: String,
        /// The number of items directly before this one that the summary does not replace.
        #[serde(default, skip_serializing_if = "is_zero")]
        keep: usize,
    },
    /// The surroundings in which the chat works. The model reads them in the system prompt or in a note.
    Surroundings(Surroundings),
    /// A note from co to the model, for example about a new working directory. The person sees its first line.
    Note {
        text: String,
        /// True if the note applies to one answer only. If the person asks for another answer, the note is not sent again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        once: bool,
    },
    /// The person chose a model or an effort for the chat. If `model` is `None`, the model of the settings is used.
    ModelChosen {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The provider of the table, if the person chose it with the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// The name of the profile at the start of `model`. It is `None` if `model` begins with no profile.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<String>,
        /// The agent that works in the chat instead of a model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// The person asked for another answer to the same prompt. From now on, the previous answer is not sent.
    Retried,
    /// Texts that are sent only in part from now on, so that the chat fits into the context window.
    Shortened { texts: Vec<Shortened> },
    /// All items before this one are sent in the reduced form, which servers are least likely to refuse. Images are replaced by
    /// their names, calls and results by texts. Reasoning is left out.
    Reduced,
    /// A plan for the work: the model's answer to `/plan`, or the plan as the person changed it. `/go` sends it as a prompt.
    Plan { text: String },
    /// The session of the agent that works in the chat. If it is `None`, the next agent must not continue an earlier session.
    AgentSession {
        agent: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// A line that only the person sees. It is never sent to a model.
    Notice { text: String },
    /// The person replaced the command of a call by `command`.
    CommandEdited { call: String, command: String },
    /// The person ran the command of this call for real after its trial. A note tells the model.
    RanForReal { call: String },
    /// An item that a later version of co wrote.
    #[serde(other)]
    Unknown,
}

impl Item {
    /// Makes a prompt without attached context.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User {
            text: text.into(),
            context: Vec::new(),
            at: None,
        }
    }
}

/// A context that the person attached to a prompt, such as a buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The context word in the prompt, with the path of the file: `@buffer src/app.py`, `@file:src/main.rs`.
    pub name: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

/// An image that the person attached, or that the result of a call has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The bytes of the image in base64.
    pub data: String,
}

impl Image {
    /// Returns a `data:` URL with the image (RFC 2397).
    pub(crate) fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The id from the provider. It is unique in the chat.
    pub id: String,
    pub name: String,
    /// The arguments, a JSON object.
    pub arguments: Value,
    /// The signature that the provider expects back with the call (Gemini's thought signature).
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
    /// The command is read-only, so it ran without a question. If the kernel can confine it, it ran at the read-only level.
    Unasked,
    /// The command ran as a trial. Its changes are kept only if the person accepts them.
    Tried,
    /// A rule of the person allowed the call.
    Rule { rule: String },
    /// The call was allowed because the setting `auto_confirm` is on.
    AutoConfirm,
    /// The person approved the call.
    Approved,
    /// The person refused the call.
    Denied {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A deny rule refused the call.
    Forbidden { why: String },
    /// Nobody could answer the question, or the turn was cancelled while the question waited.
    Withdrawn,
    /// Another agent carried out the call itself, within the confinement of its process.
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

/// The result of a call, with its text for the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The id of the call ([`Call::id`]).
    pub call: String,
    /// The text that the model reads.
    pub text: String,
    /// True if the call succeeded.
    pub ok: bool,
    /// The spill file with the whole output. It is `None` if the text has the whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<std::path::PathBuf>,
    /// The number of secret values that were replaced in the text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden: usize,
    /// The part of the result that was shown to the person. It is `None` in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<ShownPart>,
    /// The images of the result, for a model that accepts images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

impl Outcome {
    /// Makes an outcome that has only a text.
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

/// The part of a result that was shown to the person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownPart {
    /// The byte range of the command's output in the text of the result: its start and its end.
    #[serde(default)]
    pub output: [usize; 2],
    /// The exit status or another end of the call, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The part of `status` that the chat shows unless it shows all facts: the unusual facts. It is `None` in files of earlier
    /// versions, and for calls that run no command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceptions: Option<String>,
    /// The running time of the command, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub took: String,
    /// A notice that is shown below the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// The lines to show above the output: the calls of a scout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looked: Vec<String>,
    /// The final arguments of another agent's call, if they differ from the arguments at its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<Value>>,
    /// True if `output` is the output of a trial. The person saw this output before they decided about the changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tried: bool,
}

impl ShownPart {
    /// Makes a shown part that has only a status line.
    pub fn line(status: impl Into<String>) -> Self {
        Self {
            status: status.into(),
            ..Self::default()
        }
    }
}

/// A long text of a chat that may be sent in part.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LongText {
    /// The output of the call with this [`Call::id`].
    Output { call: String },
    /// A text that is attached to a prompt, with its name and its size in bytes.
    Context { name: String, size: usize },
}

/// A long text that is sent only in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortened {
    #[serde(flatten)]
    pub text: LongText,
    /// The number of bytes that are sent from the start of the text. As many bytes are sent from its end. With 0, one line
    /// replaces the whole text.
    pub bytes: usize,
}

/// The reason why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The model finished its work.
    Done,
    Cancelled,
    /// The provider or the network failed. The received text is kept.
    Failed,
    /// The turn reached the limit on steps or on repeated calls.
    Guarded,
    /// The backend ended during the turn. This end is recorded when the chat is loaded again.
    Interrupted,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
