//! Reads the events of a Responses stream.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fault::Fault;
use crate::provider::Stop;
use crate::remote::answer::{Answer, RawCall};
use crate::remote::frame_reader::{
    FrameReader, arguments_text, count, stopped_with, text, unknown_stop,
};
use crate::transcript::Usage;

/// The state of a Responses stream between two events.
#[derive(Debug, Default)]
pub(in crate::remote) struct EventReader {
    /// The calls that have not ended, by their index in the output.
    open: BTreeMap<u64, RawCall>,
    refused: bool,
    /// True after the first part of a reasoning summary.
    summary: bool,
    /// The whole response, which the final event has.
    response: Value,
}

impl FrameReader for EventReader {
    fn frame(&mut self, mut frame: Value, answer: &mut Answer) -> Result<(), Fault> {
        let index = frame["output_index"].as_u64().unwrap_or(0);
        match text(&frame, "type") {
            "response.output_text.delta" => answer.text(text(&frame, "delta")),
            "response.refusal.delta" => {
                self.refused = true;
                answer.text(text(&frame, "delta"));
            }
            "response.reasoning_summary_part.added" => self.summary_part(answer),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                answer.reasoning(text(&frame, "delta"));
            }
            "response.output_item.added" => self.added(index, &frame["item"]),
            "response.function_call_arguments.delta" => {
                let call = self.open.entry(index).or_default();
                call.arguments.push_str(text(&frame, "delta"));
            }
            "response.output_item.done" => self.done(index, &frame["item"], answer),
            "response.completed" | "response.incomplete" => {
                self.response = frame["response"].take();
                answer.set_reason("completed");
            }
            "response.failed" => return Err(answer.info.event(&frame["response"]["error"])),
            "error" => return Err(answer.info.event(&frame)),
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, _reason: &str, answer: &mut Answer) -> Result<(), Fault> {
        let response = self.response.take();
        *answer.usage() = usage(&response["usage"]);
        let mut stop = match text(&response["incomplete_details"], "reason") {
            "max_output_tokens" => Stop::Length,
            "content_filter" => Stop::Refused,
            "" if text(&response, "status") == "incomplete" => Stop::Length,
            "" => Stop::Done,
            unknown => unknown_stop(unknown, answer),
        };
        if matches!(text(&response, "status"), "failed" | "cancelled") {
            return Err(stopped_with(text(&response, "status")));
        }
        if self.refused {
            stop = Stop::Refused;
        }
        // The end of these calls was lost.
        for call in std::mem::take(&mut self.open).into_values() {
            answer.call(call);
        }
        if !answer.has_call() {
            let output = response["output"].as_array().into_iter().flatten();
            for item in output.filter(|item| item["type"] == "function_call") {
                answer.call(call(item));
            }
        }
        answer.stop(stop);
        Ok(())
    }
}

impl EventReader {
    fn added(&mut self, index: u64, item: &Value) {
        self.summary = false;
        if item["type"] == "function_call" {
            self.open.insert(index, call(item));
        }
    }

    /// Adds a separator between two parts of a reasoning summary.
    fn summary_part(&mut self, answer: &mut Answer) {
        if std::mem::replace(&mut self.summary, true) {
            answer.reasoning("\n\n");
        }
    }

    fn done(&mut self, index: u64, item: &Value, answer: &mut Answer) {
        match text(item, "type") {
            "function_call" => {
                let mut begun = self.open.remove(&index).unwrap_or_default();
                let whole = call(item);
                // Deltas may be cut. The whole arguments come with the end.
                if !whole.arguments.is_empty() || begun.name.is_empty() {
                    begun = whole;
                }
                answer.call(begun);
            }
            "reasoning" => answer.signature(text(item, "encrypted_content")),
            _ => {}
        }
    }
}

fn call(item: &Value) -> RawCall {
    RawCall {
        id: text(item, "call_id").to_owned(),
        name: text(item, "name").to_owned(),
        arguments: match &item["arguments"] {
            Value::String(text) => text.clone(),
            // Some servers send an object.
            object => arguments_text(object),
        },
        signature: None,
    }
}

fn usage(counted: &Value) -> Usage {
    Usage {
        input: count(counted, "/input_tokens"),
        output: count(counted, "/output_tokens"),
        cached: count(counted, "/input_tokens_details/cached_tokens"),
        written: count(counted, "/input_tokens_details/cache_write_tokens"),
        ..Usage::default()
    }
}
