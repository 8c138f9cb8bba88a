//! Carries out the calls about jobs: reads a job, types to it or ends it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::list::JobView;
use super::{JobAction, JobRequest, typed};
use crate::protocol::{Asker, PlannedCommand, Question};
use crate::text::one_line;
use crate::tool::audit_lines::CallOutcome;
use crate::tool::call::{
    Approved, AskedQuestion, CANCELLED, CallResult, JudgedCall, PlannedCall, Resolution,
    RunningCall,
};
use crate::tool::context::{CallContext, Halt};
use crate::tool::event::ShownCall;
use crate::tool::permissions::{Allowance, TurnMemory};
use crate::workspace::confinement::READ_ONLY;
use co_exec::NewOutput;
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Decision, ShownPart};
use co_policy::{ApprovalQuestion, Grant, Verdict};

/// The time that a call waits for output after a job started or got input.
const FIRST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// The output of a job that printed nothing since the last reading.
const NOTHING_NEW: &str = "(nothing new)\n";

/// A call about a job.
pub(super) struct JobCall {
    request: JobRequest,
    /// The text for a running job. Other calls need no verdict.
    input: Option<JobInput>,
}

/// Text for a running job, with its verdict.
struct JobInput {
    job: JobView,
    text: String,
    /// Nothing more will be written.
    close: bool,
    judged: JudgedCall,
}

/// Options for a report about a job.
#[derive(Default)]
pub(in crate::tool) struct JobReport {
    /// The text above the output.
    pub lead: String,
    /// The line to read from; none for the line after the last one that was read.
    pub since: Option<u64>,
    pub failed: bool,
}

impl JobCall {
    pub(super) fn new(request: JobRequest) -> Self {
        Self {
            request,
            input: None,
        }
    }
}

#[async_trait]
impl PlannedCall for JobCall {
    fn shown(&self) -> ShownCall {
        self.request.shown()
    }

    async fn judge(&mut self, context: &CallContext, memory: &TurnMemory) -> Result<(), String> {
        self.input = None;
        let JobAction::Write { text, close } = &self.request.action else {
            return Ok(());
        };
        // A fault is reported when the call runs: the job may exist by then.
        if let Ok(Ok(job)) = context.find_job(self.request.job).await
            && job.outcome().is_none()
        {
            let (text, close) = (text.clone(), *close);
            let allowed = memory.permissions.jobs.contains(&job.number);
            self.input = Some(JobInput {
                judged: judge_typed(context, &job, &text, close, allowed).await?,
                job,
                text,
                close,
            });
        }
        Ok(())
    }

    fn resolve(&self, context: &CallContext, memory: &TurnMemory) -> Resolution {
        let Some(JobInput { job, judged, .. }) = &self.input else {
            return Resolution::Free;
        };
        let number = job.number;
        match &judged.verdict {
            Verdict::Allow(Grant::Rule { .. }) if memory.permissions.jobs.contains(&number) => {
                let rule = format!("job_write {number}");
                Resolution::Run(Decision::Rule { rule })
            }
            verdict => Resolution::of(verdict, None, context, memory),
        }
    }

    fn judged(&self) -> Option<&JudgedCall> {
        self.input.as_ref().map(|input| &input.judged)
    }

