//! The difference of two texts, by lines.

use std::fmt::Write;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use crate::lines;

/// The time limit of an exact diff. After this time, the diff may be coarser.
const DIFF_TIMEOUT: Duration = Duration::from_millis(300);
/// The number of unchanged lines that a unified diff shows before and after a change.
const CONTEXT_LINES: usize = 3;

/// A change of some lines of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The line numbers, from 0, of the lines that the hunk replaces.
    pub at: Range<usize>,
    /// The new lines, each with its line break.
    pub text: String,
}

impl Hunk {
    /// Returns the number of lines that the hunk adds.
    pub fn added(&self) -> usize {
        self.text.split_inclusive('\n').count()
    }

    /// Returns the number of lines that the hunk removes.
    pub fn removed(&self) -> usize {
        self.at.len()
    }
}

/// The names of a file before and after a change. A name is `None` if the file does not exist at that time. A name that begins
/// with a quote is already quoted as in git.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    pub old: Option<&'a str>,
    pub new: Option<&'a str>,
}

/// Returns the hunks that turn `old` into `new`, from top to bottom. Two hunks neither overlap nor touch.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let (old, new) = (lines(old), lines(new));
    let ops = capture_diff_slices_deadline(
        Algorithm::Myers,
        &old,
        &new,
        Some(Instant::now() + DIFF_TIMEOUT),
    );
    let mut hunks: Vec<Hunk> = Vec::new();
    for op in ops {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (at, text) = (op.old_range(), new[op.new_range()].concat());
        match hunks.last_mut().filter(|last| last.at.end == at.start) {
            Some(last) => {
                last.at.end = at.end;
                last.text.push_str(&text);
            }
            None => hunks.push(Hunk { at, text }),
        }
    }
    hunks
}

/// Applies hunks to a text and returns the new text. The hunks must be sorted by line and must not overlap.
pub fn apply_hunks(text: &str, hunks: &[Hunk]) -> String {
    let lines = lines(text);
    let mut whole = String::with_capacity(text.len());
    let mut at = 0;
    for hunk in hunks {
        whole.extend(lines[at..hunk.at.start].iter().copied());
        whole.push_str(&hunk.text);
        at = hunk.at.end;
    }
    whole.extend(lines[at..].iter().copied());
    whole
}

/// Returns the whole text with its changes, in the format of a unified diff. The first character of each line is its mark (`+`,
/// `-` or a space). A line `@` begins each change.
pub fn marked(old: &str, hunks: &[Hunk]) -> String {
    let old = lines(old);
    let mut text = String::new();
    let mut at = 0;
    for hunk in hunks {
        write_lines(&mut text, ' ', old[at..hunk.at.start].iter().copied());
        text.push_str("@\n");
        write_hunk(&mut text, &old, hunk);
        at = hunk.at.end;
    }
    write_lines(&mut text, ' ', old[at..].iter().copied());
    text
}

/// Returns the unified diff of the changes of a text. The diff is empty if there are no changes.
pub fn unified(old: &str, hunks: &[Hunk], names: Names<'_>) -> String {
    let old = lines(old);
    let mut diff = String::new();
    if hunks.is_empty() {
        return diff;
    }
    let name = |side: &str, name: Option<&str>| match name {
        Some(name) => {
            // A name takes one line, so that it cannot pass for lines of the diff.
            let name = name.replace('\n', "\\n");
            match name.strip_prefix('"') {
                Some(quoted) => format!("\"{side}/{quoted}"),
                None => format!("{side}/{name}"),
            }
        }
        None => "/dev/null".to_owned(),
    };
    // Writing to a string does not fail.
    let _written = write!(
        diff,
        "--- {}\n+++ {}\n",
        name("a", names.old),
        name("b", names.new)
    );
    // Lines of the new text before a hunk, less those of the old one.
    let mut moved: isize = 0;
    for group in hunks.chunk_by(|one, next| next.at.start - one.at.end <= 2 * CONTEXT_LINES) {
        write_group(&mut diff, &old, group, &mut moved);
    }
    diff
}

