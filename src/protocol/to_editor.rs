//! The messages from the backend to Lua.

use serde::{Deserialize, Serialize, Serializer};

use super::change::{Change, ChangesReview, OpenLines, OpenSummary};
use co_exec::ScreenPatch;
use co_llm::transcript::{Cost, Image, Usage};

/// A message from the backend to Lua.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToEditor {
    /// The versions of plugin and backend match. Lua can now send the messages that waited.
    Ready { protocol: u32, version: String },
    /// The confinement of commands that run without approval, for the winbar, such as `unasked: read-only`. If these commands
    /// have no confinement, the reason.
    Isolation { isolation: String },
    /// `/sandbox` has changed the confinement of approved commands to this value of `sandbox_backend`.
    Sandbox { confinement: String },
    /// The versions of plugin and backend do not match, or the backend could not start. The backend ends.
    Refused { message: String },
    /// A notice for the person.
    Notice {
        level: NoticeLevel,
        message: String,
        /// True if the notice answers a command that the person typed. Lua then shows the whole text.
        answer: bool,
    },
    /// Adds text to the end of a chat's buffer.
    Append { chat: u64, text: String },
    /// A call of a chat. A call with a new number is added to the end of the text; otherwise, the line of the known call changes.
    Call {
        chat: u64,
        call: u64,
        #[serde(flatten)]
        line: CallLine,
    },
    /// A change of the output in this block.
    Block {
        chat: u64,
        block: u64,
        patch: Option<ScreenPatch>,
        done: bool,
    },
    /// The state of a chat for the winbar.
    State {
        chat: u64,
        state: ChatState,
        /// A detail of the state, such as `in 3 s: openai failed (HTTP 500)`.
        detail: String,
        model: String,
        cwd: String,
        confinement: String,
        /// The numbers of tokens that the whole chat used.
        #[serde(flatten)]
        used: TokenUse,
        /// The numbers of tokens that the current or last turn used.
        turn: Box<TokenUse>,
        /// The percentage of the model's context window that the last request filled; none before the first request.
        window_used: Option<u64>,
        /// The first line of each command that runs in the foreground: calls of the model and `!` lines.
        commands: Vec<String>,
        /// The number of prompts that wait for the end of the turn.
        queued: usize,
        /// The number of prompts that go with the next request of the turn.
        steering: usize,
        /// The number of prompts that no longer wait: they are in the transcript, or a cancel dropped them.
        taken_prompts: u64,
        /// The id of the chat's transcript, which `/resume` accepts; none if there is no transcript yet.
        transcript: Option<String>,
        /// The title that the person set with `/rename`, or the first words of the first prompt. Empty before the first prompt.
        title: String,
        /// True if the person chose a model other than the one in the settings.
        chosen: bool,
        /// Short notes about what waits, and about unusual choices of the person, such as `ASKS NOTHING`.
        unusual: Vec<String>,
        /// A summary of the open changes; none if the person has accepted or rejected all changes.
        open: Option<OpenSummary>,
        /// The progress of the model's plan; none if no step of a plan is open.
        plan: Option<PlanProgress>,
        /// The mode of the chat's agent; none if the agent has no modes.
        mode: Option<String>,
    },
    /// The completions of the slash commands of the chat's agent.
    AgentWords {
        chat: u64,
        /// The name of the agent; none if a model answers in the chat.
        agent: Option<String>,
        commands: Vec<AgentCommand>,
        modes: Vec<String>,
        models: Vec<String>,
        efforts: Vec<String>,
    },
    /// The completions of the prompts and resources of the chat's tool servers.
    ServerWords {
        chat: u64,
        /// The prompts. They complete slash commands. A name consists of the server and the prompt.
        prompts: Vec<ServerWord>,
        /// The resources. The resources of tool servers that Lua offers as completions of contexts. The name of a resource
        /// consists of the server and the address.
        resources: Vec<ServerWord>,
    },
    /// The changed lines of the chat that the person has neither accepted nor rejected yet. They replace the lines of the last
    /// such message.
    OpenChanges { chat: u64, files: Vec<OpenLines> },
    /// Asks the person a question.
    Question(Box<Question>),
    /// The first checkpoint was taken, or could not be taken. Lua sets the field `no_undo` of the chat's open questions to `why`:
    /// the reason if it could not be taken.
    NoUndo { chat: u64, why: Option<String> },
    /// The answer to a [`super::FromEditor::ReadOutput`]. `lines` is empty if the file cannot be read.
    OutputRead { request: u64, lines: Vec<String> },
    /// The answer to a [`super::FromEditor::ReadContext`].
    ContextRead {
        request: u64,
        #[serde(flatten)]
        read: ContextRead,
    },
    /// The result of a [`super::FromEditor::AgentCall`].
    AgentCallDone {
        request: u64,
        text: String,
        failed: bool,
    },
    /// Asks the person whether they trust a file of the workspace, or whether a context may be sent.
    Trust(TrustQuestion),
    /// The question no longer waits for an answer. Lua closes the float of the question.
    Settled { id: u64, decision: String },
    /// A run started. Lua can now show its line `$ cmd`.
    RunStarted {
        run: u64,
        command: String,
        cwd: String,
        /// The chat and the job that the run belongs to; none for a run of the person.
        owner: Option<Owner>,
        /// A short description of the confinement, and a hint if the command may need a terminal.
        detail: Option<String>,
    },
    /// The person runs this command in a terminal. Lua starts the command as a run.
    OpenTerminal { command: String, cwd: String },
    /// New output of a run without a terminal.
    RunOutput { run: u64, patch: ScreenPatch },
    /// New output of a run in a terminal, including escape sequences.
    RunData { run: u64, data: String },
    /// A run ended. `status` is its last line, and `spill` is the file that contains its output.
    RunEnded {
        run: u64,
        status: String,
        exit: Option<i32>,
        spill: Option<std::path::PathBuf>,
        /// True if something of the run goes on until [`LeftEnded`](Self::LeftEnded): its remaining processes, or the question
        /// about its trial.
        left: bool,
    },
    /// The processes that a run left running have ended, or the question about its trial is settled. `status` replaces the status
    /// of [`RunEnded`](Self::RunEnded).
    LeftEnded {
        run: u64,
        status: String,
        /// True if the person wants to run the command of the trial for real. Lua then runs it again as a new run.
        again: bool,
    },
    /// The earlier prompts of a resumed chat, the oldest first, and its draft.
    Prompts {
        chat: u64,
        transcript: String,
        prompts: Vec<String>,
        draft: Option<String>,
    },
    /// The backend has handled a [`super::FromEditor::Draft`].
    DraftKept { chat: u64 },
    /// The plan of a chat, for the plan's buffer.
    Plan {
        chat: u64,
        text: String,
        /// True if Lua must open the buffer, because the person asked for the plan.
        open: bool,
    },
    /// A prompt was not sent. Lua puts its text back into the draft.
    Unsent { chat: u64, text: String },
    /// The next text in the chat is a message of the person or the model.
    MessageBegins {
        chat: u64,
        /// The time of a prompt, in seconds since 1970; none for an answer.
        at: Option<u64>,
    },
    /// The next text in the chat is the model's answer, which `/retry` replaces.
    AnswerBegins { chat: u64 },
    /// The last answer ends its turn. Lua puts a blank line above the answer, because calls precede it.
    SeparateAnswer { chat: u64 },
    /// The model no longer gets the last answer. Lua folds its text.
    FoldAnswer { chat: u64 },
    /// Replaces the text of a chat after `/resume`. If the text is long, `part` is only the end of the text.
    Replace {
        chat: u64,
        #[serde(flatten)]
        part: TextPart,
    },
    /// The part of a resumed text above the text that the chat shows.
    Earlier {
        chat: u64,
        #[serde(flatten)]
        part: TextPart,
    },
    /// Lets the person choose with `vim.ui.select`. Lua sends the `value` of the chosen entry back as the argument of the command
    /// `name`.
    Choose {
        chat: u64,
        name: String,
        title: String,
        choices: Vec<Choice>,
    },
    /// Opens an address in the person's browser, because they asked for that.
    OpenAddress { address: String },
    /// The answer to [`super::FromEditor::ListModels`].
    Models {
        chat: Option<u64>,
        head: String,
        words: Vec<String>,
    },
    /// Fills the quickfix list and opens its window.
    Quickfix {
        title: String,
        entries: Vec<QuickfixEntry>,
        /// True to update an earlier list of `/review`. Lua then replaces the current list only if it is such a list, and opens
        /// no window.
        update: bool,
    },
    /// Opens the review of a chat's changes. Lua answers with `reviewed` and the hunks of all files, or with `deny`.
    Changes(ChangesReview),
    /// The next part of a text under review, which Lua asked for with [`super::FromEditor::ReadReview`].
    ReviewPart {
        id: u64,
        file: usize,
        /// The number of bytes of the whole text before this part.
        from: usize,
        text: String,
        /// True if more text follows.
        more: bool,
    },
    /// Asks for the texts of the buffers of these files. The paths are canonical. Lua answers with
    /// [`super::FromEditor::Buffers`].
    ReadBuffers {
        request: u64,
        /// The chat whose turn waits for the answer.
        chat: Option<u64>,
        files: Vec<String>,
        /// A canonical path. Lua also sends the buffers with unsaved changes of this file, or of files below this directory.
        modified_below: Option<String>,
    },
    /// Changes a buffer. Lua answers with [`super::FromEditor::BufferChanged`].
    ChangeBuffer {
        request: u64,
        /// The chat whose turn waits for the answer.
        chat: Option<u64>,
        #[serde(flatten)]
        change: BufferChange,
    },
    /// The backend no longer waits for the answer to this `ReadBuffers`, `ChangeBuffer` or `EditFile`. If a command of the person
    /// still delays the request, Lua drops the request, and answers a `ChangeBuffer` all the same. A file that Lua has opened
    /// stays open.
    WithdrawRequest { request: u64 },
    /// co deleted a file, or renamed it to `to`. The paths are canonical. Lua updates the buffer of the file.
    FileGone { file: String, to: Option<String> },
    /// Sends a query to Neovim or a language server. Lua answers with [`super::FromEditor::EditorAnswer`].
    EditorQuery {
        request: u64,
        #[serde(flatten)]
        query: EditorQuery,
    },
    /// Calls the hooks of plugins before a command. Lua answers with [`super::FromEditor::CommandHooked`].
    BeforeCommand {
        request: u64,
        #[serde(flatten)]
        command: PlannedCommand,
    },
    /// Opens a file that a command of the person wants to be edited. Lua answers with [`super::FromEditor::FileEdited`] when the
    /// person has closed the file.
    EditFile {
        request: u64,
        #[serde(flatten)]
        edit: FileEdit,
    },
    /// The commit message that [`super::FromEditor::WriteCommit`] asked for, or the reason why there is none.
    CommitMessage {
        chat: u64,
        text: Option<String>,
        problem: Option<String>,
    },
    /// The answer to [`super::FromEditor::CheckPromptFile`]. `question` is the id of the question that waits for the person's
    /// answer.
    PromptFileChecked {
        request: u64,
        trusted: bool,
        question: Option<u64>,
    },
    /// Raises a `User` autocommand, such as `CoTurnDone`.
    Event {
        name: String,
        data: serde_json::Value,
    },
}

