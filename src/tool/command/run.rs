//! Runs an allowed command: prepares and starts it, shows its output, and makes the outcome for the model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::hosts::{self, ReachingCommand};
use super::request::{CommandRequest, ExecContext};
use super::{JudgedCommand, readiness, secret_access};
use crate::cancellable;
use crate::network::{self, HostReport, OpenAccess, OpenCommand, StartError};
use crate::protocol::{Asker, PlannedCommand};
use crate::tool::call::{
    CANCELLED, CallEffect, CallResult, DecidedCall, NotRun, ReadyCall, RunningCall, joined,
};
use crate::tool::conditions::{Conditions, NOT_EXECUTED, UNREADY};
use crate::tool::context::{CallContext, CallHalt, Questioner};
use crate::tool::event::CallEvent;
use crate::tool::job_list::{JobListRequest, JobView, StartedJob};
use crate::tool::jobs::call::JobReport;
use crate::workspace::confinement::network_of;
use co_exec::secrets::redact::RedactedText;
use co_exec::{CommandOutcome, Confinement, RunningCommand};
use co_llm::transcript::{Decision, Item, ShownPart};
use co_policy::{Grant, Pattern, Verdict};
use co_text::short_command;

/// The text in place of the output if a command succeeded and printed nothing.
const NO_OUTPUT: &str = "(no output)";

/// A command that may run.
pub(super) struct AllowedCommand {
    pub request: CommandRequest,
    pub exec: ExecContext,
    /// True if the person wrote the command in place of the model's.
    pub edited: bool,
    pub decided: DecidedCall,
    /// The words of each simple command.
    words: Vec<Vec<String>>,
}

impl JudgedCommand {
    /// Prepares the command to run in the confinement that the decision requires.
    pub(super) async fn ready(
        self: Box<Self>,
        context: &Arc<CallContext>,
        decided: &DecidedCall,
    ) -> Result<ReadyCall, NotRun> {
        let confinement = match decided.decision() {
            Decision::Unasked => Ok(self.unasked_confinement(context)),
            _ => self.approved_confinement(context, decided).await,
        };
        let confinement = confinement.map_err(NotRun::Because)?;
        let allowed = self.allowed(confinement, decided);
        Ok(ReadyCall {
            level: Some(allowed.exec.confinement.name()),
            runs: Some(allowed.request.text()),
            start: Box::pin(allowed.start(Arc::clone(context))),
        })
    }

    /// Returns the command with the confinement in which it runs.
    pub(super) fn allowed(
        &self,
        confinement: Confinement,
        decided: &DecidedCall,
    ) -> AllowedCommand {
        AllowedCommand {
            exec: ExecContext {
                cwd: self.cwd.clone(),
                confinement,
                unasked: matches!(decided.decision(), Decision::Unasked | Decision::Tried),
            },
            request: self.request.clone(),
            edited: self.call.edited.is_some(),
            decided: decided.clone(),
            words: self.assessed.words.clone(),
        }
    }

    fn unasked_confinement(&self, context: &CallContext) -> Confinement {
        match self.assessed.verdict {
            // It was judged where the kernel confines nothing.
            Verdict::Allow(Grant::Unconfined) => Confinement::Plain,
            _ => context.services.probe.for_unasked(&context.workspace),
        }
    }

    /// Returns the confinement of a command that the person or their rule allowed.
    ///
    /// # Errors
    /// The reason why the chosen confinement is not possible here.
    async fn approved_confinement(
        &self,
        context: &CallContext,
        decided: &DecidedCall,
    ) -> Result<Confinement, String> {
        let services = &context.services;
        let confinement = services.probe.for_approved(|| &context.workspace).await;
        Ok(match confinement.map_err(|refused| refused.to_string())? {
            confinement if may_open(&decided.decision(), &self.request.text()) => {
                secret_access::open(confinement, self.opens.clone())
            }
            confinement => confinement,
        })
    }
}

impl AllowedCommand {
    /// Calls the hooks of plugins, starts the container engine if the command uses one, and reads the values of secrets that the
    /// command may change. All of this may have effects, so the caller must have written the decision to disk before.
    pub(super) async fn before_start(&self, context: &CallContext) -> Result<(), NotRun> {
        if let Some(why) = context.plugin_refusal(self.for_hooks(context)).await {
            return Err(NotRun::Because(why));
        }
        let ExecContext {
            confinement,
            unasked,
            ..
        } = &self.exec;
        if !unasked && *confinement == Confinement::Plain {
            let services = &context.services;
            let environment = services.executor.agent_environment();
            let ready = readiness::wait(services, &self.words, &environment);
            let ready = context.unless_cancelled(ready).await;
            ready.unwrap_or(Ok(())).map_err(NotRun::Because)?;
        }
        context.load_secret_values(confinement).await;
        Ok(())
    }

