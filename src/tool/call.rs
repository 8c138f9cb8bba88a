//! A call of the model with valid arguments: what it needs to be judged, asked about and carried out.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;

use super::context::{CallContext, Halt};
use super::event::{CallEnd, CallEvent, ShownCall};
use super::permissions::{Allowance, TurnMemory};
use crate::protocol::{HunkAnswer, Question};
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Decision, Item, ShownPart};
use co_policy::{ApprovalQuestion, Grant, Verdict};

/// The result of a call that was cancelled before it got a verdict or ran.
pub const CANCELLED: &str = "Cancelled before it was run.";

/// The result of a call that nobody answered before its turn ended.
pub const CUT_OFF: &str = "cut off: the turn ended before this call was carried out";

/// The result of a denied call.
const DENIED: &str = "User denied this action";

/// The rest of a call that has started. It shows what happens, and returns the result.
pub type RunningCall = Pin<Box<dyn Future<Output = Result<CallResult, Halt>> + Send>>;

/// A call with valid arguments.
///
/// The turn judges it, asks the person if that is needed, and starts it. After each other call of its step, it is judged again: that
/// call may have changed what it does.
#[async_trait]
pub trait PlannedCall: Send + Sync {
    /// Returns the call as the chat shows it.
    fn shown(&self) -> ShownCall;

    /// Begins to collect facts that take time, and returns whether it has. The questions about other calls do not wait for them. The
    /// call is judged when [`Self::poll_facts`] is ready.
    fn collect_facts(&mut self, _context: &CallContext) -> bool {
        false
    }

    /// Is ready once, when the facts are there.
    fn poll_facts(&mut self, _task: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    /// Judges the call.
    ///
    /// # Errors
    /// The call cannot run. The text is for the model.
    async fn judge(&mut self, context: &CallContext, memory: &TurnMemory) -> Result<(), String>;

    /// Returns the verdict with the permissions of the person applied.
    fn resolve(&self, context: &CallContext, memory: &TurnMemory) -> Resolution;

    /// Returns whether the call changes nothing, whatever its arguments are.
    fn only_looks(&self) -> bool {
        false
    }

    /// Returns the verdict, with what the audit file says of the call; none if it needs none.
    fn judged(&self) -> Option<&JudgedCall>;

    /// Returns the question about the call. It is needed if [`Self::resolve`] says so; none for a call that is never asked about.
    fn question(
        &self,
        _context: &CallContext,
        _memory: &TurnMemory,
        _asking: &ApprovalQuestion,
    ) -> Option<AskedQuestion> {
        None
    }

    /// Returns the name under which `/undo` lists what files change while the call runs; none if none change, or the call records them
    /// itself.
    fn changes_as(&self) -> Option<String> {
        None
    }

    /// Returns the result of the call if the person, in a review or not, or a rule refuses it; none for the usual one.
    fn refused(
        &mut self,
        _decision: &Decision,
        _hunks: Option<&[HunkAnswer]>,
    ) -> Option<CallResult> {
        None
    }

    /// Starts the call.
    ///
    /// # Errors
    /// The turn ends.
    async fn start(
        self: Box<Self>,
        context: Arc<CallContext>,
        approved: Approved,
    ) -> Result<RunningCall, Halt>;
}

/// The further steps of a call that runs a command: the person may write another command in its place, and it may run as a trial
/// before the question about it. No other kind of call has them.
#[async_trait]
pub trait CommandSteps: PlannedCall {
    /// Judges a command that the person wrote in place of this one. The inner error is the reason if a deny rule forbids it.
    ///
    /// # Errors
    /// The turn is cancelled, or the command cannot be judged.
    async fn judge_edit(
        &self,
        command: String,
        context: &CallContext,
        memory: &TurnMemory,
    ) -> Result<Result<EditedCommand, String>, String>;

    /// Replaces the command with the person's. Returns the event that shows it.
    fn edit(&mut self, edit: EditedCommand) -> CallEvent;

    /// Returns whether the person wrote the command.
    fn is_edited(&self) -> bool;

