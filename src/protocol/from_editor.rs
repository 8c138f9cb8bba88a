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
    /// The first message, with the versions and the settings.
    Hello {
        protocol: u32,
        version: String,
        /// The settings of `setup{}` or `vim.g.co`. The settings that only Lua reads are left out.
        #[serde(default)]
        settings: serde_json::Value,
        /// True if the person is about to begin a chat. The backend then probes the sandbox before the first message of the chat.
        #[serde(default)]
        begins_chat: bool,
    },
    /// All settings of `setup{}` and `vim.g.co`. Lua sends them after a change.
    Settings {
        #[serde(default)]
        settings: serde_json::Value,
    },
    /// The person's choice with `/sandbox`, as a value of `sandbox_backend`. If a backend failed, Lua sends the choice to the
    /// next backend.
    Sandbox { confinement: String },
    /// The person sent a prompt. `chat` is a number that Lua chooses, 1 or more. The first message with a new number makes the
    /// chat.
    Prompt {
        chat: u64,
        text: String,
        /// The working directory of the window. It is fixed by the first prompt.
        cwd: String,
        #[serde(default)]
        context: Vec<Context>,
        /// The only lines that edits of the turn may change.
        range: Option<LineRange>,
        /// True if the prompt goes with the next request of the running turn.
        #[serde(default)]
        steer: bool,
        /// The prompt file that `text` names with a slash command.
        file: Option<PromptFile>,
    },
    /// Asks whether the person trusts a prompt file of the workspace.
    CheckPromptFile {
        chat: u64,
        cwd: String,
        #[serde(flatten)]
        check: PromptFileCheck,
    },
    /// Asks for the text of a context in a prompt.
    ReadContext {
        chat: u64,
        #[serde(flatten)]
        wanted: ContextRequest,
    },
    /// The person typed `<C-c>` in a chat. The first `<C-c>` cancels the turn, and a second one drops the queued prompts.
    Cancel { chat: u64 },
    /// Asks for the part of a resumed text above the text that the chat shows. `above` is the value of the field `above` in the
    /// last part that Lua got.
    EarlierText { chat: u64, above: usize },
    /// The draft of a prompt changed. The backend saves the draft with the transcript. If the chat has no transcript and `begins`
    /// is true, the backend begins one.
    Draft {
        chat: u64,
        cwd: String,
        text: String,
        begins: bool,
    },
    /// The person saves the buffer of the plan. The backend stores the plan with the chat.
    KeepPlan {
        chat: u64,
        cwd: String,
        text: String,
    },
    /// A slash command for the backend. `name` has no slash.
    Command {
        chat: u64,
        name: String,
        #[serde(default)]
        args: String,
        cwd: String,
        /// The options for a command. `!` uses them for the command in `args`, and `/commit` uses them for the commit.
        #[serde(default)]
        options: RunOptions,
    },
    /// Asks for the completions of the argument of `/model`. The backend answers with [`super::ToEditor::Models`].
    ListModels {
        /// The chat whose provider co asks; none if there is no chat yet.
        chat: Option<u64>,
        /// The typed text up to its first slash; empty if it has no slash. The text may be the name of a profile.
        head: String,
    },
    /// The person typed `/commit` in the buffer of a commit message: asks the model of the chat for the message. The chat does
    /// not show the request.
    WriteCommit {
        chat: u64,
        cwd: String,
        #[serde(flatten)]
        commit: CommitPlace,
    },
    /// The buffer of the chat was deleted.
    Close { chat: u64 },
    /// The answer to a [`super::ToEditor::Question`], a [`super::ToEditor::Trust`] or a [`super::ToEditor::Changes`]. A `Trust`
    /// accepts only `once` or `deny`, and a `Changes` accepts only `reviewed` or `deny`.
    Answer(QuestionAnswer),
    /// Asks for the next part of a text under review, after its first `from` bytes. `id` is the id of the question or of the
    /// [`super::ToEditor::Changes`]. `file` is the index of the file in the list of files of this message.
    ReadReview { id: u64, file: usize, from: usize },
    /// Saves the answers about the parts of a file in a `/review`, because Neovim may end before the review does. `id` and `file`
    /// have the same meaning as in [`ReadReview`](Self::ReadReview).
    KeepAnswers {
        id: u64,
        file: usize,
        answers: Vec<PartAnswer>,
    },
    /// The person typed `:Co! cmd`. `run` is a number that Lua chooses, 1 or more, and never uses again. Names and input may
    /// contain any bytes.
    Run {
        run: u64,
        #[serde(with = "serde_bytes")]
        command: Vec<u8>,
        #[serde(with = "serde_bytes")]
        cwd: Vec<u8>,
        #[serde(default, with = "serde_bytes")]
        stdin: Option<Vec<u8>>,
        /// True if standard input stays open after `stdin`. [`RunInput`](Self::RunInput) can then follow.
        #[serde(default)]
        open: bool,
        /// The size of the terminal; none if the command runs without a terminal.
        terminal: Option<TerminalSize>,
        #[serde(default)]
        options: RunOptions,
    },
    /// Bytes for the standard input of a run that keeps its input open, or the end of the input.
    RunInput {
        run: u64,
        #[serde(default, with = "serde_bytes")]
        data: Vec<u8>,
        #[serde(default)]
        close: bool,
    },
    /// The size of a run's terminal has changed.
    RunResize { run: u64, size: TerminalSize },
    /// The person typed `<C-c>` on a run.
    CancelRun { run: u64 },
    /// Sets whether a job of the model outlives its chat.
    KeepRun { run: u64, keep: bool },
    /// Asks for the first lines of a file that contains an output, in the form in which a screen shows them.
    ReadOutput {
        request: u64,
        file: PathBuf,
        lines: usize,
    },
    /// The person is about to save a file, or has saved it. `file` is its canonical path.
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
    /// Lua cannot answer a request because its code failed.
    Failed { request: u64 },
    /// The state of the hooks of plugins. `before_command` is true if plugins have hooks before a command.
    Hooks { before_command: bool },
    /// The answer to a [`super::ToEditor::BeforeCommand`].
    CommandHooked {
        request: u64,
        /// The reason why a plugin refuses the command; none if no plugin refuses it.
        refusal: Option<String>,
    },
    /// The answer to a [`super::ToEditor::EditFile`].
    FileEdited {
        request: u64,
        /// The reason why the program that asked for the edit must fail; none if the person closed the file.
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
    /// The agent no longer waits for the result of the call.
    CancelAgentCall { request: u64 },
}

