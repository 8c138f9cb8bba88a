//! The plainest of bash, read without the grammar: words, quotes, lists, pipes, `2>/dev/null`.
//!
//! Most commands are no more than that, and the grammar takes longer for them than all the rest of a
//! verdict. Whatever is not plain beyond doubt is left to the grammar; a test holds both to the same.

use super::forms::RESERVED;
use super::{Join, Redirect, Script, Simple};
use crate::policy::word;

/// Signs that mean nothing to bash in an unquoted word, or what [`word::read`] makes of them.
const SIGNS: &[u8] = b"_-./,:@%+=*?[]{}^!";

/// Builtins whose words the grammar reads as assignments.
const DECLARES: [&str; 6] = ["declare", "export", "local", "readonly", "typeset", "unset"];

/// Reads a command; none where anything in it is not plain.
pub(super) fn read(source: &str) -> Option<Script> {
    let mut plain = Plain {
        source,
        at: 0,
        script: Script::default(),
        join: Join::Then,
        piped: false,
        open: None,
    };
    plain.run()?;
    Some(plain.script)
}

struct Plain<'a> {
    source: &'a str,
    at: usize,
    script: Script,
    /// How the next command is joined to the one before.
    join: Join,
    piped: bool,
    /// The command that words are added to.
    open: Option<Simple>,
}

