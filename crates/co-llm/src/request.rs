//! A request to a model, in no provider's format.

use std::sync::Arc;

use serde_json::Value;

use crate::transcript::Item;

/// One request to a model: a step of a turn.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub system: String,
    /// The conversation so far. Each call in it has an outcome.
    pub items: Arc<[Item]>,
    /// The tools on offer. If there are none, earlier calls are sent as text.
    pub tools: Arc<[ToolSpec]>,
    /// False if the model must answer with text. The tools stay in the request, so that it begins like the one before it.
    pub may_call: bool,
    /// A name for the chat, for the provider's cache. It is the same in all requests of the chat.
    pub cache_key: Option<String>,
}

impl ModelRequest {
    /// Returns true if a prompt attaches an image.
    pub(crate) fn has_images(&self) -> bool {
        let mut items = self.items.iter();
        items.any(|item| match item {
            Item::User { context, .. } => context.iter().any(|piece| piece.image.is_some()),
            _ => false,
        })
    }
}

/// The description of a tool for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema (draft 7) of the arguments.
    pub schema: Value,
}
