//! The changes of files that an agent asks permission for, as a review shows them: each file as it is now, with the lines that
//! would change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::protocol::{
    Change, Excerpt, Fact, FactKind, FileChange, ReviewText, fact_lines, without_lines,
};
use crate::tool::context::CallContext;
use crate::workspace::edits::{AnnouncedText, propose_announced};
use crate::workspace::judge::Judge;
use co_acp::schema::Diff;
use co_edit::Hunk;
use co_policy::obeyed;
use co_text::one_line;

/// The changes of files that a request for permission is about.
#[derive(Debug, Default)]
pub(super) struct AskedChange {
    /// None if it is about no file.
    pub change: Option<Change>,
    /// Sentences about files that co cannot compare with what the agent tells.
    pub notes: Vec<String>,
}

/// The change of a file.
struct AnnouncedFile {
    /// The file; none if the change shows only what the agent tells.
    real: Option<PathBuf>,
    file: FileChange,
    facts: Vec<Fact>,
    note: Option<String>,
}

/// Returns the changes that an agent tells, compared with the files as they are now.
pub(super) async fn asked_change(context: &CallContext, diffs: Vec<Diff>) -> AskedChange {
    if diffs.is_empty() {
        return AskedChange::default();
    }
    let (judge, cwd) = (Arc::clone(&context.judge), context.cwd.clone());
    let compare = move || {
        let files = by_path(&diffs).into_iter();
        let files = files.flat_map(|(path, texts)| announced_files(&judge, &cwd, path, &texts));
        files.collect::<Vec<_>>()
    };
    let all = match tokio::task::spawn_blocking(compare).await {
        Ok(all) => all,
        Err(error) => {
            tracing::error!(%error, "a change of an agent cannot be shown");
            return AskedChange {
                notes: vec!["co cannot show what it would change".to_owned()],
                ..AskedChange::default()
            };
        }
    };
    let open = context.read_buffers(all.iter().filter_map(|it| it.real.as_deref()));
    let open = open.await;
    let facts = all.iter().flat_map(|it| it.facts.iter().cloned());
    let facts = fact_lines(facts);
    let notes = all.iter().filter_map(|it| it.note.clone()).collect();
    let files: Vec<_> = all.into_iter().map(|it| it.file).collect();
    let words: Vec<_> = files.iter().map(|it| it.without_lines.clone()).collect();
    let change = Change {
        // An agent takes one answer for all of it.
        whole: true,
        unsaved: open.values().any(|buffer| buffer.modified),
        added: files.iter().map(|it| it.added).sum(),
        removed: files.iter().map(|it| it.removed).sum(),
        ..Change::new(facts, &Excerpt::of(&files), files).with_words(words)
    };
    AskedChange {
        change: Some(change),
        notes,
    }
}

/// Groups the announced texts by file. The files come in the order in which they first occur.
fn by_path(diffs: &[Diff]) -> Vec<(&Path, Vec<AnnouncedText>)> {
    let mut files: Vec<(&Path, Vec<AnnouncedText>)> = Vec::new();
    for diff in diffs {
        let text = AnnouncedText {
            before: diff.old_text.clone(),
            after: diff.new_text.clone(),
        };
        match files.iter_mut().find(|(path, _)| *path == diff.path) {
            Some((_, texts)) => texts.push(text),
            None => files.push((&diff.path, vec![text])),
        }
    }
    files
}

/// Returns the change of a file as it is now. If the texts do not fit the file, returns each as the agent tells it.
fn announced_files(
    judge: &Judge,
    cwd: &Path,
    path: &Path,
    texts: &[AnnouncedText],
) -> Vec<AnnouncedFile> {
    let place = judge.edit_place(&path.to_string_lossy(), cwd);
    let proposed = place.and_then(|place| propose_announced(&place, texts));
    if let Ok(proposal) = proposed {
        return vec![AnnouncedFile {
            real: Some(proposal.file().to_owned()),
            file: proposal.for_review(),
            facts: proposal.facts(),
            note: None,
        }];
    }
    let shown = path.strip_prefix(cwd).unwrap_or(path);
    let shown = one_line(&shown.display().to_string());
    let note = format!("co cannot compare {shown} with the file, so it shows what the agent tells");
    let mut files: Vec<_> = texts.iter().map(|text| told(&shown, text)).collect();
    if let Some(first) = files.first_mut() {
        first.note = Some(note);
    }
    files
}

/// Returns a change as the agent tells it.
fn told(path: &str, text: &AnnouncedText) -> AnnouncedFile {
    let before = text.before.as_deref().unwrap_or_default();
    let hunks = co_edit::hunks(before, &text.after);
    let why = obeyed::reason(Path::new(path));
    let facts: Vec<_> = why
        .map(|why| Fact {
            kind: FactKind::Runs,
            path: path.to_owned(),
            text: one_line(&why),
        })
        .into_iter()
        .collect();
    let marked = match hunks.is_empty() {
        true => "@\n".to_owned(),
        false => co_edit::marked(before, &hunks),
    };
    let file = FileChange {
        path: path.to_owned(),
        added: hunks.iter().map(Hunk::added).sum(),
        removed: hunks.iter().map(Hunk::removed).sum(),
        without_lines: (hunks.is_empty()).then(|| without_lines(&facts, text.before.is_none())),
        parts: hunks.len().max(1),
        whole: hunks.is_empty(),
        text: ReviewText::new(&facts, &marked),
        ..FileChange::default()
    };
    AnnouncedFile {
        real: None,
        file,
        facts,
        note: None,
    }
}
