//! Sorts simple commands: finds the row of each program, and says in a sentence what it would do.

use crate::bash::{Word, path_from};
use crate::programs::{self, Effect, Program, Reads, Sort};
use crate::wrappers::{FoundCommand, SHELLS, Starts, base_name};

/// A simple command with its sort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SortedCommand {
    pub sort: Sort,
    /// A description of its effect for the person; empty if it only looks.
    pub does: String,
    /// True if it may destroy something.
    pub destructive: bool,
    /// The program with its sub-command, and the words after it.
    pub name: Vec<String>,
    pub reads: Reads,
    /// The literal operands.
    pub operands: Vec<Word>,
    /// True if it is a part of the shell, which starts no program.
    pub syntax: bool,
}

/// Sorts a command. `functions` are the functions that the text defines; their commands are sorted by themselves.
pub(crate) fn sort(found: &FoundCommand, functions: &[String]) -> SortedCommand {
    let command = &found.command;
    let mut sorted = match command.words.split_first() {
        None => SortedCommand::syntax(&[]),
        Some((name, rest)) if !name.is_literal() => {
            let does = format!("runs a program whose name bash computes: `{}`", name.text());
            SortedCommand::asking(Sort::Unknown, does, name, rest)
        }
        Some((name, _)) if functions.iter().any(|it| it == name.text()) => {
            SortedCommand::syntax(&found.command.words)
        }
        Some((name, rest)) => sort_program(name, rest, found),
    };
    if let Some(target) = command.writes().next() {
        let mut does = format!("writes to {}", target.text());
        if leaves(command.dir.as_deref(), target.text()) {
            does.push_str(", outside the workspace");
        }
        sorted.add(Sort::Changes, does);
    }
    sorted
}

fn sort_program(name: &Word, rest: &[Word], found: &FoundCommand) -> SortedCommand {
    let text = name.text();
    let in_project = text.contains('/') && !text.starts_with('/');
    if in_project {
        let does = format!("runs the program {text}");
        return SortedCommand::asking(Sort::RunsCode, does, name, rest);
    }
    let base = base_name(text);
    if describes_itself(rest) && !text.contains('/') {
        return SortedCommand::looking(base, rest);
    }
    let Some((words, row)) = find_row(base, rest) else {
        return SortedCommand::asking(Sort::Unknown, unknown(base), name, rest);
    };
    if words.len() > 1 && describes_itself(&rest[words.len() - 1..]) {
        return SortedCommand::looking(base, rest);
    }
    let given = CommandArguments::new(row, &rest[words.len() - 1..]);
    let effect = effect(row, &given, found, base);
    let operands = given.operands;
    let mut sorted = SortedCommand {
        sort: effect.sort,
        does: String::new(),
        destructive: effect.for_good || (row.destroys && effect.sort != Sort::Looks),
        name: names(&words, rest),
        reads: row.reads,
        syntax: row.syntax,
        operands: Vec::new(),
    };
    if effect.sort != Sort::Looks {
        sorted.does = sentence(&effect, &operands, found.command.dir.as_deref());
    }
    if found.starts == Starts::Computed && sorted.sort < Sort::RunsCode {
        sorted.add(
            Sort::Unknown,
            "runs a command that bash computes".to_owned(),
        );
    }
    sorted.operands = operands.into_iter().filter(Word::is_literal).collect();
    sorted
}

/// Returns whether a program, or its sub-command, gets nothing but the wish to print its help or version.
fn describes_itself(words: &[Word]) -> bool {
    matches!(words, [only] if only.is_literal() && matches!(only.text(), "--version" | "--help"))
}

/// Returns the sentence for a program without a row.
fn unknown(name: &str) -> String {
    format!("co does not know what `{name}` does")
}

/// Returns the row with the most words of the program's name, and these words.
fn find_row<'a>(base: &'a str, rest: &'a [Word]) -> Option<(Vec<&'a str>, &'static Program)> {
    let row = programs::lookup(base);
    let mut words = vec![base];
    let mut best = row.map(|row| (1, row));
    let mut key = base.to_owned();
    let mut skip = false;
    for word in rest.iter() {
        let text = word.text();
        words.push(text);
        if skip || text.starts_with('-') {
            skip = !skip && row.is_some_and(|row| row.takes_value(text));
            continue;
        }
        key = format!("{key} {text}");
        match programs::lookup(&key) {
            Some(longer) if word.is_literal() => best = Some((words.len(), longer)),
            _ if key.matches(' ').count() > 1 => break,
            _ => {}
        }
        if key.matches(' ').count() > 2 {
            break;
        }
    }
    best.map(|(length, row)| (words[..length].to_vec(), row))
}

/// The program with its sub-command, without options before it, and the words after it.
fn names(words: &[&str], rest: &[Word]) -> Vec<String> {
    let (first, last) = (words.first(), words.get(1..).unwrap_or_default());
    let sub = last.iter().filter(|word| !word.starts_with('-'));
    let after = rest[words.len() - 1..].iter().map(Word::text);
    let all = first.into_iter().chain(sub).copied().chain(after);
    all.map(str::to_owned).collect()
}

/// The options and operands of a command, by the row of its program.
struct CommandArguments {
    /// The effects of the options that change the sort.
    effects: Vec<Effect>,
    operands: Vec<Word>,
}

impl CommandArguments {
    fn new(row: &Program, words: &[Word]) -> Self {
        let mut given = Self {
            effects: Vec::new(),
            operands: Vec::new(),
        };
        let mut words = words.iter().enumerate();
        let mut options_end = false;
        while let Some((place, word)) = words.next() {
            let text = word.text();
            if !options_end {
                given.add_exact(row, text);
            }
            if options_end || !text.starts_with('-') || text.len() < 2 {
                if place == 0 && row.bundle {
                    given.add_letters(row, text);
                }
                given.operands.push(word.clone());
            } else if text == "--" {
                options_end = true;
            } else if given.add_option(row, text) {
                words.next();
            }
        }
        given
    }

