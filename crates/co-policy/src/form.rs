//! The normal form of a simple command: program, its own options, sub-command, options, operands.
//!
//! The tables of programs say which options take a value and which words are sub-commands. Sorting, effects, wrappers, rules
//! and prefixes all read a command by this module.

use std::collections::BTreeSet;

use crate::bash::Word;
use crate::programs::{self, OptionList, OptionValue, Options, Program, SameCommand};

/// Sub-commands of sub-commands are not searched more deeply.
const MAX_DEPTH: usize = 4;

/// A word to read, with its place in the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormWord {
    pub text: String,
    /// False if bash computes the word, so that it may become none, an option or several words.
    pub literal: bool,
    pub at: usize,
}

/// A simple command in its normal form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandForm {
    /// The name of the program in the tables, or its name without the directory.
    pub program: String,
    /// The words of the sub-command, by its usual name. The tables may not know it.
    pub subcommand: Vec<String>,
    /// The options of the program and of the sub-command, in the order of the command.
    pub options: Vec<FormOption>,
    pub operands: Vec<Operand>,
    /// True if `--` ends the options.
    pub dashes: bool,
    /// The place of the word that begins a started command.
    pub(crate) starts: Option<usize>,
    /// The places of the sub-command's words.
    pub(crate) subcommand_at: Vec<usize>,
    /// The place of the first word behind the sub-command.
    pub(crate) arguments: usize,
}

/// An option of a command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FormOption {
    /// The place of its word.
    pub(crate) at: usize,
    /// The number of the sub-command's words before it. An option at 0 is the program's own.
    pub depth: usize,
    /// The names of the option in the tables, or its name as written.
    pub names: Vec<String>,
    pub value: Option<String>,
    /// The place of the word with its value.
    pub(crate) value_at: usize,
    /// True if the tables know the option.
    pub known: bool,
}

/// An operand of a command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Operand {
    /// The place of its word.
    pub(crate) at: usize,
    pub text: String,
}

impl FormOption {
    /// Returns the longest name.
    pub fn name(&self) -> &str {
        let longest = self.names.iter().max_by_key(|name| name.len());
        longest.map_or("", String::as_str)
    }
}

impl CommandForm {
    /// Reads words. An option that the tables do not know takes no value in the next word.
    pub(crate) fn read(words: &[FormWord]) -> Self {
        let mut forms = FormReader::new(words, false).forms();
        forms.pop().unwrap_or_default()
    }

    /// Returns all forms that the words can have. An option that the tables do not know may or may not take the next word
    /// as its value. Each form has the union of what its options and operands can be.
    pub(crate) fn readings(words: &[FormWord]) -> Vec<Self> {
        FormReader::new(words, true).forms()
    }

    /// Returns all forms that the words can have, and those of other commands that do the same.
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

    /// Returns the words of the other commands that do the same.
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

    /// Returns whether the command has this option or operand, or an operand that starts with this sign.
    fn has_word(&self, word: &str) -> bool {
        let option = |it: &FormOption| it.names.iter().any(|own| own == word);
        let starts = word.ends_with(['+', ':']);
        let operand = |it: &Operand| it.text == word || (starts && it.text.starts_with(word));
        match word.starts_with('-') {
            true => self.options.iter().any(option),
            false => word.is_empty() || self.operands.iter().any(operand),
        }
    }

    /// Returns the row that has the most words of the sub-command, and the number of these words.
    pub(crate) fn row(&self) -> Option<(usize, &'static Program)> {
        let mut depths = (0..=self.subcommand.len()).rev();
        depths.find_map(|depth| {
            let row = lookup(&self.program, &self.subcommand[..depth])?;
            row.sort().map(|_| (depth, row))
        })
    }

