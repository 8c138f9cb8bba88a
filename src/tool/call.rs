//! A call of the model with valid arguments, in its stages. A [`PlannedCall`] gets a verdict. A [`JudgedCall`] has the question
//! to the person, and the work of the call. A [`ReadyCall`] has all that it needs to start. A [`RunningCall`] ends with a
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

/// The result of a call that was cancelled before it got a verdict or ran.
pub const CANCELLED: &str = "Cancelled before it was run.";

/// The result of a call that had started when it was cancelled, or that no outcome came of.
pub const EFFECT_UNKNOWN: &str =
    "cut off: the call was cancelled while it ran; whether it took effect is not known";

/// The result of a call that nobody answered before its turn ended.
pub const CUT_OFF: &str = "cut off: the turn ended before this call was carried out";

/// The result of a denied call.
const DENIED: &str = "User denied this action";

/// The word of the audit file for the confinement of a call that runs in co's own process.
pub(super) const CO_ITSELF: &str = "co itself";

/// A call with valid arguments.
///
/// The turn judges it, asks the person if that is needed, and starts it. After each other call of its step, the turn judges it
/// again, because the other call may have changed its effect.
#[async_trait]
pub trait PlannedCall: Send + Sync {
    /// Returns the call as the chat shows it.
    fn shown(&self) -> ShownCall;

    /// Begins to collect facts that take time, and returns whether it has. The questions about other calls do not wait for them.
    /// The call is judged when [`Self::poll_facts`] is ready.
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
    async fn judge(&self, context: &CallContext, memory: &TurnMemory)
    -> Result<JudgedCall, String>;
}

/// A call that changes nothing and needs no verdict, such as one that shows a plan.
#[async_trait]
pub trait LookingCall: Clone + Send + Sync + 'static {
    /// Returns the call as the chat shows it.
    fn shown(&self) -> ShownCall;

    /// Returns the words that tell the person what runs; none if it takes no time.
    fn runs(&self) -> Option<String> {
        None
    }

    /// Does the work of the call.
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

/// A call with its verdict.
pub struct JudgedCall {
    pub resolution: Resolution,
    /// None if the call needs no verdict.
    pub audited: Option<AuditedText>,
    pub kind: CallKind,
    pub action: Box<dyn CallAction>,
}

/// The kind of a judged call. A turn that only plans carries out those that look and watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// The call changes nothing, and may run beside other calls.
    Looks,
    /// The call changes nothing, but waits for the calls before it: changes that a job makes meanwhile are recorded with the
    /// call.
    Watches,
    /// The call may change something.
    Acts,
}

/// The verdict on a call with the permissions of the person applied.
pub enum Resolution {
    /// The call runs without a verdict: it reads what the model may know, shows a plan, or ends a job.
    Free,
    Run(Decision),
    Refuse(Decision),
    Ask(Box<AskedQuestion>),
}

/// A question about a call.
#[derive(Clone)]
pub struct AskedQuestion {
    pub question: Question,
    /// The prefix that `always` may allow.
    pub prefix: Option<Pattern>,
    /// The rule for every tool of the server, if it is about a call of a tool server.
    pub server: Option<Pattern>,
    /// The number of calls that had ended when it was asked; none if bash computes no word of the command. Another call may
    /// change a computed word.
    pub computed_at: Option<usize>,
    /// The narrowest permissions that `always` gives.
    pub always: Vec<Allowance>,
}

/// A judged call in the audit file.
#[derive(Debug, Clone)]
pub struct AuditedText {
    pub command: String,
    /// The simple commands of the command.
    pub segments: Vec<String>,
    /// The verdict in a word.
    pub verdict: &'static str,
}

/// The work of a judged call. Only that of a command has further steps, which `command::JudgedCommand` gives to the turn.
#[async_trait]
pub trait CallAction: Any + Send + Sync {
    /// Returns the name under which `/undo` lists the changes of files during the call; none if no file changes, or the call
    /// records the changes itself.
    fn changes_as(&self) -> Option<String> {
        None
    }

    /// Returns the result of the call if the person, in a review or not, or a rule refuses it; none for the usual result.
    fn refused(
        self: Box<Self>,
        _decision: &Decision,
        _hunks: Option<&[HunkAnswer]>,
    ) -> Option<CallResult> {
        None
    }

    /// Makes all ready that the call needs to start. Nothing of it has happened when this returns.
    async fn prepare(
        self: Box<Self>,
        context: &Arc<CallContext>,
        decided: &DecidedCall,
    ) -> Result<ReadyCall, NotRun>;
}

/// A decision on a call.
#[derive(Debug, Clone)]
pub struct DecidedCall {
    /// The id of the call.
    pub id: String,
    /// None if the call needs no decision.
    pub decision: Option<Decision>,
    pub audited: Option<AuditedText>,
    /// The answers of the person in a review; none if they answered the whole.
    pub hunks: Option<Vec<HunkAnswer>>,
    /// The model has not been told in this turn that the confinement may have caused a failure.
    pub may_hint: bool,
}

