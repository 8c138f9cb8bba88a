//! The tool `run_shell_command`, which runs one command through the executor: at once, after an answer, as a trial, or as a job.
//!
//! Only commands have two further steps, which the turn carries out. The person may write another command in place of the
//! model's. A command may run as a trial before the question about it.

pub(crate) mod hosts;
pub(crate) mod readiness;
pub mod request;
mod run;
pub mod secret_access;
mod trial;

use std::any::Any;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use self::request::CommandRequest;
pub use self::trial::{AfterTrial, TriedCall};
use self::trial::{Trial, TrialChoice};
use super::call::{
    AskedQuestion, AuditedText, CANCELLED, CallAction, CallKind, CallResult, DecidedCall,
    JudgedCall, NotRun, PlannedCall, ReadyCall, Resolution,
};
use super::context::{CallContext, TurnKind};
use super::event::{ExecMode, ShownCall};
use super::job_list::JobListRequest;
use super::permissions::{Allowance, TurnMemory};
use super::schema::{BadCall, BuiltIn};
use crate::error;
use crate::protocol::{Asker, HunkAnswer, Question};
use co_llm::transcript::Decision;
use co_policy::{ApprovalQuestion, Grant, Pattern, Verdict};
use co_text::one_line;

/// The result of a scout's command if nothing confines commands, such as after a change of the settings.
const NOT_CONFINED: &str = "Not run: nothing confines commands here, so a scout has only the tools that read and search files.";

/// The result of a background command for a caller that cannot follow jobs.
const NO_JOBS: &str = "Not run: there are no jobs here. Run the command without `background`.";

/// A call that runs a command.
#[derive(Clone)]
pub struct CommandCall {
    /// The command that the model sent.
    request: CommandRequest,
    edited: Option<EditedCommand>,
    trial: Trial,
}

/// A command that the person wrote in place of the model's. By writing it, the person approved it.
#[derive(Clone)]
pub struct EditedCommand {
    command: String,
    /// The number of calls of the turn that had ended when the person wrote the command; none if bash expands no word of the
    /// command. If bash expands a word, such as a glob, the approval ends with the next call, because that call may change the
    /// expansion.
    computed_at: Option<usize>,
}

/// The verdict on a command that the person wrote.
pub enum EditVerdict {
    Allowed(EditedCommand),
    /// The reason why a deny rule forbids the command.
    Forbidden(String),
    /// The command cannot be judged, or the turn was cancelled.
    Unknown,
}

/// A command that has been judged.
pub struct JudgedCommand {
    call: CommandCall,
    /// The command that the model or the person wrote.
    request: CommandRequest,
    cwd: PathBuf,
    assessed: AssessedCommand,
    /// The hidden secret files that the command may read if the person approves it.
    opens: Vec<PathBuf>,
    trial: TrialChoice,
}

/// A command after the policy has assessed it.
struct AssessedCommand {
    audited: AuditedText,
    /// The words of each simple command. Variables and globs are not expanded.
    words: Vec<Vec<String>>,
    /// True if bash computes a word of the command, for example from a glob.
    computes: bool,
    /// The first reason why the command may reach a secret or a place outside the workspace.
    reach: Option<String>,
    verdict: Verdict,
}

impl CommandCall {
    /// Returns the command that the person wrote, or else the command of the model.
    fn current(&self) -> CommandRequest {
        match &self.edited {
            None => self.request.clone(),
            Some(edit) => self.request.edited(edit.command.clone()),
        }
    }

    /// Returns true if the person wrote the command, and no call since then can have changed a word of it. The command then needs
    /// no further approval.
    fn is_approved(&self, memory: &TurnMemory) -> bool {
        let at = self.edited.as_ref().map(|edit| edit.computed_at);
        at.is_some_and(|at| at.is_none_or(|at| at == memory.calls_ended))
    }
}

