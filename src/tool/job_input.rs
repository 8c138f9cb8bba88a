//! What is typed into a command that runs, as a shell might read it: for deny rules, which know commands only.

/// Bytes that are remembered of a line: as many characters as a command may have.
const LINE: usize = 4 * co_policy::MAX_CHARS;

/// Keys that take the last character back.
const RUBOUTS: [char; 2] = ['\u{8}', '\u{7f}'];

/// Keys that cancel a line, or send it as it is: ^C, ^D, ^K, ^U.
const CANCELS: [char; 4] = ['\u{3}', '\u{4}', '\u{b}', '\u{15}'];

/// What was typed of a line that has not ended.
#[derive(Debug, Clone, Default)]
pub struct Line(String);

impl Line {
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Takes in what was typed after it.
    pub fn push(&mut self, text: &str) {
        self.0.push_str(text);
        let mut from = unended(&self.0).max(self.0.len().saturating_sub(LINE));
        while !self.0.is_char_boundary(from) {
            from += 1;
        }
        self.0.drain(..from);
    }
}

/// All that `text`, typed where `before` stands already, could be to a shell: by itself and as the end of its line,
/// with control characters as the ends of lines, which keys that cancel one are, and without them; the whole where
/// that may be read whole, and each line, since one that is not understood hides the others.
pub fn readings(before: &str, text: &str) -> Vec<String> {
    let joined = format!("{before}{text}");
    let mut all: Vec<String> = Vec::new();
    for lines in [
        broken(text),
        broken(&joined),
        rubbed(&joined, is_end),
        rubbed(&joined, |it| is_end(it) || CANCELS.contains(&it)),
    ] {
        let each = split(&lines).into_iter().map(str::to_owned);
        let mut each: Vec<String> = each.filter(|line| !line.trim().is_empty()).collect();
        if each.len() > 1 && lines.chars().count() <= co_policy::MAX_CHARS {
            each.push(lines);
        }
        all.extend(each);
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn is_end(typed: char) -> bool {
    matches!(typed, '\n' | '\r')
}

/// Control characters but for the tab as ends of lines.
fn broken(typed: &str) -> String {
    typed.replace(|it: char| it.is_control() && it != '\t', "\n")
}

/// What is left where control characters end a line, take back or do nothing.
fn rubbed(typed: &str, ends: impl Fn(char) -> bool) -> String {
    let mut left = String::with_capacity(typed.len());
    for it in typed.chars() {
        if RUBOUTS.contains(&it) {
            left.pop();
        } else if ends(it) {
            left.push('\n');
        } else if !it.is_control() || it == '\t' {
            left.push(it);
        }
    }
    left
}

/// Where the line begins that has not ended; a backslash takes a line into the next.
fn unended(typed: &str) -> usize {
    let ends = typed.char_indices().filter(|(_, it)| is_end(*it));
    let mut ends = ends.filter(|(at, _)| !typed[..*at].ends_with('\\'));
    ends.next_back().map_or(0, |(at, _)| at + 1)
}

/// The lines, those that a backslash joins as one.
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

    /// Whether some reading holds `git push` as a line of its own.
    fn pushes(pieces: &[&str]) -> bool {
        let mut line = Line::default();
        let (last, first) = pieces.split_last().unwrap();
        for piece in first {
            line.push(piece);
        }
        readings(line.text(), last)
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
            &["x", "git push x"],
        ] {
            assert!(!pushes(pieces), "{pieces:?}");
        }
    }

    #[test]
    fn a_line_that_does_not_end_is_remembered_as_far_as_it_may_be_read() {
        let mut line = Line::default();
        line.push(&"é".repeat(3 * co_policy::MAX_CHARS));
        assert!(line.text().len() <= LINE && line.text().len() > LINE - 4);
        line.push("\n");
        assert_eq!(line.text(), "");
    }

    #[test]
    fn a_long_text_is_read_line_by_line() {
        let text = "line\n".repeat(co_policy::MAX_CHARS);
        assert_eq!(readings("", &text), ["line\n"]);
        assert_eq!(readings("", "\n"), [""; 0]);
    }
}
