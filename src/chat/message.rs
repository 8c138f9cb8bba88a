//! The messages that a chat takes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::protocol::{
    CommitPlace, ContextRequest, LineRange, PartAnswer, PromptFile, PromptFileCheck,
    QuestionAnswer, RunOptions,
};
use crate::services::Services;
use co_llm::transcript::{self, Context};

/// A message to a chat.
pub enum Msg {
    Prompt(Prompt),
    /// The editor asks whether the person trusts a prompt file.
    CheckPromptFile(PromptFileCheck),
    /// The editor asks for a context of a prompt.
    ReadContext(ContextRequest),
    /// Cancels the turn; then the queued prompts wait. A second cancel in a row drops these prompts.
    Cancel,
    /// The editor asks for the next part of a resumed text, of which `above` bytes are not sent yet.
    EarlierText {
        above: usize,
    },
    /// The draft of the next prompt changed. It begins a transcript if there is none and `begins` is set.
    Draft {
        text: String,
        begins: bool,
    },
    /// The person writes the buffer of the plan.
    KeepPlan {
        text: String,
    },
    Command {
        name: String,
        args: String,
    },
    /// The editor completes the argument of `/model`: its text up to the first slash is `head`.
    ListModels {
        head: String,
    },
    /// The model writes a message for a commit.
    WriteCommit(CommitPlace),
    /// The model writes a message, and co asks the person about a commit with it. The options are those of the commit's command.
    Commit(RunOptions),
    /// A `!` line.
    Run {
        command: String,
        options: RunOptions,
    },
    Answer(QuestionAnswer),
    /// Neovim shows a text under review, and needs its next part.
    ReadReview {
        id: u64,
        file: usize,
        from: usize,
    },
    /// The answers to the parts of a file in a review that goes on.
    KeepAnswers {
        id: u64,
        file: usize,
        answers: Vec<PartAnswer>,
    },
    /// The settings changed. The services are those that a new chat gets.
    Settings(Arc<Services>),
}

/// A prompt of the person.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    pub text: String,
    pub context: Vec<Context>,
    /// Edits of the turn may change only these lines.
    pub range: Option<LineRange>,
    /// The prompt goes with the next request of the running turn. Other prompts wait for the end of the turn.
    pub steer: bool,
    /// The prompt file that `text` names as a slash command.
    pub file: Option<PromptFile>,
    /// The text that goes in place of `text`, if `text` is `/go`.
    pub plan: Option<String>,
}

impl Prompt {
    /// Returns the text that the model gets and the chat shows.
    pub(super) fn sent_text(&self) -> &str {
        let file = self.file.as_ref().map(|file| &file.prompt);
        self.plan.as_ref().or(file).unwrap_or(&self.text)
    }

    /// Returns whether the prompt must start a turn, so that it cannot steer another one.
    pub(super) fn needs_own_turn(&self) -> bool {
        let text = self.sent_text();
        self.range.is_some()
            || self.plan.is_some()
            || transcript::asks_for_plan(text)
            || transcript::task_to_explore(text).is_some()
    }

    /// Returns the file that the prompt comes from, if the person must trust it.
    pub(super) fn untrusted_file(&self) -> Option<&Path> {
        self.file.as_ref()?.path.as_deref()
    }
}

/// The directories that a chat works in.
#[derive(Debug, Clone)]
pub struct WorkDirs {
    pub workspace: PathBuf,
    pub cwd: PathBuf,
}