#[async_trait]
impl PlannedCall for CommandCall {
    fn shown(&self) -> ShownCall {
        ShownCall::Command {
            command: co_text::printable(&self.request.text()),
            mode: self.request.mode,
        }
    }

    async fn judge(
        &self,
        context: &CallContext,
        memory: &TurnMemory,
    ) -> Result<JudgedCall, String> {
        let request = self.current();
        let cwd = place(context, &request)?;
        let assessed = assess(context, memory, &request, &cwd).await?;
        let opens = opens(context, &assessed, &cwd).await?;
        let failed = &memory.permissions.failed_confined;
        let why = failed
            .contains(&request.text())
            .then_some("it failed in the read-only sandbox; approved, it runs outside of it");
        let verdict = assessed.verdict.clone();
        let mut command = JudgedCommand {
            call: self.clone(),
            request,
            cwd,
            assessed,
            opens,
            trial: TrialChoice::default(),
        };
        let resolution = match (&verdict, why) {
            (Verdict::Allow(Grant::Unconfined), _)
                if matches!(context.kind, TurnKind::Scout { .. }) =>
            {
                return Err(NOT_CONFINED.to_owned());
            }
            (Verdict::Allow(_) | Verdict::Ask(_), _) if self.is_approved(memory) => {
                Resolution::Run(Decision::Approved)
            }
            (Verdict::Allow(Grant::ReadOnly | Grant::Unconfined), None) => {
                Resolution::Run(Decision::Unasked)
            }
            (verdict, why) => Resolution::of(verdict, why, (context, memory), |asking| {
                command.trial = self.trial_choice(asking, context, memory);
                command.question(asking, (context, memory))
            }),
        };
        if matches!(resolution, Resolution::Ask(_)) && command.request.mode.background {
            // A question about it would be useless.
            let room = context.jobs(JobListRequest::CheckRoom).await;
            room.unwrap_or(Ok(()))?;
        }
        Ok(JudgedCall {
            kind: match resolution {
                Resolution::Run(Decision::Unasked) => CallKind::Looks,
                _ => CallKind::Acts,
            },
            resolution,
            audited: Some(command.assessed.audited.clone()),
            action: Box::new(command),
        })
    }
}

#[async_trait]
impl CallAction for JudgedCommand {
    fn changes_as(&self) -> Option<String> {
        // What a trial changed is recorded when it is kept.
        (!self.call.trial.is_to_keep()).then(|| self.request.text())
    }

    fn refused(
        self: Box<Self>,
        decision: &Decision,
        hunks: Option<&[HunkAnswer]>,
    ) -> Option<CallResult> {
        Some(self.call.trial.ended()?.refused(decision, hunks))
    }

    async fn prepare(
        mut self: Box<Self>,
        context: &Arc<CallContext>,
        decided: &DecidedCall,
    ) -> Result<ReadyCall, NotRun> {
        match std::mem::take(&mut self.call.trial) {
            Trial::Ended(ended) if !ended.tried.summary.runs_again => {
                let ended = Arc::unwrap_or_clone(ended);
                Ok(self.keep(ended, Arc::clone(context), decided.clone()))
            }
            _ => self.ready(context, decided).await,
        }
    }
}