/// An entry of the quickfix list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuickfixEntry {
    /// The absolute path; empty if the entry belongs to no file.
    pub file: String,
    /// The line in the file. Lines are numbered from 1.
    pub line: usize,
    pub text: String,
}

/// A change of a buffer's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BufferChange {
    /// The canonical path of the buffer's file.
    pub file: String,
    /// The 'changedtick' of the buffer when the change was computed.
    pub tick: u64,
    /// The replaced lines, from the first to the last.
    pub replacements: Vec<BufferReplacement>,
    /// True if the text ends with a line break.
    pub final_newline: bool,
}

/// A query about the editor or its language servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EditorQuery {
    pub topic: EditorTopic,
    /// The canonical path of the file that language servers are asked about.
    pub file: Option<String>,
    /// The name to look up.
    pub name: Option<String>,
    /// The number of the line that contains the name, from 1. If it is `None`, the name is looked up in the whole file.
    pub line: Option<u64>,
    /// The new name. It is set for [`EditorTopic::Rename`].
    pub new_name: Option<String>,
}

/// A command of the model that is about to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedCommand {
    pub chat: u64,
    pub command: String,
    pub cwd: String,
    /// True if the command runs without approval, because it is read-only or runs as a trial.
    pub unasked: bool,
    /// The job to whose input the model sends `command`; none for a new command.
    pub job: Option<u64>,
}

