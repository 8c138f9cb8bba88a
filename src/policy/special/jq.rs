//! jq and yq: filters that reach neither the environment nor other files.

use crate::policy::Reason;
use crate::policy::options::Parsed;

const JQ: [&str; 11] = [
    "env",
    "ENV",
    "$ENV",
    "import",
    "include",
    "input_filename",
    "modulemeta",
    "get_search_list",
    "$__prog_args",
    "getpath_file",
    "$__prog_name",
];

const YQ: [&str; 18] = [
    "env",
    "ENV",
    "strenv",
    "envsubst",
    "load",
    "load_str",
    "load_xml",
    "load_props",
    "load_base64",
    "system",
    "exec",
    "$ENV",
    "import",
    "include",
    "eval",
    "filename",
    "error",
    "modulemeta",
];

pub(super) fn check(parsed: &mut Parsed) {
    filter(parsed, 0, &JQ);
}

/// `yq eval FILTER FILE` of one yq is `yq FILTER FILE` of the other.
pub(super) fn check_yq(parsed: &mut Parsed) {
    let verb = parsed
        .operands
        .first()
        .is_some_and(|first| matches!(first.text.as_str(), "eval" | "e" | "eval-all" | "ea"));
    if verb {
        parsed.operands.remove(0);
    }
    filter(parsed, 0, &YQ);
}

fn filter(parsed: &mut Parsed, place: usize, forbidden: &[&str]) {
    let Some(filter) = parsed.operands.get(place) else {
        return;
    };
    let word = |c: char| !(c.is_alphanumeric() || c == '_' || c == '$');
    if let Some(name) = filter
        .text
        .split(word)
        .find(|name| forbidden.contains(name))
    {
        parsed.reasons.push(Reason::at(
            format!("the filter uses `{name}`, which reaches outside its input"),
            filter.span.clone(),
        ));
    }
}
