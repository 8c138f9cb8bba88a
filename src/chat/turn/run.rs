//! Runs an allowed command: records the decision, starts it, shows its output and gives the model the outcome.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::super::advice::{Conditions, NOT_EXECUTED};
use super::super::jobs::{JobRequest, JobView};
use super::super::{readiness, retell};
use super::Turn;
use super::audit_records::CallOutcome;
use super::call::{AllowedCommand, CANCELLED, JudgedCall};
use super::event::Halt;
use super::loop_limits::Repetition;
use crate::error;
use crate::protocol::{ChatState, PlannedCommand};
use crate::services::withheld;
use crate::tool::event::CallEvent;
use crate::workspace::confinement::{self, level};
use co_exec::secrets::redact::RedactedText;
use co_exec::{Confinement, RunningCommand, ShownSecrets};
use co_llm::transcript::{Call, Decision, Item, Outcome, ShownPart};

/// The output of a command that printed nothing and succeeded.
const NO_OUTPUT: &str = "(no output)";

/// The longest time that a cancelled turn waits for redacted output.
const REDACTION_TIMEOUT: Duration = Duration::from_secs(1);

/// The result of a call.
#[derive(Default)]
pub(super) struct CallResult {
    /// The text for the model.
    pub(super) told: RedactedText,
    pub(super) ok: bool,
    pub(super) spill: Option<PathBuf>,
    pub(super) shown: ShownPart,
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
}

/// A command that has started.
pub(super) enum StartedCommand {
    Foreground(RunningCommand),
    /// A job of the chat.
    Background(Box<JobView>),
}

impl Turn {
    /// Returns the reason why a plugin refuses a command. Returns none if the turn is cancelled meanwhile.
    pub(super) async fn plugin_refusal(&self, command: PlannedCommand) -> Option<String> {
        let refusal = tokio::select! {
            refusal = self.services.buffers.refusal(command) => refusal,
            () = self.cancel.cancelled() => None,
        };
        refusal.map(|why| format!("a plugin refuses it: {why}"))
    }

    /// Records the decision, then starts the command.
    pub(super) async fn start(
        &mut self,
        allowed: &AllowedCommand,
    ) -> Result<Result<StartedCommand, String>, Halt> {
        let item = Item::Decision {
            call: allowed.call.id.clone(),
            decision: allowed.decision.clone(),
        };
        self.record(item).await?;
        if let Some(why) = self.plugin_refusal(planned(self.chat, allowed)).await {
            return Ok(Err(why));
        }
        self.load_secret_values().await;
        // The person may have cancelled meanwhile.
        if self.cancel.is_cancelled() {
            self.answer(&allowed.call, CANCELLED.to_owned()).await?;
            return Err(Halt::Cancelled);
        }
        let number = match allowed.request.mode.background {
            false => None,
            true => match self.jobs(JobRequest::NewNumber).await? {
                Ok(number) => Some(number),
                Err(why) => return Ok(Err(why)),
            },
        };
        let spec = allowed
            .request
            .spec(allowed.context.clone(), self.ceiling(allowed));
        let level = level(&allowed.context.confinement);
        let decided = (&allowed.decision, level);
        let record = self
            .audit_decision(&allowed.call, &allowed.judged, decided)
            .await;
        if let Some(number) = number {
            let job = self.start_job(allowed, spec, (number, record)).await?;
            return Ok(job.map(Box::new).map(StartedCommand::Background));
        }
        let running = self
            .services
            .executor
            .start_on(spec, allowed.request.streams());
        let running = tokio::select! {
            running = running => running,
            () = self.cancel.cancelled() => {
                self.answer(&allowed.call, CANCELLED.to_owned()).await?;
                return Err(Halt::Cancelled);
            }
        };
        let running = running.map_err(|error| not_started(&error));
        Ok(running.map(StartedCommand::Foreground))
    }

    /// Shows the output of a command until its end, then records the outcome.
    pub(super) async fn finish(
        &mut self,
        allowed: AllowedCommand,
        begun: Result<StartedCommand, String>,
    ) -> Result<(), Halt> {
        self.show(CallEvent::Decision(allowed.decision.clone()))
            .await?;
        let running = match begun {
            Ok(StartedCommand::Foreground(running)) => running,
            Ok(StartedCommand::Background(seen)) => return self.finish_job(allowed, *seen).await,
            Err(why) => {
                let AllowedCommand {
                    call,
                    judged,
                    decision,
                    ..
                } = &allowed;
                self.audit(call, judged, decision, CallOutcome::Nothing);
                return self.not_run(call, why).await;
            }
        };
        let (_, result) = self.follow(&allowed, running).await?;
        self.conclude(&allowed.call, result).await?;
        match self.cancel.is_cancelled() {
            true => Err(Halt::Cancelled),
            false => Ok(()),
        }
    }

