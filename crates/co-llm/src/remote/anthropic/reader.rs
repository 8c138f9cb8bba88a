//! Reads the events of Anthropic's stream.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fault::Fault;
use crate::provider::Stop;
use crate::remote::answer::{Answer, RawCall};
use crate::remote::frame_reader::{
    FrameReader, arguments_text, count, missing_call, text, unknown_stop,
};

/// The state of an Anthropic stream between two events.
#[derive(Debug, Default)]
pub(in crate::remote) struct MessageReader {
    /// The content blocks that have not ended, by their index.
    open: BTreeMap<u64, ContentBlock>,
}

#[derive(Debug)]
enum ContentBlock {
    Text,
    Thinking { signature: String },
    Call { call: RawCall, input: Value },
}

impl FrameReader for MessageReader {
    fn frame(&mut self, mut frame: Value, answer: &mut Answer) -> Result<(), Fault> {
        let index = frame["index"].as_u64().unwrap_or(0);
        match text(&frame, "type") {
            "message_start" => {
                count_tokens(&frame["message"]["usage"], answer);
                answer.report_usage();
            }
            "content_block_start" => {
                let block = frame["content_block"].take();
                self.start(index, block, answer);
            }
            "content_block_delta" => self.delta(index, &frame["delta"], answer),
            "content_block_stop" => self.end(index, answer),
            "message_delta" => {
                count_tokens(&frame["usage"], answer);
                answer.set_reason(text(&frame["delta"], "stop_reason"));
            }
            "error" => return Err(answer.info.event(&frame)),
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, reason: &str, answer: &mut Answer) -> Result<(), Fault> {
        // The output limit cuts a block off without its end.
        let open: Vec<u64> = self.open.keys().copied().collect();
        for index in open {
            self.end(index, answer);
        }
        let stop = match reason {
            "end_turn" | "stop_sequence" | "tool_use" => Stop::Done,
            "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            "refusal" => Stop::Refused,
            unknown => unknown_stop(unknown, answer),
        };
        if reason == "tool_use" && !answer.has_call() {
            return Err(missing_call());
        }
        answer.stop(stop);
        Ok(())
    }
}

impl MessageReader {
    fn start(&mut self, index: u64, mut block: Value, answer: &mut Answer) {
        let begun = match text(&block, "type") {
            "text" => {
                answer.text(text(&block, "text"));
                ContentBlock::Text
            }
            "thinking" => {
                answer.reasoning(text(&block, "thinking"));
                let signature = text(&block, "signature").to_owned();
                ContentBlock::Thinking { signature }
            }
            "redacted_thinking" => return answer.signature(&block.to_string()),
            "tool_use" => ContentBlock::Call {
                call: RawCall {
                    id: text(&block, "id").to_owned(),
                    name: text(&block, "name").to_owned(),
                    ..RawCall::default()
                },
                input: block["input"].take(),
            },
            _ => return,
        };
        self.open.insert(index, begun);
    }

    fn delta(&mut self, index: u64, delta: &Value, answer: &mut Answer) {
        match text(delta, "type") {
            "text_delta" => answer.text(text(delta, "text")),
            "thinking_delta" => answer.reasoning(text(delta, "thinking")),
            "signature_delta" => {
                if let Some(ContentBlock::Thinking { signature }) = self.open.get_mut(&index) {
                    signature.push_str(text(delta, "signature"));
                }
            }
            "input_json_delta" => {
                if let Some(ContentBlock::Call { call, .. }) = self.open.get_mut(&index) {
                    call.arguments.push_str(text(delta, "partial_json"));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, index: u64, answer: &mut Answer) {
        match self.open.remove(&index) {
            Some(ContentBlock::Thinking { signature }) => answer.signature(&signature),
            Some(ContentBlock::Call { mut call, input }) => {
                let given = input.as_object().is_some_and(|input| !input.is_empty());
                // Some servers send the whole input at the start.
                if call.arguments.is_empty() && given {
                    call.arguments = arguments_text(&input);
                }
                answer.call(call);
            }
            Some(ContentBlock::Text) | None => {}
        }
    }
}

/// Copies the token counts of an event. The counts of later events include those of earlier events.
fn count_tokens(counted: &Value, answer: &mut Answer) {
    let usage = answer.usage();
    let fresh = usage.input - usage.cached - usage.written;
    let take = |path: &str, old: u64| counted.pointer(path).map_or(old, |_| count(counted, path));
    let fresh = take("/input_tokens", fresh);
    usage.cached = take("/cache_read_input_tokens", usage.cached);
    usage.written = take("/cache_creation_input_tokens", usage.written);
    usage.output = take("/output_tokens", usage.output);
    usage.input = fresh + usage.cached + usage.written;
}
