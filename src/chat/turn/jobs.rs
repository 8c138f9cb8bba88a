//! Jobs: commands that go on beside the conversation. A turn starts them, reads them, types to them and ends them; they
//! are the session's.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::super::jobs::{Act, Begun, Seen};
use super::super::render::{self, one_line};
use super::audit_records::{CameTo, READ_ONLY};
use super::calls::{CANCELLED, Judged, ParsedCall};
use super::question::Resolution;
use super::run::{Cleared, not_started};
use super::{Event, Halt, Turn};
use crate::audit::Record;
use crate::protocol::{Ask, State};
use crate::tool::jobs::{self as tools, JobRequest, typed};
use co_exec::Spec;
use co_llm::transcript::{Call, Decision, Item};
use co_policy::{Grant, Verdict};

/// How long what a job prints at once is waited for: after its start, after something was typed.
const MOMENT: Duration = Duration::from_secs(1);

/// Said to the model where a job printed nothing since it looked.
const NOTHING_NEW: &str = "(nothing new)\n";

/// Text for a job that runs, judged.
pub(super) struct Typing {
    pub request: JobRequest,
    pub seen: Seen,
    pub judged: Judged,
}

impl Turn {
    /// Asks the session something about its jobs.
    pub(super) async fn jobs<T>(
        &self,
        act: impl FnOnce(oneshot::Sender<T>) -> Act,
    ) -> Result<T, Halt> {
        let (reply, answer) = oneshot::channel();
        self.send(Event::Job(act(reply))).await?;
        answer.await.map_err(|_| Halt::Cancelled)
    }