    /// Shows the output of a command until its end, and audits the outcome. Returns it with the result of the call.
    pub(super) async fn follow(
        &mut self,
        allowed: &AllowedCommand,
        running: RunningCommand,
    ) -> Result<(co_exec::CommandOutcome, CallResult), Halt> {
        let command = allowed.request.text();
        let listed = (self.services.foreground).add(self.chat, self.services.id(), &command);
        self.state(ChatState::Running, command).await?;
        let started = Instant::now();
        let outcome = self.show_until_done(running).await?;
        drop(listed);
        let hint = self.confinement_hint(allowed, &outcome);
        let (told, output) = self.for_model(allowed, &outcome, hint.as_deref()).await;
        let short = outcome.timed_out && self.conditions(allowed).unasked;
        let setting = if short { ": unasked_timeout" } else { "" };
        let started_containers = readiness::started(&allowed.request.text(), &outcome);
        let more = started_containers.unwrap_or_default();
        let result = CallResult {
            ok: outcome.told_ok(),
            spill: outcome.spill.clone(),
            shown: ShownPart {
                output,
                status: joined(&[&format!("{}{setting}", outcome.status()), &more]),
                exceptions: Some(joined(&[
                    &format!("{}{setting}", outcome.exceptions()),
                    &more,
                ])),
                took: outcome.took(),
                notice: hint,
                tried: allowed.decision == Decision::Tried,
            },
            ..told.into()
        };
        self.audit(
            &allowed.call,
            &allowed.judged,
            &allowed.decision,
            CallOutcome::Command(&outcome),
        );
        tracing::debug!(call = allowed.call.id, wall = ?started.elapsed(), "a call ended");
        Ok((outcome, result))
    }

    async fn show_until_done(
        &mut self,
        running: RunningCommand,
    ) -> Result<co_exec::CommandOutcome, Halt> {
        let block = self.services.id();
        let started = CallEvent::OutputStarted {
            block,
            screen: running.screen(),
        };
        self.show(started).await?;
        let canceller = running.canceller();
        let outcome = running.outcome();
        tokio::pin!(outcome);
        let outcome = loop {
            tokio::select! {
                outcome = &mut outcome => break outcome,
                () = self.cancel.cancelled() => {
                    canceller.cancel();
                    break outcome.await;
                }
                answered = self.queue.answered() => self.answered_early(answered).await?,
            }
        };
        self.show(CallEvent::OutputEnded { block }).await?;
        Ok(outcome)
    }

    /// Returns a sentence about the confinement that may have made a command fail; none after the first one of a turn.
    fn confinement_hint(
        &mut self,
        allowed: &AllowedCommand,
        outcome: &co_exec::CommandOutcome,
    ) -> Option<String> {
        let hint = self.conditions(allowed).hint(outcome)?;
        (!std::mem::replace(&mut self.told_confinement, true)).then_some(hint)
    }

    /// Returns the outcome for the model, without secrets and with advice, and the place of the output in it.
    async fn for_model(
        &mut self,
        allowed: &AllowedCommand,
        outcome: &co_exec::CommandOutcome,
        hint: Option<&str>,
    ) -> (RedactedText, [usize; 2]) {
        let redacted = self.redact_for_model(&outcome.output).await;
        let (RedactedText { mut text, hidden }, mut output) = place_output(outcome, redacted);
        if allowed.edited {
            let ran = allowed.request.text();
            let lead = format!("The person changed the command; what ran is:\n{ran}\n\n");
            output = output.map(|at| at + lead.len());
            text.insert_str(0, &lead);
        }
        let conditions = self.conditions(allowed);
        if conditions.may_be_to_blame(outcome) && allowed.decision == Decision::Unasked {
            self.permissions
                .failed_confined
                .push(allowed.request.text());
        }
        let hint = hint.map(|hint| format!("It ran {hint}."));
        for line in hint.into_iter().chain(conditions.advice(outcome)) {
            text.push('\n');
            text.push_str(&line);
        }
        (RedactedText { text, hidden }, output)
    }

    /// Returns the conditions that a command runs under.
    pub(super) fn conditions(&self, allowed: &AllowedCommand) -> Conditions {
        let ceiling = self.services.config.max_timeout();
        let limit = allowed.request.limit(self.ceiling(allowed));
        Conditions {
            confinement: confinement::words(&allowed.context.confinement),
            network: self.services.config.sandbox_network,
            confined: allowed.context.unasked,
            hides: match &allowed.context.confinement {
                Confinement::Workspace { shown, .. } | Confinement::Container { shown, .. } => {
                    *shown != ShownSecrets::Everything
                }
                Confinement::Trial { .. } => true,
                _ => false,
            },
            approved_confinement: self.services.probe.name(),
            level: level(&allowed.context.confinement),
            asked: allowed.request.timeout,
            limit,
            unasked: limit != allowed.request.limit(ceiling),
            ceiling,
        }
    }

