//! Forms of the shell that are refused, with their names for the person.

use std::ops::Range;

use tree_sitter::Node;

/// Reserved words, which cannot be the name of a simple command.
pub(super) const RESERVED: [&str; 23] = [
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while", "((",
];

/// True if the body of a function runs the function itself, in a pipeline or in the background.
pub(super) fn calls_itself(function: Node, source: &str) -> bool {
    let Some(name) = function.child_by_field_name("name") else {
        return false;
    };
    let Some(body) = function.child_by_field_name("body") else {
        return false;
    };
    let name = &source[name.byte_range()];
    let text = &source[body.byte_range()];
    let calls = text
        .split(|c: char| c.is_whitespace() || "|&;(){}".contains(c))
        .filter(|word| *word == name)
        .count();
    calls > 1 || (calls == 1 && (text.contains('&') || text.contains('|')))
}

/// Describes a kind of node for the person.
pub(super) fn describe(kind: &str) -> String {
    let what = match kind {
        "command_substitution" => "it runs a command inside a word",
        "process_substitution" => "it runs a command in place of a file",
        "expansion" | "arithmetic_expansion" => "it computes a word that nobody has seen",
        "heredoc_redirect" => "it holds a here-document",
        "herestring_redirect" => "it holds a here-string",
        "variable_assignment" | "variable_assignments" => "it sets a shell variable",
        "declaration_command" | "unset_command" => "it changes shell variables",
        "subshell" => "it holds a subshell",
        "compound_statement" => "it holds a group of commands",
        "function_definition" => "it defines a function",
        "if_statement" | "case_statement" => "it holds a condition",
        "for_statement" | "while_statement" | "c_style_for_statement" => "it holds a loop",
        "test_command" => "it holds a `[[ ]]` test",
        "negated_command" => "it holds a `!`",
        "&" => "it starts something in the background",
        "|&" => "it pipes with `|&`",
        "ansi_c_string" | "translated_string" => "it holds a `$'…'` or `$\"…\"` string",
        "ERROR" => "it is not plain, complete bash",
        _ => "part of it is not understood",
    };
    what.to_owned()
}

/// Adds a node's span. Nodes without a blank between them are one word for bash.
pub(super) fn push_or_extend(words: &mut Vec<Range<usize>>, here: Range<usize>) {
    match words.last_mut() {
        Some(last) if last.end == here.start => last.end = here.end,
        _ => words.push(here),
    }
}

/// True if the operator contains the whole descriptor that bash reads before it, and nothing else.
pub(super) fn operator_is_whole(before: &str, operator: &str) -> bool {
    let descriptor = operator.split(['<', '>', '&']).next().unwrap_or_default();
    if !descriptor.chars().all(|c| c.is_ascii_digit()) {
        return false;
    }
    let word = before
        .rsplit([' ', '\t', '\n', ';', '&', '|', '<', '>'])
        .next();
    let word = word.unwrap_or_default();
    // For bash, all of `{x}>` is a redirection and `{x}` is no argument.
    if word.ends_with('}') {
        return false;
    }
    word.is_empty() || (descriptor.is_empty() && !word.chars().all(|c| c.is_ascii_digit()))
}
