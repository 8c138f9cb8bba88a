//! The tools `edit_file`, `write_file`, `delete_file`, `move_file` and `rename_symbol`, which change files of the workspace.
//!
//! A request becomes a [`Proposal`], which shows what would change and changes nothing. `tool::judge` decides which files
//! may be changed. The person decides about the proposal.

mod apply;
pub(crate) mod disk;
mod proposal;
mod range;
mod rename;
mod request;
mod review;
mod seen;
pub(crate) mod source;

pub(crate) use apply::change_buffer;
pub use apply::{AppliedChange, AutocommandChange, apply, rebase_all};
pub use proposal::{PlannedEdit, Proposal, propose};
pub use range::EditRange;
pub(super) use rename::{NAME as RENAME, spec as rename_spec};
pub use rename::{RenameRequest, propose_placed};
pub(super) use request::specs;
pub use request::{EditRequest, NAMES};
pub use review::{accepted_hunks, answer_in_words, comments, reviewed};
pub use seen::SeenTexts;
pub use source::EditPlace;

/// A change that cannot be made. The text says why and what to do next, without a final period.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EditRefused(pub String);

#[cfg(test)]
mod tests;
