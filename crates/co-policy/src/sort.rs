//! Sorts simple commands: finds the row of each program, and describes the effect in a sentence.

use crate::bash::{Word, path_from};
use crate::form::{self, CommandForm};
use crate::programs::{self, Effect, OperandData, Options, Program, Sort};
use crate::wrappers::{FoundCommand, SHELLS, StartedCommands, base_name};
use co_text::shorten_chars;

/// A simple command with its sort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SortedCommand {
    pub sort: Sort,
    /// A description for the person of what the command does. It is empty if the command is read-only.
    pub does: String,
    /// True if the command uses the network only to fetch packages for the workspace.
    pub fetches: bool,
    /// True if the command may destroy something.
    pub destructive: bool,
    /// The program, its sub-command, and the words after it.
    pub name: Vec<String>,
    pub reads: OperandData,
    /// The operands that are literal words.
    pub operands: Vec<Word>,
    /// True if the command is shell syntax and starts no program.
    pub syntax: bool,
}

/// Sorts a simple command. `functions` are the functions that the command line defines; the commands in them are sorted
/// separately.
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
    let form = &found.form;
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
    let Some((depth, row)) = form.row() else {
        return SortedCommand::asking(Sort::Unknown, unknown(base), name, rest);
    };
    let words = &found.command.words;
    let begins = match depth {
        0 => 1,
        _ => form.subcommand_at.get(depth - 1).map_or(1, |at| at + 1),
    };
    if depth > 0 && describes_itself(&words[begins..]) {
        return SortedCommand::looking(base, rest);
    }
    let unknown = form.subcommand_at.iter().skip(depth);
    let places = unknown.copied().chain(form.operands.iter().map(|it| it.at));
    let operands: Vec<Word> = places.map(|at| words[at].clone()).collect();
    let effect = effect(row, form, &operands, found);
    let subcommand = form.subcommand.iter().take(depth).cloned();
    let after = words[begins..].iter().map(|word| word.text().to_owned());
    let mut sorted = SortedCommand {
        sort: effect.sort,
        does: String::new(),
        fetches: effect.fetches,
        destructive: effect.for_good || (row.destroys && effect.sort != Sort::Looks),
        name: std::iter::once(form.program.clone())
            .chain(subcommand)
            .chain(after)
            .collect(),
        reads: row.reads,
        syntax: row.syntax,
        operands: Vec::new(),
    };
    if effect.sort != Sort::Looks {
        // `pip install -r x.txt` has no operand: the sentence names the value of the option.
        let options = form.own_options().filter(|it| it.value_at > it.at);
        let deciding = options.filter(|it| it.names.iter().any(|name| row.changes_sort(name)));
        let values: Vec<Word> = deciding.map(|it| words[it.value_at].clone()).collect();
        let named = if operands.is_empty() {
            &values
        } else {
            &operands
        };
        sorted.does = sentence(&effect, named, found.command.dir.as_deref());
    }
    if found.starts == StartedCommands::Computed && sorted.sort < Sort::RunsCode {
        sorted.add(
            Sort::Unknown,
            "runs a command that bash computes".to_owned(),
        );
    }
    sorted.operands = operands.into_iter().filter(Word::is_literal).collect();
    sorted
}

/// Returns true if the only argument of a program or sub-command asks for its help or version.
fn describes_itself(words: &[Word]) -> bool {
    matches!(words, [only] if only.is_literal() && matches!(only.text(), "--version" | "--help"))
}

/// Returns true if a command that begins with these words may be read-only. Returns `None` if the tables lack the program.
pub(crate) fn may_look(words: &[String]) -> Option<bool> {
    let form = CommandForm::read(&form::literal(words));
    let (depth, row) = form.row()?;
    let looks = |effect: Effect| effect.sort == Sort::Looks;
    let given = row.options.iter().filter(|it| form.gives(it));
    if let Some(worst) = given.map(|it| it.effect().sort).max() {
        return Some(worst == Sort::Looks);
    }
    let is_open = depth == form.subcommand.len();
    let deeper = || programs::that_look().any(|name| form.is_above(name));
    let options = row.options.iter().any(|it| looks(it.effect()));
    let alone = || form.operands.is_empty() && row.alone.clone().is_some_and(looks);
    Some(looks(row.effect()) || options || (is_open && (alone() || deeper())))
}

/// Returns the description of a program that has no row.
fn unknown(name: &str) -> String {
    format!("co does not know what `{name}` does")
}

/// Returns the effect of a command. It depends on its options, its number of operands and the row of its program.
fn effect(row: &Program, form: &CommandForm, operands: &[Word], found: &FoundCommand) -> Effect {
    if SHELLS.contains(&form.program.as_str()) && found.starts == StartedCommands::Known {
        return Effect::default();
    }
    let given = |options: &&Options| {
        form.gives(options) || operands.iter().any(|word| options.begins(word.text()))
    };
    let effects = row.options.iter().filter(given).map(Options::effect);
    if let Some(worst) =
        effects.max_by_key(|effect| (effect.sort, effect.for_good, !effect.fetches))
    {
        return worst;
    }
    let beyond = row.beyond.as_ref();
    let more = |max: usize| operands.len() > max;
    if let (Some(beyond), true) = (beyond, row.max.is_some_and(more)) {
        return beyond.clone();
    }
    match &row.alone {
        Some(alone) if operands.is_empty() && found.starts == StartedCommands::Nothing => {
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
            fetches: false,
            destructive: false,
            name: [name.to_owned()].into_iter().chain(rest).collect(),
            reads: OperandData::Text,
            operands: Vec::new(),
            syntax: false,
        }
    }

    /// Makes a sorted command of shell syntax: an assignment, or the call of a function. Its sort is read-only.
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

    /// Raises the sort to at least `sort`, and adds `does` to the description.
    fn add(&mut self, sort: Sort, does: String) {
        self.sort = self.sort.max(sort);
        self.does = match self.does.is_empty() {
            true => does,
            false => format!("{} and {does}", self.does),
        };
    }
}

/// Fills the operands into the description of an effect. Adds a note if the change is outside the workspace or cannot be undone.
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

/// Returns true if a path may be outside the workspace, judged only by its text.
fn leaves(dir: Option<&str>, path: &str) -> bool {
    let whole = path_from(dir, path);
    whole.starts_with(['/', '~']) || whole.split('/').any(|part| part == "..")
}

/// Replaces each placeholder in braces, such as `{first|a file}`, by operands. If there are no operands, the text after `|` is
/// used.
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

/// Lists words in a sentence: at most three, each cut to a readable length.
fn list(words: &[Word]) -> String {
    const MAX_SHOWN_WORDS: usize = 3;
    const MAX_WORD_CHARS: usize = 60;
    // find puts file names in its place, and xargs adds what it reads.
    const EACH_FILE: &str = "{}";
    let short = |word: &Word| match word.text() {
        EACH_FILE if word.is_literal() => "each file".to_owned(),
        EACH_FILE => "what its input names".to_owned(),
        text => shorten_chars(text, MAX_WORD_CHARS),
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
