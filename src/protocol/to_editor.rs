//! The messages from the backend to Lua.

use serde::{Deserialize, Serialize, Serializer};

use super::change::{Change, ChangesReview, OpenLines, OpenSummary};
use co_exec::ScreenPatch;
use co_llm::transcript::{Cost, Image, Usage};

/// A message from the backend to Lua.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToEditor {
    /// Plugin and backend fit: Lua may send the messages that waited.
    Ready { protocol: u32, version: String },
    /// The confinement of unasked commands, for the winbar: `unasked: read-only`, or why there is none.
    Isolation { isolation: String },
    /// `/sandbox` now confines approved commands by this value of `sandbox_backend`.
    Sandbox { confinement: String },
    /// Plugin and backend do not fit, or the backend could not start. It ends.
    Refused { message: String },
    /// A notice for the person.
    Notice {
        level: NoticeLevel,
        message: String,
        /// The notice answers a command that the person typed: it is shown whole.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        answer: bool,
    },
    /// Text for the end of a chat's buffer.
    Append { chat: u64, text: String },
    /// A call of a chat: a new one at the end of the text, or the new state of the call with this number.
    Call {
        chat: u64,
        call: u64,
        #[serde(flatten)]
        line: CallLine,
    },
    /// A change of the output of the call that names this block.
    Block {
        chat: u64,
        block: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        patch: Option<ScreenPatch>,
        done: bool,
    },
    /// The content of the winbar.
    State {
        chat: u64,
        state: ChatState,
        /// A detail of the state, such as `in 3 s: openai failed (HTTP 500)`.
        detail: String,
        model: String,
        cwd: String,
        confinement: String,
        /// The tokens of the whole chat.
        #[serde(flatten)]
        used: TokenUse,
        /// The tokens of the turn that runs or ran last.
        turn: Box<TokenUse>,
        /// The part of the model's context window that the last request takes, in percent. None before the first request.
        #[serde(skip_serializing_if = "Option::is_none")]
        window_used: Option<u64>,
        /// The first line of each command in the foreground: calls of the model and `!` lines.
        commands: Vec<String>,
        /// The prompts that wait for the end of the turn.
        queued: usize,
        /// The prompts that go with the next request of the turn.
        steering: usize,
        /// The number of prompts that no longer wait: they are in the transcript, or a cancel dropped them.
        taken_prompts: u64,
        /// The chat's id in the store, once it has one. `/resume` takes it.
        transcript: Option<String>,
        /// The first words of the first prompt, or the title of `/rename`. Empty before the first prompt.
        title: String,
        /// The model is not that of the settings.
        chosen: bool,
        /// The things that wait, or that the person allowed or chose, in a few words each, such as `ASKS NOTHING`.
        unusual: Vec<String>,
        /// None if the person has answered all changes.
        #[serde(skip_serializing_if = "Option::is_none")]
        open: Option<OpenSummary>,
        /// None if no step of the model's plan is open.
        #[serde(skip_serializing_if = "Option::is_none")]
        plan: Option<PlanProgress>,
        /// The mode of the chat's agent; none if it has no modes.
        #[serde(skip_serializing_if = "Option::is_none")]
        mode: Option<String>,
    },
    /// The words that complete the slash commands of the chat's agent.
    AgentWords {
        chat: u64,
        /// None if a model answers in the chat.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        commands: Vec<AgentCommand>,
        modes: Vec<String>,
        models: Vec<String>,
        efforts: Vec<String>,
    },
    /// The words that complete what the tool servers of the chat offer.
    ServerWords {
        chat: u64,
        /// Slash commands, by the server and the prompt.
        prompts: Vec<ServerWord>,
        /// Contexts, by the server and the address.
        resources: Vec<ServerWord>,
    },
    /// The lines of the chat's changes that the person has not answered yet, in the place of those of the last message.
    OpenChanges { chat: u64, files: Vec<OpenLines> },
    /// Asks the person a question.
    Question(Box<Question>),
    /// The first checkpoint was made, or could not be made. The questions of the chat that have a `no_undo` now get this reason,
    /// or none.
    NoUndo {
        chat: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The answer to a [`super::FromEditor::ReadOutput`]; no lines if the file cannot be read.
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
    /// A question whether a file of the workspace is trusted, or a context may be sent.
    Trust(TrustQuestion),
    /// The question is settled, so Lua closes its float.
    Settled { id: u64, decision: String },
    /// A run began: its `$ cmd` line may be shown.
    RunStarted {
        run: u64,
        command: String,
        cwd: String,
        /// The job of the model; none for a run of the person.
        #[serde(skip_serializing_if = "Option::is_none")]
        owner: Option<Owner>,
        /// The confinement in a few words, and a hint for a command that may want a terminal.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// The person runs this command in a terminal: Lua starts it as a run.
    OpenTerminal { command: String, cwd: String },
    /// New output of a run.
    RunOutput { run: u64, patch: ScreenPatch },
    /// New output of a run in a terminal, with its escape sequences.
    RunData { run: u64, data: String },
    /// A run ended. `status` is its last line, `spill` the file that keeps its output.
    RunEnded {
        run: u64,
        status: String,
        exit: Option<i32>,
        spill: Option<std::path::PathBuf>,
        /// Something of it goes on, until [`LeftEnded`](Self::LeftEnded): processes that it left running, or the question about
        /// its trial.
        left: bool,
    },
    /// The processes that a run left running have ended, or the question about its trial is settled. `status` replaces that of
    /// [`RunEnded`](Self::RunEnded).
    LeftEnded {
        run: u64,
        status: String,
        /// The person wants the command of the trial for real: Lua runs it again, as a new run.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// The prompts of a resumed chat, the oldest first, and its draft.
    Prompts {
        chat: u64,
        transcript: String,
        prompts: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        draft: Option<String>,
    },
    /// The backend has dealt with a [`super::FromEditor::Draft`].
    DraftKept { chat: u64 },
    /// The plan of a chat, for its buffer.
    Plan {
        chat: u64,
        text: String,
        /// The person asked for it: Lua opens the buffer.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        open: bool,
    },
    /// A prompt was not accepted. Lua puts it back into the draft.
    Unsent { chat: u64, text: String },
    /// The text that follows is a message of the person or the model.
    MessageBegins {
        chat: u64,
        /// The time of a prompt, in seconds since 1970; none for an answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
    },
    /// The text that follows is the model's answer, which `/retry` replaces.
    AnswerBegins { chat: u64 },
    /// The last answer is the end of its turn. Calls came before it, so a blank line belongs above it.
    SeparateAnswer { chat: u64 },
    /// The model no longer sees the last answer: fold its text.
    FoldAnswer { chat: u64 },
    /// Replaces the text of a chat (`/resume`). If the text is long, `part` is only its end.
    Replace {
        chat: u64,
        #[serde(flatten)]
        part: TextPart,
    },
    /// The part of the text that belongs above the text of a chat.
    Earlier {
        chat: u64,
        #[serde(flatten)]
        part: TextPart,
    },
    /// Choices for `vim.ui.select`. Lua sends the chosen one back as the command `name` with its `value`.
    Choose {
        chat: u64,
        name: String,
        title: String,
        choices: Vec<Choice>,
    },
    /// The answer to [`super::FromEditor::ListModels`].
    Models {
        #[serde(skip_serializing_if = "Option::is_none")]
        chat: Option<u64>,
        head: String,
        words: Vec<String>,
    },
    /// Fills the quickfix list and opens it.
    Quickfix {
        title: String,
        entries: Vec<QuickfixEntry>,
        /// Take the place of an earlier list of `/review`, if that is the present one, and open nothing.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        update: bool,
    },
    /// Opens the review of a chat's changes. The answer is `reviewed` with the hunks of all files, or `deny`.
    Changes(ChangesReview),
    /// The next part of the text of a file under review, which [`super::FromEditor::ReadReview`] asked for.
    ReviewPart {
        id: u64,
        file: usize,
        /// The bytes that came before.
        from: usize,
        text: String,
        /// There is more text.
        more: bool,
    },
    /// Asks for the texts of the buffers of these files, which are real paths. Lua answers with [`super::FromEditor::Buffers`].
    ReadBuffers {
        request: u64,
        /// The chat whose turn waits for the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        chat: Option<u64>,
        files: Vec<String>,
        /// A real path. The buffers with unsaved changes of this file, or of files below it, are wanted too.
        #[serde(skip_serializing_if = "Option::is_none")]
        modified_below: Option<String>,
    },
    /// Changes a buffer. Lua answers with [`super::FromEditor::BufferChanged`].
    ChangeBuffer {
        request: u64,
        /// The chat whose turn waits for the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        chat: Option<u64>,
        #[serde(flatten)]
        change: BufferChange,
    },
    /// The backend no longer waits for the answer to this `ReadBuffers`, `ChangeBuffer` or `EditFile`. If a command of the person
    /// delays it, Lua drops it. A change is answered all the same. A file that is open stays open.
    WithdrawRequest { request: u64 },
    /// co deleted a file, or gave it the name `to`. The paths are real. Its buffer follows.
    FileGone {
        file: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// Asks about the editor. Lua answers with [`super::FromEditor::EditorAnswer`].
    EditorQuery {
        request: u64,
        #[serde(flatten)]
        query: EditorQuery,
    },
    /// Asks the hooks of plugins about a command. Lua answers with [`super::FromEditor::CommandHooked`].
    BeforeCommand {
        request: u64,
        #[serde(flatten)]
        command: PlannedCommand,
    },
    /// Opens a file that a command of the person wants edited. Lua answers with [`super::FromEditor::FileEdited`] when it is
    /// closed.
    EditFile {
        request: u64,
        #[serde(flatten)]
        edit: FileEdit,
    },
    /// The commit message that [`super::FromEditor::WriteCommit`] asked for, or the reason why there is none.
    CommitMessage {
        chat: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
    /// The answer to [`super::FromEditor::CheckPromptFile`]. `question` is the question that waits for the person's answer.
    PromptFileChecked {
        request: u64,
        trusted: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        question: Option<u64>,
    },
    /// A `User` autocommand, e.g. `CoTurnDone`.
    Event {
        name: String,
        data: serde_json::Value,
    },
}

/// An entry of the quickfix list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuickfixEntry {
    /// The whole path; empty if the entry is about no file.
    pub file: String,
    /// From 1.
    pub line: usize,
    pub text: String,
}

/// A change of a buffer's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BufferChange {
    /// The real path of its file.
    pub file: String,
    /// The 'changedtick' of the text that the change is made for.
    pub tick: u64,
    /// The lines to replace, in order.
    pub replacements: Vec<BufferReplacement>,
    /// The text ends with a line break.
    pub final_newline: bool,
}

/// A question about the editor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EditorQuery {
    pub topic: EditorTopic,
    /// The real path of the file that language servers are asked about.
    pub file: Option<String>,
    /// The name to look up, and the line of the file where it stands, from 1; without a line, anywhere in the file.
    pub name: Option<String>,
    pub line: Option<u64>,
    /// With [`EditorTopic::Rename`]: the new name.
    pub new_name: Option<String>,
}

/// A command of the model that is about to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedCommand {
    pub chat: u64,
    pub command: String,
    pub cwd: String,
    /// True if the command runs without approval, because it only looks or is a trial.
    pub unasked: bool,
    /// The job into which the model types `command`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<u64>,
}

