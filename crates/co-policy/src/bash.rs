//! Bash text to a flat list of simple commands with the operators between them.
//!
//! The grammar only proposes where words and operators are. Each word is read again here with
//! bash's own quoting rules, and what lies between words must be blank, so a form that is not
//! understood is refused and never guessed at. Knows nothing of programs or files.

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
