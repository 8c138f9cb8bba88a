//! The plan of an `/undo` or `/redo`: the changes to make, and the question about them.

use std::path::PathBuf;

use crate::checkpoint::{TurnChanges, Undo};
use crate::protocol::Change;

/// The result of planning.
pub(super) enum Planned {
    /// The plan, and the changes that the question shows; none if co need not ask.
    Changes(Box<Plan>, Option<Change>),
    /// No turn changed files. The text tells the person what stays changed in `.git`, if anything does.
    Nothing(Option<String>),
}

/// The changes to make.
pub(super) struct Plan {
    /// The number of the turn, or of the first one if several turns are taken back together.
    pub(super) turn: usize,
    pub(super) workspace: PathBuf,
    pub(super) undo: Undo,
    /// The sentence of the plan about changes of `.git`, which stay.
    pub(super) git: Option<String>,
    /// Sentences for the question about changes that cannot be taken back.
    pub(super) reasons: Vec<String>,
}

/// Returns whether a turn has done something in `.git`.
pub(super) fn is_of_git(turn: &TurnChanges) -> bool {
    turn.records.iter().any(|it| it.of_git || it.head.is_some())
}

/// Merges the changes of turn `from` and of all later turns into one.
pub(super) fn merged(turns: Vec<TurnChanges>, from: usize) -> std::io::Result<Vec<TurnChanges>> {
    let turns: Vec<_> = turns.into_iter().filter(|it| it.last >= from).collect();
    if turns.iter().any(|it| it.turn < from) {
        return Err(std::io::Error::other(
            "the changes since then were brought back together with earlier ones; take all of them back with /undo",
        ));
    }
    let last = turns.iter().map(|it| it.last).max().unwrap_or(from);
    let records: Vec<_> = turns.into_iter().flat_map(|it| it.records).collect();
    if records
        .iter()
        .any(|it| it.workspace != records[0].workspace)
    {
        return Err(std::io::Error::other(
            "the changes lie in several workspaces; take them back one by one with /undo",
        ));
    }
    Ok(vec![TurnChanges {
        turn: from,
        last,
        records,
    }])
}