/// A file that a command of the person wants edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileEdit {
    /// An absolute path.
    pub file: String,
    /// The line of the cursor, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The command as the person typed it.
    pub command: String,
    /// The working directory of the program.
    pub directory: String,
    /// The variables of git that the program has, such as `GIT_INDEX_FILE`.
    pub variables: Vec<(String, String)>,
}

/// The subject of an [`EditorQuery`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditorTopic {
    /// The person's file, cursor and visible lines, and the open files.
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

/// New lines of a buffer in the place of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BufferReplacement {
    /// The lines that are replaced, from 0, without the line at `end`.
    pub start: usize,
    pub end: usize,
    /// The new lines, without line breaks.
    pub lines: Vec<BufferLine>,
}

/// A line as Neovim has it in a buffer: UTF-8, unless the person has read the file in this way.
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

/// New lines in the place of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replacement {
    /// The lines that are replaced, from 0, without the line at `end`.
    pub start: usize,
    pub end: usize,
    /// The new lines, without line breaks.
    pub lines: Vec<String>,
}

/// Numbers of tokens and their cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TokenUse {
    pub input: u64,
    pub output: u64,
    /// The part of `input` that the provider had cached.
    pub cached: u64,
    /// US dollars; none if no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Some prices are not known, so the whole cost is higher.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
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

