//! Turns the events of an answer into deltas, and its end into a stop or a fault.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, StopReason, StreamEnd, ToolCall};
use genai::{Client, ServiceTarget};
use serde_json::{Map, Value};

use super::message::keep_signature;
use super::raw_frames::RawFrames;
use super::request_info::RequestInfo;
use crate::fault::Fault;
use crate::provider::{Delta, Stop};
use crate::provider_table::Protocol;
use crate::transcript::{Call, Item, Usage};

/// The time-out of the request that finds out why the answer was no event stream.
const PROBE: Duration = Duration::from_secs(10);

/// The data that an answer is read with.
pub(super) struct AnswerContext {
    pub(super) info: RequestInfo,
    pub(super) frames: Arc<RawFrames>,
    pub(super) client: Client,
    pub(super) target: ServiceTarget,
    pub(super) options: ChatOptions,
    /// The ids of all calls of the chat.
    pub(super) ids: HashSet<String>,
}

impl AnswerContext {
    /// Returns the fault for an answer without an end.
    async fn fault_of_cut(&self) -> Fault {
        if !self.frames.notes().no_event_stream() {
            return Fault::Cut;
        }
        // The answer was no event stream. Only a request without streaming reports its content type.
        let options = self.options.clone().with_max_tokens(1);
        let answer = self.client.exec_chat(
            self.target.clone(),
            ChatRequest::from_user("ping"),
            Some(&options),
        );
        match tokio::time::timeout(PROBE.min(self.info.stall), answer).await {
            Ok(Err(error)) => match self.info.fault(&error) {
                page @ Fault::HtmlPage { .. } => page,
                _ => Fault::Cut,
            },
            _ => Fault::Cut,
        }
    }
}

/// Reads one answer.
pub(super) struct AnswerReader {
    source: BoxStream<'static, genai::Result<ChatStreamEvent>>,
    context: AnswerContext,
    ready: VecDeque<Result<Delta, Fault>>,
    /// The last number tried for each stem of an id. Counting from one for each call would be slow for thousands of calls.
    numbers: HashMap<String, u32>,
    /// The part of a signature that came so far.
    signature: String,
    /// Complete signatures of Gemini. Each belongs to the part after it.
    signatures: Vec<String>,
    ended: bool,
}

/// Returns the ids of all calls among the items.
pub(super) fn used_ids(items: &[Item]) -> HashSet<String> {
    items
        .iter()
        .filter_map(|item| match item {
            Item::Call(call) => Some(call.id.clone()),
            _ => None,
        })
        .collect()
}

impl AnswerReader {
    pub(super) fn new(
        source: BoxStream<'static, genai::Result<ChatStreamEvent>>,
        context: AnswerContext,
    ) -> Self {
        Self {
            source,
            context,
            ready: VecDeque::new(),
            numbers: HashMap::new(),
            signature: String::new(),
            signatures: Vec::new(),
            ended: false,
        }
    }

