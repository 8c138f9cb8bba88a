//! Reads the chunks of a chat completions stream.

use serde_json::Value;

use super::calls::Calls;
use crate::fault::Fault;
use crate::provider::Stop;
use crate::remote::answer::Answer;
use crate::remote::frame_reader::{
    FrameReader, count, missing_call, stopped_with, text, unknown_stop,
};
use crate::transcript::{Cost, Usage};

/// The state of a chat completions stream between two chunks.
#[derive(Debug, Default)]
pub(in crate::remote) struct ChunkReader {
    calls: Calls,
    refused: bool,
    /// The reasoning details in the form that OpenRouter expects back. Details with the same index are joined.
    details: Vec<Value>,
}

impl FrameReader for ChunkReader {
    fn frame(&mut self, frame: Value, answer: &mut Answer) -> Result<(), Fault> {
        let choice = &frame["choices"][0];
        for error in [&frame["error"], &choice["error"]] {
            if error.is_string() {
                return Err(answer.info.event(&frame));
            } else if !error.is_null() {
                return Err(answer.info.event(error));
            }
        }
        // vLLM sends an error without a wrapper, Zhipu one with a status of success.
        let is_error = frame["object"] == "error" || !frame["code"].is_null();
        if is_error && frame["choices"].is_null() {
            return Err(answer.info.event(&frame));
        }
        if let Some(counted) = usage(&frame) {
            *answer.usage() = counted;
        }
        // Some servers send a whole message in place of a delta.
        let delta = match &choice["delta"] {
            Value::Null => &choice["message"],
            delta => delta,
        };
        self.delta(delta, answer);
        answer.set_reason(text(choice, "finish_reason"));
        Ok(())
    }

    fn finish(&mut self, reason: &str, answer: &mut Answer) -> Result<(), Fault> {
        let mut stop = match reason {
            "stop" | "tool_calls" | "function_call" | "end_turn" | "eos" | "eos_token"
            | "stop_sequence" | "tool_use" | "completed" | "COMPLETE" | "" => Stop::Done,
            "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => {
                Stop::Length
            }
            "content_filter" | "sensitive" | "safety" | "refusal" | "recitation" => Stop::Refused,
            "error"
            | "network_error"
            | "insufficient_system_resource"
            | "server_error"
            | "abort"
            | "overloaded"
            | "malformed_function_call"
            | "MALFORMED_FUNCTION_CALL" => {
                return Err(stopped_with(reason));
            }
            unknown => unknown_stop(unknown, answer),
        };
        if self.refused {
            stop = Stop::Refused;
        }
        let announced = matches!(reason, "tool_calls" | "function_call" | "tool_use");
        if announced && self.calls.is_empty() {
            return Err(missing_call());
        }
        if !self.details.is_empty() {
            let details = Value::from(std::mem::take(&mut self.details));
            answer.signature(&details.to_string());
        }
        for call in self.calls.take() {
            answer.call(call);
        }
        answer.stop(stop);
        Ok(())
    }
}

impl ChunkReader {
    fn delta(&mut self, delta: &Value, answer: &mut Answer) {
        // Servers name the reasoning differently, and some send it under two names.
        let named = ["reasoning_content", "reasoning"].map(|name| text(delta, name));
        let reasoning = named.into_iter().find(|text| !text.is_empty());
        answer.reasoning(reasoning.unwrap_or_default());
        match &delta["content"] {
            Value::String(text) => answer.text_with_tags(text),
            Value::Array(parts) => parts.iter().for_each(|part| content_part(part, answer)),
            _ => {}
        }
        let refusal = text(delta, "refusal");
        self.refused |= !refusal.is_empty();
        answer.text(refusal);
        for detail in delta["reasoning_details"].as_array().into_iter().flatten() {
            add_detail(&mut self.details, detail);
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            self.calls.add(piece);
        }
        let function = &delta["function_call"];
        if function.is_object() {
            self.calls.add(&serde_json::json!({ "function": function }));
        }
    }
}

/// Adds a part of Mistral's content: a text, or thinking that contains texts.
fn content_part(part: &Value, answer: &mut Answer) {
    if part["type"] == "thinking" {
        match &part["thinking"] {
            Value::String(text) => answer.reasoning(text),
            thinking => {
                for piece in thinking.as_array().into_iter().flatten() {
                    answer.reasoning(text(piece, "text"));
                }
            }
        }
    } else {
        answer.text(text(part, "text"));
    }
}

/// Appends a piece of a reasoning detail to the detail with the same index.
fn add_detail(details: &mut Vec<Value>, piece: &Value) {
    let same = |known: &&mut Value| {
        known["type"] == piece["type"]
            && !piece["index"].is_null()
            && known["index"] == piece["index"]
    };
    let Some(known) = details.iter_mut().find(same) else {
        details.push(piece.clone());
        return;
    };
    let fields = piece.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(_, value)| !value.is_null()) {
        match (&mut known[name], value) {
            (Value::String(text), Value::String(more))
                if matches!(name.as_str(), "text" | "summary" | "data") =>
            {
                text.push_str(more);
            }
            (known, value) => *known = value.clone(),
        }
    }
}

fn usage(frame: &Value) -> Option<Usage> {
    let counted = [&frame["usage"], &frame["x_groq"]["usage"]]
        .into_iter()
        .find(|usage| usage.is_object())?;
    let cached = [
        "/prompt_tokens_details/cached_tokens",
        "/prompt_cache_hit_tokens",
        "/cached_tokens",
    ];
    Some(Usage {
        input: count(counted, "/prompt_tokens"),
        output: count(counted, "/completion_tokens"),
        cached: cached
            .iter()
            .map(|path| count(counted, path))
            .max()
            .unwrap_or(0),
        written: count(counted, "/prompt_tokens_details/cache_write_tokens"),
        cost: counted["cost"].as_f64().and_then(Cost::of_dollars),
        at_least: false,
    })
}
