//! Collects the pieces of an answer into deltas. All protocols use this module.
//!
//! A call is passed on only after the answer has ended properly. So a call of a broken answer never runs.

mod stray;
mod think;

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use self::stray::StrayText;
use self::think::ThinkTags;
use super::request_info::RequestInfo;
use crate::fault::Fault;
use crate::provider::{Delta, Stop};
use crate::request::ModelRequest;
use crate::transcript::{Call, Item, Usage};

/// A call as the server sent it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RawCall {
    /// The id of the call. It is empty if the protocol has no ids.
    pub(super) id: String,
    pub(super) name: String,
    /// The arguments as JSON text. It is empty if the call has no arguments.
    pub(super) arguments: String,
    pub(super) signature: Option<String>,
}

/// A piece of an answer that is held back until the answer ends, because it is a call or follows one.
enum Piece {
    Delta(Delta),
    Call(RawCall),
}

/// The answer of a server as received so far.
pub(super) struct Answer {
    pub(super) info: RequestInfo,
    ready: VecDeque<Result<Delta, Fault>>,
    /// The first call, and all pieces that came after it.
    held: Vec<Piece>,
    /// The ids of all calls of the chat.
    ids: HashSet<String>,
    /// The last number that was added to each id to make it unique. Starting at one again would be slow with thousands of calls.
    numbers: HashMap<String, u32>,
    think: ThinkTags,
    /// The names of the tools that the request offers.
    tools: Vec<String>,
    stray: StrayText,
    usage: Usage,
    /// The finish reason. The reader does not need the frames after it.
    pub(super) reason: Option<String>,
    ended: bool,
}

/// Returns the ids of all calls among the items.
fn used_ids(items: &[Item]) -> HashSet<String> {
    let ids = items.iter().filter_map(|item| match item {
        Item::Call(call) => Some(call.id.clone()),
        _ => None,
    });
    ids.collect()
}

impl Answer {
    /// Starts the answer to a request.
    pub(super) fn new(request: &ModelRequest, info: RequestInfo) -> Self {
        let tools = request.tools.iter().filter(|_| request.may_call);
        Self {
            info,
            ready: VecDeque::new(),
            held: Vec::new(),
            ids: used_ids(&request.items),
            numbers: HashMap::new(),
            think: ThinkTags::default(),
            tools: tools.map(|tool| tool.name.clone()).collect(),
            stray: StrayText::default(),
            usage: Usage::default(),
            reason: None,
            ended: false,
        }
    }

    /// Returns the next complete delta.
    pub(super) fn take(&mut self) -> Option<Result<Delta, Fault>> {
        self.ready.pop_front()
    }

    /// Returns true after a [`Delta::Stop`] or a fault.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Sets the finish reason, if the server sent one.
    pub(super) fn set_reason(&mut self, reason: &str) {
        if !reason.is_empty() {
            self.reason = Some(reason.to_owned());
        }
    }

