#![doc = include_str!("../README.md")]

mod diff;
mod edit;
mod encoding;
mod error;
mod hash;
mod indent;
mod loose;
mod named;
mod nearest;
mod placed;
mod rebase;
mod slide;
mod text;
mod utf16;
mod weave;

pub use diff::{Hunk, Names, apply_hunks, hunks, marked, unified};
pub use edit::{Edit, EditedText, Note, apply};
pub use encoding::escape;
pub use error::{EditError, NotText, Refusal};
pub use hash::hash;
pub use nearest::NearestLines;
pub use placed::{CharacterUnit, MisplacedEdit, PlacedEdit, apply_placed};
pub use rebase::{RebaseResult, rebase};
pub use text::FileText;
pub use weave::{EditBy, Mark, Weave};

/// Returns the lines of a text, each with its line break.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}
