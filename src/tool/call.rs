//! The stages of a valid call of the model. A [`PlannedCall`] gets a verdict. A [`JudgedCall`] contains the question to the
//! person, and the work of the call. A [`ReadyCall`] contains everything that it needs to start. A [`RunningCall`] ends with a
//! [`CallResult`].

use std::any::Any;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;

use super::context::{CallContext, CallHalt, TurnKind};
use super::event::ShownCall;
use super::permissions::{Allowance, TurnMemory};
use crate::network::HostReport;
use crate::protocol::{HunkAnswer, Question, Scope};
use crate::workspace::edits::EditRequest;
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Decision, Image, ShownPart};
use co_policy::{ApprovalQuestion, Grant, Pattern, Verdict};

/// The result of a call that was cancelled before its verdict or before its start.
pub const CANCELLED: &str = "Cancelled before it was run.";

/// The result of a call that was cancelled while it ran, or that ended without an outcome.
pub const EFFECT_UNKNOWN: &str =
    "cut off: the call was cancelled while it ran; whether it took effect is not known";

/// The result of a call whose question was not answered before its turn ended.
pub const CUT_OFF: &str = "cut off: the turn ended before this call was carried out";

/// The result of a call that the person denied.
const DENIED: &str = "User denied this action";

/// The name that the audit file uses for the confinement of a call that runs in co's own process.
pub(super) const CO_ITSELF: &str = "co itself";

/// A call with valid arguments.
///
/// The turn judges the call, asks the person if necessary, and starts the call. After another call of the step has ended, the
/// turn judges this call again, because the other call may have changed the effect of this call.
#[async_trait]
pub trait PlannedCall: Send + Sync {
    /// Returns the call as the chat shows it.
    fn shown(&self) -> ShownCall;

    /// Begins to collect facts that take time. Returns true if there are such facts. The call is judged when [`Self::poll_facts`]
    /// is ready. Meanwhile, the questions about other calls do not wait.
    fn collect_facts(&mut self, _context: &CallContext) -> bool {
        false
    }

    /// Returns `Ready` when the facts have been collected, and only one time.
    fn poll_facts(&mut self, _task: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    /// Judges the call.
    ///
    /// # Errors
    /// The reason why the call cannot run, for the model.
    async fn judge(&self, context: &CallContext, memory: &TurnMemory)
    -> Result<JudgedCall, String>;
}

/// A call that changes nothing and needs no verdict, such as a call that shows a plan.
#[async_trait]
pub trait LookingCall: Clone + Send + Sync + 'static {
    /// Returns the call as the chat shows it.
    fn shown(&self) -> ShownCall;

    /// Returns the text that tells the person what runs; none if the call takes no time.
    fn runs(&self) -> Option<String> {
        None
    }

    /// Carries out the call.
    async fn look(self, context: &CallContext) -> Result<CallResult, CallHalt>;
}

#[async_trait]
impl<T: LookingCall> PlannedCall for T {
    fn shown(&self) -> ShownCall {
        LookingCall::shown(self)
    }

    async fn judge(&self, _: &CallContext, _: &TurnMemory) -> Result<JudgedCall, String> {
        Ok(JudgedCall {
            kind: CallKind::Looks,
            ..JudgedCall::free(self.clone())
        })
    }
}

#[async_trait]
impl<T: LookingCall> CallAction for T {
    async fn prepare(
        self: Box<Self>,
        context: &Arc<CallContext>,
        _: &DecidedCall,
    ) -> Result<ReadyCall, NotRun> {
        let (runs, context) = (self.runs(), Arc::clone(context));
        let work = async move { self.look(&context).await };
        Ok(ReadyCall::new(None, runs, work))
    }
}

/// A call that has been judged.
pub struct JudgedCall {
    pub resolution: Resolution,
    /// The text for the audit file; none if the call needs no verdict.
    pub audited: Option<AuditedText>,
    pub kind: CallKind,
    pub action: Box<dyn CallAction>,
}