/// A call as the person sees it: a line, and lines below it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CallLine {
    pub state: CallState,
    /// The line, without the sign of the state before it.
    pub text: String,
    /// Details that the person need not know, for the right edge of the line.
    pub details: String,
    /// Lines above the output: the rest of a command.
    pub lead: Vec<String>,
    /// Lines below the output.
    pub remarks: Vec<String>,
    /// The block that is its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// The file with its whole output, if that is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill: Option<String>,
    /// The call has ended: so many last lines of its output stay visible, the others are folded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<usize>,
    /// True if all lines below the line are folded into it when there are more of them than `kept`.
    pub whole: bool,
    /// The output is a difference.
    pub diff: bool,
}

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The call waits for an answer.
    #[default]
    Waits,
    Runs,
    /// The call ended, and could change nothing.
    Looks,
    Done,
    Failed,
}

/// A call in a part of the text of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallRows {
    /// The row of its line.
    pub row: usize,
    /// The number of lines of output. They are below the line of the call and its lead, and above its remarks.
    pub output: usize,
    /// The number of lines at the start of the output that are left out.
    pub skipped: usize,
    #[serde(flatten)]
    pub line: CallLine,
}

/// A message in a part of the text of a chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MessageRow {
    /// The row of its first line.
    pub row: usize,
    /// The time of a prompt, in seconds since 1970; none for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

