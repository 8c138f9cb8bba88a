//! Turns the items of a chat into messages that do not depend on a protocol.
//!
//! The messages are in a normal form that each server accepts, whatever the items are. Each call has exactly one result, directly
//! after its step. A call that a server would refuse becomes text. Ids, the order of roles, and images follow the rules of the
//! server ([`rules`]). No text is empty.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::images;
use super::request_info::RequestInfo;
use super::rules::{self, CallIds};
use crate::provider_table::Protocol;
use crate::request::{ModelRequest, ToolSpec};
use crate::server_memory::Adaptation;
use crate::transcript::{self, Call, Context, Image, Item, Outcome};

/// The last message of a request that would otherwise end with the model's own text. Most providers refuse such a request.
const GO_ON: &str = "Go on from where you stopped.";
/// The model's message between two messages of the person, for servers that require one.
const NO_ANSWER: &str = "(no answer)";
/// The text of a result without text. Some servers refuse an empty text.
const NO_OUTPUT: &str = "(no output)";
/// The text of the message that has the images of the results before it.
const RESULT_IMAGES: &str = "[images of the results above]";
/// The text of a prompt without text.
const NO_TEXT: &str = "(no text)";
/// The first message of a request that would otherwise begin with the model's own text.
const BEGIN: &str = "(The conversation goes on.)";

/// The content of a request, in a form that does not depend on a protocol. Each protocol writes it in its own format.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Conversation {
    pub(super) system: String,
    pub(super) messages: Vec<Message>,
    pub(super) tools: Arc<[ToolSpec]>,
    /// True if the model may call tools. False if it must answer with text.
    pub(super) may_call: bool,
    /// A name for the chat that never changes, for the provider's cache.
    pub(super) cache_key: Option<String>,
    /// The images that cannot be sent, among the images of unanswered prompts. Each entry has the name of the image and the
    /// reason.
    pub(super) left_out: Vec<String>,
}

/// One message of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    User {
        text: String,
        images: Vec<Image>,
    },
    Model(Vec<MessagePart>),
    /// The results of the calls in the previous message, in the same order.
    Results(Vec<CallResult>),
}

/// A part of a message of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MessagePart {
    Text(String),
    /// The reasoning of the model. `signature` is as the server sent it, or `None` if another server or model made it.
    Reasoning {
        text: String,
        signature: Option<String>,
    },
    Call(Call),
}

/// The result of one call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallResult {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) text: String,
    pub(super) ok: bool,
}

impl Message {
    /// Returns a message of the person without images.
    fn user(text: impl Into<String>) -> Self {
        Self::User {
            text: text.into(),
            images: Vec::new(),
        }
    }
}

impl Conversation {
    /// Returns the conversation for a request.
    ///
    /// A message depends only on its own items and on earlier ones. So each request of a chat begins with the bytes of the
    /// previous request, and the provider can serve this part from its cache. Only surplus images are an exception: later
    /// requests leave them out.
    pub(super) fn new(info: &RequestInfo, request: &ModelRequest) -> Self {
        let (items, _) = transcript::repair(transcript::view(&request.items));
        let reduced = count_reduced(&items);
        let takes_tools = !info.adaptations.contains(&Adaptation::WithoutTools);
        let tools = match takes_tools {
            true => Arc::clone(&request.tools),
            false => Arc::default(),
        };
        let mut writer = MessageWriter::new(info, &tools);
        writer.must_alternate |= reduced > 0;
        writer.images = choose_images(info, &items[..reduced], &items[reduced..]);
        for (at, item) in items.into_iter().enumerate() {
            writer.reduced = at < reduced;
            writer.item(item);
        }
        writer.finish();
        Self {
            system: request.system.clone(),
            messages: writer.messages,
            left_out: match info.images && !writer.reduced {
                true => writer.left_out,
                false => Vec::new(),
            },
            may_call: request.may_call || tools.is_empty(),
            tools,
            cache_key: request.cache_key.clone(),
        }
    }
}

