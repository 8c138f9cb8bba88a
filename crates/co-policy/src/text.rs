//! Helpers for text: invisible characters, continued lines, lists of words.

/// Text with its continued lines joined.
#[derive(Debug, Default)]
pub(super) struct JoinedText {
    pub text: String,
    /// Byte offsets in `text` at which a backslash and a newline were removed.
    pub removed: Vec<usize>,
}

impl JoinedText {
    /// Returns the offset in the original text of a byte of the joined text.
    pub(super) fn original(&self, at: usize) -> usize {
        at + 2 * self.removed.iter().filter(|cut| **cut <= at).count()
    }
}

/// Joins continued lines as bash does before it splits words.
pub(super) fn join_lines(source: &str) -> JoinedText {
    if !source.contains("\\\n") {
        return JoinedText {
            text: source.to_owned(),
            removed: Vec::new(),
        };
    }
    let mut joined = JoinedText::default();
    let mut chars = source.chars().peekable();
    let (mut single, mut double, mut comment) = (false, false, false);
    let mut before = '\n';
    while let Some(c) = chars.next() {
        match c {
            '\n' => comment = false,
            _ if comment => {}
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '#' if !single && !double && " \t\n;&|()".contains(before) => comment = true,
            '\\' if !single => match chars.next() {
                Some('\n') => {
                    joined.removed.push(joined.text.len());
                    continue;
                }
                Some(next) => {
                    joined.text.push(c);
                    joined.text.push(next);
                    before = next;
                    continue;
                }
                None => {}
            },
            _ => {}
        }
        joined.text.push(c);
        before = c;
    }
    joined
}

/// Returns the first invisible or control character, with its offset.
pub(super) fn first_hidden(text: &str) -> Option<(usize, char)> {
    text.char_indices()
        .find(|(_, c)| !matches!(c, ' ' | '\t' | '\n') && is_hidden(*c))
}

/// True if a list of words with spaces between them contains a word.
pub(super) fn has_word(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

/// Returns `text` with control, zero-width and bidirectional characters escaped.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && c != '\t' && is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Returns `text` as one line, with line breaks escaped too; see [`printable`].
pub fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n")
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}'
            | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whole characters from the start of a text, at most `most` bytes.
pub fn start_of(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_as_bash_does() {
        let cases = [
            ("a \\\nb", "a b"),
            ("'a\\\nb'", "'a\\\nb'"),
            ("\"a\\\nb\"", "\"ab\""),
            ("# c\\\nrm x", "# c\\\nrm x"),
            ("a\\\\\nb", "a\\\\\nb"),
            ("\"$\\\n(rm)\"", "\"$(rm)\""),
            ("a#\\\nb", "a#b"),
            ("# c\na \\\nb", "# c\na b"),
            ("\"'\" 'a\\\nb'", "\"'\" 'a\\\nb'"),
            ("'\"' \"a\\\nb\"", "'\"' \"ab\""),
            ("'a #' \\\nb", "'a #' b"),
            ("\"a #\" \\\nb", "\"a #\" b"),
        ];
        for (source, expected) in cases {
            assert_eq!(join_lines(source).text, expected, "{source:?}");
        }
        let joined = join_lines("a \\\nbc");
        assert_eq!(joined.original(2), 4);
        assert_eq!(joined.original(0), 0);
    }

    #[test]
    fn hides_nothing() {
        assert_eq!(printable("a\u{202e}b\u{7}"), "a\\u{202e}b\\u{7}");
        assert_eq!(printable("ä\tb\n"), "ä\tb\n");
        assert_eq!(first_hidden("ls\rrm"), Some((2, '\r')));
        assert_eq!(first_hidden("ls 'ä'"), None);
    }
}
