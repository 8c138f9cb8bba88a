//! Expands the words, assignments and redirections of a simple command as bash does.

use std::ops::Range;

use crate::args::{Arg, PipelineStage};
use crate::bash::{Redirect, Simple};
use crate::facts::LocalFacts;
use crate::paths::{self, PathUse};
use crate::proved::quoted;
use crate::reason::Reason;
use crate::word::{self, Word, WordPart};

/// A simple command after expansion.
#[derive(Default)]
pub(super) struct ExpandedCommand {
    pub(super) span: Range<usize>,
    pub(super) args: Vec<Arg>,
    /// The same words, quoted so that bash has nothing left to expand.
    pub(super) quoted: Vec<String>,
    /// The assignments before the words, quoted in the same way.
    pub(super) assignments: String,
    /// The redirections after the words, quoted in the same way.
    pub(super) redirections: String,
    /// The targets of the redirections.
    pub(super) targets: Vec<Arg>,
    /// True if the program's name is written without quotes and escapes.
    pub(super) plain_name: bool,
    pub(super) problems: Vec<Reason>,
    /// True if a shell runs it, so that a builtin may have the name.
    pub(super) in_shell: bool,
}

impl ExpandedCommand {
    /// Returns the words and the targets of the redirections.
    pub(super) fn words(&self) -> Vec<String> {
        let all = self.args.iter().chain(&self.targets);
        all.map(|arg| arg.text.clone()).collect()
    }

    /// Returns the command as xargs sees it.
    pub(super) fn stage(&self) -> Option<PipelineStage<'_>> {
        let (first, args) = self.args.split_first()?;
        Some(PipelineStage {
            name: &first.text,
            args,
        })
    }
}

impl ExpandedCommand {
    /// Adds a word that has nothing left to expand.
    fn add(&mut self, arg: Arg) {
        self.quoted.push(quoted(&arg.text));
        self.args.push(arg);
    }

    fn ask(&mut self, word: &Word, text: String) {
        self.problems.push(Reason::at(text, word.span.clone()));
    }
}

fn new_arg(word: &Word, text: String, loose_glob: bool) -> Arg {
    Arg {
        text,
        span: word.span.clone(),
        loose_glob,
        dynamic: false,
    }
}

/// Expands a command. Reasons against its assignments, globs and redirections go into `problems`.
pub(super) fn expand(simple: &Simple, local: &LocalFacts) -> ExpandedCommand {
    let mut command = ExpandedCommand {
        span: simple.span.clone(),
        plain_name: simple.words.first().is_some_and(|word| word.bare),
        in_shell: true,
        ..ExpandedCommand::default()
    };
    for word in &simple.words {
        expand_word(word, local, &mut command);
    }
    for (name, value) in &simple.assignments {
        let plain = value
            .literal()
            .filter(|value| is_harmless_assignment(name, value));
        if let Some(value) = plain {
            command.assignments += &format!("{name}={} ", quoted(&value));
        } else {
            command.problems.push(Reason::at(
                format!("it sets `{name}` for the command"),
                simple.span.clone(),
            ));
        }
    }
    for redirect in &simple.redirects {
        command.problems.extend(check_redirection(redirect, local));
        if let Some(target) = &redirect.target {
            let mut expanded = ExpandedCommand::default();
            expand_word(target, local, &mut expanded);
            command.targets.extend(expanded.args);
            let target = expanded.quoted.concat();
            command.redirections += &format!(" {}{target}", redirect.operator);
        }
    }
    command
}

/// Expands one word and adds its results to the command.
fn expand_word(word: &Word, local: &LocalFacts, command: &mut ExpandedCommand) {
    for form in word.forms.iter().filter(|form| !form.is_empty()) {
        let Some(text) = word::literal(form) else {
            if word::has_glob(form) {
                command.ask(
                    word,
                    format!("nobody knows yet what `{}` matches", word.raw),
                );
            }
            command.quoted.push(word::quoted(form));
            command.args.push(Arg {
                dynamic: true,
                ..new_arg(word, word.raw.clone(), false)
            });
            continue;
        };
        if !word::has_glob(form) {
            command.add(new_arg(word, text, false));
            continue;
        }
        let loose = matches!(form.first(), Some(WordPart::Text { text, quoted: false }) if text.starts_with(['*', '?', '[']));
        let Some(matches) = local.facts.glob(local.cwd, &word::pattern(form)) else {
            command.ask(
                word,
                format!("`{}` matches too many files to check", word.raw),
            );
            continue;
        };
        if matches.is_empty() {
            command.add(new_arg(word, text, loose));
            continue;
        }
        command
            .problems
            .extend(check_listed_dirs(&matches, word, local));
        for text in matches {
            if text.starts_with('-') {
                command.ask(
                    word,
                    format!("the glob matches a file that looks like an option: `{text}`"),
                );
            }
            command.add(new_arg(word, text, loose));
        }
    }
}

/// Checks the directories that a glob lists, because the command shows their file names.
fn check_listed_dirs(matches: &[String], word: &Word, local: &LocalFacts) -> Option<Reason> {
    let mut dirs: Vec<&str> = matches
        .iter()
        .map(|path| path.trim_end_matches('/').rsplit_once('/'))
        .map(|split| match split {
            Some(("", _)) => "/",
            Some((dir, _)) => dir,
            None => ".",
        })
        .collect();
    dirs.dedup();
    dirs.into_iter()
        .find_map(|dir| paths::check(local, dir, PathUse::Read, &word.span))
}

/// True for an assignment that only changes the format of the output.
fn is_harmless_assignment(name: &str, value: &str) -> bool {
    if name.starts_with("LC_") || name == "LANG" {
        return is_plain_locale(value);
    }
    let known = ["TZ", "NO_COLOR", "CLICOLOR", "COLUMNS"].contains(&name);
    let plain = value
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_.+-@/".contains(c));
    (known && plain && !value.starts_with('/') && !value.contains(".."))
        || (["PAGER", "GIT_PAGER"].contains(&name) && value == "cat")
        || (name == "GIT_OPTIONAL_LOCKS" && value == "0")
}

/// True for a locale in which each byte below 128 is an ASCII character. In Big5, GBK or Shift-JIS a `\` may be the second
/// half of a character, so that a quoted script ends at another place than the policy assumes.
fn is_plain_locale(value: &str) -> bool {
    let (name, encoding) = value.split_once('.').unwrap_or((value, ""));
    let utf8 = ["utf-8", "utf8"].contains(&encoding.to_ascii_lowercase().as_str());
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    matches!(value, "" | "C" | "POSIX") || (utf8 && name.chars().all(plain))
}

fn check_redirection(redirect: &Redirect, local: &LocalFacts) -> Option<Reason> {
    let ask = |text: String| Some(Reason::at(text, redirect.span.clone()));
    let Some(target) = redirect.target.as_ref().and_then(Word::literal) else {
        return ask("a redirection is not understood".to_owned());
    };
    match (redirect.operator.as_str(), target.as_str()) {
        (">" | "1>" | "2>" | "&>", "/dev/null") => None,
        ("2>&", "1") | (">&" | "1>&", "2") => None,
        ("<" | "0<", file) => paths::check(local, file, PathUse::ReadFile, &redirect.span),
        ("<&" | "0<&", _) => ask("a redirection is not understood".to_owned()),
        _ => ask(format!("it writes to `{target}`")),
    }
}
