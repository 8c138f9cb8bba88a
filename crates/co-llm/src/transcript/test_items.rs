//! Items for the tests of this crate.

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::json;

use super::{Call, End, Image, Item, Outcome, Usage};

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
        explained: false,
    }
}

/// Returns a PNG that has only a header and an end.
pub(crate) fn png(width: u32, height: u32) -> Image {
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let start = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    let end = b"\x08\x02\0\0\0\0\0\0\0\0\0\0\0IEND\xaeB`\x82";
    Image {
        media_type: "image/png".into(),
        data: BASE64_STANDARD.encode([&start[..], &sides, end].concat()),
    }
}
