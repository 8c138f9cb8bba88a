//! Ollama's own API. (ollama/ollama: `docs/api.md`, Tool calling)

use serde_json::Value;

use super::images;
use super::{Checked, chat_completions::OPENAI, check_name, list, require, string, text};

pub(super) fn check(body: &Value, tools: &[&str]) -> Checked {
    let mut open: Vec<&str> = Vec::new();
    let mut pictures = Vec::new();
    let mut before = "";
    for message in list(&body["messages"], "messages")? {
        let role = string(&message["role"], "role")?;
        require(role == "tool" || open.is_empty(), || {
            format!("no result for {open:?}")
        })?;
        match role {
            "system" | "user" => {
                text(&message["content"], "content")?;
                for image in message["images"].as_array().into_iter().flatten() {
                    pictures.push(("image/png", string(image, "image")?));
                }
            }
            "assistant" => {
                let calls = message["tool_calls"].as_array();
                if calls.is_none() {
                    text(&message["content"], "content")?;
                }
                string(&message["content"], "content")?;
                for call in calls.into_iter().flatten() {
                    let function = &call["function"];
                    check_name(&function["name"], tools)?;
                    require(function["arguments"].is_object(), || "arguments".into())?;
                    open.push(string(&function["name"], "name")?);
                }
            }
            "tool" => {
                text(&message["content"], "content")?;
                let name = string(&message["tool_name"], "tool_name")?;
                require(open.first() == Some(&name), || {
                    format!("a result of {name}")
                })?;
                open.remove(0);
            }
            other => return Err(format!("role {other}")),
        }
        before = role;
    }
    require(open.is_empty(), || format!("no result for {open:?}"))?;
    require(before == "user" || before == "tool", || {
        format!("ends with {before}")
    })?;
    images::check(&OPENAI.images, &pictures)
}
