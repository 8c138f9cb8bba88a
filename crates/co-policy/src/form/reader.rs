//! Parses the words of a command into its normal forms.

use std::collections::BTreeSet;

use super::{CommandForm, FormOption, FormWord, Operand, Rows, key, lookup, rows};
use crate::programs::{self, OptionValue};

/// The largest number of words of a sub-command, as in `git remote add`.
const MAX_DEPTH: usize = 4;

pub(super) struct FormReader<'a> {
    program: String,
    /// The words after the program.
    words: Vec<&'a FormWord>,
    /// The number of words of the command, including the program.
    length: usize,
    /// True if an unknown option is read in both ways: with and without a value in the next word.
    both: bool,
    /// True if the tables have all options and sub-commands of the program.
    complete: bool,
    /// The first word of the sub-command, if it is part of the program's name, as in `git-push`.
    joined: Option<String>,
}

/// A sub-command with the options before it.
#[derive(Default)]
struct Level {
    subcommand: Vec<String>,
    /// The indices of the sub-command's words.
    places: Vec<usize>,
    /// The options before the sub-command.
    options: Vec<FormOption>,
    /// The position of the first word after the sub-command.
    from: usize,
}

/// A state of the scan: an index into the words, the number of operands before it, and whether `--` stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    at: usize,
    operands: usize,
    dashes: bool,
}

/// The options and operands in a part of the words.
#[derive(Default)]
struct Scan {
    options: BTreeSet<FormOption>,
    operands: BTreeSet<Operand>,
    dashes: bool,
    /// The positions at which the scan may have ended.
    ends: BTreeSet<usize>,
}

impl CommandForm {
    /// Parses words into the most likely form. An option that the tables lack takes no value from the next word.
    pub(crate) fn read(words: &[FormWord]) -> Self {
        let mut forms = FormReader::new(words, false).forms();
        forms.pop().unwrap_or_default()
    }

    /// Returns all forms that the words may have. If the tables lack an option, the next word may or may not be its value. If a
    /// word may be an option, a value or an operand, the form contains each of these possibilities.
    pub(crate) fn readings(words: &[FormWord]) -> Vec<Self> {
        FormReader::new(words, true).forms()
    }
}

impl<'a> FormReader<'a> {
    pub(super) fn new(words: &'a [FormWord], both: bool) -> Self {
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

    pub(super) fn forms(&self) -> Vec<CommandForm> {
        let mut forms = Vec::new();
        let own = Level {
            places: self.joined.iter().map(|_| 0).collect(),
            subcommand: self.joined.iter().cloned().collect(),
            ..Level::default()
        };
        self.descend(own, &mut forms);
        forms
    }

    /// Adds the forms of the words after a sub-command. These may begin with deeper sub-commands.
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

    /// Adds the forms of a sub-command that has no deeper sub-command after it.
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

    /// Converts a position in `words` into an index in the command.
    fn place(&self, at: usize) -> usize {
        self.words.get(at).map_or(self.length, |word| word.at)
    }

    /// Returns the sub-commands that `word` may select after `subcommand`. The list is empty if the word is an operand.
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

    /// Reads options and operands from the position `from` on. Stops at the first operand that has `until` operands before it. If
    /// `until` is `usize::MAX`, stops after `--` instead.
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
                    OptionArguments::Nothing => open.push(next),
                    OptionArguments::Next => open.push(after_value),
                    OptionArguments::Rest => drop(scan.ends.insert(next.at)),
                    OptionArguments::Unknown if self.both => open.extend([next, after_value]),
                    OptionArguments::Unknown => open.push(next),
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

    /// Reads the option at a position. Returns how it uses the next words.
    fn option(&self, rows: &Rows, depth: usize, at: usize, scan: &mut Scan) -> OptionArguments {
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
                OptionArguments::Nothing
            }
            (None, Some(OptionValue::Needed)) => OptionArguments::Next,
            (None, Some(OptionValue::Rest)) => OptionArguments::Rest,
            (None, None) => OptionArguments::Unknown,
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

    /// Reads a group of one-letter options, up to one that takes a value.
    fn letters(
        &self,
        rows: &Rows,
        depth: usize,
        at: usize,
        letters: &str,
        scan: &mut Scan,
    ) -> OptionArguments {
        for (place, letter) in letters.char_indices() {
            let found = self.find_option(rows, &format!("-{letter}"));
            let rest = &letters[place + letter.len_utf8()..];
            let value = rest.strip_prefix('=').unwrap_or(rest);
            let is_last = rest.is_empty();
            match found.value {
                Some(OptionValue::None) => {
                    self.add(depth, at, found, None, OptionArguments::Nothing, scan);
                }
                Some(_) if !is_last => {
                    self.add(
                        depth,
                        at,
                        found,
                        Some(value),
                        OptionArguments::Nothing,
                        scan,
                    );
                    return OptionArguments::Nothing;
                }
                Some(OptionValue::Attached) => {
                    self.add(depth, at, found, None, OptionArguments::Nothing, scan);
                }
                Some(OptionValue::Needed) => {
                    self.add(depth, at, found, None, OptionArguments::Next, scan);
                    return OptionArguments::Next;
                }
                Some(OptionValue::Rest) => {
                    self.add(depth, at, found, None, OptionArguments::Rest, scan);
                    return OptionArguments::Rest;
                }
                None => {
                    let takes = match is_last {
                        true => OptionArguments::Unknown,
                        false => OptionArguments::Nothing,
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
        OptionArguments::Nothing
    }

    fn add(
        &self,
        depth: usize,
        at: usize,
        found: FoundOption,
        attached: Option<&str>,
        takes: OptionArguments,
        scan: &mut Scan,
    ) {
        let reads_next = match takes {
            OptionArguments::Nothing | OptionArguments::Rest => false,
            OptionArguments::Next => true,
            OptionArguments::Unknown => self.both,
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

    /// Looks up an option in the rows; the innermost row that has it wins. A long option may be abbreviated.
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

/// The words after an option that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionArguments {
    Nothing,
    /// The next word is the option's value.
    Next,
    /// The next word may be the option's value.
    Unknown,
    /// All words after the option are a command, or a module and its arguments.
    Rest,
}

/// The result of looking up an option.
struct FoundOption {
    names: Vec<String>,
    /// The kind of value that the option takes. It is `None` if the tables lack the option.
    value: Option<OptionValue>,
}

/// Returns true if a word is an option: it begins with `-`, or with `+` if the program has such options.
fn is_option(rows: &Rows, text: &str) -> bool {
    let flag = |name: &str| rows.iter().any(|row| row.has_flag(name));
    match text {
        "-" => flag("-"),
        _ if text.starts_with('+') => text.len() > 1 && flag("+"),
        _ => text.starts_with('-'),
    }
}
