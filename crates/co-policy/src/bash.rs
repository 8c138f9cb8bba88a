//! Parses bash into a flat list of simple commands and the operators between them.
//!
//! The grammar only proposes the positions of words and operators. The module `word` reads each word again by bash's quoting
//! rules, and text between words must be blank. A form that is not understood is refused. This module knows no programs
//! and no files.

use std::cell::RefCell;

use tree_sitter::Parser;

use crate::reason::Reason;
use crate::text;

mod forms;
mod reader;
mod script;

use reader::ScriptReader;
use script::MAX_COMMANDS;

pub use script::{Join, Redirect, Script, Simple};

/// Longer commands are refused.
pub const MAX_CHARS: usize = 10_000;
thread_local! {
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Parses `source` as `bash --noprofile --norc -c` does.
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
            .push(Reason::whole("it could not be parsed"));
        script.incomplete = true;
        return script;
    };
    let mut reader = ScriptReader::new(&joined.text, script);
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

/// Replaces each byte that is not ASCII by a letter. Offsets stay, and words are read from the original text.
///
/// The grammar's scanner calls C functions such as `isspace`, which accept values up to 255. A larger character made it
/// read outside a table and crash.
fn ascii(text: &str) -> Vec<u8> {
    let letter = |byte: u8| if byte.is_ascii() { byte } else { b'x' };
    text.bytes().map(letter).collect()
}

#[cfg(test)]
mod tests;
