//! Another parser of bash as second opinion: what ours accepts, it reads as the same simple commands.
//!
//! It is young and recursive, so it is asked about short commands only, on a thread with a deep stack and
//! a deadline.

use std::fmt::Write;
use std::sync::mpsc;
use std::time::Duration;

use brush_parser::ast::{self, AndOr, CommandPrefixOrSuffixItem as Item};
use brush_parser::word::WordPiece;
use brush_parser::{Parser, ParserOptions};
use co_policy::bash;

use super::differential::Random;
use crate::support::cases;

const MAX_CHARS: usize = 100;
/// Opening brackets and quotes in a command that is asked about.
const MAX_OPEN: usize = 12;
const STACK: usize = 64 << 20;
const DEADLINE: Duration = Duration::from_secs(60);
/// Random commands that our parser accepts and the test compares; `make fuzz` compares more.
const ROUNDS: usize = 3_000;

/// A word as it was written, and without its quotes.
type Word = (String, Option<String>);

/// One simple command: what was written, and each word without its quotes where it holds nothing else.
#[derive(Debug, PartialEq, Eq)]
struct Simple {
    assignments: Vec<String>,
    words: Vec<Word>,
    redirects: usize,
}

/// The other parser's reading of a text. `Err` names what is there besides simple commands.
type Opinion = Result<Vec<Simple>, String>;

fn ours(script: &bash::Script) -> Vec<Simple> {
    let commands = script.commands.iter().map(|command| Simple {
        assignments: command
            .assignments
            .iter()
            .map(|(name, value)| format!("{name}={}", value.raw))
            .collect(),
        words: command
            .words
            .iter()
            .map(|word| (word.raw.clone(), word.literal()))
            .collect(),
        redirects: command.redirects.len(),
    });
    commands.collect()
}

fn theirs(text: &str) -> Opinion {
    let options = ParserOptions::default();
    let program = Parser::new(text.as_bytes(), &options)
        .parse_program()
        .map_err(|error| format!("it cannot read it: {error}"))?;
    let mut found = Vec::new();
    for item in program.complete_commands.iter().flat_map(|list| &list.0) {
        if !matches!(item.1, ast::SeparatorOperator::Sequence) {
            return Err("it runs in the background".to_owned());
        }
        pipeline(&item.0.first, &options, &mut found)?;
        for AndOr::And(more) | AndOr::Or(more) in &item.0.additional {
            pipeline(more, &options, &mut found)?;
        }
    }
    Ok(found)
}

fn pipeline(
    pipeline: &ast::Pipeline,
    options: &ParserOptions,
    found: &mut Vec<Simple>,
) -> Result<(), String> {
    if pipeline.bang || pipeline.timed.is_some() {
        return Err("a pipeline is timed or negated".to_owned());
    }
    for command in &pipeline.seq {
        let ast::Command::Simple(command) = command else {
            return Err(format!("`{command}` is not a simple command"));
        };
        found.push(simple(command, options)?);
    }
    Ok(())
}

fn simple(command: &ast::SimpleCommand, options: &ParserOptions) -> Result<Simple, String> {
    let mut read = Simple {
        assignments: Vec::new(),
        words: Vec::new(),
        redirects: 0,
    };
    let before = command.prefix.iter().flat_map(|prefix| &prefix.0);
    let name = command.word_or_name.clone().map(Item::Word);
    let after = command.suffix.iter().flat_map(|suffix| &suffix.0);
    for item in before.chain(&name).chain(after) {
        match item {
            Item::IoRedirect(_) => read.redirects += 1,
            Item::AssignmentWord(_, word) if read.words.is_empty() => {
                read.assignments.push(word.value.clone());
            }
            Item::Word(word) | Item::AssignmentWord(_, word) => {
                let text = literal(&word.value, options)?;
                read.words.push((word.value.clone(), text));
            }
            Item::ProcessSubstitution(..) => return Err("it holds a process".to_owned()),
        }
    }
    Ok(read)
}

