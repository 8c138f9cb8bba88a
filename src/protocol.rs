//! The messages between Lua and the backend, typed.
//!
//! Lua sends `vim.rpcnotify(channel, 'co', message)`, one map with a `type`; the backend answers with
//! batches of such maps, handed to `require('co.handlers').receive(messages)` in order. Neither side ever
//! waits for the other. `docs/PROTOCOL.md` explains each message to the one who writes the other side.

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use co_exec::{HostEnvironment, Patch, Size};
use co_llm::transcript::{Context, Cost, Usage};

/// Raised whenever a message changes its meaning; both sides refuse another's number.
pub const PROTOCOL: u32 = 2;

/// What Lua tells the backend.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromEditor {
    /// The first message: who is there and what the person set.
    Hello {
        protocol: u32,
        version: String,
        /// What `setup{}` or `vim.g.co` said, less the keys Lua alone reads.
        #[serde(default)]
        settings: serde_json::Value,
    },
    /// The person's settings changed: all that `setup{}` and `vim.g.co` say now.
    Settings {
        #[serde(default)]
        settings: serde_json::Value,
    },
    /// The choice of `/sandbox` in a backend that has ended without the person's wish: `landlock` or `subprocess`.
    Sandbox { backend: String },
    /// A prompt for the chat `session` (Lua's number, 1 and up; the first message makes it).
    Prompt {
        session: u64,
        text: String,
        /// The invoking window's working directory; fixed by the first prompt.
        cwd: String,
        #[serde(default)]
        context: Vec<Context>,
    },
    /// `<C-c>` in a chat: the turn; a second one also drops what is queued.
    Cancel { session: u64 },
    /// A slash command that the backend carries out: `name` without the slash.
    Command {
        session: u64,
        name: String,
        #[serde(default)]
        args: String,
        cwd: String,
        /// Of the name `!`, whose `args` are a command to run.
        #[serde(default)]
        options: RunOptions,
    },
    /// The chat's buffer is gone.
    Close { session: u64 },
    /// The answer to an [`ToEditor::Ask`], or to a [`ToEditor::Trust`]: that takes `once` or `deny`.
    Answer {
        id: u64,
        decision: Answer,
        #[serde(default)]
        reason: Option<String>,
        /// With `always`: what it reaches, one of the scopes offered.
        #[serde(default)]
        scope: Option<Scope>,
        /// With `edited`: the command to judge instead.
        #[serde(default)]
        command: Option<String>,
    },
    /// `:Co! cmd`. `run` is Lua's number, 1 and up, never reused. What a person names or hands over may be any bytes.
    Run {
        run: u64,
        #[serde(deserialize_with = "bytes")]
        command: Vec<u8>,
        #[serde(deserialize_with = "bytes")]
        cwd: Vec<u8>,
        #[serde(default, deserialize_with = "some_bytes")]
        stdin: Option<Vec<u8>>,
        /// Standard input stays open after `stdin`, for [`RunInput`](Self::RunInput).
        #[serde(default)]
        open: bool,
        /// In a terminal of that size.
        #[serde(default)]
        terminal: Option<Size>,
        #[serde(default)]
        options: RunOptions,
    },
    /// Bytes for the standard input of a run that keeps it open, or its end.
    RunInput {
        run: u64,
        #[serde(default, deserialize_with = "bytes")]
        data: Vec<u8>,
        #[serde(default)]
        close: bool,
    },
    /// The terminal of a run has another size.
    RunResize { run: u64, size: Size },
    /// `<C-c>` on a run.
    CancelRun { run: u64 },
    /// A model's job outlives its session, or no longer.
    KeepRun { run: u64, keep: bool },
}

/// Options of a person's own command.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    /// `++env=`; none takes the setting `run_environment`.
    pub environment: Option<RunEnvironment>,
    /// `++timeout=`, seconds, 0 is no limit; none takes the setting `run_timeout`.
    pub timeout: Option<u64>,
    /// The shell and the environment of the person's Neovim at that moment.
    pub host: Option<HostEnvironment>,
}

/// The environment of a person's own command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnvironment {
    /// The allowlist, and bash.
    Restricted,
    /// All but what never passes, and their own shell.
    Inherit,
}

/// What a person said to an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Once,
    Always,
    Deny,
    /// Judge and ask about the edited command.
    Edited,
}

/// What `always` reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This same command, for the session.
    Command,
    /// Every command that starts with the offered prefix, for the session.
    Prefix,
    /// The same, kept for this workspace.
    PrefixSaved,
    /// Everything, for the session; deny rules still refuse.
    Everything,
}