    fn question(
        &self,
        context: &CallContext,
        _memory: &TurnMemory,
        asking: &ApprovalQuestion,
    ) -> Option<AskedQuestion> {
        let JobInput { job, judged, .. } = self.input.as_ref()?;
        let into = format!("it is typed into job {}: {}", job.number, job.short);
        let more = asking.reasons.iter().map(|reason| reason.text.clone());
        let question = Question {
            asker: Asker::Chat(context.chat),
            command: judged.command.clone(),
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
        Some(AskedQuestion {
            question,
            computed_at: None,
            always: vec![Allowance::Job(job.number)],
        })
    }

    fn changes_as(&self) -> Option<String> {
        Some(self.request.line())
    }

    async fn start(
        self: Box<Self>,
        context: Arc<CallContext>,
        approved: Approved,
    ) -> Result<RunningCall, Halt> {
        Ok(Box::pin(async move {
            context.host.runs(self.request.line()).await?;
            match self.input {
                Some(input) => input.put(&context, &approved).await,
                None => use_job(&context, self.request).await,
            }
        }))
    }
}

/// Reads or ends a job, or reports that the model cannot type to it.
async fn use_job(context: &CallContext, request: JobRequest) -> Result<CallResult, Halt> {
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
            let outcome = job.outcome();
            let status = job.status(outcome.as_deref());
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
    /// Types to the job.
    async fn put(self, context: &CallContext, approved: &Approved) -> Result<CallResult, Halt> {
        let Self {
            job,
            text,
            close,
            judged,
        } = self;
        let not_typed =
            |why: &dyn std::fmt::Display| CallResult::not_run(format!("Nothing was typed: {why}."));
        approved.record(context).await?;
        let planned = PlannedCommand {
            chat: context.chat,
            command: text.clone(),
            cwd: job.cwd.display().to_string(),
            unasked: false,
            job: Some(job.number),
        };
        // Hooks are not asked about the end of the input.
        if !text.is_empty()
            && let Some(why) = context.plugin_refusal(planned).await
        {
            return Ok(not_typed(&why));
        }
        if context.cancel.is_cancelled() {
            return Ok(CallResult::answer(CANCELLED));
        }
        let (id, decision) = (&approved.id, &approved.decision());
        let level = job.conditions.level;
        let decided = (decision, level);
        context.audit_decision(id, &judged, decided).await;
        let written = job.write(&text, close);
        let came_to = match &written {
            Ok(()) => format!("typed into job {}", job.number),
            Err(why) => format!("not typed: {why}"),
        };
        context.audit(id, &judged, decision, CallOutcome::Typed(&came_to, level));
        approved.show(context).await?;
        if let Err(why) = written {
            return Ok(not_typed(&why));
        }
        watch(context, &job, FIRST_OUTPUT_TIMEOUT).await;
        JobReport::default().tell(context, &job).await
    }
}

/// Waits for output of a job, or for the end of the turn.
async fn watch(context: &CallContext, job: &JobView, most: Duration) {
    context.unless_cancelled(job.settled(most)).await.ok();
}

impl JobReport {
    /// Waits for the first output of a job, and returns it as the result of the call that started the job.
    pub(in crate::tool) async fn first(
        self,
        context: &CallContext,
        job: &JobView,
    ) -> Result<CallResult, Halt> {
        watch(context, job, FIRST_OUTPUT_TIMEOUT).await;
        let failed = job.outcome().is_some_and(|outcome| !outcome.told_ok());
        Self { failed, ..self }.tell(context, job).await
    }

    /// Shows the new output of a job, and returns it with the state of the job.
    async fn tell(self, context: &CallContext, job: &JobView) -> Result<CallResult, Halt> {
        // Take the outcome first: then the output is complete if the job has ended.
        let outcome = job.outcome();
        let NewOutput { text, mut notes } = job.read(self.since).await.unwrap_or_default();
        let redacted = context.redact_for_model(&text, Instant::now()).await;
        let RedactedText { text: new, hidden } = redacted.unwrap_or_else(|withheld| {
            notes.push(withheld);
            RedactedText::default()
        });
        let mut text = match new.is_empty() && notes.is_empty() {
            true => NOTHING_NEW.to_owned(),
            false => new.clone(),
        };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.extend(notes.iter().map(|note| format!("[{note}]\n")));
        let status = job.status(outcome.as_deref());
        let spill = outcome.as_ref().and_then(|outcome| outcome.spill.clone());
        let from = self.lead.len();
        let stands = status.lines().next().unwrap_or_default();
        let stands = stands.trim_start_matches('[').trim_end_matches(']');
        let shown = ShownPart {
            output: [from, from + new.len()],
            status: stands.to_owned(),
            notice: (!notes.is_empty()).then(|| notes.join("; ")),
            ..ShownPart::default()
        };
        let text = format!("{}{text}{status}", self.lead);
        let result = CallResult {
            ok: !self.failed,
            spill,
            shown,
            output: (!new.is_empty()).then_some(new),
            ..RedactedText { text, hidden }.into()
        };
        Ok(match outcome {
            Some(_) => with_end(result, job),
            None => result,
        })
    }
}

/// Returns a result that tells the model of a job's end.
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
    close: bool,
    allowed: bool,
) -> Result<JudgedCall, String> {
    let judge = Arc::clone(&context.judge);
    let (typed_text, before, cwd) = (text.to_owned(), job.line(), job.cwd.clone());
    let verdict =
        tokio::task::spawn_blocking(move || judge.judge_input(&typed_text, &before, &cwd, allowed));
    let verdict = context.unless_cancelled(verdict).await;
    let verdict = verdict
        .map_err(|_| CANCELLED)?
        .map_err(|error| format!("The text could not be judged ({error}), so it was not typed."))?;
    Ok(JudgedCall::plain(typed(text, close), verdict))
}

/// Returns the confinement of a job in a word.
fn confinement_of(job: &JobView) -> &'static str {
    match job.conditions.confined {
        true => READ_ONLY,
        false => job.conditions.approved_confinement,
    }
}