/// A file that a command of the person wants to be edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileEdit {
    /// The absolute path.
    pub file: String,
    /// The line at which the cursor is put, numbered from 1.
    pub line: Option<u64>,
    /// The command as the person typed it.
    pub command: String,
    /// The working directory of the program that wants the file to be edited.
    pub directory: String,
    /// The environment variables of git that this program has, such as `GIT_INDEX_FILE`.
    pub variables: Vec<(String, String)>,
}

/// The subject of an [`EditorQuery`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditorTopic {
    /// The person's current file, cursor and visible lines, and the open files.
    State,
    Diagnostics,
    Quickfix,
    /// The symbols of a file.
    Symbols,
    /// The definition of a name.
    Definition,
    /// The references to a name.
    References,
    /// The edits that rename a symbol. The tool `editor_context` does not offer this query.
    #[serde(skip_deserializing)]
    Rename,
}

/// New lines of a buffer that replace a range of lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BufferReplacement {
    /// The index of the first replaced line, from 0.
    pub start: usize,
    /// The index of the line after the last replaced line.
    pub end: usize,
    /// The new lines, without line breaks.
    pub lines: Vec<BufferLine>,
}

/// A line in the form in which Neovim stores it in a buffer. It is UTF-8, unless the person opened the file with another
/// interpretation of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferLine(pub Vec<u8>);

