//! The messages from Lua to the backend.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::change::PartAnswer;
use co_edit::{CharacterUnit, FileText, NotText, PlacedEdit};
use co_exec::{HostEnvironment, TerminalSize};
use co_llm::transcript::Context;

/// A message from Lua to the backend.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromEditor {
    /// The first message: versions and settings.
    Hello {
        protocol: u32,
        version: String,
        /// The settings of `setup{}` or `vim.g.co`, without those that only Lua reads.
        #[serde(default)]
        settings: serde_json::Value,
    },
    /// All settings of `setup{}` and `vim.g.co`, after a change.
    Settings {
        #[serde(default)]
        settings: serde_json::Value,
    },
    /// The choice of `/sandbox` in a backend that failed, for its successor, as a value of `sandbox_backend`.
    Sandbox { confinement: String },
    /// A prompt. `chat` is a number of Lua, 1 and up; the first message makes the chat.
    Prompt {
        chat: u64,
        text: String,
        /// The invoking window's working directory; fixed by the first prompt.
        cwd: String,
        #[serde(default)]
        context: Vec<Context>,
        /// Edits of the turn change these lines only.
        range: Option<LineRange>,
        /// The prompt goes with the next request of the turn that runs.
        #[serde(default)]
        steer: bool,
        /// The prompt file that `text` names as a slash command.
        file: Option<PromptFile>,
    },
    /// Asks whether the person trusts a prompt file of the workspace.
    CheckPromptFile {
        chat: u64,
        cwd: String,
        #[serde(flatten)]
        check: PromptFileCheck,
    },
    /// Asks for a context of a prompt.
    ReadContext {
        chat: u64,
        #[serde(flatten)]
        wanted: ContextRequest,
    },
    /// `<C-c>` in a chat: cancels the turn; a second one also drops the queued prompts.
    Cancel { chat: u64 },
    /// Asks for the part of a resumed text that belongs above the text of the chat. `above` is the value in the part that came
    /// before.
    EarlierText { chat: u64, above: usize },
    /// The draft of a prompt changed. The backend keeps it with the transcript. If the chat has no transcript, the backend begins
    /// one if `begins` is set.
    Draft {
        chat: u64,
        cwd: String,
        text: String,
        begins: bool,
    },
    /// The person writes the buffer of the plan. The backend keeps the plan with the chat.
    KeepPlan {
        chat: u64,
        cwd: String,
        text: String,
    },
    /// A slash command for the backend; `name` has no slash.
    Command {
        chat: u64,
        name: String,
        #[serde(default)]
        args: String,
        cwd: String,
        /// The options of `!`, whose `args` are a command to run, and of the command of `/commit`.
        #[serde(default)]
        options: RunOptions,
    },
    /// Asks for the names that complete the argument of `/model`. Lua gets them with [`super::ToEditor::Models`].
    ListModels {
        /// The chat whose provider is asked; none if there is no chat yet.
        chat: Option<u64>,
        /// The typed text up to its first slash, which may be a profile; else empty.
        head: String,
    },
    /// `/commit`: asks the model of the chat for a commit message. The chat does not show it.
    WriteCommit {
        chat: u64,
        cwd: String,
        #[serde(flatten)]
        commit: CommitPlace,
    },
    /// The chat's buffer was deleted.
    Close { chat: u64 },
    /// The answer to a [`super::ToEditor::Question`], a [`super::ToEditor::Trust`], which takes `once` or `deny`, or a
    /// [`super::ToEditor::Changes`], which takes `reviewed` or `deny`.
    Answer(QuestionAnswer),
    /// Asks for the part of a text under review that follows its first `from` bytes. `id` is the id of the question, or of the
    /// review of [`super::ToEditor::Changes`]; `file` is the index in its list of files.
    ReadReview { id: u64, file: usize, from: usize },
    /// Keeps the answers to the parts of a file in a review of `/review`, which may end without notice. `id` and `file` are as
    /// in [`ReadReview`](Self::ReadReview).
    KeepAnswers {
        id: u64,
        file: usize,
        answers: Vec<PartAnswer>,
    },
    /// `:Co! cmd`. `run` is Lua's number, 1 and up, never reused. Names and input may be any bytes.
    Run {
        run: u64,
        #[serde(with = "serde_bytes")]
        command: Vec<u8>,
        #[serde(with = "serde_bytes")]
        cwd: Vec<u8>,
        #[serde(default, with = "serde_bytes")]
        stdin: Option<Vec<u8>>,
        /// Standard input stays open after `stdin`, for [`RunInput`](Self::RunInput).
        #[serde(default)]
        open: bool,
        /// In a terminal of that size.
        terminal: Option<TerminalSize>,
        #[serde(default)]
        options: RunOptions,
    },
    /// Bytes for the standard input of a run that keeps it open, or its end.
    RunInput {
        run: u64,
        #[serde(default, with = "serde_bytes")]
        data: Vec<u8>,
        #[serde(default)]
        close: bool,
    },
    /// The terminal of a run has another size.
    RunResize { run: u64, size: TerminalSize },
    /// `<C-c>` on a run.
    CancelRun { run: u64 },
    /// A model's job outlives its chat, or no longer does.
    KeepRun { run: u64, keep: bool },
    /// Asks for the first lines of a file with an output, as the screen shows lines.
    ReadOutput {
        request: u64,
        file: PathBuf,
        lines: usize,
    },
    /// The person saves a file, or has saved it. `file` is its real path.
    Saved {
        #[serde(with = "serde_bytes")]
        file: Vec<u8>,
    },
    /// The answer to a [`super::ToEditor::ReadBuffers`].
    Buffers {
        request: u64,
        buffers: Vec<BufferText>,
    },
    /// The answer to a [`super::ToEditor::ChangeBuffer`].
    BufferChanged {
        request: u64,
        #[serde(flatten)]
        changed: BufferChanged,
    },
    /// Lua cannot answer a request, because its code has failed.
    Failed { request: u64 },
    /// Plugins have hooks before a command, or no longer have any.
    Hooks { before_command: bool },
    /// The answer to a [`super::ToEditor::BeforeCommand`].
    CommandHooked {
        request: u64,
        /// The reason why a plugin refuses the command.
        refusal: Option<String>,
    },
    /// The answer to a [`super::ToEditor::EditFile`].
    FileEdited {
        request: u64,
        /// The reason why the program that wanted the file edited must fail. None if the person closed it.
        problem: Option<String>,
    },
    /// The answer to a [`super::ToEditor::EditorQuery`].
    EditorAnswer {
        request: u64,
        #[serde(flatten)]
        answer: EditorAnswer,
    },
    /// An agent in a terminal of Neovim calls a tool of co.
    AgentCall(AgentCall),
    /// It no longer waits for the result of the call.
    CancelAgentCall { request: u64 },
}