    /// Returns the row of the sub-command, which may have no effect.
    pub(crate) fn syntax(&self) -> Option<&'static Program> {
        lookup(&self.program, &self.subcommand)
    }

    /// Returns the options that are in a list of the rows of their level.
    pub(crate) fn options_in(
        &self,
        list: fn(&Program) -> &OptionList,
    ) -> impl Iterator<Item = &FormOption> {
        self.options.iter().filter(move |option| {
            let rows = rows(&self.program, &self.subcommand[..option.depth]);
            rows.iter().any(|row| list(row).has_any(&option.names))
        })
    }

    /// Returns the options that stand behind the sub-command, or may stand there.
    pub(crate) fn own_options(&self) -> impl Iterator<Item = &FormOption> {
        let (depth, global) = (self.subcommand.len(), self.has_global_options());
        self.options
            .iter()
            .filter(move |it| global || it.depth == depth)
    }

    /// Returns whether the command has one of these options, or `--` if that is among them.
    pub(crate) fn gives(&self, options: &Options) -> bool {
        self.own_options().any(|it| options.names_any(&it.names))
            || (self.dashes && options.has_dashes())
    }

    /// Returns whether the table's name of a sub-command is one of a sub-command of this.
    pub(crate) fn is_above(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&key(&self.program, &self.subcommand));
        rest.is_some_and(|rest| rest.starts_with(' '))
    }

    /// Returns whether the tables know all options of the program.
    fn is_complete(&self) -> bool {
        programs::lookup(&self.program).is_some_and(|row| row.complete)
    }

    /// Returns whether a command of this form, which a rule has, is a part of `command`: the same program and sub-command,
    /// and some of its options and operands, these in their order.
    pub(crate) fn is_part_of(&self, command: &Self) -> bool {
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

    /// Returns whether the operands, after the first `common` words of the sub-command, are among those of `command` in
    /// their order.
    fn has_operands_of(&self, command: &Self, common: usize) -> bool {
        let wanted = self.subcommand[common..].iter();
        let wanted = wanted.chain(self.operands.iter().map(|it| &it.text));
        let rest = command.subcommand.get(common..).unwrap_or_default();
        let mut given = rest.iter().map(|text| (0, text));
        let mut operands = command
            .operands
            .iter()
            .map(|it| (it.at, &it.text))
            .peekable();
        let mut last = 0;
        for want in wanted {
            let matches = |text: &str| want == "*" || want == text;
            if given.any(|(_, text)| matches(text)) {
                continue;
            }
            // Texts at one place are alternatives.
            match operands.find(|(at, text)| *at > last && matches(text)) {
                Some((at, _)) => last = at,
                None => return false,
            }
        }
        true
    }
}

impl FormOption {
    /// Returns whether the option of a command is this option of a rule.
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

/// Returns whether a deny or ask rule of these words matches a command with these words and readings.
pub(crate) fn matches(rule: &[String], words: &[String], readings: &[CommandForm]) -> bool {
    let form = CommandForm::read(&literal(rule));
    let same_program = readings.iter().any(|it| it.program == form.program);
    let loose = !form.is_complete() || rule.iter().any(|word| word == "*");
    let mut rest = words.iter().skip(1);
    let mut in_order = rule.iter().skip(1);
    (same_program && loose && in_order.all(|want| rest.any(|word| want == "*" || want == word)))
        || readings.iter().any(|command| form.is_part_of(command))
}

/// Returns the row of a program or of a sub-command.
fn lookup(program: &str, subcommand: &[String]) -> Option<&'static Program> {
    programs::lookup(&key(program, subcommand))
}

/// Returns the rows whose options may stand behind a sub-command, the innermost first.
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

/// Returns the words of a command to read. Brace lists are expanded.
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

/// Returns the words of a command to read, one for each word.
pub(crate) fn single(words: &[Word]) -> Vec<FormWord> {
    let words = words
        .iter()
        .map(|word| (word.text().to_owned(), word.is_literal()));
    words.enumerate().map(form_word).collect()
}

/// Returns literal words to read.
pub(crate) fn literal<S: AsRef<str>>(words: &[S]) -> Vec<FormWord> {
    let words = words.iter().map(|word| (word.as_ref().to_owned(), true));
    words.enumerate().map(form_word).collect()
}

fn form_word((at, (text, literal)): (usize, (String, bool))) -> FormWord {
    FormWord { text, literal, at }
}

struct FormReader<'a> {
    program: String,
    /// The words behind the program.
    words: Vec<&'a FormWord>,
    /// The number of words of the command.
    length: usize,
    /// True if both readings of an unknown option count.
    both: bool,
    /// True if the tables have all options and sub-commands of the program.
    complete: bool,
    /// The first word of the sub-command, if the name of the program has it: `git-push`.
    joined: Option<String>,
}

/// A sub-command, and what stands before it.
#[derive(Default)]
struct Level {
    subcommand: Vec<String>,
    /// The places of its words.
    places: Vec<usize>,
    /// The options before it.
    options: Vec<FormOption>,
    /// The position of the first word behind it.
    from: usize,
}

