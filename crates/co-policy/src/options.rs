//! Splits the words of a program into options and operands, and checks both by the program's table.
//!
//! Knowledge of single programs belongs in the tables, see [`crate::programs`].

use std::ops::Range;

use crate::args::Arg;
use crate::facts::LocalFacts;
use crate::paths::{self, PathUse};
use crate::programs::{Effect, Operands, OptionRule, OptionValue, Program};
use crate::reason::Reason;

/// An option's value with its span.
pub(super) type Spelled = (String, Range<usize>);

/// The options and operands of a program.
#[derive(Debug, Default)]
pub(super) struct Parsed<'a> {
    pub operands: Vec<&'a Arg>,
    /// The number of operands before `--`, if there is one.
    pub dashes: Option<usize>,
    /// Options as written, each with its value if it takes one.
    pub options: Vec<(String, Option<Spelled>)>,
    pub reasons: Vec<Reason>,
}

impl Parsed<'_> {
    /// True if one of these options is given.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options
            .iter()
            .any(|(name, _)| names.contains(&name.as_str()))
    }

    /// Adds a reason about one word.
    pub(super) fn ask(&mut self, arg: &Arg, text: impl Into<String>) {
        self.reasons.push(arg.reason(text));
    }
}

/// Splits `args` by the table of `program`.
pub(super) fn parse<'a>(name: &'a str, program: &'a Program, args: &'a [Arg]) -> Parsed<'a> {
    let mut parser = ArgsParser {
        name,
        program,
        rest: args.iter(),
        may_lack_value: false,
        parsed: Parsed::default(),
    };
    parser.run();
    parser.parsed
}

/// The state while the words are split.
struct ArgsParser<'a> {
    name: &'a str,
    program: &'a Program,
    rest: std::slice::Iter<'a, Arg>,
    /// True if the last option can have a value and has none: a `--` after it may be that value.
    may_lack_value: bool,
    parsed: Parsed<'a>,
}

impl<'a> ArgsParser<'a> {
    fn run(&mut self) {
        let (mut only_operands, mut doubtful) = (false, false);
        while let Some(arg) = self.rest.next() {
            let text = arg.text.as_str();
            let lacks_value = std::mem::take(&mut self.may_lack_value);
            if arg.dynamic {
                self.parsed.reasons.push(arg.unknown());
            } else if doubtful && self.may_be_option(text) {
                self.ask_unknown_option(text, arg);
            } else if only_operands || text == "-" || !text.starts_with('-') {
                self.parsed.operands.push(arg);
                only_operands |= self.program.options_first;
            } else if text == "--" {
                (only_operands, doubtful) = (true, lacks_value);
                self.parsed.dashes = Some(self.parsed.operands.len());
            } else if !(self.program.numeric && text[1..].bytes().all(|b| b.is_ascii_digit())) {
                self.option(arg);
            }
        }
    }

    fn ask_unknown_option(&mut self, option: &str, arg: &Arg) {
        self.parsed.ask(
            arg,
            format!(
                "`{}` has no option `{option}` that is known to be safe",
                self.name
            ),
        );
    }

    fn option(&mut self, arg: &'a Arg) {
        let text = arg.text.as_str();
        if let Some(known) = self.program.options.get(text) {
            self.add_option(*known, text, None, arg);
        } else if text.starts_with("--") {
            let (long, value) = text.split_once('=').unwrap_or((text, ""));
            match self.program.options.get(long) {
                Some(OptionRule::Safe(OptionValue::Nothing | OptionValue::Pair)) | None => {
                    self.ask_unknown_option(long, arg);
                }
                Some(known) => self.add_option(*known, long, Some(value), arg),
            }
        } else if self.program.cluster {
            self.cluster(arg);
        } else {
            self.single_letter(arg);
        }
    }

    /// Reads one letter with its value: `-F:` of awk, `-c16` of xxd.
    fn single_letter(&mut self, arg: &'a Arg) {
        let text = arg.text.as_str();
        let letter: String = text.chars().take(2).collect();
        match self.program.options.get(&letter) {
            Some(known @ OptionRule::Safe(OptionValue::Text)) => {
                self.add_option(*known, &letter, Some(&text[letter.len()..]), arg);
            }
            Some(known @ OptionRule::Asks(_)) => self.add_option(*known, &letter, None, arg),
            _ => self.ask_unknown_option(text, arg),
        }
    }

    /// Reads `-la`: each letter is an option, and the first that takes a value takes the rest.
    fn cluster(&mut self, arg: &'a Arg) {
        let text = arg.text.as_str();
        for (at, c) in text.char_indices().skip(1) {
            let letter = format!("-{c}");
            let tail = &text[at + c.len_utf8()..];
            match self.program.options.get(&letter) {
                None => return self.ask_unknown_option(&letter, arg),
                Some(OptionRule::Safe(OptionValue::Nothing)) => {
                    self.parsed.options.push((letter, None))
                }
                Some(OptionRule::Safe(_))
                    if !self.program.attaches && !tail.bytes().all(|b| b.is_ascii_digit()) =>
                {
                    return self.ask_unknown_option(text, arg);
                }
                Some(known) => {
                    let value = (!tail.is_empty()).then_some(tail);
                    return self.add_option(*known, &letter, value, arg);
                }
            }
        }
    }

