//! The texts about changes of files, for the question of an undo and for the quickfix list.

use std::path::PathBuf;

use crate::checkpoint::{
    self, ChangeCause, ChangedFile, Record, Store, TurnChanges, Undo, UndoResult, named,
};
use crate::protocol::{Change, QuickfixEntry};
use co_llm::transcript::{Decision, INTERRUPTED, Item};
use co_text::{MOST_NAMED, counted, one_line, short_command};

/// The notice if the chat has changed no file.
pub(in crate::chat) const NO_CHANGES: &str = "this chat has changed no file";

const COMMANDS_DO_MORE: &str = "what commands other than trials changed outside the workspace, in ignored or secret files, in git or over the network stays";

/// The facts about a turn that the question mentions.
#[derive(Debug, Clone, Default)]
pub(super) struct TurnSummary {
    /// The first line of the turn's prompt.
    prompt: String,
    /// True if co ended during a call of the turn.
    interrupted: bool,
}

/// Returns the summaries of all turns of a chat.
pub(super) fn turns(items: &[Item]) -> Vec<TurnSummary> {
    let mut turn = TurnSummary::default();
    let mut turns = Vec::new();
    let mut prompted = false;
    for item in items {
        match item {
            // A later one steered the turn.
            Item::User { text, .. } if !std::mem::replace(&mut prompted, true) => {
                turn.prompt = short_command(text);
            }
            Item::Outcome(outcome) => turn.interrupted |= outcome.text == INTERRUPTED,
            Item::End { .. } => {
                turns.push(turn.clone());
                (turn.interrupted, prompted) = (false, false);
            }
            _ => {}
        }
    }
    // The one that runs.
    turns.extend(prompted.then_some(turn));
    turns
}

/// Returns the sentences that the question shows: about the turn, and about the changes that cannot be taken back.
pub(super) fn reasons(
    turns: &[TurnSummary],
    turn: &TurnChanges,
    later: &[TurnChanges],
    undo: &Undo,
) -> Vec<String> {
    let since = turns.get(turn.turn..).unwrap_or_default();
    let prompt = since.first().map_or("", |it| &it.prompt);
    let mut reasons = vec![match turn.last == turn.turn {
        true => format!("of the turn “{prompt}”"),
        false => format!("of the turn “{prompt}” and all later ones"),
    }];
    let kept = undo.kept.iter().take(MOST_NAMED);
    reasons.extend(kept.map(|(path, why)| format!("{} stays: {why}", path.display())));
    if let Some(more) = undo.kept.len().checked_sub(MOST_NAMED).filter(|it| *it > 0) {
        reasons.push(format!("{} stay too", counted(more, "file")));
    }
    let records = || {
        turn.records
            .iter()
            .chain(later.iter().flat_map(|it| &it.records))
    };
    let unclear = records()
        .flat_map(|it| &it.unclear)
        .map(|it| it.display().to_string());
    let mut unclear: Vec<_> = unclear.collect();
    unclear.dedup();
    if !unclear.is_empty() {
        let unclear = named(unclear);
        reasons.push(format!(
            "changed by you or another command at the same time, and stays: {unclear}"
        ));
    }
    for record in records() {
        if let (ChangeCause::Call { what, .. }, Some(why)) = (&record.by, &record.unknown) {
            reasons.push(format!(
                "what `{}` changed is not known, and stays: {why}",
                short_command(what)
            ));
        }
    }
    if since.iter().any(|it| it.interrupted) {
        reasons.push(
            "what a call changed that was interrupted when co ended is not known, and stays"
                .to_owned(),
        );
    }
    if records().any(|it| matches!(it.by, ChangeCause::Call { command: true, .. })) {
        reasons.push(COMMANDS_DO_MORE.to_owned());
    }
    reasons.iter().map(|reason| one_line(reason)).collect()
}

/// Returns a sentence about a job that has not ended.
pub(super) fn running_job(number: u64) -> String {
    format!("what job {number} changed while no command ran stays until the job has ended")
}

/// Returns the diff that the question shows.
pub(super) fn change(undo: &Undo, store: &Store) -> Change {
    let all = undo.all();
    let (mut added, mut removed) = (0, 0);
    for change in &all {
        let (more, fewer, _) = change.lines(store);
        (added, removed) = (added + more, removed + fewer);
    }
    let files = ChangedFile::all(all.iter().copied(), store);
    Change {
        whole: true,
        undo: true,
        unsaved: !undo.buffers.is_empty(),
        added,
        removed,
        ..ChangedFile::for_question(&all, &files, store)
    }
}

