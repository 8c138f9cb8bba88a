//! Applies the person's answers about the parts of a proposal.

use co_edit::Hunk;

use super::EditRefused;
use super::proposal::Proposal;
use crate::protocol::{FileChange, HunkAnswer, ReviewText};

impl Proposal {
    /// Returns the change of the file in the form that a review shows.
    pub fn for_review(&self) -> FileChange {
        FileChange {
            path: co_text::one_line(&self.path),
            added: self.added(),
            removed: self.removed(),
            without_lines: self.without_lines(),
            parts: self.parts(),
            whole: !self.is_by_lines(),
            text: ReviewText::new(&self.facts(), &self.marked()),
            calls: Vec::new(),
            answers: Vec::new(),
        }
    }
}

/// Returns the hunks that the person accepted. If the person wrote other lines for a hunk, the returned hunk has these lines.
fn accepted_hunks<'a>(
    hunks: &[Hunk],
    answers: impl IntoIterator<Item = &'a HunkAnswer>,
) -> Vec<Hunk> {
    let both = hunks.iter().zip(answers);
    both.filter(|(_, answer)| answer.accept)
        .map(|(hunk, answer)| Hunk {
            at: hunk.at.clone(),
            text: answer
                .lines
                .as_ref()
                .map_or_else(|| hunk.text.clone(), |lines| lines_as_text(lines, hunk)),
        })
        .collect()
}

/// Returns the proposal with only the accepted hunks; none if the person accepted no hunk.
///
/// # Errors
/// The answers do not match the hunks of the proposal, or the encoding of the file cannot store the text that the person wrote.
pub fn reviewed(
    proposal: Proposal,
    answers: &[HunkAnswer],
) -> Result<Option<Proposal>, EditRefused> {
    if proposal.parts() != answers.len() {
        return Err(EditRefused(
            "the review is not one of this change".to_owned(),
        ));
    }
    if !proposal.is_by_lines() && answers.iter().any(|answer| answer.lines.is_some()) {
        let why = "the change can only be made as a whole, without another text";
        return Err(EditRefused(why.to_owned()));
    }
    if !proposal.is_by_lines() {
        let accepted = answers.iter().all(|answer| answer.accept);
        return Ok(accepted.then_some(proposal));
    }
    let (old, all) = (proposal.old_text().unwrap_or_default(), proposal.hunks());
    let accepted = accepted_hunks(all, answers);
    let mut notes = Vec::new();
    for (number, (hunk, answer)) in all.iter().zip(answers).enumerate() {
        let whole = answer.accept && answer.lines.is_none();
        if !whole || answer.comment.is_some() {
            notes.push(note(number + 1, answers.len(), hunk, answer));
        }
    }
    if accepted.is_empty() {
        return Ok(None);
    }
    let text = co_edit::apply_hunks(old, &accepted);
    proposal.with_text(&text, notes).map(Some)
}

/// Returns a short text about the person's answer. Returns `None` if they accepted all hunks without a change.
pub fn answer_in_words(answers: &[HunkAnswer]) -> Option<String> {
    let accepted = answers.iter().filter(|answer| answer.accept);
    let own = accepted.clone().filter(|it| it.lines.is_some()).count();
    let rewritten = match own {
        0 => String::new(),
        own => format!(", {own} with your text"),
    };
    match accepted.count() {
        count if count == answers.len() && own == 0 => None,
        count => Some(format!(
            "you: {count} of {} changes{rewritten}",
            answers.len()
        )),
    }
}

/// Returns the person's comments about the hunks; none if there are no comments.
pub fn comments(answers: &[HunkAnswer]) -> Option<String> {
    let comments = answers
        .iter()
        .filter_map(|answer| answer.comment.as_deref());
    let comments: Vec<_> = comments.collect();
    (!comments.is_empty()).then(|| comments.join("; "))
}

/// Returns the text of a hunk with the lines that the person wrote. It ends with a line break if the hunk did.
pub fn lines_as_text(lines: &[String], hunk: &Hunk) -> String {
    let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    if !hunk.text.is_empty() && !hunk.text.ends_with('\n') {
        text.pop();
    }
    text
}

/// Returns a sentence for the model about a hunk that was not made as proposed, or that has a comment.
fn note(number: usize, total: usize, hunk: &Hunk, answer: &HunkAnswer) -> String {
    let outcome = match (answer.accept, &answer.lines) {
        (false, _) => "was not made",
        (true, Some(_)) => "was made with another text",
        (true, None) => "was made",
    };
    let line = hunk.at.start + 1;
    let said = match &answer.comment {
        Some(comment) => format!("; the person says: {comment}"),
        None => String::new(),
    };
    format!("change {number} of {total}, at line {line}, {outcome}{said}")
}
