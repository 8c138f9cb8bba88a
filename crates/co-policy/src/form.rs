//! The normal form of a simple command: the program, its own options, the sub-command with its options, and the operands.
//!
//! The tables of programs say which options take a value and which words are sub-commands. All parts of the policy (sorts,
//! effects, wrappers, rules and prefixes) read commands with this module.

use crate::bash::Word;
use crate::programs::{self, OptionList, Options, Program, SameCommand};

mod reader;

/// The table rows whose options may stand at one position of a command. The row of the innermost sub-command comes first.
type Rows = Vec<&'static Program>;

/// A word of a command, with its index in the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormWord {
    pub text: String,
    /// False if bash computes the word. Then it may turn out to be no word, an option or several words.
    pub literal: bool,
    pub at: usize,
}

/// A simple command in its normal form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandForm {
    /// The name of the program in the tables. If the tables do not have the program, it is the name as written, without the
    /// directory.
    pub program: String,
    /// The words of the sub-command, under its usual name. The tables may lack this sub-command.
    pub subcommand: Vec<String>,
    /// The options of the program and of the sub-command, in the order of the command line.
    pub options: Vec<FormOption>,
    pub operands: Vec<Operand>,
    /// True if the command contains `--`, which ends the options.
    pub dashes: bool,
    /// The index of the first word of the command that this command starts.
    pub(crate) starts: Option<usize>,
    /// The indices of the sub-command's words.
    pub(crate) subcommand_at: Vec<usize>,
    /// The index of the first word after the sub-command.
    pub(crate) arguments: usize,
}

/// An option of a command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FormOption {
    /// The index of the option's word.
    pub(crate) at: usize,
    /// The number of words of the sub-command before the option. It is 0 for an option of the program itself.
    pub depth: usize,
    /// All names of the option in the tables. If the tables lack the option, it is the name as written.
    pub names: Vec<String>,
    pub value: Option<String>,
    /// The index of the word that contains the option's value.
    pub(crate) value_at: usize,
    /// True if the tables have the option.
    pub known: bool,
}

/// An operand: an argument of a command that is no option and no sub-command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Operand {
    /// The index of the operand's word.
    pub(crate) at: usize,
    pub text: String,
}

impl FormOption {
    /// Returns the longest name of the option.
    pub fn name(&self) -> &str {
        let longest = self.names.iter().max_by_key(|name| name.len());
        longest.map_or("", String::as_str)
    }
}

impl CommandForm {
    /// Returns all normal forms that the words may have, and the forms of equivalent commands.
    pub(crate) fn rule_readings(words: &[FormWord]) -> Vec<Self> {
        let mut forms = Self::readings(words);
        let same: Vec<Self> = forms
            .iter()
            .flat_map(|form| form.same_commands(words))
            .flat_map(|words| Self::readings(&words))
            .collect();
        forms.extend(same);
        forms
    }

    /// Returns the words of equivalent commands: of other sub-commands that do the same.
    fn same_commands(&self, words: &[FormWord]) -> Vec<Vec<FormWord>> {
        let same = self.syntax().map(|row| row.same.as_slice());
        let same = same.unwrap_or_default().iter();
        let given = same.filter(|same| same.with.split(' ').all(|it| self.has_word(it)));
        let before = self.subcommand_at.first().and_then(|at| words.get(1..*at));
        let before = before.unwrap_or_default();
        let other = |own: &str, from: usize| {
            let own: Vec<&str> = own.split(' ').collect();
            let (program, own) = own.split_at(1);
            let rest = words.get(from..).unwrap_or_default();
            let all = [literal(program).as_slice(), before, &literal(own), rest].concat();
            let renumbered = all.into_iter().enumerate();
            renumbered
                .map(|(at, word)| FormWord { at, ..word })
                .collect()
        };
        let from = |same: &SameCommand| match same.without {
            0 => self.arguments,
            number => self
                .operands
                .get(number - 1)
                .map_or(words.len(), |it| it.at + 1),
        };
        let row = programs::lookup(&self.program);
        let run = row
            .zip(self.subcommand.first())
            .and_then(|(row, name)| row.runs_script(name));
        let script = run.zip(self.subcommand_at.first());
        let script = script.map(|(run, at)| other(&format!("{} {run}", self.program), *at));
        given
            .map(|same| other(&same.words, from(same)))
            .chain(script)
            .collect()
    }