/// A call of an agent in a terminal of Neovim.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentCall {
    pub request: u64,
    /// The id of the agent's connection to Neovim.
    pub client: u64,
    /// The name that the agent gives itself. It may be any text.
    pub agent: String,
    pub tool: String,
    /// The arguments of the call as JSON.
    pub arguments: String,
    /// The working directory of the agent.
    #[serde(with = "serde_bytes")]
    pub cwd: Vec<u8>,
}

/// The message with the person's answer to a question.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct QuestionAnswer {
    pub id: u64,
    pub decision: Answer,
    pub reason: Option<String>,
    /// The scope that the person chose. It is set if the answer is `always`.
    pub scope: Option<Scope>,
    /// The command to run instead. It is set if the answer is `edited`.
    #[serde(default, with = "serde_bytes")]
    pub command: Option<Vec<u8>>,
    /// The answers about the hunks of the change, in the order of the hunks. They are set if the answer is `reviewed`.
    #[serde(default)]
    pub hunks: Vec<HunkAnswer>,
    /// The answers to the questions with choices, in the order of the questions. They are set if the answer is `chosen`.
    #[serde(default)]
    pub chosen: Vec<ChosenAnswer>,
}

/// The answer to a question with choices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ChosenAnswer {
    /// The numbers of the choices that the person chose. Choices are numbered from 1.
    #[serde(default)]
    pub choices: Vec<usize>,
    /// The text that the person wrote, if they wrote one.
    #[serde(default)]
    pub text: Option<String>,
}

