//! Makes the lines of the audit file about a call. The first line contains the command, the verdict and the decision, and is
//! written before the call runs. The second line contains the outcome.

use super::call::{CallEffect, DecidedCall};
use super::context::{CallContext, TurnKind};
use crate::audit::Record;
use crate::network::HostReport;
use crate::services::audit_task;
use co_llm::transcript::Decision;

impl CallContext {
    /// Writes the decision about a call that will run. The line is in the file when this method returns.
    pub async fn audit_decision(&self, decided: &DecidedCall, level: &str) {
        if let Some(record) = self.audit_record(decided, level) {
            // It fails only if the writing panicked, which is logged.
            let _ = audit_task::write(&self.services, record, None).await;
        }
    }

    /// Writes the outcome of a call; `effect` is `None` if the call did not run.
    pub fn audit_outcome(&self, decided: &DecidedCall, effect: Option<CallEffect>) {
        let effect = effect.unwrap_or_else(|| CallEffect {
            level: self.services.probe.level(),
            words: "not run".to_owned(),
            hosts: HostReport::default(),
            spill: None,
        });
        if let Some(record) = self.audit_record(decided, effect.level) {
            let record = Record {
                outcome: Some(effect.words),
                hosts: (!effect.hosts.is_empty()).then(|| effect.hosts.json()),
                ..record
            };
            audit_task::write(&self.services, record, effect.spill);
        }
    }

    /// Returns the line with the decision about a call. Returns `None` if the call needs no verdict.
    pub(super) fn audit_record(&self, decided: &DecidedCall, level: &str) -> Option<Record> {
        let decision = decided.decision.as_ref()?;
        let audited = decided.audited.clone()?;
        Some(Record {
            time: Record::now(),
            chat: self.transcript_id.clone(),
            call: match &self.kind {
                TurnKind::Scout { call } => format!("{call}/{}", decided.id),
                _ => decided.id.clone(),
            },
            command: audited.command,
            segments: audited.segments,
            verdict: audited.verdict.to_owned(),
            rule: rule(decision),
            decided: who(decision).to_owned(),
            confinement: level.to_owned(),
            outcome: None,
            hosts: None,
            spill: None,
        })
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
        Decision::Agent => "agent",
    }
}
