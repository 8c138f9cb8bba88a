//! Looks through wrappers: which commands does `sudo env bash -c '…'` come to, and where do they run?
//!
//! Only for deny and ask rules and for what the float says: a wrapper itself always asks.

use std::ops::Range;

use crate::bash;

mod table;

use table::Wrapper;

const MAX_DEPTH: usize = 6;
const MAX_FOUND: usize = 400;

/// A command found, with the targets it redirects to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FoundCommand {
    pub words: Vec<String>,
    pub writes: Vec<String>,
    /// The directory it runs in, as a `cd` or an option before it was written; none is where the whole runs.
    pub dir: Option<String>,
}

/// What is in a command.
#[derive(Debug, Default)]
pub(super) struct NestedCommands {
    /// Every command in order, wrappers and what they would run.
    pub commands: Vec<FoundCommand>,
    /// There may be more: something was too long, too many or too deep to be looked into.
    pub incomplete: bool,
}

/// Returns what is in a script.
pub(super) fn commands_in_script(script: &bash::Script) -> NestedCommands {
    let mut found = NestedCommands::default();
    found.list(script, None, 0);
    found
}

/// Returns what is in an argument vector.
pub(super) fn commands_in_argv(argv: &[String]) -> NestedCommands {
    let mut found = NestedCommands::default();
    found.push(argv, None, 0);
    found
}

/// Returns a path as it is from `at`, both as written.
pub(super) fn path_from(dir: Option<&str>, path: &str) -> String {
    match dir {
        Some(dir) if !path.starts_with(['/', '~', '$']) => format!("{dir}/{path}"),
        _ => path.to_owned(),
    }
}

impl NestedCommands {
    /// Notes commands that run one after the other, each `cd` moving those behind it.
    fn list(&mut self, script: &bash::Script, dir: Option<String>, depth: usize) {
        self.incomplete |= script.incomplete;
        let (mut here, mut before) = (dir.clone(), dir);
        // The subshells around a command, and where the shell outside of each is.
        let mut outer: Vec<(&Range<usize>, Option<String>, Option<String>)> = Vec::new();
        for command in &script.commands {
            let holds = |shell: &&Range<usize>| {
                shell.start <= command.span.start && command.span.end <= shell.end
            };
            while let Some((_, dir, last)) = outer.pop_if(|(shell, ..)| !holds(shell)) {
                (here, before) = (dir, last);
            }
            let around = script.subshells.iter().filter(holds);
            let entered: Vec<_> = around.skip(outer.len()).collect();
            outer.extend(
                entered
                    .into_iter()
                    .map(|it| (it, here.clone(), before.clone())),
            );
            let look = found_command(command, here.clone());
            let moved = cd_target(&look.words).map(str::to_owned);
            self.note(look, depth);
            match moved.as_deref() {
                Some("-") => std::mem::swap(&mut here, &mut before),
                Some(to) => before = here.replace(path_from(here.as_deref(), to)),
                None => {}
            }
        }
    }

    fn push(&mut self, words: &[String], dir: Option<&str>, depth: usize) {
        if words.is_empty() {
            return;
        }
        let look = FoundCommand {
            words: words.to_vec(),
            writes: Vec::new(),
            dir: dir.map(str::to_owned),
        };
        self.note(look, depth);
    }

    /// Notes a command and what it would run.
    fn note(&mut self, look: FoundCommand, depth: usize) {
        if depth > MAX_DEPTH || self.commands.len() > MAX_FOUND {
            self.incomplete = true;
            return;
        }
        let (words, dir) = (look.words.clone(), look.dir.clone());
        self.commands.push(look);
        if let Some((name, rest)) = words.split_first() {
            self.inner(name, rest, dir.as_deref(), depth);
        }
    }

    fn inner(&mut self, name: &str, rest: &[String], dir: Option<&str>, depth: usize) {
        let base = name.rsplit('/').next().unwrap_or(name);
        match base {
            "bash" | "sh" | "dash" | "zsh" | "ksh" | "ash" => {
                let flag = |word: &String| {
                    word.starts_with('-') && !word.starts_with("--") && word.contains('c')
                };
                let text = rest.iter().position(flag).and_then(|flag_at| {
                    rest[flag_at + 1..]
                        .iter()
                        .find(|word| !word.starts_with('-'))
                });
                if let Some(text) = text {
                    self.text(text, dir, depth);
                }
            }
            "eval" => self.text(&rest.join(" "), dir, depth),
            "trap" => {
                if let Some(text) = rest.iter().find(|word| !word.starts_with('-')) {
                    self.text(text, dir, depth);
                }
            }
            "find" | "fd" | "fdfind" => self.executed(rest, dir, depth),
            _ => {
                if let Some(wrapper) = table::lookup(base) {
                    self.wrapped(wrapper, rest, dir, depth);
                }
            }
        }
    }