/// Returns the number of items at the start that are sent in the reduced form ([`Item::Reduced`]). All items of a step have the
/// same form.
fn count_reduced(items: &[Item]) -> usize {
    let is_step = |item: &&Item| {
        matches!(
            item,
            Item::Text { .. } | Item::Reasoning { .. } | Item::Call(_)
        )
    };
    let Some(last) = items.iter().rposition(|item| *item == Item::Reduced) else {
        return 0;
    };
    let mut before = items[..last].iter();
    let in_step = before
        .rfind(|item| **item != Item::Reduced)
        .is_some_and(|item| is_step(&item));
    let rest = items[last + 1..].iter().take_while(is_step);
    last + 1 + if in_step { rest.count() } else { 0 }
}

/// Returns, for each image of the items, the image to send or the reason why it cannot be sent.
fn choose_images(
    info: &RequestInfo,
    reduced: &[Item],
    whole: &[Item],
) -> VecDeque<Result<Image, String>> {
    let refused = images_of(reduced).map(|_| Err("the provider refused a request with it"));
    let images: Vec<&Image> = images_of(whole).collect();
    let chosen = match info.images {
        true => images::choose(info, &images),
        false => vec![Err("you take none".to_owned()); images.len()],
    };
    let refused = refused.map(|it| it.map_err(str::to_owned));
    refused.chain(chosen).collect()
}

/// Returns the images of the prompts and the results.
fn images_of(items: &[Item]) -> impl Iterator<Item = &Image> {
    items.iter().flat_map(|item| {
        let (context, results) = match item {
            Item::User { context, .. } => (context.as_slice(), &[][..]),
            Item::Outcome(outcome) => (&[][..], outcome.images.as_slice()),
            _ => Default::default(),
        };
        let attached = context.iter().filter_map(|piece| piece.image.as_ref());
        attached.chain(results)
    })
}

