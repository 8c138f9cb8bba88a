//! Parses bash: finds all simple commands in a text, wherever they stand.
//!
//! A grammar finds the commands; [`Word`] parses each word again by bash's quoting rules. A parse error may lead to a wrong sort,
//! which the sandbox makes harmless. The person's rules do not rely on this module: see `plain`.

use std::cell::RefCell;

use tree_sitter::Parser;

use crate::reason::Reason;
use crate::text;

mod reader;
mod script;
mod word;

pub(crate) use reader::path_from;
pub use script::{Redirect, Script, SimpleCommand};
pub use word::Word;

/// The longest command, in characters, that is parsed. Longer commands require approval.
pub const MAX_CHARS: usize = 10_000;

thread_local! {
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Parses `source` in the same way as `bash --noprofile --norc -c`.
pub fn parse(source: &str) -> Script {
    if source.chars().count() > MAX_CHARS {
        let why = format!("it is longer than {MAX_CHARS} characters");
        return Script::unread(why);
    }
    let joined = text::join_lines(source);
    let Some(tree) = syntax_tree(&joined.text) else {
        return Script::unread("co cannot read it as bash");
    };
    let mut script = reader::read(&joined.text, tree.root_node());
    if !joined.removed.is_empty() {
        script.map_spans(|span| {
            *span = joined.original(span.start)..joined.original(span.end);
        });
    }
    if let Some((at, c)) = co_text::first_hidden(source) {
        script.problems.push(Reason::at(
            format!(
                "it contains an invisible or control character ({})",
                c.escape_unicode()
            ),
            at..at + c.len_utf8(),
        ));
    }
    script
}

fn syntax_tree(text: &str) -> Option<tree_sitter::Tree> {
    PARSER.with_borrow_mut(|slot| {
        let parser = slot.get_or_insert_with(|| {
            let mut parser = Parser::new();
            // Fails only for a grammar of another ABI, which the tests would find.
            let _set = parser.set_language(&tree_sitter_bash::LANGUAGE.into());
            parser
        });
        parser.reset();
        parser.parse(readable(text), None)
    })
}

/// Replaces each character that the grammar cannot parse with a letter. Offsets stay the same, and words are read from the
/// original text.
///
/// The grammar's scanner calls C functions such as `isspace`, which accept values up to 255. A larger character made it read
/// outside a table and crash. The grammar also treats every `{` at the start of a word as the start of a group of commands. In
/// bash, `{git,} push` begins with a brace list.
fn readable(text: &str) -> Vec<u8> {
    let letter = |byte: u8| if byte.is_ascii() { byte } else { b'x' };
    let mut bytes: Vec<u8> = text.bytes().map(letter).collect();
    for at in 0..bytes.len() {
        let starts = at == 0 || ends_word(bytes[at - 1]);
        let mut word = bytes[at..].iter().take_while(|byte| !ends_word(**byte));
        if starts && bytes[at] == b'{' && word.any(|byte| *byte == b',') {
            bytes[at] = b'x';
        }
    }
    bytes
}

/// Returns true if a byte ends a word in bash.
fn ends_word(byte: u8) -> bool {
    b" \t\n;&|()<>`".contains(&byte)
}

#[cfg(test)]
mod tests;