/// The kind of a judged call. A turn that only plans carries out the kinds `Looks` and `Watches`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// The call changes nothing, and may run in parallel with other calls.
    Looks,
    /// The call changes nothing. It waits for the calls before it, because a job may change files during this call, and co
    /// records such changes as changes during this call.
    Watches,
    /// The call may change something.
    Acts,
}

/// The verdict on a call after the person's permissions were applied.
pub enum Resolution {
    /// The call runs without a verdict: it reads data that the model may know, shows a plan, or ends a job.
    Free,
    Run(Decision),
    Refuse(Decision),
    Ask(Box<AskedQuestion>),
}

/// A question about a call.
#[derive(Clone)]
pub struct AskedQuestion {
    pub question: Question,
    /// The wider rule that the answer `always` may give: for all commands with the same first words, or for all files of a
    /// directory.
    pub prefix: Option<Pattern>,
    /// The rule that allows every tool of the server, if the call uses a tool server.
    pub server: Option<Pattern>,
    /// The number of calls of the turn that had ended when the question was asked; none if bash computes no word of the command.
    /// A later call may change a word that bash computes, for example from a glob.
    pub computed_at: Option<usize>,
    /// The permissions that the answer `always` gives for just this command or file. The scopes that the question does not offer
    /// give them too.
    pub always: Vec<Allowance>,
}

/// The text about a judged call in the audit file.
#[derive(Debug, Clone)]
pub struct AuditedText {
    pub command: String,
    /// The simple commands that the command consists of.
    pub segments: Vec<String>,
    /// The verdict as a word.
    pub verdict: &'static str,
}

/// The work of a judged call. A command has further steps, such as its trial: the turn calls the methods of
/// `command::JudgedCommand` for them.
#[async_trait]
pub trait CallAction: Any + Send + Sync {
    /// Returns the name under which `/undo` lists the changes of files during the call. Returns `None` if no file changes, or if
    /// the call itself records the changes.
    fn changes_as(&self) -> Option<String> {
        None
    }

    /// Returns the result of the call if the person or a rule refuses it. `hunks` are the answers of a review. Returns `None` for
    /// the usual result.
    fn refused(
        self: Box<Self>,
        _decision: &Decision,
        _hunks: Option<&[HunkAnswer]>,
    ) -> Option<CallResult> {
        None
    }

    /// Prepares everything that the call needs to start. The call has had no effect when this method returns.
    async fn prepare(
        self: Box<Self>,
        context: &Arc<CallContext>,
        decided: &DecidedCall,
    ) -> Result<ReadyCall, NotRun>;
}

/// A call with a decision.
#[derive(Debug, Clone)]
pub struct DecidedCall {
    /// The id of the call.
    pub id: String,
    /// The decision about the call; none if the call needs no decision.
    pub decision: Option<Decision>,
    pub audited: Option<AuditedText>,
    /// The person's answers in a review; none if they answered about the whole change.
    pub hunks: Option<Vec<HunkAnswer>>,
    /// True if the result of the call may say that the confinement may have caused a failure. The model gets this hint only once
    /// in a turn.
    pub may_hint: bool,
}

/// A call that may start. The turn records its decision, writes the decision to the audit file, starts the call, and shows its
/// progress, in this order.
pub struct ReadyCall<T = CallResult> {
    /// The confinement for the audit file; none for a read-only call in this process.
    pub level: Option<&'static str>,
    /// The text that tells the person what runs.
    pub runs: Option<String>,
    pub start: Starting<T>,
}

/// The future that starts a call.
pub type Starting<T = CallResult> =
    Pin<Box<dyn Future<Output = Result<RunningCall<T>, NotRun>> + Send>>;

/// The future of a call that has started. It resolves to the result.
pub type RunningCall<T = CallResult> = Pin<Box<dyn Future<Output = Result<T, CallHalt>> + Send>>;

