//! Items of the tests of this crate.

use serde_json::json;

use super::{Call, End, Item, Outcome, Usage};

pub(crate) fn user(text: &str) -> Item {
    Item::user(text)
}

pub(crate) fn said(text: &str) -> Item {
    Item::Text { text: text.into() }
}

pub(crate) fn call(id: &str) -> Item {
    Item::Call(Call::new(id, "run", json!({"cmd": "ls"})))
}

pub(crate) fn outcome(id: &str, text: &str) -> Item {
    Item::Outcome(Outcome::new(id, text, true))
}

pub(crate) fn note(text: &str, once: bool) -> Item {
    Item::Note {
        text: text.into(),
        once,
    }
}

pub(crate) fn summary(text: &str, keep: usize) -> Item {
    Item::Summary {
        text: text.into(),
        keep,
    }
}

pub(crate) fn end() -> Item {
    Item::End {
        reason: End::Done,
        usage: Usage::default(),
    }
}
