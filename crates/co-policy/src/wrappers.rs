//! Finds the commands that other commands start: `sudo env bash -c '…'`.
//!
//! Deny rules, ask rules and the question to the person use the result. The proof does not: a wrapper requires approval.

use std::ops::Range;

use crate::bash;

mod table;

use table::Wrapper;

/// Commands nested more deeply are not searched.
const MAX_DEPTH: usize = 6;
/// More commands than this are not searched.
const MAX_FOUND: usize = 400;

/// A command inside another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FoundCommand {
    pub words: Vec<String>,
    /// The targets of redirections that write.
    pub writes: Vec<String>,
    /// The directory that an earlier `cd` or option names, as written; `None` without one.
    pub dir: Option<String>,
}

/// All commands inside a command.
#[derive(Debug, Default)]
pub(super) struct NestedCommands {
    /// Wrappers and the commands that they start, in order.
    pub commands: Vec<FoundCommand>,
    /// True if a part is too long, too large or nested too deeply to be searched.
    pub incomplete: bool,
}

/// Returns the commands in a script.
pub(super) fn commands_in_script(script: &bash::Script) -> NestedCommands {
    let mut found = NestedCommands::default();
    found.add_script(script, None, 0);
    found
}

/// Returns the commands in an argument vector.
pub(super) fn commands_in_argv(argv: &[String]) -> NestedCommands {
    let mut found = NestedCommands::default();
    found.add_words(argv, None, 0);
    found
}

/// Joins a directory and a path, both as written.
pub(super) fn path_from(dir: Option<&str>, path: &str) -> String {
    match dir {
        Some(dir) if !path.starts_with(['/', '~', '$']) => format!("{dir}/{path}"),
        _ => path.to_owned(),
    }
}

impl NestedCommands {
    /// Adds the commands of a script. Each `cd` sets the directory of the commands after it.
    fn add_script(&mut self, script: &bash::Script, dir: Option<String>, depth: usize) {
        self.incomplete |= script.incomplete;
        let (mut here, mut before) = (dir.clone(), dir);
        // The subshells around a command, with the directories of the shell outside of each.
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
            let command = found_command(command, here.clone());
            let moved = cd_target(&command.words).map(str::to_owned);
            self.add(command, depth);
            match moved.as_deref() {
                Some("-") => std::mem::swap(&mut here, &mut before),
                Some(to) => before = here.replace(path_from(here.as_deref(), to)),
                None => {}
            }
        }
    }

    fn add_words(&mut self, words: &[String], dir: Option<&str>, depth: usize) {
        if words.is_empty() {
            return;
        }
        let command = FoundCommand {
            words: words.to_vec(),
            writes: Vec::new(),
            dir: dir.map(str::to_owned),
        };
        self.add(command, depth);
    }

    /// Adds a command and the commands that it starts.
    fn add(&mut self, command: FoundCommand, depth: usize) {
        if depth > MAX_DEPTH || self.commands.len() > MAX_FOUND {
            self.incomplete = true;
            return;
        }
        let (words, dir) = (command.words.clone(), command.dir.clone());
        self.commands.push(command);
        if let Some((name, rest)) = words.split_first() {
            self.add_inner(name, rest, dir.as_deref(), depth);
        }
    }

    fn add_inner(&mut self, name: &str, rest: &[String], dir: Option<&str>, depth: usize) {
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
                    self.add_text(text, dir, depth);
                }
            }
            "eval" => self.add_text(&rest.join(" "), dir, depth),
            "trap" => {
                if let Some(text) = rest.iter().find(|word| !word.starts_with('-')) {
                    self.add_text(text, dir, depth);
                }
            }
            "find" | "fd" | "fdfind" => self.add_executed(rest, dir, depth),
            _ => {
                if let Some(wrapper) = table::lookup(base) {
                    self.add_wrapped(wrapper, rest, dir, depth);
                }
            }
        }
    }

    fn add_wrapped(&mut self, wrapper: &Wrapper, rest: &[String], dir: Option<&str>, depth: usize) {
        for text in values(wrapper.texts, rest) {
            self.add_text(&text, dir, depth);
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
            self.add_text(&words.join(" "), dir.as_deref(), depth);
            return;
        }
        // An option of the wrapper after its operands, `flock f -c …`, was read as text above.
        if words.first().is_some_and(|word| !word.starts_with('-')) {
            self.add_words(words, dir.as_deref(), depth + 1);
        }
    }

    /// Adds the commands after `-exec` and similar actions, up to `;` or `+`.
    fn add_executed(&mut self, words: &[String], dir: Option<&str>, depth: usize) {
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
                self.add_words(&rest[..end], dir, depth + 1);
            }
        }
    }

    fn add_text(&mut self, text: &str, dir: Option<&str>, depth: usize) {
        if depth >= MAX_DEPTH {
            self.incomplete = true;
            return;
        }
        let script = bash::parse(text);
        self.add_script(&script, dir.map(str::to_owned), depth + 1);
    }
}

/// Skips a wrapper's own options, and its assignments if it takes any.
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

/// Returns the values of options, from the next word or attached.
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

/// True for a group of letters that ends in one of the options: `-qc`.
fn clustered(options: &str, word: &str) -> bool {
    word.len() > 2
        && word.strip_prefix('-').is_some_and(|letters| {
            letters.bytes().all(|b| b.is_ascii_alphabetic())
                && options
                    .split(' ')
                    .any(|option| option.len() == 2 && letters.ends_with(&option[1..]))
        })
}

/// Returns the target of a `cd` as written; `None` for other commands.
fn cd_target(words: &[String]) -> Option<&str> {
    let (name, rest) = words.split_first()?;
    if name != "cd" && name != "pushd" {
        return None;
    }
    let operand = |word: &&String| word.as_str() == "-" || !word.starts_with('-');
    Some(rest.iter().find(operand).map_or("~", String::as_str))
}

/// Returns a simple command with its words as far as they are known.
fn found_command(command: &bash::Simple, dir: Option<String>) -> FoundCommand {
    let words: Vec<String> = command
        .words
        .iter()
        .flat_map(|word| word.expansions())
        .collect();
    let writes = command
        .redirects
        .iter()
        .filter(|redirect| redirect.operator.contains('>'))
        .filter_map(|redirect| redirect.target.as_ref())
        .flat_map(|word| word.expansions())
        .collect();
    FoundCommand { words, writes, dir }
}
