//! The interface of the five stream readers, and functions that several of them use.

use serde_json::Value;

use super::answer::Answer;
use super::error::malformed;
use crate::fault::Fault;
use crate::provider::Stop;

/// Reads the frames of one answer.
pub(super) trait FrameReader: Send {
    /// Adds the content of a frame to the answer.
    fn frame(&mut self, frame: Value, answer: &mut Answer) -> Result<(), Fault>;

    /// Ends the answer after the last frame. `reason` is the finish reason; empty if the server sent none.
    fn finish(&mut self, reason: &str, answer: &mut Answer) -> Result<(), Fault>;
}

/// Returns the text of a field. Returns an empty text if the field is missing or is not a text.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Returns the number at a JSON pointer, or 0 if there is none.
pub(super) fn count(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

/// Converts the arguments that a server sends as an object to JSON text.
pub(super) fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) if text.trim().is_empty() => String::new(),
        // Text of JSON inside a JSON string is no object, and must not become one.
        other => other.to_string(),
    }
}

/// Returns the fault for a finish reason that means a failure of the server or the model.
pub(super) fn stopped_with(reason: &str) -> Fault {
    malformed(&format!("the model stopped with {reason}"))
}

/// Returns the stop for an unknown finish reason, and adds a notice about this reason.
pub(super) fn unknown_stop(reason: &str, answer: &mut Answer) -> Stop {
    answer.notice(format!(
        "the model stopped for a reason that co does not know: {reason}"
    ));
    Stop::Done
}

/// Returns the fault for an answer that announced a call but contains none.
pub(super) fn missing_call() -> Fault {
    malformed("it announced a call and made none")
}
