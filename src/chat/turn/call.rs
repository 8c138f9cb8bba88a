//! The data of one call, from the proposal to the permission to run.

use std::path::PathBuf;

use super::super::jobs::JobView;
use crate::tool::jobs;
use crate::tool::query::FileQuery;
use crate::tool::shell::{self, ExecContext};
use crate::workspace::edits::Proposal;
use co_llm::transcript::{Call, Decision};
use co_policy::{Pattern, Verdict};

/// The result of a call that was cancelled before it got a verdict or ran.
pub(super) const CANCELLED: &str = "Cancelled before it was run.";

/// The result of a call that was not allowed and has no outcome when its turn ends.
pub(in crate::chat) const CUT_OFF: &str =
    "cut off: the turn ended before this call was carried out";

/// The result of a call whose question was open when the backend was asked to end: with Neovim, or for `/restart!`.
pub(in crate::chat) const CLOSED: &str = "not answered: co was closed";

/// A call that the model asked for.
pub(super) struct ProposedCall {
    pub call: Call,
    /// The error in its arguments, for the model.
    pub unread: Option<String>,
}

/// A command that the person wrote in place of the model's, and so approved.
pub(super) struct EditedCommand {
    pub command: String,
    /// The number of calls that had ended when the person wrote it; none if bash computes no word of it. The approval ends
    /// with the next call, because that may change a computed word.
    pub computed_at: Option<usize>,
}

/// A command with its verdict.
pub(super) struct ReviewedCommand {
    pub call: Call,
    pub request: shell::CommandRequest,
    pub cwd: PathBuf,
    pub judged: JudgedCall,
    /// The person replaced the model's command.
    pub edited: bool,
    /// The person wrote the command, and no call since then can have changed a word of it. So it is approved.
    pub approved: bool,
    /// The hidden secrets that the person's approval opens for the command.
    pub opens: Vec<PathBuf>,
    /// The reason why the command cannot run even with approval: its confinement does not work, or no more jobs can start.
    pub cannot_run: Option<String>,
}

/// A call with valid arguments.
pub(super) enum ParsedCall {
    Command(ReviewedCommand),
    File(FileCall),
    /// A change of files.
    Edit(ReviewedEdit),
    /// Text for a running job.
    JobInput(JobInput),
    /// Another call about a job. It needs no approval.
    Job(jobs::JobRequest),
}

/// A call that reads or searches files, with its verdict.
pub(super) struct FileCall {
    pub call: Call,
    pub query: FileQuery,
    pub judged: JudgedCall,
}

/// A change of files, with its verdict.
pub(super) struct ReviewedEdit {
    /// The call in a line, for the person.
    pub line: String,
    /// One for each file, at least one. They are made together.
    pub proposals: Vec<Proposal>,
    pub judged: JudgedCall,
    /// The rules that allow the same for these files.
    pub rules: Vec<Pattern>,
}

/// Text for a running job, with its verdict.
pub(super) struct JobInput {
    pub request: jobs::JobRequest,
    pub job: JobView,
    pub judged: JudgedCall,
}

/// A command or text with its verdict.
pub(super) struct JudgedCall {
    pub command: String,
    /// Its simple commands.
    pub segments: Vec<String>,
    /// The words of each simple command. Variables and globs stay as written.
    pub words: Vec<Vec<String>>,
    /// bash computes a word of the command, such as a glob.
    pub computes: bool,
    /// The first reason to believe that it reaches a secret or a place outside the workspace.
    pub reach: Option<String>,
    pub verdict: Verdict,
}

impl JudgedCall {
    /// Returns a call that is no command: it uses files.
    pub(super) fn of_files(command: String, verdict: Verdict) -> Self {
        Self {
            command,
            segments: Vec::new(),
            words: Vec::new(),
            computes: false,
            reach: None,
            verdict,
        }
    }
}

/// A command that may run.
pub(super) struct AllowedCommand {
    pub call: Call,
    pub request: shell::CommandRequest,
    pub context: ExecContext,
    pub judged: JudgedCall,
    /// The person replaced the model's command.
    pub edited: bool,
    pub decision: Decision,
}
