//! Changes of files of the workspace.
//!
//! A request becomes a [`Proposal`], which shows the changes but does not make them. `workspace::judge` decides which files may
//! be changed. The person decides about the proposal.

mod announced;
mod apply;
pub(crate) mod disk;
mod placed;
mod proposal;
mod range;
mod request;
mod review;
mod seen;
pub(crate) mod source;

pub use announced::{AnnouncedText, propose_announced};
pub(crate) use apply::change_buffer;
pub use apply::{AppliedChange, AutocommandChange, apply, rebase_all};
pub use placed::propose_placed;
pub use proposal::{PlannedEdit, Proposal, propose};
pub use range::EditRange;
pub use request::{DELETE, EDIT, EditRequest, MOVE, NAMES, WRITE};
pub use review::{answer_in_words, comments, lines_as_text, reviewed};
pub use seen::SeenTexts;
pub use source::EditPlace;

/// The name of the tool that renames a symbol with a language server. No rule matches this name, because a rename is judged as an
/// edit of each file.
pub const RENAME: &str = "rename_symbol";

/// The reason why a change cannot be made, and the next step. The text has no final period.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EditRefused(pub String);