/// Joins the texts in the parts of a message.
pub(super) fn joined_text(parts: &[MessagePart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        MessagePart::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Builds messages from items.
struct MessageWriter<'a> {
    info: &'a RequestInfo,
    tools: &'a [ToolSpec],
    /// True if two messages of the person must have a message of the model between them.
    must_alternate: bool,
    /// The images of the items that are not written yet. An image that cannot be sent is replaced by the reason.
    images: VecDeque<Result<Image, String>>,
    left_out: Vec<String>,
    /// True while the items are written in the reduced form ([`Item::Reduced`]).
    reduced: bool,
    /// The ids of the calls that are sent as text. Their results are sent as text too.
    text_calls: HashSet<String>,
    messages: Vec<Message>,
    user: Vec<String>,
    user_images: Vec<Image>,
    /// True directly after a summary. The next end of a turn is then the end of the turn that made the summary, so it does not
    /// end the message of the person.
    after_summary: bool,
    parts: Vec<MessagePart>,
    results: Vec<CallResult>,
    /// The images of the results in `results`. They are sent in the next message, because no protocol accepts images inside
    /// results from all models.
    result_images: Vec<Image>,
    names: HashMap<String, String>,
    ids: CallIds,
}

impl<'a> MessageWriter<'a> {
    fn new(info: &'a RequestInfo, tools: &'a [ToolSpec]) -> Self {
        Self {
            info,
            tools,
            reduced: false,
            must_alternate: rules::must_alternate(info),
            images: VecDeque::new(),
            left_out: Vec::new(),
            text_calls: HashSet::new(),
            messages: Vec::new(),
            user: Vec::new(),
            user_images: Vec::new(),
            after_summary: false,
            parts: Vec::new(),
            results: Vec::new(),
            result_images: Vec::new(),
            names: HashMap::new(),
            ids: CallIds::new(info),
        }
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::User { text, context, .. } => {
                let text = context.iter().fold(transcript::told(text), |text, it| {
                    self.with_context(text, it)
                });
                self.add_user(text);
            }
            Item::Summary { text, .. } => {
                self.add_user(format!(
                    "What happened before this point, in short:\n\n{text}"
                ));
                self.after_summary = true;
            }
            Item::Text { text } => {
                self.start_model();
                if !text.trim().is_empty() {
                    self.parts.push(MessagePart::Text(text));
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
            Item::Decision { .. }
            | Item::Notice { .. }
            | Item::Plan { .. }
            | Item::AgentSession { .. }
            | Item::CommandEdited { .. }
            | Item::RanForReal { .. }
            | Item::ModelChosen { .. }
            | Item::Unknown => {}
            Item::Surroundings(_) | Item::Retried => {}
            Item::Shortened { .. } | Item::Reduced => {}
        }
    }

    /// Ends a prompt that got no answer. If the prompt were joined with the next one, its bytes would differ from those of
    /// earlier requests.
    fn end_turn(&mut self) {
        if !self.after_summary {
            self.end_user();
        }
    }

    fn add_user(&mut self, text: String) {
        self.end_model();
        self.end_results();
        self.after_summary = false;
        self.user.push(text);
    }

    /// Returns the text of a prompt with an attached context. An image is not part of the text.
    fn with_context(&mut self, told: String, piece: &Context) -> String {
        let image = piece.image.as_ref().and_then(|_| self.images.pop_front());
        // Escaped: a file name can contain quotes and ends of lines.
        let name = &piece.name;
        let body = match image {
            None => piece.text.trim_end_matches('\n').to_owned(),
            Some(Ok(image)) => {
                self.user_images.push(image);
                "(an image of this message)".to_owned()
            }
            Some(Err(reason)) => {
                self.left_out.push(format!("{name}: {reason}"));
                format!("(an image, which is left out because {reason})")
            }
        };
        format!("{told}\n\n<context name={name:?}>\n{body}\n</context>")
    }

    /// Returns the text of a result with a note about its next image. `place` says in which message the image is.
    fn with_image(&mut self, text: String, place: &str) -> String {
        let words = match self.images.pop_front() {
            Some(Ok(image)) => {
                self.result_images.push(image);
                format!("(an image {place})")
            }
            Some(Err(reason)) => format!("(an image, which is left out because {reason})"),
            None => return text,
        };
        format!("{text}\n{words}")
    }

    fn start_model(&mut self) {
        self.left_out.clear();
        self.end_results();
        self.end_user();
    }

    fn reasoning(&mut self, text: String, signature: Option<&str>) {
        let own = self.info.own_signature(signature);
        if !self.reduced && (own.is_some() || !text.is_empty()) {
            self.parts.push(MessagePart::Reasoning {
                text,
                signature: own.map(str::to_owned),
            });
        }
    }

    fn call(&mut self, call: Call) {
        self.names.insert(call.id.clone(), call.name.clone());
        let signature = self.info.own_signature(call.signature.as_deref());
        let signature = signature.map(str::to_owned);
        self.parts
            .push(MessagePart::Call(Call { signature, ..call }));
    }

    fn outcome(&mut self, outcome: Outcome) {
        self.end_model();
        let name = self.names.get(&outcome.call).cloned().unwrap_or_default();
        let text = not_empty(outcome.text, NO_OUTPUT);
        let is_text = self.text_calls.contains(&outcome.call);
        let place = match is_text {
            true => "of this message",
            false => "in the next message",
        };
        let add = |text, _| self.with_image(text, place);
        let text = outcome.images.iter().fold(text, add);
        if is_text {
            self.user_images.append(&mut self.result_images);
            let name = plain_name(&name);
            self.user.push(format!("[what {name} came to]\n{text}"));
            return;
        }
        self.end_user();
        self.results.push(CallResult {
            id: self.ids.get(&outcome.call),
            name,
            text,
            ok: outcome.ok,
        });
    }

    fn end_user(&mut self) {
        if !self.user.is_empty() {
            let text = not_empty(std::mem::take(&mut self.user).join("\n\n"), NO_TEXT);
            let images = std::mem::take(&mut self.user_images);
            let spoke = matches!(self.messages.last(), None | Some(Message::Model(_)));
            if !spoke && self.must_alternate {
                let answer = MessagePart::Text(NO_ANSWER.to_owned());
                self.messages.push(Message::Model(vec![answer]));
            }
            self.messages.push(Message::User { text, images });
        }
    }

    fn end_model(&mut self) {
        let mut parts = std::mem::take(&mut self.parts);
        if self.must_be_text(&parts) {
            self.calls_to_text(&mut parts);
        }
        for part in &mut parts {
            if let MessagePart::Call(call) = part {
                call.id = self.ids.get(&call.id);
            }
        }
        // Providers refuse reasoning without a text or a call after it. Gemini's signatures may stand at the end.
        let said = |part: &MessagePart| !matches!(part, MessagePart::Reasoning { .. });
        let Some(last) = parts.iter().rposition(said) else {
            return;
        };
        if self.info.protocol != Protocol::Gemini {
            parts.truncate(last + 1);
        }
        if self.messages.is_empty() {
            self.messages.push(Message::user(BEGIN));
        }
        self.messages.push(Message::Model(parts));
    }

    /// Returns true if the calls of a step must be sent as text. There are three cases:
    /// - The step is in the reduced form.
    /// - A call has the name of no tool.
    /// - Anthropic requires the reasoning that led to the calls, but another model made them.
    fn must_be_text(&self, parts: &[MessagePart]) -> bool {
        let thought = |part: &MessagePart| matches!(part, MessagePart::Reasoning { signature, .. } if signature.is_some());
        let unknown = |part: &MessagePart| matches!(part, MessagePart::Call(call) if !self.may_name(&call.name));
        self.reduced
            || parts.iter().any(unknown)
            || (self.info.thinking && !parts.first().is_some_and(thought))
    }

    /// Returns true if a tool on offer has this name.
    fn may_name(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// Replaces the calls of a step by texts.
    fn calls_to_text(&mut self, parts: &mut [MessagePart]) {
        for part in parts {
            if let MessagePart::Call(call) = part {
                self.text_calls.insert(call.id.clone());
                *part = as_text(&call.name, &call.arguments);
            }
        }
    }

    fn end_results(&mut self) {
        let mut results = std::mem::take(&mut self.results);
        if results.is_empty() {
            return;
        }
        // Protocols without ids match results to calls by their order.
        if let Some(Message::Model(parts)) = self.messages.last() {
            let mut calls = HashMap::new();
            for (at, part) in parts.iter().enumerate() {
                if let MessagePart::Call(call) = part {
                    calls.insert(call.id.as_str(), at);
                }
            }
            results.sort_by_key(|result| calls.get(result.id.as_str()).copied());
        }
        self.messages.push(Message::Results(results));
        let images = std::mem::take(&mut self.result_images);
        if !images.is_empty() {
            self.user.push(RESULT_IMAGES.to_owned());
            self.user_images.extend(images);
        }
    }

    fn finish(&mut self) {
        self.end_model();
        self.end_results();
        self.end_user();
        if matches!(self.messages.last(), None | Some(Message::Model(_))) {
            self.messages.push(Message::user(GO_ON));
        }
    }
}

fn as_text(name: &str, arguments: &Value) -> MessagePart {
    let name = plain_name(name);
    MessagePart::Text(format!("[used {name} with {arguments}]"))
}

/// The longest tool name that a text contains, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Returns a tool name that the model invented as a single word. Control tokens of a chat template are removed.
fn plain_name(name: &str) -> String {
    let word = |c: char| match c {
        c if c.is_alphanumeric() || "_-.".contains(c) => c,
        _ => '_',
    };
    let plain = name.trim().chars().take(MAX_NAME_CHARS).map(word).collect();
    not_empty(plain, "(no name)")
}

fn not_empty(text: String, instead: &str) -> String {
    match text.trim().is_empty() {
        true => instead.to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests;