impl Serialize for BufferLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.serialize_bytes(&self.0),
        }
    }
}

/// New lines that replace a range of lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replacement {
    /// The index of the first replaced line, from 0.
    pub start: usize,
    /// The index of the line after the last replaced line.
    pub end: usize,
    /// The new lines, without line breaks.
    pub lines: Vec<String>,
}

/// Numbers of tokens and their cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TokenUse {
    pub input: u64,
    pub output: u64,
    /// The number of tokens of `input` that came from the provider's cache.
    pub cached: u64,
    /// The cost in US dollars; none if no price is known.
    pub cost: Option<f64>,
    /// True if some prices are not known, so that the real cost is higher.
    pub at_least: bool,
}

impl From<Usage> for TokenUse {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input,
            output: usage.output,
            cached: usage.cached,
            cost: usage.cost.map(Cost::dollars),
            at_least: usage.at_least,
        }
    }
}

/// The progress of the model's plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlanProgress {
    /// The number of completed steps.
    pub done: u16,
    /// The number of all steps.
    pub steps: u16,
}

/// A call as the chat shows it: a line for the call, and lines below it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CallLine {
    pub state: CallState,
    /// The text of the line, without the sign of the state at its start.
    pub text: String,
    /// Less important details for the right edge of the line.
    pub details: String,
    /// The lines above the output, such as the rest of a command.
    pub lead: Vec<String>,
    /// The lines below the output.
    pub remarks: Vec<String>,
    /// The number of the block that contains the output.
    pub block: Option<u64>,
    /// The file with the whole output; none if the output is short.
    pub spill: Option<String>,
    /// The number of last lines of the output that stay visible after the call has ended. The other lines are folded. None while
    /// the call runs.
    pub kept: Option<usize>,
    /// True if all lines below the call's line are folded as soon as there are more than `kept`. Otherwise, the last `kept` of
    /// them stay visible.
    pub whole: bool,
    /// True if the output is a diff.
    pub diff: bool,
}

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The call waits for the person's answer.
    #[default]
    Waits,
    Runs,
    /// The call has ended, and could not change anything.
    Looks,
    Done,
    Failed,
}

/// The rows of a call in a part of a chat's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallRows {
    /// The row of the call's line.
    pub row: usize,
    /// The number of lines of output. They are between the lead and the remarks of the call.
    pub output: usize,
    /// The number of lines that are left out at the start of the output.
    pub skipped: usize,
    #[serde(flatten)]
    pub line: CallLine,
}

/// The row of a message in a part of a chat's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MessageRow {
    /// The first row of the message.
    pub row: usize,
    /// The time of a prompt, in seconds since 1970; none for an answer.
    pub at: Option<u64>,
}

