//! Checks requests against the vendors' documents. The checks share no code with the modules that make requests.
//!
//! `docs/PROVIDERS.md` names the documents. Each check returns the error message of a refusal.

mod anthropic;
mod chat_completions;
mod gemini;
mod images;
mod ollama;
mod responses;
mod tests;

use std::collections::HashSet;

use serde_json::Value;

/// The result of a check. The error is the message of the refusal.
type Checked = Result<(), String>;

fn require(holds: bool, words: impl FnOnce() -> String) -> Checked {
    match holds {
        true => Ok(()),
        false => Err(words()),
    }
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], String> {
    let list = value.as_array().filter(|list| !list.is_empty());
    list.map(Vec::as_slice)
        .ok_or_else(|| format!("{name} must be a list that is not empty: {value}"))
}

fn string<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("{name} must be a string: {value}"))
}

fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    let text = string(value, name)?;
    require(!text.trim().is_empty(), || {
        format!("{name} must not be empty")
    })?;
    Ok(text)
}

fn is_word(text: &str, longest: usize) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.len() <= longest && text.chars().all(word)
}

/// Checks that the name of a call has the right form and belongs to a tool.
fn check_name(name: &Value, tools: &[&str]) -> Checked {
    let name = string(name, "name")?;
    require(is_word(name, 64), || {
        format!("name {name:?} does not match '^[a-zA-Z0-9_-]{{1,64}}$'")
    })?;
    require(tools.contains(&name), || {
        format!("{name} was not in request.tools")
    })
}

/// Checks arguments that are sent as JSON text.
fn check_arguments(arguments: &Value) -> Checked {
    let parsed: Option<Value> = arguments
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    require(parsed.is_some_and(|it| it.is_object()), || {
        format!("arguments must be the JSON of an object: {arguments}")
    })
}

/// Adds the id of a call to the set. Fails if the set already has it.
fn check_new(ids: &mut HashSet<String>, id: &str) -> Checked {
    require(ids.insert(id.to_owned()), || {
        format!("ids must be unique: {id}")
    })
}
