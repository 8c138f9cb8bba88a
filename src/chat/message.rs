//! The messages that a chat receives.

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
    /// The editor asks whether the person trusts a prompt file. co asks the person if they have not answered yet.
    CheckPromptFile(PromptFileCheck),
    /// The editor asks for the text of a context in a prompt.
    ReadContext(ContextRequest),
    /// Cancels the turn. The queued prompts then wait. A second cancel in a row drops them.
    Cancel,
    /// The editor asks for the next part of a resumed text. `above` is the number of bytes of the text that are not sent yet.
    EarlierText {
        above: usize,
    },
    /// The person changed the draft of the next prompt. If there is no transcript and `begins` is true, the draft begins one.
    Draft {
        text: String,
        begins: bool,
    },
    /// The person saves the buffer of the plan.
    KeepPlan {
        text: String,
    },
    Command {
        name: String,
        args: String,
    },
    /// The editor completes the argument of `/model`. `head` is the text of the argument up to the first slash.
    ListModels {
        head: String,
    },
    /// The editor wants a commit message from the model.
    WriteCommit(CommitPlace),
    /// The person typed `/commit`: the model writes a message, and co asks the person about the commit. The options are for the
    /// command of the commit.
    Commit(RunOptions),
    /// The person typed a `!` line.
    Run {
        command: String,
        options: RunOptions,
    },
    Answer(QuestionAnswer),
    /// Neovim shows a text under review, and needs the next part of the text.
    ReadReview {
        id: u64,
        file: usize,
        from: usize,
    },
    /// The person's answers about the parts of a file, while the review continues.
    KeepAnswers {
        id: u64,
        file: usize,
        answers: Vec<PartAnswer>,
    },
    /// The settings changed. The new services are the services that a new chat gets.
    Settings(Arc<Services>),
}

/// A prompt of the person.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    pub text: String,
    pub context: Vec<Context>,
    /// The lines that edits of the turn may change; none if the turn may change all lines.
    pub range: Option<LineRange>,
    /// True if the prompt goes with the next request of the running turn. Other prompts wait for the end of the turn.
    pub steer: bool,
    /// The prompt file that `text` names with a slash command.
    pub file: Option<PromptFile>,
    /// The plan that the model gets in place of `text`, if `text` is `/go`.
    pub plan: Option<String>,
}

impl Prompt {
    /// Returns the text of the prompt that the model gets and the chat shows.
    pub(super) fn sent_text(&self) -> &str {
        let file = self.file.as_ref().map(|file| &file.prompt);
        self.plan.as_ref().or(file).unwrap_or(&self.text)
    }

    /// Returns true if the prompt must start a turn of its own, so that it cannot steer another turn.
    pub(super) fn needs_own_turn(&self) -> bool {
        let text = self.sent_text();
        self.range.is_some()
            || self.plan.is_some()
            || transcript::asks_for_plan(text)
            || transcript::task_to_explore(text).is_some()
    }

    /// Returns the file that the prompt comes from, if co must check that the person trusts it.
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
