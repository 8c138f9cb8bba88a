//! Trials: commands that run over a layer above the workspace, so that the person sees their changes before they are made.
//!
//! `layer` makes the directory of a trial. `changes` compares it with the workspace, by the files that `tree` and `content`
//! read; `git` and `git_index` look at `.git`. `report` makes texts of them. This module starts no command and asks no person. All of it
//! blocks on files: call it from `spawn_blocking`.

mod changes;
mod content;
mod git;
mod git_index;
mod layer;
mod report;
mod tree;

pub use changes::{Error, IgnoredFiles, NotKept, TrialChanges};
pub use layer::Layer;

#[cfg(test)]
mod tests;
