//! Finds the commands that other commands start: `sudo env bash -c '…'`, `find -exec`, `uv run`.
//!
//! The tables of programs say where in the words a started command begins.

use crate::bash::{self, Script, SimpleCommand, Word, path_from};
use crate::form::{self, CommandForm};
use crate::programs::{self, GivenCode, Program};

/// The largest depth at which commands are searched inside other commands.
const MAX_DEPTH: usize = 6;
/// The largest number of commands that a search may find in a script.
const MAX_FOUND: usize = 400;
/// The number of words of an unknown wrapper that are tried as the start of its command.
const MAX_GUESSES: usize = 16;

/// The names of shells, which run the text after `-c`.
pub(crate) const SHELLS: [&str; 6] = ["bash", "sh", "dash", "zsh", "ksh", "ash"];

/// A command, and the commands that it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundCommand {
    pub command: SimpleCommand,
    pub form: CommandForm,
    pub starts: StartedCommands,
    pub role: Role,
}

/// The way in which a found command belongs to its command line: it runs, may run, or runs elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Role {
    #[default]
    Runs,
    /// The command runs only under one of several possible readings of the words.
    MayRun,
    /// The command runs in a container or on another machine.
    RunsElsewhere,
}

/// The kind of commands that a command starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartedCommands {
    Nothing,
    /// The started commands are in the list of found commands too.
    Known,
    /// bash computes the started command, so it is unknown.
    Computed,
}

/// A script with all commands that run in it. Each started command follows the command that starts it.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    pub found: Vec<FoundCommand>,
    /// The properties of the script. Its commands are moved to `found`.
    pub script: Script,
    /// The role of the commands that are added at the moment.
    role: Role,
    /// True while possible commands of an unknown wrapper are added.
    guesses: bool,
}