/// A part of a chat's text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TextPart {
    /// The text of the part. If another part follows, the text ends with a line break, unless a line is too long for one part.
    pub text: String,
    /// The first and the last row of each fold, counted from the first row of `text`. Folded are long outputs, and answers that
    /// the model no longer gets. A fold may end below `text`.
    pub folds: Vec<[usize; 2]>,
    /// The row of `text` at which the last answer begins; none if it begins elsewhere.
    pub answer: Option<usize>,
    /// The messages of the person and the model that begin in `text`, from top to bottom.
    pub messages: Vec<MessageRow>,
    /// The calls whose lines are in `text`, from top to bottom. `text` contains their outputs, and empty rows in place of their
    /// lines, leads and remarks.
    pub calls: Vec<CallRows>,
    /// The number of bytes of the text above this part. Lua asks for them later.
    pub above: usize,
}

/// A question for the person.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Question {
    pub id: u64,
    #[serde(flatten)]
    pub asker: Asker,
    /// The command as printable text: control characters and bidirectional characters are escaped.
    pub command: String,
    pub cwd: String,
    /// The time-out of the command in seconds; none if there is no limit.
    pub timeout: Option<u64>,
    /// True if the command runs in a terminal.
    pub terminal: bool,
    /// True if the command runs in the background, as a job.
    pub background: bool,
    /// The job of the chat to whose input `command` is sent.
    pub job: Option<u64>,
    pub confinement: String,
    /// The reasons for the question, one sentence each.
    pub reasons: Vec<String>,
    /// The byte range of `command` that the first reason is about; none for the whole command.
    pub span: Option<[usize; 2]>,
    /// True if the command may destroy data. The border of the float then has another color.
    pub destructive: bool,
    /// The prefix that `always` can allow; none if `always` can allow only this command.
    pub prefix: Option<String>,
    /// True if no permission would apply to a later call, so that `always` is not possible.
    pub only_once: bool,
    /// The reason why only a key in the float can approve the command: the command may reach a secret file or leave the
    /// workspace.
    pub alone: Option<String>,
    /// The reason why the changes of the command cannot be taken back; none if they can.
    pub no_undo: Option<String>,
    /// True if the command can run as a trial, so that the answers `try` and `try_first` are possible.
    pub may_try: bool,
    /// The result of the trial, if the command ran as one. `change` contains the changes of the trial.
    pub tried: Option<TrialSummary>,
    /// The edited command that a deny rule forbids, so that co asks again.
    pub refused_edit: Option<RefusedEdit>,
    /// The change of files that the question is about; none for a command.
    pub change: Option<Change>,
    /// The commit that `/commit` asks about. `command` makes the commit.
    pub commit: Option<Commit>,
    /// The hosts that the running `command` wants to contact. If there are any, the question is about them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<AskedHost>,
    /// The tool server that the call uses. If it is set, the question is about this call.
    pub server: Option<AskedServer>,
    /// The questions with choices that the model asks. If there are any, there is no command, and no answer approves anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<ChoiceQuestion>,
    /// The file in which the person asked for a change of selected lines. If the person looks at this file, the review opens at
    /// once.
    pub review: Option<String>,
}

impl Question {
    /// Returns a question about a change of files.
    pub fn about_change(chat: u64, command: String, change: Change) -> Self {
        Self {
            asker: Asker::Chat(chat),
            command,
            change: Some(change),
            ..Self::default()
        }
    }
}

/// A host that a command wants to contact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AskedHost {
    /// A host name or an IP address.
    pub host: String,
    pub port: u16,
    /// A note about an address that is not on the internet, such as "this machine".
    pub special: Option<String>,
}

/// The tool server and the tool that a call uses. The texts are printable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AskedServer {
    /// The name of the server.
    pub name: String,
    pub tool: String,
}

/// A slash command of an agent. The texts are printable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentCommand {
    pub name: String,
    pub about: String,
}

/// A prompt or a resource of a tool server. The texts are printable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerWord {
    /// The name, such as `server:prompt` or `server:file:///x`.
    pub name: String,
    pub about: String,
    /// The names of a prompt's arguments. For a resource with variables, the URI template; `name` then contains the text before
    /// the first variable.
    pub arguments: Vec<String>,
}