/// A call of an agent in a terminal of Neovim.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentCall {
    pub request: u64,
    /// The number of its connection to Neovim.
    pub client: u64,
    /// The name that it gives itself, which may be any text.
    pub agent: String,
    pub tool: String,
    /// JSON.
    pub arguments: String,
    /// Its directory.
    #[serde(with = "serde_bytes")]
    pub cwd: Vec<u8>,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct QuestionAnswer {
    pub id: u64,
    pub decision: Answer,
    pub reason: Option<String>,
    /// With `always`: one of the offered scopes.
    pub scope: Option<Scope>,
    /// With `edited`: the command to run instead.
    #[serde(default, with = "serde_bytes")]
    pub command: Option<Vec<u8>>,
    /// With `reviewed`: the answers to the hunks of the change, in their order.
    #[serde(default)]
    pub hunks: Vec<HunkAnswer>,
    /// With `chosen`: the answers to the questions, in their order.
    #[serde(default)]
    pub chosen: Vec<ChosenAnswer>,
}

/// The answer to a question with choices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ChosenAnswer {
    /// The numbers of the choices, from 1.
    #[serde(default)]
    pub choices: Vec<usize>,
    /// The person's own words.
    #[serde(default)]
    pub text: Option<String>,
}

/// A request for a context of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ContextRequest {
    pub request: u64,
    /// The working directory of the window.
    pub cwd: String,
    /// The word of the prompt, such as `@file:README.md`.
    pub word: String,
    pub query: ContextQuery,
}

