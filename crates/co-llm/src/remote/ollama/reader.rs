//! Reads the lines of Ollama's stream.

use serde_json::Value;

use crate::fault::Fault;
use crate::provider::Stop;
use crate::remote::answer::{Answer, RawCall};
use crate::remote::frame_reader::{
    FrameReader, arguments_text, count, stopped_with, text, unknown_stop,
};
use crate::transcript::Usage;

/// Reads an Ollama stream.
#[derive(Debug)]
pub(in crate::remote) struct LineReader;

impl FrameReader for LineReader {
    fn frame(&mut self, frame: Value, answer: &mut Answer) -> Result<(), Fault> {
        if !frame["error"].is_null() {
            return Err(answer.info.event(&frame));
        }
        let message = &frame["message"];
        answer.reasoning(text(message, "thinking"));
        // Other servers with this protocol use this name.
        answer.reasoning(text(message, "reasoning_content"));
        answer.text_with_tags(text(message, "content"));
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            answer.call(RawCall {
                id: text(call, "id").to_owned(),
                name: text(function, "name").to_owned(),
                arguments: arguments_text(&function["arguments"]),
                signature: None,
            });
        }
        if frame["done"] == true {
            *answer.usage() = usage(&frame);
            // Older servers give no reason.
            answer.reason = Some(frame["done_reason"].as_str().unwrap_or("stop").to_owned());
        }
        Ok(())
    }

    fn finish(&mut self, reason: &str, answer: &mut Answer) -> Result<(), Fault> {
        let stop = match reason {
            "stop" | "tool_calls" => Stop::Done,
            "length" => Stop::Length,
            "load" | "unload" | "error" => return Err(stopped_with(reason)),
            unknown => unknown_stop(unknown, answer),
        };
        answer.stop(stop);
        Ok(())
    }
}

fn usage(line: &Value) -> Usage {
    Usage {
        input: count(line, "/prompt_eval_count"),
        output: count(line, "/eval_count"),
        cached: count(line, "/prompt_eval_cached_count"),
        ..Usage::default()
    }
}
