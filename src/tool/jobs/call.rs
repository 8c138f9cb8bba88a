//! Carries out the calls about jobs: reads a job, types to it or ends it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::{JobAction, JobRequest, typed};
use crate::network::HostReport;
use crate::protocol::{Asker, PlannedCommand, Question};
use crate::tool::call::{
    AskedQuestion, AuditedText, CANCELLED, CallAction, CallEffect, CallKind, CallResult,
    DecidedCall, JudgedCall, NotRun, PlannedCall, ReadyCall, Resolution, RunningCall,
};
use crate::tool::context::{CallContext, CallHalt};
use crate::tool::event::ShownCall;
use crate::tool::job_list::JobView;
use crate::tool::permissions::{Allowance, TurnMemory};
use co_exec::NewOutput;
use co_exec::READ_ONLY;
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Decision, ShownPart};
use co_policy::{ApprovalQuestion, Grant, Verdict};
use co_text::one_line;

/// The longest time that a call waits for output after a job has started or got input.
const FIRST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// The text in place of the output if a job has printed nothing since the last read.
const NOTHING_NEW: &str = "(nothing new)\n";

/// A text for the input of a running job.
struct JobInput {
    request: JobRequest,
    job: JobView,
    text: String,
    /// True if nothing more will be written to the input.
    close: bool,
}

/// The options of a report about a job.
#[derive(Default)]
pub(in crate::tool) struct JobReport {
    /// The text that precedes the output.
    pub lead: String,
    /// The number of the first line to read; none for the line after the last one that was read.
    pub since: Option<u64>,
    pub failed: bool,
}

#[async_trait]
impl PlannedCall for JobRequest {
    fn shown(&self) -> ShownCall {
        let job = self.job;
        let (words, typed) = match &self.action {
            JobAction::Output { .. } => (format!("read the output of job {job}"), None),
            JobAction::Write { text, close } => {
                (format!("type to job {job}"), Some(typed(text, *close)))
            }
            JobAction::Cancel => (format!("stop job {job}"), None),
        };
        ShownCall::Job { words, typed }
    }

    async fn judge(
        &self,
        context: &CallContext,
        memory: &TurnMemory,
    ) -> Result<JudgedCall, String> {
        let JobAction::Write { text, close } = &self.action else {
            return Ok(JudgedCall {
                kind: match self.action {
                    JobAction::Output { .. } => CallKind::Watches,
                    JobAction::Write { .. } | JobAction::Cancel => CallKind::Acts,
                },
                ..JudgedCall::free(self.clone())
            });
        };
        let job = match context.find_job(self.job).await {
            Ok(Ok(job)) if job.end_of().is_none() => job,
            // The fault is reported when the call runs: the job may exist by then.
            _ => return Ok(JudgedCall::free(self.clone())),
        };
        let number = job.number;
        let allowed = memory.permissions.jobs.contains(&number);
        let verdict = judge_typed(context, &job, text, allowed).await?;
        let command = typed(text, *close);
        let resolution = match &verdict {
            Verdict::Allow(Grant::Rule { .. }) if allowed => {
                let rule = format!("job_write {number}");
                Resolution::Run(Decision::Rule { rule })
            }
            verdict => Resolution::of(verdict, None, (context, memory), |asking| {
                question(context, &job, command.clone(), asking)
            }),
        };
        Ok(JudgedCall {
            resolution,
            audited: Some(AuditedText::plain(command, &verdict)),
            kind: CallKind::Acts,
            action: Box::new(JobInput {
                request: self.clone(),
                job,
                text: text.clone(),
                close: *close,
            }),
        })
    }
}

/// Returns the question about a text that the model wants to send to a job.
fn question(
    context: &CallContext,
    job: &JobView,
    command: String,
    asking: &ApprovalQuestion,
) -> AskedQuestion {
    let into = format!("it is typed into job {}: {}", job.number, job.short);
    let more = asking.reasons.iter().map(|reason| reason.text.clone());
    let question = Question {
        asker: Asker::Chat(context.chat),
        command,
        cwd: one_line(&job.cwd.display().to_string()),
        job: Some(job.number),
        confinement: confinement_of(job).to_owned(),
        reasons: std::iter::once(into)
            .chain(more)
            .map(|reason| one_line(&reason))
            .collect(),
        destructive: asking.destructive,
        ..Question::default()
    };
    AskedQuestion {
        question,
        prefix: asking.prefix.clone(),
        server: None,
        computed_at: None,
        always: vec![Allowance::Job(job.number)],
    }
}

#[async_trait]
impl CallAction for JobRequest {
    fn changes_as(&self) -> Option<String> {
        Some(self.line())
    }

    async fn prepare(
        self: Box<Self>,
        context: &Arc<CallContext>,
        _decided: &DecidedCall,
    ) -> Result<ReadyCall, NotRun> {
        let context = Arc::clone(context);
        Ok(ReadyCall::new(None, Some(self.line()), async move {
            use_job(&context, *self).await
        }))
    }
}

#[async_trait]
impl CallAction for JobInput {
    fn changes_as(&self) -> Option<String> {
        Some(self.request.line())
    }

    async fn prepare(
        self: Box<Self>,
        context: &Arc<CallContext>,
        _decided: &DecidedCall,
    ) -> Result<ReadyCall, NotRun> {
        let (level, context) = (self.job.conditions.level, Arc::clone(context));
        Ok(ReadyCall {
            level: Some(level),
            runs: Some(self.request.line()),
            start: Box::pin(async move {
                // Hooks are not asked about the end of the input.
                if !self.text.is_empty()
                    && let Some(why) = context.plugin_refusal(self.for_hooks(&context)).await
                {
                    return Err(NotRun::Because(not_typed(why)));
                }
                let rest: RunningCall = Box::pin(async move { self.put(&context, level).await });
                Ok(rest)
            }),
        })
    }
}