fn write_group(diff: &mut String, old: &[&str], group: &[Hunk], moved: &mut isize) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return;
    };
    let from = first.at.start.saturating_sub(CONTEXT_LINES);
    let to = (last.at.end + CONTEXT_LINES).min(old.len());
    let added: usize = group.iter().map(Hunk::added).sum();
    let removed: usize = group.iter().map(Hunk::removed).sum();
    let start = from.saturating_add_signed(*moved);
    let old_range = range(from, to - from);
    let new_range = range(start, to - from + added - removed);
    let _written = writeln!(diff, "@@ -{old_range} +{new_range} @@");
    let mut at = from;
    for hunk in group {
        write_lines(diff, ' ', old[at..hunk.at.start].iter().copied());
        write_hunk(diff, old, hunk);
        at = hunk.at.end;
    }
    write_lines(diff, ' ', old[at..to].iter().copied());
    *moved += added.cast_signed() - removed.cast_signed();
}

fn write_hunk(diff: &mut String, old: &[&str], hunk: &Hunk) {
    write_lines(diff, '-', old[hunk.at.clone()].iter().copied());
    write_lines(diff, '+', hunk.text.split_inclusive('\n'));
}

/// Returns a range of lines in the notation of a unified diff: the number of its first line, and its length if this is not one
/// line. For an empty range, the first number is the number of the line before the range.
fn range(start: usize, length: usize) -> String {
    match length {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{length}", start + 1),
    }
}

fn write_lines<'a>(diff: &mut String, sign: char, lines: impl Iterator<Item = &'a str>) {
    for line in lines {
        diff.push(sign);
        diff.push_str(line);
        if !line.ends_with('\n') {
            diff.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(old: &str, new: &str, expected: &str) {
        let names = Names {
            old: Some("f"),
            new: Some("f"),
        };
        assert_eq!(unified(old, &hunks(old, new), names), expected);
    }

    #[test]
    fn a_diff_has_the_unified_form() {
        check("a\n", "a\n", "");
        check("a\n", "b\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n");
        check("", "b\n", "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+b\n");
        check("a\nb\n", "", "--- a/f\n+++ b/f\n@@ -1,2 +0,0 @@\n-a\n-b\n");
        check(
            "a\nb",
            "a\nc\n",
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n",
        );
        check(
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "x\n1\n2\n3\n4\n5\n6\n7\n8\n",
            "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n+x\n 1\n 2\n 3\n@@ -6,4 +7,3 @@\n 6\n 7\n 8\n-9\n",
        );
        let diff = |new| {
            let names = Names {
                old: None,
                new: Some(new),
            };
            unified("", &hunks("", "a\n"), names)
        };
        assert_eq!(diff("f"), "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n");
        assert_eq!(
            diff("f\n+b"),
            "--- /dev/null\n+++ b/f\\n+b\n@@ -0,0 +1 @@\n+a\n"
        );
    }

    #[test]
    fn a_marked_text_is_whole() {
        let check = |old: &str, new: &str, expected: &str| {
            assert_eq!(marked(old, &hunks(old, new)), expected);
        };
        check("a\n", "a\n", " a\n");
        check("", "a\nb\n", "@\n+a\n+b\n");
        check(
            "a\nb\nc\nd",
            "a\nB\nc\n",
            " a\n@\n-b\n+B\n c\n@\n-d\n\\ No newline at end of file\n",
        );
    }

    proptest! {
        #[test]
        fn the_hunks_of_two_texts_make_one_of_the_other(old in "[ab\n]{0,40}", new in "[ab\n]{0,40}") {
            let hunks = hunks(&old, &new);
            prop_assert_eq!(apply_hunks(&old, &hunks), new);
            for pair in hunks.windows(2) {
                prop_assert!(pair[0].at.end < pair[1].at.start);
            }
        }
    }
}