impl JudgedCommand {
    /// Returns the question about the command.
    fn question(
        &self,
        asking: &ApprovalQuestion,
        (context, memory): (&CallContext, &TurnMemory),
    ) -> AskedQuestion {
        let Self {
            call,
            request,
            cwd,
            assessed,
            opens,
            trial,
        } = self;
        let (tried, change) = call.trial.for_question();
        let ceiling = context.services.config.max_timeout();
        let command = request.text();
        let span = asking.reasons.first().and_then(|it| it.span.as_ref());
        let secrets = secret_access::reason(opens, &context.workspace);
        let for_real = (call.request.real && trial.by_rule)
            .then(|| "the model asks to run it for real, not as a trial".to_owned());
        let question = Question {
            asker: Asker::Chat(context.chat),
            span: span.and_then(|span| shown_at(&command, span)),
            command: co_text::printable(&command),
            cwd: one_line(&cwd.display().to_string()),
            timeout: request.limit(ceiling).map(|it| it.as_secs()),
            terminal: request.mode.terminal,
            background: request.mode.background,
            confinement: context.services.probe.name().to_owned(),
            reasons: asking
                .reasons
                .iter()
                .map(|reason| reason.text.clone())
                .chain(secrets.clone())
                .chain(call.trial.failure())
                .chain(for_real)
                .map(|reason| one_line(&reason))
                .collect(),
            may_try: trial.is_possible && matches!(call.trial, Trial::None),
            tried,
            destructive: asking.destructive,
            prefix: asking.prefix.as_ref().map(|it| one_line(&it.to_string())),
            alone: secrets
                .or_else(|| assessed.reach.clone())
                .map(|reason| one_line(&reason)),
            change,
            ..Question::default()
        };
        AskedQuestion {
            question,
            prefix: asking.prefix.clone(),
            server: None,
            computed_at: assessed.computes.then_some(memory.calls_ended),
            always: vec![Allowance::Rule(Pattern::exact(&command))],
        }
    }

    /// Downcasts the action of a call to a command. Returns `None` if it is another kind of action.
    pub fn of(action: &dyn CallAction) -> Option<&Self> {
        (action as &dyn Any).downcast_ref()
    }

    /// Returns the work of a call as a mutable command; none if the call is not a command.
    pub fn of_mut(action: &mut dyn CallAction) -> Option<&mut Self> {
        (action as &mut dyn Any).downcast_mut()
    }

    /// Judges a command that the person wrote in place of this one.
    pub async fn judge_edit(
        &self,
        command: String,
        context: &CallContext,
        memory: &TurnMemory,
    ) -> EditVerdict {
        let request = self.call.request.edited(command.clone());
        let assessed = match place(context, &request) {
            Ok(cwd) => assess(context, memory, &request, &cwd).await,
            Err(why) => Err(why),
        };
        match assessed.map(|it| (it.verdict, it.computes)) {
            Err(_) => EditVerdict::Unknown,
            Ok((Verdict::Deny { why, .. }, _)) => EditVerdict::Forbidden(why),
            Ok((_, computes)) => EditVerdict::Allowed(EditedCommand {
                command,
                computed_at: computes.then_some(memory.calls_ended),
            }),
        }
    }

    /// Returns the call with the command that the person wrote, and this command as the chat shows it.
    pub fn edited(&self, edit: EditedCommand) -> (CommandCall, String, ExecMode) {
        let command = co_text::printable(&edit.command);
        let call = CommandCall {
            edited: Some(edit),
            trial: Trial::None,
            ..self.call.clone()
        };
        (call, command, self.request.mode)
    }

    /// Returns true if the person wrote the command.
    pub fn is_edited(&self) -> bool {
        self.call.edited.is_some()
    }
}

/// Returns the tool `run_shell_command`.
pub(super) fn tool() -> BuiltIn {
    BuiltIn {
        spec: request::spec(true),
        parse: |call| Ok(Box::new(CommandCall::new(CommandRequest::parse(call)?))),
        shown_unread: |_| None,
    }
}

/// Returns the tool `run_shell_command` for a caller that cannot follow jobs.
pub(super) fn tool_without_jobs() -> BuiltIn {
    BuiltIn {
        spec: request::spec(false),
        parse: |call| match CommandRequest::parse(call)? {
            request if request.mode.background => Err(BadCall(NO_JOBS.to_owned())),
            request => Ok(Box::new(CommandCall::new(request))),
        },
        shown_unread: |_| None,
    }
}

impl CommandCall {
    fn new(request: CommandRequest) -> Self {
        Self {
            request,
            edited: None,
            trial: Trial::None,
        }
    }
}

