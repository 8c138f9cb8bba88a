//! OpenAI's chat completions, and the stricter rules of other servers with this protocol.

use std::collections::HashSet;

use serde_json::Value;

use super::images::{self, ALL, ImageRules};
use super::{
    Checked, check_arguments, check_name, check_new, is_word, list, require, string, text,
};

/// The rules of one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChatRules {
    /// True if the server refuses two messages of the person in a row, and a message of the person directly after a result.
    /// (mistralai/mistral-common; the chat templates of Mistral, Gemma and Llama 2)
    pub(super) alternates: bool,
    /// True if an id must have exactly nine letters and digits. (mistralai/mistral-common)
    pub(super) nine: bool,
    /// True if the server refuses reasoning. (docs of Groq and Mistral)
    pub(super) no_reasoning: bool,
    /// True if calls must come with `reasoning_content`. (api-docs.deepseek.com)
    pub(super) reasoning: bool,
    pub(super) images: ImageRules,
}

/// OpenAI's own rules. (developers.openai.com: Chat completions, Images and vision)
pub(super) const OPENAI: ChatRules = ChatRules {
    alternates: false,
    nine: false,
    no_reasoning: true,
    reasoning: false,
    images: ImageRules {
        types: ALL,
        length: 0,
        side: 0,
        pixels: 0,
        number: 500,
        total: 50 * 1024 * 1024,
    },
};

/// The rules of a server with a strict chat template.
pub(super) const TEMPLATE: ChatRules = ChatRules {
    alternates: true,
    no_reasoning: false,
    ..OPENAI
};

/// The rules of Mistral. (docs.mistral.ai: Vision)
pub(super) const MISTRAL: ChatRules = ChatRules {
    nine: true,
    no_reasoning: true,
    images: ImageRules {
        length: 10 * 1024 * 1024,
        side: 10_000,
        number: 8,
        ..OPENAI.images
    },
    ..TEMPLATE
};

/// The rules of Groq. (console.groq.com: Images and Vision)
pub(super) const GROQ: ChatRules = ChatRules {
    no_reasoning: true,
    images: ImageRules {
        pixels: 33_177_600,
        number: 5,
        total: 4_000_000,
        ..OPENAI.images
    },
    ..TEMPLATE
};

/// The rules of xAI. (docs.x.ai: Image understanding)
pub(super) const XAI: ChatRules = ChatRules {
    no_reasoning: false,
    images: ImageRules {
        types: &["image/png", "image/jpeg"],
        length: 20 * 1024 * 1024,
        ..OPENAI.images
    },
    ..OPENAI
};

pub(super) const DEEPSEEK: ChatRules = ChatRules {
    reasoning: true,
    ..TEMPLATE
};

/// The rules of Claude behind a gateway. (platform.claude.com: Vision)
pub(super) const CLAUDE: ChatRules = ChatRules {
    images: ImageRules {
        length: 5 * 1024 * 1024,
        side: 8_000,
        number: 100,
        ..OPENAI.images
    },
    ..TEMPLATE
};

pub(super) fn check(body: &Value, tools: &[&str], rules: &ChatRules) -> Checked {
    let messages = list(&body["messages"], "messages")?;
    let (system, rest) = messages.split_first().ok_or("no messages")?;
    require(system["role"] == "system", || "no system message".into())?;
    content(&system["content"], &mut Vec::new())?;
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut pictures = Vec::new();
    let mut before = "system";
    for message in rest {
        let role = string(&message["role"], "role")?;
        require(role == "tool" || open.is_empty(), || {
            format!("tool_call_ids did not have response messages: {open:?}")
        })?;
        let expected = match (before, role) {
            ("system", role) => role == "user",
            ("user" | "tool", "user") => !rules.alternates,
            ("assistant", "assistant") => false,
            _ => true,
        };
        require(expected, || {
            format!("Unexpected role '{role}' after role '{before}'")
        })?;
        match role {
            "user" => content(&message["content"], &mut pictures)?,
            "assistant" => open = assistant(message, tools, rules, &mut ids)?,
            "tool" => {
                content(&message["content"], &mut Vec::new())?;
                let id = string(&message["tool_call_id"], "tool_call_id")?;
                let at = open.iter().position(|it| *it == id);
                let at = at.ok_or_else(|| format!("unexpected tool_call_id {id}"))?;
                open.remove(at);
            }
            other => return Err(format!("role {other}")),
        }
        before = role;
    }
    require(open.is_empty(), || format!("no results for {open:?}"))?;
    require(before == "user" || before == "tool", || {
        format!("Expected last role User or Tool but got {before}")
    })?;
    images::check(&rules.images, &pictures)
}

fn assistant<'a>(
    message: &'a Value,
    tools: &[&str],
    rules: &ChatRules,
    ids: &mut HashSet<String>,
) -> Result<Vec<&'a str>, String> {
    let calls = match &message["tool_calls"] {
        Value::Null => &[],
        calls => list(calls, "tool_calls")?,
    };
    if !message["content"].is_null() || calls.is_empty() {
        text(&message["content"], "content of an assistant message")?;
    }
    let reasoning = &message["reasoning_content"];
    let has_reasoning = !reasoning.is_null() || !message["reasoning_details"].is_null();
    require(!(rules.no_reasoning && has_reasoning), || {
        "reasoning_content is unsupported".into()
    })?;
    require(
        !rules.reasoning || calls.is_empty() || reasoning.is_string(),
        || "reasoning_content must be passed back".into(),
    )?;
    let mut open = Vec::new();
    for call in calls {
        let id = string(&call["id"], "id")?;
        let form = match rules.nine {
            true => id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()),
            false => is_word(id, 40),
        };
        require(form, || format!("Tool call id was {id:?}"))?;
        check_new(ids, id)?;
        require(call["type"] == "function", || "type".into())?;
        check_name(&call["function"]["name"], tools)?;
        check_arguments(&call["function"]["arguments"])?;
        open.push(id);
    }
    Ok(open)
}

/// Checks the content of a message: a text, or a list of parts.
fn content<'a>(content: &'a Value, pictures: &mut Vec<(&'a str, &'a str)>) -> Checked {
    if content.is_string() {
        text(content, "content")?;
        return Ok(());
    }
    for part in list(content, "content")? {
        match string(&part["type"], "type")? {
            "text" => {
                text(&part["text"], "text")?;
            }
            "image_url" => {
                let url = string(&part["image_url"]["url"], "url")?;
                let data = url
                    .strip_prefix("data:")
                    .and_then(|it| it.split_once(";base64,"));
                pictures.push(data.ok_or("no data URL")?);
            }
            other => return Err(format!("unexpected part {other}")),
        }
    }
    Ok(())
}
