//! The tool `run_shell_command`, which runs one command through the executor: at once, after an answer, as a trial, or as a job.

pub mod conditions;
pub(crate) mod readiness;
pub mod request;
mod run;
pub mod secret_access;
mod trial;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use self::request::CommandRequest;
use self::trial::{Trial, TrialEnd};
use super::call::{
    AfterTrial, AnyCall, Approved, AskedQuestion, CANCELLED, CallResult, CommandSteps,
    EditedCommand, JudgedCall, PlannedCall, Resolution, RunningCall,
};
use super::context::{CallContext, Halt};
use super::event::{CallEvent, ShownCall};
use super::jobs::list::JobListRequest;
use super::permissions::{Allowance, TurnMemory};
use super::schema::BuiltIn;
use crate::error;
use crate::protocol::{Asker, HunkAnswer, Question};
use crate::text::one_line;
use co_llm::transcript::Decision;
use co_policy::{ApprovalQuestion, Grant, Pattern, Verdict};

/// A call that runs a command.
struct CommandCall {
    /// The command of the model.
    request: CommandRequest,
    edited: Option<EditedCommand>,
    judged: Option<JudgedCommand>,
    trial: Trial,
}

/// A command with its verdict.
struct JudgedCommand {
    /// The command of the model, or of the person.
    request: CommandRequest,
    cwd: PathBuf,
    judged: JudgedCall,
    /// The person wrote the command, and no call since then can have changed a word of it. So it is approved.
    approved: bool,
    /// The hidden secrets that the person's approval opens for the command.
    opens: Vec<PathBuf>,
}

impl CommandCall {
    fn new(request: CommandRequest) -> Self {
        Self {
            request,
            edited: None,
            judged: None,
            trial: Trial::None,
        }
    }

    /// Returns the command of the model, or that of the person in its place.
    fn current(&self) -> CommandRequest {
        match &self.edited {
            None => self.request.clone(),
            Some(edit) => self.request.edited(edit.command.clone()),
        }
    }

    /// Returns the reason why a command that only looks needs approval; none if it needs none.
    fn why_ask_unasked(&self, memory: &TurnMemory) -> Option<&'static str> {
        let failed = &memory.permissions.failed_confined;
        failed
            .contains(&self.current().text())
            .then_some("it failed in the read-only sandbox; approved, it runs outside of it")
    }
}

#[async_trait]
impl PlannedCall for CommandCall {
    fn shown(&self) -> ShownCall {
        self.request.shown()
    }

