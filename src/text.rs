//! Short, printable forms of commands, paths and calls.

use co_llm::transcript::Call;

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

/// Returns the command of a call, or its name and the paths and patterns that it is about.
pub(crate) fn command_of(call: &Call) -> String {
    let text = |name: &str| call.arguments.get(name)?.as_str();
    if let Some(cmd) = text("cmd") {
        return cmd.to_owned();
    }
    if let Some(argv) = call.arguments.get("argv").and_then(|argv| argv.as_array()) {
        let words: Vec<_> = argv.iter().filter_map(|word| word.as_str()).collect();
        return words.join(" ");
    }
    // The arguments can be those of a tool that does not exist.
    let about = ["path", "from", "to", "pattern", "command"];
    let words = std::iter::once(call.name.as_str()).chain(about.into_iter().filter_map(text));
    words.collect::<Vec<_>>().join(" ")
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
    fn a_call_that_cannot_be_read_is_told_without_its_arguments() {
        let told = |name: &str, arguments| command_of(&Call::new("1", name, arguments));
        let edit = serde_json::json!({ "new": "x\ny", "old": 1, "path": "a.rs" });
        assert_eq!(told("edit_file", edit), "edit_file a.rs");
        assert_eq!(
            told("frob", serde_json::json!({ "command": "ls -l" })),
            "frob ls -l"
        );
        assert_eq!(told("frob", serde_json::json!(["x"])), "frob");
    }

    #[test]
    fn code_survives_backquotes() {
        assert_eq!(code("ls"), "`ls`");
        assert_eq!(code("echo `id`"), "`` echo `id` ``");
    }
}
