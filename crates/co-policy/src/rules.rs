//! The person's rules. Each rule is a pattern for the words of a command.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::deny::glob::Glob;
use crate::form::{self, CommandForm};
use crate::sort;

/// The tools that change files. The words of their rules may be globs of paths: `edit_file src/**`.
pub const EDIT_TOOLS: [&str; 4] = ["edit_file", "write_file", "delete_file", "move_file"];

/// The prefix of the names of tool servers and their tools in rules.
pub(crate) const TOOL_SERVER: &str = "mcp:";

/// The person's policy settings. Rules are patterns of words: `cargo test` matches `cargo test --lib`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicySettings {
    /// The only programs that may run without approval. It is `None` if all read-only programs of the tables may.
    pub safe_commands: Option<Vec<String>>,
    pub allow: Vec<String>,
    pub ask: Vec<String>,
    pub deny: Vec<String>,
    /// The names of the built-in deny rules that do not apply.
    pub deny_lifted: Vec<String>,
}

/// A rule: the first words of a command, or, after `= `, one exact command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern(Form);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Form {
    Prefix(Vec<String>),
    Exact(String),
}

/// The reason why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a rule is empty; write the words a command starts with, for example `cargo test`")]
    Empty,
    #[error(
        "the rule `{0}` holds an operator; a rule covers one command, so write one rule for each"
    )]
    Operator(String),
    #[error("the rule `{0}` has a quote that is not closed")]
    Quote(String),
}

impl Pattern {
    /// Makes a rule for exactly this command.
    pub fn exact(command: &str) -> Self {
        Self(Form::Exact(command.trim().to_owned()))
    }

    /// Makes a rule for all commands that start with these words.
    pub fn prefix<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Self {
        Self(Form::Prefix(words.into_iter().map(Into::into).collect()))
    }

    /// Returns true if the words of a simple command start with the words of the pattern. `*` matches any one word. In a rule
    /// about a tool that changes files, words may be globs of paths.
    pub fn covers(&self, words: &[String]) -> bool {
        match &self.0 {
            Form::Prefix(prefix) => {
                let paths = prefix
                    .first()
                    .is_some_and(|it| EDIT_TOOLS.contains(&it.as_str()));
                let covers = |want: &str, word: &str| {
                    want == "*" || want == word || paths && path_matches(want, word)
                };
                prefix.len() <= words.len()
                    && prefix
                        .iter()
                        .zip(words)
                        .all(|(want, word)| covers(want, word))
            }
            Form::Exact(_) => false,
        }
    }

    /// Returns true if the pattern matches all calls of a tool: it is the tool's name, alone or with `*` or `**`. A deny rule
    /// with this pattern turns the tool off.
    pub fn is_whole(&self, tool: &str) -> bool {
        let Form::Prefix(words) = &self.0 else {
            return false;
        };
        match words.as_slice() {
            [name] => name == tool,
            [name, paths] => name == tool && matches!(paths.as_str(), "*" | "**"),
            _ => false,
        }
    }

    /// Returns true if a deny or ask rule with this pattern matches a simple command. Both must have the same program and
    /// sub-command, and the command must have all options and operands of the pattern.
    ///
    /// `readings` are the normal forms that the command may have. If the tables lack some options of the program, the command
    /// must only have the words of the pattern in the same order.
    pub(crate) fn matches(&self, words: &[String], readings: &[CommandForm]) -> bool {
        let Form::Prefix(prefix) = &self.0 else {
            return false;
        };
        self.covers(words) || form::matches(prefix, words, readings)
    }

    /// Returns true if the pattern names the words at these indices of a command. `*` names no word.
    pub(crate) fn names(&self, places: &BTreeSet<usize>) -> bool {
        let Form::Prefix(prefix) = &self.0 else {
            return false;
        };
        let named = |place: &usize| prefix.get(*place).is_some_and(|word| word != "*");
        places.iter().all(named)
    }

    /// Returns true if the pattern is a rule for exactly this command.
    pub fn is_exactly(&self, command: &str) -> bool {
        matches!(&self.0, Form::Exact(text) if text == command.trim())
    }

    /// Returns true if the pattern consists of this one word.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(&self.0, Form::Prefix(words) if matches!(words.as_slice(), [only] if only == word))
    }

    /// Returns true if the pattern is about calls of tool servers. Such a pattern allows no command.
    pub fn is_about_tool_servers(&self) -> bool {
        let start = match &self.0 {
            Form::Prefix(words) => words.first(),
            Form::Exact(command) => Some(command),
        };
        start.is_some_and(|it| it.starts_with(TOOL_SERVER))
    }

    /// Returns true if a command that the pattern matches may be read-only. Returns `None` if the tables lack its program.
    pub fn may_look(&self) -> Option<bool> {
        match &self.0 {
            Form::Prefix(words) => sort::may_look(words),
            Form::Exact(_) => Some(false),
        }
    }

    /// Returns the first word of the pattern. Returns `None` for the pattern of an exact command.
    pub fn program(&self) -> Option<&str> {
        match &self.0 {
            Form::Prefix(words) => words.first().map(String::as_str),
            Form::Exact(_) => None,
        }
    }
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if let Some(command) = text.strip_prefix("= ") {
            let command = command.trim();
            return match command {
                "" => Err(Error::Empty),
                _ => Ok(Self::exact(command)),
            };
        }
        let words = split(text)?;
        if words.is_empty() {
            return Err(Error::Empty);
        }
        Ok(Self(Form::Prefix(words)))
    }
}

