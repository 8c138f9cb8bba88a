//! Makes proposals from the edits of a language server.

use super::EditRefused;
use super::proposal::{Proposal, replacement};
use super::source::{EditPlace, EditableText};
use crate::buffers::OpenBuffers;
use crate::protocol::FileEdits;
use co_edit::{CharacterUnit, apply_placed};

/// Returns the proposal for a language server's edits of a file. Changes nothing.
///
/// Blocks on files. Call it from `spawn_blocking`.
///
/// # Errors
/// The text of the file differs from the text that the language server knows, or the file cannot be changed.
pub fn propose_placed(
    edits: &FileEdits,
    unit: CharacterUnit,
    place: &EditPlace,
    open: &OpenBuffers,
) -> Result<Proposal, EditRefused> {
    let buffer = open.get(&place.real);
    if buffer.map(|it| it.tick) != edits.tick {
        return Err(place.refuse("it has changed meanwhile: ask again"));
    }
    let old = EditableText::of(place, open)?.ok_or_else(|| place.refuse("it does not exist"))?;
    let mut new = old.text.clone();
    apply_placed(&mut new, &edits.edits, unit).map_err(|error| place.refuse(error))?;
    let mut proposal = replacement(place, old, new, Vec::new())?;
    proposal.unsaved = buffer.is_some_and(|it| it.modified);
    Ok(proposal)
}
