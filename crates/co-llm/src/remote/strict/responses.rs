//! OpenAI's Responses. (developers.openai.com: Responses, Reasoning, Images and vision; AnswerDotAI/fastllm issue 45)

use std::collections::HashSet;

use serde_json::Value;

use super::images;
use super::{
    Checked, chat_completions::OPENAI, check_arguments, check_name, check_new, is_word, list,
    require, string, text,
};

/// Checks a request. `alternates` is true for local servers, which put the items into a chat template.
pub(super) fn check(body: &Value, tools: &[&str], alternates: bool) -> Checked {
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut pictures = Vec::new();
    let mut before = "";
    for item in list(&body["input"], "input")? {
        let kind = string(&item["type"], "type")?;
        let kind = item["role"].as_str().unwrap_or(kind);
        let after_output = before == "function_call_output";
        require(
            before != "reasoning" || matches!(kind, "reasoning" | "assistant" | "function_call"),
            || format!("reasoning was provided without its required following item, but {kind}"),
        )?;
        match kind {
            "user" => {
                require(open.is_empty(), || {
                    format!("No tool output found for {open:?}")
                })?;
                require(!alternates || (before != "user" && !after_output), || {
                    format!("'user' after '{before}'")
                })?;
                for part in list(&item["content"], "content")? {
                    if part["type"] == "input_image" {
                        let url = string(&part["image_url"], "image_url")?;
                        let data = url.strip_prefix("data:");
                        let data = data.and_then(|it| it.split_once(";base64,"));
                        pictures.push(data.ok_or("no data URL")?);
                    } else {
                        require(part["type"] == "input_text", || part.to_string())?;
                        text(&part["text"], "text")?;
                    }
                }
            }
            "assistant" => {
                for part in list(&item["content"], "content")? {
                    require(part["type"] == "output_text", || part.to_string())?;
                    text(&part["text"], "text")?;
                }
            }
            "reasoning" => {
                text(&item["encrypted_content"], "encrypted_content")?;
                require(item["summary"].is_array(), || "summary".into())?;
            }
            "function_call" => {
                let id = string(&item["call_id"], "call_id")?;
                require(is_word(id, 64), || format!("Invalid call_id: {id:?}"))?;
                check_new(&mut ids, id)?;
                check_name(&item["name"], tools)?;
                check_arguments(&item["arguments"])?;
                open.push(id);
            }
            "function_call_output" => {
                let id = string(&item["call_id"], "call_id")?;
                let at = open.iter().position(|it| *it == id);
                let at = at.ok_or_else(|| format!("No tool call found for {id}"))?;
                open.remove(at);
                text(&item["output"], "output")?;
            }
            other => return Err(format!("unexpected item {other}")),
        }
        require(!before.is_empty() || kind == "user", || {
            format!("begins with {kind}")
        })?;
        before = kind;
    }
    require(open.is_empty(), || {
        format!("No tool output found for {open:?}")
    })?;
    require(matches!(before, "user" | "function_call_output"), || {
        format!("ends with {before}")
    })?;
    images::check(&OPENAI.images, &pictures)
}