/// A part of the text of a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TextPart {
    /// A part above other text ends with a line break, unless it ends within a line that is too long for one part.
    pub text: String,
    /// Rows to be folded, first and last, counted from the first row of `text`: long outputs, and answers that the model no
    /// longer sees. A fold may end below `text`.
    pub folds: Vec<[usize; 2]>,
    /// The row of `text` at which the last answer begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<usize>,
    /// The messages of the person and the model that begin in `text`, from top to bottom.
    pub messages: Vec<MessageRow>,
    /// The calls whose lines are in `text`, from top to bottom. Their outputs are in `text`; their lines, leads and remarks are
    /// empty rows there.
    pub calls: Vec<CallRows>,
    /// The number of bytes of the text above this part, for which Lua asks later.
    pub above: usize,
}

/// A question for the person.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Question {
    pub id: u64,
    #[serde(flatten)]
    pub asker: Asker,
    /// Printable: control and bidirectional characters are escaped.
    pub command: String,
    pub cwd: String,
    /// Seconds; none if it has no limit.
    pub timeout: Option<u64>,
    /// True if the command runs in a terminal.
    pub terminal: bool,
    /// True if the command runs in the background, as a job.
    pub background: bool,
    /// The job of the chat that `command` is typed into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<u64>,
    pub confinement: String,
    /// The reasons for the question, one sentence each.
    pub reasons: Vec<String>,
    /// The range of bytes in `command` that the first reason is about; none for the whole command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<[usize; 2]>,
    /// True if the command may destroy data; the border of the float shows that.
    pub destructive: bool,
    /// The prefix that `always` may allow; none if it may allow this command only.
    pub prefix: Option<String>,
    /// No permission would hold for a later call, so `always` is no answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_once: bool,
    /// The reason why only a key in the float approves it: it may reach a secret or leave the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<String>,
    /// The reason why the changes of the command cannot be taken back; none if they can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_undo: Option<String>,
    /// The command can run as a trial: the answers `try` and `try_first` are possible.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_try: bool,
    /// The command ran as a trial. `change` has what it changed, if it changed something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<TrialSummary>,
    /// The person answered with a command that a deny rule forbids, so co asks again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_edit: Option<RefusedEdit>,
    /// The change of a file that the question is about; none if it is about a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// The commit that `/commit` asks about; `command` makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// The hosts that `command`, which runs, wants to reach. The question is about them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<AskedHost>,
    /// The tool server that `command` calls. The question is about this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<AskedServer>,
    /// The questions that the model asks, in the place of a command. No answer approves anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<ChoiceQuestion>,
    /// The person asked for a change of lines of this file. The review opens at once while they look at it.
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// A host that a command wants to reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AskedHost {
    /// A name, or an address.
    pub host: String,
    pub port: u16,
    /// The owner of the address, such as "this machine", if it is not on the internet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub special: Option<String>,
}

