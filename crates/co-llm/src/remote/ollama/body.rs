//! The body of a request to Ollama's `/api/chat`.

use genai::chat::{ChatMessage, ChatRequest, ChatRole, ContentPart, Tool};
use serde_json::{Map, Value, json};

/// Returns the body of a request, without the fields that the person adds.
pub(in crate::remote) fn body(
    model: &str,
    chat: ChatRequest,
    window: u64,
    answer: Option<u32>,
) -> Value {
    let mut options = Map::new();
    options.insert("num_ctx".to_owned(), window.into());
    if let Some(tokens) = answer {
        options.insert("num_predict".to_owned(), tokens.into());
    }
    let system = chat
        .system
        .map(|system| json!({ "role": "system", "content": system }));
    let messages = chat.messages.into_iter().map(message);
    let messages: Vec<_> = system.into_iter().chain(messages).collect();
    let mut body = json!({ "model": model, "stream": true, "options": options });
    if let Some(tools) = chat.tools.filter(|tools| !tools.is_empty()) {
        body["tools"] = tools.into_iter().map(tool).collect();
    }
    body["messages"] = messages.into();
    body
}

fn message(message: ChatMessage) -> Value {
    let role = match message.role {
        ChatRole::System => "system",
        ChatRole::User => "user",
        ChatRole::Assistant => "assistant",
        ChatRole::Tool => "tool",
    };
    let mut content = String::new();
    let mut calls = Vec::new();
    let mut name = None;
    for part in message.content {
        match part {
            ContentPart::Text(text) => content.push_str(&text),
            ContentPart::ToolCall(call) => calls.push(json!({
                "function": { "name": call.fn_name, "arguments": call.fn_arguments },
            })),
            ContentPart::ToolResponse(response) => {
                content.push_str(&response.content);
                name = response.fn_name;
            }
            // Ollama wants no reasoning back.
            _ => {}
        }
    }
    let mut told = json!({ "role": role, "content": content });
    if !calls.is_empty() {
        told["tool_calls"] = calls.into();
    }
    if let Some(name) = name {
        told["tool_name"] = name.into();
    }
    told
}

fn tool(tool: Tool) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name.to_string(),
            "description": tool.description,
            "parameters": tool.schema,
        },
    })
}