/// Returns the working directory of a command. The error is a text for the model.
fn place(context: &CallContext, request: &CommandRequest) -> Result<PathBuf, String> {
    request
        .place(&context.workspace, &context.cwd)
        .map_err(|error| error::text_of(&error).plain())
}

/// Judges a command by the rules and by the permissions of this chat. The error is a text for the model.
async fn assess(
    context: &CallContext,
    memory: &TurnMemory,
    request: &CommandRequest,
    cwd: &Path,
) -> Result<AssessedCommand, String> {
    let judge = Arc::clone(&context.judge);
    let (program, command, cwd) = (request.program.clone(), request.text(), cwd.to_owned());
    let rules = memory.permissions.rules.clone();
    let isolation = context.unless_cancelled(context.services.probe.isolation());
    let confined = isolation.await.map_err(|_| CANCELLED)?.confines();
    let judged = tokio::task::spawn_blocking(move || {
        let assessment = judge.assess(&program, &cwd, confined);
        let mut verdict = judge.verdict(&assessment, &rules);
        if let Verdict::Ask(question) = &mut verdict {
            question.trial = question.trial.filter(|_| judge.check_trial().is_ok());
        }
        let text = |span: &Range<usize>| assessment.command.get(span.clone()).map(str::to_owned);
        AssessedCommand {
            audited: AuditedText {
                segments: assessment
                    .commands
                    .iter()
                    .filter_map(|segment| text(&segment.span))
                    .collect(),
                command,
                verdict: verdict.word(),
            },
            words: assessment.words(),
            computes: assessment.computes,
            reach: assessment.reach,
            verdict,
        }
    });
    let judged = context.unless_cancelled(judged).await;
    judged
        .map_err(|_| CANCELLED)?
        .map_err(|error| format!("The command could not be judged ({error}), so it was not run."))
}

/// Returns the hidden secret files that the command may read if the person approves it. Starts the container, if approved
/// commands run in one.
///
/// # Errors
/// The reason why the container cannot run commands, for the model.
async fn opens(
    context: &CallContext,
    assessed: &AssessedCommand,
    cwd: &Path,
) -> Result<Vec<PathBuf>, String> {
    let may_open = matches!(
        assessed.verdict,
        Verdict::Ask(_) | Verdict::Allow(Grant::Rule { .. })
    );
    // A turn that only looks refuses these.
    if !may_open || context.kind.refusal().is_some() {
        return Ok(Vec::new());
    }
    let services = &context.services;
    let named = async {
        let confinement = services.probe.for_approved(|| &context.workspace).await;
        let Ok(confinement) = confinement else {
            return Ok(Vec::new());
        };
        services.prepare(&confinement).await?;
        let words = assessed.words.clone();
        Ok(secret_access::named(services, &confinement, cwd, words).await)
    };
    let named = context.unless_cancelled(named).await;
    named.unwrap_or_else(|_| Ok(Vec::new()))
}

/// Converts a byte range of a command into the range of the same text in the printable form of the command. Returns `None` if
/// `span` is empty, is the whole command, or is not a valid range of the command.
fn shown_at(command: &str, span: &Range<usize>) -> Option<[usize; 2]> {
    let marked = command.get(span.clone())?;
    let whole = marked.is_empty() || marked.len() == command.len();
    let start = co_text::printable(&command[..span.start]).len();
    (!whole).then(|| [start, start + co_text::printable(marked).len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_shown_where_it_speaks_of() {
        let command = "ls \u{202e}x && rm y";
        let at = command.find("rm").unwrap();
        let [start, end] = shown_at(command, &(at..command.len())).unwrap();
        assert_eq!(&co_text::printable(command)[start..end], "rm y");
        assert_eq!(shown_at(command, &(0..command.len())), None);
        assert_eq!(shown_at(command, &(4..5)), None, "half a character");
        assert_eq!(shown_at("ls", &(0..9)), None);
    }
}
