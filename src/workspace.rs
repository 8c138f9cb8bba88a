//! One workspace: the policy's facts about it and its verdicts, and how its files are read, walked and changed.
//!
//! These modules know the executor and the policy, and nothing of chats, models or Neovim's windows.

pub(crate) mod cache_dirs;
pub mod confinement;
pub mod confinement_hint;
pub mod edits;
pub mod facts;
pub mod files;
pub(crate) mod git_index;
pub mod job_input;
pub mod judge;
pub mod own_git;
pub mod rules;
pub mod sandbox_probe;
pub mod skills;
mod tracked;
