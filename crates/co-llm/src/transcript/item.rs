//! The items of a chat. A transcript file holds one line of JSON for each.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::surroundings::Surroundings;
use super::usage::Usage;

/// One thing that happened in a session, in the order it happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum Item {
    /// What the person sent, with whatever context they attached to it.
    User {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        context: Vec<Context>,
    },
    /// What the model said.
    Text { text: String },
    /// What the model thought, with what its provider needs to see again on the next request.
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A tool the model asked for.
    Call(Call),
    /// Who let a call run, or did not.
    Decision { call: String, decision: Decision },
    /// What a call came to.
    Outcome(Outcome),
    /// A command begins that goes on beside the conversation; on disk before its process starts. The model is told by
    /// the call's outcome.
    JobStarted {
        /// Its number in this session.
        job: u64,
        call: String,
        command: String,
    },
    /// Such a command ended.
    JobEnded {
        job: u64,
        /// The line that tells it: which job, and how it ended.
        text: String,
        /// The model read of it in an outcome: it is not told again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        told: bool,
    },
    /// A turn ended; `usage` is what it used.
    End {
        reason: End,
        #[serde(default)]
        usage: Usage,
    },
    /// The items before this one are told to the model as `text`; they stay in the file.
    Summary {
        text: String,
        /// So many items before this one are told as they are nevertheless.
        #[serde(default, skip_serializing_if = "is_zero")]
        keep: usize,
    },
    /// The place the chat works in; the model is told by the system prompt or by a note.
    Surroundings(Surroundings),
    /// A note from co to the model, such as a change of the working directory. The person sees its first line.
    Note {
        text: String,
        /// The note concerns one answer only: if that is asked for again, the model is not told the note again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        once: bool,
    },
    /// The person asked for another answer: the model is not told the last one any more.
    Retried,
    /// Outputs that the model is told shortened from here on, so that the conversation fits its window.
    Shortened { outputs: Vec<Shortened> },
    /// A line for the person only; never sent to a model.
    Notice { text: String },
    /// Written by a later version; kept as it was, never lost.
    #[serde(other)]
    Unknown,
}

/// A piece of the editor that the person attached to a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The word of the prompt that it stands for, and the file: `@buffer src/app.py`, `@file:src/main.rs`.
    pub name: String,
    pub text: String,
}

/// One tool use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The provider's id, unique within a session.
    pub id: String,
    pub name: String,
    /// A JSON object.
    pub arguments: Value,
    /// What the provider wants back with the call (Gemini's thought signature).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// Why a call ran, or did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// Proven read-only, and run in the read-only sandbox where there is one.
    Proved,
    /// A rule of the person's own allows it.
    Rule { rule: String },
    /// `auto_confirm` is on.
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
    /// Nobody could be asked, or the turn was cancelled while the question was open.
    Withdrawn,
}

impl Decision {
    /// Returns whether the call was let run.
    pub fn lets_run(&self) -> bool {
        match self {
            Self::Proved | Self::Rule { .. } | Self::AutoConfirm | Self::Approved => true,
            Self::Denied { .. } | Self::Forbidden { .. } | Self::Withdrawn => false,
        }
    }
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The [`Call::id`] it answers.
    pub call: String,
    /// What the model reads.
    pub text: String,
    /// True where the call did what was asked.
    pub ok: bool,
    /// Where the whole output is, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<std::path::PathBuf>,
}

/// An output that the model is told in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortened {
    /// The [`Call::id`] whose outcome it is.
    pub call: String,
    /// Bytes that are told of its beginning, and as many of its end; 0: one line stands for all of it.
    pub bytes: usize,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The model had nothing more to do.
    Done,
    Cancelled,
    /// The provider or the network failed; the text so far is kept.
    Failed,
    /// A guard ended it (steps, repeats).
    Guarded,
    /// The backend ended in the middle; written when the session is loaded again.
    Interrupted,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