/// Returns true if a glob matches a path. `**` matches any number of directories and everything in them. `*` and `?` match within
/// a name.
fn path_matches(glob: &str, path: &str) -> bool {
    fn matches(globs: &[&str], names: &[&str]) -> bool {
        match (globs, names) {
            ([], []) => true,
            (["**"], names) => !names.is_empty(),
            (["**", rest @ ..], names) => (0..=names.len()).any(|at| matches(rest, &names[at..])),
            ([glob, globs @ ..], [name, names @ ..]) => {
                Glob::new(glob).matches(name) && matches(globs, names)
            }
            _ => false,
        }
    }
    let parts = |text| str::split(text, '/').collect::<Vec<_>>();
    matches(&parts(glob), &parts(path))
}

/// Splits a rule into words. Understands the quotes of a shell and refuses its operators.
fn split(text: &str) -> Result<Vec<String>, Error> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some(end) if end == c => break,
                        Some('\\') if c == '"' => word.extend(chars.next()),
                        Some(inner) => word.push(inner),
                        None => return Err(Error::Quote(text.to_owned())),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            ';' | '&' | '|' | '<' | '>' | '`' | '\n' => {
                return Err(Error::Operator(text.to_owned()));
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Prefix(words) => f.write_str(&join(words)),
            Form::Exact(command) => write!(f, "= {command}"),
        }
    }
}

impl serde::Serialize for Pattern {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Joins words into the text of a rule. `*` and `#` get no quotes.
pub fn join<S: AsRef<str>>(words: &[S]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| quote(word.as_ref(), "*#"))
        .collect();
    quoted.join(" ")
}

/// Joins words into a command line for a shell.
pub fn shell_join<S: AsRef<str>>(words: &[S]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quote(word.as_ref(), "")).collect();
    quoted.join(" ")
}

fn quote(word: &str, bare: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c) || bare.contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn reads_what_it_prints() {
        for text in ["cargo test", "git commit -m 'a b'", "= ls; rm x", "echo ''"] {
            let pattern: Pattern = text.parse().unwrap();
            assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
        }
        for text in ["", "  ", "ls; rm", "ls | wc", "echo 'x"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn rules_about_files_are_globs_of_paths() {
        let check = |rule: &str, words_of: &str, expected: bool| {
            let rule: Pattern = rule.parse().unwrap();
            assert_eq!(
                rule.covers(&words(words_of)),
                expected,
                "{rule}: {words_of}"
            );
        };
        check("edit_file", "edit_file src/a.rs", true);
        check("edit_file src/**", "edit_file src/a.rs", true);
        check("edit_file src/**", "edit_file src/deep/a.rs", true);
        check("edit_file src/**", "edit_file src", false);
        check("edit_file src/**", "edit_file srcs/a.rs", false);
        check("edit_file src/**", "write_file src/a.rs", false);
        check("edit_file src/*.rs", "edit_file src/a.rs", true);
        check("edit_file src/*.rs", "edit_file src/deep/a.rs", false);
        check("edit_file **/*.rs", "edit_file a.rs", true);
        check("edit_file **/*.rs", "edit_file src/deep/a.rs", true);
        check("edit_file src/a.rs", "edit_file src/a.rs", true);
        check("move_file src/** src/**", "move_file src/a src/b", true);
        check("move_file src/** src/**", "move_file src/a b", false);
        check("rm *.o", "rm a.o", false);
    }

    #[test]
    fn some_rules_are_about_a_tool_as_a_whole() {
        let check = |rule: &str, expected: bool| {
            let rule: Pattern = rule.parse().unwrap();
            assert_eq!(rule.is_whole("edit_file"), expected, "{rule}");
        };
        check("edit_file", true);
        check("edit_file **", true);
        check("edit_file *", true);
        check("edit_file src/**", false);
        check("edit_file ** src", false);
        check("write_file", false);
        check("= edit_file", false);
    }

    #[test]
    fn prefixes_and_wholes() {
        let prefix: Pattern = "git status".parse().unwrap();
        assert!(prefix.covers(&words("git status --short")));
        assert!(!prefix.covers(&words("git push --force")));
        assert!(!prefix.covers(&words("git -c core.pager=x status")));
        assert!(!prefix.covers(&words("git")));
        let exact = Pattern::exact("ls; rm x");
        assert!(exact.is_exactly(" ls; rm x "));
        assert!(!exact.is_exactly("ls; rm xy"));
    }
}
