//! Decodes the messages of Lua. Strings in Lua may have any bytes.

use rmpv::{Utf8String, Value};

use crate::protocol::FromEditor;

/// The warning that bytes in a prompt or an answer were replaced.
pub(super) const REPLACED: &str =
    "what you sent was not all UTF-8: each byte that was not is now \u{fffd} and its two digits";

/// The fields that contain text to read. Bytes in them that are not UTF-8 are replaced by escapes.
///
/// Names of files and commands are not in this list, because an escape would change their meaning.
const TEXTS: [&str; 15] = [
    "comment",
    "diagnostics",
    "encoding",
    "head",
    "lines",
    "name",
    "problem",
    "prompt",
    "reason",
    "refusal",
    "revision",
    "text",
    "unsaved",
    "version",
    "word",
];

/// The types of messages whose field `text` may have any bytes, because it is the text of files.
const WITH_BYTES: [&str; 3] = ["buffers", "buffer_changed", "editor_answer"];

/// The types of messages that answer a request of the backend.
const ANSWERS: [&str; 4] = [
    "buffers",
    "buffer_changed",
    "command_hooked",
    "editor_answer",
];

/// The result of decoding a message of Lua.
#[derive(Debug)]
pub(super) enum Received {
    Message {
        message: FromEditor,
        /// True if bytes were replaced in something that the person wrote.
        replaced: bool,
    },
    Refused(Refusal),
    /// The message has an unknown form, because the versions of the plugin and the backend differ.
    Unknown(rmpv::ext::Error),
}

/// A message that is refused because a name or a command in it is not UTF-8.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The type of the message.
    pub(super) kind: String,
    /// The number of the backend's request that the message answers.
    pub(super) answers: Option<u64>,
}

/// Decodes a message of Lua.
pub(super) fn read(mut message: Value) -> Received {
    if !is_odd(&message) {
        return match rmpv::ext::from_value(message) {
            Ok(message) => Received::Message {
                message,
                replaced: false,
            },
            Err(error) => Received::Unknown(error),
        };
    }
    let kind = field(&message, "type").and_then(Value::as_str);
    let kind = kind.unwrap_or_default().to_owned();
    let request = field(&message, "request").and_then(Value::as_u64);
    let answers = request.filter(|_| ANSWERS.contains(&kind.as_str()));
    let replaced = escape(&mut message, false, !WITH_BYTES.contains(&kind.as_str()));
    match rmpv::ext::from_value(message) {
        Ok(message) => Received::Message {
            replaced: replaced
                && matches!(message, FromEditor::Prompt { .. } | FromEditor::Answer(_)),
            message,
        },
        Err(_) => Received::Refused(Refusal { kind, answers }),
    }
}

fn field<'a>(message: &'a Value, name: &str) -> Option<&'a Value> {
    let fields = message.as_map()?;
    let found = fields.iter().find(|(key, _)| key.as_str() == Some(name));
    found.map(|(_, value)| value)
}

/// Returns true if a string or the name of a field in a value is not UTF-8.
fn is_odd(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_str(),
        Value::Binary(_) => true,
        Value::Array(items) => items.iter().any(is_odd),
        Value::Map(fields) => fields
            .iter()
            .any(|(name, value)| is_odd(name) || is_odd(value)),
        _ => false,
    }
}

/// Replaces bytes that are not UTF-8 by escapes in the texts of a value. Returns true if there were such bytes.
///
/// `is_text` is true if the value itself is such a text. `text_too` is true if fields with the name `text` are included.
fn escape(value: &mut Value, is_text: bool, text_too: bool) -> bool {
    match value {
        Value::String(odd) if is_text && !odd.is_str() => {
            let text = co_edit::escape(odd.as_bytes());
            *value = Value::String(Utf8String::from(text));
            true
        }
        Value::Array(items) => items.iter_mut().fold(false, |replaced, item| {
            escape(item, is_text, text_too) | replaced
        }),
        Value::Map(fields) => fields.iter_mut().fold(false, |replaced, (name, field)| {
            let name = name.as_str().unwrap_or_default();
            let is_text = TEXTS.contains(&name) && (text_too || name != "text");
            escape(field, is_text, text_too) | replaced
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
