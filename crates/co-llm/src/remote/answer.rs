//! Collects the pieces of an answer into deltas. All protocols share it.
//!
//! Calls are passed on only with a proper end, so no call of a broken answer ever runs.

mod think;

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use self::think::ThinkTags;
use super::request_info::RequestInfo;
use crate::fault::Fault;
use crate::provider::{Delta, Stop};
use crate::transcript::{Call, Item, Usage};

/// A call as the server sent it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RawCall {
    /// Empty if the protocol has none.
    pub(super) id: String,
    pub(super) name: String,
    /// The arguments as JSON text. Empty means none.
    pub(super) arguments: String,
    pub(super) signature: Option<String>,
}

/// A piece that waits for the end of the answer, because a call came before it.
enum Piece {
    Delta(Delta),
    Call(RawCall),
}

/// One answer.
pub(super) struct Answer {
    ready: VecDeque<Result<Delta, Fault>>,
    /// The first call and all that came after it.
    held: Vec<Piece>,
    /// The ids of all calls of the chat.
    ids: HashSet<String>,
    /// The last number tried for each id. Counting from one for each call would be slow for thousands of calls.
    numbers: HashMap<String, u32>,
    think: ThinkTags,
    usage: Usage,
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
    /// Starts the answer to a chat with these items.
    pub(super) fn new(items: &[Item]) -> Self {
        Self {
            ready: VecDeque::new(),
            held: Vec::new(),
            ids: used_ids(items),
            numbers: HashMap::new(),
            think: ThinkTags::default(),
            usage: Usage::default(),
            ended: false,
        }
    }

    /// Returns the next delta that is complete.
    pub(super) fn take(&mut self) -> Option<Result<Delta, Fault>> {
        self.ready.pop_front()
    }

    /// Returns true after a stop or a fault.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Adds text of the model.
    pub(super) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.end_of_tags();
            self.add(Delta::Text(text.to_owned()));
        }
    }

    /// Adds text of a model that may write its reasoning between `<think>` and `</think>`.
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

    /// Adds the signature of the reasoning before it.
    pub(super) fn signature(&mut self, info: &RequestInfo, signature: &str) {
        if !signature.is_empty() {
            self.add(Delta::Signature(info.keep_signature(signature)));
        }
    }

    /// Adds a complete call.
    pub(super) fn call(&mut self, call: RawCall) {
        self.end_of_tags();
        self.held.push(Piece::Call(call));
    }

    /// Tells the person something about this answer.
    pub(super) fn notice(&mut self, text: String) {
        self.add(Delta::Notice(text));
    }

    /// Returns the tokens that were counted so far, to be changed.
    pub(super) fn usage(&mut self) -> &mut Usage {
        &mut self.usage
    }

    /// Passes the count of tokens on. Should the rest of the answer be lost, these tokens were used all the same.
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

    /// Ends the answer as the server ended it.
    pub(super) fn stop(&mut self, info: &RequestInfo, stop: Stop) {
        self.end_of_tags();
        for piece in std::mem::take(&mut self.held) {
            let delta = match piece {
                Piece::Delta(delta) => Some(delta),
                Piece::Call(call) => self.checked(info, call, stop),
            };
            self.ready.extend(delta.map(Ok));
        }
        self.report_usage();
        self.ready.push_back(Ok(Delta::Stop(stop)));
        self.ended = true;
    }

    /// Ends the answer with a fault. Its text is kept, its calls are not.
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

    /// Returns the call, or the reason why its arguments cannot be used; none if the output limit cut it off.
    fn checked(&mut self, info: &RequestInfo, raw: RawCall, stop: Stop) -> Option<Delta> {
        let whole = object(&raw.arguments);
        if stop == Stop::Length && (whole.is_err() || raw.arguments.trim().is_empty()) {
            return None;
        }
        let (arguments, detail) = match whole {
            Ok(arguments) => (arguments, None),
            Err(detail) => (Map::new(), Some(detail)),
        };
        let call = Call {
            id: self.unique(raw.id, &raw.name),
            name: raw.name,
            arguments: Value::Object(arguments),
            signature: raw.signature.map(|sign| info.keep_signature(&sign)),
        };
        Some(match detail {
            None => Delta::Call(call),
            Some(detail) => Delta::BadCall { call, detail },
        })
    }

    /// Returns an id that no other call of the chat has. Some servers number the calls of each answer from one.
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

/// The beginning of an id for a call that came without one.
const MADE_UP: &str = "call#";

/// Returns true if the server sent the id of a call.
pub(super) fn is_servers_id(id: &str) -> bool {
    !id.starts_with(MADE_UP)
}

/// Returns the arguments if they are an object. No arguments count as an empty object.
fn object(arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(Value::String(_)) => Err("they are a JSON string, not an object".to_owned()),
        Ok(_) => Err("they are JSON, but not an object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