    /// Starts the command, or starts it as a job.
    async fn start(self, context: Arc<CallContext>) -> Result<RunningCall, NotRun> {
        self.before_start(&context).await?;
        if self.request.mode.background {
            let number = context.jobs(JobListRequest::NewNumber).await?;
            let number = number.map_err(NotRun::Because)?;
            let job = self.start_job(&context, number).await?;
            return Ok(Box::pin(
                async move { self.first_output(&job, &context).await },
            ));
        }
        let running = self.execute(&context, context.to_chat.clone()).await?;
        Ok(Box::pin(async move {
            let (_, result) = self.follow(running, &context).await?;
            Ok(result)
        }))
    }

    /// Starts the command with the executor. If the command has a network of its own and the settings allow access, it may
    /// contact the hosts that the person allows. `questioner` asks the person about other hosts.
    pub(super) async fn execute(
        &self,
        context: &CallContext,
        questioner: Arc<dyn Questioner>,
    ) -> Result<OpenCommand, NotRun> {
        let spec = self.request.spec(self.exec.clone(), self.ceiling(context));
        let (services, streams) = (&context.services, self.request.streams());
        let reaching = ReachingCommand {
            asker: Asker::Chat(context.chat),
            workspace: &context.workspace,
            command: &self.request.text(),
            cwd: &self.exec.cwd,
            confinement: self.exec.confinement.name(),
        };
        let started = async {
            let access =
                hosts::access(services, questioner, &self.exec.confinement, &reaching).await;
            network::start(&services.executor, spec, streams, access).await
        };
        let started = context.unless_cancelled(started).await?;
        started.map_err(|error| NotRun::Because(not_started(&error, self.exec.unasked)))
    }

    /// Records the start of a job, starts the job, and hands it over to the chat.
    async fn start_job(&self, context: &CallContext, number: u64) -> Result<JobView, NotRun> {
        let command = self.request.text();
        let item = Item::JobStarted {
            job: number,
            call: self.decided.id.clone(),
            command: co_text::printable(&short_command(&command)),
        };
        context.to_chat.record(item).await?;
        let (job, access) = match self.execute(context, context.for_jobs.clone()).await {
            Ok(job) => job,
            Err(not_run) => {
                let why = match &not_run {
                    NotRun::Because(why) => why,
                    _ => CANCELLED,
                };
                let first = why.lines().next().unwrap_or_default();
                let item = Item::JobEnded {
                    job: number,
                    text: format!("job {number} was not started: {first}"),
                    told: true,
                };
                context.to_chat.record(item).await?;
                return Err(not_run);
            }
        };
        let decision = self.decided.decision();
        let level = self.exec.confinement.name();
        let started_job = StartedJob {
            checkpoint: context.job_checkpoint(number, &command, &decision).await,
            number,
            command: co_text::printable(&command),
            cwd: self.exec.cwd.clone(),
            conditions: self.conditions(context),
            record: context.audit_record(&self.decided, level),
            job,
            access,
        };
        let started = |reply| JobListRequest::Started(Box::new(started_job), reply);
        Ok(context.jobs(started).await?)
    }

    /// Returns the first output of a job that has just started.
    async fn first_output(
        &self,
        job: &JobView,
        context: &CallContext,
    ) -> Result<CallResult, CallHalt> {
        let mut lead = format!("[job {} was started]\n", job.number);
        if self.edited {
            let ran = self.request.text();
            lead = format!("The person changed the command; what was started is:\n{ran}\n\n{lead}");
        }
        let report = JobReport {
            lead,
            ..JobReport::default()
        };
        report.first(context, job).await
    }

