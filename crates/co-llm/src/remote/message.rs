//! Items to the messages of a request.
//!
//! Repairs what it is given first, so that no provider ever sees a call without its result.

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

/// What a model is told where its own words would be the last of the request: most refuse that.
const GO_ON: &str = "Go on from where you stopped.";
/// Stands for the answer to a prompt that got none.
const NO_ANSWER: &str = "(no answer)";
const BEGIN: &str = "(The conversation goes on.)";

/// Returns the request as `genai` takes it.
///
/// A message depends on its items alone, never on what follows them: each request of a chat begins with the bytes of the
/// one before it, and the provider's cache serves that part.
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

/// Returns the signature as it is kept: with whose it is, since nobody else takes it.
pub(super) fn keep_signature(provider: &ProviderInfo, signature: &str) -> String {
    format!("{}:{signature}", provider.name)
}

/// Returns a kept signature as its provider sent it; none if it is another provider's.
fn own_signature<'a>(provider: &ProviderInfo, kept: Option<&'a str>) -> Option<&'a str> {
    kept?.strip_prefix(provider.name)?.strip_prefix(':')
}

fn tool(spec: &ToolSpec) -> Tool {
    Tool::new(spec.name.as_str())
        .with_description(spec.description.as_str())
        .with_schema(spec.schema.clone())
}

/// Collects items that go into one message.
struct MessageWriter<'a> {
    info: &'a RequestInfo,
    /// No tools are offered: calls of the past are told as text, since some refuse them otherwise.
    plain: bool,
    /// Calls that are told as text for another reason; so is what they came to.
    retold: HashSet<String>,
    messages: Vec<ChatMessage>,
    user: Vec<String>,
    /// The last item was a summary: the end of its turn says nothing about an answer.
    summed_up: bool,
    thoughts: Vec<ContentPart>,
    said: Vec<ContentPart>,
    responses: Vec<ToolResponse>,
    names: HashMap<String, String>,
}

impl<'a> MessageWriter<'a> {
    fn new(info: &'a RequestInfo, plain: bool) -> Self {
        Self {
            info,
            plain,
            retold: HashSet::new(),
            messages: Vec::new(),
            user: Vec::new(),
            summed_up: false,
            thoughts: Vec::new(),
            said: Vec::new(),
            responses: Vec::new(),
            names: HashMap::new(),
        }
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::User { text, context } => self.user_says(with_context(text, &context)),
            Item::Summary { text, .. } => {
                self.user_says(format!(
                    "What happened before this point, in short:\n\n{text}"
                ));
                self.summed_up = true;
            }
            Item::Text { text } => {
                self.model_speaks();
                if !text.trim().is_empty() {
                    self.said.push(ContentPart::Text(text));
                }
            }
            Item::Reasoning { text, signature } => {
                self.model_speaks();
                self.reasoning(text, signature.as_deref());
            }
            Item::Call(call) => {
                self.model_speaks();
                self.call(call);
            }
            Item::Outcome(outcome) => self.outcome(outcome),
            Item::JobEnded {
                text, told: false, ..
            }
            | Item::Note { text, .. } => self.user_says(format!("[{text}]")),
            Item::JobStarted { .. } | Item::JobEnded { .. } => {}
            Item::End { .. } => self.end_turn(),
            Item::Decision { .. } | Item::Notice { .. } | Item::Unknown => {}
            Item::Surroundings(_) | Item::Retried | Item::Shortened { .. } => {}
        }
    }

    /// A prompt without an answer stays a message of its own: joined with the next one, it would not be the bytes that
    /// were sent.
    fn end_turn(&mut self) {
        if !self.user.is_empty() && !self.summed_up {
            self.end_user();
            self.messages.push(ChatMessage::assistant(NO_ANSWER));
        }
    }

    fn user_says(&mut self, text: String) {
        self.end_model();
        self.end_responses();
        self.summed_up = false;
        self.user.push(text);
    }

    fn model_speaks(&mut self) {
        self.end_responses();
        self.end_user();
    }

    fn reasoning(&mut self, text: String, signature: Option<&str>) {
        let signature = own_signature(self.info.provider, signature);
        match (self.info.provider.protocol, signature) {
            (Protocol::Anthropic, Some(block)) if text.is_empty() && block.starts_with('{') => {
                if let Ok(data) = serde_json::from_str(block) {
                    self.thoughts.push(ContentPart::Custom(CustomPart {
                        model_iden: None,
                        data,
                    }));
                }
            }
            // Without its signature it is refused.
            (Protocol::Anthropic, Some(signature)) => {
                self.thoughts
                    .push(ContentPart::ThoughtSignature(signature.to_owned()));
                self.thoughts.push(ContentPart::ReasoningContent(text));
            }
            (Protocol::Responses, Some(signature)) => {
                self.thoughts
                    .push(ContentPart::ThoughtSignature(signature.to_owned()));
            }
            // It belongs to the part that follows it.
            (Protocol::Gemini, Some(signature)) => {
                self.said
                    .push(ContentPart::ThoughtSignature(signature.to_owned()));
            }
            // Compatible servers want it back with the calls it led to, OpenAI itself does not know it.
            (Protocol::OpenAi, _) if !self.info.own && !text.is_empty() => {
                self.thoughts.push(ContentPart::ReasoningContent(text));
            }
            _ => {}
        }
    }

    fn call(&mut self, call: Call) {
        if self.plain {
            self.said.push(as_text(&call.name, &call.arguments));
            self.names.insert(call.id, call.name);
            return;
        }
        let id = self.id(&call.id);
        self.names.insert(call.id, call.name.clone());
        let signature = own_signature(self.info.provider, call.signature.as_deref());
        self.said.push(ContentPart::ToolCall(ToolCall {
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
        if self.plain || self.retold.contains(&id) {
            self.user
                .push(format!("[what {name} came to]\n{}", outcome.text));
            return;
        }
        self.responses
            .push(ToolResponse::new(id, outcome.text).with_fn_name(name));
        // The Ollama adapter takes one result a message; the others want those of a step together.
        if self.info.provider.protocol == Protocol::Ollama {
            self.end_responses();
        }
    }

    /// Gemini makes ids that the others refuse.
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
        let mut said = std::mem::take(&mut self.said);
        if self.info.thinking && self.thoughts.is_empty() {
            self.retell(&mut said);
        }
        let mut parts = std::mem::take(&mut self.thoughts);
        let calls = |part: &ContentPart| matches!(part, ContentPart::ToolCall(_));
        if self.info.provider.protocol == Protocol::OpenAi && !said.iter().any(calls) {
            parts.clear();
        }
        let speaks = said
            .iter()
            .any(|part| matches!(part, ContentPart::Text(_) | ContentPart::ToolCall(_)));
        // Thoughts that led to nothing are refused by those who want them back.
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

    /// Tells calls as text: made by another model, they have no thought that this one would take back.
    fn retell(&mut self, said: &mut [ContentPart]) {
        for part in said {
            if let ContentPart::ToolCall(call) = part {
                self.retold.insert(call.call_id.clone());
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