impl Plain<'_> {
    fn run(&mut self) -> Option<()> {
        // True behind an operator that needs another command.
        let mut wanted = false;
        while let Some(c) = self.peek() {
            match c {
                b' ' | b'\t' => self.at += 1,
                // At the start of a word, to bash as well: up to the end of the line.
                b'#' => {
                    let rest = &self.source[self.at..];
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                b'\n' => {
                    self.at += 1;
                    if self.open.is_some() {
                        self.close(Join::Then, false)?;
                    }
                }
                b';' => {
                    self.at += 1;
                    self.close(Join::Then, false)?;
                }
                b'&' | b'|' => {
                    let twice = self.source.as_bytes().get(self.at + 1) == Some(&c);
                    self.at += if twice { 2 } else { 1 };
                    let after = self.peek();
                    if after == Some(b'&') || after == Some(b'|') || (c == b'&' && !twice) {
                        return None;
                    }
                    let join = match (c, twice) {
                        (b'&', _) => Join::And,
                        (_, true) => Join::Or,
                        _ => Join::Then,
                    };
                    self.close(join, !twice)?;
                    wanted = true;
                }
                _ => {
                    self.token()?;
                    wanted = false;
                }
            }
        }
        if self.open.is_some() {
            self.close(Join::Then, false)?;
        }
        (!wanted).then_some(())
    }

    fn peek(&self) -> Option<u8> {
        self.source.as_bytes().get(self.at).copied()
    }

    /// Ends a command; `join` and `piped` say how the next one follows.
    fn close(&mut self, join: Join, piped: bool) -> Option<()> {
        let command = self.open.take()?;
        let first = command.words.first()?;
        let raw = first.raw.as_str();
        if RESERVED.contains(&raw)
            || DECLARES.contains(&raw)
            || raw == "["
            || first.raw.contains('=')
        {
            return None;
        }
        let index = self.script.commands.len();
        self.script.commands.push(command);
        match (self.piped, self.script.pipelines.last_mut()) {
            (true, Some((_, pipeline))) => pipeline.push(index),
            _ => self.script.pipelines.push((self.join, vec![index])),
        }
        (self.join, self.piped) = (join, piped);
        Some(())
    }

    /// Reads a redirection or a word.
    fn token(&mut self) -> Option<()> {
        let start = self.at;
        if let Some(redirect) = self.redirect() {
            self.open_at(start, redirect.span.end)
                .redirects
                .push(redirect);
            return Some(());
        }
        let span = start..self.word(start)?;
        let word = word::read(self.source, span.clone());
        if word.opaque.is_some() {
            return None;
        }
        self.at = span.end;
        self.open_at(start, span.end).words.push(word);
        Some(())
    }

    fn open_at(&mut self, start: usize, end: usize) -> &mut Simple {
        let command = self.open.get_or_insert_with(|| Simple {
            span: start..end,
            ..Simple::default()
        });
        command.span.end = end;
        command
    }

    /// `2>/dev/null`, `> /dev/null`, `2>&1`, `< file`, behind a word.
    fn redirect(&mut self) -> Option<Redirect> {
        self.open.as_ref()?;
        let start = self.at;
        let rest = &self.source[start..];
        if rest.starts_with('<') {
            return self.input();
        }
        let (operator, target) = if rest.starts_with("2>&1") {
            ("2>&", start + 3..start + 4)
        } else {
            let operator = ["2>", "1>", ">"]
                .into_iter()
                .find(|op| rest.starts_with(op))?;
            let after = &rest[operator.len()..];
            let file = after.trim_start_matches([' ', '\t']);
            let from = start + operator.len() + after.len() - file.len();
            file.strip_prefix("/dev/null")?;
            (operator, from..from + "/dev/null".len())
        };
        if !self.ends(target.end) {
            return None;
        }
        self.at = target.end;
        Some(Redirect {
            span: start..target.end,
            operator: operator.to_owned(),
            target: Some(word::read(self.source, target)),
        })
    }

    /// `< file`; a here-document, a descriptor or a command in place of the file is not plain.
    fn input(&mut self) -> Option<Redirect> {
        let start = self.at;
        let file = self.source[start + 1..].trim_start_matches([' ', '\t']);
        let from = self.source.len() - file.len();
        let span = from..self.word(from)?;
        let target = word::read(self.source, span.clone());
        if span.is_empty() || target.opaque.is_some() {
            return None;
        }
        self.at = span.end;
        Some(Redirect {
            span: start..span.end,
            operator: "<".to_owned(),
            target: Some(target),
        })
    }

    /// True where a word may end.
    fn ends(&self, at: usize) -> bool {
        let after = self.source.as_bytes().get(at);
        after.is_none_or(|c| matches!(c, b' ' | b'\t' | b'\n' | b';' | b'|' | b'&'))
    }

    /// Returns where the word ends that begins at `start`.
    fn word(&self, start: usize) -> Option<usize> {
        let bytes = self.source.as_bytes();
        let mut at = start;
        while !self.ends(at) {
            at = match bytes[at] {
                b'\'' => at + 2 + bytes[at + 1..].iter().position(|c| *c == b'\'')?,
                b'"' => double(bytes, at + 1)?,
                b'\\' => escaped(bytes, at + 1)?,
                b'$' => variable(bytes, at + 1)?,
                b'#' if at > start => at + 1,
                c if c.is_ascii_alphanumeric() || SIGNS.contains(&c) => at + 1,
                _ => return None,
            };
        }
        Some(at)
    }
}

/// Skips what stands between double quotes, and the closing one.
fn double(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = match *bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => escaped(bytes, at + 1)?,
            b'$' if matches!(bytes.get(at + 1), Some(b'"' | b' ' | b'|' | b')')) => at + 1,
            b'$' => variable(bytes, at + 1)?,
            b'`' => return None,
            _ => at + 1,
        };
    }
}

/// Skips the character behind a backslash, which is not the end of a line.
fn escaped(bytes: &[u8], at: usize) -> Option<usize> {
    let c = bytes.get(at)?;
    (c.is_ascii_graphic() || *c == b' ').then_some(at + 1)
}

/// Skips the first character of a variable's plain name, or the `?` of `$?`.
fn variable(bytes: &[u8], at: usize) -> Option<usize> {
    let c = bytes.get(at)?;
    (c.is_ascii_alphabetic() || matches!(c, b'_' | b'?')).then_some(at + 1)
}
