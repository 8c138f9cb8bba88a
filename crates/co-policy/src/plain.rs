//! Parses a command line of literal words, for the person's allow rules.
//!
//! A command that a rule allows runs with all rights of the person. So this parser accepts only simple command lines: literal
//! words, the operators `;`, `&&`, `||`, `|` and newline, and redirections to `/dev/null` or between descriptors.

use co_text::first_hidden;

/// The reserved words of bash, which are syntax at the start of a command.
const RESERVED: [&str; 22] = [
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

/// The characters that have no special meaning outside quotes.
const BARE: &str = "_-+./:=@%,^#";

/// Returns the words of each simple command. Returns `None` if the command line is not of the accepted form.
pub(crate) fn commands(text: &str) -> Option<Vec<Vec<String>>> {
    if first_hidden(text).is_some() {
        return None;
    }
    let mut reader = Reader {
        chars: text.trim().chars().peekable(),
        commands: Vec::new(),
        words: Vec::new(),
    };
    reader.read()?;
    Some(reader.commands)
}

struct Reader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    commands: Vec<Vec<String>>,
    words: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self) -> Option<()> {
        while let Some(c) = self.chars.peek().copied() {
            match c {
                ' ' | '\t' => drop(self.chars.next()),
                ';' | '\n' => {
                    self.chars.next();
                    self.end_command()?;
                    self.skip_blank_lines();
                }
                '|' | '&' => self.operator()?,
                '>' => self.redirection()?,
                '#' => return None,
                _ => self.word()?,
            }
        }
        match self.words.is_empty() {
            true => (!self.commands.is_empty()).then_some(()),
            false => self.end_command(),
        }
    }

    /// Parses `|`, `||` or `&&`, or the redirection `&>/dev/null`.
    fn operator(&mut self) -> Option<()> {
        let first = self.chars.next()?;
        match (first, self.chars.peek()) {
            ('&', Some('>')) => return self.redirection(),
            ('&', Some('&')) | ('|', Some('|')) => drop(self.chars.next()),
            // `|&` is refused with the `&`.
            ('|', _) => {}
            _ => return None,
        }
        self.end_command()?;
        self.skip_blank_lines();
        self.chars.peek().map(|_| ())
    }

    fn skip_blank_lines(&mut self) {
        while self
            .chars
            .next_if(|c| matches!(c, ' ' | '\t' | '\n'))
            .is_some()
        {}
    }

    /// Parses the target of a redirection after `>`: `/dev/null`, or `&` and a descriptor.
    fn redirection(&mut self) -> Option<()> {
        self.chars.next()?;
        if self.chars.next_if_eq(&'&').is_some() {
            let digit = self.chars.next()?;
            return (matches!(digit, '1' | '2') && self.at_word_end()).then_some(());
        }
        while self.chars.next_if_eq(&' ').is_some() {}
        for expected in "/dev/null".chars() {
            self.chars.next_if_eq(&expected)?;
        }
        self.at_word_end().then_some(())
    }

    fn at_word_end(&mut self) -> bool {
        let end = |c: &char| matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|');
        self.chars.peek().is_none_or(end)
    }

    fn word(&mut self) -> Option<()> {
        let (mut word, mut quoted) = (String::new(), false);
        while let Some(c) = self.chars.peek().copied() {
            match c {
                '\'' => {
                    quoted = true;
                    self.single_quotes(&mut word)?;
                }
                '"' => {
                    quoted = true;
                    self.double_quotes(&mut word)?;
                }
                _ if c.is_ascii_alphanumeric() || BARE.contains(c) => {
                    self.chars.next();
                    word.push(c);
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' => break,
                // `2>` with its descriptor.
                '>' if !quoted && matches!(word.as_str(), "1" | "2") => return self.redirection(),
                _ => return None,
            }
        }
        let first = self.words.is_empty();
        let syntax = RESERVED.contains(&word.as_str()) || word.contains('=');
        if first && (syntax || word.is_empty()) {
            return None;
        }
        self.words.push(word);
        Some(())
    }

    fn single_quotes(&mut self, word: &mut String) -> Option<()> {
        self.chars.next()?;
        loop {
            match self.chars.next()? {
                '\'' => return Some(()),
                c => word.push(c),
            }
        }
    }

    fn double_quotes(&mut self, word: &mut String) -> Option<()> {
        self.chars.next()?;
        loop {
            match self.chars.next()? {
                '"' => return Some(()),
                '$' | '`' | '\\' | '!' => return None,
                c => word.push(c),
            }
        }
    }

    fn end_command(&mut self) -> Option<()> {
        let words = std::mem::take(&mut self.words);
        (!words.is_empty()).then(|| self.commands.push(words))
    }
}

#[cfg(test)]
mod tests {
    use super::commands;

    fn check(text: &str, expected: &[&[&str]]) {
        assert_eq!(
            commands(text).as_deref().unwrap_or_default(),
            expected,
            "{text:?}"
        );
    }

    #[test]
    fn reads_literal_command_lines() {
        check("cargo test", &[&["cargo", "test"]]);
        check(" cargo  test --lib ", &[&["cargo", "test", "--lib"]]);
        check(
            "a; b && c || d | e",
            &[&["a"], &["b"], &["c"], &["d"], &["e"]],
        );
        check("a\n\nb;\n", &[&["a"], &["b"]]);
        check("a 'b c' \"d e\" f'g'\"h\"", &[&["a", "b c", "d e", "fgh"]]);
        check("a 2>&1 | b >/dev/null", &[&["a"], &["b"]]);
        check("a >&2 2> /dev/null &>/dev/null", &[&["a"]]);
        check("a x=y 'é'", &[&["a", "x=y", "é"]]);
        check("a &&\nb", &[&["a"], &["b"]]);
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            ";",
            "a &",
            "a & b",
            "a |& b",
            "a >f",
            "a >>f",
            "a <f",
            "a 2>f",
            "a >/dev/nullx",
            "a $x",
            "a \"$x\"",
            "a `b`",
            "a $(b)",
            "a \\b",
            "a *",
            "a ?",
            "a [b]",
            "a {b,c}",
            "a ~/x",
            "x=1 a",
            "(a)",
            "{ a; }",
            "if a; then b; fi",
            "! a",
            "time a",
            "a () { b; }",
            "a 'b",
            "a \"b",
            "a # b",
            "#a",
            "a; ; b",
            "a && ",
            "| a",
            "&& a",
            "a é",
            "a 3>&1",
            "a 12>&1",
            "a >&3",
            "a >&1x",
            "a \"b!c\"",
            "[[ a ]]",
            "''",
            "a <<X\nb\nX",
            "function a",
            "coproc a",
            "a >& f",
            "a '\u{202e}'",
        ] {
            assert_eq!(commands(text), None, "{text:?}");
        }
    }
}