    /// Shows the output of a command until its end. Returns the outcome of the command and the result of the call.
    pub(super) async fn follow(
        &self,
        (running, access): OpenCommand,
        context: &CallContext,
    ) -> Result<(CommandOutcome, CallResult), CallHalt> {
        let services = &context.services;
        let command = self.request.text();
        let listed = (services.foreground).add(context.chat, services.id(), &command);
        let started = Instant::now();
        let outcome = show_until_done(running, context).await?;
        let hosts = access.map(OpenAccess::close).unwrap_or_default();
        drop(listed);
        let conditions = self.conditions(context);
        let hint = conditions.hint(&outcome);
        let hint = hint.filter(|_| self.decided.may_hint);
        let lines = [
            hint.as_ref().map(|hint| format!("It ran {hint}.")),
            hosts.for_model(),
        ];
        let (told, output) = self.for_model(&outcome, lines, context).await;
        let short = outcome.timed_out && conditions.unasked;
        let setting = if short { ": unasked_timeout" } else { "" };
        let started_containers = readiness::started(&self.request.text(), &outcome);
        let more = started_containers.unwrap_or_default();
        let failed =
            conditions.may_be_to_blame(&outcome) && self.decided.decision() == Decision::Unasked;
        let mut result = result_of(&outcome, told, [setting, &more]);
        result.failed_confined = failed.then(|| self.request.text());
        result.hinted = hint.is_some();
        result.shown.output = output;
        result.streamed = true;
        result.shown.notice = hint;
        if let Some(effect) = &mut result.effect {
            effect.hosts = hosts;
        }
        result.shown.tried = self.decided.decision() == Decision::Tried;
        tracing::debug!(call = self.decided.id, wall = ?started.elapsed(), "a call ended");
        Ok((outcome, result))
    }

    /// Returns the text of the outcome for the model, and the range of the output in this text. The text contains additional
    /// lines and advice, and no secret values.
    async fn for_model(
        &self,
        outcome: &CommandOutcome,
        lines: [Option<String>; 2],
        context: &CallContext,
    ) -> (RedactedText, [usize; 2]) {
        let ended = outcome.ended_or_now();
        let redacted = context.redact_for_model(&outcome.output, ended).await;
        let (RedactedText { mut text, hidden }, mut output) = place_output(outcome, redacted);
        if self.edited {
            let ran = self.request.text();
            let lead = format!("The person changed the command; what ran is:\n{ran}\n\n");
            output = output.map(|at| at + lead.len());
            text.insert_str(0, &lead);
        }
        let advice = self.conditions(context).advice(outcome);
        for line in lines.into_iter().flatten().chain(advice) {
            text.push('\n');
            text.push_str(&line);
        }
        (RedactedText { text, hidden }, output)
    }

    /// Returns the conditions under which the command runs.
    pub(super) fn conditions(&self, context: &CallContext) -> Conditions {
        let services = &context.services;
        let ceiling = services.config.max_timeout();
        let limit = self.request.limit(self.ceiling(context));
        Conditions {
            confinement: self.exec.confinement.words(),
            network: network_of(&self.exec.confinement, &services.config),
            confined: self.exec.unasked && self.exec.confinement != Confinement::Plain,
            hides: self.exec.confinement.masks_secrets(),
            approved_confinement: services.probe.name(),
            level: self.exec.confinement.name(),
            asked: self.request.timeout,
            limit,
            unasked: limit != self.request.limit(ceiling),
            ceiling,
        }
    }

    /// Returns the longest time that the command may take. It is shorter for a command that runs without approval, except for a
    /// job.
    fn ceiling(&self, context: &CallContext) -> Duration {
        let config = &context.services.config;
        let most = config.max_timeout();
        let unasked = self.decided.decision() == Decision::Unasked;
        match unasked && !self.request.mode.background {
            true => most.min(config.unasked_timeout),
            false => most,
        }
    }

    /// Returns the command in the form in which the hooks of plugins get it.
    fn for_hooks(&self, context: &CallContext) -> PlannedCommand {
        PlannedCommand {
            chat: context.chat,
            command: self.request.text(),
            cwd: self.exec.cwd.display().to_string(),
            unasked: self.exec.unasked,
            job: None,
        }
    }
}

async fn show_until_done(
    running: RunningCommand,
    context: &CallContext,
) -> Result<CommandOutcome, CallHalt> {
    let block = context.services.id();
    let started = CallEvent::OutputStarted {
        block,
        screen: running.screen(),
    };
    context.to_chat.show(started).await?;
    let outcome = cancellable::outcome(running, context.cancel.cancelled()).await;
    context
        .to_chat
        .show(CallEvent::OutputEnded { block })
        .await?;
    Ok(outcome)
}

/// Returns true if the person allowed this exact command, so that it may read the secrets that it names.
fn may_open(decision: &Decision, command: &str) -> bool {
    match decision {
        Decision::Approved => true,
        Decision::Rule { rule } => *rule == Pattern::exact(command).to_string(),
        _ => false,
    }
}

