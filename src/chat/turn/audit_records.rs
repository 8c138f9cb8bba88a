//! The audit lines of a call: what was asked, what policy said and who decided, before anything comes of it; then
//! what it came to.

use super::super::audit_task;
use super::Turn;
use super::calls::Judged;
use crate::audit::Record;
use co_exec::Confinement;
use co_llm::transcript::{Call, Decision};
use co_policy::{Grant, Verdict};

/// The level of what nobody was asked about.
pub(super) const READ_ONLY: &str = "read-only";

/// What a call came to.
#[derive(Clone, Copy)]
pub(super) enum CameTo<'a> {
    /// It was not run.
    Nothing,
    Command(&'a co_exec::Outcome),
    /// A look, and its summary.
    Look(&'a str),
    /// Something was typed into a job, or was not; and what holds the job.
    Typed(&'a str, &'static str),
}

impl Turn {
    /// Writes what was decided of a call that is to run; it is in the file when this returns.
    pub(super) async fn audit_decision(
        &self,
        call: &Call,
        judged: &Judged,
        (decision, level): (&Decision, &str),
    ) -> Record {
        let record = self.line(call, judged, decision, level);
        // It fails only where the writing panicked, which is said by then.
        let _ = audit_task::write(&self.services, record.clone(), None).await;
        record
    }

    /// Writes what a call came to.
    pub(super) fn audit(
        &self,
        call: &Call,
        judged: &Judged,
        decision: &Decision,
        came_to: CameTo<'_>,
    ) {
        let (level, outcome) = match came_to {
            CameTo::Nothing => (self.services.probe.name(), "not run".to_owned()),
            CameTo::Command(outcome) => (outcome.level, outcome.status()),
            CameTo::Look(summary) => ("co itself", summary.to_owned()),
            CameTo::Typed(what, level) => (level, what.to_owned()),
        };
        let spill = match came_to {
            CameTo::Command(outcome) => outcome.spill.clone(),
            _ => None,
        };
        let record = Record {
            outcome: Some(outcome),
            ..self.line(call, judged, decision, level)
        };
        audit_task::write(&self.services, record, spill);
    }

    fn line(&self, call: &Call, judged: &Judged, decision: &Decision, level: &str) -> Record {
        Record {
            time: Record::now(),
            session: self.log_id.clone(),
            call: call.id.clone(),
            command: judged.command.clone(),
            script: match (&judged.verdict, decision) {
                (Verdict::Allow(Grant::Proof(proved)), Decision::Proved) => {
                    Some(proved.script().to_owned())
                }
                _ => None,
            },
            segments: judged.segments.clone(),
            verdict: judged.verdict.word().to_owned(),
            rule: rule(decision),
            decided: who(decision).to_owned(),
            backend: level.to_owned(),
            outcome: None,
            spill: None,
        }
    }
}

/// What a command is to be held to, as its outcome will name it.
pub(super) fn level(confinement: &Confinement) -> &'static str {
    match confinement {
        Confinement::Plain => "plain",
        Confinement::ReadOnly { .. } => READ_ONLY,
        Confinement::Workspace { .. } => "workspace",
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
        Decision::Proved => "proof",
        Decision::Rule { .. } | Decision::Forbidden { .. } => "rule",
        Decision::AutoConfirm => "auto_confirm",
        Decision::Approved | Decision::Denied { .. } => "person",
        Decision::Withdrawn => "nobody",
    }
}