    /// Returns true if the command has this option or operand. A word that ends in `+` or `:` also matches an operand that starts
    /// with it.
    fn has_word(&self, word: &str) -> bool {
        let option = |it: &FormOption| it.names.iter().any(|own| own == word);
        let starts = word.ends_with(['+', ':']);
        let operand = |it: &Operand| it.text == word || (starts && it.text.starts_with(word));
        match word.starts_with('-') {
            true => self.options.iter().any(option),
            false => word.is_empty() || self.operands.iter().any(operand),
        }
    }

    /// Returns the most specific row of the tables that has a sort, and the number of sub-command words in its name.
    pub(crate) fn row(&self) -> Option<(usize, &'static Program)> {
        let mut depths = (0..=self.subcommand.len()).rev();
        depths.find_map(|depth| {
            let row = lookup(&self.program, &self.subcommand[..depth])?;
            row.sort().map(|_| (depth, row))
        })
    }

    /// Returns the row of the sub-command. This row may describe only the syntax and have no sort.
    pub(crate) fn syntax(&self) -> Option<&'static Program> {
        lookup(&self.program, &self.subcommand)
    }

    /// Returns the options of the command that are in a certain list of their table rows. `list` returns this list of a row.
    pub(crate) fn options_in(
        &self,
        list: fn(&Program) -> &OptionList,
    ) -> impl Iterator<Item = &FormOption> {
        self.options.iter().filter(move |option| {
            let rows = rows(&self.program, &self.subcommand[..option.depth]);
            rows.iter().any(|row| list(row).has_any(&option.names))
        })
    }

    /// Returns the options that stand after the sub-command or could stand there.
    pub(crate) fn own_options(&self) -> impl Iterator<Item = &FormOption> {
        let (depth, global) = (self.subcommand.len(), self.has_global_options());
        self.options
            .iter()
            .filter(move |it| global || it.depth == depth)
    }

    /// Returns true if the command has one of these options. The list may contain `--`.
    pub(crate) fn gives(&self, options: &Options) -> bool {
        self.own_options().any(|it| options.names_any(&it.names))
            || (self.dashes && options.has_dashes())
    }

    /// Returns true if `name` is the name of a deeper sub-command in the tables: `git stash drop` for `git stash`.
    pub(crate) fn is_above(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&key(&self.program, &self.subcommand));
        rest.is_some_and(|rest| rest.starts_with(' '))
    }

    /// Returns true if the tables have all options of the program.
    fn is_complete(&self) -> bool {
        programs::lookup(&self.program).is_some_and(|row| row.complete)
    }

    /// Returns true if this form of a rule matches the form of a command. Both must have the same program and sub-command. The
    /// command must have all options of the rule, and the rule's operands in the same order.
    pub(crate) fn matches(&self, command: &Self) -> bool {
        let complete = self.is_complete();
        let same = |want: &str, word: &str| want == "*" || want == word;
        let common = match complete {
            true => self.subcommand.len(),
            false => 0,
        };
        let begins = self.subcommand.len() <= command.subcommand.len() || !complete;
        begins
            && same(&self.program, &command.program)
            && (self.subcommand.iter().zip(&command.subcommand).take(common))
                .all(|(want, word)| same(want, word))
            && (!self.dashes || command.dashes)
            && self.options.iter().all(|want| {
                let level = |it: &FormOption| {
                    !complete || want.depth == it.depth || self.has_global_options()
                };
                command
                    .options
                    .iter()
                    .any(|it| level(it) && want.is_met_by(it))
            })
            && self.has_operands_of(command, common)
    }

    fn has_global_options(&self) -> bool {
        programs::lookup(&self.program).is_some_and(|row| row.global)
    }

    /// Returns true if a command has all operands of this form, in the same order. Words of the sub-command after the first
    /// `common` words count as operands.
    fn has_operands_of(&self, command: &Self, common: usize) -> bool {
        let wanted = self.subcommand[common..].iter();
        let wanted = wanted.chain(self.operands.iter().map(|it| &it.text));
        let rest = command.subcommand.get(common..).unwrap_or_default();
        let mut given = rest.iter();
        let mut operands = command.operands.iter();
        let mut last = 0;
        for want in wanted {
            let matches = |text: &str| want == "*" || want == text;
            if given.any(|text| matches(text)) {
                continue;
            }
            // Texts at one place are alternatives.
            match operands.find(|it| it.at > last && matches(&it.text)) {
                Some(it) => last = it.at,
                None => return false,
            }
        }
        true
    }
}