    pub(super) fn into_stream(self) -> BoxStream<'static, Result<Delta, Fault>> {
        stream::unfold(self, |mut reader| async move {
            let delta = reader.next().await?;
            Some((delta, reader))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Result<Delta, Fault>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                // Nothing is read after a fault: the source may continue with a broken call.
                self.ended |= delta.is_err();
                return Some(delta);
            }
            if self.ended {
                return None;
            }
            let event = self.source.next().await;
            self.event(event).await;
        }
    }

    async fn event(&mut self, event: Option<genai::Result<ChatStreamEvent>>) {
        match event {
            None => {
                let fault = self.context.fault_of_cut().await;
                self.fail(fault);
            }
            // A kind of delta that `genai` does not know. No known delta is lost.
            Some(Err(genai::Error::JsonValueExt(_)))
                if self.context.info.provider.protocol == Protocol::Anthropic => {}
            // Gemini blocked the prompt: `genai` reports a frame without an answer as an error.
            Some(Err(genai::Error::ChatResponse { body, .. }))
                if self.context.info.provider.protocol == Protocol::Gemini
                    && body.get("usageMetadata").is_some() =>
            {
                self.push(Delta::Stop(Stop::Refused));
                self.ended = true;
            }
            Some(Err(error)) => {
                let fault = self.fault_of(&error);
                self.fail(fault);
            }
            Some(Ok(ChatStreamEvent::End(end))) => self.end(end).await,
            Some(Ok(event)) => self.piece(event),
        }
    }

    fn piece(&mut self, event: ChatStreamEvent) {
        if let Some(detail) = self.context.frames.notes().unreadable() {
            let detail = detail.to_owned();
            self.ready.push_back(Err(Fault::Malformed { detail }));
            return;
        }
        match event {
            ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                self.flush_signatures();
                self.push(Delta::Text(chunk.content));
            }
            ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                self.flush_signatures();
                self.push(Delta::Reasoning(chunk.content));
            }
            ChatStreamEvent::ThoughtSignatureChunk(chunk) => {
                if self.context.info.provider.protocol == Protocol::Gemini {
                    self.signatures.push(chunk.content);
                } else {
                    self.signature.push_str(&chunk.content);
                }
            }
            ChatStreamEvent::ToolCallChunk(chunk) => {
                // The complete call is taken from the end event.
                let own = chunk.tool_call.thought_signatures.unwrap_or_default();
                self.signatures.retain(|signature| !own.contains(signature));
                self.flush_signatures();
            }
            _ => {}
        }
    }

    async fn end(&mut self, end: StreamEnd) {
        self.flush_signatures();
        // Some adapters send an end also after a cut.
        let Some(reason) = &end.captured_stop_reason else {
            let fault = self.context.fault_of_cut().await;
            return self.fail(fault);
        };
        if let Some(detail) = self.context.frames.notes().unreadable() {
            let detail = detail.to_owned();
            return self.ready.push_back(Err(Fault::Malformed { detail }));
        }
        let stop = match stop(reason) {
            Ok(stop) => stop,
            Err(fault) => return self.fail(fault),
        };
        let wants_call = matches!(reason, StopReason::ToolCall(_));
        if self.context.info.provider.protocol == Protocol::Responses {
            // Signatures come only with the end event.
            for signature in end.captured_thought_signatures().unwrap_or_default() {
                let signature = keep_signature(self.context.info.provider, signature);
                self.ready.push_back(Ok(Delta::Signature(signature)));
            }
        }
        let usage = end.captured_usage.as_ref().map(usage);
        let calls = end.captured_into_tool_calls().unwrap_or_default();
        if wants_call && calls.is_empty() {
            return self.fail(Fault::Malformed {
                detail: "it announced a call and made none".to_owned(),
            });
        }
        self.calls(calls, stop);
        if let Some(usage) = usage {
            self.push(Delta::Usage(usage));
        }
        self.push(Delta::Stop(stop));
        self.ended = true;
    }

    /// Adds the calls in their order.
    fn calls(&mut self, calls: Vec<ToolCall>, stop: Stop) {
        for call in calls {
            let id = self.unique(&call.call_id);
            let signature = call
                .thought_signatures
                .and_then(|signatures| signatures.into_iter().next())
                .filter(|_| self.context.info.provider.protocol == Protocol::Gemini)
                .map(|signature| keep_signature(self.context.info.provider, &signature));
            let read = object(call.fn_arguments);
            let (arguments, unread) = match read {
                Ok(arguments) => (arguments, None),
                // The output limit cut the call off.
                Err(_) if stop == Stop::Length => continue,
                Err(detail) => (Value::Object(Map::new()), Some(detail)),
            };
            let call = Call {
                id,
                name: call.fn_name,
                arguments,
                signature,
            };
            self.push(match unread {
                None => Delta::Call(call),
                Some(detail) => Delta::BadCall { call, detail },
            });
        }
    }

    /// Returns an id that no other call of the chat has. Some servers number the calls of each answer from one.
    fn unique(&mut self, id: &str) -> String {
        let id = if id.is_empty() { "call" } else { id };
        // `genai` must recognise its own ids for Gemini, such as `call#name#0`.
        let (stem, mark) = match id.rsplit_once('#') {
            Some((stem, number)) if number.parse::<u32>().is_ok() => (stem, '#'),
            _ => (id, '_'),
        };
        let mut unique = id.to_owned();
        while self.context.ids.contains(&unique) {
            let number = self.numbers.entry(stem.to_owned()).or_default();
            *number += 1;
            unique = format!("{stem}{mark}{number}");
        }
        self.context.ids.insert(unique.clone());
        unique
    }

    fn push(&mut self, delta: Delta) {
        self.ready.push_back(Ok(delta));
    }

    fn fail(&mut self, fault: Fault) {
        self.flush_signatures();
        self.ready.push_back(Err(fault));
    }

    fn flush_signatures(&mut self) {
        let provider = self.context.info.provider;
        let mut whole = std::mem::take(&mut self.signatures);
        if !self.signature.is_empty() {
            whole.push(std::mem::take(&mut self.signature));
        }
        let redacted = self.context.frames.notes().take_redacted();
        whole.extend(redacted.iter().map(Value::to_string));
        for signature in whole {
            self.push(Delta::Signature(keep_signature(provider, &signature)));
        }
    }

    fn fault_of(&self, error: &genai::Error) -> Fault {
        let mut notes = self.context.frames.notes();
        if let Some(failure) = notes.take_failure() {
            return self.context.info.event(&failure);
        }
        if notes.markup() {
            return self.page();
        }
        self.context.info.fault(error)
    }

    fn page(&self) -> Fault {
        Fault::HtmlPage {
            url: self.context.info.url.clone(),
        }
    }
}

fn stop(reason: &StopReason) -> Result<Stop, Fault> {
    match reason {
        StopReason::MaxTokens(_) => Ok(Stop::Length),
        StopReason::ContentFilter(_) => Ok(Stop::Refused),
        StopReason::Other(raw)
            if matches!(
                raw.as_str(),
                "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "error"
            ) =>
        {
            Err(Fault::Malformed {
                detail: format!("the model stopped with {raw}"),
            })
        }
        // Several servers say "completed" with calls and without.
        _ => Ok(Stop::Done),
    }
}

/// Returns the arguments if they are an object. No arguments count as an empty object.
fn object(arguments: Value) -> Result<Value, String> {
    match arguments {
        Value::Object(_) => Ok(arguments),
        Value::Null => Ok(Value::Object(Map::new())),
        Value::String(text) if text.trim().is_empty() => Ok(Value::Object(Map::new())),
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            // `genai` parsed the arguments already, so this is JSON inside a JSON string.
            Ok(_) => Err("they are a JSON string, not an object".to_owned()),
            Err(error) => Err(error.to_string()),
        },
        _ => Err("they are JSON, but not an object".to_owned()),
    }
}

fn usage(counted: &genai::chat::Usage) -> Usage {
    let tokens = |count: Option<i32>| count.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    let details = counted.prompt_tokens_details.as_ref();
    Usage {
        input: tokens(counted.prompt_tokens),
        output: tokens(counted.completion_tokens),
        cached: tokens(details.and_then(|details| details.cached_tokens)),
        written: tokens(details.and_then(|details| details.cache_creation_tokens)),
        cost: None,
    }
}
