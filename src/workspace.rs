//! One workspace: the policy's facts about it, its verdicts, and the code that reads, walks and changes its files.
//!
//! These modules know the executor and the policy. They do not know chats, models or Neovim's windows.

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