impl FormOption {
    /// Returns true if `given`, an option of a command, matches this option of a rule.
    fn is_met_by(&self, given: &Self) -> bool {
        let named = self.names.iter().any(|name| {
            let abbreviated = |short: &String| {
                !given.known
                    && short.len() > 2
                    && short.starts_with("--")
                    && name.starts_with(short.as_str())
            };
            given.names.iter().any(|it| it == name || abbreviated(it))
        });
        let value = match &self.value {
            Some(want) if want != "*" => given.value.as_ref() == Some(want),
            _ => true,
        };
        named && value
    }
}

/// Returns true if a deny or ask rule with these words matches a command. `words` are the words of the command, and `readings`
/// are its normal forms.
pub(crate) fn matches(rule: &[String], words: &[String], readings: &[CommandForm]) -> bool {
    let form = CommandForm::read(&literal(rule));
    let same_program = readings.iter().any(|it| it.program == form.program);
    let loose = !form.is_complete() || rule.iter().any(|word| word == "*");
    let mut rest = words.iter().skip(1);
    let mut in_order = rule.iter().skip(1);
    (same_program && loose && in_order.all(|want| rest.any(|word| want == "*" || want == word)))
        || readings.iter().any(|command| form.matches(command))
}

/// Returns the table row of a program or of a sub-command.
fn lookup(program: &str, subcommand: &[String]) -> Option<&'static Program> {
    programs::lookup(&key(program, subcommand))
}

/// Returns the table rows whose options may stand after a sub-command. The row of the innermost sub-command comes first.
fn rows(program: &str, subcommand: &[String]) -> Rows {
    let depths = (0..=subcommand.len()).rev();
    let rows = depths.filter_map(|depth| {
        let row = lookup(program, &subcommand[..depth])?;
        (depth == subcommand.len() || row.global).then_some(row)
    });
    let like = |row: &'static Program| row.like.iter().filter_map(|name| programs::lookup(name));
    rows.flat_map(|row| std::iter::once(row).chain(like(row)))
        .collect()
}

fn key(program: &str, subcommand: &[String]) -> String {
    let words = std::iter::once(program).chain(subcommand.iter().map(String::as_str));
    words.collect::<Vec<_>>().join(" ")
}

/// Converts words of bash to [`FormWord`]s. Expands brace lists, so one word may become several.
pub(crate) fn expanded(words: &[Word]) -> Vec<FormWord> {
    let forms = words.iter().flat_map(|word| {
        let list = word.forms().len() > 1;
        // Bash removes an empty word that a list leaves.
        let forms = word
            .forms()
            .iter()
            .filter(move |text| !list || !text.is_empty());
        forms.map(move |text| (text.clone(), word.is_literal() || list))
    });
    forms.enumerate().map(form_word).collect()
}

/// Converts each word of bash to one [`FormWord`], without expanding brace lists.
pub(crate) fn single(words: &[Word]) -> Vec<FormWord> {
    let words = words
        .iter()
        .map(|word| (word.text().to_owned(), word.is_literal()));
    words.enumerate().map(form_word).collect()
}

/// Converts literal words to [`FormWord`]s.
pub(crate) fn literal<S: AsRef<str>>(words: &[S]) -> Vec<FormWord> {
    let words = words.iter().map(|word| (word.as_ref().to_owned(), true));
    words.enumerate().map(form_word).collect()
}

fn form_word((at, (text, literal)): (usize, (String, bool))) -> FormWord {
    FormWord { text, literal, at }
}