/// Returns all commands of a script, including those that other commands start.
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
        if self.role == Role::Runs {
            own.fork_bomb |= script.fork_bomb;
            own.problems.append(&mut script.problems);
            own.functions.append(&mut script.functions);
        }
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
        let form = CommandForm::read(&form::single(&command.words));
        self.found.push(FoundCommand {
            command: command.clone(),
            form: form.clone(),
            starts: StartedCommands::Nothing,
            role: self.role,
        });
        let starts = self.add_started(&command, &form, depth);
        self.found[at].starts = starts;
    }

    fn add_started(
        &mut self,
        command: &SimpleCommand,
        form: &CommandForm,
        depth: usize,
    ) -> StartedCommands {
        let Some((_, rest)) = command.words.split_first() else {
            return StartedCommands::Nothing;
        };
        let dir = command.dir.as_deref();
        if SHELLS.contains(&form.program.as_str()) {
            self.add_input(command, depth);
            return self.add_shell(rest, dir, depth);
        }
        // It only prints where the program is.
        let prints = |word: &Word| matches!(word.text(), "-v" | "-V");
        if form.program == "command" && rest.first().is_some_and(prints) {
            return StartedCommands::Nothing;
        }
        self.add_defined(command, form, depth);
        self.add_readings(command, form, depth);
        if may_be_wrapper(form) {
            self.add_guesses(command, depth);
        }
        let Some(row) = form.syntax() else {
            return StartedCommands::Nothing;
        };
        let mut starts = self.add_executed(command, row, depth);
        let moved = form.options_in(|row| &row.dirs).last();
        let dir = match moved.and_then(|option| option.value.as_deref()) {
            Some(to) => Some(path_from(dir, to)),
            None => dir.map(str::to_owned),
        };
        let options = form.options_in(|row| &row.texts);
        let options = options.map(|it| (it.value.clone(), it.value_at));
        let operands = form.operands.iter().take(row.text_operands);
        let operands = operands.map(|it| (Some(it.text.clone()), it.at));
        for (text, at) in options.chain(operands) {
            let text = text.unwrap_or_default();
            starts = self.add_text(&text, command.words.get(at), dir.as_deref(), depth);
        }
        for option in form.options_in(|row| &row.modules) {
            // The name stands in the word of the option: `python -mpip`.
            if let (Some(module), Some(word)) = (&option.value, command.words.get(option.at)) {
                let module = Word::literal(module.clone(), word.span.clone());
                let rest = command.words[option.at + 1..].iter().cloned();
                let words: Vec<Word> = std::iter::once(module).chain(rest).collect();
                self.with_role(Role::MayRun, |commands| {
                    commands.add_words(&words, dir.clone(), depth)
                });
            }
        }
        if let Some(words) = started_words(command, form, row) {
            let words = words.as_slice();
            let role = match form.options_in(|row| &row.modules).next() {
                Some(_) => Role::MayRun,
                None if row.elsewhere => Role::RunsElsewhere,
                None => Role::Runs,
            };
            let started = self.with_role(role, |commands| {
                commands.add_wrapped(row, words, dir.clone(), depth)
            });
            if role == Role::Runs {
                starts = started;
            }
            // An option of the wrapper may stand behind its operands: `flock f -c …`.
            for pair in words
                .windows(2)
                .filter(|pair| row.texts.has(pair[0].text()))
            {
                self.with_role(Role::MayRun, |commands| {
                    commands.add_text(pair[1].text(), Some(&pair[1]), dir.as_deref(), depth)
                });
            }
        }
        starts
    }

    /// Adds commands with a role. If an outer command already has a role other than `Runs`, the added commands get that role
    /// instead.
    fn with_role<T>(&mut self, role: Role, add: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.role;
        if outer == Role::Runs {
            self.role = role;
        }
        let result = add(self);
        self.role = outer;
        result
    }

    /// Adds the commands in the text of `bash -c TEXT`.
    fn add_shell(&mut self, rest: &[Word], dir: Option<&str>, depth: usize) -> StartedCommands {
        let flag = |word: &Word| {
            let text = word.text();
            text.starts_with('-') && !text.starts_with("--") && text.contains('c')
        };
        let Some(at) = rest.iter().position(flag) else {
            return StartedCommands::Nothing;
        };
        let mut after = rest[at + 1..].iter();
        match after.find(|word| !word.text().starts_with('-')) {
            Some(text) => self.add_text(text.text(), Some(text), dir, depth),
            None => StartedCommands::Computed,
        }
    }

    /// Adds the command that a wrapper starts. `words` are the words of this command.
    fn add_wrapped(
        &mut self,
        row: &Program,
        words: &[Word],
        dir: Option<String>,
        depth: usize,
    ) -> StartedCommands {
        if row.joins {
            let text = words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
            return self.add_text(&text, words.first(), dir.as_deref(), depth);
        }
        self.add_words(words, dir, depth)
    }

    /// Adds the other commands that a wrapper may start. An unknown option may or may not take the next word as its value, so the
    /// started command may begin at different words.
    fn add_readings(&mut self, command: &SimpleCommand, form: &CommandForm, depth: usize) {
        for reading in CommandForm::readings(&form::single(&command.words)) {
            let Some(row) = reading.syntax().filter(|_| reading.starts != form.starts) else {
                continue;
            };
            if let Some(words) = started_words(command, &reading, row) {
                self.with_role(Role::MayRun, |commands| {
                    commands.add_wrapped(row, &words, command.dir.clone(), depth)
                });
            }
        }
    }

    /// Adds the commands that may begin at the first words of a wrapper that the tables lack: `chronic git push`. A word with
    /// spaces may be a command line for a shell.
    fn add_guesses(&mut self, command: &SimpleCommand, depth: usize) {
        if self.guesses {
            return;
        }
        self.guesses = true;
        // The limits of this search are no reason to ask.
        let incomplete = self.script.incomplete;
        let words = command.words.iter().enumerate().skip(1);
        for (at, word) in words.take(MAX_GUESSES) {
            let dir = command.dir.as_deref();
            self.with_role(Role::MayRun, |commands| {
                if word.text().contains(char::is_whitespace) {
                    commands.add_text(word.text(), Some(word), dir, depth);
                } else if !word.text().starts_with('-') {
                    commands.add_words(&command.words[at..], dir.map(str::to_owned), depth);
                }
            });
        }
        self.script.incomplete = incomplete;
        self.guesses = false;
    }

    /// Adds the commands in here-strings and here-documents, which a shell may execute.
    fn add_input(&mut self, command: &SimpleCommand, depth: usize) {
        let strings = command.redirects.iter();
        let strings = strings.filter(|it| it.operator.ends_with("<<<"));
        let texts = strings.map(|it| &it.target).chain(&command.documents);
        for text in texts {
            self.with_role(Role::MayRun, |commands| {
                commands.add_text(text.text(), Some(text), command.dir.as_deref(), depth)
            });
        }
    }

    /// Adds the command of a sub-command that an option defines, as in `git -c alias.p=push p origin`.
    fn add_defined(&mut self, command: &SimpleCommand, form: &CommandForm, depth: usize) {
        let Some(name) = form.subcommand.first() else {
            return;
        };
        for option in form.options_in(|row| &row.definitions) {
            let value = option.value.as_deref().unwrap_or_default();
            let defined = value.split_once('=').filter(|(key, _)| {
                let alias = key.trim().strip_prefix("alias.");
                alias == Some(name.as_str())
            });
            let Some((_, text)) = defined else {
                continue;
            };
            let rest = command.words.get(form.arguments..).unwrap_or_default();
            let span = command
                .words
                .get(option.value_at)
                .map(|word| word.span.clone());
            // TOML has quotes and brackets around the words.
            let text = text.replace(['"', '[', ']', ','], " ");
            if let Some(text) = text.trim().strip_prefix('!') {
                let words = std::iter::once(text).chain(rest.iter().map(Word::text));
                let text = words.collect::<Vec<_>>().join(" ");
                let word = command.words.get(option.value_at);
                self.add_text(&text, word, command.dir.as_deref(), depth);
                continue;
            }
            let defined = text.split_whitespace();
            let defined =
                defined.map(|it| Word::literal(it.to_owned(), span.clone().unwrap_or_default()));
            let own = form
                .subcommand_at
                .first()
                .and_then(|at| command.words.get(..*at));
            let words = own.unwrap_or_default().iter().cloned().chain(defined);
            let words: Vec<Word> = words.chain(rest.iter().cloned()).collect();
            self.add_words(&words, command.dir.clone(), depth);
        }
    }

    /// Adds the commands after `-exec` and similar actions, up to `;` or `+`.
    fn add_executed(
        &mut self,
        command: &SimpleCommand,
        row: &Program,
        depth: usize,
    ) -> StartedCommands {
        let mut starts = StartedCommands::Nothing;
        for (place, word) in command.words.iter().enumerate() {
            if row.actions.has(word.text()) {
                let rest = &command.words[place + 1..];
                let end = rest
                    .iter()
                    .position(|word| matches!(word.text(), ";" | "+"))
                    .unwrap_or(rest.len());
                starts = self.add_words(&rest[..end], command.dir.clone(), depth);
            }
        }
        starts
    }

    fn add_words(&mut self, words: &[Word], dir: Option<String>, depth: usize) -> StartedCommands {
        let (Some(first), Some(last)) = (words.first(), words.last()) else {
            return StartedCommands::Nothing;
        };
        let command = SimpleCommand {
            span: first.span.start..last.span.end,
            words: words.to_vec(),
            dir,
            ..SimpleCommand::default()
        };
        self.add(command, depth + 1);
        StartedCommands::Known
    }

    /// Adds the commands in a text, which is the text of `word`. If bash expands the word, the real commands are unknown, and the
    /// added commands are only a guess.
    fn add_text(
        &mut self,
        text: &str,
        word: Option<&Word>,
        dir: Option<&str>,
        depth: usize,
    ) -> StartedCommands {
        if depth >= MAX_DEPTH {
            self.script.incomplete = true;
            return StartedCommands::Computed;
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
            StartedCommands::Known
        } else {
            StartedCommands::Computed
        }
    }
}

/// Returns true if a command may start another command that the tables cannot find in its words.
fn may_be_wrapper(form: &CommandForm) -> bool {
    match form.syntax() {
        None => !programs::is_subcommand(&form.program, &form.subcommand),
        Some(row) => {
            let starts = row.command_after_dashes || row.given == Some(GivenCode::Words);
            starts && form.starts.is_none()
        }
    }
}

/// Returns the words of the command that a wrapper starts. If the wrapper adds words, one more word stands for all of them.
fn started_words(command: &SimpleCommand, form: &CommandForm, row: &Program) -> Option<Vec<Word>> {
    let mut words = command.words.get(form.starts?..)?.to_vec();
    let unless = row.adds_words_unless.as_ref();
    let adds =
        unless.is_some_and(|unless| !form.options.iter().any(|it| unless.has_any(&it.names)));
    if let (true, Some(last)) = (adds, words.last()) {
        words.push(Word::added(last.span.clone()));
    }
    Some(words)
}