/// The word without its quotes; none where it holds more than text.
fn literal(word: &str, options: &ParserOptions) -> Result<Option<String>, String> {
    let pieces = brush_parser::word::parse(word, options).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let mut todo: Vec<&WordPiece> = pieces.iter().rev().map(|piece| &piece.piece).collect();
    while let Some(piece) = todo.pop() {
        match piece {
            WordPiece::Text(part) | WordPiece::SingleQuotedText(part) => text.push_str(part),
            WordPiece::EscapeSequence(escaped) => {
                text.push_str(escaped.strip_prefix('\\').unwrap_or(escaped));
            }
            WordPiece::DoubleQuotedSequence(inner) => {
                todo.extend(inner.iter().rev().map(|piece| &piece.piece));
            }
            WordPiece::CommandSubstitution(_) | WordPiece::BackquotedCommandSubstitution(_) => {
                return Err(format!("`{word}` holds a command"));
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(text))
}

/// Whether both say the same of a command; where ours knows a word's text, so must the other.
fn same(ours: &[Simple], theirs: &[Simple]) -> bool {
    let word = |(mine, other): (&Word, &Word)| {
        mine.0 == other.0 && (mine.1.is_none() || mine.1 == other.1)
    };
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(mine, other)| {
            mine.assignments == other.assignments
                && mine.redirects == other.redirects
                && mine.words.len() == other.words.len()
                && mine.words.iter().zip(&other.words).all(word)
        })
}

fn short(command: &str) -> bool {
    let open = command.chars().filter(|c| "([{'\"`".contains(*c)).count();
    command.chars().count() <= MAX_CHARS && open <= MAX_OPEN
}

/// Asks about each command on a thread of its own; one that takes too long fails the test.
fn opinions(commands: Vec<String>) -> Vec<(String, Opinion)> {
    let (send, receive) = mpsc::channel();
    let count = commands.len();
    let asking = std::thread::Builder::new().stack_size(STACK);
    let _detached = asking.spawn(move || {
        for command in commands {
            let opinion = theirs(&command);
            if send.send((command, opinion)).is_err() {
                return;
            }
        }
    });
    let mut told = Vec::new();
    while told.len() < count {
        match receive.recv_timeout(DEADLINE) {
            Ok(one) => told.push(one),
            Err(_) => panic!("no opinion after {:?}", told.last()),
        }
    }
    told
}

/// Compares every one of the commands that ours accepts; returns how many.
fn compare(commands: impl IntoIterator<Item = String>) -> usize {
    let accepted = commands.into_iter().filter(|command| {
        let script = bash::parse(command);
        short(command) && script.refusals.is_empty() && !script.commands.is_empty()
    });
    let told = opinions(accepted.collect());
    let mut wrong = String::new();
    for (command, opinion) in &told {
        let mine = ours(&bash::parse(command));
        let agreed = opinion.as_ref().is_ok_and(|other| same(&mine, other));
        if !agreed {
            let _infallible = writeln!(
                wrong,
                "{command:?}\n  ours   {mine:?}\n  theirs {opinion:?}"
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    told.len()
}

#[test]
fn everyday_commands_are_read_alike() {
    let tables = concat!(
        include_str!("../../fixtures/policy/auto.txt"),
        include_str!("../../fixtures/policy/ask.txt"),
        include_str!("../../fixtures/policy/deny.txt")
    );
    let lines = tables
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("## "));
    let compared = compare(lines.map(|line| line.replace('␤', "\n")));
    assert!(compared > 400, "only {compared} were compared");
}

#[test]
fn commands_that_only_our_parser_accepts_are_refused() {
    for command in [
        "c0 a | c9 | c9 then {a,b}x=1 c5  # c3\n && c7 x=1 c5",
        "c0 x\nc6 >/dev/null; c5 | c9 | c9 E\n || c8 [x] | c9 ",
        "c0 {c6,c7} {a,b} | c9  | c9 c4 c''1  # c3\n | c9 = * && c7 ",
        "&>/dev/null=c9\"x\"\\if c8c9",
        "&>/dev/null$x\\;",
    ] {
        let refusals = bash::parse(command).refusals;
        assert!(!refusals.is_empty(), "{command}");
    }
}

#[test]
fn random_commands_are_read_alike() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let rounds = cases(ROUNDS);
    let commands = std::iter::repeat_with(|| random.command()).take(10 * rounds);
    let compared = compare(commands);
    assert!(compared >= rounds, "only {compared} were compared");
}
