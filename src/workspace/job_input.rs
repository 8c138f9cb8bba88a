//! Splits the text that is typed into a running command into the lines that a shell would read.
//!
//! Deny rules only match commands, so each line is compared with them as if a shell read it. Another program may interpret the
//! text differently.

use co_text::end_of;

/// The largest number of bytes that are kept of a line. It is enough for the largest number of characters of a command.
const MAX_LINE_BYTES: usize = 4 * co_policy::MAX_CHARS;

/// The characters of the keys that delete the last character.
const RUBOUTS: [char; 2] = ['\u{8}', '\u{7f}'];

/// The characters of the keys that cancel a line, or send it without a line break: ^C, ^D, ^K, ^U.
const CANCELS: [char; 4] = ['\u{3}', '\u{4}', '\u{b}', '\u{15}'];

/// The typed part of a line that has no line break yet.
#[derive(Debug, Clone, Default)]
pub struct UnfinishedLine(String);

impl UnfinishedLine {
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Appends typed text, and removes the lines that have ended.
    pub fn push(&mut self, text: &str) {
        self.0.push_str(text);
        let line = &self.0[last_line_start(&self.0)..];
        self.0 = end_of(line, MAX_LINE_BYTES).to_owned();
    }
}

/// Returns the lines of `text` that a shell could read as commands. `before` is the unfinished line before `text`.
///
/// Each line is judged alone, because a line that cannot be parsed would hide the others.
pub fn lines(before: &str, text: &str) -> Vec<String> {
    let typed = apply_controls(&format!("{before}{text}"));
    let mut lines: Vec<String> = split(&typed).into_iter().map(str::to_owned).collect();
    lines.retain(|line| !line.trim().is_empty());
    lines.sort_unstable();
    lines.dedup();
    lines
}

fn is_end(typed: char) -> bool {
    matches!(typed, '\n' | '\r')
}

/// Applies the control characters of a text, which end a line, delete a character or do nothing. Returns the resulting text.
fn apply_controls(typed: &str) -> String {
    let mut left = String::with_capacity(typed.len());
    for it in typed.chars() {
        if RUBOUTS.contains(&it) {
            left.pop();
        } else if is_end(it) || CANCELS.contains(&it) {
            left.push('\n');
        } else if !it.is_control() || it == '\t' {
            left.push(it);
        }
    }
    left
}

/// Returns the byte index at which the unfinished line starts. A backslash continues a line on the next one.
fn last_line_start(typed: &str) -> usize {
    let ends = typed.char_indices().filter(|(_, it)| is_end(*it));
    let mut ends = ends.filter(|(at, _)| !typed[..*at].ends_with('\\'));
    ends.next_back().map_or(0, |(at, _)| at + 1)
}

/// Splits a text into lines. Lines that are joined by a backslash are one line.
fn split(lines: &str) -> Vec<&str> {
    let mut rest = lines;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let mut ends = rest.match_indices('\n');
        let end = ends.find(|(at, _)| !rest[..*at].ends_with('\\'));
        let end = end.map_or(rest.len(), |(at, _)| at + 1);
        all.push(&rest[..end]);
        rest = &rest[end..];
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks whether `git push` is a line of its own.
    fn pushes(pieces: &[&str]) -> bool {
        let mut line = UnfinishedLine::default();
        let (last, first) = pieces.split_last().unwrap();
        for piece in first {
            line.push(piece);
        }
        lines(line.text(), last)
            .iter()
            .any(|it| it.trim().replace("\\\n", "") == "git push")
    }

    #[test]
    fn a_line_is_read_however_it_was_typed() {
        for pieces in [
            &["git push\n"][..],
            &["git pu", "sh\n"],
            &["git", " ", "push"],
            &["git \\\n", "push\n"],
            &["echo '\ngit pu", "sh"],
            &["git pu\u{5}", "sh\n"],
            &["git pu\0sh\n"],
            &["git pux\u{7f}", "sh\n"],
            &["x\u{15}git pu", "sh\n"],
            &["x\u{15}git pux\u{7f}sh\n"],
            &["x\u{15}git pu\u{5}", "sh\n"],
            &["git push\necho '"],
            &["ls\rgit push\r"],
            &["git ", "push \n"],
        ] {
            assert!(pushes(pieces), "{pieces:?}");
        }
        for pieces in [
            &["git push\n", "ls\n"][..],
            &["git pu\n", "sh\n"],
            &["x", "git push"],
            &["echo pus\u{8}\u{8}", "git push"],
            &["git\u{5}\u{1}push"],
        ] {
            assert!(!pushes(pieces), "{pieces:?}");
        }
    }

    #[test]
    fn a_line_that_does_not_end_is_remembered_as_far_as_it_may_be_read() {
        let mut line = UnfinishedLine::default();
        line.push(&"é".repeat(3 * co_policy::MAX_CHARS));
        assert!(line.text().len() <= MAX_LINE_BYTES && line.text().len() > MAX_LINE_BYTES - 4);
        line.push("\n");
        assert_eq!(line.text(), "");
    }

    #[test]
    fn a_long_text_is_read_line_by_line() {
        let text = "line\n".repeat(co_policy::MAX_CHARS);
        assert_eq!(lines("", &text), ["line\n"]);
        assert_eq!(lines("", "\n"), [""; 0]);
    }
}