/// Returns the result of a command for the model and the person. `suffix` is appended to the status of the command. `more` is a
/// further remark for the person; it may be empty.
fn result_of(
    outcome: &CommandOutcome,
    told: RedactedText,
    [suffix, more]: [&str; 2],
) -> CallResult {
    CallResult {
        ok: outcome.told_ok(),
        spill: outcome.spill.clone(),
        effect: Some(CallEffect {
            level: outcome.level,
            words: outcome.status(),
            hosts: HostReport::default(),
            spill: outcome.spill.clone(),
        }),
        shown: ShownPart {
            status: joined(&[&format!("{}{suffix}", outcome.status()), more]),
            exceptions: Some(joined(&[
                &format!("{}{suffix}", outcome.exceptions()),
                more,
            ])),
            took: outcome.took(),
            ..ShownPart::default()
        },
        ..told.into()
    }
}

/// Returns the outcome of a command for the model, and the range of the program's output in this text.
fn place_output(
    outcome: &co_exec::CommandOutcome,
    redacted: Result<RedactedText, String>,
) -> (RedactedText, [usize; 2]) {
    let redacted = match redacted {
        Ok(redacted) => redacted,
        Err(withheld) => return (format!("[{withheld}]\n").into(), [0, 0]),
    };
    if redacted.text.trim().is_empty() {
        return (NO_OUTPUT.to_owned().into(), [0, 0]);
    }
    let status = outcome.output.get(outcome.printed..).unwrap_or_default();
    let output = redacted.text.strip_suffix(status);
    let end = output.unwrap_or(&redacted.text).len();
    (redacted, [0, end])
}

/// Returns the result of a command that could not start. `unasked` is true if nobody was asked about it. The person sees the
/// first line.
fn not_started(error: &StartError, unasked: bool) -> String {
    match error.is_permission() {
        true if unasked && error.is_unready() => format!("{error}\n{UNREADY}"),
        true => format!("{error}\n{NOT_EXECUTED}"),
        false => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use co_exec::sandbox::{HidingRefusal, SandboxRefusal};

    use super::*;

    #[test]
    fn a_command_that_was_not_asked_about_may_be_sent_again_if_secrets_cannot_be_hidden() {
        let told = |refusal: SandboxRefusal, unasked: bool| {
            not_started(
                &StartError::Command(co_exec::Error::Sandbox(refusal)),
                unasked,
            )
        };
        let unready = || SandboxRefusal::from(HidingRefusal::NotSurveyed("/work".into()));
        assert!(told(unready(), true).ends_with(UNREADY));
        assert!(told(unready(), false).ends_with(NOT_EXECUTED));
        let unable = SandboxRefusal::Unable("no".to_owned());
        assert!(told(unable, true).ends_with(NOT_EXECUTED));
    }

    #[test]
    fn only_a_yes_to_the_command_itself_opens_secrets() {
        let rule = |rule: Pattern| Decision::Rule {
            rule: rule.to_string(),
        };
        let command = "cat .env && ls";
        assert!(may_open(&Decision::Approved, command));
        assert!(may_open(&rule(Pattern::exact(command)), command));
        assert!(!may_open(&rule(Pattern::prefix(["cat"])), "cat .env"));
        for decision in [Decision::AutoConfirm, Decision::Unasked] {
            assert!(!may_open(&decision, command));
        }
    }

    #[test]
    fn the_end_of_a_withheld_output_is_told_in_one_way() {
        let ok = |exit, withheld| {
            let outcome = CommandOutcome {
                exit: Some(exit),
                withheld,
                ..CommandOutcome::default()
            };
            result_of(&outcome, RedactedText::default(), ["", ""]).ok
        };
        assert_eq!([0, 1].map(|exit| ok(exit, false)), [true, false]);
        assert_eq!(ok(0, true), ok(1, true));
    }

    #[test]
    fn only_the_output_of_a_program_counts_as_output() {
        let outcome = co_exec::CommandOutcome {
            output: "a\n[exit 1]\n".to_owned(),
            printed: 2,
            ..co_exec::CommandOutcome::default()
        };
        let placed = |redacted| {
            let (RedactedText { text, .. }, [start, end]) = place_output(&outcome, redacted);
            (text[start..end].to_owned(), text)
        };
        let (output, text) = placed(Ok(outcome.output.clone().into()));
        assert_eq!((output.as_str(), text), ("a\n", outcome.output.clone()));
        let (output, text) = placed(Err("output withheld: why".to_owned()));
        assert_eq!(
            (output.as_str(), text.as_str()),
            ("", "[output withheld: why]\n")
        );
        let (output, text) = placed(Ok(String::new().into()));
        assert_eq!((output.as_str(), text.as_str()), ("", NO_OUTPUT));
    }
}