    fn wrapped(&mut self, wrapper: &Wrapper, rest: &[String], dir: Option<&str>, depth: usize) {
        for text in values(wrapper.texts, rest) {
            self.text(&text, dir, depth);
        }
        let own = skip_options(wrapper, rest);
        let moved = values(wrapper.dirs, &rest[..rest.len() - own.len()]).pop();
        let dir = moved
            .map(|to| path_from(dir, &to))
            .or(dir.map(str::to_owned));
        let mut words = own.get(wrapper.before..).unwrap_or_default();
        if wrapper.before > 0 && words.first().is_some_and(|word| word == "--") {
            words = &words[1..];
        }
        if wrapper.joins {
            self.text(&words.join(" "), dir.as_deref(), depth);
            return;
        }
        // An option of the wrapper after its operands, `flock f -c …`, was read as text above.
        if words.first().is_some_and(|word| !word.starts_with('-')) {
            self.push(words, dir.as_deref(), depth + 1);
        }
    }

    /// What follows `-exec` and its like, up to `;` or `+`.
    fn executed(&mut self, words: &[String], dir: Option<&str>, depth: usize) {
        const ACTIONS: [&str; 8] = [
            "-exec",
            "-execdir",
            "-ok",
            "-okdir",
            "-x",
            "-X",
            "--exec",
            "--exec-batch",
        ];
        for (place, word) in words.iter().enumerate() {
            if ACTIONS.contains(&word.as_str()) {
                let rest = &words[place + 1..];
                let end = rest
                    .iter()
                    .position(|word| word == ";" || word == "+")
                    .unwrap_or(rest.len());
                self.push(&rest[..end], dir, depth + 1);
            }
        }
    }

    fn text(&mut self, text: &str, dir: Option<&str>, depth: usize) {
        if depth >= MAX_DEPTH {
            self.incomplete = true;
            return;
        }
        let script = bash::parse(text);
        self.list(&script, dir.map(str::to_owned), depth + 1);
    }
}

/// Skips a wrapper's own options, and assignments where it takes them.
fn skip_options<'a>(wrapper: &Wrapper, words: &'a [String]) -> &'a [String] {
    let valued = |word: &str| {
        [wrapper.valued, wrapper.texts, wrapper.dirs]
            .iter()
            .any(|list| list.split(' ').any(|option| option == word))
    };
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if word == "--" {
            at += 1;
            break;
        } else if valued(word) || clustered(wrapper.texts, word) {
            at += 2;
        } else if word.starts_with('-') || (wrapper.assigns && word.contains('=')) {
            at += 1;
        } else {
            break;
        }
    }
    words.get(at..).unwrap_or_default()
}

/// The values of options, wherever they stand: in the next word or attached.
fn values(options: &str, words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let next = words.get(place + 1);
        if clustered(options, word) {
            found.extend(next.cloned());
        }
        for option in options.split(' ').filter(|option| !option.is_empty()) {
            match word.strip_prefix(option) {
                Some("") => found.extend(next.cloned()),
                Some(rest) if !option.starts_with("--") => found.push(rest.to_owned()),
                Some(rest) => found.extend(rest.strip_prefix('=').map(str::to_owned)),
                None => {}
            }
        }
    }
    found
}

/// `-qc`: a cluster of letters that ends in one of the options.
fn clustered(options: &str, word: &str) -> bool {
    word.len() > 2
        && word.strip_prefix('-').is_some_and(|letters| {
            letters.bytes().all(|b| b.is_ascii_alphabetic())
                && options
                    .split(' ')
                    .any(|option| option.len() == 2 && letters.ends_with(&option[1..]))
        })
}

/// Where a `cd` leads, as written; none for what is no `cd`.
fn cd_target(words: &[String]) -> Option<&str> {
    let (name, rest) = words.split_first()?;
    if name != "cd" && name != "pushd" {
        return None;
    }
    let operand = |word: &&String| word.as_str() == "-" || !word.starts_with('-');
    Some(rest.iter().find(operand).map_or("~", String::as_str))
}

/// The words of one simple command as they will be, as well as that can be told.
fn found_command(command: &bash::Simple, dir: Option<String>) -> FoundCommand {
    let words: Vec<String> = command.words.iter().flat_map(|word| word.shown()).collect();
    let writes = command
        .redirects
        .iter()
        .filter(|redirect| redirect.operator.contains('>'))
        .filter_map(|redirect| redirect.target.as_ref())
        .flat_map(|word| word.shown())
        .collect();
    FoundCommand { words, writes, dir }
}