/// The text that a context has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ContextQuery {
    /// The text of a file, or the image in it.
    File { path: String },
    /// A text that the editor has of files. The backend only checks that the model may get it.
    Text {
        paths: Vec<String>,
        text: String,
        /// The whole lines of which `text` is a part.
        lines: Option<String>,
    },
    /// The changes that git knows, staged and not.
    Diff,
    /// A commit of git, or another object.
    Commit { revision: String },
    /// The lines that contain a text.
    Search { text: String },
    /// The text of a skill.
    Skill { name: String },
    /// A resource of a tool server of the chat.
    Resource { server: String, uri: String },
    /// A prompt of a tool server of the chat, with `NAME=value` or plain values as its arguments.
    ServerPrompt {
        server: String,
        name: String,
        arguments: Vec<String>,
    },
    /// The words that complete an argument of a prompt of a tool server, a word on each line. A server that does not run has
    /// none.
    ServerArguments {
        server: String,
        name: String,
        /// The words before it.
        arguments: Vec<String>,
        /// The start of the word.
        text: String,
    },
    /// The addresses of a tool server that begin like `uri`, an address on each line.
    ServerAddresses { server: String, uri: String },
    /// The lines where language servers know a name.
    Places {
        definitions: Vec<ServerPlace>,
        references: Vec<ServerPlace>,
        /// The number of references beyond the limit.
        more: usize,
    },
}

/// The place of a commit whose message is edited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct CommitPlace {
    /// A directory of the work tree.
    pub directory: String,
    /// The variables that git gave its editor, such as `GIT_INDEX_FILE`.
    #[serde(default)]
    pub variables: Vec<(String, String)>,
}

/// Lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LineRange {
    /// The real path.
    pub file: String,
    /// The first and the last line, from 1.
    pub first: usize,
    pub last: usize,
}

/// The text of a loaded buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct BufferText {
    /// The real path of its file, as it was asked for.
    pub file: String,
    /// The text with a line break after each line, except perhaps the last one.
    #[serde(default, with = "serde_bytes")]
    pub text: Vec<u8>,
    /// The 'changedtick' of the buffer.
    #[serde(default)]
    pub tick: u64,
    /// The 'fileencoding' of the buffer.
    #[serde(default)]
    pub encoding: String,
    /// True if the buffer has unsaved changes.
    #[serde(default)]
    pub modified: bool,
    /// The reason why co cannot read or change it.
    pub problem: Option<String>,
}

impl BufferText {
    /// Returns the text as co has it.
    ///
    /// # Errors
    /// It is not text.
    pub fn file_text(&self) -> Result<FileText, NotText> {
        FileText::of_buffer(&self.text, &self.encoding)
    }
}

/// The result of a change of a buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BufferChanged {
    /// The buffer no longer has the tick of the request, so nothing was changed.
    pub moved: bool,
    /// The reason why nothing was changed.
    pub problem: Option<String>,
    /// The reason why the file does not have the change: the buffer is not saved.
    pub unsaved: Option<String>,
    /// The text of the buffer after the write, if autocommands changed it; none if they changed nothing.
    #[serde(with = "serde_bytes")]
    pub text: Option<Vec<u8>>,
    /// The diagnostics that were not there before the change: `line:column: severity: message`.
    pub diagnostics: Vec<String>,
}

/// The answer of Neovim or of a language server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EditorAnswer {
    pub entries: Vec<EditorEntry>,
    /// The places of a name. The backend reads their lines.
    pub places: Vec<ServerPlace>,
    /// The edits that rename a symbol, and the unit of their characters.
    pub files: Vec<FileEdits>,
    pub unit: Option<CharacterUnit>,
    /// The number of entries or places beyond the limit, which were not sent.
    pub more: usize,
    /// The reason why there is no answer, for a sentence.
    pub problem: Option<String>,
}

/// The edits of a language server to a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FileEdits {
    /// The real path of the file.
    pub file: String,
    /// The 'changedtick' of the buffer for which the edits are made; none if the file is not loaded.
    pub tick: Option<u64>,
    pub edits: Vec<PlacedEdit>,
}

/// A place in a file, as a language server names it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServerPlace {
    #[serde(with = "serde_bytes")]
    pub file: Vec<u8>,
    /// The row and the character in it, from 0.
    pub row: usize,
    pub character: usize,
    pub unit: CharacterUnit,
}

