//! Plans an `/undo` or `/redo`: the changes to make, and the question about them.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::text::one_line;
use super::UndoTask;
use super::texts::{change, reasons};
use crate::blocking::blocking;
use crate::checkpoint::{By, KeptRepository, Overlap, TurnChanges, Undo, taking_back};
use crate::protocol::Change;

/// The changes to make.
pub(super) struct Plan {
    /// The number of the turn, or of the first one if several turns are taken back together.
    pub(super) turn: usize,
    pub(super) workspace: PathBuf,
    pub(super) undo: Undo,
    pub(super) repository: Option<KeptRepository>,
    /// Sentences for the question about changes that cannot be taken back.
    pub(super) reasons: Vec<String>,
}

impl UndoTask {
    /// Returns the plan, and its changes for the question if co must ask; none if no turn changed files or the repository.
    pub(super) async fn plan(&self) -> Result<Option<(Plan, Option<Change>)>, String> {
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
            let later = at.map_or_else(Vec::new, |at| turns.split_off(at + 1));
            Ok::<_, std::io::Error>((turns.pop(), later, services.checkpoints.store()?))
        };
        let (turn, later, store) = blocking(read).await?;
        let Some(turn) = turn.filter(TurnChanges::has_changes) else {
            return Ok(None);
        };
        let files: Vec<_> = turn.files().collect();
        let files = files.iter().map(PathBuf::as_path);
        let open = self.services.buffers.read(files).await;
        let (turns, jobs) = (self.turns.clone(), self.jobs.clone());
        let plan = move || {
            let workspace = turn.workspace().to_owned();
            let undo = Undo::of(turn.changes(), &workspace, &store, &open, Overlap::Refuse);
            let mut reasons = reasons(&turns, &turn, &later, &undo);
            let repository = taking_back(&turn, &store);
            // If nothing is left to take back in this turn, co does not ask, and the next `/undo` takes back an earlier turn. If
            // the repository refuses, co asks, because the person may remove the reason.
            let asks = !undo.all().is_empty() || !matches!(repository, Ok(None));
            let repository = repository.unwrap_or_else(|why| {
                reasons.push(one_line(&format!(".git stays as it is: {why}")));
                None
            });
            let lines = repository.iter().flat_map(|it| &it.lines);
            reasons.extend(lines.map(|line| format!("git: {line}")));
            reasons.extend(jobs);
            let change = asks.then(|| change(&undo, repository.is_some(), &store));
            let plan = Plan {
                turn: turn.turn,
                workspace,
                undo,
                repository: repository.map(|it| it.kept),
                reasons,
            };
            Ok::<_, String>((plan, change))
        };
        blocking(plan).await.map(Some)
    }
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
