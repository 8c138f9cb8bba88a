//! The texts about changes of files: those of the question, and the entries of the quickfix list.

use std::path::PathBuf;

use super::super::text::{one_line, short};
use crate::checkpoint::{By, Record, Store, TurnChanges, Undo};
use crate::protocol::{Change, QuickfixEntry};
use co_llm::transcript::{Decision, Item};

/// The longest difference that a question shows, in bytes.
const LONGEST_DIFF: usize = 1 << 20;

/// The most files that a text names.
const MOST_NAMED: usize = 20;

const COMMANDS_DO_MORE: &str = "what its commands changed outside the workspace, in ignored or secret files, in git or over the network stays";

/// Returns the first line of the prompt of each turn.
pub(super) fn prompts(items: &[Item]) -> Vec<String> {
    let mut prompt = String::new();
    let mut prompts = Vec::new();
    for item in items {
        match item {
            Item::User { text, .. } => prompt = short(text),
            Item::End { .. } => prompts.push(prompt.clone()),
            _ => {}
        }
    }
    prompts
}

/// Returns the sentences of the question: the turn, and what stays.
pub(super) fn reasons(
    prompt: &str,
    turn: &TurnChanges,
    later: &[TurnChanges],
    undo: &Undo,
) -> Vec<String> {
    let mut reasons = vec![format!("of the turn “{}”", one_line(prompt))];
    let kept = undo.kept.iter().take(MOST_NAMED);
    reasons.extend(kept.map(|(path, why)| format!("{} stays: {why}", path.display())));
    if let Some(more) = undo.kept.len().checked_sub(MOST_NAMED).filter(|it| *it > 0) {
        reasons.push(format!("{} stay too", files(more)));
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
        if let (By::Call { what, .. }, Some(why)) = (&record.by, &record.unknown) {
            reasons.push(format!(
                "what `{}` changed is not known, and stays: {why}",
                short(what)
            ));
        }
    }
    if records().any(|it| matches!(it.by, By::Call { command: true, .. })) {
        reasons.push(COMMANDS_DO_MORE.to_owned());
    }
    reasons.iter().map(|reason| one_line(reason)).collect()
}

/// Returns the difference for the question.
pub(super) fn change(undo: &Undo, store: &Store) -> Change {
    let all = undo.all();
    let (mut added, mut removed) = (0, 0);
    let mut diff = format!("{}\n", files(all.len()));
    for change in all {
        let (more, fewer, _) = change.lines(store);
        (added, removed) = (added + more, removed + fewer);
        if diff.len() < LONGEST_DIFF {
            diff.push_str(&change.diff(store));
        } else {
            diff.push_str(&format!("{}: +{more} -{fewer}\n", change.path.display()));
        }
    }
    Change {
        path: String::new(),
        undo: true,
        unsaved: !undo.buffers.is_empty(),
        added,
        removed,
        diff: co_policy::printable(&diff),
        text: None,
        hunks: Vec::new(),
    }
}

/// Returns an entry of the quickfix list for each file that a call changed.
pub(super) fn entries(record: &Record, taken_back: bool, store: &Store) -> Vec<QuickfixEntry> {
    let By::Call { what, decision, .. } = &record.by else {
        return Vec::new();
    };
    let decision = match decision {
        Decision::Rule { rule } => format!("allowed by {rule}"),
        Decision::AutoConfirm => "everything was allowed".to_owned(),
        Decision::Approved => "approved".to_owned(),
        _ => "unasked".to_owned(),
    };
    let back = if taken_back { " · taken back" } else { "" };
    let call = format!("{} · {decision}{back}", one_line(&short(what)));
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
            let (added, removed, line) = change.lines(store);
            entry(&change.path, line, format!("+{added} -{removed} · {call}"))
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

/// Returns some of the paths, and the number of the others.
pub(super) fn named(mut paths: Vec<String>) -> String {
    let more = paths.len().saturating_sub(MOST_NAMED);
    paths.truncate(MOST_NAMED);
    let paths = paths.join(", ");
    match more {
        0 => paths,
        more => format!("{paths} and {} more", files(more)),
    }
}

pub(super) fn files(count: usize) -> String {
    format!("{count} {}", if count == 1 { "file" } else { "files" })
}
