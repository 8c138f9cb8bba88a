//! Helper functions for text: continued lines and lists of words.

/// A text in which continued lines are joined.
#[derive(Debug, Default)]
pub(super) struct JoinedText {
    pub text: String,
    /// The byte offsets in `text` at which a backslash and a newline were removed.
    pub removed: Vec<usize>,
}

impl JoinedText {
    /// Returns the byte offset in the original text for a byte offset in the joined text.
    pub(super) fn original(&self, at: usize) -> usize {
        at + 2 * self.removed.iter().filter(|cut| **cut <= at).count()
    }
}

/// Joins continued lines. bash does the same before it splits a text into words.
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

/// Returns true if `word` is in a list of words, which is separated by spaces.
pub(super) fn has_word(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
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
}