/// The reason why a call does not run.
pub enum NotRun {
    /// The reason why the call cannot run, for the model. The person sees its first line.
    Because(String),
    /// The person or a rule refuses the call.
    Refused(Box<CallResult>),
    /// The turn must end.
    Halt(CallHalt),
}

/// The result of a call.
#[derive(Default, Clone)]
pub struct CallResult {
    /// The text for the model.
    pub told: RedactedText,
    pub ok: bool,
    pub spill: Option<PathBuf>,
    /// The images for the model.
    pub images: Vec<Image>,
    pub shown: ShownPart,
    /// The command that failed, perhaps because it ran at the read-only level. It needs approval from now on.
    pub failed_confined: Option<String>,
    /// The number of a job whose end this result tells the model.
    pub ended_job: Option<u64>,
    /// True if the result tells the model that the confinement may have caused a failure.
    pub hinted: bool,
    /// True if the chat has already shown the output.
    pub streamed: bool,
    /// The outcome for the audit file; none if the call did not run, or if it started a job.
    pub effect: Option<CallEffect>,
}

/// The outcome of a call for the audit file.
#[derive(Debug, Clone)]
pub struct CallEffect {
    /// The confinement in which the call ran.
    pub level: &'static str,
    pub words: String,
    /// The hosts that the call contacted, or wanted to contact.
    pub hosts: HostReport,
    pub spill: Option<PathBuf>,
}

impl JudgedCall {
    /// Returns a call that needs no verdict.
    pub fn free(action: impl CallAction + 'static) -> Self {
        Self {
            resolution: Resolution::Free,
            audited: None,
            kind: CallKind::Acts,
            action: Box::new(action),
        }
    }
}

/// The reason why each call of a confined agent needs an answer, even if a rule allows it.
const OF_AGENT: &str = "a confined agent makes the call, and this runs outside of its confinement, so no rule allows it";

impl Resolution {
    /// Applies the person's permissions to a verdict. If the policy allows the call, but no rule of the person does, the call
    /// needs approval: then `why` is the reason that the question shows. `ask` makes the question.
    pub fn of(
        verdict: &Verdict,
        why: Option<&'static str>,
        (context, memory): (&CallContext, &TurnMemory),
        ask: impl FnOnce(&ApprovalQuestion) -> AskedQuestion,
    ) -> Self {
        let of_agent = context.kind == TurnKind::OfConfinedAgent;
        let question = match verdict {
            Verdict::Deny { why, .. } => {
                return Self::Refuse(Decision::Forbidden { why: why.clone() });
            }
            Verdict::Allow(Grant::Rule { .. }) if of_agent => &ApprovalQuestion::because(OF_AGENT),
            Verdict::Allow(Grant::Rule { rule }) => {
                return Self::Run(Decision::Rule { rule: rule.clone() });
            }
            Verdict::Allow(Grant::ReadOnly | Grant::Unconfined | Grant::InProcess) => {
                &ApprovalQuestion::because(why.unwrap_or("nothing else allows it"))
            }
            Verdict::Ask(question) => question,
        };
        if of_agent {
            return Self::Ask(Box::new(ask(question).only_once()));
        }
        match memory.permissions.confirms(&context.services) && !question.unread {
            true => Self::Run(Decision::AutoConfirm),
            false => Self::Ask(Box::new(ask(question))),
        }
    }
}

impl AskedQuestion {
    /// Returns the question about a call of a confined agent, for which `always` is not a possible answer.
    fn only_once(mut self) -> Self {
        self.question.only_once = true;
        let reasons = &mut self.question.reasons;
        if !reasons.iter().any(|it| it == OF_AGENT) {
            reasons.push(OF_AGENT.to_owned());
        }
        self
    }

