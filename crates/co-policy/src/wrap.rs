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
pub(super) struct Look {
    pub words: Vec<String>,
    pub writes: Vec<String>,
    /// The directory it runs in, as a `cd` or an option before it was written; none is where the whole runs.
    pub at: Option<String>,
}

/// What is in a command.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Every command in order, wrappers and what they would run.
    pub looks: Vec<Look>,
    /// There may be more: something was too long, too many or too deep to be looked into.
    pub incomplete: bool,
}

/// Returns what is in a script.
pub(super) fn through(script: &bash::Script) -> Found {
    let mut found = Found::default();
    found.list(script, None, 0);
    found
}

/// Returns what is in an argument vector.
pub(super) fn through_argv(argv: &[String]) -> Found {
    let mut found = Found::default();
    found.push(argv, None, 0);
    found
}

/// Returns a path as it is from `at`, both as written.
pub(super) fn from(at: Option<&str>, path: &str) -> String {
    match at {
        Some(at) if !path.starts_with(['/', '~', '$']) => format!("{at}/{path}"),
        _ => path.to_owned(),
    }
}

impl Found {
    /// Notes commands that run one after the other, each `cd` moving those behind it.
    fn list(&mut self, script: &bash::Script, at: Option<String>, depth: usize) {
        self.incomplete |= script.incomplete;
        let (mut here, mut before) = (at.clone(), at);
        // The subshells around a command, and where the shell outside of each is.
        let mut outer: Vec<(&Range<usize>, Option<String>, Option<String>)> = Vec::new();
        for command in &script.commands {
            let holds = |shell: &&Range<usize>| {
                shell.start <= command.span.start && command.span.end <= shell.end
            };
            while let Some((_, at, last)) = outer.pop_if(|(shell, ..)| !holds(shell)) {
                (here, before) = (at, last);
            }
            let around = script.subshells.iter().filter(holds);
            let entered: Vec<_> = around.skip(outer.len()).collect();
            outer.extend(
                entered
                    .into_iter()
                    .map(|it| (it, here.clone(), before.clone())),
            );
            let look = read(command, here.clone());
            let moved = moves(&look.words).map(str::to_owned);
            self.note(look, depth);
            match moved.as_deref() {
                Some("-") => std::mem::swap(&mut here, &mut before),
                Some(to) => before = here.replace(from(here.as_deref(), to)),
                None => {}
            }
        }
    }

    fn push(&mut self, words: &[String], at: Option<&str>, depth: usize) {
        if words.is_empty() {
            return;
        }
        let look = Look {
            words: words.to_vec(),
            writes: Vec::new(),
            at: at.map(str::to_owned),
        };
        self.note(look, depth);
    }

    /// Notes a command and what it would run.
    fn note(&mut self, look: Look, depth: usize) {
        if depth > MAX_DEPTH || self.looks.len() > MAX_FOUND {
            self.incomplete = true;
            return;
        }
        let (words, at) = (look.words.clone(), look.at.clone());
        self.looks.push(look);
        if let Some((name, rest)) = words.split_first() {
            self.inner(name, rest, at.as_deref(), depth);
        }
    }

    fn inner(&mut self, name: &str, rest: &[String], at: Option<&str>, depth: usize) {
        let base = name.rsplit('/').next().unwrap_or(name);
        match base {
            "bash" | "sh" | "dash" | "zsh" | "ksh" | "ash" => {
                let flag = |word: &String| {
                    word.starts_with('-') && !word.starts_with("--") && word.contains('c')
                };
                let text = rest
                    .iter()
                    .position(flag)
                    .and_then(|at| rest[at + 1..].iter().find(|word| !word.starts_with('-')));
                if let Some(text) = text {
                    self.text(text, at, depth);
                }
            }
            "eval" => self.text(&rest.join(" "), at, depth),
            "trap" => {
                if let Some(text) = rest.iter().find(|word| !word.starts_with('-')) {
                    self.text(text, at, depth);
                }
            }
            "find" | "fd" | "fdfind" => self.executed(rest, at, depth),
            _ => {
                if let Some(wrapper) = table::lookup(base) {
                    self.wrapped(wrapper, rest, at, depth);
                }
            }
        }
    }

    fn wrapped(&mut self, wrapper: &Wrapper, rest: &[String], at: Option<&str>, depth: usize) {
        for text in values(wrapper.texts, rest) {
            self.text(&text, at, depth);
        }
        let own = skip(wrapper, rest);
        let dir = values(wrapper.dirs, &rest[..rest.len() - own.len()]).pop();
        let at = dir.map(|dir| from(at, &dir)).or(at.map(str::to_owned));
        let mut words = own.get(wrapper.before..).unwrap_or_default();
        if wrapper.before > 0 && words.first().is_some_and(|word| word == "--") {
            words = &words[1..];
        }
        if wrapper.joins {
            self.text(&words.join(" "), at.as_deref(), depth);
            return;
        }
        // An option of the wrapper after its operands, `flock f -c …`, was read as text above.
        if words.first().is_some_and(|word| !word.starts_with('-')) {
            self.push(words, at.as_deref(), depth + 1);
        }
    }

    /// What follows `-exec` and its like, up to `;` or `+`.
    fn executed(&mut self, words: &[String], at: Option<&str>, depth: usize) {
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
                self.push(&rest[..end], at, depth + 1);
            }
        }
    }

    fn text(&mut self, text: &str, at: Option<&str>, depth: usize) {
        if depth >= MAX_DEPTH {
            self.incomplete = true;
            return;
        }
        let script = bash::parse(text);
        self.list(&script, at.map(str::to_owned), depth + 1);
    }
}

/// Skips a wrapper's own options, and assignments where it takes them.
fn skip<'a>(wrapper: &Wrapper, words: &'a [String]) -> &'a [String] {
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
fn moves(words: &[String]) -> Option<&str> {
    let (name, rest) = words.split_first()?;
    if name != "cd" && name != "pushd" {
        return None;
    }
    let operand = |word: &&String| word.as_str() == "-" || !word.starts_with('-');
    Some(rest.iter().find(operand).map_or("~", String::as_str))
}

/// The words of one simple command as they will be, as well as that can be told.
fn read(command: &bash::Simple, at: Option<String>) -> Look {
    let words: Vec<String> = command.words.iter().flat_map(|word| word.shown()).collect();
    let writes = command
        .redirects
        .iter()
        .filter(|redirect| redirect.operator.contains('>'))
        .filter_map(|redirect| redirect.target.as_ref())
        .flat_map(|word| word.shown())
        .collect();
    Look { words, writes, at }
}