    /// Adds one option. Its value comes from the same word or the next.
    fn add_option(&mut self, known: OptionRule, option: &str, value: Option<&str>, arg: &'a Arg) {
        let takes = match known {
            OptionRule::Asks(effect) => {
                return self.parsed.ask(
                    arg,
                    format!("`{} {option}` {}", self.name, describe(effect)),
                );
            }
            OptionRule::Safe(takes) => takes,
        };
        let attached = value.map(|value| (value.to_owned(), arg.span.clone()));
        let (option, value) = match takes {
            OptionValue::Nothing => (option.to_owned(), None),
            OptionValue::Attached => {
                self.may_lack_value = attached.is_none();
                (option.to_owned(), attached)
            }
            OptionValue::UnlessLast if attached.is_none() && self.rest.len() == 0 => {
                (option.to_owned(), None)
            }
            OptionValue::Pair => {
                let Some(_name) = self.next_value(option, arg) else {
                    return;
                };
                let Some(value) = self.next_value(option, arg) else {
                    return;
                };
                (option.to_owned(), Some(value))
            }
            OptionValue::Text | OptionValue::File | OptionValue::UnlessLast => {
                let Some(value) = attached.or_else(|| self.next_value(option, arg)) else {
                    return;
                };
                let file = if takes == OptionValue::File {
                    " FILE"
                } else {
                    ""
                };
                (format!("{option}{file}"), Some(value))
            }
        };
        self.parsed.options.push((option, value));
    }

    /// True for text that could be an option, if the table is wrong about the option before it.
    fn may_be_option(&self, text: &str) -> bool {
        let mut chars = text.strip_prefix('-').unwrap_or_default().chars();
        chars.next().is_some_and(|c| {
            c == '-' || c.is_alphabetic() || self.program.options.contains_key(&format!("-{c}"))
        })
    }

    /// Returns the next word as a value.
    fn next_value(&mut self, option: &str, arg: &Arg) -> Option<Spelled> {
        match self.rest.next() {
            Some(next) if next.dynamic || next.loose_glob => {
                self.parsed.reasons.push(next.unknown());
            }
            Some(next) if self.may_be_option(&next.text) => {
                self.parsed.ask(
                    next,
                    format!("`{}` after `{option}` may be an option", next.text),
                );
            }
            Some(next) => return Some((next.text.clone(), next.span.clone())),
            None => {
                self.parsed
                    .ask(arg, format!("`{} {option}` lacks its value", self.name));
            }
        }
        None
    }
}

/// Refuses the globs by which a search would read secret files.
fn check_globs(name: &str, parsed: &mut Parsed) {
    const GLOBS: [&str; 4] = ["-g", "--glob", "--iglob", "--include"];
    // grep searches hidden files without a glob; rg searches only those that a glob names.
    let hidden_too = name != "rg";
    let found = parsed
        .options
        .iter()
        .filter_map(|(option, value)| match value {
            Some((value, span))
                if GLOBS.contains(&option.as_str())
                    && paths::glob_finds_secret(value, hidden_too) =>
            {
                Some(Reason::at(
                    format!("`{value}` finds files that look like secrets"),
                    span.clone(),
                ))
            }
            _ => None,
        });
    let found: Vec<Reason> = found.collect();
    parsed.reasons.extend(found);
}

fn describe(effect: Effect) -> &'static str {
    match effect {
        Effect::Writes => "writes or changes something",
        Effect::Runs => "runs another program",
        Effect::Hangs => "does not end by itself",
        Effect::Network => "uses the network",
        Effect::Leaks => "reads what nobody has checked",
        Effect::Follows => "follows links, which may leave the workspace",
    }
}

/// Checks the files that options and operands name.
pub(super) fn check(name: &str, program: &Program, parsed: &mut Parsed, local: &LocalFacts) {
    for (option, value) in &parsed.options {
        if let (true, Some((value, span))) = (option.ends_with(" FILE"), value) {
            parsed
                .reasons
                .extend(paths::check(local, value, PathUse::Read, span));
        }
    }
    check_globs(name, parsed);
    if let Some(max) = program.max
        && let Some(extra) = parsed.operands.get(max)
    {
        let text = format!("`{name}` takes `{}` for something to write", extra.text);
        parsed.ask(extra, text);
    }
    let given = parsed.options.iter().any(|(option, _)| {
        program
            .pattern_options
            .iter()
            .any(|p| option.trim_end_matches(" FILE") == p)
    });
    let skip = usize::from(program.operands == Operands::Pattern && !given);
    for (place, operand) in parsed.operands.clone().into_iter().enumerate() {
        if operand.loose_glob && program.has_dangerous_options() {
            parsed.ask(
                operand,
                "a glob may turn a file name into an option; write `./*`",
            );
        }
        let wanted = match program.operands {
            Operands::Text | Operands::Git => continue,
            Operands::None => {
                let text = format!("`{name}` takes no operand");
                parsed.ask(operand, text);
                continue;
            }
            Operands::Pattern if place < skip => continue,
            Operands::RegularFiles => PathUse::ReadFile,
            Operands::Files | Operands::Pattern => PathUse::Read,
        };
        // Standard input is empty, a pipe, or a file that was checked with its redirection.
        if operand.text == "-" || operand.text == "/dev/stdin" {
            continue;
        }
        parsed
            .reasons
            .extend(paths::check_arg(local, operand, wanted));
    }
}