    /// Returns the permissions that the answer `always` gives in a scope.
    pub fn allowances(&self, scope: Scope, workspace: &Path) -> Vec<Allowance> {
        let question = &self.question;
        if question.only_once {
            return Vec::new();
        }
        match (scope, &self.prefix) {
            (Scope::Everything, _) => vec![Allowance::Everything],
            (Scope::Edits, _) if question.change.is_some() && question.tried.is_none() => {
                EditRequest::every_edit().map(Allowance::Rule).to_vec()
            }
            (Scope::Prefix, Some(prefix)) => vec![Allowance::Rule(prefix.clone())],
            (Scope::PrefixSaved, Some(prefix)) => {
                vec![Allowance::Saved(workspace.to_owned(), prefix.clone())]
            }
            // Only a question about hosts has these.
            (Scope::Hosts | Scope::HostsSaved, _) => Vec::new(),
            (Scope::Server, _) => self
                .server
                .clone()
                .map(Allowance::Rule)
                .into_iter()
                .collect(),
            (Scope::ServerSaved, _) => {
                let saved = |rule| Allowance::Saved(workspace.to_owned(), rule);
                self.server.clone().map(saved).into_iter().collect()
            }
            (Scope::Command | Scope::Edits | Scope::Prefix | Scope::PrefixSaved, _) => {
                self.always.clone()
            }
        }
    }
}

impl AuditedText {
    /// Returns the text about a call that is not a command.
    pub(super) fn plain(command: String, verdict: &Verdict) -> Self {
        Self {
            command,
            segments: Vec::new(),
            verdict: verdict.word(),
        }
    }
}

impl DecidedCall {
    /// Returns the decision, or `Decision::Unasked` if the call needs no decision.
    pub fn decision(&self) -> Decision {
        self.decision.clone().unwrap_or(Decision::Unasked)
    }
}

impl ReadyCall {
    /// Returns a call whose work starts when its result is awaited.
    pub fn new(
        level: Option<&'static str>,
        runs: Option<String>,
        work: impl Future<Output = Result<CallResult, CallHalt>> + Send + 'static,
    ) -> Self {
        let running: RunningCall = Box::pin(work);
        Self {
            level,
            runs,
            start: Box::pin(std::future::ready(Ok(running))),
        }
    }
}

impl From<CallHalt> for NotRun {
    fn from(halt: CallHalt) -> Self {
        Self::Halt(halt)
    }
}

impl CallEffect {
    /// Returns the outcome of a call that ran in co's own process.
    pub(super) fn of_co(words: impl Into<String>) -> Self {
        Self {
            level: CO_ITSELF,
            words: words.into(),
            hosts: HostReport::default(),
            spill: None,
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
    /// Returns a result with this text for the model. It counts as failed, and the person sees no text.
    pub fn answer(text: impl Into<String>) -> Self {
        RedactedText::from(text.into()).into()
    }

    /// Returns the result of a call that did not run. `why` is the reason; the person sees its first line.
    pub fn not_run(why: impl Into<String>) -> Self {
        let why = why.into();
        let first = why.lines().next().unwrap_or_default();
        let shown = first.strip_prefix("Not run: ").unwrap_or(first);
        Self {
            shown: ShownPart::line(format!("not run: {shown}")),
            ..Self::answer(why)
        }
    }

    /// Adds a line to the text for the model.
    pub(super) fn told(mut self, line: &str) -> Self {
        self.told.text.push('\n');
        self.told.text.push_str(line);
        self
    }

    /// Adds a remark for the person in the same way as [`Self::noted`], unless the remark is `None`.
    pub(super) fn noted_if(self, remark: Option<String>) -> Self {
        match remark {
            Some(remark) => self.noted(&remark),
            None => self,
        }
    }

    /// Adds a remark for the person to the status line.
    pub(super) fn noted(mut self, remark: &str) -> Self {
        self.shown.status = format!("{}; {remark}", self.shown.status);
        if let Some(exceptions) = &mut self.shown.exceptions {
            *exceptions = joined(&[exceptions, remark]);
        }
        self
    }
}

/// Joins the texts with semicolons. Leaves out empty texts.
pub(super) fn joined(texts: &[&str]) -> String {
    let texts: Vec<_> = texts
        .iter()
        .copied()
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("; ")
}

/// Returns the result of a call that does not run because of this decision.
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
