//! The calls of a turn about jobs: it starts them, reads them, types to them and ends them. The chat owns the jobs, in
//! `chat/jobs.rs`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::super::jobs::{JobRequest, JobView, StartedJob};
use super::super::retell;
use super::Turn;
use super::audit_records::CallOutcome;
use super::call::{AllowedCommand, CANCELLED, JobInput, JudgedCall, ParsedCall};
use super::event::{Halt, TurnEvent};
use super::question::Resolution;
use super::run::{CallResult, not_started};
use crate::audit::Record;
use crate::protocol::{Asker, ChatState, PlannedCommand, Question};
use crate::text::{one_line, short};
use crate::tool::event::CallEvent;
use crate::tool::jobs::{self as tools, typed};
use crate::workspace::confinement::READ_ONLY;
use co_exec::secrets::redact::RedactedText;
use co_exec::{CommandSpec, NewOutput};
use co_llm::transcript::{Call, Decision, Item, ShownPart};
use co_policy::{Grant, Verdict};

/// The time that a call waits for output after a job started or got input.
const FIRST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// The output of a job that printed nothing since the last reading.
const NOTHING_NEW: &str = "(nothing new)\n";

impl Turn {
    /// Sends a request about jobs to the chat and returns the reply.
    pub(super) async fn jobs<T>(
        &self,
        act: impl FnOnce(oneshot::Sender<T>) -> JobRequest,
    ) -> Result<T, Halt> {
        let (reply, answer) = oneshot::channel();
        self.send(TurnEvent::Job(act(reply))).await?;
        answer.await.map_err(|_| Halt::Cancelled)
    }

    /// Records a job's start, then starts it and gives it to the chat.
    pub(super) async fn start_job(
        &mut self,
        allowed: &AllowedCommand,
        spec: CommandSpec,
        (number, record): (u64, Record),
    ) -> Result<Result<JobView, String>, Halt> {
        let command = allowed.request.text();
        self.record(Item::JobStarted {
            job: number,
            call: allowed.call.id.clone(),
            command: co_policy::printable(&short(&command)),
        })
        .await?;
        let started = match self.cancel.is_cancelled() {
            true => Err(CANCELLED.to_owned()),
            false => {
                let started = self
                    .services
                    .executor
                    .start_on(spec, allowed.request.streams());
                started.await.map_err(|error| not_started(&error))
            }
        };
        let job = match started {
            Ok(job) => job,
            Err(why) => {
                self.record(Item::JobEnded {
                    job: number,
                    text: format!(
                        "job {number} was not started: {}",
                        why.lines().next().unwrap_or_default()
                    ),
                    told: true,
                })
                .await?;
                return Ok(Err(why));
            }
        };
        let started_job = StartedJob {
            checkpoint: self.job_checkpoint(number, allowed).await,
            number,
            command: co_policy::printable(&command),
            cwd: allowed.context.cwd.clone(),
            conditions: self.conditions(allowed),
            record,
            job,
        };
        let job = self
            .jobs(|reply| JobRequest::Started(Box::new(started_job), reply))
            .await?;
        Ok(Ok(job))
    }

    /// Gives the model the first output of a job that has started.
    pub(super) async fn finish_job(
        &mut self,
        allowed: AllowedCommand,
        job: JobView,
    ) -> Result<(), Halt> {
        self.state(ChatState::Running, allowed.request.text())
            .await?;
        self.watch(&job, FIRST_OUTPUT_TIMEOUT).await;
        let mut lead = format!("[job {} was started]\n", job.number);
        if allowed.edited {
            let ran = allowed.request.text();
            lead = format!("The person changed the command; what was started is:\n{ran}\n\n{lead}");
        }
        let ok = job.outcome().is_none_or(|outcome| outcome.told_ok());
        self.tell(
            &allowed.call,
            &job,
            JobReport {
                lead,
                since: None,
                ok,
            },
        )
        .await
    }

