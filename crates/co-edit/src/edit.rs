//! Replaces texts in a file.

use std::fmt;

use memchr::memmem::Finder;
use serde::Deserialize;

use crate::error::{EditError, Refusal};
use crate::loose;
use crate::nearest::NearestLines;
use crate::text::{FileText, typed};

/// The replacement of one text by another.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The text to replace. It must occur exactly once in the file, unless `all` is true.
    pub old: String,
    pub new: String,
    /// True if the edit replaces every occurrence of `old`.
    #[serde(default)]
    pub all: bool,
}

/// A file after the edits of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedText {
    pub file: FileText,
    pub notes: Vec<Note>,
}

/// A note that the file differed from `old` in white space. Lines count from 1, in the text to which the edit was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The position of the edit in the request, from 1.
    pub edit: usize,
    pub first: usize,
    pub last: usize,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { edit, first, last } = self;
        let lines = match first == last {
            true => format!("line {first}, which differs"),
            false => format!("lines {first} to {last}, which differ"),
        };
        write!(
            f,
            "edit {edit} replaced {lines} from `old` in white space, and `new` got the file's indentation"
        )
    }
}

/// Applies edits to a file. Each edit applies to the result of the edit before it.
///
/// # Errors
/// One of the edits cannot be applied. In this case the function applies none of them.
pub fn apply(file: &FileText, edits: &[Edit]) -> Result<EditedText, EditError> {
    let fail = |number, refusal| EditError {
        number,
        total: edits.len(),
        refusal,
    };
    if edits.is_empty() {
        return Err(fail(0, Refusal::NoEdits));
    }
    let mut edited = EditedText {
        file: file.clone(),
        notes: Vec::new(),
    };
    for (at, edit) in edits.iter().enumerate() {
        let fail = |refusal| fail(at + 1, refusal);
        if exact(&mut edited.file, edit).map_err(fail)? {
            continue;
        }
        if let Some(overlap) = overlap(file, &edits[..at], &edit.old) {
            return Err(fail(overlap));
        }
        let (first, last) = with_other_space(&mut edited.file, edit).map_err(fail)?;
        edited.notes.push(Note {
            edit: at + 1,
            first,
            last,
        });
    }
    match edited.file == *file {
        true => Err(fail(edits.len(), Refusal::Unchanged)),
        false => Ok(edited),
    }
}

/// Replaces `old` if it occurs literally in the file. Returns false if it does not occur.
fn exact(file: &mut FileText, edit: &Edit) -> Result<bool, Refusal> {
    let (old, new) = (typed(&edit.old), typed(&edit.new));
    if old.is_empty() {
        return Err(Refusal::EmptyOld);
    }
    if old == new {
        return Err(Refusal::NothingToDo);
    }
    let text = file.as_str();
    let finder = Finder::new(old.as_bytes());
    let (mut places, mut from) = (Vec::new(), 0);
    // The next place may overlap the last one.
    while let Some(next) = finder.find(&text.as_bytes()[from..]) {
        if file.is_at(from + next, &old) {
            places.push(from + next);
            if edit.all {
                break;
            }
        }
        from += next + 1;
    }
    match places[..] {
        [] => Ok(false),
        _ if edit.all => {
            file.replace_all(&old, &new);
            Ok(true)
        }
        [at] => {
            file.replace(at..at + old.len(), &new);
            Ok(true)
        }
        _ => Err(Refusal::Several(line_numbers(text, &places))),
    }
}

/// Replaces `old` in a place that differs from `old` only in white space. Returns the numbers of the first and the last line of
/// this place.
fn with_other_space(file: &mut FileText, edit: &Edit) -> Result<(usize, usize), Refusal> {
    let (old, new) = (typed(&edit.old), typed(&edit.new));
    let text = file.as_str();
    let count = old.lines().count();
    let line = match loose::places(text, &old)[..] {
        [line] => line,
        [] => {
            let lines: Vec<&str> = text.lines().collect();
            let nearest = NearestLines::find(&lines, &old);
            return Err(nearest.map_or(Refusal::NothingNear, Refusal::Absent));
        }
        ref several => {
            let lines = several.iter().map(|line| line + 1).collect();
            return Err(Refusal::SeveralLoose(lines));
        }
    };
    let Some(replacement) = loose::replacement(text, line, &old, &new) else {
        let lines: Vec<&str> = text.lines().collect();
        return Err(Refusal::Indentation(NearestLines::at(&lines, line, count)));
    };
    if text[replacement.range.clone()] == replacement.text {
        return Err(Refusal::Unchanged);
    }
    file.replace(replacement.range, &replacement.text);
    Ok((line + 1, line + count))
}

/// Returns the refusal of an edit whose `old` was in the file until an earlier edit of the request changed it.
fn overlap(file: &FileText, earlier: &[Edit], old: &str) -> Option<Refusal> {
    let old = typed(old);
    let mut file = file.clone();
    let mut at = file.as_str().find(&*old)?;
    for (number, edit) in earlier.iter().enumerate() {
        let line = line_numbers(file.as_str(), &[at])[0];
        if !exact(&mut file, edit).ok()? {
            with_other_space(&mut file, edit).ok()?;
        }
        match file.as_str().find(&*old) {
            Some(place) => at = place,
            None => {
                let earlier = number + 1;
                return Some(Refusal::Overlap { earlier, line });
            }
        }
    }
    None
}

/// Returns the line numbers, from 1, of the given byte offsets in a text. The offsets must be in ascending order.
fn line_numbers(text: &str, places: &[usize]) -> Vec<usize> {
    let mut from = 0;
    let mut line = 1;
    let number = |at: &usize| {
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[from..*at]).count();
        from = *at;
        line
    };
    places.iter().map(number).collect()
}

#[cfg(test)]
mod tests;
