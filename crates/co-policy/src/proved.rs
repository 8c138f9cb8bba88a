//! A proved command, rewritten from the words and paths that the policy checked.
//!
//! bash runs the rewritten text, not the original. Every word is expanded and quoted, and every program is named by its
//! checked path, so that bash expands and looks up nothing.

use std::path::PathBuf;

/// A command that is proved to only read. Only [`crate::decide`] makes one. The executor runs it unchanged and, if the
/// system can confine commands, only in the read-only confinement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proved {
    original: String,
    script: String,
    env: Vec<(String, String)>,
}

/// One simple command of it, rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The operator before this command.
    pub(super) join: &'static str,
    text: String,
    /// True if `text` replaces the shell by a program.
    replaces: bool,
}

/// The target of a command name.
pub(super) enum CommandTarget {
    Builtin,
    /// The program at this path.
    Program(PathBuf),
    /// No program has this name.
    Missing,
}

impl Proved {
    /// Joins the rewritten commands. Returns `None` if one could not be rewritten.
    pub(super) fn new<'a>(
        original: &str,
        commands: impl Iterator<Item = Option<&'a Rewritten>>,
        env: Vec<(String, String)>,
    ) -> Option<Self> {
        let commands: Vec<&Rewritten> = commands.collect::<Option<_>>()?;
        let mut script = String::new();
        for (place, command) in commands.iter().enumerate() {
            if place > 0 {
                script.push_str(command.join);
            }
            // The last program can replace the shell, unless it is in a pipeline.
            let last = place + 1 == commands.len() && command.join != PIPE;
            match command.replaces && !last {
                true => script.push_str(&format!("({})", command.text)),
                false => script.push_str(&command.text),
            }
        }
        Some(Self {
            original: original.to_owned(),
            script,
            env,
        })
    }

    /// Returns the original text, for the person.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// Returns the text that bash runs.
    pub fn script(&self) -> &str {
        &self.script
    }

    /// Returns the environment variables that the command needs.
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }
}

/// The pipe operator.
pub(super) const PIPE: &str = " | ";

impl Rewritten {
    /// Rewrites a command from its assignments, quoted words and redirections.
    pub(super) fn new(target: &CommandTarget, before: &str, words: &[String], after: &str) -> Self {
        let all = words.join(" ");
        let name = words.first().map_or("", String::as_str);
        let (text, replaces) = match target {
            CommandTarget::Builtin => (format!("{before}{all}{after}"), false),
            CommandTarget::Program(path) => {
                let (path, rest) = (quoted(&path.to_string_lossy()), words.get(1..));
                let words = [&[path], rest.unwrap_or_default()].concat().join(" ");
                match before {
                    // Keep the name as argv[0]: some programs choose their behaviour by it, and error messages begin with it.
                    "" => (format!("exec -a {name} {words}{after}"), true),
                    // Before `exec`, bash would set the variables for itself too.
                    _ => (format!("{before}{words}{after}"), false),
                }
            }
            CommandTarget::Missing => {
                let says = format!("echo \"$0: \"{name}': command not found' >&2; exit 127");
                (format!("({says}){after}"), false)
            }
        };
        Self {
            join: "",
            text,
            replaces,
        }
    }
}

/// Quotes a text for bash.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(commands: &[(CommandTarget, &'static str, &[&str])]) -> String {
        let rewrite = |(target, join, words): &(CommandTarget, &'static str, &[&str])| {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            let rewritten = Rewritten::new(target, "", &words, "");
            Rewritten { join, ..rewritten }
        };
        let commands: Vec<Rewritten> = commands.iter().map(rewrite).collect();
        let commands = commands.iter().map(Some);
        Proved::new("x", commands, Vec::new()).unwrap().script
    }

    #[test]
    fn the_last_program_takes_the_place_of_the_shell() {
        let ls = || CommandTarget::Program("/bin/ls".into());
        for (commands, expected) in [
            (
                &[(ls(), "\n", &["ls", "a'b"][..])][..],
                r"exec -a 'ls' '/bin/ls' 'a'\''b'",
            ),
            (
                &[
                    (ls(), "\n", &["ls"]),
                    (CommandTarget::Builtin, " && ", &["echo", ""]),
                ],
                "(exec -a 'ls' '/bin/ls') && 'echo' ''",
            ),
            (
                &[(ls(), "\n", &["ls"]), (ls(), PIPE, &["ls"])],
                "(exec -a 'ls' '/bin/ls') | (exec -a 'ls' '/bin/ls')",
            ),
            (
                &[
                    (CommandTarget::Missing, "\n", &["rg"]),
                    (ls(), "\n", &["ls"]),
                ],
                "(echo \"$0: \"'rg'': command not found' >&2; exit 127)\nexec -a 'ls' '/bin/ls'",
            ),
        ] {
            assert_eq!(script(commands), expected);
        }
    }

    #[test]
    fn a_command_that_was_not_rewritten_is_not_proved() {
        let unwritten = [None].into_iter();
        assert_eq!(Proved::new("x", unwritten, Vec::new()), None);
    }
}