/// The rows whose options may stand at a position, the innermost first.
type Rows = Vec<&'static Program>;

/// A position in the words: the number of operands before it, and whether `--` stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    at: usize,
    operands: usize,
    dashes: bool,
}

/// The options and operands between two places.
#[derive(Default)]
struct Scan {
    options: BTreeSet<FormOption>,
    operands: BTreeSet<Operand>,
    dashes: bool,
    /// Positions of the operand that ends the scan.
    ends: BTreeSet<usize>,
}

impl<'a> FormReader<'a> {
    fn new(words: &'a [FormWord], both: bool) -> Self {
        let (first, rest) = match words.split_first() {
            Some((first, rest)) => (first.text.as_str(), rest),
            None => ("", words),
        };
        let base = first.rsplit('/').next().unwrap_or(first);
        let (program, joined) = programs::canonical(base);
        Self {
            complete: programs::lookup(&program).is_some_and(|row| row.complete),
            program,
            words: rest.iter().collect(),
            length: words.len(),
            both,
            joined,
        }
    }

    fn forms(&self) -> Vec<CommandForm> {
        let mut forms = Vec::new();
        let own = Level {
            places: self.joined.iter().map(|_| 0).collect(),
            subcommand: self.joined.iter().cloned().collect(),
            ..Level::default()
        };
        self.descend(own, &mut forms);
        forms
    }

    /// Adds the forms of the words behind a sub-command.
    fn descend(&self, level: Level, forms: &mut Vec<CommandForm>) {
        let depth = level.subcommand.len();
        let rows = rows(&self.program, &level.subcommand);
        let parent = key(&self.program, &level.subcommand);
        if programs::has_subcommands(&parent) && depth < MAX_DEPTH {
            let scan = self.scan(&rows, depth, level.from, Some(0));
            let mut is_leaf = scan.ends.is_empty();
            for end in scan.ends {
                let word = self.words[end];
                let deeper = self.subcommands(&level.subcommand, &word.text);
                is_leaf |= deeper.is_empty();
                let own = scan.options.iter().filter(|it| it.at < word.at);
                let options: Vec<_> = level.options.iter().chain(own).cloned().collect();
                for subcommand in deeper {
                    let deeper = Level {
                        subcommand,
                        places: [level.places.as_slice(), &[word.at]].concat(),
                        options: options.clone(),
                        from: end + 1,
                    };
                    self.descend(deeper, forms);
                }
            }
            if !is_leaf {
                return;
            }
        }
        self.finish(level, &rows, forms);
    }

    /// Adds the forms of a sub-command that no other follows.
    fn finish(&self, level: Level, rows: &Rows, forms: &mut Vec<CommandForm>) {
        let row = lookup(&self.program, &level.subcommand);
        let until = match row {
            Some(row) if row.command_after_dashes => Some(usize::MAX),
            _ => row.and_then(|row| row.command),
        };
        let scan = self.scan(rows, level.subcommand.len(), level.from, until);
        let form = CommandForm {
            program: self.program.clone(),
            subcommand: level.subcommand,
            subcommand_at: level.places,
            options: level.options.into_iter().chain(scan.options).collect(),
            operands: scan.operands.into_iter().collect(),
            dashes: scan.dashes,
            starts: None,
            arguments: self.place(level.from),
        };
        if scan.ends.is_empty() {
            forms.push(form);
            return;
        }
        for end in scan.ends {
            let Some(place) = self.words.get(end).map(|word| word.at) else {
                forms.push(form.clone());
                continue;
            };
            let mut form = form.clone();
            form.options.retain(|it| it.at < place);
            form.operands.retain(|it| it.at < place);
            let started = self.words[end..].iter().map(|word| Operand {
                at: word.at,
                text: word.text.clone(),
            });
            form.operands.extend(started);
            form.starts = Some(place);
            forms.push(form);
        }
    }

    /// Returns the place in the command of a position.
    fn place(&self, at: usize) -> usize {
        self.words.get(at).map_or(self.length, |word| word.at)
    }

