//! The audit line of a call: what was asked, what policy said, who decided, what it came to.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::Turn;
use super::calls::Judged;
use crate::audit::Record;
use crate::exec;
use crate::transcript::{Call, Decision};

/// What a call came to.
#[derive(Clone, Copy)]
pub(super) enum CameTo<'a> {
    /// It was not run.
    Nothing,
    Command(&'a exec::Outcome),
    /// Something with a job, in words.
    Job(&'a str),
    /// A look, and its summary.
    Look(&'a str),
}

impl Turn {
    /// Writes a call's audit line. Its hash of a long output is taken off the runtime's thread.
    pub(super) fn audit(
        &self,
        call: &Call,
        judged: &Judged,
        decision: &Decision,
        came_to: CameTo<'_>,
    ) {
        let outcome = match came_to {
            CameTo::Command(outcome) => Some(outcome),
            CameTo::Nothing | CameTo::Job(_) | CameTo::Look(_) => None,
        };
        let mut record = Record {
            time: Record::now(),
            session: self.log_id.clone(),
            call: call.id.clone(),
            command: judged.command.clone(),
            segments: judged.segments.clone(),
            verdict: judged.verdict.word().to_owned(),
            rule: rule(decision),
            decided: who(decision).to_owned(),
            backend: match came_to {
                CameTo::Nothing | CameTo::Job(_) => self.kit.trial.name().to_owned(),
                CameTo::Command(outcome) => outcome.level.to_owned(),
                CameTo::Look(_) => "co itself".to_owned(),
            },
            outcome: match came_to {
                CameTo::Nothing => "not run".to_owned(),
                CameTo::Command(outcome) => outcome.status(),
                CameTo::Job(what) => what.to_owned(),
                CameTo::Look(summary) => summary.to_owned(),
            },
            spill: None,
        };
        let spill = outcome.and_then(|outcome| outcome.spill.clone());
        let kit = std::sync::Arc::clone(&self.kit);
        tokio::task::spawn_blocking(move || {
            record.spill = spill.as_deref().and_then(hash);
            if let Some(audit) = &kit.audit
                && let Err(error) = audit.write(record)
            {
                tracing::error!(%error, "the audit log was not written");
            }
        });
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

fn hash(spill: &Path) -> Option<String> {
    let mut file = std::fs::File::open(spill).ok()?;
    let mut digest = Sha256::new();
    std::io::copy(&mut file, &mut digest).ok()?;
    let hex = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    Some(format!("sha256:{hex}"))
}