    async fn judge(&mut self, context: &CallContext, memory: &TurnMemory) -> Result<(), String> {
        self.judged = None;
        let request = self.current();
        let cwd = place(context, &request)?;
        let judged = judge(context, memory, &request, &cwd).await?;
        let opens = opens(context, &judged, &cwd).await?;
        let at = self.edited.as_ref().map(|edit| edit.computed_at);
        self.judged = Some(JudgedCommand {
            approved: at.is_some_and(|at| at.is_none_or(|at| at == memory.calls_ended)),
            request,
            cwd,
            judged,
            opens,
        });
        let asks = matches!(self.resolve(context, memory), Resolution::Ask(_));
        if asks && self.request.mode.background {
            // A question about it would be useless.
            let room = context.jobs(JobListRequest::CheckRoom).await;
            room.unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    fn resolve(&self, context: &CallContext, memory: &TurnMemory) -> Resolution {
        let Some(JudgedCommand {
            judged, approved, ..
        }) = &self.judged
        else {
            return Resolution::Refuse(Decision::Withdrawn);
        };
        // The person wrote the command.
        if *approved && !matches!(judged.verdict, Verdict::Deny { .. }) {
            return Resolution::Run(Decision::Approved);
        }
        match (&judged.verdict, self.why_ask_unasked(memory)) {
            (Verdict::Allow(Grant::ReadOnly | Grant::Unconfined), None) => {
                Resolution::Run(Decision::Unasked)
            }
            (verdict, why) => Resolution::of(verdict, why, context, memory),
        }
    }

    fn judged(&self) -> Option<&JudgedCall> {
        self.judged.as_ref().map(|it| &it.judged)
    }

    fn question(
        &self,
        context: &CallContext,
        memory: &TurnMemory,
        asking: &ApprovalQuestion,
    ) -> Option<AskedQuestion> {
        let JudgedCommand {
            request,
            cwd,
            judged,
            opens,
            ..
        } = self.judged.as_ref()?;
        let (tried, change) = self.trial.for_question();
        let ceiling = context.services.config.max_timeout();
        let command = request.text();
        let span = asking.reasons.first().and_then(|it| it.span.as_ref());
        let secrets = secret_access::reason(opens, &context.workspace);
        let question = Question {
            asker: Asker::Chat(context.chat),
            span: span.and_then(|span| shown_at(&command, span)),
            command: co_policy::printable(&command),
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
                .chain(self.trial.failure())
                .chain(self.asked_for_real(context, memory))
                .map(|reason| one_line(&reason))
                .collect(),
            may_try: self.may_try(context, memory),
            tried,
            destructive: asking.destructive,
            prefix: asking.prefix.as_ref().map(|it| one_line(&it.to_string())),
            alone: secrets
                .or_else(|| judged.reach.clone())
                .map(|reason| one_line(&reason)),
            change,
            ..Question::default()
        };
        Some(AskedQuestion {
            question,
            computed_at: judged.computes.then_some(memory.calls_ended),
            always: vec![Allowance::Rule(Pattern::exact(&command))],
        })
    }

    fn changes_as(&self) -> Option<String> {
        // What a trial changed is recorded when it is kept.
        (!self.trial.is_to_keep()).then(|| self.current().text())
    }

    fn refused(&mut self, decision: &Decision, hunks: Option<&[HunkAnswer]>) -> Option<CallResult> {
        let ended = self.trial.take()?;
        Some(ended.refused(decision, hunks))
    }

    async fn start(
        mut self: Box<Self>,
        context: Arc<CallContext>,
        approved: Approved,
    ) -> Result<RunningCall, Halt> {
        let Some(command) = self.judged.take() else {
            return Ok(CallResult::answer(CANCELLED).at_once());
        };
        match self.trial.take() {
            Some(ended) if !ended.tried.summary.runs_again => {
                approved.record(&context).await?;
                Ok(Box::pin(async move {
                    command.keep(ended, &context, approved).await
                }))
            }
            _ => command.run(self.edited.is_some(), context, approved).await,
        }
    }
}

#[async_trait]
impl CommandSteps for CommandCall {
    async fn judge_edit(
        &self,
        command: String,
        context: &CallContext,
        memory: &TurnMemory,
    ) -> Result<Result<EditedCommand, String>, String> {
        let request = self.request.edited(command.clone());
        let cwd = place(context, &request)?;
        let judged = judge(context, memory, &request, &cwd).await?;
        Ok(match judged.verdict {
            Verdict::Deny { why, .. } => Err(why),
            _ => Ok(EditedCommand {
                command,
                computed_at: judged.computes.then_some(memory.calls_ended),
            }),
        })
    }

    fn edit(&mut self, edit: EditedCommand) -> CallEvent {
        let command = co_policy::printable(&edit.command);
        self.edited = Some(edit);
        self.trial = Trial::None;
        let mode = self.request.mode;
        CallEvent::Edited { command, mode }
    }

    fn is_edited(&self) -> bool {
        self.edited.is_some()
    }

    fn is_tried_first(&self, context: &CallContext, memory: &TurnMemory, answered: bool) -> bool {
        match self.trial {
            Trial::Wanted => self.trial_sort(context, memory).is_some(),
            Trial::Failed(_) | Trial::Ended(_) => false,
            Trial::None => {
                !answered && !self.request.real && self.is_tried_by_rule(context, memory)
            }
        }
    }

    fn want_trial(&mut self) {
        self.trial = Trial::Wanted;
    }

    fn drop_trial(&mut self) -> bool {
        self.trial.take().is_some()
    }

    async fn try_out(
        mut self: Box<Self>,
        id: String,
        context: Arc<CallContext>,
    ) -> Result<AfterTrial, Halt> {
        let Some(command) = self.judged.take() else {
            self.trial = Trial::Failed("it could not be judged".to_owned());
            return Ok(AfterTrial::Ask(self));
        };
        let edited = self.edited.is_some();
        self.trial = match command.try_out(id, edited, &context).await? {
            TrialEnd::Cancelled(result) => return Ok(AfterTrial::Ended(result)),
            TrialEnd::Failed(why) => Trial::Failed(why),
            TrialEnd::Ended(ended) if ended.tried.needs_no_answer() => {
                return Ok(AfterTrial::Ended(Box::new(ended.result())));
            }
            TrialEnd::Ended(ended) => Trial::Ended(ended),
        };
        Ok(AfterTrial::Ask(self))
    }
}

/// Returns the tool.
pub(super) fn tool() -> BuiltIn {
    BuiltIn {
        spec: request::spec(),
        parse: |call| {
            let request = CommandRequest::parse(call)?;
            Ok(AnyCall::Command(Box::new(CommandCall::new(request))))
        },
        shown_unread: |_| None,
    }
}

/// Returns the working directory of a command. The error is a text for the model.
fn place(context: &CallContext, request: &CommandRequest) -> Result<PathBuf, String> {
    request
        .place(&context.workspace, &context.cwd)
        .map_err(|error| error::text_of(&error).plain())
}

/// Judges a command by the rules and by the permissions of this chat. The error is a text for the model.
async fn judge(
    context: &CallContext,
    memory: &TurnMemory,
    request: &CommandRequest,
    cwd: &Path,
) -> Result<JudgedCall, String> {
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
        JudgedCall {
            segments: assessment
                .commands
                .iter()
                .filter_map(|segment| text(&segment.span))
                .collect(),
            command,
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

/// Returns the hidden secrets that an approval of the command opens. Starts the container, if approved commands run in one.
///
/// # Errors
/// The container cannot run commands. The text is for the model.
async fn opens(
    context: &CallContext,
    judged: &JudgedCall,
    cwd: &Path,
) -> Result<Vec<PathBuf>, String> {
    if !matches!(
        judged.verdict,
        Verdict::Ask(_) | Verdict::Allow(Grant::Rule { .. })
    ) {
        return Ok(Vec::new());
    }
    let services = &context.services;
    let named = async {
        let confinement = services.probe.for_approved(|| &context.workspace).await;
        let Ok(confinement) = confinement else {
            return Ok(Vec::new());
        };
        services.prepare(&confinement).await?;
        let words = judged.words.clone();
        Ok(secret_access::named(services, &confinement, cwd, words).await)
    };
    let named = context.unless_cancelled(named).await;
    named.unwrap_or_else(|_| Ok(Vec::new()))
}

/// Returns the place of `span` in the printable form of a command; none if it is the whole command or not in it.
fn shown_at(command: &str, span: &Range<usize>) -> Option<[usize; 2]> {
    let marked = command.get(span.clone())?;
    let whole = marked.is_empty() || marked.len() == command.len();
    let start = co_policy::printable(&command[..span.start]).len();
    (!whole).then(|| [start, start + co_policy::printable(marked).len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_shown_where_it_speaks_of() {
        let command = "ls \u{202e}x && rm y";
        let at = command.find("rm").unwrap();
        let [start, end] = shown_at(command, &(at..command.len())).unwrap();
        assert_eq!(&co_policy::printable(command)[start..end], "rm y");
        assert_eq!(shown_at(command, &(0..command.len())), None);
        assert_eq!(shown_at(command, &(4..5)), None, "half a character");
        assert_eq!(shown_at("ls", &(0..9)), None);
    }
}