    /// Returns whether the command runs as a trial before co asks about it. `answered` is true if the person has answered already.
    fn is_tried_first(&self, context: &CallContext, memory: &TurnMemory, answered: bool) -> bool;

    /// Notes that the person wants to try the command.
    fn want_trial(&mut self);

    /// Drops the changes of a trial that has ended. Returns false if there is none.
    fn drop_trial(&mut self) -> bool;

    /// Runs the command as a trial. `id` is that of the call.
    ///
    /// # Errors
    /// The turn ends.
    async fn try_out(
        self: Box<Self>,
        id: String,
        context: Arc<CallContext>,
    ) -> Result<AfterTrial, Halt>;
}

/// A call of any tool.
pub enum AnyCall {
    Command(Box<dyn CommandSteps>),
    Other(Box<dyn PlannedCall>),
}

/// A command that the person wrote in place of the model's, and so approved.
pub struct EditedCommand {
    pub command: String,
    /// The number of calls that had ended when the person wrote it; none if bash computes no word of it. The approval ends
    /// with the next call, because that may change a computed word.
    pub computed_at: Option<usize>,
}

/// A command after its trial.
pub enum AfterTrial {
    /// The person is asked about it.
    Ask(Box<dyn CommandSteps>),
    /// It needs no answer, or the turn was cancelled.
    Ended(Box<CallResult>),
}

/// The verdict on a call with the permissions of the person applied.
pub enum Resolution {
    /// It runs without a verdict: it reads what the model may know, shows a plan, or ends a job.
    Free,
    Run(Decision),
    Refuse(Decision),
    Ask(ApprovalQuestion),
}

/// A question about a call.
pub struct AskedQuestion {
    pub question: Question,
    /// The number of calls that had ended when it was asked; none if bash computes no word of the command. Another call may
    /// change a computed word.
    pub computed_at: Option<usize>,
    /// The narrowest permissions that `always` gives.
    pub always: Vec<Allowance>,
}

/// A call that may run.
#[derive(Debug, Clone)]
pub struct Approved {
    /// The id of the call.
    pub id: String,
    /// None if the call needs no verdict.
    pub decision: Option<Decision>,
    /// The answers of the person in a review; none if they answered the whole.
    pub hunks: Option<Vec<HunkAnswer>>,
    /// The model has not been told in this turn that the confinement may have caused a failure.
    pub may_hint: bool,
}

/// A command or text with its verdict.
#[derive(Debug, Clone)]
pub struct JudgedCall {
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

/// The result of a call.
#[derive(Default)]
pub struct CallResult {
    /// The text for the model.
    pub told: RedactedText,
    pub ok: bool,
    pub spill: Option<PathBuf>,
    pub shown: ShownPart,
    /// A command that failed, perhaps because it ran at the read-only level. It needs approval from now on.
    pub failed_confined: Option<String>,
    /// A job whose end the model reads in this result.
    pub ended_job: Option<u64>,
    /// The model was told that the confinement may have caused a failure.
    pub hinted: bool,
    /// An output that the chat shows with the result.
    pub output: Option<String>,
    /// The effect of a call that ran and was then refused, for the audit file.
    pub effect: Option<String>,
}

impl AnyCall {
    pub(super) fn other(call: impl PlannedCall + 'static) -> Self {
        Self::Other(Box::new(call))
    }

    pub fn call(&self) -> &dyn PlannedCall {
        match self {
            Self::Command(command) => &**command,
            Self::Other(call) => &**call,
        }
    }

    pub fn call_mut(&mut self) -> &mut dyn PlannedCall {
        match self {
            Self::Command(command) => &mut **command,
            Self::Other(call) => &mut **call,
        }
    }