/// A call that may start. The turn records its decision, audits it, starts it and shows what happens, in this order.
pub struct ReadyCall<T = CallResult> {
    /// The confinement, for the audit file. None for a call that only looks, in this process.
    pub level: Option<&'static str>,
    /// The words that tell the person what runs.
    pub runs: Option<String>,
    pub start: Starting<T>,
}

/// The start of a call.
pub type Starting<T = CallResult> =
    Pin<Box<dyn Future<Output = Result<RunningCall<T>, NotRun>> + Send>>;

/// The rest of a call that has started.
pub type RunningCall<T = CallResult> = Pin<Box<dyn Future<Output = Result<T, CallHalt>> + Send>>;

/// The reason why a call does not run.
pub enum NotRun {
    /// The call cannot run, for this reason. The text is for the model; the person sees the first line of the text.
    Because(String),
    /// The person or a rule refuses it.
    Refused(Box<CallResult>),
    /// The turn ends.
    Halt(CallHalt),
}

/// The result of a call.
#[derive(Default, Clone)]
pub struct CallResult {
    /// The text for the model.
    pub told: RedactedText,
    pub ok: bool,
    pub spill: Option<PathBuf>,
    /// The pictures for the model.
    pub images: Vec<Image>,
    pub shown: ShownPart,
    /// A command that failed, perhaps because it ran at the read-only level. It needs approval from now on.
    pub failed_confined: Option<String>,
    /// A job whose end the model reads in this result.
    pub ended_job: Option<u64>,
    /// The model was told that the confinement may have caused a failure.
    pub hinted: bool,
    /// The chat has shown the output already.
    pub streamed: bool,
    /// The outcome in the audit file; none if the call did not run, or started a job.
    pub effect: Option<CallEffect>,
}

/// The outcome of a call in the audit file.
#[derive(Debug, Clone)]
pub struct CallEffect {
    /// The confinement that it had.
    pub level: &'static str,
    pub words: String,
    /// The hosts that it wanted.
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

/// The reason why each call of a confined agent asks, also if a rule allows it.
const OF_AGENT: &str = "a confined agent makes the call, and this runs outside of its confinement, so no rule allows it";

impl Resolution {
    /// Applies the permissions of the person to a verdict. If the policy allows a call but no rule of the person does, the call
    /// needs approval here; `why` is the reason for the question, and `ask` makes it.
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
    /// Returns the question about a call of a confined agent, which says that `always` is no answer.
    fn only_once(mut self) -> Self {
        self.question.only_once = true;
        let reasons = &mut self.question.reasons;
        if !reasons.iter().any(|it| it == OF_AGENT) {
            reasons.push(OF_AGENT.to_owned());
        }
        self
    }

    /// Returns the permissions that `always` gives in a scope.
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
    /// Returns a call that is no command.
    pub(super) fn plain(command: String, verdict: &Verdict) -> Self {
        Self {
            command,
            segments: Vec::new(),
            verdict: verdict.word(),
        }
    }
}

impl DecidedCall {
    /// Returns the decision, or that of a call that needs none.
    pub fn decision(&self) -> Decision {
        self.decision.clone().unwrap_or(Decision::Unasked)
    }
}

impl ReadyCall {
    /// Returns a call that starts when its result is awaited.
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
    /// Returns a result with this text for the model. It counts as failed, and shows the person nothing.
    pub fn answer(text: impl Into<String>) -> Self {
        RedactedText::from(text.into()).into()
    }

    /// Returns the result of a call that did not run, with the reason `why`. The person sees the first line of the reason.
    pub fn not_run(why: impl Into<String>) -> Self {
        let why = why.into();
        let first = why.lines().next().unwrap_or_default();
        let shown = first.strip_prefix("Not run: ").unwrap_or(first);
        Self {
            shown: ShownPart::line(format!("not run: {shown}")),
            ..Self::answer(why)
        }
    }

    /// Adds a line for the model.
    pub(super) fn told(mut self, line: &str) -> Self {
        self.told.text.push('\n');
        self.told.text.push_str(line);
        self
    }

    /// Adds a remark for the person, if there is one, as [`Self::noted`] does.
    pub(super) fn noted_if(self, remark: Option<String>) -> Self {
        match remark {
            Some(remark) => self.noted(&remark),
            None => self,
        }
    }

    /// Adds a remark for the person to the line with the status.
    pub(super) fn noted(mut self, remark: &str) -> Self {
        self.shown.status = format!("{}; {remark}", self.shown.status);
        if let Some(exceptions) = &mut self.shown.exceptions {
            *exceptions = joined(&[exceptions, remark]);
        }
        self
    }
}

/// Joins the texts that are not empty.
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
