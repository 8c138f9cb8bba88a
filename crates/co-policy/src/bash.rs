//! Bash text to a flat list of simple commands with the operators between them.
//!
//! The grammar only proposes where words and operators are. Each word is read again here with
//! bash's own quoting rules, and what lies between words must be blank, so a form that is not
//! understood is refused and never guessed at. Knows nothing of programs or files.

use std::cell::RefCell;
use std::ops::Range;

use tree_sitter::Parser;

use super::Reason;
use super::text;
use super::word::Word;

mod forms;
mod reader;

use reader::Reader;

/// Longer commands are refused.
pub const MAX_CHARS: usize = 10_000;
/// More simple commands than this are refused.
const MAX_COMMANDS: usize = 50;

/// What was read of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Every simple command found, in order; where `refusals` is not empty, as far as they could be made out.
    pub commands: Vec<Simple>,
    /// Words of forms that are refused, outside of any command: those that a loop goes through.
    pub loose: Vec<Word>,
    /// The and-or lists of pipelines, by index into `commands`; meaningless where there are refusals.
    pub pipelines: Vec<(Join, Vec<usize>)>,
    /// Why the text is not understood whole.
    pub refusals: Vec<Reason>,
    /// Something in it was not looked into, for its length, its number or its depth.
    pub incomplete: bool,
    /// True where a function calls itself in a pipeline or in the background.
    pub fork_bomb: bool,
    /// Where a shell of its own runs a part of it, the outer ones first: a `cd` in there moves nothing behind it.
    pub subshells: Vec<Range<usize>>,
}

/// What connects a pipeline to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    Then,
    And,
    Or,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    pub span: Range<usize>,
    pub assignments: Vec<(String, Word)>,
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
}

/// A redirection, its operator with the descriptor before it: `2>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub span: Range<usize>,
    pub operator: String,
    pub target: Option<Word>,
}

thread_local! {
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Reads `source` as `bash --noprofile --norc -c` would.
pub fn parse(source: &str) -> Script {
    let mut script = Script::default();
    if source.chars().count() > MAX_CHARS {
        script.refusals.push(Reason::whole(format!(
            "it is longer than {MAX_CHARS} characters"
        )));
        script.incomplete = true;
        return script;
    }
    if let Some((at, c)) = text::first_hidden(source) {
        script.refusals.push(Reason::at(
            format!(
                "it holds an invisible or control character ({})",
                c.escape_unicode()
            ),
            at..at + c.len_utf8(),
        ));
    }
    let joined = text::join_lines(source);
    let tree = PARSER.with_borrow_mut(|slot| {
        let parser = slot.get_or_insert_with(|| {
            let mut parser = Parser::new();
            // Fails only for a grammar of another ABI, which the tests would find.
            let _set = parser.set_language(&tree_sitter_bash::LANGUAGE.into());
            parser
        });
        parser.reset();
        parser.parse(ascii(&joined.text), None)
    });
    let Some(tree) = tree else {
        script
            .refusals
            .push(Reason::whole("it could not be parsed".to_owned()));
        script.incomplete = true;
        return script;
    };
    let mut reader = Reader::new(&joined.text, script);
    reader.program(tree.root_node());
    let mut script = reader.finish();
    if !joined.removed.is_empty() {
        script.shift(&joined);
    }
    if script.commands.len() > MAX_COMMANDS {
        script.refusals.push(Reason::whole(format!(
            "it has more than {MAX_COMMANDS} commands"
        )));
    }
    script
}

impl Script {
    /// Moves every span back to the text as it was before continued lines were joined.
    fn shift(&mut self, joined: &text::Joined) {
        let fix = |span: &mut Range<usize>| {
            *span = joined.original(span.start)..joined.original(span.end);
        };
        for reason in &mut self.refusals {
            reason.span.iter_mut().for_each(fix);
        }
        self.subshells.iter_mut().for_each(fix);
        for command in &mut self.commands {
            fix(&mut command.span);
            for word in &mut command.words {
                fix(&mut word.span);
            }
            for redirect in &mut command.redirects {
                fix(&mut redirect.span);
            }
        }
    }
}

/// The same text with a letter for each byte that is not ASCII: places stay, and words are read from the text.
///
/// The grammar's scanner looks characters up in a table of the C library that ends at 255: a wider one made it
/// read memory that was not its own, and the process ended.
fn ascii(text: &str) -> Vec<u8> {
    let letter = |byte: u8| if byte.is_ascii() { byte } else { b'x' };
    text.bytes().map(letter).collect()
}

#[cfg(test)]
mod tests;