    pub fn into_call(self) -> Box<dyn PlannedCall> {
        match self {
            Self::Command(command) => command,
            Self::Other(call) => call,
        }
    }
}

impl Resolution {
    /// Applies the permissions of the person to a verdict. A call that the policy allows, but no rule, needs approval here; `why`
    /// is the reason for the question.
    pub fn of(
        verdict: &Verdict,
        why: Option<&'static str>,
        context: &CallContext,
        memory: &TurnMemory,
    ) -> Self {
        let question = match verdict {
            Verdict::Deny { why, .. } => {
                return Self::Refuse(Decision::Forbidden { why: why.clone() });
            }
            Verdict::Allow(Grant::Rule { rule }) => {
                return Self::Run(Decision::Rule { rule: rule.clone() });
            }
            Verdict::Allow(Grant::ReadOnly | Grant::Unconfined | Grant::InProcess) => {
                let why = why.unwrap_or("nothing else allows it");
                ApprovalQuestion::because(why)
            }
            Verdict::Ask(question) => question.clone(),
        };
        match memory.permissions.confirms(&context.services) && !question.unread {
            true => Self::Run(Decision::AutoConfirm),
            false => Self::Ask(question),
        }
    }
}

impl Approved {
    /// Returns the decision, or that of a call that needs none.
    pub(super) fn decision(&self) -> Decision {
        self.decision.clone().unwrap_or(Decision::Unasked)
    }

    /// Records the decision. When this returns, the call may run.
    pub(super) async fn record(&self, context: &CallContext) -> Result<(), Halt> {
        let Some(decision) = self.decision.clone() else {
            return Ok(());
        };
        let call = self.id.clone();
        context.host.record(Item::Decision { call, decision }).await
    }

    /// Shows the decision.
    pub(super) async fn show(&self, context: &CallContext) -> Result<(), Halt> {
        context
            .host
            .show(CallEvent::Decision(self.decision()))
            .await
    }
}

impl JudgedCall {
    /// Returns the verdict on a call that is no command.
    pub(super) fn plain(command: String, verdict: Verdict) -> Self {
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

impl From<RedactedText> for CallResult {
    fn from(told: RedactedText) -> Self {
        Self {
            told,
            ..Self::default()
        }
    }
}

impl CallResult {
    /// Returns a result with this text for the model. It counts as failed, and shows the person nothing.
    pub fn answer(text: impl Into<String>) -> Self {
        RedactedText::from(text.into()).into()
    }

    /// Returns the result of a call that did not run, for a reason. The person sees its first line.
    pub fn not_run(why: impl Into<String>) -> Self {
        let why = why.into();
        let first = why.lines().next().unwrap_or_default();
        let shown = first.strip_prefix("Not run: ").unwrap_or(first);
        Self {
            shown: ShownPart::line(format!("not run: {shown}")),
            ..Self::answer(why)
        }
    }

    /// Returns this result as the rest of a call that has nothing more to do.
    pub(super) fn at_once(self) -> RunningCall {
        Box::pin(std::future::ready(Ok(self)))
    }

    /// Adds a line for the model.
    pub(super) fn told(mut self, line: &str) -> Self {
        self.told.text.push('\n');
        self.told.text.push_str(line);
        self
    }

    /// Adds a remark for the person to the line with the status.
    pub(super) fn noted(mut self, remark: &str) -> Self {
        self.shown.status = format!("{}; {remark}", self.shown.status);
        if let Some(exceptions) = &mut self.shown.exceptions {
            *exceptions = joined(&[exceptions, remark]);
        }
        self
    }

    /// Returns the end of the call, for the person.
    pub fn end(&self) -> CallEnd {
        CallEnd::of(
            self.ok,
            self.told.hidden,
            self.spill.as_deref(),
            &self.shown,
        )
    }
}

/// Returns the texts that are not empty as one.
pub(super) fn joined(texts: &[&str]) -> String {
    let texts: Vec<_> = texts
        .iter()
        .copied()
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("; ")
}

/// Returns the result of a call for a decision that stops it.
pub fn refusal(decision: &Decision) -> String {
    match decision {
        Decision::Forbidden { why } => format!("Refused by a deny rule: {why}"),
        // The person did not deny it.
        Decision::Withdrawn => CUT_OFF.to_owned(),
        Decision::Denied {
            reason: Some(reason),
        } => format!("{DENIED}: {reason}"),
        _ => DENIED.to_owned(),
    }
}