impl ServerPlace {
    /// Returns the path as the language server gave it.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.file))
    }
}

/// A line of an [`EditorAnswer`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EditorEntry {
    /// The real path of the file that it is about.
    #[serde(with = "serde_bytes")]
    pub file: Vec<u8>,
    /// The place in the file, from 1; the column counts bytes.
    pub line: Option<u64>,
    pub column: Option<u64>,
    #[serde(with = "serde_bytes")]
    pub text: Vec<u8>,
}

/// The text of a prompt file that the person may trust.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PromptFileCheck {
    pub request: u64,
    /// The name of the slash command, without the slash.
    pub name: String,
    pub path: PathBuf,
    /// The whole text of the file.
    pub text: String,
}

/// A prompt that a file has. The person types only a slash command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PromptFile {
    /// None if the person wrote the file, so that it needs no trust.
    pub path: Option<PathBuf>,
    /// The whole text of the file.
    pub text: String,
    /// The prompt for the model, with the person's arguments.
    pub prompt: String,
}

/// Options of a person's own command.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    /// `++env=`; none takes the setting `run_environment`.
    pub environment: Option<RunEnvironment>,
    /// `++timeout=`, seconds, 0 is no limit; none takes the setting `run_timeout`.
    pub timeout: Option<u64>,
    /// `/sandbox build`: builds the image of the settings in place of the command, outside of all confinements.
    #[serde(default)]
    pub builds_image: bool,
    /// `++try`: runs it as a trial, and then asks what to keep.
    #[serde(default)]
    pub trial: bool,
    /// The shell and the environment of the person's Neovim at that moment.
    pub host: Option<HostEnvironment>,
}

/// The environment of a person's own command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnvironment {
    /// The allowlist, and bash.
    Restricted,
    /// Neovim's variables without the forbidden ones, and the person's shell.
    Inherit,
}

/// The person's answer to a hunk of a change.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HunkAnswer {
    pub accept: bool,
    /// The lines that the person wrote in place of the new ones.
    pub lines: Option<Vec<String>>,
    /// A remark for the model.
    pub comment: Option<String>,
}

/// The person's answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Once,
    Always,
    Deny,
    /// Run the command that the person wrote instead, unless a deny rule forbids it.
    Edited,
    /// Make the parts of a change that the person accepted.
    Reviewed,
    /// The answers to questions with choices.
    Chosen,
    /// Drop what the trial of the command changed, and run it for real.
    Real,
    /// Run the command as a trial first.
    Try,
    /// Run this command as a trial first. Later commands of the workspace run as trials first without this question.
    TryFirst,
}

/// The commands that the answer `always` allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This same command, for the chat. In a question about hosts: these hosts, for this same command of the chat.
    Command,
    /// Every command that starts with the offered prefix, for the chat.
    Prefix,
    /// Every command that starts with the offered prefix, in this workspace, from now on.
    PrefixSaved,
    /// Every edit of a file of the workspace, for the chat.
    Edits,
    /// All commands, for the chat. Deny rules still refuse.
    Everything,
    /// The hosts of the question, for confined commands of the chat.
    Hosts,
    /// The hosts of the question, for confined commands in this workspace, from now on.
    HostsSaved,
    /// Every tool of the tool server, for the chat.
    Server,
    /// Every tool of the tool server, in this workspace, from now on.
    ServerSaved,
}

#[cfg(test)]
mod tests {
    use rmpv::Value;

    use super::*;

    #[test]
    fn input_may_be_any_bytes() {
        for data in [&b"yes\n"[..], b"\x1b[M \xff\x80"] {
            // As Neovim packs a Lua string: a str, whatever is in it.
            let length = u8::try_from(data.len()).unwrap();
            let packed = [&[0xd9, length], data].concat();
            let text = rmpv::decode::read_value(&mut packed.as_slice()).unwrap();
            let map = [
                ("type", "run_input".into()),
                ("run", 3.into()),
                ("data", text),
            ];
            let map = map.map(|(name, value): (&str, Value)| (Value::from(name), value));
            let message: FromEditor = rmpv::ext::from_value(Value::Map(map.to_vec())).unwrap();
            let expected = FromEditor::RunInput {
                run: 3,
                data: data.to_vec(),
                close: false,
            };
            assert_eq!(message, expected);
        }
    }
}