/// Returns a quickfix entry for each file that a call changed.
pub(super) fn entries(record: &Record, taken_back: bool, store: &Store) -> Vec<QuickfixEntry> {
    let Some(call) = call_words(record) else {
        return Vec::new();
    };
    let back = if taken_back { " · taken back" } else { "" };
    let call = format!("{call}{back}");
    let entry = |path: &PathBuf, line, text: String| QuickfixEntry {
        file: record.workspace.join(path).display().to_string(),
        line,
        text: one_line(&text),
    };
    let changes = record
        .changes
        .iter()
        .filter(|change| !change.is_directory());
    let mut entries: Vec<_> = changes
        .map(|change| {
            let summary = change.summary(store);
            let text = format!("{} · {call}", summary.counts);
            entry(&change.path, summary.line, text)
        })
        .collect();
    let unclear = record.unclear.iter();
    entries.extend(unclear.map(|path| entry(path, 1, format!("perhaps not by it · {call}"))));
    if let Some(why) = &record.unknown {
        entries.push(QuickfixEntry {
            file: String::new(),
            line: 0,
            text: one_line(&format!("changes not known: {why} · {call}")),
        });
    }
    entries
}

/// Returns the text of the call that a record belongs to, and the way in which the call was approved. Returns `None` if the
/// person changed the files.
pub(super) fn call_words(record: &Record) -> Option<String> {
    let ChangeCause::Call { what, decision, .. } = &record.by else {
        return None;
    };
    let decision = match decision {
        Decision::Rule { rule } => format!("allowed by {rule}"),
        Decision::AutoConfirm => "everything was allowed".to_owned(),
        Decision::Approved => "approved".to_owned(),
        _ => "unasked".to_owned(),
    };
    Some(format!("{} · {decision}", one_line(&short_command(what))))
}

/// Returns the changes without those of directories. If only directories changed, returns all changes.
pub(super) fn without_directories<'a>(
    changes: impl Iterator<Item = &'a checkpoint::Change> + Clone,
) -> Vec<&'a checkpoint::Change> {
    let files: Vec<_> = changes.clone().filter(|it| !it.is_directory()).collect();
    if files.is_empty() {
        return changes.collect();
    }
    files
}

/// Returns a text about the changes for the person.
pub(super) fn changed_words(done: &UndoResult, by: &ChangeCause, with_chat: bool) -> String {
    let changed = counted(without_directories(done.changes.iter()).len(), "file");
    match by {
        ChangeCause::Redo => format!("{changed} brought back"),
        ChangeCause::TakenBack => format!("parts of {changed} taken back; :Co /redo undoes that"),
        _ if with_chat => {
            format!("{changed} taken back; :Co /redo in the original chat undoes that")
        }
        _ => format!("{changed} taken back; :Co /redo undoes that"),
    }
}

/// Returns a text about the changes for the model.
pub(super) fn note(done: &UndoResult, by: &ChangeCause) -> String {
    let changes = without_directories(done.changes.iter()).into_iter();
    let paths: Vec<_> = changes.map(|it| it.path.display().to_string()).collect();
    let did = match by {
        ChangeCause::Redo => "brought changes back that they had taken back",
        ChangeCause::TakenBack => "took parts of your changes back",
        _ => "took changes of an earlier turn back",
    };
    let mut note = format!("The person {did}.");
    if !paths.is_empty() {
        let paths = named(paths);
        note.push_str(&format!(
            " Read these files again before you change them: {paths}."
        ));
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;
    use co_llm::transcript::{End, Outcome, ShownPart, Usage};

    #[test]
    fn a_call_that_was_interrupted_is_named() {
        let outcome = |text: &str| {
            Item::Outcome(Outcome {
                shown: Some(ShownPart::default()),
                ..Outcome::new("1", text, false)
            })
        };
        let user = |text: &str| Item::user(text);
        let end = || Item::End {
            reason: End::Done,
            usage: Usage::default(),
            explained: false,
        };
        let items = [
            user("first"),
            outcome("exit 0"),
            end(),
            user("second\nline"),
            outcome(INTERRUPTED),
            user("steers the second"),
            end(),
            end(),
        ];
        let turns = turns(&items);
        let named = |turn| {
            let turn = TurnChanges {
                turn,
                last: turn,
                records: Vec::new(),
            };
            reasons(&turns, &turn, &[], &Undo::default())
        };
        let interrupted =
            "what a call changed that was interrupted when co ended is not known, and stays";
        assert_eq!(named(0), ["of the turn “first”", interrupted]);
        assert_eq!(named(1), ["of the turn “second…”", interrupted]);
        assert_eq!(named(2), ["of the turn “second…”"]);
    }
}
