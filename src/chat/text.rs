//! Short, printable forms of commands, paths and calls.

use co_llm::transcript::Call;

pub use co_policy::one_line;

/// The longest difference that a question shows, in bytes. Neovim shows it at once.
pub(super) const LONGEST_DIFF: usize = 256 << 10;

/// The most files that a text names.
pub(super) const MOST_NAMED: usize = 20;

/// Characters of a command in its short form.
const SHORT_CHARS: usize = 60;

/// Adds a printable difference to that of a question, as far as there is room. A line tells how much is left out.
pub(super) fn add_diff(text: &mut String, diff: &str) {
    let room = LONGEST_DIFF.saturating_sub(text.len());
    if diff.len() <= room {
        return text.push_str(diff);
    }
    let end = (0..=room).rev().find(|it| diff.is_char_boundary(*it));
    let (shown, rest) = diff.split_at(end.unwrap_or_default());
    text.push_str(shown);
    let lines = rest.lines().count();
    text.push_str(&format!("\n… {lines} more lines\n"));
}

/// Returns the start of the first line of a command.
pub(super) fn short(command: &str) -> String {
    let line = command.trim().lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(SHORT_CHARS).collect();
    if short.len() < command.trim().len() {
        short.push('…');
    }
    short
}

/// Returns whole characters from the start of a text, at most `most` bytes.
pub fn start_of(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    &text[..end]
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