    fn add_exact(&mut self, row: &Program, text: &str) {
        let matching = row.options.iter().filter(|it| it.matches(text));
        self.effects.extend(matching.map(programs::Options::effect));
    }

    /// Adds an option's effects. Returns true if its value is the next word.
    fn add_option(&mut self, row: &Program, text: &str) -> bool {
        if text.starts_with("--") || row.whole_options {
            return row.takes_value(text);
        }
        self.add_letters(row, &text[1..])
    }

    /// Adds the effects of letters behind one dash, up to one with a value. Returns true if the value is the next word.
    fn add_letters(&mut self, row: &Program, letters: &str) -> bool {
        for (at, letter) in letters.char_indices() {
            let matching = row.options.iter().filter(|it| it.has_letter(letter));
            self.effects.extend(matching.map(programs::Options::effect));
            if row.takes_value(&format!("-{letter}")) {
                return at + letter.len_utf8() == letters.len();
            }
        }
        false
    }
}

/// Returns the effect of a command by its options, its number of operands and the row of its program.
fn effect(row: &Program, given: &CommandArguments, found: &FoundCommand, base: &str) -> Effect {
    if SHELLS.contains(&base) && found.starts == Starts::Known {
        return Effect::default();
    }
    let worst = |effect: &&Effect| (effect.sort, effect.for_good);
    if let Some(worst) = given.effects.iter().max_by_key(worst) {
        return worst.clone();
    }
    let beyond = row.beyond.as_ref();
    let more = |max: usize| given.operands.len() > max;
    if let (Some(beyond), true) = (beyond, row.max.is_some_and(more)) {
        return beyond.clone();
    }
    match &row.alone {
        Some(alone) if given.operands.is_empty() && found.starts == Starts::Nothing => {
            alone.clone()
        }
        _ => row.effect(),
    }
}

impl SortedCommand {
    fn looking(name: &str, rest: &[Word]) -> Self {
        let rest = rest.iter().map(|word| word.text().to_owned());
        Self {
            sort: Sort::Looks,
            does: String::new(),
            destructive: false,
            name: [name.to_owned()].into_iter().chain(rest).collect(),
            reads: Reads::Text,
            operands: Vec::new(),
            syntax: false,
        }
    }

    /// A part of the shell: an assignment, or the call of a function.
    fn syntax(words: &[Word]) -> Self {
        Self {
            syntax: true,
            name: words.iter().map(|word| word.text().to_owned()).collect(),
            ..Self::looking("", &[])
        }
    }

    fn asking(sort: Sort, does: String, name: &Word, rest: &[Word]) -> Self {
        Self {
            sort,
            does,
            ..Self::looking(name.text(), rest)
        }
    }

    /// Makes the sort at least as bad as `sort`, and adds what the command does as well.
    fn add(&mut self, sort: Sort, does: String) {
        self.sort = self.sort.max(sort);
        self.does = match self.does.is_empty() {
            true => does,
            false => format!("{} and {does}", self.does),
        };
    }
}

/// Fills a sentence with the operands, and says if the change leaves the workspace or is for good.
fn sentence(effect: &Effect, operands: &[Word], dir: Option<&str>) -> String {
    let mut text = fill(&effect.does, operands);
    if effect.sort == Sort::Changes && operands.iter().any(|word| leaves(dir, word.text())) {
        text.push_str(", outside the workspace");
    }
    if effect.for_good {
        text.push_str(", for good");
    }
    text
}

/// True for a path that may leave the workspace, by its text alone.
fn leaves(dir: Option<&str>, path: &str) -> bool {
    let whole = path_from(dir, path);
    whole.starts_with(['/', '~']) || whole.split('/').any(|part| part == "..")
}

/// Replaces the names in braces by operands: `{first|a file}`.
fn fill(template: &str, operands: &[Word]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (field, after) = after.split_once('}').unwrap_or((after, ""));
        let (name, fallback) = field.split_once('|').unwrap_or((field, ""));
        let chosen = match name {
            "first" => operands.get(..1),
            "last" => operands.last().map(std::slice::from_ref),
            "rest" => operands.get(1..),
            "init" => operands.split_last().map(|(_, init)| init),
            _ => Some(operands),
        };
        text.push_str(before);
        match chosen.unwrap_or_default() {
            [] => text.push_str(fallback),
            words => text.push_str(&list(words)),
        }
        rest = after;
    }
    text.push_str(rest);
    text.trim_end().to_owned()
}

/// Lists words for a sentence: at most three, each cut to a readable length.
fn list(words: &[Word]) -> String {
    const MAX_SHOWN_WORDS: usize = 3;
    const MAX_WORD_CHARS: usize = 60;
    // find and xargs put file names in its place.
    const EACH_FILE: &str = "{}";
    let short = |word: &Word| match word.text().char_indices().nth(MAX_WORD_CHARS) {
        Some((at, _)) => format!("{}…", &word.text()[..at]),
        None if word.text() == EACH_FILE => "each file".to_owned(),
        None => word.text().to_owned(),
    };
    let shown: Vec<String> = words.iter().take(MAX_SHOWN_WORDS).map(short).collect();
    match words.len().saturating_sub(MAX_SHOWN_WORDS) {
        0 => match shown.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, init)) => format!("{} and {last}", init.join(", ")),
            None => String::new(),
        },
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests;
