//! A request to a model, in a form that does not depend on the provider.

use std::sync::Arc;

use serde_json::Value;

use crate::transcript::{Item, view};

/// One request to a model. Each step of a turn sends one.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub system: String,
    /// The conversation so far. Each call in it has a result.
    pub items: Arc<[Item]>,
    /// The tools on offer. If there are none, earlier calls are sent as text.
    pub tools: Arc<[ToolSpec]>,
    /// True if the model may call tools. False if it must answer with text; the tools stay in the request, so that it begins with
    /// the same bytes as the previous request.
    pub may_call: bool,
    /// A name for the chat, for the provider's cache. It is the same in all requests of the chat.
    pub cache_key: Option<String>,
    /// The number of tokens of the context window that are left for the answer. It is `None` if this is unknown.
    pub room: Option<u64>,
}

impl ModelRequest {
    /// Returns true if a prompt or a result has an image.
    pub(crate) fn has_images(&self) -> bool {
        let mut items = self.items.iter();
        items.any(|item| match item {
            Item::User { context, .. } => context.iter().any(|piece| piece.image.is_some()),
            Item::Outcome(outcome) => !outcome.images.is_empty(),
            _ => false,
        })
    }

    /// Returns a text for the person about the effect of an [`Item::Reduced`] at the end of the conversation, or `None` if it has
    /// no effect.
    pub fn reduction(&self) -> Option<String> {
        let told = view(&self.items);
        let told = told.strip_suffix(&[Item::Reduced]).unwrap_or(&told);
        let reduced = told.iter().rposition(|item| *item == Item::Reduced);
        let told = &told[reduced.unwrap_or(0)..];
        let count = |is: fn(&Item) -> usize| told.iter().map(is).sum::<usize>();
        let images = count(|item| match item {
            Item::User { context, .. } => context.iter().filter(|it| it.image.is_some()).count(),
            Item::Outcome(outcome) => outcome.images.len(),
            _ => 0,
        });
        let calls = count(|item| usize::from(matches!(item, Item::Call(_))));
        let thoughts = count(|item| usize::from(matches!(item, Item::Reasoning { .. })));
        let parts = [
            (images, "image", "left out"),
            (calls, "call", "sent as text"),
            (thoughts, "thought", "left out"),
        ];
        let parts = parts.into_iter().filter(|(number, ..)| *number > 0);
        let parts: Vec<String> = parts
            .map(|(number, what, how)| match number {
                1 => format!("1 {what} is {how}"),
                _ => format!("{number} {what}s are {how}"),
            })
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// The description of a tool for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// The JSON Schema (draft 7) of the arguments.
    pub schema: Value,
}