    /// Adds a piece of the model's text.
    pub(super) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.end_of_tags();
            self.add(Delta::Text(text.to_owned()));
        }
    }

    /// Adds a piece of text from a model that may write its reasoning between `<think>` and `</think>`.
    pub(super) fn text_with_tags(&mut self, text: &str) {
        for delta in self.think.push(text) {
            self.add(delta);
        }
    }

    pub(super) fn reasoning(&mut self, text: &str) {
        if !text.is_empty() {
            self.add(Delta::Reasoning(text.to_owned()));
        }
    }

    /// Adds a signature to the most recent reasoning.
    pub(super) fn signature(&mut self, signature: &str) {
        if !signature.is_empty() {
            self.add(Delta::Signature(self.info.keep_signature(signature)));
        }
    }

    /// Adds a complete call.
    pub(super) fn call(&mut self, call: RawCall) {
        self.end_of_tags();
        self.held.push(Piece::Call(call));
    }

    /// Adds a notice about this answer for the person.
    pub(super) fn notice(&mut self, text: String) {
        self.add(Delta::Notice(text));
    }

    /// Returns the token counts so far, so that the caller can update them.
    pub(super) fn usage(&mut self) -> &mut Usage {
        &mut self.usage
    }

    /// Passes on the token counts, because the tokens are used even if the rest of the answer is lost.
    pub(super) fn report_usage(&mut self) {
        if self.usage != Usage::default() {
            self.ready.push_back(Ok(Delta::Usage(self.usage)));
        }
    }

    /// Returns true if the answer has a call.
    pub(super) fn has_call(&self) -> bool {
        self.held
            .iter()
            .any(|piece| matches!(piece, Piece::Call(_)))
    }

    /// Ends the answer with the finish reason of the server.
    pub(super) fn stop(&mut self, stop: Stop) {
        self.end_of_tags();
        if !self.has_call()
            && let Some(notice) = self.stray.notice(&self.tools)
        {
            self.notice(notice.to_owned());
        }
        for piece in std::mem::take(&mut self.held) {
            let delta = match piece {
                Piece::Delta(delta) => Some(delta),
                Piece::Call(call) => self.checked(call, stop),
            };
            self.ready.extend(delta.map(Ok));
        }
        self.report_usage();
        self.ready.push_back(Ok(Delta::Stop(stop)));
        self.ended = true;
    }

    /// Ends the answer with a fault. The text of the answer is kept; its calls are dropped.
    pub(super) fn fail(&mut self, fault: Fault) {
        self.end_of_tags();
        for piece in std::mem::take(&mut self.held) {
            if let Piece::Delta(delta) = piece {
                self.ready.push_back(Ok(delta));
            }
        }
        self.report_usage();
        self.ready.push_back(Err(fault));
        self.ended = true;
    }

    fn add(&mut self, delta: Delta) {
        self.stray.push(&delta);
        match self.held.is_empty() {
            true => self.ready.push_back(Ok(delta)),
            false => self.held.push(Piece::Delta(delta)),
        }
    }

    fn end_of_tags(&mut self) {
        if let Some(delta) = self.think.finish() {
            self.add(delta);
        }
    }

    /// Returns the call, or the reason why its arguments are invalid. Returns `None` if the output limit cut the call off.
    fn checked(&mut self, raw: RawCall, stop: Stop) -> Option<Delta> {
        let whole = object(&raw.arguments);
        if stop == Stop::Length && (whole.is_err() || raw.arguments.trim().is_empty()) {
            return None;
        }
        let (arguments, detail) = match whole {
            Ok(arguments) => (arguments, None),
            Err(detail) => (Map::new(), Some(detail)),
        };
        let name = self.tool_name(raw.name);
        let call = Call {
            id: self.unique(raw.id, &name),
            name,
            arguments: Value::Object(arguments),
            signature: raw.signature.map(|sign| self.info.keep_signature(&sign)),
        };
        Some(match detail {
            None => Delta::Call(call),
            Some(detail) => Delta::BadCall { call, detail },
        })
    }

    /// Returns the name of a tool without the control tokens that some chat templates leave in it. For example, gpt-oss writes
    /// `functions.run` and `run<|channel|>commentary` for `run`.
    fn tool_name(&self, name: String) -> String {
        let bare = name.split("<|").next().unwrap_or_default().trim();
        let bare = bare.strip_prefix("functions.").unwrap_or(bare);
        match self.tools.iter().any(|tool| tool == bare) {
            true => bare.to_owned(),
            false => name,
        }
    }

    /// Returns an id that no other call of the chat has. Some servers number the calls of each answer from one, so their ids
    /// repeat.
    fn unique(&mut self, id: String, name: &str) -> String {
        let id = match id.is_empty() {
            true => format!("{MADE_UP}{name}"),
            false => id,
        };
        let mut unique = id.clone();
        while self.ids.contains(&unique) {
            let number = self.numbers.entry(id.clone()).or_default();
            *number += 1;
            unique = format!("{id}_{number}");
        }
        self.ids.insert(unique.clone());
        unique
    }
}

/// The prefix of the id that co makes for a call without an id.
const MADE_UP: &str = "call#";

/// Returns true if the server sent this id of a call. Returns false if co made the id.
pub(super) fn is_servers_id(id: &str) -> bool {
    !id.starts_with(MADE_UP)
}

/// Returns the arguments if they are a JSON object. An empty text counts as an empty object.
///
/// Some servers send an empty object before the arguments, or repeat all arguments after their pieces.
fn object(arguments: &str) -> Result<Map<String, Value>, String> {
    let values = serde_json::Deserializer::from_str(arguments).into_iter();
    let values: Result<Vec<Value>, _> = values.collect();
    let mut values = values.map_err(|error| error.to_string())?;
    if values.len() > 1 {
        values.retain(|value| *value != Value::Object(Map::new()));
        values.dedup();
    }
    match values.pop() {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(fields)) if values.is_empty() => Ok(fields),
        Some(Value::Object(_)) => Err("they are more than one object".to_owned()),
        Some(Value::String(_)) => Err("they are a JSON string, not an object".to_owned()),
        Some(_) => Err("they are JSON, but not an object".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_may_come_twice_or_after_an_empty_object() {
        let check = |arguments: &str, expected: Option<Value>| {
            let read = object(arguments).ok().map(Value::Object);
            assert_eq!(read, expected, "{arguments}");
        };
        let whole = || Some(json!({"cmd": "ls"}));
        check(r#"{"cmd":"ls"}"#, whole());
        check(r#"{}{"cmd":"ls"}"#, whole());
        check(r#"{"cmd":"ls"}{"cmd": "ls"}"#, whole());
        check(r#"{}{"cmd":"ls"}{"cmd":"ls"}{}"#, whole());
        check("", Some(json!({})));
        check("{}", Some(json!({})));
        check("{}{}", Some(json!({})));
        check("null", Some(json!({})));
        check(r#"{"cmd":"ls"}{"cmd":"pwd"}"#, None);
        check(r#"{}{"cmd":"l"#, None);
        check(r#""{}""#, None);
        check("[]", None);
    }
}
