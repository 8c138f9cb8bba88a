//! Trials: commands that run over a layer above the workspace, so that the person can see the changes before they are made in the
//! workspace.
//!
//! `place` has the steps of a trial around its command. `layer` makes the directory of a layer, over the ignored files that
//! earlier trials left (`ignored`). `changes` compares the layer with the workspace; `tree` and `content` read the files for it.
//! `git` finds the changes in `.git`, and `head` asks git which commits the command made. `report` makes texts about the changes.
//! This module never asks the person. It blocks on file operations: call its functions from `spawn_blocking`, except `async`
//! ones.

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

pub use changes::{Error, IgnoredFiles, IgnoredFilesFate, NotKept, TrialChanges};
pub use git::GitChanges;
pub use ignored::Cleared;
pub use layer::Layer;
pub use place::{Layers, TrialPlace, keeping};

use co_exec::CommandOutcome;

/// Returns true if a command ended by itself and cannot have read a secret. For any other command, the files that it wrote may be
/// incomplete or contain a secret.
pub fn ended_by_itself(outcome: &CommandOutcome) -> bool {
    outcome.exit.is_some()
        && outcome.limit.is_none()
        && !outcome.withheld
        && !outcome.timed_out
        && !outcome.cancelled
}

#[cfg(test)]
mod tests;
