//! Finds a text in a file although the white space differs.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::indent::{IndentShift, indentation, is_mixed};

/// Returns the characters of a line without insignificant white space. White space is significant if it separates two words or
/// two signs.
///
/// So `f( a, b )` and `f(a,b)` are the same, but `return x` and `returnx` differ, and so do `- -x` and `--x`.
pub(crate) fn significant(line: &str) -> impl Iterator<Item = char> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut characters = line.trim().chars().peekable();
    let mut last = None;
    std::iter::from_fn(move || {
        let mut next = characters.next()?;
        if next.is_whitespace() {
            while characters.next_if(|c| c.is_whitespace()).is_some() {}
            let after = *characters.peek()?;
            next = match last.map(is_word) == Some(is_word(after)) {
                true => ' ',
                false => characters.next()?,
            };
        }
        last = Some(next);
        Some(next)
    })
}

/// A text as a list of lines without their line breaks.
struct LineBlock<'a> {
    lines: Vec<&'a str>,
    /// True if the last line ends with a line break.
    closed: bool,
}

impl<'a> LineBlock<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            lines: text.lines().collect(),
            closed: text.ends_with('\n'),
        }
    }
}

/// Returns the places of the file that equal `old` except for white space. A place is the index of its first line.
pub(crate) fn places(file: &str, old: &str) -> Vec<usize> {
    let old = LineBlock::of(old);
    let file: Vec<&str> = file.lines().collect();
    if old.lines.iter().all(|line| line.trim().is_empty()) {
        return Vec::new();
    }
    let same = |window: &[&str]| {
        (window.iter().zip(&old.lines)).all(|(a, b)| significant(a).eq(significant(b)))
    };
    let windows = file.windows(old.lines.len()).enumerate();
    windows
        .filter(|(_, window)| same(window))
        .map(|(at, _)| at)
        .collect()
}

/// The replacement of the lines that equal `old` except for white space.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    /// The replaced byte range of the file.
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

/// Returns the replacement of `old` by `new`. In the file, `old` starts at the line with the index `line`. The replacement has
/// the indentation of the file; the function returns `None` if it cannot infer this indentation. Lines that `new` has in common
/// with `old` stay as they are in the file.
pub(crate) fn replacement(file: &str, line: usize, old: &str, new: &str) -> Option<Replacement> {
    let (old, new) = (LineBlock::of(old), LineBlock::of(new));
    let pieces: Vec<&str> = file.split_inclusive('\n').collect();
    let found = &pieces[line..line + old.lines.len()];
    let start: usize = pieces[..line].iter().map(|piece| piece.len()).sum();
    let length: usize = found.iter().map(|piece| piece.len()).sum();
    let has_break = found.last().is_some_and(|piece| piece.ends_with('\n'));
    let bare: Vec<&str> = found
        .iter()
        .map(|piece| piece.strip_suffix('\n').unwrap_or(piece))
        .collect();
    let mut text = merged(&bare, &old, &new)?.join("\n");
    // A file without a final line break stays so.
    if new.closed && (has_break || !old.closed) {
        text.push('\n');
    }
    let kept = usize::from(has_break && !old.closed);
    Some(Replacement {
        range: start..start + length - kept,
        text,
    })
}

/// Returns the lines of `new`. Lines that `new` has in common with `old` are taken from the file.
fn merged(file: &[&str], old: &LineBlock<'_>, new: &LineBlock<'_>) -> Option<Vec<String>> {
    let pairs: Vec<_> = (old.lines.iter().zip(file))
        .filter(|(old, _)| !old.trim().is_empty())
        .map(|(old, file)| (indentation(old), indentation(file)))
        .collect();
    let shift = IndentShift::of(&pairs);
    let mixed = pairs.iter().any(|(_, file)| is_mixed(file));
    let indented = |line: &&str| {
        if line.trim().is_empty() {
            return Some(String::new());
        }
        let own = indentation(line);
        let indent = shift.as_ref()?.apply(own)?;
        let fits = mixed || !is_mixed(&indent);
        fits.then(|| format!("{indent}{}", &line[own.len()..]))
    };
    let mut merged = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &old.lines, &new.lines) {
        match op {
            DiffOp::Equal { .. } => {
                merged.extend(file[op.old_range()].iter().map(|line| (*line).to_owned()));
            }
            _ => {
                for line in &new.lines[op.new_range()] {
                    merged.push(indented(line)?);
                }
            }
        }
    }
    Some(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_counts_between_words_and_between_signs() {
        let check = |one: &str, other: &str, same: bool| {
            let found = significant(one).eq(significant(other));
            assert_eq!(found, same, "{one:?} {other:?}");
        };
        check("  f( a,  b ) ", "f(a, b)", true);
        check("x=1", "x = 1", true);
        check("a\tb", "a  b", true);
        check("", "  ", true);
        check("return x", "returnx", false);
        check("- -x", "--x", false);
        check("a b", "a c", false);
    }

    fn check(file: &str, old: &str, new: &str, expected: Option<&str>) {
        let [line] = places(file, old)[..] else {
            panic!("{:?}", places(file, old));
        };
        let result = replacement(file, line, old, new).map(|it| {
            let mut text = file.to_owned();
            text.replace_range(it.range, &it.text);
            text
        });
        assert_eq!(result.as_deref(), expected, "{file:?} {old:?} {new:?}");
    }

    #[test]
    fn new_lines_get_the_indentation_of_the_file() {
        check(
            "if x:\n\tfoo()\n\tbar()\n",
            "    foo()\n    bar()\n",
            "    foo()\n    if y:\n        baz()\n    bar()\n",
            Some("if x:\n\tfoo()\n\tif y:\n\t\tbaz()\n\tbar()\n"),
        );
        check(
            "{\n    a;\n    b;\n}\n",
            "a;\nb;",
            "a;\nc;",
            Some("{\n    a;\n    c;\n}\n"),
        );
        check("  a  = 1\n  b\n", "a = 1\n  b", "a = 2\n  b", None);
    }

    #[test]
    fn lines_in_common_stay_as_the_file_has_them() {
        check(
            "f(a,b);  \nold();\n",
            "f(a, b);\nold();\n",
            "f(a, b);\nnew();\n",
            Some("f(a,b);  \nnew();\n"),
        );
    }

    #[test]
    fn the_end_of_the_file_stays_as_it_is() {
        check("a\n  b", "a\nb\n", "a\nb\n", Some("a\n  b"));
        check("a\nb  = 1", "b = 1\n", "b = 2\n", Some("a\nb = 2"));
        check("a  = 1\nb\n", "a = 1", "a = 2", Some("a = 2\nb\n"));
        check("a  = 1\nb\n", "a = 1\n", "", Some("b\n"));
        check("a  = 1\nb\n", "a = 1", "a = 2\n", Some("a = 2\n\nb\n"));
    }

    #[test]
    fn white_space_alone_stands_nowhere() {
        assert_eq!(places("a\n\n\n", " \n"), [0; 0]);
        assert_eq!(places("a\n  b\n b\n", "b  "), [1, 2]);
    }
}