/// What the backend tells Lua.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToEditor {
    /// The two fit: what waited for that may be sent.
    Ready { protocol: u32, version: String },
    /// The confinement of unasked commands, for the winbar: `read-only sandbox`, or why there is none.
    Isolation { isolation: String },
    /// `/sandbox` now confines approved commands by this backend: `landlock` or `subprocess`.
    Sandbox { backend: String },
    /// The two do not fit, or the backend could not make what it needs; it ends.
    Refused { message: String },
    /// A sentence for the person.
    Notice { level: Level, message: String },
    /// Text at the end of a chat's transcript, above its prompt.
    Append { session: u64, text: String },
    /// A block of raw output in a chat: made by its first patch, folded past 20 lines when `done`.
    Block {
        session: u64,
        block: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        patch: Option<Patch>,
        done: bool,
    },
    /// What the winbar says.
    State {
        session: u64,
        state: State,
        /// What goes with it: `in 3 s: openai failed (HTTP 500)`.
        detail: String,
        model: String,
        cwd: String,
        backend: String,
        /// By the whole chat.
        #[serde(flatten)]
        used: Used,
        /// By the turn that runs, or ran last.
        turn: Used,
        /// The first lines of what runs in the foreground: the model's calls and `!` lines.
        commands: Vec<String>,
        queued: usize,
        /// The number of prompts that no longer wait: their turn began, or a cancel dropped them.
        begun: u64,
        /// The conversation's id in the store, once it has begun: `/resume` takes it.
        kept: Option<String>,
        /// Nothing is asked about: the person allowed everything.
        everything: bool,
    },
    /// A question for the person.
    Ask(Ask),
    /// A question whether a file of the workspace is trusted.
    Trust(TrustQuestion),
    /// The question is settled, here or elsewhere: take its float away.
    Settled { id: u64, decision: String },
    /// A run began: its `$ cmd` line may be shown.
    RunStarted {
        run: u64,
        command: String,
        cwd: String,
        /// The model's job that it is; none where the person typed it.
        #[serde(skip_serializing_if = "Option::is_none")]
        owner: Option<Owner>,
    },
    /// What a run's block shows now.
    RunOutput { run: u64, patch: Patch },
    /// What a run in a terminal prints, with its escape sequences.
    RunData { run: u64, data: String },
    /// A run ended. `status` is its last line, `spill` the file that keeps its output.
    RunEnded {
        run: u64,
        status: String,
        exit: Option<i32>,
        spill: Option<std::path::PathBuf>,
        /// Processes that it left running go on, until [`LeftEnded`](Self::LeftEnded).
        left: bool,
    },
    /// The processes that a run left running have ended.
    LeftEnded { run: u64 },
    /// A prompt was not taken: it goes back to where it was typed.
    Unsent { session: u64, text: String },
    /// The text that follows is the model's answer: what `/retry` replaces.
    AnswerBegins { session: u64 },
    /// The model no longer sees the last answer: fold its text.
    FoldAnswer { session: u64 },
    /// Replaces a chat's transcript (`/resume`).
    Replace {
        session: u64,
        text: String,
        /// Rows of `text` with answers that the model no longer sees, first and last, to be folded.
        folds: Vec<[usize; 2]>,
        /// The row of `text` at which the last answer begins.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<usize>,
    },
    /// Choices for `vim.ui.select`; what is chosen comes back as the command `name` with `value`.
    Choose {
        session: u64,
        name: String,
        title: String,
        choices: Vec<Choice>,
    },
    /// A `User` autocommand, e.g. `CoTurnDone`.
    Event {
        name: String,
        data: serde_json::Value,
    },
}

/// Tokens, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Used {
    pub input: u64,
    pub output: u64,
    /// Of `input`, what the provider had cached.
    pub cached: u64,
    /// US dollars; none where a price is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl From<Usage> for Used {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input,
            output: usage.output,
            cached: usage.cached,
            cost: usage.cost.map(Cost::dollars),
        }
    }
}

/// A question for the person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ask {
    pub id: u64,
    pub session: u64,
    /// Printable: control and bidirectional characters are escaped.
    pub command: String,
    pub cwd: String,
    /// Seconds; none where it runs until it ends.
    pub timeout: Option<u64>,
    /// It runs in a terminal.
    pub terminal: bool,
    /// It goes on beside the conversation, as a job.
    pub background: bool,
    /// `command` is what is typed into this job of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<u64>,
    pub backend: String,
    /// Why it asks, a sentence each.
    pub reasons: Vec<String>,
    /// The bytes of `command` that the first reason speaks of, end exclusive; none where it is all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<[usize; 2]>,
    /// It may destroy: the float's border says so.
    pub destructive: bool,
    /// The prefix that `always` may reach; none where only this command can be allowed.
    pub prefix: Option<String>,
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
    /// All that the file holds.
    pub text: String,
    /// Remarks about it for the person, a sentence each.
    pub notes: Vec<String>,
}

/// Which job of which chat a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Owner {
    pub session: u64,
    /// Its number in that chat.
    pub job: u64,
    /// It has a terminal, whose return key is not the end of a line.
    pub terminal: bool,
}

/// One entry of [`ToEditor::Choose`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    pub label: String,
    pub value: String,
}

/// How loud a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Info,
    Warn,
    Error,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Idle,
    Thinking,
    Streaming,
    Asking,
    Running,
    Retrying,
}

/// Lua's strings are bytes; they come as text where they are text.
fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
            to.write_str("a string")
        }

        fn visit_str<E>(self, text: &str) -> Result<Vec<u8>, E> {
            Ok(text.as_bytes().to_owned())
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_owned())
        }
    }
    from.deserialize_any(Bytes)
}

fn some_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
    bytes(from).map(Some)
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
