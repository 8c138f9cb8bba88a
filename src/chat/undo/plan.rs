//! Plans an `/undo` or `/redo`: the changes to make, and the question about them.

use std::path::PathBuf;
use std::sync::Arc;

use super::UndoTask;
use super::texts::{change, reasons};
use crate::blocking::blocking;
use crate::checkpoint::{By, Head, Record, TurnChanges, Undo, way_back};
use crate::protocol::Change;
use co_text::one_line;

/// The sentence about changes that an older version of co kept.
const OF_OLDER: &str = "what an older co kept of a trial in .git stays, such as a commit";

/// The result of planning.
pub(super) enum Planned {
    /// The changes for the question are none if co need not ask.
    Changes(Box<Plan>, Option<Change>),
    /// No turn changed files. Something in `.git` may stay, with this sentence about it.
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

impl UndoTask {
    /// Returns the plan, and its changes for the question if co must ask.
    pub(super) async fn plan(&self) -> Result<Planned, String> {
        self.record_open().await?;
        let (services, chat, redo) = (
            Arc::clone(&self.services),
            self.transcript.clone(),
            self.by == By::Redo,
        );
        let from = self.from;
        let read = move || {
            let history = services.checkpoints.history(&chat);
            let mut turns = if redo { history.undone } else { history.done };
            if let Some(from) = from {
                turns = merged(turns, from)?;
            }
            let at = turns.iter().rposition(TurnChanges::has_changes);
            let later = turns.split_off(at.map_or(0, |at| at + 1));
            Ok::<_, std::io::Error>((turns.pop(), later, services.checkpoints.store()?))
        };
        let (turn, later, store) = blocking(read).await?;
        let Some(turn) = turn else {
            let last = later.iter().rfind(|turn| is_of_git(turn)).into_iter();
            return Ok(Planned::Nothing(self.of_git(last).await));
        };
        let git = self.of_git(std::iter::once(&turn).chain(&later)).await;
        let files: Vec<_> = turn.files().collect();
        let files = files.iter().map(PathBuf::as_path);
        let open = self.services.buffers.read(files).await;
        let (turns, jobs) = (self.turns.clone(), self.jobs.clone());
        let plan = move || {
            let workspace = turn.workspace().to_owned();
            let undo = Undo::of(turn.changes(), &workspace, &store, &open);
            let mut reasons = reasons(&turns, &turn, &later, &undo);
            reasons.extend(git.clone());
            reasons.extend(jobs);
            // If nothing is left to take back in this turn, co does not ask, and the next `/undo` takes back an earlier turn.
            let change = (!undo.all().is_empty()).then(|| change(&undo, &store));
            let plan = Plan {
                turn: turn.turn,
                workspace,
                undo,
                git,
                reasons,
            };
            Ok::<_, String>(Planned::Changes(Box::new(plan), change))
        };
        blocking(plan).await
    }

    /// Returns a sentence about what turns did in `.git`, which stays, and how the person takes it back; none if they did
    /// nothing there, or it is no longer there.
    async fn of_git<'a>(&self, turns: impl Iterator<Item = &'a TurnChanges>) -> Option<String> {
        let records: Vec<&Record> = turns.flat_map(|turn| &turn.records).collect();
        let workspace = &records.first()?.workspace;
        let records = || records.iter().filter(|it| it.workspace == *workspace);
        let of_older = records().any(|it| it.of_git).then_some(OF_OLDER);
        let moves: Vec<_> = records().filter_map(|it| it.head.as_ref()).collect();
        if self.by == By::Redo || moves.is_empty() {
            return of_older.map(str::to_owned);
        }
        let judge = self.services.judge(workspace);
        let now = Head::read(&self.services.executor, &judge).await;
        let way_back = way_back(&moves, now.as_ref());
        let all: Vec<_> = of_older
            .map(str::to_owned)
            .into_iter()
            .chain(way_back)
            .collect();
        (!all.is_empty()).then(|| one_line(&all.join("; ")))
    }
}

/// Returns whether a turn has done something in `.git`.
fn is_of_git(turn: &TurnChanges) -> bool {
    turn.records.iter().any(|it| it.of_git || it.head.is_some())
}

/// Merges the changes of turn `from` and of all later turns into one.
fn merged(turns: Vec<TurnChanges>, from: usize) -> std::io::Result<Vec<TurnChanges>> {
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