    /// Returns the sub-commands that a word makes of another; none if it is an operand.
    fn subcommands(&self, subcommand: &[String], word: &str) -> Vec<Vec<String>> {
        let longer = |word: &str| [subcommand, &[word.to_owned()]].concat();
        let words_of = |usual: &str| usual.split(' ').skip(1).map(str::to_owned).collect();
        let parent = key(&self.program, subcommand);
        if let Some(usual) = programs::subcommand(&parent, word) {
            return vec![words_of(usual)];
        }
        if word == "*" {
            return vec![longer(word)];
        }
        let mut found = Vec::new();
        if self.complete && subcommand.is_empty() {
            found.push(longer(word));
        }
        if self.complete && self.both && word.len() > 2 {
            let usual = programs::subcommands_from(&parent, word);
            found.extend(usual.map(words_of));
        }
        found
    }

    /// Reads options and operands, up to the operand after `until` others.
    fn scan(&self, rows: &Rows, depth: usize, from: usize, until: Option<usize>) -> Scan {
        let mut scan = Scan::default();
        let mut seen = BTreeSet::new();
        let mut open = vec![Position {
            at: from,
            operands: 0,
            dashes: false,
        }];
        while let Some(position) = open.pop() {
            if !seen.insert(position) {
                continue;
            }
            let Some(word) = self.words.get(position.at) else {
                continue;
            };
            let next = Position {
                at: position.at + 1,
                ..position
            };
            let after_value = Position {
                at: position.at + 2,
                ..position
            };
            if !position.dashes && word.text == "--" {
                scan.dashes = true;
                if until == Some(usize::MAX) {
                    scan.ends.insert(next.at);
                    continue;
                }
                open.push(Position {
                    dashes: true,
                    ..next
                });
            } else if !position.dashes && is_option(rows, &word.text) {
                match self.option(rows, depth, position.at, &mut scan) {
                    Takes::Nothing => open.push(next),
                    Takes::Next => open.push(after_value),
                    Takes::Rest => drop(scan.ends.insert(next.at)),
                    Takes::Unknown if self.both => open.extend([next, after_value]),
                    Takes::Unknown => open.push(next),
                }
            } else {
                let assigns = rows.first().is_some_and(|row| row.assigns);
                if assigns && word.text.contains('=') {
                    open.push(next);
                    continue;
                }
                if self.both && !word.literal {
                    open.push(next);
                }
                if until == Some(position.operands) {
                    scan.ends.insert(position.at);
                    continue;
                }
                if position.at == from && rows.first().is_some_and(|row| row.bundle) {
                    self.letters(rows, depth, position.at, &word.text, &mut scan);
                }
                scan.operands.insert(Operand {
                    at: word.at,
                    text: word.text.clone(),
                });
                // Only a scan that has an end counts operands.
                let operands = position.operands + usize::from(until.is_some());
                let dashes = next.dashes || rows.first().is_some_and(|row| row.options_first);
                open.push(Position {
                    operands,
                    dashes,
                    ..next
                });
            }
        }
        scan
    }

