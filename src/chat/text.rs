//! Short, printable forms of commands, paths and calls.

use co_llm::transcript::Call;

pub use co_policy::{one_line, start_of};

/// The most files that a text names.
pub(super) const MOST_NAMED: usize = 20;

/// Characters of a command in its short form.
const SHORT_CHARS: usize = 60;

/// Returns the start of the first line of a command.
pub(super) fn short(command: &str) -> String {
    let line = command.trim().lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(SHORT_CHARS).collect();
    if short.len() < command.trim().len() {
        short.push('…');
    }
    short
}

/// Returns the command of a call, or its name and arguments if it has none.
pub(super) fn command_of(call: &Call) -> String {
    let field = |name: &str| call.arguments.get(name);
    if let Some(cmd) = field("cmd").and_then(|cmd| cmd.as_str()) {
        return cmd.to_owned();
    }
    if let Some(argv) = field("argv").and_then(|argv| argv.as_array()) {
        let words: Vec<_> = argv.iter().filter_map(|word| word.as_str()).collect();
        return words.join(" ");
    }
    format!("{} {}", call.name, call.arguments)
}

/// Returns `text` as inline code of markdown. The delimiters have more backquotes than any sequence of them in the text.
pub fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_survives_backquotes() {
        assert_eq!(code("ls"), "`ls`");
        assert_eq!(code("echo `id`"), "`` echo `id` ``");
    }
}