    /// Puts a job's start on disk, then starts it and gives it to the session.
    pub(super) async fn start_job(
        &mut self,
        cleared: &Cleared,
        spec: Spec,
        (number, record): (u64, Record),
    ) -> Result<Result<Seen, String>, Halt> {
        let command = cleared.request.text();
        self.record(Item::JobStarted {
            job: number,
            call: cleared.call.id.clone(),
            command: co_policy::printable(&render::short(&command)),
        })
        .await?;
        let started = match self.cancel.is_cancelled() {
            true => Err(CANCELLED.to_owned()),
            false => {
                let started = self
                    .services
                    .executor
                    .start_on(spec, cleared.request.streams());
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
        let begun = Begun {
            number,
            command: co_policy::printable(&command),
            cwd: cleared.run.cwd.clone(),
            conditions: self.conditions(cleared),
            record,
            job,
        };
        let seen = self
            .jobs(|reply| Act::Began(Box::new(begun), reply))
            .await?;
        Ok(Ok(seen))
    }

    /// Tells what a job that was started printed in its first moment.
    pub(super) async fn finish_job(&mut self, cleared: Cleared, seen: Seen) -> Result<(), Halt> {
        self.state(State::Running, cleared.request.text()).await?;
        self.watch(&seen, MOMENT).await;
        let mut lead = format!("[job {} was started]\n", seen.number);
        if cleared.edited {
            let ran = cleared.request.text();
            lead = format!("The person changed the command; what was started is:\n{ran}\n\n{lead}");
        }
        let ok = seen.outcome().is_none_or(|outcome| outcome.ok());
        self.tell(
            &cleared.call,
            &seen,
            Told {
                lead,
                since: None,
                ok,
            },
        )
        .await
    }

    /// Does what the model wants with one of its jobs.
    pub(super) async fn job(&mut self, call: Call, request: JobRequest) -> Result<(), Halt> {
        let seen = match self.jobs(|reply| Act::Find(request.job, reply)).await? {
            Ok(seen) => seen,
            Err(why) => return self.not_run(&call, why).await,
        };
        self.state(State::Running, request.line()).await?;
        match request.action {
            tools::JobAction::Output { since, wait } => {
                self.watch(&seen, wait.min(self.services.config.max_timeout()))
                    .await;
                self.tell(
                    &call,
                    &seen,
                    Told {
                        since,
                        ..Told::default()
                    },
                )
                .await
            }
            // The job ended; running jobs get a verdict.
            tools::JobAction::Write { .. } => {
                let outcome = seen.outcome();
                let status = seen.status(outcome.as_deref());
                self.not_run(&call, format!("Nothing was typed: {status}"))
                    .await?;
                self.heard(&seen).await
            }
            tools::JobAction::Cancel => {
                tokio::select! {
                    () = self.cancel.cancelled() => {}
                    () = seen.end() => {}
                }
                self.tell(&call, &seen, Told::default()).await
            }
        }
    }

    /// Waits for news of a job, as long as the turn goes on.
    async fn watch(&self, seen: &Seen, most: Duration) {
        tokio::select! {
            () = self.cancel.cancelled() => {}
            () = seen.settled(most) => {}
        }
    }

    /// Gives the model what is new of a job, and where it stands.
    async fn tell(&mut self, call: &Call, seen: &Seen, told: Told) -> Result<(), Halt> {
        // Before it is read: all that was printed until its end is read then.
        let outcome = seen.outcome();
        let new = match seen.read(told.since) {
            Some(new) => Some(self.redact_for_model(&new).await),
            None => None,
        };
        let mut text = new.clone().unwrap_or_else(|| NOTHING_NEW.to_owned());
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let status = seen.status(outcome.as_deref());
        let spill = outcome.as_ref().and_then(|outcome| outcome.spill.clone());
        let text = format!("{}{text}{status}", told.lead);
        self.conclude(call, text, told.ok, spill).await?;
        if outcome.is_some() {
            self.heard(seen).await?;
        }
        if let Some(new) = new {
            self.send(Event::Output(new)).await?;
        }
        let stands = status.lines().next().unwrap_or_default();
        let stands = stands.trim_start_matches('[').trim_end_matches(']');
        self.show(&format!("*{stands}*")).await?;
        match self.cancel.is_cancelled() {
            true => Err(Halt::Cancelled),
            false => Ok(()),
        }
    }

    /// Lets the session know that the model was told how the job ended.
    async fn heard(&mut self, seen: &Seen) -> Result<(), Halt> {
        if seen.failed_confined() {
            self.standing.learn(vec![seen.command.clone()]);
        }
        self.send(Event::Job(Act::Heard(seen.number))).await
    }

    /// Reads a call about a job. Text for a job that runs is judged.
    pub(super) async fn review_job(&self, request: JobRequest) -> Result<ParsedCall, String> {
        let tools::JobAction::Write { text, close } = &request.action else {
            return Ok(ParsedCall::Job(request));
        };
        let found = self.jobs(|reply| Act::Find(request.job, reply)).await;
        let seen = match found {
            Ok(Ok(seen)) if seen.outcome().is_none() => seen,
            // Report the error at the call's turn: the job may exist by then.
            _ => return Ok(ParsedCall::Job(request)),
        };
        let judged = self.judge_typed(&seen, text, *close).await?;
        Ok(ParsedCall::Typing(Typing {
            request,
            seen,
            judged,
        }))
    }

    /// Types to a job, if the decision lets it.
    pub(super) async fn type_to(
        &mut self,
        call: Call,
        typing: Typing,
        decision: Decision,
    ) -> Result<(), Halt> {
        let Typing {
            request,
            seen,
            judged,
        } = typing;
        let tools::JobAction::Write { text, close } = &request.action else {
            return Ok(());
        };
        self.state(State::Running, request.line()).await?;
        if !decision.lets_run() {
            return self.refuse(&call, &judged, decision).await;
        }
        self.record(Item::Decision {
            call: call.id.clone(),
            decision: decision.clone(),
        })
        .await?;
        if self.cancel.is_cancelled() {
            self.answer(&call, CANCELLED.to_owned()).await?;
            return Err(Halt::Cancelled);
        }
        let level = self.level_of(&seen);
        let decided = (&decision, level);
        self.audit_decision(&call, &judged, decided).await;
        let written = seen.write(text, *close);
        let came_to = match &written {
            Ok(()) => format!("typed into job {}", seen.number),
            Err(why) => format!("not typed: {why}"),
        };
        self.audit(&call, &judged, &decision, CameTo::Typed(&came_to, level));
        self.show(&render::decision(&decision)).await?;
        if let Err(why) = written {
            return self
                .not_run(&call, format!("Nothing was typed: {why}."))
                .await;
        }
        self.watch(&seen, MOMENT).await;
        self.tell(&call, &seen, Told::default()).await
    }

    async fn judge_typed(&self, seen: &Seen, text: &str, close: bool) -> Result<Judged, String> {
        let judge = Arc::clone(&self.judge);
        let (typed_text, before, cwd) = (text.to_owned(), seen.line(), seen.cwd.clone());
        let allowed = self.standing.jobs.contains(&seen.number);
        let verdict = tokio::task::spawn_blocking(move || {
            judge.judge_input(&typed_text, &before, &cwd, allowed)
        });
        let verdict = tokio::select! {
            () = self.cancel.cancelled() => return Err(CANCELLED.to_owned()),
            verdict = verdict => verdict.map_err(|error| {
                format!("The text could not be judged ({error}), so it was not typed.")
            })?,
        };
        Ok(Judged {
            command: typed(text, close),
            segments: Vec::new(),
            words: Vec::new(),
            verdict,
        })
    }

    /// Weighs the verdict on a text against what the person has said.
    pub(super) fn resolve_typing(&self, typing: &Typing) -> Resolution {
        let number = typing.seen.number;
        let question = match &typing.judged.verdict {
            Verdict::Deny { why, .. } => {
                return Resolution::Refuse(Decision::Forbidden { why: why.clone() });
            }
            Verdict::Allow(Grant::Rule { .. }) if self.standing.jobs.contains(&number) => {
                let rule = format!("job_write {number}");
                return Resolution::Run(Decision::Rule { rule });
            }
            Verdict::Allow(Grant::Rule { rule }) => {
                return Resolution::Run(Decision::Rule { rule: rule.clone() });
            }
            Verdict::Allow(Grant::Proof(_) | Grant::InProcess) => {
                co_policy::ApprovalQuestion::because("nothing else allows it")
            }
            Verdict::Ask(question) => question.clone(),
        };
        match self.confirms(&question) {
            true => Resolution::Run(Decision::AutoConfirm),
            false => Resolution::Ask(question),
        }
    }

    /// What holds the job, in a word.
    fn level_of(&self, seen: &Seen) -> &'static str {
        match seen.conditions.confined {
            true => READ_ONLY,
            false => seen.conditions.backend,
        }
    }

    pub(super) fn typing(&self, typing: &Typing, question: &co_policy::ApprovalQuestion) -> Ask {
        let Typing { seen, judged, .. } = typing;
        let into = format!("it is typed into job {}: {}", seen.number, seen.short);
        let more = question.reasons.iter().map(|reason| reason.text.clone());
        Ask {
            id: 0,
            session: self.session,
            command: judged.command.clone(),
            cwd: one_line(&seen.cwd.display().to_string()),
            timeout: None,
            terminal: false,
            background: false,
            job: Some(seen.number),
            backend: self.level_of(seen).to_owned(),
            reasons: std::iter::once(into)
                .chain(more)
                .map(|reason| one_line(&reason))
                .collect(),
            span: None,
            destructive: question.destructive,
            prefix: None,
        }
    }
}

/// What the model is told of a job, beside what is new and where it stands.
struct Told {
    lead: String,
    since: Option<u64>,
    ok: bool,
}

impl Default for Told {
    fn default() -> Self {
        Self {
            lead: String::new(),
            since: None,
            ok: true,
        }
    }
}
