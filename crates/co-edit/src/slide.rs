//! Chooses among equal lines: if one of two lines `}` was removed, a diff does not say which one.

use std::collections::VecDeque;

use crate::diff::Hunk;
use crate::lines;

/// The largest number of lines by which a hunk moves up or down. A hunk that adds more lines does not move.
const MAX_MOVE: usize = 1000;

/// The lines that [`slide`] prefers if a hunk gives the same text in several places.
pub(crate) struct PreferredLines<R, A> {
    /// Takes the index of an old line. Returns true if this line should be the one that is removed.
    pub(crate) removed: R,
    /// Takes the index of an old line and an added line. Returns true if the addition should stand before this old line.
    pub(crate) added: A,
}

/// Moves the hunks that only remove lines or only add lines. If such a hunk gives the same text in several places, moves it to
/// the place where the largest number of its lines is preferred. At least one unchanged line stays between two
/// hunks.
pub(crate) fn slide<R, A>(hunks: &mut [Hunk], old: &[&str], preferred: &PreferredLines<R, A>)
where
    R: Fn(usize) -> bool,
    A: Fn(usize, &str) -> bool,
{
    for index in 0..hunks.len() {
        let first = index.checked_sub(1).map_or(0, |it| hunks[it].at.end + 1);
        let last = hunks.get(index + 1).map_or(old.len(), |it| it.at.start - 1);
        let hunk = &mut hunks[index];
        match (hunk.at.is_empty(), hunk.text.is_empty()) {
            (false, true) => slide_removal(hunk, old, (first, last), &preferred.removed),
            (true, false) => slide_addition(hunk, old, (first, last), &preferred.added),
            _ => {}
        }
    }
}

fn slide_removal(
    hunk: &mut Hunk,
    old: &[&str],
    (first, last): (usize, usize),
    is_preferred: impl Fn(usize) -> bool,
) {
    let count = |at: usize| i64::from(is_preferred(at));
    let (start, end) = (hunk.at.start, hunk.at.end);
    // The gain over the place of the diff.
    let mut best = (0, start);
    let mut gain = 0;
    for by in 1..=MAX_MOVE.min(start.saturating_sub(first)) {
        let (new, lost) = (start - by, end - by);
        if old[new] != old[lost] {
            break;
        }
        gain += count(new) - count(lost);
        if gain > best.0 {
            best = (gain, new);
        }
    }
    gain = 0;
    for by in 0..MAX_MOVE.min(last.saturating_sub(end)) {
        let (lost, new) = (start + by, end + by);
        if old[new] != old[lost] {
            break;
        }
        gain += count(new) - count(lost);
        if gain > best.0 {
            best = (gain, lost + 1);
        }
    }
    hunk.at = best.1..best.1 + (end - start);
}

fn slide_addition(
    hunk: &mut Hunk,
    old: &[&str],
    (first, last): (usize, usize),
    is_preferred: impl Fn(usize, &str) -> bool,
) {
    let added: VecDeque<&str> = lines(&hunk.text).into();
    if added.len() > MAX_MOVE {
        return;
    }
    let count = |at: usize, added: &VecDeque<&str>| {
        added.iter().filter(|line| is_preferred(at, line)).count()
    };
    let start = hunk.at.start;
    let mut best = (count(start, &added), start, added.clone());
    let mut moved = added.clone();
    for at in (first..start).rev().take(MAX_MOVE) {
        if moved.back() != Some(&old[at]) {
            break;
        }
        moved.rotate_right(1);
        let wanted = count(at, &moved);
        if wanted > best.0 {
            best = (wanted, at, moved.clone());
        }
    }
    moved = added;
    for at in (start..last).take(MAX_MOVE) {
        if moved.front() != Some(&old[at]) {
            break;
        }
        moved.rotate_left(1);
        let wanted = count(at + 1, &moved);
        if wanted > best.0 {
            best = (wanted, at + 1, moved.clone());
        }
    }
    let (_, at, added) = best;
    let text = Vec::from(added).concat();
    hunk.at = at..at;
    hunk.text = text;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::diff::{apply_hunks, hunks};

    fn slid(old: &str, new: &str, wanted: usize) -> Vec<Hunk> {
        let mut found = hunks(old, new);
        let preferred = PreferredLines {
            removed: |at| at == wanted,
            added: |at, _: &str| at == wanted,
        };
        slide(&mut found, &lines(old), &preferred);
        found
    }

    #[test]
    fn the_wanted_one_of_equal_lines_is_removed() {
        for wanted in 1..4 {
            let found = slid("a\n}\n}\n}\nb\n", "a\n}\n}\nb\n", wanted);
            assert_eq!(found[0].at, wanted..wanted + 1);
        }
        let found = slid("x\n}\n\ny\n}\n\nz\n", "x\n}\n\nz\n", 1);
        assert!(found[0].at.contains(&1), "{found:?}");
    }

    #[test]
    fn an_equal_line_is_added_at_the_wanted_place() {
        for wanted in 1..4 {
            let found = slid("a\n}\n}\nb\n", "a\n}\n}\n}\nb\n", wanted);
            assert_eq!(found[0].at, wanted..wanted);
        }
    }

    proptest! {
        #[test]
        fn the_same_text_is_made(
            old in "([ab]\n){0,8}",
            new in "([ab]\n){0,8}",
            wanted in 0..8_usize,
        ) {
            let found = slid(&old, &new, wanted);
            prop_assert_eq!(apply_hunks(&old, &found), new);
        }
    }
}
