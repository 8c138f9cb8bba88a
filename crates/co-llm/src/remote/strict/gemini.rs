//! Google's Gemini. (ai.google.dev: Function calling, Thought signatures; docs.cloud.google.com: Image understanding)

use serde_json::Value;

use super::images::{self, ImageRules};
use super::{Checked, check_name, list, require, string};

const IMAGES: ImageRules = ImageRules {
    types: &[
        "image/png",
        "image/jpeg",
        "image/webp",
        "image/heic",
        "image/heif",
    ],
    length: 0,
    side: 0,
    pixels: 0,
    number: 3_000,
    total: 20_000_000,
};

/// Checks a request to a model that requires a signature at the first call of each step.
pub(super) fn check(body: &Value, tools: &[&str]) -> Checked {
    let mut calls: Vec<&Value> = Vec::new();
    let mut pictures = Vec::new();
    let mut before = "";
    for content in list(&body["contents"], "contents")? {
        let role = string(&content["role"], "role")?;
        let parts = list(&content["parts"], "parts")?;
        require(!before.is_empty() || role == "user", || {
            "begins with a model turn".into()
        })?;
        require(!(role == "model" && before == "model"), || {
            "function call turn must come after a user turn or a function response turn".into()
        })?;
        before = role;
        let responses = parts.iter().filter(|it| it["functionResponse"].is_object());
        let responses: Vec<&Value> = responses.map(|it| &it["functionResponse"]).collect();
        if !calls.is_empty() || !responses.is_empty() {
            let numbers = (responses.len(), parts.len());
            require(
                role == "user" && numbers == (calls.len(), calls.len()),
                || "the number of function response parts must equal that of the call parts".into(),
            )?;
            for (call, response) in calls.iter().zip(&responses) {
                require(call["name"] == response["name"], || "name".into())?;
                require(call["id"] == response["id"], || "id".into())?;
                require(response["response"].is_object(), || "response".into())?;
            }
            calls.clear();
            continue;
        }
        for part in parts {
            if let Some(data) = part.get("inlineData") {
                let kind = string(&data["mimeType"], "mimeType")?;
                pictures.push((kind, string(&data["data"], "data")?));
            } else if let Some(call) = part.get("functionCall") {
                require(role == "model", || "a call of the person".into())?;
                require(
                    !calls.is_empty() || part["thoughtSignature"].is_string(),
                    || "Function call is missing a thought_signature".into(),
                )?;
                check_name(&call["name"], tools)?;
                require(call["args"].is_object(), || "args".into())?;
                require(
                    call["id"]
                        .as_str()
                        .is_none_or(|id| id.chars().count() <= 64),
                    || "id".into(),
                )?;
                calls.push(call);
            } else {
                let text = string(&part["text"], "text")?;
                let signed = part["thoughtSignature"].is_string();
                require(signed || !text.trim().is_empty(), || {
                    "contents.parts must not be empty".into()
                })?;
            }
        }
    }
    require(calls.is_empty(), || "no function response".into())?;
    require(before == "user", || "must end with a user role".into())?;
    images::check(&IMAGES, &pictures)
}