    /// Reads or ends a job, or reports that the model cannot type to it.
    pub(super) async fn job(&mut self, call: Call, request: tools::JobRequest) -> Result<(), Halt> {
        let job = match self
            .jobs(|reply| JobRequest::Find(request.job, reply))
            .await?
        {
            Ok(job) => job,
            Err(why) => return self.not_run(&call, why).await,
        };
        self.state(ChatState::Running, request.line()).await?;
        match request.action {
            tools::JobAction::Output { since, wait } => {
                self.watch(&job, wait.min(self.services.config.max_timeout()))
                    .await;
                self.tell(
                    &call,
                    &job,
                    JobReport {
                        since,
                        ..JobReport::default()
                    },
                )
                .await
            }
            // The job has ended. If it ran, the call would be a `JobInput`.
            tools::JobAction::Write { .. } => {
                let outcome = job.outcome();
                let status = job.status(outcome.as_deref());
                self.not_run(&call, format!("Nothing was typed: {status}"))
                    .await?;
                self.end_told(&job).await
            }
            tools::JobAction::Cancel => {
                tokio::select! {
                    () = self.cancel.cancelled() => {}
                    () = job.end() => {}
                }
                self.tell(&call, &job, JobReport::default()).await
            }
        }
    }

    /// Waits for output of a job, or for the end of the turn.
    async fn watch(&self, job: &JobView, most: Duration) {
        tokio::select! {
            () = self.cancel.cancelled() => {}
            () = job.settled(most) => {}
        }
    }

    /// Gives the model the new output and the state of a job.
    async fn tell(&mut self, call: &Call, job: &JobView, told: JobReport) -> Result<(), Halt> {
        // Take the outcome first: then the output is complete if the job has ended.
        let outcome = job.outcome();
        let NewOutput { text, mut notes } = job.read(told.since).await.unwrap_or_default();
        let redacted = self.redact_for_model(&text).await;
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
        let from = told.lead.len();
        let stands = status.lines().next().unwrap_or_default();
        let stands = stands.trim_start_matches('[').trim_end_matches(']');
        let shown = ShownPart {
            output: [from, from + new.len()],
            status: stands.to_owned(),
            notice: (!notes.is_empty()).then(|| notes.join("; ")),
            ..ShownPart::default()
        };
        let ended = retell::ended(told.ok, hidden, spill.as_deref(), &shown);
        let text = format!("{}{text}{status}", told.lead);
        let result = CallResult {
            ok: told.ok,
            spill,
            shown,
            ..RedactedText { text, hidden }.into()
        };
        self.record_result(call, result).await?;
        if outcome.is_some() {
            self.end_told(job).await?;
        }
        if !new.is_empty() {
            let block = self.services.id();
            self.show(CallEvent::Output { block, text: new }).await?;
        }
        self.show(ended).await?;
        match self.cancel.is_cancelled() {
            true => Err(Halt::Cancelled),
            false => Ok(()),
        }
    }

    /// Tells the chat that the model has got the job's end.
    async fn end_told(&mut self, job: &JobView) -> Result<(), Halt> {
        if job.failed_confined() {
            self.permissions.learn(vec![job.command.clone()]);
        }
        self.send(TurnEvent::Job(JobRequest::EndTold(job.number)))
            .await
    }

    /// Judges a call about a job: text for a running job needs a verdict.
    pub(super) async fn review_job(
        &self,
        request: tools::JobRequest,
    ) -> Result<ParsedCall, String> {
        let tools::JobAction::Write { text, close } = &request.action else {
            return Ok(ParsedCall::Job(request));
        };
        let found = self
            .jobs(|reply| JobRequest::Find(request.job, reply))
            .await;
        let job = match found {
            Ok(Ok(job)) if job.outcome().is_none() => job,
            // Report the error at the call's turn: the job may exist by then.
            _ => return Ok(ParsedCall::Job(request)),
        };
        let judged = self.judge_typed(&job, text, *close).await?;
        Ok(ParsedCall::JobInput(JobInput {
            request,
            job,
            judged,
        }))
    }

