//! Trials: commands that run over a layer above the workspace, so that the person sees their changes before they are made.
//!
//! `layer` makes the directory of a trial. `changes` compares it with the workspace, by the files that `tree` and `content`
//! read. `git` sorts the changes below `.git`, and `repository` reads those of commits, refs and the index. `report` makes texts of
//! them. This module asks no person. It blocks on files: call it from `spawn_blocking`, apart from what is `async`.

mod changes;
mod content;
mod git;
mod layer;
mod report;
mod repository;
mod tree;

pub use changes::{Error, IgnoredFiles, NotKept, TrialChanges};
pub use layer::Layer;
pub use repository::{RepositoryChanges, TrialPlace};

#[cfg(test)]
mod tests;
