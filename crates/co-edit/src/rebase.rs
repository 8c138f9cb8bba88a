//! Rebases changes onto a text that has changed in the meantime.

use crate::diff::{Hunk, hunks};

/// A change after the rebase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebaseResult {
    /// The change still applies. The hunk has the line numbers of the newer text.
    Moved(Hunk),
    /// The newer text differs from the base in the lines that this hunk replaces, so the hunk does not apply. The hunk has the
    /// line numbers of the base.
    Stale(Hunk),
}

/// Rebases changes of `base` onto `current`, a later version of `base`.
///
/// A change is stale if it overlaps a change between `base` and `current`, or if both add lines at the same place. The changes
/// must be sorted by line and must not overlap.
pub fn rebase(base: &str, changes: &[Hunk], current: &str) -> Vec<RebaseResult> {
    let theirs = hunks(base, current);
    let mut next = theirs.iter().peekable();
    let mut moved: isize = 0;
    let place = |change: &Hunk| {
        while let Some(their) = next.next_if(|their| is_before(their, change)) {
            moved += their.added().cast_signed() - their.removed().cast_signed();
        }
        match next.peek().filter(|their| !is_after(their, change)) {
            Some(_) => RebaseResult::Stale(change.clone()),
            None => RebaseResult::Moved(Hunk {
                at: change.at.start.saturating_add_signed(moved)
                    ..change.at.end.saturating_add_signed(moved),
                text: change.text.clone(),
            }),
        }
    };
    changes.iter().map(place).collect()
}

/// Returns true if `one` ends before `other` starts. Of two changes that add lines at the same place, neither is before the
/// other.
fn is_before(one: &Hunk, other: &Hunk) -> bool {
    let both_add = one.at.is_empty() && other.at.is_empty();
    one.at.end < other.at.start || one.at.end == other.at.start && !both_add
}

fn is_after(one: &Hunk, other: &Hunk) -> bool {
    is_before(other, one)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::apply_hunks;

    /// Applies the changes that are not stale to the changed text. Returns the new text, and the number of stale changes.
    fn rebased(base: &str, proposed: &str, current: &str) -> (String, usize) {
        let all = rebase(base, &hunks(base, proposed), current);
        let count = all.len();
        let fit: Vec<_> = all
            .into_iter()
            .filter_map(|one| match one {
                RebaseResult::Moved(hunk) => Some(hunk),
                RebaseResult::Stale(_) => None,
            })
            .collect();
        (apply_hunks(current, &fit), count - fit.len())
    }

    #[test]
    fn a_change_moves_with_its_lines_and_is_stale_where_they_changed() {
        for (base, proposed, current, expected, stale) in [
            ("a\nb\nc\n", "a\nB\nc\n", "x\na\nb\nc\n", "x\na\nB\nc\n", 0),
            ("a\nb\nc\n", "a\nB\nc\n", "a\nb\nc\ny\n", "a\nB\nc\ny\n", 0),
            ("a\nb\nc\n", "a\nB\nc\n", "b\nc\n", "B\nc\n", 0),
            ("a\nb\nc\n", "a\nB\nc\n", "a\nb2\nc\n", "a\nb2\nc\n", 1),
            // What is typed beside a change does not touch it.
            ("a\nb\nc\n", "a\nB\nc\n", "a\nx\nb\nc\n", "a\nx\nB\nc\n", 0),
            ("a\nb\nc\n", "a\nB\nc\n", "a\nb\nx\nc\n", "a\nB\nx\nc\n", 0),
            ("a\nb\n", "a\nnew\nb\n", "a\nmine\nb\n", "a\nmine\nb\n", 1),
            ("a\nb\nc\n", "c\n", "a\nx\nb\nc\n", "a\nx\nb\nc\n", 1),
            (
                "a\nb\nc\nd\n",
                "A\nb\nc\nD\n",
                "a1\nb\nc\nd\n",
                "a1\nb\nc\nD\n",
                1,
            ),
            ("a\n", "b\n", "", "", 1),
            ("", "b\n", "a\n", "a\n", 1),
        ] {
            let result = rebased(base, proposed, current);
            assert_eq!(
                result,
                (expected.to_owned(), stale),
                "{base:?} {proposed:?} {current:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_text_that_did_not_change_takes_every_change(base in "[ab\n]{0,40}", proposed in "[ab\n]{0,40}") {
            prop_assert_eq!(rebased(&base, &proposed, &base), (proposed, 0));
        }

        #[test]
        fn what_was_typed_elsewhere_stays(
            lines in proptest::collection::vec("[a-z]{1,4}", 3..12), at in 0..12_usize, typed in 0..12_usize
        ) {
            let (at, typed) = (at % lines.len(), typed % lines.len());
            prop_assume!(at != typed);
            let unique: Vec<_> = lines.iter().enumerate().map(|(n, line)| format!("{n}{line}\n")).collect();
            let change = |place: usize, word: &str| {
                let mut lines = unique.clone();
                lines[place] = format!("{word}\n");
                lines
            };
            let both = {
                let mut lines = change(at, "PROPOSED");
                lines[typed] = "TYPED\n".to_owned();
                lines.concat()
            };
            let result = rebased(&unique.concat(), &change(at, "PROPOSED").concat(), &change(typed, "TYPED").concat());
            prop_assert_eq!(result, (both, 0));
        }
    }
}