    /// Types to a job, if the decision allows it.
    pub(super) async fn type_to(
        &mut self,
        call: Call,
        input: JobInput,
        decision: Decision,
    ) -> Result<(), Halt> {
        let JobInput {
            request,
            job,
            judged,
        } = input;
        let tools::JobAction::Write { text, close } = &request.action else {
            return Ok(());
        };
        self.state(ChatState::Running, request.line()).await?;
        if !decision.lets_run() {
            return self.refuse(&call, &judged, decision).await;
        }
        self.record(Item::Decision {
            call: call.id.clone(),
            decision: decision.clone(),
        })
        .await?;
        let planned = PlannedCommand {
            chat: self.chat,
            command: text.clone(),
            cwd: job.cwd.display().to_string(),
            unasked: false,
            job: Some(job.number),
        };
        // Hooks are not asked about the end of the input.
        if !text.is_empty()
            && let Some(why) = self.plugin_refusal(planned).await
        {
            return self
                .not_run(&call, format!("Nothing was typed: {why}."))
                .await;
        }
        if self.cancel.is_cancelled() {
            self.answer(&call, CANCELLED.to_owned()).await?;
            return Err(Halt::Cancelled);
        }
        let level = job.conditions.level;
        let decided = (&decision, level);
        self.audit_decision(&call, &judged, decided).await;
        let written = job.write(text, *close);
        let came_to = match &written {
            Ok(()) => format!("typed into job {}", job.number),
            Err(why) => format!("not typed: {why}"),
        };
        self.audit(
            &call,
            &judged,
            &decision,
            CallOutcome::Typed(&came_to, level),
        );
        self.show(CallEvent::Decision(decision.clone())).await?;
        if let Err(why) = written {
            return self
                .not_run(&call, format!("Nothing was typed: {why}."))
                .await;
        }
        self.watch(&job, FIRST_OUTPUT_TIMEOUT).await;
        self.tell(&call, &job, JobReport::default()).await
    }

    async fn judge_typed(
        &self,
        job: &JobView,
        text: &str,
        close: bool,
    ) -> Result<JudgedCall, String> {
        let judge = Arc::clone(&self.judge);
        let (typed_text, before, cwd) = (text.to_owned(), job.line(), job.cwd.clone());
        let allowed = self.permissions.jobs.contains(&job.number);
        let verdict = tokio::task::spawn_blocking(move || {
            judge.judge_input(&typed_text, &before, &cwd, allowed)
        });
        let verdict = tokio::select! {
            () = self.cancel.cancelled() => return Err(CANCELLED.to_owned()),
            verdict = verdict => verdict.map_err(|error| {
                format!("The text could not be judged ({error}), so it was not typed.")
            })?,
        };
        Ok(JudgedCall {
            command: typed(text, close),
            segments: Vec::new(),
            words: Vec::new(),
            computes: false,
            reach: None,
            verdict,
        })
    }

    /// Applies the permissions of the person to the verdict on a text.
    pub(super) fn resolve_typing(&self, input: &JobInput) -> Resolution {
        let number = input.job.number;
        match &input.judged.verdict {
            Verdict::Allow(Grant::Rule { .. }) if self.permissions.jobs.contains(&number) => {
                let rule = format!("job_write {number}");
                Resolution::Run(Decision::Rule { rule })
            }
            verdict => self.resolve_verdict(verdict, None),
        }
    }

    pub(super) fn input(
        &self,
        input: &JobInput,
        question: &co_policy::ApprovalQuestion,
    ) -> Question {
        let JobInput { job, judged, .. } = input;
        let into = format!("it is typed into job {}: {}", job.number, job.short);
        let more = question.reasons.iter().map(|reason| reason.text.clone());
        Question {
            asker: Asker::Chat(self.chat),
            command: judged.command.clone(),
            cwd: one_line(&job.cwd.display().to_string()),
            job: Some(job.number),
            confinement: confinement_of(job).to_owned(),
            reasons: std::iter::once(into)
                .chain(more)
                .map(|reason| one_line(&reason))
                .collect(),
            destructive: question.destructive,
            ..Question::default()
        }
    }
}

/// Options for a report about a job.
struct JobReport {
    lead: String,
    since: Option<u64>,
    ok: bool,
}

impl Default for JobReport {
    fn default() -> Self {
        Self {
            lead: String::new(),
            since: None,
            ok: true,
        }
    }
}

/// Returns the confinement of a job in a word.
fn confinement_of(job: &JobView) -> &'static str {
    match job.conditions.confined {
        true => READ_ONLY,
        false => job.conditions.approved_confinement,
    }
}
