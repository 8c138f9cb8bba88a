//! Trials: commands that run over a layer above the workspace, so that the person sees their changes before they are made.
//!
//! `place` has the steps of a trial around its command. `layer` makes the directory of a trial, over the ignored files that
//! earlier trials left (`ignored`). `changes` compares it with the workspace, by the files that `tree` and `content` read. `git`
//! finds the changes below `.git`, with the index that `index` reads, and `head` asks git what the command did there. `report`
//! makes texts of all. This module asks no person. It blocks on files: call it from `spawn_blocking`, apart from what is `async`.

mod changes;
mod content;
mod git;
mod head;
mod ignored;
mod layer;
mod place;
mod report;
mod rules;
mod tree;

pub use changes::{Error, Fate, IgnoredFiles, NotKept, TrialChanges};
pub use git::GitChanges;
pub use ignored::Cleared;
pub use layer::Layer;
pub use place::{Layers, TrialPlace, keeping};

use co_exec::CommandOutcome;

/// Returns whether a command ended by itself, and may have read no secret. Otherwise its files may be unfinished, or contain the
/// secret.
pub fn ended_by_itself(outcome: &CommandOutcome) -> bool {
    outcome.exit.is_some()
        && outcome.limit.is_none()
        && !outcome.withheld
        && !outcome.timed_out
        && !outcome.cancelled
}

#[cfg(test)]
mod tests;
