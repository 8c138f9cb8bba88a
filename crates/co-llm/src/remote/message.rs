//! Turns the items of a chat into the messages of a request.
//!
//! It repairs the items first, so that no provider is sent a call without its result.

use std::collections::{HashMap, HashSet};

use genai::chat::{
    ChatMessage, ChatRequest, ChatRole, ContentPart, CustomPart, MessageContent, Tool, ToolCall,
    ToolResponse,
};

use serde_json::Value;

use super::request_info::RequestInfo;
use crate::provider_table::{Protocol, ProviderInfo};
use crate::request::{ModelRequest, ToolSpec};
use crate::transcript::{self, Call, Context, Item, Outcome};

/// The last message of a request that would end with the model's own text. Most providers refuse that.
const GO_ON: &str = "Go on from where you stopped.";
/// The answer in the request to a prompt that got none.
const NO_ANSWER: &str = "(no answer)";
/// The first message of a request that would begin with the model's own text.
const BEGIN: &str = "(The conversation goes on.)";

/// Returns the request as `genai` takes it.
///
/// A message depends on its own items only, not on later ones. So each request of a chat begins with the bytes of the one
/// before it, and the provider can serve that part from its cache.
pub(super) fn chat(info: &RequestInfo, request: &ModelRequest) -> ChatRequest {
    let (items, _) = transcript::repair(transcript::view(&request.items));
    let mut writer = MessageWriter::new(info, request.tools.is_empty());
    for item in items {
        writer.item(item);
    }
    let mut chat = ChatRequest::default()
        .with_system(request.system.as_str())
        .append_messages(writer.finish());
    if !request.tools.is_empty() {
        chat = chat.with_tools(request.tools.iter().map(tool));
    }
    chat
}

/// Returns the signature with the name of its provider, as a transcript keeps it.
pub(super) fn keep_signature(provider: &ProviderInfo, signature: &str) -> String {
    format!("{}:{signature}", provider.name)
}

/// Returns a kept signature as its provider sent it; none if another provider made it.
fn own_signature<'a>(provider: &ProviderInfo, kept: Option<&'a str>) -> Option<&'a str> {
    kept?.strip_prefix(provider.name)?.strip_prefix(':')
}

fn tool(spec: &ToolSpec) -> Tool {
    Tool::new(spec.name.as_str())
        .with_description(spec.description.as_str())
        .with_schema(spec.schema.clone())
}

/// Collects items into messages.
struct MessageWriter<'a> {
    info: &'a RequestInfo,
    /// True if the request offers no tools. Earlier calls become text, since some providers refuse them otherwise.
    calls_as_text: bool,
    /// Ids of other calls that become text. Their results become text too.
    text_calls: HashSet<String>,
    messages: Vec<ChatMessage>,
    user: Vec<String>,
    /// True directly after a summary. The end of that turn does not mean a missing answer.
    after_summary: bool,
    reasoning_parts: Vec<ContentPart>,
    parts: Vec<ContentPart>,
    responses: Vec<ToolResponse>,
    names: HashMap<String, String>,
}