/// The tool of a tool server that a call is for. Its texts are printable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AskedServer {
    /// The name of the server.
    pub name: String,
    pub tool: String,
}

/// A slash command of an agent. Its texts are printable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentCommand {
    pub name: String,
    pub about: String,
}

/// A prompt or a resource of a tool server. Its texts are printable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerWord {
    /// Such as `server:prompt` or `server:file:///x`.
    pub name: String,
    pub about: String,
    /// The names of the arguments of a prompt. For a resource with open parts: its URI template, whose first text is in `name`.
    pub arguments: Vec<String>,
}

/// A question with choices. Its texts are printable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChoiceQuestion {
    pub question: String,
    pub choices: Vec<OfferedChoice>,
    /// The person may choose several.
    pub several: bool,
    pub kind: ChoiceKind,
}

/// The kind of a question with choices. It says what the person may answer beside a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    /// A question of the model. Own words are an answer; a reason for no answer goes to the model.
    Model,
    /// A field of a form. Own words are an answer.
    Form,
    /// The permission that an agent asks for. Own words refuse it, and are the next prompt.
    Permission,
    /// Only a choice is an answer.
    Plain,
}

/// A choice of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OfferedChoice {
    pub label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The model advises it.
    pub advised: bool,
    /// The key of a plain yes chooses it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_yes: bool,
}

/// The chat that asks, the run of the person whose trial has ended, or an agent in a terminal of Neovim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asker {
    Chat(u64),
    Run(u64),
    /// Its name, which is printable.
    Agent(String),
}

impl Default for Asker {
    fn default() -> Self {
        Self::Chat(0)
    }
}

/// A commit before it is made. Its texts are printable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Commit {
    pub message: String,
    /// The files of the commit, each with the letter that git gives its change.
    pub files: Vec<String>,
    /// True if the files are staged already.
    pub staged: bool,
    /// The files that are not part of it: those that git does not track, and changes that are not staged.
    pub left_out: Vec<String>,
}

/// The result of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TrialSummary {
    /// The exit status of the command, in words.
    pub status: String,
    /// The last lines of its output, printable.
    pub output: Vec<String>,
    /// The changes of the trial in `.git`, which are never kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
    /// Remarks for the person, one sentence each.
    pub notes: Vec<String>,
    /// The command failed, perhaps because of the trial, or made changes that cannot be kept. A yes runs it again without a
    /// trial.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub runs_again: bool,
}

/// A command of the person that a deny rule forbids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedEdit {
    /// The question that it answered. The new question takes its place.
    pub question: u64,
    pub command: String,
    /// The reason, in one sentence.
    pub why: String,
}

/// A question whether the model may be sent the text of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrustQuestion {
    pub id: u64,
    /// The file, by its name in the workspace.
    pub name: String,
    /// The whole path. This and the texts below are printable.
    pub path: String,
    /// Bytes.
    pub size: usize,
    /// The content of the file.
    pub text: String,
    /// Remarks for the person, one sentence each.
    pub notes: Vec<String>,
    /// The slash command that sends it, the context of a skill, or `/mcp` if it is not sent but names tool servers. None if it
    /// goes with each prompt.
    pub slash: Option<String>,
    /// The text goes with one prompt, as a context. From then on, this chat sends it without a question.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub context: bool,
}

/// A context of a prompt, or the reason why there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ContextRead {
    /// None for an image, and for a text that the editor has and may send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes of the whole file, of which `text` may be the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// A remark for the name of the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The reason why the prompt goes without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The person cancelled, so the prompt comes back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

/// The chat and the job that a run belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Owner {
    pub chat: u64,
    /// The number of the job in that chat.
    pub job: u64,
    /// True if the job has a terminal, whose return key is not the end of a line.
    pub terminal: bool,
}

/// One entry of [`ToEditor::Choose`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Choice {
    pub label: String,
    pub value: String,
    /// Lua asks this, and sends the value after a yes only.
    #[serde(skip_serializing_if = "Option::is_none")]
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
