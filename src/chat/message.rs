//! The messages that a chat takes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::services::Services;
use crate::protocol::{
    CommitPlace, ContextRequest, LineRange, PromptFile, PromptFileCheck, QuestionAnswer, RunOptions,
};
use co_llm::transcript::Context;
use co_policy::secret_names;

/// A context whose name begins with this has lines of several files.
const LINES_OF_FILES: &str = "@lsp:";

/// The line before the references in a context `@lsp:`.
const REFERENCES: &str = "References:\n";

/// The start of the line below a context that the editor cut.
const CUT: &str = "… cut after ";

/// A message to a chat.
pub enum Msg {
    Prompt(Prompt),
    /// The editor asks whether the person trusts a prompt file.
    CheckPromptFile(PromptFileCheck),
    /// The editor asks for a context of a prompt.
    ReadContext(ContextRequest),
    /// Cancels the turn. The second one in a row drops the queued prompts too.
    Cancel,
    /// The editor asks for the next part of a resumed text, of which `above` bytes are not sent yet.
    EarlierText {
        above: usize,
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
}

impl Prompt {
    /// Returns the text that the model gets and the chat shows.
    pub(super) fn sent_text(&self) -> &str {
        self.file.as_ref().map_or(&self.text, |file| &file.prompt)
    }

    /// Returns the file that the prompt comes from, if the person must trust it.
    pub(super) fn untrusted_file(&self) -> Option<&Path> {
        self.file.as_ref()?.path.as_deref()
    }

    /// Leaves out the lines of secret files that a language server found. In each line, a NUL is
    /// after the name of the file and after the number.
    pub(super) fn without_secret_files(mut self) -> Self {
        let of_files = |piece: &&mut Context| piece.name.starts_with(LINES_OF_FILES);
        for piece in self.context.iter_mut().filter(of_files) {
            let mut hidden = 0;
            let mut text = String::with_capacity(piece.text.len());
            for line in piece.text.split_inclusive('\n') {
                match line.split_once('\0') {
                    Some((file, _)) if secret_names::secret(Path::new(file)).is_none() => {
                        text.push_str(&line.replacen('\0', ":", 2));
                    }
                    None if line.starts_with(CUT) || line == REFERENCES => text.push_str(line),
                    _ => hidden += 1,
                }
            }
            piece.text = text;
            if hidden > 0 {
                piece.name += &format!(" (lines of secret files left out: {hidden})");
            }
        }
        self
    }
}

/// The directories that a chat works in.
#[derive(Debug, Clone)]
pub struct WorkDirs {
    pub workspace: PathBuf,
    pub cwd: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(name: &str, text: &str) -> (String, String) {
        let piece = Context {
            name: name.to_owned(),
            text: text.to_owned(),
            ..Context::default()
        };
        let prompt = Prompt {
            context: vec![piece],
            ..Prompt::default()
        };
        let piece = prompt.without_secret_files().context.remove(0);
        (piece.name, piece.text)
    }

    #[test]
    fn a_language_server_attaches_no_line_of_a_secret_file() {
        let found = "a:1:.env\x007\0key\n.env\x003\0key: 1\ndeploy/secrets/x\x001\0key\n.env.example\x001\0a\0key\n\
             dir/.en\n… cut after 9 of 99 bytes";
        assert_eq!(
            sent("@lsp:key", found),
            (
                "@lsp:key (lines of secret files left out: 4)".to_owned(),
                ".env.example:1:a\0key\n… cut after 9 of 99 bytes".to_owned()
            )
        );
        assert_eq!(
            sent(
                "@lsp:key",
                "a.rs\x001\0fn key()\nReferences:\n.env\x001\0key=1\n"
            ),
            (
                "@lsp:key (lines of secret files left out: 1)".to_owned(),
                "a.rs:1:fn key()\nReferences:\n".to_owned()
            )
        );
        for (name, text) in [("@lsp:key", "src/a.rs\x002\0key\n"), ("@file:.env", "a\n")] {
            let told = text.replace('\0', ":");
            assert_eq!(sent(name, text), (name.to_owned(), told));
        }
    }
}