/// Reads a job, or ends it. If the model wants to type to a job that takes no input, reports the reason.
async fn use_job(context: &CallContext, request: JobRequest) -> Result<CallResult, CallHalt> {
    let job = match context.find_job(request.job).await? {
        Ok(job) => job,
        Err(why) => return Ok(CallResult::not_run(why)),
    };
    match request.action {
        JobAction::Output { since, wait } => {
            let most = wait.min(context.services.config.max_timeout());
            watch(context, &job, most).await;
            let report = JobReport {
                since,
                ..JobReport::default()
            };
            report.tell(context, &job).await
        }
        // The job has ended. If it ran, there would be an input.
        JobAction::Write { .. } => {
            let status = job.status(job.end_of().as_deref());
            let result = CallResult::not_run(format!("Nothing was typed: {status}"));
            Ok(with_end(result, &job))
        }
        JobAction::Cancel => {
            // A cancelled turn does not wait for the end.
            context.unless_cancelled(job.end()).await.ok();
            JobReport::default().tell(context, &job).await
        }
    }
}

impl JobInput {
    /// Returns the text in the form in which the hooks of plugins get it.
    fn for_hooks(&self, context: &CallContext) -> PlannedCommand {
        PlannedCommand {
            chat: context.chat,
            command: self.text.clone(),
            cwd: self.job.cwd.display().to_string(),
            unasked: false,
            job: Some(self.job.number),
        }
    }

    /// Sends the text to the job's input.
    async fn put(
        self: Box<Self>,
        context: &CallContext,
        level: &'static str,
    ) -> Result<CallResult, CallHalt> {
        let job = &self.job;
        let (result, words) = match job.write(&self.text, self.close) {
            Ok(()) => {
                watch(context, job, FIRST_OUTPUT_TIMEOUT).await;
                let result = JobReport::default().tell(context, job).await?;
                (result, format!("typed into job {}", job.number))
            }
            Err(why) => (
                CallResult::not_run(not_typed(why)),
                format!("not typed: {why}"),
            ),
        };
        let effect = CallEffect {
            level,
            words,
            hosts: HostReport::default(),
            spill: None,
        };
        Ok(CallResult {
            effect: Some(effect),
            ..result
        })
    }
}

fn not_typed(why: impl std::fmt::Display) -> String {
    format!("Nothing was typed: {why}.")
}

/// Waits for new output of a job, but no longer than `most`, or until the turn is cancelled.
async fn watch(context: &CallContext, job: &JobView, most: Duration) {
    context.unless_cancelled(job.settled(most)).await.ok();
}

impl JobReport {
    /// Waits for the first output of a job, and returns it as the result of the call that started the job.
    pub(in crate::tool) async fn first(
        self,
        context: &CallContext,
        job: &JobView,
    ) -> Result<CallResult, CallHalt> {
        watch(context, job, FIRST_OUTPUT_TIMEOUT).await;
        let failed = job.end_of().is_some_and(|end| !end.outcome.told_ok());
        Self { failed, ..self }.tell(context, job).await
    }

    /// Shows the new output of a job. Returns the output with the state of the job.
    async fn tell(self, context: &CallContext, job: &JobView) -> Result<CallResult, CallHalt> {
        // Take the end first: then the output is complete if the job has ended.
        let end = job.end_of();
        let NewOutput { text, mut notes } = job.read(self.since).await.unwrap_or_default();
        let redacted = context.redact_for_model(&text, Instant::now()).await;
        let RedactedText { text: new, hidden } = redacted.unwrap_or_else(|withheld| {
            notes.push(withheld);
            RedactedText::default()
        });
        let printed = new.len();
        let mut text = match printed == 0 && notes.is_empty() {
            true => NOTHING_NEW.to_owned(),
            false => new,
        };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.extend(notes.iter().map(|note| format!("[{note}]\n")));
        let status = job.status(end.as_deref());
        let spill = end.as_ref().and_then(|end| end.outcome.spill.clone());
        let from = self.lead.len();
        let stands = status.lines().next().unwrap_or_default();
        let stands = stands.trim_start_matches('[').trim_end_matches(']');
        let shown = ShownPart {
            output: [from, from + printed],
            status: stands.to_owned(),
            notice: (!notes.is_empty()).then(|| notes.join("; ")),
            ..ShownPart::default()
        };
        let text = format!("{}{text}{status}", self.lead);
        let result = CallResult {
            ok: !self.failed,
            spill,
            shown,
            ..RedactedText { text, hidden }.into()
        };
        Ok(match end {
            Some(_) => with_end(result, job),
            None => result,
        })
    }
}

/// Returns a result that also tells the model of a job's end.
fn with_end(result: CallResult, job: &JobView) -> CallResult {
    CallResult {
        ended_job: Some(job.number),
        failed_confined: job.failed_confined().then(|| job.command.clone()),
        ..result
    }
}

async fn judge_typed(
    context: &CallContext,
    job: &JobView,
    text: &str,
    allowed: bool,
) -> Result<Verdict, String> {
    let judge = Arc::clone(&context.judge);
    let (typed_text, before, cwd) = (text.to_owned(), job.line(), job.cwd.clone());
    let verdict =
        tokio::task::spawn_blocking(move || judge.judge_input(&typed_text, &before, &cwd, allowed));
    let verdict = context.unless_cancelled(verdict).await;
    verdict
        .map_err(|_| CANCELLED)?
        .map_err(|error| format!("The text could not be judged ({error}), so it was not typed."))
}

/// Returns the name of a job's confinement.
fn confinement_of(job: &JobView) -> &'static str {
    match job.conditions.confined {
        true => READ_ONLY,
        false => job.conditions.approved_confinement,
    }
}
