//! Reads the raw frames of an answer for facts that the events of `genai` leave out.

use std::sync::{Mutex, MutexGuard, PoisonError};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use serde_json::Value;

use crate::provider_table::Protocol;

/// Receives each frame before `genai` makes events of it.
#[derive(Debug)]
pub(super) struct RawFrames {
    protocol: Protocol,
    notes: Mutex<FrameNotes>,
}

/// The facts from the frames so far.
#[derive(Debug, Default)]
pub(super) struct FrameNotes {
    frames: usize,
    with_data: usize,
    markup: bool,
    unreadable: Option<String>,
    redacted: Vec<Value>,
    failure: Option<Value>,
}

impl FrameNotes {
    /// Returns true if the answer has content, but is no event stream.
    pub(super) fn no_event_stream(&self) -> bool {
        self.frames > 0 && self.with_data == 0
    }

    /// Returns true if an HTML page came instead of JSON.
    pub(super) fn markup(&self) -> bool {
        self.markup
    }

    /// Returns the error of a frame that is not JSON. The Responses adapter ignores such a frame.
    pub(super) fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// Takes the encrypted reasoning blocks that came since the last call.
    pub(super) fn take_redacted(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.redacted)
    }

    /// Takes the error object of a failed response. `genai` keeps only its message.
    pub(super) fn take_failure(&mut self) -> Option<Value> {
        self.failure.take()
    }
}

impl RawFrames {
    pub(super) fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            notes: Mutex::default(),
        }
    }

    pub(super) fn notes(&self) -> MutexGuard<'_, FrameNotes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatFrameSink for RawFrames {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        self.add(frame.data);
    }
}

impl RawFrames {
    /// Adds the facts of one frame.
    pub(super) fn add(&self, data: &str) {
        let data = data.trim();
        let mut notes = self.notes();
        notes.markup |= notes.frames == 0 && data.starts_with('<');
        notes.frames += 1;
        if data.is_empty() {
            return;
        }
        notes.with_data += 1;
        match self.protocol {
            Protocol::Anthropic if data.contains("redacted_thinking") => {
                let block = serde_json::from_str::<Value>(data)
                    .ok()
                    .and_then(|mut frame| frame.get_mut("content_block").map(Value::take))
                    .filter(|block| block["type"] == "redacted_thinking");
                notes.redacted.extend(block);
            }
            Protocol::Responses => match serde_json::from_str::<Value>(data) {
                Ok(mut frame) if frame["type"] == "response.failed" => {
                    notes.failure = frame.pointer_mut("/response/error").map(Value::take);
                }
                Ok(_) => {}
                Err(error) if data != "[DONE]" => notes.unreadable = Some(error.to_string()),
                Err(_) => {}
            },
            _ => {}
        }
    }
}
