//! Assembles the calls of an answer from their pieces.
//!
//! Servers tell calls apart in different ways: by an id in each piece, by an id in the first piece and an index, by an index that
//! starts at 1, or not at all. Some send two calls under one index.

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
    /// Returns true if the arguments are a complete JSON object. Then a piece with a name begins another call.
    fn is_whole(&self) -> bool {
        serde_json::from_str::<serde_json::Map<String, Value>>(&self.call.arguments).is_ok()
    }

    /// Returns true if a piece with this id, index and name begins another call.
    fn is_followed_by(&self, id: &str, index: Option<u64>, name: &str) -> bool {
        if name.is_empty() || self.call.name.is_empty() {
            return false;
        }
        let another_id = !id.is_empty() && !self.call.id.is_empty();
        // A name in pieces has the index of its call, and comes before the arguments.
        let rest_of_name = index.is_some() && self.call.arguments.is_empty();
        another_id || self.is_whole() || (name != self.call.name && !rest_of_name)
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
        if name.starts_with(&*call.name) {
            call.name = name.to_owned();
        } else if call.arguments.is_empty() {
            // The name comes in pieces.
            call.name.push_str(name);
        }
        match &function["arguments"] {
            Value::String(more) => call.arguments.push_str(more),
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

    /// Returns the index of the call that a piece belongs to. Returns `None` if the piece begins another call.
    fn find(&self, id: &str, index: Option<u64>, name: &str) -> Option<usize> {
        let last = |is: &dyn Fn(&Slot) -> bool| self.slots.iter().rposition(is);
        let same_id = |slot: &Slot| !id.is_empty() && slot.call.id == id;
        let same_index = |slot: &Slot| index.is_some() && slot.index == index;
        if let Some(at) = last(&|slot| same_id(slot) && same_index(slot)) {
            return Some(at);
        }
        // Two calls may have one id, if each begins with an index and a name of its own.
        if let Some(at) = last(&same_id) {
            let another = index.is_some() && self.slots[at].index.is_some() && !name.is_empty();
            return (!another).then_some(at);
        }
        // Two calls may have one index. The newer one is not complete yet. A piece without an id and a name begins no call: some
        // servers count the pieces.
        let newest = self.slots.len().checked_sub(1);
        let at = match index {
            Some(_) => last(&same_index).or(newest.filter(|_| id.is_empty() && name.is_empty()))?,
            None => newest?,
        };
        (!self.slots[at].is_followed_by(id, index, name)).then_some(at)
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
    fn calls_at_once_under_one_id() {
        let null = Value::Null;
        check(
            &[
                piece(json!(0), json!("a"), json!("run"), json!("{")),
                piece(json!(1), json!("a"), json!("run"), json!("{\"x\"")),
                piece(json!(0), json!("a"), null.clone(), json!("}")),
                piece(json!(1), json!("a"), null.clone(), json!(":1}")),
            ],
            &[("a", "run", "{}"), ("a", "run", "{\"x\":1}")],
        );
        // A piece without a name belongs to the call with its id, whatever its index is.
        check(
            &[
                piece(json!(0), json!("a"), json!("run"), json!("{")),
                piece(json!(1), json!("a"), null, json!("}")),
            ],
            &[("a", "run", "{}")],
        );
    }

    #[test]
    fn a_name_in_pieces() {
        let null = Value::Null;
        check(
            &[
                piece(json!(0), json!("a"), json!("run_"), null.clone()),
                piece(json!(0), null.clone(), json!("shell"), json!("")),
                piece(json!(0), null.clone(), json!("_command"), json!("{")),
                piece(json!(0), null.clone(), null.clone(), json!("}")),
                piece(json!(1), json!("b"), json!("read"), json!("{}")),
            ],
            &[("a", "run_shell_command", "{}"), ("b", "read", "{}")],
        );
        // The name so far in each piece.
        check(
            &[
                piece(json!(0), json!("a"), json!("run"), null.clone()),
                piece(json!(0), json!("a"), json!("run_shell"), null.clone()),
                piece(json!(0), json!("a"), json!("run_shell"), json!("{}")),
            ],
            &[("a", "run_shell", "{}")],
        );
        let named = |name: &str| json!({"function": {"name": name}});
        check(
            &[named("run"), named("read")],
            &[("", "run", ""), ("", "read", "")],
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
    fn another_index_in_each_piece_of_one_call() {
        let null = Value::Null;
        check(
            &[
                piece(json!(0), json!("a"), json!("run"), json!("{")),
                piece(json!(1), null.clone(), null.clone(), json!("\"x\"")),
                piece(json!(2), null.clone(), json!(""), json!(":1}")),
                piece(json!(3), json!("b"), json!("read"), json!("{}")),
            ],
            &[("a", "run", "{\"x\":1}"), ("b", "read", "{}")],
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
            // The answer reads them as one.
            &[("a", "run", "{\"x\":1}{\"x\":1}")],
        );
    }
}
