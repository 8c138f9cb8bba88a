//! Makes an edit of one text in another one that differs from it.

use std::borrow::Cow;

use crate::diff::{Hunk, apply_hunks, hunks};
use crate::lines;

/// A line of the text to which an edit is carried.
struct BaseLine<'a> {
    text: &'a str,
    /// The edited text has it too.
    shared: bool,
    /// The number of lines of the edited text before it.
    place: usize,
}

/// Makes the edit that turned `seen` into `now` in `base` too. `seen` was made of `base`.
///
/// The lines that differ between `base` and `seen` still differ afterwards, unless the edit is about them:
/// - A line that only `base` has stays in the result. If the edit adds the same line there, the result has it once.
/// - A line that only `seen` has is not in the result.
/// - A line that the edit adds is in the result, behind the lines that only `base` has there; a line that replaces others is before
///   those that follow these.
pub fn carry(base: &str, seen: &str, now: &str) -> String {
    // The last line break is not a part of a line here: else a line that follows would change the one above.
    let [base, seen, now] = [base, seen, now].map(Ending::of);
    let lines_of_base = base_lines(&base.text, &seen.text);
    let mut rest = lines_of_base.as_slice();
    let mut result = String::new();
    for edit in hunks(&seen.text, &now.text) {
        let before = rest.partition_point(|it| it.place < edit.at.start);
        result.extend(rest[..before].iter().map(|it| it.text));
        // Lines that only the base has may stand at the end of the edit too.
        let inside = |it: &BaseLine| it.place < edit.at.end + usize::from(!it.shared);
        let end = before + rest[before..].partition_point(inside);
        // What is inserted goes behind them, what replaces lines before them.
        let behind = (!edit.at.is_empty()).then_some(edit.at.end);
        merge(&rest[before..end], &edit.text, behind, &mut result);
        rest = &rest[end..];
    }
    result.extend(rest.iter().map(|it| it.text));
    let last = lines(&result).last().copied();
    let is_last_of = |it: &Ending| last == lines(&it.text).last().copied();
    let ends = match (is_last_of(&now), is_last_of(&base)) {
        (true, true) if now.ends == seen.ends => base.ends,
        (true, _) => now.ends,
        (false, true) => base.ends,
        (false, false) => true,
    };
    if !ends {
        result.pop();
    }
    result
}

/// A text, of which each line ends with a line break.
struct Ending<'a> {
    text: Cow<'a, str>,
    /// The text itself ends with one, or is empty.
    ends: bool,
}

impl<'a> Ending<'a> {
    fn of(text: &'a str) -> Self {
        let ends = text.is_empty() || text.ends_with('\n');
        let text = match ends {
            true => text.into(),
            false => format!("{text}\n").into(),
        };
        Self { text, ends }
    }
}

fn base_lines<'a>(base: &'a str, seen: &str) -> Vec<BaseLine<'a>> {
    let changes = hunks(base, seen);
    let mut changes = changes.iter().peekable();
    let mut place = 0;
    let lines = lines(base).into_iter().enumerate().map(|(at, text)| {
        while let Some(done) = changes.next_if(|it| it.at.end <= at) {
            place += done.added();
        }
        let shared = changes.peek().is_none_or(|it| at < it.at.start);
        let line = BaseLine {
            text,
            shared,
            place,
        };
        place += usize::from(shared);
        line
    });
    lines.collect()
}

/// Writes the lines of the base in the place of an edit, with those that the edit adds. The lines that only the base has at the place
/// `behind` go behind these.
fn merge(base: &[BaseLine], added: &str, behind: Option<usize>, result: &mut String) {
    let old: String = base.iter().map(|it| it.text).collect();
    let kept = hunks(&old, added).into_iter().map(|hunk| {
        let stay = base[hunk.at.clone()].iter().filter(|it| !it.shared);
        let (last, first): (Vec<_>, Vec<_>) = stay.partition(|it| Some(it.place) == behind);
        let [first, last] =
            [first, last].map(|all| all.iter().map(|it| it.text).collect::<String>());
        Hunk {
            at: hunk.at,
            text: first + &hunk.text + &last,
        }
    });
    result.push_str(&apply_hunks(&old, &kept.collect::<Vec<_>>()));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_edit_is_made_in_a_text_that_differs() {
        for (base, seen, now, expected) in [
            // Elsewhere.
            ("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n", "a\nb\nc\nd\n"),
            ("a\nb\nc\n", "a\nB\nc\n", "B\nc\n", "b\nc\n"),
            ("a\nb\nc\n", "a\nc\n", "x\na\nc\n", "x\na\nb\nc\n"),
            // In the same place.
            ("a\nb\nc\n", "a\nB\nc\n", "a\nB2\nc\n", "a\nb\nB2\nc\n"),
            ("a\nb\n", "a\nb\nx\ny\nz\n", "a\nb\nx\nY\nz\n", "a\nb\nY\n"),
            ("a\nb\n", "a\nb\nx\ny\n", "a\nb\n", "a\nb\n"),
            ("a\nb\nc\n", "a\nc\n", "a\nx\nc\n", "a\nb\nx\nc\n"),
            ("", "x\ny\n", "x\nme\ny\n", "me\n"),
            // Directly above.
            ("a\nb\nc\n", "a\nb\nC\n", "a\nx\nC\n", "a\nx\nc\n"),
            ("a\nb\nc\n", "a\nc\n", "A\nc\n", "A\nb\nc\n"),
            ("x\nb\n", "x\n", "y\nb\n", "y\nb\n"),
            // What was changed is as before again.
            ("a\nb\nc\n", "a\nc\n", "a\nb\nc\n", "a\nb\nc\n"),
            ("a\nb\nc\n", "a\nB\nc\n", "a\nb\nc\n", "a\nb\nc\n"),
            ("a\nb\nc\n", "", "a\nb\n", "a\nb\nc\n"),
            // A last line without its line break.
            ("a\nb", "a\nb\nc", "a\nb\nc\nd", "a\nb\nd"),
            ("a\nb", "a\nb\nc", "a\nb\nc\n", "a\nb"),
            ("a", "a\n", "x\na\n", "x\na"),
        ] {
            assert_eq!(
                carry(base, seen, now),
                expected,
                "{base:?} {seen:?} {now:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn an_edit_of_the_same_text_or_back_to_it_is_exact(
            base in "([abc]{0,2}\n){0,6}[ab]?",
            seen in "([abc]{0,2}\n){0,6}[ab]?",
            now in "([abc]{0,2}\n){0,6}[ab]?",
        ) {
            prop_assert_eq!(carry(&base, &base, &now), now.clone());
            prop_assert_eq!(carry(&base, &seen, &seen), base.clone());
            let carried = carry(&base, &seen, &now);
            // No line of the edit is lost.
            let [seen, now] = [&seen, &now].map(|it| Ending::of(it).text);
            for hunk in hunks(&seen, &now) {
                for line in hunk.text.lines() {
                    prop_assert!(carried.lines().any(|it| it == line));
                }
            }
        }
    }
}
