//! The raw frames of an answer, for what `genai` leaves out of its events.

use std::sync::{Mutex, MutexGuard, PoisonError};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use serde_json::Value;

use crate::provider_table::Protocol;

/// Sees each frame before the events that are made of it.
#[derive(Debug)]
pub(super) struct Watch {
    protocol: Protocol,
    seen: Mutex<Seen>,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    frames: usize,
    with_data: usize,
    markup: bool,
    unreadable: Option<String>,
    redacted: Vec<Value>,
    failure: Option<Value>,
}

impl Seen {
    /// Returns whether something came, but nothing of an event stream.
    pub(super) fn no_event_stream(&self) -> bool {
        self.frames > 0 && self.with_data == 0
    }

    /// Returns whether a page came where lines of JSON were expected.
    pub(super) fn markup(&self) -> bool {
        self.markup
    }

    /// Returns the frame that was no JSON, which the Responses reader passes over in silence.
    pub(super) fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// Takes the thinking blocks that came encrypted, in their place between the others.
    pub(super) fn take_redacted(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.redacted)
    }

    /// Takes the reason of a failed response, of which `genai` keeps the sentence alone.
    pub(super) fn take_failure(&mut self) -> Option<Value> {
        self.failure.take()
    }
}

impl Watch {
    pub(super) fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            seen: Mutex::default(),
        }
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatFrameSink for Watch {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        self.saw(frame.data);
    }
}

impl Watch {
    /// Takes note of a frame.
    pub(super) fn saw(&self, data: &str) {
        let data = data.trim();
        let mut seen = self.seen();
        seen.markup |= seen.frames == 0 && data.starts_with('<');
        seen.frames += 1;
        if data.is_empty() {
            return;
        }
        seen.with_data += 1;
        match self.protocol {
            Protocol::Anthropic if data.contains("redacted_thinking") => {
                let block = serde_json::from_str::<Value>(data)
                    .ok()
                    .and_then(|mut frame| frame.get_mut("content_block").map(Value::take))
                    .filter(|block| block["type"] == "redacted_thinking");
                seen.redacted.extend(block);
            }
            Protocol::Responses => match serde_json::from_str::<Value>(data) {
                Ok(mut frame) if frame["type"] == "response.failed" => {
                    seen.failure = frame.pointer_mut("/response/error").map(Value::take);
                }
                Ok(_) => {}
                Err(error) if data != "[DONE]" => seen.unreadable = Some(error.to_string()),
                Err(_) => {}
            },
            _ => {}
        }
    }
}
