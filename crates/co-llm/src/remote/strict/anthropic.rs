//! Anthropic's Messages. (platform.claude.com: Messages, Tool use, Extended thinking, Vision)

use std::collections::HashSet;

use serde_json::Value;

use super::images::{self, ALL, ImageRules};
use super::{Checked, check_name, check_new, is_word, list, require, string, text};

const IMAGES: ImageRules = ImageRules {
    types: ALL,
    length: 5 * 1024 * 1024,
    side: 8_000,
    pixels: 0,
    number: 100,
    total: 32_000_000,
};

/// Checks a request. `alternates` is true for servers that refuse two messages of the same role in a row.
pub(super) fn check(body: &Value, tools: &[&str], alternates: bool) -> Checked {
    let thinking = body["thinking"]["type"] == "enabled";
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut pictures = Vec::new();
    let mut before = "";
    for message in list(&body["messages"], "messages")? {
        let role = string(&message["role"], "role")?;
        require(role == "user" || role == "assistant", || role.to_owned())?;
        require(!before.is_empty() || role == "user", || {
            "first message must use the user role".into()
        })?;
        require(!(alternates && role == before), || {
            format!("roles must alternate, found {role} twice")
        })?;
        require(role == "user" || before == "user", || {
            "two assistant messages would be joined".into()
        })?;
        before = role;
        if message["content"].is_string() {
            text(&message["content"], "content")?;
            require(open.is_empty(), || format!("no tool_result for {open:?}"))?;
            continue;
        }
        let blocks = list(&message["content"], "content")?;
        if role == "assistant" {
            require(open.is_empty(), || format!("no tool_result for {open:?}"))?;
            open = assistant(blocks, tools, thinking, &mut ids)?;
        } else {
            person(blocks, &mut open, &mut pictures)?;
        }
    }
    require(before == "user", || "must end with a user message".into())?;
    let many = ImageRules {
        side: if pictures.len() > 20 {
            2_000
        } else {
            IMAGES.side
        },
        ..IMAGES
    };
    images::check(&many, &pictures)
}

fn assistant<'a>(
    blocks: &'a [Value],
    tools: &[&str],
    thinking: bool,
    ids: &mut HashSet<String>,
) -> Result<Vec<&'a str>, String> {
    let mut calls = Vec::new();
    for block in blocks {
        match string(&block["type"], "type")? {
            "text" => {
                text(&block["text"], "text")?;
            }
            "thinking" => {
                string(&block["thinking"], "thinking")?;
                check_signature(&block["signature"])?;
            }
            "redacted_thinking" => check_signature(&block["data"])?,
            "tool_use" => {
                let id = string(&block["id"], "id")?;
                require(is_word(id, 64), || {
                    format!("id {id:?} does not match '^[a-zA-Z0-9_-]+$'")
                })?;
                check_new(ids, id)?;
                check_name(&block["name"], tools)?;
                require(block["input"].is_object(), || "input".into())?;
                calls.push(id);
            }
            other => return Err(format!("unexpected block {other}")),
        }
    }
    let is_thought = |block: &Value| {
        matches!(
            block["type"].as_str(),
            Some("thinking" | "redacted_thinking")
        )
    };
    require(!blocks.last().is_some_and(is_thought), || {
        "the final block in an assistant message cannot be thinking".into()
    })?;
    require(
        !thinking || calls.is_empty() || is_thought(&blocks[0]),
        || "expected thinking, but found tool_use".into(),
    )?;
    Ok(calls)
}

/// Checks that the model of the request made the thought with this signature. (vybestack/llxprt-code issue 2335,
/// anthropics/anthropic-sdk-python issue 1598)
fn check_signature(signature: &Value) -> Checked {
    require(signature == "c2ln", || {
        format!("Invalid `signature` in `thinking` block: {signature}")
    })
}

fn person<'a>(
    blocks: &'a [Value],
    open: &mut Vec<&'a str>,
    pictures: &mut Vec<(&'a str, &'a str)>,
) -> Checked {
    for block in blocks {
        match string(&block["type"], "type")? {
            "tool_result" => {
                let id = string(&block["tool_use_id"], "tool_use_id")?;
                let at = open.iter().position(|it| *it == id);
                let at = at.ok_or_else(|| format!("unexpected tool_use_id {id}"))?;
                open.remove(at);
                text(&block["content"], "content")?;
            }
            "text" => {
                text(&block["text"], "text")?;
                require(open.is_empty(), || "tool_result must come first".into())?;
            }
            "image" => {
                require(open.is_empty(), || "tool_result must come first".into())?;
                let source = &block["source"];
                let kind = string(&source["media_type"], "media_type")?;
                pictures.push((kind, string(&source["data"], "data")?));
            }
            other => return Err(format!("unexpected block {other}")),
        }
    }
    require(open.is_empty(), || format!("no tool_result for {open:?}"))
}
