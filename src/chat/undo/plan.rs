//! The plan of an `/undo` or `/redo`: the changes to make, and the question about them.

use std::path::PathBuf;

use crate::checkpoint::{TurnChanges, Undo};
use crate::protocol::Change;

/// The result of planning an `/undo` or `/redo`.
pub(super) enum Planned {
    /// The plan, and the changes that the question about the plan shows. The second value is `None` if co need not ask.
    Changes(Box<Plan>, Option<Change>),
    /// No turn changed files. The text tells the person about changes of `.git`, which stay. It is `None` if there are no such
    /// changes.
    Nothing(Option<String>),
}

/// The changes that an `/undo` or `/redo` makes.
pub(super) struct Plan {
    /// The number of the turn, or of the first turn if several turns are taken back together.
    pub(super) turn: usize,
    pub(super) workspace: PathBuf,
    pub(super) undo: Undo,
    /// A sentence about changes of `.git`, which the plan does not take back.
    pub(super) git: Option<String>,
    /// Sentences for the question about changes that cannot be taken back.
    pub(super) reasons: Vec<String>,
}

/// Returns true if a turn changed something in `.git`.
pub(super) fn is_of_git(turn: &TurnChanges) -> bool {
    turn.records.iter().any(|it| it.of_git || it.head.is_some())
}

/// Merges the changes of the turn `from` and of all later turns into one.
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
