//! Reads the frames of Gemini's stream.

use serde_json::Value;

use crate::fault::Fault;
use crate::provider::Stop;
use crate::remote::answer::{Answer, RawCall};
use crate::remote::frame_reader::{
    FrameReader, arguments_text, count, stopped_with, text, unknown_stop,
};
use crate::transcript::Usage;

/// Reads a Gemini stream.
#[derive(Debug)]
pub(in crate::remote) struct CandidateReader;

impl FrameReader for CandidateReader {
    fn frame(&mut self, frame: Value, answer: &mut Answer) -> Result<(), Fault> {
        if !frame["error"].is_null() {
            return Err(answer.info.event(&frame["error"]));
        }
        let counted = &frame["usageMetadata"];
        if counted.is_object() {
            *answer.usage() = usage(counted);
        }
        if frame["promptFeedback"]["blockReason"].is_string() {
            answer.set_reason("BLOCKED");
        }
        let candidate = &frame["candidates"][0];
        answer.set_reason(text(candidate, "finishReason"));
        let parts = candidate["content"]["parts"].as_array();
        for part in parts.into_iter().flatten() {
            add_part(part, answer);
        }
        Ok(())
    }

    fn finish(&mut self, reason: &str, answer: &mut Answer) -> Result<(), Fault> {
        let stop = match reason {
            "STOP" => Stop::Done,
            "MAX_TOKENS" => Stop::Length,
            "BLOCKED" | "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "LANGUAGE" | "IMAGE_SAFETY" => Stop::Refused,
            "MALFORMED_FUNCTION_CALL"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS"
            | "MISSING_THOUGHT_SIGNATURE"
            | "MALFORMED_RESPONSE" => return Err(stopped_with(reason)),
            unknown => unknown_stop(unknown, answer),
        };
        answer.stop(stop);
        Ok(())
    }
}

fn add_part(part: &Value, answer: &mut Answer) {
    let signature = text(part, "thoughtSignature").to_owned();
    let function = &part["functionCall"];
    if function.is_object() {
        return answer.call(RawCall {
            id: text(function, "id").to_owned(),
            name: text(function, "name").to_owned(),
            arguments: arguments_text(&function["args"]),
            signature: Some(signature).filter(|signature| !signature.is_empty()),
        });
    }
    if part["thought"] == true {
        answer.reasoning(text(part, "text"));
        answer.signature(&signature);
    } else {
        // The next request sends it with the part after it.
        answer.signature(&signature);
        answer.text(text(part, "text"));
    }
}

/// Returns the token counts. Google counts the tokens of thinking and of tools separately.
fn usage(counted: &Value) -> Usage {
    Usage {
        input: count(counted, "/promptTokenCount") + count(counted, "/toolUsePromptTokenCount"),
        output: count(counted, "/candidatesTokenCount") + count(counted, "/thoughtsTokenCount"),
        cached: count(counted, "/cachedContentTokenCount"),
        written: 0,
        ..Usage::default()
    }
}
