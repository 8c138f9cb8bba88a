//! Finds the commands that other commands start: `sudo env bash -c '…'`, `find -exec`, `xargs`.

use crate::bash::{self, Script, SimpleCommand, Word, path_from};
use crate::form::{self, CommandForm};

mod table;

use table::Wrapper;

/// Commands nested more deeply are not searched.
const MAX_DEPTH: usize = 6;
/// More commands than this are not searched.
const MAX_FOUND: usize = 400;

/// Names of shells, which run the text after `-c`.
pub(crate) const SHELLS: [&str; 6] = ["bash", "sh", "dash", "zsh", "ksh", "ash"];

/// A command, and what it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundCommand {
    pub command: SimpleCommand,
    pub form: CommandForm,
    pub starts: Starts,
}

/// The commands that a command starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starts {
    Nothing,
    /// Commands that the list of found commands has as well.
    Known,
    /// A command that bash computes.
    Computed,
}

/// A script with all commands that its commands start, each after the one that starts it.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    pub found: Vec<FoundCommand>,
    /// The script without its commands.
    pub script: Script,
}

/// Returns the commands of a script.
pub(crate) fn commands(script: Script) -> Commands {
    let mut commands = Commands::default();
    commands.add_script(script, 0);
    commands
}

/// Returns the name of a program without its directory.
pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

impl Commands {
    fn add_script(&mut self, mut script: Script, depth: usize) {
        let own = &mut self.script;
        own.incomplete |= script.incomplete;
        own.fork_bomb |= script.fork_bomb;
        own.problems.append(&mut script.problems);
        own.functions.append(&mut script.functions);
        for command in script.commands {
            self.add(command, depth);
        }
    }

    /// Adds a command and the commands that it starts.
    fn add(&mut self, command: SimpleCommand, depth: usize) {
        if depth > MAX_DEPTH || self.found.len() > MAX_FOUND {
            self.script.incomplete = true;
            return;
        }
        let at = self.found.len();
        self.found.push(FoundCommand {
            form: CommandForm::read(&form::single(&command.words)),
            command: command.clone(),
            starts: Starts::Nothing,
        });
        let starts = self.add_started(&command, depth);
        self.found[at].starts = starts;
    }

    fn add_started(&mut self, command: &SimpleCommand, depth: usize) -> Starts {
        let Some((name, rest)) = command.words.split_first() else {
            return Starts::Nothing;
        };
        let dir = command.dir.as_deref();
        match base_name(name.text()) {
            shell if SHELLS.contains(&shell) => self.add_shell(rest, dir, depth),
            "eval" => {
                let text = rest.iter().map(Word::text).collect::<Vec<_>>().join(" ");
                self.add_text(&text, rest.first(), dir, depth);
                Starts::Computed
            }
            "trap" => {
                if let Some(text) = rest.iter().find(|word| !word.text().starts_with('-')) {
                    self.add_text(text.text(), Some(text), dir, depth);
                }
                Starts::Computed
            }
            "find" | "fd" | "fdfind" => self.add_executed(rest, dir, depth),
            // It only prints where the program is.
            "command"
                if rest
                    .first()
                    .is_some_and(|it| matches!(it.text(), "-v" | "-V")) =>
            {
                Starts::Nothing
            }
            base => match table::lookup(base) {
                Some(wrapper) => self.add_wrapped(wrapper, rest, dir, depth),
                None => Starts::Nothing,
            },
        }
    }

    /// Adds the commands of `bash -c TEXT`.
    fn add_shell(&mut self, rest: &[Word], dir: Option<&str>, depth: usize) -> Starts {
        let flag = |word: &Word| {
            let text = word.text();
            text.starts_with('-') && !text.starts_with("--") && text.contains('c')
        };
        let Some(at) = rest.iter().position(flag) else {
            return Starts::Nothing;
        };
        let mut after = rest[at + 1..].iter();
        match after.find(|word| !word.text().starts_with('-')) {
            Some(text) => self.add_text(text.text(), Some(text), dir, depth),
            None => Starts::Computed,
        }
    }

    /// Adds the commands of a wrapper's words.
    fn add_wrapped(
        &mut self,
        wrapper: &Wrapper,
        rest: &[Word],
        dir: Option<&str>,
        depth: usize,
    ) -> Starts {
        let mut starts = Starts::Nothing;
        for text in wrapper.texts(rest) {
            starts = self.add_text(&text, rest.first(), dir, depth);
        }
        let words = wrapper.command(rest);
        let own = &rest[..rest.len() - words.len()];
        let moved = wrapper.directory(own);
        let dir = moved
            .map(|to| path_from(dir, &to))
            .or(dir.map(str::to_owned));
        let Some(first) = words.first() else {
            return starts;
        };
        if wrapper.joins {
            let text = words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
            return self.add_text(&text, Some(first), dir.as_deref(), depth);
        }
        // An option of the wrapper after its operands, `flock f -c …`, was read as text above.
        if first.text().starts_with('-') {
            return starts;
        }
        self.add_words(words, dir, depth)
    }

    /// Adds the commands after `-exec` and similar actions, up to `;` or `+`.
    fn add_executed(&mut self, words: &[Word], dir: Option<&str>, depth: usize) -> Starts {
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
        let mut starts = Starts::Nothing;
        for (place, word) in words.iter().enumerate() {
            if ACTIONS.contains(&word.text()) {
                let rest = &words[place + 1..];
                let end = rest
                    .iter()
                    .position(|word| matches!(word.text(), ";" | "+"))
                    .unwrap_or(rest.len());
                starts = self.add_words(&rest[..end], dir.map(str::to_owned), depth);
            }
        }
        starts
    }

    fn add_words(&mut self, words: &[Word], dir: Option<String>, depth: usize) -> Starts {
        let (Some(first), Some(last)) = (words.first(), words.last()) else {
            return Starts::Nothing;
        };
        let command = SimpleCommand {
            span: first.span.start..last.span.end,
            words: words.to_vec(),
            dir,
            ..SimpleCommand::default()
        };
        self.add(command, depth + 1);
        Starts::Known
    }

    /// Adds the commands of a text, which stands in `word`. If bash expands the word, the commands are only a guess.
    fn add_text(
        &mut self,
        text: &str,
        word: Option<&Word>,
        dir: Option<&str>,
        depth: usize,
    ) -> Starts {
        if depth >= MAX_DEPTH {
            self.script.incomplete = true;
            return Starts::Computed;
        }
        let mut script = bash::parse(text);
        if let Some(word) = word {
            script.map_spans(|span| *span = word.span.clone());
        }
        for command in &mut script.commands {
            command.dir = match &command.dir {
                Some(inner) => Some(path_from(dir, inner)),
                None => dir.map(str::to_owned),
            };
        }
        let literal = word.is_none_or(Word::is_literal);
        if !literal {
            script.problems.clear();
        }
        self.add_script(script, depth + 1);
        if literal {
            Starts::Known
        } else {
            Starts::Computed
        }
    }
}