    /// Reads the option at a position.
    fn option(&self, rows: &Rows, depth: usize, at: usize, scan: &mut Scan) -> Takes {
        let text = &self.words[at].text;
        let whole = rows.iter().any(|row| row.whole_options);
        if !text.starts_with("--") && !whole && !text.starts_with('+') {
            return self.letters(rows, depth, at, &text[1..], scan);
        }
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text.as_str(), None),
        };
        let mut found = self.find_option(rows, name);
        // A program whose options are whole words takes them behind one dash or two.
        if let (true, None, Some(single)) = (whole, found.value, name.strip_prefix('-'))
            && single.starts_with('-')
        {
            found = self.find_option(rows, single);
        }
        let takes = match (attached, found.value) {
            (Some(_), _) | (None, Some(OptionValue::None | OptionValue::Attached)) => {
                Takes::Nothing
            }
            (None, Some(OptionValue::Needed)) => Takes::Next,
            (None, Some(OptionValue::Rest)) => Takes::Rest,
            (None, None) => Takes::Unknown,
        };
        if let (Some(value), None, true) = (attached, found.value, self.both) {
            scan.operands.insert(Operand {
                at: self.words[at].at,
                text: value.to_owned(),
            });
        }
        self.add(depth, at, found, attached, takes, scan);
        takes
    }

    /// Reads letters that are options, up to one with a value.
    fn letters(
        &self,
        rows: &Rows,
        depth: usize,
        at: usize,
        letters: &str,
        scan: &mut Scan,
    ) -> Takes {
        for (place, letter) in letters.char_indices() {
            let found = self.find_option(rows, &format!("-{letter}"));
            let rest = &letters[place + letter.len_utf8()..];
            let value = rest.strip_prefix('=').unwrap_or(rest);
            let is_last = rest.is_empty();
            match found.value {
                Some(OptionValue::None) => {
                    self.add(depth, at, found, None, Takes::Nothing, scan);
                }
                Some(_) if !is_last => {
                    self.add(depth, at, found, Some(value), Takes::Nothing, scan);
                    return Takes::Nothing;
                }
                Some(OptionValue::Attached) => {
                    self.add(depth, at, found, None, Takes::Nothing, scan);
                }
                Some(OptionValue::Needed) => {
                    self.add(depth, at, found, None, Takes::Next, scan);
                    return Takes::Next;
                }
                Some(OptionValue::Rest) => {
                    self.add(depth, at, found, None, Takes::Rest, scan);
                    return Takes::Rest;
                }
                None => {
                    let takes = match is_last {
                        true => Takes::Unknown,
                        false => Takes::Nothing,
                    };
                    let attached = (self.both && !is_last).then_some(value);
                    if let Some(value) = attached {
                        scan.operands.insert(Operand {
                            at: self.words[at].at,
                            text: value.to_owned(),
                        });
                    }
                    self.add(depth, at, found, attached, takes, scan);
                    if is_last {
                        return takes;
                    }
                }
            }
        }
        Takes::Nothing
    }

    fn add(
        &self,
        depth: usize,
        at: usize,
        found: FoundOption,
        attached: Option<&str>,
        takes: Takes,
        scan: &mut Scan,
    ) {
        let reads_next = match takes {
            Takes::Nothing | Takes::Rest => false,
            Takes::Next => true,
            Takes::Unknown => self.both,
        };
        let next = self.words.get(at + 1).filter(|_| reads_next);
        let own = self.words[at].at;
        scan.options.insert(FormOption {
            at: own,
            depth,
            names: found.names,
            value: match attached {
                Some(value) => Some(value.to_owned()),
                None => next.map(|word| word.text.clone()),
            },
            value_at: next.map_or(own, |word| word.at),
            known: found.value.is_some(),
        });
    }

    /// Returns an option of the innermost level that has it. A long option may be abbreviated.
    fn find_option(&self, rows: &Rows, name: &str) -> FoundOption {
        let exact = |name: &str| rows.iter().find_map(|row| row.option(name));
        if let Some((names, value)) = exact(name) {
            return FoundOption {
                names,
                value: Some(value),
            };
        }
        let unknown = FoundOption {
            names: vec![name.to_owned()],
            value: None,
        };
        if rows.iter().any(|row| row.changes_sort(name)) {
            return FoundOption {
                value: Some(OptionValue::None),
                ..unknown
            };
        }
        let Some(long) = name.strip_prefix("--").filter(|it| !it.is_empty()) else {
            return unknown;
        };
        let negated = long.strip_prefix("no-").map(|it| format!("--{it}"));
        if negated
            .is_some_and(|it| exact(&it).is_some() || rows.iter().any(|row| row.changes_sort(&it)))
        {
            return FoundOption {
                value: Some(OptionValue::None),
                ..unknown
            };
        }
        if !self.complete && !self.both {
            return unknown;
        }
        let longer = rows.iter().flat_map(|row| row.options_from(name));
        let longer: BTreeSet<_> = longer.collect();
        let mut values = longer.iter().map(|(_, value)| *value);
        let value = values.next().filter(|_| self.complete && longer.len() == 1);
        let names = longer.into_iter().flat_map(|(names, _)| names);
        FoundOption {
            names: unknown.names.into_iter().chain(names).collect(),
            value,
        }
    }
}

/// The part of the next word in an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// The next word is its value.
    Next,
    /// The next word may be its value.
    Unknown,
    /// All words behind it are a command or its like.
    Rest,
}

/// An option that was looked up.
struct FoundOption {
    names: Vec<String>,
    /// Its value; `None` if the tables do not know the option.
    value: Option<OptionValue>,
}

/// Returns whether a word is an option: it begins with a dash, or with a `+` if the program has such options.
fn is_option(rows: &Rows, text: &str) -> bool {
    let flag = |name: &str| rows.iter().any(|row| row.has_flag(name));
    match text {
        "-" => flag("-"),
        _ if text.starts_with('+') => text.len() > 1 && flag("+"),
        _ => text.starts_with('-'),
    }
}