/// A request for the text of a context in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ContextRequest {
    pub request: u64,
    /// The working directory of the window.
    pub cwd: String,
    /// The context as written in the prompt, such as `@file:README.md`.
    pub word: String,
    pub query: ContextQuery,
}

/// The query that determines the text of a context.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ContextQuery {
    /// The text of a file, or the image that the file contains.
    File { path: String },
    /// A text of files that the editor already has. The backend only checks whether the model may get it.
    Text {
        paths: Vec<String>,
        text: String,
        /// The whole lines that contain `text`. It is set if `text` begins or ends within a line.
        lines: Option<String>,
    },
    /// The diff of git, with staged and unstaged changes.
    Diff,
    /// A commit of git, or another object.
    Commit { revision: String },
    /// The lines of the workspace that contain a text.
    Search { text: String },
    /// The text of a skill.
    Skill { name: String },
    /// A resource of a tool server of the chat.
    Resource { server: String, uri: String },
    /// A prompt of a tool server of the chat. Its arguments are `NAME=value` or plain values.
    ServerPrompt {
        server: String,
        name: String,
        arguments: Vec<String>,
    },
    /// The completions of an argument of a tool server's prompt, one on each line. The result is empty if the server does not
    /// run.
    ServerArguments {
        server: String,
        name: String,
        /// The arguments before the argument that is completed.
        arguments: Vec<String>,
        /// The typed start of the argument that is completed.
        text: String,
    },
    /// The addresses of a tool server that begin with `uri`, one on each line.
    ServerAddresses { server: String, uri: String },
    /// The places in files at which language servers find a name.
    Places {
        definitions: Vec<ServerPlace>,
        references: Vec<ServerPlace>,
        /// The number of references that were left out because of the limit.
        more: usize,
    },
}

/// The repository of a commit whose message the person edits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct CommitPlace {
    /// A directory inside the work tree.
    pub directory: String,
    /// The environment variables that git gave its editor, such as `GIT_INDEX_FILE`.
    #[serde(default)]
    pub variables: Vec<(String, String)>,
}

/// A range of lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LineRange {
    /// The canonical path of the file.
    pub file: String,
    /// The number of the first line. Lines are numbered from 1.
    pub first: usize,
    /// The number of the last line.
    pub last: usize,
}

/// The text of a loaded buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct BufferText {
    /// The canonical path of the buffer's file, as the request named it.
    pub file: String,
    /// The text, with a line break after each line. The last line may have none.
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
    /// The reason why co cannot read or change the buffer; none if it can.
    pub problem: Option<String>,
}

impl BufferText {
    /// Returns the text of the buffer as a [`FileText`].
    ///
    /// # Errors
    /// The content of the buffer is not text.
    pub fn file_text(&self) -> Result<FileText, NotText> {
        FileText::of_buffer(&self.text, &self.encoding)
    }
}

/// The result of a change of a buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BufferChanged {
    /// True if nothing was changed because the 'changedtick' of the buffer differs from the one in the request.
    pub moved: bool,
    /// The reason why the buffer was not changed; none if it was changed.
    pub problem: Option<String>,
    /// The reason why the buffer was changed but not saved; none if it was saved.
    pub unsaved: Option<String>,
    /// The text of the buffer after it was saved, if autocommands changed the text; none if they did not.
    #[serde(with = "serde_bytes")]
    pub text: Option<Vec<u8>>,
    /// The diagnostics that are new since the change, each as `line:column: severity: message`.
    pub diagnostics: Vec<String>,
}

/// The answer of Neovim or of a language server to a query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EditorAnswer {
    pub entries: Vec<EditorEntry>,
    /// The places at which a name occurs. The backend reads the lines at these places.
    pub places: Vec<ServerPlace>,
    /// The edits that rename a symbol, for each file.
    pub files: Vec<FileEdits>,
    /// The unit in which these edits count characters.
    pub unit: Option<CharacterUnit>,
    /// The number of entries or places that were left out because of the limit.
    pub more: usize,
    /// The reason why there is no answer, as a part of a sentence.
    pub problem: Option<String>,
}

