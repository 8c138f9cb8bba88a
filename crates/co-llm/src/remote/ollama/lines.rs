//! Reads the lines of an Ollama answer, each a JSON object, into events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, BoxStream, Stream, StreamExt};
use genai::ModelIden;
use genai::chat::{
    ChatStreamEvent, MessageContent, PromptTokensDetails, StopReason, StreamChunk, StreamEnd,
    ToolCall, Usage,
};
use genai::webc::StreamTimeout;
use reqwest::Response;
use serde_json::Value;

use crate::remote::raw_frames::RawFrames;

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The longest line in bytes. Most lines hold a few characters, some a call with its arguments.
const MAX_LINE: usize = 16 << 20;

/// Returns the events of an answer. The last one is an end or an error.
pub(super) fn events(
    response: Response,
    stall: Duration,
    frames: Arc<RawFrames>,
    model: ModelIden,
) -> impl Stream<Item = genai::Result<ChatStreamEvent>> {
    let pieces = response
        .bytes_stream()
        .map(|piece| piece.map(|piece| piece.to_vec()));
    let lines = LineReader {
        pieces: pieces.boxed(),
        rest: Vec::new(),
        searched: 0,
        closed: false,
        ready: VecDeque::new(),
        calls: Vec::new(),
        ended: false,
        stall,
        frames,
        model,
    };
    stream::unfold(lines, |mut lines| async move {
        let event = lines.next().await?;
        Some((event, lines))
    })
}

struct LineReader {
    pieces: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    /// The bytes of a line that is not complete yet.
    rest: Vec<u8>,
    /// The number of these bytes that were already searched for the end of the line.
    searched: usize,
    closed: bool,
    ready: VecDeque<ChatStreamEvent>,
    /// The calls so far. The end event holds them, as `genai` does it for all providers.
    calls: Vec<ToolCall>,
    ended: bool,
    stall: Duration,
    frames: Arc<RawFrames>,
    model: ModelIden,
}

impl LineReader {
    async fn next(&mut self) -> Option<genai::Result<ChatStreamEvent>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.advance().await {
                self.ended = true;
                return Some(Err(error));
            }
        }
    }

    /// Reads one line, or waits for more bytes.
    async fn advance(&mut self) -> genai::Result<()> {
        let fresh = &self.rest[self.searched..];
        if let Some(end) = fresh.iter().position(|byte| *byte == b'\n') {
            let line = self.rest.drain(..=self.searched + end).collect();
            self.searched = 0;
            return self.line(line);
        }
        self.searched = self.rest.len();
        if self.rest.len() > MAX_LINE {
            return Err(self.broken(format!(
                "a line of it is longer than {} MiB",
                MAX_LINE >> 20
            )));
        }
        if self.closed {
            if !self.rest.is_empty() {
                let line = std::mem::take(&mut self.rest);
                self.searched = 0;
                return self.line(line);
            }
            // The answer was cut. An end without a reason means that.
            self.end(StreamEnd::default());
            return Ok(());
        }
        match tokio::time::timeout(self.stall, self.pieces.next()).await {
            Ok(Some(Ok(piece))) => self.rest.extend(piece),
            Ok(Some(Err(error))) => return Err(self.broken(error)),
            Ok(None) => self.closed = true,
            Err(_) => return Err(self.broken(StreamTimeout::Read)),
        }
        Ok(())
    }

    fn line(&mut self, line: Vec<u8>) -> genai::Result<()> {
        let line = String::from_utf8(line).map_err(|error| self.broken(error))?;
        let line = line.trim();
        self.frames.add(line);
        if line.is_empty() {
            return Ok(());
        }
        let mut line: Value =
            serde_json::from_str(line).map_err(|serde_error| genai::Error::StreamParse {
                model_iden: self.model.clone(),
                serde_error,
            })?;
        if line.get("error").is_some() {
            return Err(genai::Error::ChatResponse {
                model_iden: self.model.clone(),
                body: line,
            });
        }
        self.said(&mut line["message"]);
        if line["done"] == true {
            let calls = std::mem::take(&mut self.calls);
            // Older servers give no reason.
            let reason = line["done_reason"].as_str().unwrap_or("stop").to_owned();
            self.end(StreamEnd {
                captured_usage: Some(usage(&line)),
                captured_stop_reason: Some(StopReason::from(reason)),
                captured_content: Some(MessageContent::from_tool_calls(calls)),
                ..StreamEnd::default()
            });
        }
        Ok(())
    }

    fn said(&mut self, message: &mut Value) {
        let mut take = |name: &str| match message.get_mut(name).map(Value::take) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        // Other servers with this API use the second name.
        let thought = take("thinking") + &take("reasoning_content");
        let content = take("content");
        if !thought.is_empty() {
            let chunk = StreamChunk { content: thought };
            self.ready.push_back(ChatStreamEvent::ReasoningChunk(chunk));
        }
        if !content.is_empty() {
            self.ready
                .push_back(ChatStreamEvent::Chunk(StreamChunk { content }));
        }
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            self.calls.push(ToolCall {
                call_id: text(&call["id"]),
                fn_name: text(&call["function"]["name"]),
                fn_arguments: call["function"]["arguments"].take(),
                thought_signatures: None,
            });
        }
    }

    fn end(&mut self, end: StreamEnd) {
        self.ended = true;
        self.ready.push_back(ChatStreamEvent::End(end));
    }

    fn broken(&self, error: impl Into<BoxError>) -> genai::Error {
        broken(&self.model, error.into())
    }
}

/// Wraps an error as `genai` wraps those of a stream.
pub(super) fn broken(model: &ModelIden, error: BoxError) -> genai::Error {
    genai::Error::WebStream {
        model_iden: model.clone(),
        cause: error.to_string(),
        error,
    }
}

fn usage(line: &Value) -> Usage {
    let count = |name: &str| line[name].as_i64().and_then(|it| i32::try_from(it).ok());
    Usage {
        prompt_tokens: count("prompt_eval_count"),
        prompt_tokens_details: Some(PromptTokensDetails {
            cached_tokens: count("prompt_eval_cached_count"),
            ..PromptTokensDetails::default()
        }),
        completion_tokens: count("eval_count"),
        ..Usage::default()
    }
}
