//! The audit lines of a call. The first has the command, the verdict and the decision and is written before the call
//! runs. The second has the outcome.

use super::call::JudgedCall;
use super::context::CallContext;
use crate::audit::Record;
use crate::services::audit_task;
use co_llm::transcript::Decision;

/// The outcome of a call.
#[derive(Clone, Copy)]
pub enum CallOutcome<'a> {
    /// The call did not run.
    Nothing,
    Command(&'a co_exec::CommandOutcome),
    /// The summary of a file call, or of what was kept of a trial.
    Look(&'a str),
    /// The result of typing to a job, and the job's confinement.
    Typed(&'a str, &'static str),
}

impl CallContext {
    /// Writes the decision on a call that will run. The line is in the file when this returns.
    pub(super) async fn audit_decision(
        &self,
        call: &str,
        judged: &JudgedCall,
        (decision, level): (&Decision, &str),
    ) -> Record {
        let record = self.line(call, judged, decision, level);
        // It fails only if the writing panicked, which is logged.
        let _ = audit_task::write(&self.services, record.clone(), None).await;
        record
    }

    /// Writes the outcome of a call.
    pub fn audit(
        &self,
        call: &str,
        judged: &JudgedCall,
        decision: &Decision,
        came_to: CallOutcome<'_>,
    ) {
        let (level, outcome) = match came_to {
            CallOutcome::Nothing => (self.services.probe.level(), "not run".to_owned()),
            CallOutcome::Command(outcome) => (outcome.level, outcome.status()),
            CallOutcome::Look(summary) => ("co itself", summary.to_owned()),
            CallOutcome::Typed(what, level) => (level, what.to_owned()),
        };
        let spill = match came_to {
            CallOutcome::Command(outcome) => outcome.spill.clone(),
            _ => None,
        };
        let record = Record {
            outcome: Some(outcome),
            ..self.line(call, judged, decision, level)
        };
        audit_task::write(&self.services, record, spill);
    }

    fn line(&self, call: &str, judged: &JudgedCall, decision: &Decision, level: &str) -> Record {
        Record {
            time: Record::now(),
            chat: self.transcript_id.clone(),
            call: call.to_owned(),
            command: judged.command.clone(),
            segments: judged.segments.clone(),
            verdict: judged.verdict.word().to_owned(),
            rule: rule(decision),
            decided: who(decision).to_owned(),
            confinement: level.to_owned(),
            outcome: None,
            spill: None,
        }
    }
}

fn rule(decision: &Decision) -> Option<String> {
    match decision {
        Decision::Rule { rule } => Some(rule.clone()),
        Decision::Forbidden { why } => Some(why.clone()),
        _ => None,
    }
}

fn who(decision: &Decision) -> &'static str {
    match decision {
        Decision::Unasked | Decision::Tried => "policy",
        Decision::Rule { .. } | Decision::Forbidden { .. } => "rule",
        Decision::AutoConfirm => "auto_confirm",
        Decision::Approved | Decision::Denied { .. } => "person",
        Decision::Withdrawn => "nobody",
    }
}
