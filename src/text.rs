//! Short, printable forms of commands and paths.

pub(crate) use co_policy::{one_line, start_of};

/// The most files that a text names.
pub(crate) const MOST_NAMED: usize = 20;

/// Characters of a command in its short form.
const SHORT_CHARS: usize = 60;

/// Returns the start of the first line of a command.
pub(crate) fn short(command: &str) -> String {
    let line = command.trim().lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(SHORT_CHARS).collect();
    if short.len() < command.trim().len() {
        short.push('…');
    }
    short
}

/// Returns `text` as inline code of markdown. The delimiters have more backquotes than any sequence of them in the text.
pub(crate) fn code(text: &str) -> String {
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
