//! The lines of a file that are most similar to a text. An error message shows them, so that the model can correct its edit; no
//! edit is applied to them.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::loose::significant;

/// The largest number of lines that are shown.
const MAX_SHOWN_LINES: usize = 10;
/// The largest number of characters of a line that are shown.
const MAX_SHOWN_CHARS: usize = 200;
/// The largest number of characters of a line that are compared.
const MAX_COMPARED_CHARS: usize = 300;
/// The smallest similarity, from 0 to 1, at which lines are shown.
const MIN_LIKENESS: f64 = 0.3;

/// Some lines of a file, with their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestLines {
    /// The number of the first line, from 1.
    pub first: usize,
    pub lines: Vec<String>,
}

impl NearestLines {
    /// Returns `count` lines of a file from the index `start` on.
    pub(crate) fn at(file: &[&str], start: usize, count: usize) -> Self {
        let cut = |line: &&str| line.chars().take(MAX_SHOWN_CHARS).collect();
        let lines = file
            .iter()
            .skip(start)
            .take(count.clamp(1, MAX_SHOWN_LINES));
        Self {
            first: start + 1,
            lines: lines.map(cut).collect(),
        }
    }

    /// Returns the lines of the file that are most similar to a text. Returns `None` if no lines are similar enough.
    pub(crate) fn find(file: &[&str], text: &str) -> Option<Self> {
        let wanted: Vec<ComparedLine> = text.lines().map(ComparedLine::of).collect();
        let starts = [by_equal_lines(file, &wanted), by_one_line(file, &wanted)];
        let rated = starts.into_iter().flatten().map(|start| {
            let found = file.iter().skip(start).map(|line| ComparedLine::of(line));
            let like: Vec<f64> = wanted.iter().zip(found).map(|(a, b)| a.like(&b)).collect();
            let weight = |line: &ComparedLine| line.pairs.len() as f64 + 1.0;
            let total: f64 = wanted.iter().map(weight).sum();
            let rating = (wanted.iter().zip(&like)).map(|(line, like)| weight(line) * like);
            (rating.sum::<f64>() / total, start, like)
        });
        let (rating, start, like) = rated.max_by(|one, other| one.0.total_cmp(&other.0))?;
        if rating < MIN_LIKENESS {
            return None;
        }
        // Of a long text, the lines from the first difference on.
        let first_other = like.iter().position(|like| *like < 1.0).unwrap_or_default();
        let skipped = match wanted.len() > MAX_SHOWN_LINES {
            true => first_other
                .saturating_sub(1)
                .min(wanted.len() - MAX_SHOWN_LINES),
            false => 0,
        };
        Some(Self::at(file, start + skipped, wanted.len() - skipped))
    }
}

impl fmt::Display for NearestLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, line) in self.lines.iter().enumerate() {
            let end = if at + 1 < self.lines.len() { "\n" } else { "" };
            write!(f, "{:>6}\t{line}{end}", self.first + at)?;
        }
        Ok(())
    }
}

/// A line without insignificant white space, for comparisons.
struct ComparedLine {
    text: String,
    /// The pairs of adjacent characters in the line. The similarity of two lines is the share of common pairs.
    pairs: HashSet<(char, char)>,
}

impl ComparedLine {
    fn of(line: &str) -> Self {
        let text: String = significant(line).take(MAX_COMPARED_CHARS).collect();
        let pairs = text.chars().zip(text.chars().skip(1)).collect();
        Self { text, pairs }
    }

    /// Returns the similarity of two lines, from 0 to 1.
    fn like(&self, other: &Self) -> f64 {
        if self.text == other.text {
            return 1.0;
        }
        let common = self.pairs.intersection(&other.pairs).count();
        let total = self.pairs.len() + other.pairs.len();
        2.0 * common as f64 / total.max(1) as f64
    }
}

/// Returns the index of the first line of the part of the file that has the most lines in common with the text. Long and rare
/// lines count more.
fn by_equal_lines(file: &[&str], wanted: &[ComparedLine]) -> Option<usize> {
    let mut found: HashMap<&str, Vec<usize>> = wanted
        .iter()
        .filter(|line| !line.text.is_empty())
        .map(|line| (line.text.as_str(), Vec::new()))
        .collect();
    let mut text = String::new();
    for (at, line) in file.iter().enumerate() {
        text.clear();
        text.extend(significant(line).take(MAX_COMPARED_CHARS));
        if let Some(places) = found.get_mut(text.as_str()) {
            places.push(at);
        }
    }
    let mut votes: HashMap<usize, f64> = HashMap::new();
    for (offset, line) in wanted.iter().enumerate() {
        let places = found.get(line.text.as_str()).map_or(&[][..], Vec::as_slice);
        for start in places.iter().filter_map(|at| at.checked_sub(offset)) {
            *votes.entry(start).or_default() += line.text.len() as f64 / places.len() as f64;
        }
    }
    // The first of equal ones.
    votes
        .into_iter()
        .max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)))
        .map(|(start, _)| start)
}

/// Finds the line of the file that is most similar to the longest line of the text, and aligns the text with it. Returns the
/// index of the first line of the text in the file.
fn by_one_line(file: &[&str], wanted: &[ComparedLine]) -> Option<usize> {
    let (offset, longest) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.text.len())?;
    let rated = file
        .iter()
        .enumerate()
        .map(|(at, line)| (longest.like(&ComparedLine::of(line)), at));
    let (like, at) =
        rated.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)))?;
    (like > 0.0).then(|| at.saturating_sub(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "use a;\n\nfn first() {\n    one();\n}\n\nfn second(x: u8) {\n    two(x);\n    three();\n}\n";

    fn check(text: &str, expected: Option<(usize, usize)>) {
        let file: Vec<&str> = FILE.lines().collect();
        let found = NearestLines::find(&file, text).map(|it| (it.first, it.lines.len()));
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn the_nearest_lines_are_found() {
        check("fn second(x: u16) {\n", Some((7, 1)));
        check(
            "fn second(x: u8) {\n    two(y);\n    three();\n}\n",
            Some((7, 4)),
        );
        check("    two(x);\n    four();\n}", Some((8, 3)));
        check("}\n\nfn second(y: u8) {\n", Some((5, 3)));
        check("let me = \"go\";\n", None);
        check("", None);
    }

    #[test]
    fn a_long_text_is_shown_from_its_first_difference() {
        let file: Vec<String> = (0..40).map(|n| format!("line number {n}")).collect();
        let text = file[5..30].join("\n").replace("number 20", "numero 20");
        let file: Vec<&str> = file.iter().map(String::as_str).collect();
        let found = NearestLines::find(&file, &text).unwrap();
        assert_eq!((found.first, found.lines.len()), (20, MAX_SHOWN_LINES));
        assert_eq!(found.lines[1], "line number 20");
    }
}
