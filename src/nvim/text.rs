//! Escapes invalid UTF-8 in prompts, from buffers in another encoding or from binary files.

use rmpv::{Utf8String, Value};

/// The warning about a changed prompt.
pub(super) const REPLACED: &str =
    "what you sent was not all UTF-8: each byte that was not is now \u{fffd} and its two digits";

/// Escapes invalid UTF-8 in the text and the context of a prompt. Returns whether there was any.
///
/// Directories and commands are not changed: they would mean something else.
pub(super) fn replace_invalid(message: &mut Value) -> bool {
    if field(message, "type").and_then(|kind| kind.as_str()) != Some("prompt") {
        return false;
    }
    let mut replaced = false;
    replaced |= field(message, "text").is_some_and(replace);
    let pieces = field(message, "context").and_then(|context| match context {
        Value::Array(pieces) => Some(pieces),
        _ => None,
    });
    for piece in pieces.into_iter().flatten() {
        for name in ["name", "text"] {
            replaced |= field(piece, name).is_some_and(replace);
        }
    }
    replaced
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
