//! Puts the calls of an answer together from their pieces.
//!
//! Servers differ in how they tell calls apart: by an id in each piece, by an id in the first one and an index, by an index
//! from one, by nothing at all; and some send two calls under one index.

use serde_json::Value;

use crate::remote::answer::RawCall;
use crate::remote::frame_reader::{arguments_text, text};

#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    call: RawCall,
}

impl Slot {
    /// Returns true if the arguments are a whole JSON object, so that a piece with a name begins another call.
    fn is_whole(&self) -> bool {
        serde_json::from_str::<serde_json::Map<String, Value>>(&self.call.arguments).is_ok()
    }
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds a piece of a call.
    pub(super) fn add(&mut self, piece: &Value) {
        let function = &piece["function"];
        let (id, name) = (text(piece, "id"), text(function, "name"));
        let index = piece["index"].as_u64();
        let at = self.find(id, index, name);
        let at = at.unwrap_or_else(|| {
            self.slots.push(Slot {
                index,
                ..Slot::default()
            });
            self.slots.len() - 1
        });
        let call = &mut self.slots[at].call;
        if call.id.is_empty() {
            call.id = id.to_owned();
        }
        if call.name.is_empty() {
            call.name = name.to_owned();
        }
        match &function["arguments"] {
            Value::String(more) => {
                // Some servers repeat a whole call at its end.
                let repeated = !id.is_empty() && !name.is_empty() && *more == call.arguments;
                if !repeated {
                    call.arguments.push_str(more);
                }
            }
            whole => {
                let whole = arguments_text(whole);
                if !whole.is_empty() {
                    call.arguments = whole;
                }
            }
        }
        let extra = &piece["extra_content"];
        if extra.is_object() {
            call.signature = Some(extra.to_string());
        }
    }

    /// Returns the index of the call that a piece belongs to; none if it begins another one.
    fn find(&self, id: &str, index: Option<u64>, name: &str) -> Option<usize> {
        if !id.is_empty()
            && let Some(at) = self.slots.iter().position(|slot| slot.call.id == id)
        {
            return Some(at);
        }
        // Two calls may have the same index. The newer one is not complete yet.
        let at = match index {
            Some(_) => self.slots.iter().rposition(|slot| slot.index == index)?,
            None => self.slots.len().checked_sub(1)?,
        };
        let slot = &self.slots[at];
        let another_id = !id.is_empty() && !slot.call.id.is_empty();
        let begins = !name.is_empty()
            && !slot.call.name.is_empty()
            && (another_id || name != slot.call.name || slot.is_whole());
        (!begins).then_some(at)
    }

    /// Takes the calls, in the order in which they began.
    pub(super) fn take(&mut self) -> impl Iterator<Item = RawCall> + use<> {
        let slots = std::mem::take(&mut self.slots);
        slots.into_iter().map(|slot| slot.call)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(pieces: &[Value], expected: &[(&str, &str, &str)]) {
        let mut calls = Calls::default();
        pieces.iter().for_each(|piece| calls.add(piece));
        let calls: Vec<RawCall> = calls.take().collect();
        let read: Vec<_> = calls
            .iter()
            .map(|call| (&*call.id, &*call.name, &*call.arguments))
            .collect();
        assert_eq!(read, expected, "{pieces:?}");
    }

    fn piece(index: Value, id: Value, name: Value, arguments: Value) -> Value {
        json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
    }

    #[test]
    fn as_openai_sends_them() {
        let null = Value::Null;
        check(
            &[
                piece(json!(0), json!("a"), json!("run"), json!("")),
                piece(json!(0), null.clone(), null.clone(), json!("{\"x\"")),
                piece(json!(1), json!("b"), json!("read"), json!("")),
                piece(json!(0), null.clone(), null.clone(), json!(":1}")),
                piece(json!(1), null.clone(), null, json!("{}")),
            ],
            &[("a", "run", "{\"x\":1}"), ("b", "read", "{}")],
        );
    }

    #[test]
    fn an_index_from_one_makes_no_further_call() {
        check(
            &[
                piece(json!(1), json!("a"), json!("run"), json!("{")),
                piece(json!(1), json!("a"), json!("run"), json!("}")),
                piece(json!(2), json!("b"), json!("run"), json!("{}")),
            ],
            &[("a", "run", "{}"), ("b", "run", "{}")],
        );
    }

    #[test]
    fn without_an_index() {
        let whole = |id: &str| json!({"id": id, "function": {"name": "run", "arguments": "{}"}});
        check(
            &[whole("a"), whole("b")],
            &[("a", "run", "{}"), ("b", "run", "{}")],
        );
        check(
            &[whole(""), whole("")],
            &[("", "run", "{}"), ("", "run", "{}")],
        );
        let more = |arguments: &str| json!({"function": {"arguments": arguments}});
        check(
            &[
                json!({"id": "a", "function": {"name": "run"}}),
                more("{\"a\""),
                more(":1}"),
            ],
            &[("a", "run", "{\"a\":1}")],
        );
    }

    #[test]
    fn two_calls_under_one_index() {
        let zero = || json!(0);
        check(
            &[
                piece(zero(), json!("a"), json!("run"), json!("{}")),
                piece(zero(), json!("b"), json!("run"), json!("{\"x\"")),
                piece(zero(), Value::Null, Value::Null, json!(":1}")),
            ],
            &[("a", "run", "{}"), ("b", "run", "{\"x\":1}")],
        );
        check(
            &[
                piece(zero(), json!(""), json!("run"), json!("{}")),
                piece(zero(), json!(""), json!("run"), json!("{}")),
            ],
            &[("", "run", "{}"), ("", "run", "{}")],
        );
    }

    #[test]
    fn another_id_in_each_piece_of_one_call() {
        check(
            &[
                piece(json!(0), json!("a"), json!("run"), json!("{")),
                piece(json!(0), json!("b"), Value::Null, json!("}")),
            ],
            &[("a", "run", "{}")],
        );
    }

    #[test]
    fn arguments_as_an_object_and_a_call_that_is_repeated() {
        check(
            &[piece(json!(0), json!("a"), json!("run"), json!({"x": 1}))],
            &[("a", "run", "{\"x\":1}")],
        );
        check(
            &[
                piece(json!(0), json!("a"), json!("run"), json!("{\"x\":1}")),
                piece(json!(0), json!("a"), json!("run"), json!("{\"x\":1}")),
            ],
            &[("a", "run", "{\"x\":1}")],
        );
    }
}