/// The edits of a language server to a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FileEdits {
    /// The canonical path of the file.
    pub file: String,
    /// The 'changedtick' of the buffer to which the edits apply; none if the file is not loaded.
    pub tick: Option<u64>,
    pub edits: Vec<PlacedEdit>,
}

/// A place in a file, in the form in which a language server gives it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServerPlace {
    #[serde(with = "serde_bytes")]
    pub file: Vec<u8>,
    /// The number of the row, from 0.
    pub row: usize,
    /// The number of the character in this row, from 0. `unit` is the unit in which characters are counted.
    pub character: usize,
    pub unit: CharacterUnit,
}

impl ServerPlace {
    /// Returns the path that the language server gave.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.file))
    }
}

/// A line of an [`EditorAnswer`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EditorEntry {
    /// The canonical path of the file that this line of the answer is about.
    #[serde(with = "serde_bytes")]
    pub file: Vec<u8>,
    /// The number of the line in the file, from 1.
    pub line: Option<u64>,
    /// The number of the byte in the line, from 1.
    pub column: Option<u64>,
    #[serde(with = "serde_bytes")]
    pub text: Vec<u8>,
}

/// A prompt file that the person may trust.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PromptFileCheck {
    pub request: u64,
    /// The name of the slash command, without the slash.
    pub name: String,
    pub path: PathBuf,
    /// The whole text of the file.
    pub text: String,
}

/// A prompt that comes from a file. The person types only its slash command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PromptFile {
    /// The path of the file; none if the person wrote the file, so that it needs no trust.
    pub path: Option<PathBuf>,
    /// The whole text of the file.
    pub text: String,
    /// The prompt that the model gets, with the person's arguments filled in.
    pub prompt: String,
}

/// The options for a command of the person.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    /// The value of `++env=`. `None` means the value of the setting `run_environment`.
    pub environment: Option<RunEnvironment>,
    /// The value of `++timeout=` in seconds; 0 means no limit. `None` means the value of the setting `run_timeout`.
    pub timeout: Option<u64>,
    /// True for `/sandbox build`, which builds the container image of the settings. The build replaces the command, and runs
    /// without confinement.
    #[serde(default)]
    pub builds_image: bool,
    /// True for `++try`: co runs the command as a trial, and then asks which changes to keep.
    #[serde(default)]
    pub trial: bool,
    /// The shell and the environment of the person's Neovim when the command was typed.
    pub host: Option<HostEnvironment>,
}

/// The environment variables and the shell for a command of the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnvironment {
    /// The variables of the allowlist, and bash.
    Restricted,
    /// The variables of Neovim except the forbidden ones, and the person's shell.
    Inherit,
}

/// The person's answer about a hunk of a change.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HunkAnswer {
    pub accept: bool,
    /// The lines that the person wrote in place of the new lines of the hunk.
    pub lines: Option<Vec<String>>,
    /// A comment for the model.
    pub comment: Option<String>,
}

/// The kind of the person's answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Once,
    Always,
    Deny,
    /// Run the command that the person wrote instead. co refuses it if a deny rule forbids it.
    Edited,
    /// Make only the parts of the change that the person accepted.
    Reviewed,
    /// The person answered questions with choices.
    Chosen,
    /// Drop the changes of the trial, and run the command for real.
    Real,
    /// Run the command as a trial before the person decides.
    Try,
    /// Run the command as a trial. From now on, also run later commands of the workspace as trials before co asks.
    TryFirst,
}

/// The calls that the answer `always` allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This exact command, in this chat. In a question about hosts: these hosts, for this exact command in this chat.
    Command,
    /// Every command that starts with the offered prefix, in this chat.
    Prefix,
    /// Every command that starts with the offered prefix, in this workspace, permanently.
    PrefixSaved,
    /// Every edit of a file of the workspace, in this chat.
    Edits,
    /// Every command, in this chat. Deny rules still apply.
    Everything,
    /// The hosts of the question, for confined commands of this chat.
    Hosts,
    /// The hosts of the question, for confined commands in this workspace, permanently.
    HostsSaved,
    /// Every tool of the tool server, in this chat.
    Server,
    /// Every tool of the tool server, in this workspace, permanently.
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
