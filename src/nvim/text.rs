//! Escapes invalid UTF-8 in prompts, their contexts and answers, from buffers in another encoding or from binary files.

use rmpv::{Utf8String, Value};

/// The warning about a changed prompt.
pub(super) const REPLACED: &str =
    "what you sent was not all UTF-8: each byte that was not is now \u{fffd} and its two digits";

/// Escapes invalid UTF-8 in the texts of a prompt, of a request for one of its contexts, and of an answer. Returns whether
/// there was any.
///
/// Directories and commands are not changed: they would mean something else.
pub(super) fn replace_invalid(message: &mut Value) -> bool {
    let kind = field(message, "type").and_then(|kind| kind.as_str().map(str::to_owned));
    match kind.as_deref() {
        Some("prompt") => {
            let replaced = replace_fields(message, &["text"]);
            let pieces = list(field(message, "context"));
            pieces.fold(replaced, |replaced, piece| {
                replace_fields(piece, &["name", "text"]) | replaced
            })
        }
        // The text may be cut inside a character, and is only shown: the prompt has it whole.
        Some("read_context") => {
            replace_fields(message, &["word"]);
            if let Some(query) = field(message, "query") {
                replace_fields(query, &["text", "revision"]);
            }
            false
        }
        Some("answer") => {
            let replaced = replace_fields(message, &["reason"]);
            let hunks = list(field(message, "hunks"));
            hunks.fold(replaced, |replaced, hunk| {
                let lines = list(field(hunk, "lines"))
                    .fold(false, |replaced, line| replace(line) | replaced);
                replace_fields(hunk, &["comment"]) | lines | replaced
            })
        }
        _ => false,
    }
}

fn replace_fields(of: &mut Value, names: &[&str]) -> bool {
    let each = names
        .iter()
        .map(|name| field(of, name).is_some_and(replace));
    each.fold(false, |replaced, one| replaced | one)
}

fn list(value: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    let values = value.and_then(|value| match value {
        Value::Array(values) => Some(values),
        _ => None,
    });
    values.into_iter().flatten()
}

fn field<'a>(message: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    let Value::Map(fields) = message else {
        return None;
    };
    let found = fields
        .iter_mut()
        .find(|(key, _)| key.as_str() == Some(name));
    found.map(|(_, value)| value)
}

fn replace(value: &mut Value) -> bool {
    let Value::String(odd) = &*value else {
        return false;
    };
    if odd.is_str() {
        return false;
    }
    let text = co_edit::escape(odd.as_bytes());
    *value = Value::String(Utf8String::from(text));
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::FromEditor;

    /// As Neovim packs a Lua string: a str, whatever is in it.
    fn packed(bytes: &[u8]) -> Value {
        let mut packed = vec![0xd9, u8::try_from(bytes.len()).unwrap()];
        packed.extend(bytes);
        rmpv::decode::read_value(&mut packed.as_slice()).unwrap()
    }

    fn map(fields: Vec<(&str, Value)>) -> Value {
        let fields = fields.into_iter();
        Value::Map(fields.map(|(name, value)| (name.into(), value)).collect())
    }

    #[test]
    fn what_is_no_text_in_a_prompt_is_replaced() {
        let piece = map(vec![
            ("name", "@file:x".into()),
            ("text", packed(b"a\xffb")),
        ]);
        let mut message = map(vec![
            ("type", "prompt".into()),
            ("chat", 1.into()),
            ("text", packed(b"d\xe9j\xe0 \xc3\xa9")),
            ("cwd", "/".into()),
            ("context", Value::Array(vec![piece])),
        ]);
        assert!(replace_invalid(&mut message));
        assert!(!replace_invalid(&mut message.clone()), "it is text now");
        let decoded: FromEditor = rmpv::ext::from_value(message).unwrap();
        let FromEditor::Prompt { text, context, .. } = decoded else {
            panic!("{decoded:?}");
        };
        assert_eq!(text, "d\u{fffd}E9j\u{fffd}E0 \u{e9}");
        assert_eq!(context[0].text, "a\u{fffd}FFb");
    }

    #[test]
    fn what_is_no_text_in_a_context_or_an_answer_is_replaced() {
        let query = map(vec![
            ("kind", "text".into()),
            ("path", "/a".into()),
            ("text", packed(b"cut \xe2\x98")),
        ]);
        let mut message = map(vec![
            ("type", "read_context".into()),
            ("chat", 1.into()),
            ("request", 1.into()),
            ("cwd", "/".into()),
            ("word", packed(b"@file:\xff")),
            ("query", query),
        ]);
        assert!(!replace_invalid(&mut message), "nothing is sent yet");
        rmpv::ext::from_value::<FromEditor>(message).unwrap();
        let hunk = map(vec![
            ("accept", true.into()),
            ("lines", Value::Array(vec![packed(b"a\xff")])),
        ]);
        let mut message = map(vec![
            ("type", "answer".into()),
            ("id", 1.into()),
            ("decision", "reviewed".into()),
            ("reason", packed(b"\xff")),
            ("hunks", Value::Array(vec![hunk])),
        ]);
        assert!(replace_invalid(&mut message));
        rmpv::ext::from_value::<FromEditor>(message).unwrap();
    }

    #[test]
    fn a_command_stays_what_was_typed() {
        let mut message = map(vec![
            ("type", "run".into()),
            ("command", packed(b"rm d\xe9")),
        ]);
        let before = message.clone();
        assert!(!replace_invalid(&mut message));
        assert_eq!(message, before);
    }
}
