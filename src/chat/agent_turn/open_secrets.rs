//! The secret files that a running agent can read, because they became secret after its start.

use std::path::PathBuf;

use super::parts::TurnParts;
use crate::agent::AgentProcess;

/// The secret files of which the person was told in this turn.
#[derive(Default)]
pub(super) struct OpenSecrets {
    told: Vec<PathBuf>,
    /// The person was told that co cannot find them.
    has_told_unknown: bool,
}

impl OpenSecrets {
    /// Returns the sentence about secret files of which the person does not know yet; none if there are none.
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