    /// Returns the longest time that a command may take. It is shorter for a command that runs without approval, unless that
    /// is a job.
    fn ceiling(&self, allowed: &AllowedCommand) -> Duration {
        let most = self.services.config.max_timeout();
        let alone = allowed.decision == Decision::Unasked && !allowed.request.mode.background;
        match alone {
            true => most.min(self.services.config.unasked_timeout),
            false => most,
        }
    }

    /// Returns a text without secrets, for the model. A cancelled turn waits only a short time for it.
    ///
    /// # Errors
    /// The secrets cannot be found, or not in time. The error is a line for the model in place of the text.
    pub(super) async fn redact_for_model(&self, text: &str) -> Result<RedactedText, String> {
        // If a program supplies the key of the provider, co knows the key only after the first request.
        let keys = self.provider.secrets();
        let redact = self.services.redact_for_model(&self.workspace, text, &keys);
        unless_cancelled(&self.cancel, redact).await
    }

    /// Reads the values of secrets before a command may change them.
    async fn load_secret_values(&self) {
        if self.services.config.redact {
            tokio::select! {
                () = self.services.load_secret_values(&self.workspace) => {}
                () = self.cancel.cancelled() => {}
            }
        }
    }

    /// Records the outcome of a call that did not run. The person sees only the decision.
    pub(super) async fn answer(&mut self, call: &Call, text: String) -> Result<(), Halt> {
        self.conclude(call, RedactedText::from(text).into()).await
    }

    /// Records the outcome of a call and shows its end.
    pub(super) async fn conclude(&mut self, call: &Call, result: CallResult) -> Result<(), Halt> {
        let spill = result.spill.as_deref();
        let ended = retell::ended(result.ok, result.told.hidden, spill, &result.shown);
        self.record_result(call, result).await?;
        self.show(ended).await
    }

    /// Records the outcome of a call. If the model repeats its calls, the outcome has a hint about that.
    pub(super) async fn record_result(
        &mut self,
        call: &Call,
        result: CallResult,
    ) -> Result<(), Halt> {
        let CallResult {
            told: RedactedText { mut text, hidden },
            ok,
            spill,
            shown,
        } = result;
        match self.limits.call(&call.name, &call.arguments, &text) {
            Repetition::Harmless => {}
            Repetition::Hint(hint) => {
                text.push_str("\n\n");
                text.push_str(&hint);
            }
            Repetition::End => self.repeats_calls = true,
        }
        self.record(Item::Outcome(Outcome {
            call: call.id.clone(),
            text,
            ok,
            spill,
            hidden,
            shown: Some(shown),
        }))
        .await
    }

    /// Records, audits and shows a decision that stops a call.
    pub(super) async fn decided(
        &mut self,
        call: &Call,
        judged: &JudgedCall,
        decision: &Decision,
    ) -> Result<(), Halt> {
        self.record(Item::Decision {
            call: call.id.clone(),
            decision: decision.clone(),
        })
        .await?;
        self.audit(call, judged, decision, CallOutcome::Nothing);
        self.show(CallEvent::Decision(decision.clone())).await
    }
}

/// Returns the texts that are not empty as one.
fn joined(texts: &[&str]) -> String {
    let texts: Vec<_> = texts
        .iter()
        .copied()
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("; ")
}

/// Returns a command as the hooks of plugins get it.
fn planned(chat: u64, allowed: &AllowedCommand) -> PlannedCommand {
    PlannedCommand {
        chat,
        command: allowed.request.text(),
        cwd: allowed.context.cwd.display().to_string(),
        unasked: allowed.context.unasked,
        job: None,
    }
}

/// Returns the outcome of a command for the model, and the place of the program's output in it.
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

/// Waits for a redacted text, but only a short time after the turn is cancelled.
async fn unless_cancelled(
    cancel: &CancellationToken,
    redact: impl Future<Output = Result<RedactedText, String>>,
) -> Result<RedactedText, String> {
    let late = async {
        cancel.cancelled().await;
        tokio::time::sleep(REDACTION_TIMEOUT).await;
    };
    tokio::select! {
        text = redact => text,
        () = late => Err(withheld("the turn was cancelled")),
    }
}

/// Returns the result of a command that could not start. The person sees the first line.
pub(super) fn not_started(error: &co_exec::Error) -> String {
    let why = error::text_of(error).plain();
    match error.is_permission() {
        true => format!("{why}\n{NOT_EXECUTED}"),
        false => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancelled_turn_waits_a_short_time_for_redacted_output() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let soon = async {
            tokio::task::yield_now().await;
            Ok("text".to_owned().into())
        };
        assert_eq!(unless_cancelled(&cancel, soon).await.unwrap().text, "text");
        assert_eq!(
            unless_cancelled(&cancel, std::future::pending()).await,
            Err(
                "output withheld: co could not check it for secrets (the turn was cancelled)"
                    .to_owned()
            )
        );
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
