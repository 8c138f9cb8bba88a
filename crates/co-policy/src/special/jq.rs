//! Checks jq and yq: filters that read neither the environment nor other files.

use crate::facts::FileKind;
use crate::facts::LocalFacts;
use crate::options::Parsed;
use crate::paths::{self, PathUse};

const FORBIDDEN_JQ: [&str; 10] = [
    "env",
    "ENV",
    "import",
    "include",
    "input_filename",
    "modulemeta",
    "get_search_list",
    "__prog_args",
    "getpath_file",
    "__prog_name",
];

const FORBIDDEN_YQ: [&str; 8] = [
    "exec",
    "import",
    "include",
    "filename",
    "error",
    "input_filename",
    "get_search_list",
    "modulemeta",
];

/// Functions that one yq finds even inside a longer word.
const FORBIDDEN_YQ_PARTS: [&str; 4] = ["load", "env", "system", "eval"];

/// Words with which a filter may never end.
const ENDLESS: [&str; 6] = ["repeat", "while", "until", "infinite", "def", "label"];
/// A loop to a number with more digits takes too long.
const MAX_DIGITS: usize = 7;

pub(super) fn check(parsed: &mut Parsed) {
    check_filter(parsed, 0, &FORBIDDEN_JQ);
}

/// Checks yq. `yq eval FILTER FILE` of one yq is `yq FILTER FILE` of the other.
pub(super) fn check_yq(parsed: &mut Parsed, local: &LocalFacts) {
    let verb = parsed
        .operands
        .first()
        .is_some_and(|first| matches!(first.text.as_str(), "eval" | "e" | "eval-all" | "ea"));
    if verb {
        parsed.operands.remove(0);
    }
    check_filter(parsed, 0, &FORBIDDEN_YQ);
    let Some(&filter) = parsed.operands.first() else {
        return;
    };
    // If a file has the name of the filter, yq reads the file.
    let read = paths::check_arg(local, filter, PathUse::Read);
    let is_file = local.path(&filter.text).kind != FileKind::Missing;
    parsed
        .reasons
        .extend(read.filter(|_| is_file || !filter.text.starts_with('.')));
    let text = filter.text.to_ascii_lowercase();
    if let Some(name) = FORBIDDEN_YQ_PARTS.iter().find(|name| text.contains(**name)) {
        parsed.ask(
            filter,
            format!("`{name}` in a filter may reach outside its input"),
        );
    }
}

fn check_filter(parsed: &mut Parsed, place: usize, forbidden: &[&str]) {
    let Some(&filter) = parsed.operands.get(place) else {
        return;
    };
    // `$` and its name are two words, with or without a space between them.
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    if let Some(name) = filter
        .text
        .split(word)
        .find(|name| forbidden.contains(name))
    {
        parsed.ask(
            filter,
            format!("the filter uses `{name}`, which reaches outside its input"),
        );
    }
    if !terminates(&filter.text) {
        parsed.ask(filter, "the filter may not end by itself");
    }
}

/// True if nothing in a filter repeats without an end.
fn terminates(filter: &str) -> bool {
    let mut words = filter
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty());
    let counts = filter.contains("range");
    let long = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && (word.len() > MAX_DIGITS || word.contains(['e', 'E']))
    };
    // With an argument, `recurse` may never end.
    let recurses = filter
        .split("recurse")
        .skip(1)
        .any(|rest| rest.trim_start().starts_with(['(', '_', '#']));
    !recurses && !words.any(|word| ENDLESS.contains(&word) || (counts && long(word)))
}

#[cfg(test)]
mod tests {
    use super::terminates;

    #[test]
    fn filters_that_end() {
        for filter in [
            ".",
            ".a[] | {b, c}",
            "[range(10)]",
            "recurse",
            ".. | .x?",
            "12345678",
        ] {
            assert!(terminates(filter), "{filter}");
        }
        for filter in [
            "repeat(1)",
            "def f: f; f",
            "[while(true; .)]",
            "until(false; .)",
            "range(infinite)",
            "range(1e18)",
            "range(0; 99999999)",
            "recurse(.)",
            "recurse (.)",
        ] {
            assert!(!terminates(filter), "{filter}");
        }
    }
}
