//! The trial of a command, and what the question about it shows.

use super::super::tried::TriedCommand;
use super::run::CallResult;
use crate::protocol::{Change, TrialSummary};
use crate::trial::Fate;

/// The trial of a command that waits in the queue.
#[derive(Default)]
pub(super) enum Trial {
    #[default]
    None,
    /// The person asked for it.
    Wanted,
    Running,
    /// It could not run, or co could not read what it changed: the reason.
    Failed(String),
    Ended(Box<EndedTrial>),
}

/// A trial that has ended, and its question.
pub(super) struct EndedTrial {
    pub tried: TriedCommand,
    pub result: CallResult,
}

impl Trial {
    /// Returns the result of the command and what it changed, for the question.
    pub(super) fn for_question(&self) -> (Option<TrialSummary>, Option<Change>) {
        match self {
            Self::Ended(ended) => {
                let tried = &ended.tried;
                (Some(tried.summary.clone()), tried.change.clone())
            }
            _ => (None, None),
        }
    }

    /// Returns a sentence about a trial that could not run, or whose changes could not be read; none for others.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::Failed(why) => Some(format!("its trial failed: {why}")),
            _ => None,
        }
    }
}

impl EndedTrial {
    /// Returns the effect of a trial that needs no answer, for the model and for the person.
    pub(super) fn effect(&self) -> (String, String) {
        let ignored = &self.tried.changes.ignored;
        let Some(unchanged) = ignored.unchanged() else {
            return (
                "The command ran as a trial, without network. It changed no file of the workspace; what it wrote to /tmp is gone."
                    .to_owned(),
                "tried: it changed nothing".to_owned(),
            );
        };
        let fate = match ignored.fate {
            Fate::Stay => "Later trials see these changes, other commands do not",
            _ => "These changes are dropped",
        };
        let told = format!(
            "The command ran as a trial. It changed only files that git ignores. {fate}: outside of the trial, {unchanged}. If these \
             files must change, call it again with `real`; the person is then asked."
        );
        let noted =
            format!("tried: it changed only ignored files, {unchanged}; /real runs it for real");
        (told, noted)
    }
}