impl<'a> MessageWriter<'a> {
    fn new(info: &'a RequestInfo, calls_as_text: bool) -> Self {
        Self {
            info,
            calls_as_text,
            text_calls: HashSet::new(),
            messages: Vec::new(),
            user: Vec::new(),
            after_summary: false,
            reasoning_parts: Vec::new(),
            parts: Vec::new(),
            responses: Vec::new(),
            names: HashMap::new(),
        }
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::User { text, context } => self.add_user(with_context(text, &context)),
            Item::Summary { text, .. } => {
                self.add_user(format!(
                    "What happened before this point, in short:\n\n{text}"
                ));
                self.after_summary = true;
            }
            Item::Text { text } => {
                self.start_model();
                if !text.trim().is_empty() {
                    self.parts.push(ContentPart::Text(text));
                }
            }
            Item::Reasoning { text, signature } => {
                self.start_model();
                self.reasoning(text, signature.as_deref());
            }
            Item::Call(call) => {
                self.start_model();
                self.call(call);
            }
            Item::Outcome(outcome) => self.outcome(outcome),
            Item::JobEnded {
                text, told: false, ..
            }
            | Item::Note { text, .. } => self.add_user(format!("[{text}]")),
            Item::JobStarted { .. } | Item::JobEnded { .. } => {}
            Item::End { .. } => self.end_turn(),
            Item::Decision { .. } | Item::Notice { .. } | Item::Unknown => {}
            Item::Surroundings(_) | Item::Retried | Item::Shortened { .. } => {}
        }
    }

    /// Adds an answer to a prompt that got none. Joined with the next prompt, its bytes would differ from those sent before.
    fn end_turn(&mut self) {
        if !self.user.is_empty() && !self.after_summary {
            self.end_user();
            self.messages.push(ChatMessage::assistant(NO_ANSWER));
        }
    }

    fn add_user(&mut self, text: String) {
        self.end_model();
        self.end_responses();
        self.after_summary = false;
        self.user.push(text);
    }

    fn start_model(&mut self) {
        self.end_responses();
        self.end_user();
    }

    fn reasoning(&mut self, text: String, signature: Option<&str>) {
        let signature = own_signature(self.info.provider, signature);
        match (self.info.provider.protocol, signature) {
            (Protocol::Anthropic, Some(block)) if text.is_empty() && block.starts_with('{') => {
                if let Ok(data) = serde_json::from_str(block) {
                    self.reasoning_parts.push(ContentPart::Custom(CustomPart {
                        model_iden: None,
                        data,
                    }));
                }
            }
            // Anthropic refuses reasoning without its signature.
            (Protocol::Anthropic, Some(signature)) => {
                self.reasoning_parts
                    .push(ContentPart::ThoughtSignature(signature.to_owned()));
                self.reasoning_parts
                    .push(ContentPart::ReasoningContent(text));
            }
            (Protocol::Responses, Some(signature)) => {
                self.reasoning_parts
                    .push(ContentPart::ThoughtSignature(signature.to_owned()));
            }
            // Gemini's signature belongs to the part after it.
            (Protocol::Gemini, Some(signature)) => {
                self.parts
                    .push(ContentPart::ThoughtSignature(signature.to_owned()));
            }
            // Compatible servers want reasoning back with its calls. OpenAI itself does not know the field.
            (Protocol::OpenAi, _) if !self.info.own && !text.is_empty() => {
                self.reasoning_parts
                    .push(ContentPart::ReasoningContent(text));
            }
            _ => {}
        }
    }

    fn call(&mut self, call: Call) {
        if self.calls_as_text {
            self.parts.push(as_text(&call.name, &call.arguments));
            self.names.insert(call.id, call.name);
            return;
        }
        let id = self.id(&call.id);
        self.names.insert(call.id, call.name.clone());
        let signature = own_signature(self.info.provider, call.signature.as_deref());
        self.parts.push(ContentPart::ToolCall(ToolCall {
            call_id: id,
            fn_name: call.name,
            fn_arguments: call.arguments,
            thought_signatures: signature.map(|signature| vec![signature.to_owned()]),
        }));
    }

    fn outcome(&mut self, outcome: Outcome) {
        self.end_model();
        self.end_user();
        let name = self.names.get(&outcome.call).cloned().unwrap_or_default();
        let id = self.id(&outcome.call);
        if self.calls_as_text || self.text_calls.contains(&id) {
            self.user
                .push(format!("[what {name} came to]\n{}", outcome.text));
            return;
        }
        self.responses
            .push(ToolResponse::new(id, outcome.text).with_fn_name(name));
        // Ollama takes one result per message. The others want all results of a step together.
        if self.info.provider.protocol == Protocol::Ollama {
            self.end_responses();
        }
    }

    /// Returns an id that the provider accepts. Other providers refuse some of Gemini's ids.
    fn id(&self, id: &str) -> String {
        if self.info.provider.protocol == Protocol::Gemini {
            return id.to_owned();
        }
        id.chars()
            .map(|c| match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
                _ => '_',
            })
            .collect()
    }

    fn end_user(&mut self) {
        if !self.user.is_empty() {
            let text = std::mem::take(&mut self.user).join("\n\n");
            self.messages.push(ChatMessage::user(text));
        }
    }

    fn end_model(&mut self) {
        let mut said = std::mem::take(&mut self.parts);
        if self.info.thinking && self.reasoning_parts.is_empty() {
            self.calls_to_text(&mut said);
        }
        let mut parts = std::mem::take(&mut self.reasoning_parts);
        let calls = |part: &ContentPart| matches!(part, ContentPart::ToolCall(_));
        if self.info.provider.protocol == Protocol::OpenAi && !said.iter().any(calls) {
            parts.clear();
        }
        let speaks = said
            .iter()
            .any(|part| matches!(part, ContentPart::Text(_) | ContentPart::ToolCall(_)));
        // Providers refuse reasoning without a text or a call after it.
        if !speaks {
            return;
        }
        parts.extend(said);
        if self.messages.is_empty() {
            self.messages.push(ChatMessage::user(BEGIN));
        }
        self.messages
            .push(ChatMessage::assistant(MessageContent::from_parts(parts)));
    }

    /// Turns calls into text. Another model made them, so the reasoning that Anthropic wants with them is missing.
    fn calls_to_text(&mut self, said: &mut [ContentPart]) {
        for part in said {
            if let ContentPart::ToolCall(call) = part {
                self.text_calls.insert(call.call_id.clone());
                *part = as_text(&call.fn_name, &call.fn_arguments);
            }
        }
    }

    fn end_responses(&mut self) {
        let responses = std::mem::take(&mut self.responses);
        if !responses.is_empty() {
            self.messages
                .push(ChatMessage::tool(MessageContent::from_tool_responses(
                    responses,
                )));
        }
    }

    fn finish(mut self) -> Vec<ChatMessage> {
        self.end_model();
        self.end_responses();
        self.end_user();
        let ends_with_model = self
            .messages
            .last()
            .is_none_or(|message| matches!(message.role, ChatRole::Assistant));
        if ends_with_model {
            self.messages.push(ChatMessage::user(GO_ON));
        }
        self.messages
    }
}

fn as_text(name: &str, arguments: &Value) -> ContentPart {
    ContentPart::Text(format!("[used {name} with {arguments}]"))
}

fn with_context(text: String, context: &[Context]) -> String {
    context.iter().fold(text, |told, piece| {
        format!(
            "{told}\n\n<context name=\"{}\">\n{}\n</context>",
            piece.name,
            piece.text.trim_end_matches('\n')
        )
    })
}

#[cfg(test)]
mod tests;
