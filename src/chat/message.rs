//! The messages that a chat takes.

use std::path::PathBuf;
use std::sync::Arc;

use super::services::Services;
use crate::protocol::{Answer, HunkAnswer, LineRange, RunOptions, Scope};
use co_llm::transcript::Context;

/// A message to a chat.
pub enum Msg {
    Prompt(Prompt),
    /// Cancels the turn. The second one in a row drops the queued prompts too.
    Cancel,
    Command {
        name: String,
        args: String,
    },
    /// A `!` line.
    Run {
        command: String,
        options: RunOptions,
    },
    Answer(AnswerMessage),
    /// The settings changed. These are the services of a new chat.
    Settings(Arc<Services>),
}

/// A prompt of the person.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    pub text: String,
    pub context: Vec<Context>,
    /// Edits of the turn change these lines only.
    pub range: Option<LineRange>,
}

/// The person's answer to a question.
#[derive(Debug, Clone)]
pub struct AnswerMessage {
    pub id: u64,
    pub decision: Answer,
    pub reason: Option<String>,
    pub scope: Option<Scope>,
    pub command: Option<String>,
    pub hunks: Vec<HunkAnswer>,
}

/// The directories that a chat works in.
#[derive(Debug, Clone)]
pub struct WorkDirs {
    pub workspace: PathBuf,
    pub cwd: PathBuf,
}
