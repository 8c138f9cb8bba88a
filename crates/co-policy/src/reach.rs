//! Detects commands that may access a secret or a place outside the workspace. The person must answer the question about such a
//! command separately, not together with other questions.

use crate::bash::{SimpleCommand, Word, path_from};
use crate::facts::LocalFacts;
use crate::paths;

/// Returns the first sign that a command may access a secret or a place outside the workspace, as a text for the person.
pub(crate) fn sign(command: &SimpleCommand, local: &LocalFacts) -> Option<String> {
    let targets = command.redirects.iter().map(|it| &it.target);
    let mut named = command.words.iter().skip(1).chain(targets);
    named.find_map(|word| sign_in_word(word, command.dir.as_deref(), local))
}

fn sign_in_word(word: &Word, dir: Option<&str>, local: &LocalFacts) -> Option<String> {
    if !word.is_literal() {
        return Some(format!(
            "bash computes `{}`, so it may be any path",
            word.text()
        ));
    }
    word.forms().iter().find_map(|text| {
        let path = match text.starts_with('-') {
            true => text.clone(),
            false => path_from(dir, text),
        };
        paths::check_rule_word(local, &path).map(|reason| reason.text)
    })
}