/// A question with choices. The texts are printable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChoiceQuestion {
    pub question: String,
    pub choices: Vec<OfferedChoice>,
    /// True if the person may choose more than one choice.
    pub several: bool,
    pub kind: ChoiceKind,
}

/// The kind of a question with choices. It determines which other answers the person may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    /// A question of the model. The person may also write a text. If the person refuses to answer, the model gets the reason.
    Model,
    /// A field of a form. The person may also write a text.
    Form,
    /// A request of an agent for permission. If the person writes a text, the request is refused, and the text becomes the next
    /// prompt.
    Permission,
    /// A question that only a choice answers.
    Plain,
}

/// A choice of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OfferedChoice {
    pub label: String,
    pub about: Option<String>,
    /// True if the model recommends this choice.
    pub advised: bool,
    /// True if the key for yes selects this choice.
    pub is_yes: bool,
}

/// The origin of a question: a chat, a run of the person whose trial has ended, or an agent in a terminal of Neovim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asker {
    Chat(u64),
    Run(u64),
    /// The printable name of the agent.
    Agent(String),
}

impl Default for Asker {
    fn default() -> Self {
        Self::Chat(0)
    }
}

/// A commit that has not been made yet. The texts are printable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Commit {
    pub message: String,
    /// The files of the commit, each with git's letter for its change.
    pub files: Vec<String>,
    /// True if the files are already staged.
    pub staged: bool,
    /// The changed files that are not part of the commit: untracked files, and changes that are not staged.
    pub left_out: Vec<String>,
}

/// The result of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TrialSummary {
    /// The exit status of the command as text.
    pub status: String,
    /// The last lines of the command's output, in printable form.
    pub output: Vec<String>,
    /// The changes of the trial in `.git`. They are never kept.
    pub git: Option<String>,
    /// Remarks for the person, one sentence each.
    pub notes: Vec<String>,
    /// True if the command failed, perhaps because of the trial, or made changes that cannot be kept. If the person says yes, the
    /// command runs again, without a trial.
    pub runs_again: bool,
}

/// A command of the person that a deny rule forbids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedEdit {
    /// The id of the question that the person answered with this command. The new question replaces it.
    pub question: u64,
    pub command: String,
    /// The reason, in one sentence.
    pub why: String,
}

/// A question that asks whether co may send the text of a file to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrustQuestion {
    pub id: u64,
    /// The name of the file in the workspace.
    pub name: String,
    /// The absolute path of the file. This path and all texts of the question are printable.
    pub path: String,
    /// The size of the file in bytes.
    pub size: usize,
    /// The content of the file.
    pub text: String,
    /// Remarks for the person, one sentence each.
    pub notes: Vec<String>,
    /// The slash command that sends the text; for a skill, the context that sends it. It is `/mcp` for a file that names tool
    /// servers, which is not sent, and `None` for a text that goes with each prompt.
    pub slash: Option<String>,
    /// True if the text goes with one prompt as a context. After a yes, this chat can send the file again without a question.
    pub context: bool,
}

/// The text of a context, or the reason why there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ContextRead {
    /// The text; none for an image, or if the editor already has the text and may send it.
    pub text: Option<String>,
    /// The size of the whole file in bytes. `text` may be only its start.
    pub size: Option<usize>,
    pub image: Option<Image>,
    /// A note that is added to the name of the context.
    pub note: Option<String>,
    /// The reason why the prompt is sent without the context.
    pub problem: Option<String>,
    /// True if the person cancelled, so that the prompt goes back to the person.
    pub cancelled: bool,
}

/// The chat and the job that a run belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Owner {
    pub chat: u64,
    /// The number of the job in the chat.
    pub job: u64,
    /// True if the job has a terminal. The return key of a terminal does not end a line.
    pub terminal: bool,
}

/// An entry of [`ToEditor::Choose`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Choice {
    pub label: String,
    pub value: String,
    /// A question that Lua asks before it sends the value. Lua sends the value only after a yes.
    pub confirm: Option<String>,
}

/// The severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    Info,
    Warn,
    Error,
}

/// The activity of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatState {
    #[default]
    Idle,
    Thinking,
    Streaming,
    Asking,
    Running,
    Retrying,
}
