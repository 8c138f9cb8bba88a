//! The secret files that a running agent can read because they became secret after the agent started.

use std::path::PathBuf;

use super::parts::TurnParts;
use crate::agent::AgentProcess;

/// The secret files that co has told the person about in this turn.
#[derive(Default)]
pub(super) struct OpenSecrets {
    told: Vec<PathBuf>,
    /// True if co has told the person that it cannot look for such files.
    has_told_unknown: bool,
}

impl OpenSecrets {
    /// Returns a sentence about the secret files that the person has not been told about yet; none if there are no such files.
    pub(super) async fn news(
        &mut self,
        turn: &TurnParts,
        process: &AgentProcess,
    ) -> Option<String> {
        let name = &turn.spec.name;
        match process.open_secrets(&turn.context.services).await {
            Ok(mut new) => {
                new.retain(|it| !self.told.contains(it));
                if new.is_empty() {
                    return None;
                }
                let files = turn.names(&new);
                self.told.extend(new);
                Some(format!(
                    "{name} can read what is secret since it started: {files}; the next prompt starts it anew, without that"
                ))
            }
            Err(_) if std::mem::replace(&mut self.has_told_unknown, true) => None,
            Err(why) => Some(format!(
                "{name} may read what is secret since it started, because co cannot look for secret files ({why}); the next prompt starts it anew"
            )),
        }
    }
}
