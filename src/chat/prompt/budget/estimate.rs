//! Estimates numbers of tokens.

use co_llm::ToolSpec;
use co_llm::transcript::{Context, Item};

/// The number of tokens that an item needs besides its text, for roles, names and braces.
const ITEM_TOKENS: u64 = 8;

/// Estimates the number of tokens of a text. The estimate is too high rather than too low.
pub(super) fn tokens(text: &str) -> u64 {
    (text.len() as u64 * 2).div_ceil(7)
}

pub(super) fn tool_tokens(tool: &ToolSpec) -> u64 {
    ITEM_TOKENS + tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.schema.to_string())
}

/// The number of tokens of an image. Vendors count up to about this many. (platform.claude.com "Vision": 1,600 for the largest
/// that is not scaled down, 2026-11)
const IMAGE_TOKENS: u64 = 1600;

fn piece_tokens(piece: &Context) -> u64 {
    let image = piece.image.as_ref().map_or(0, |_| IMAGE_TOKENS);
    ITEM_TOKENS + tokens(&piece.name) + tokens(&piece.text) + image
}

pub(super) fn item_tokens(item: &Item) -> u64 {
    ITEM_TOKENS
        + match item {
            Item::User { text, context, .. } => {
                tokens(text) + context.iter().map(piece_tokens).sum::<u64>()
            }
            Item::Text { text } | Item::Note { text, .. } | Item::Summary { text, .. } => {
                tokens(text)
            }
            Item::Reasoning { text, signature } => {
                tokens(text) + signature.as_deref().map_or(0, tokens)
            }
            Item::Call(call) => {
                tokens(&call.name)
                    + tokens(&call.arguments.to_string())
                    + call.signature.as_deref().map_or(0, tokens)
            }
            Item::Outcome(outcome) => {
                tokens(&outcome.text) + IMAGE_TOKENS * outcome.images.len() as u64
            }
            Item::JobEnded {
                text, told: false, ..
            } => tokens(text),
            Item::JobStarted { .. } | Item::JobEnded { .. } => 0,
            Item::Decision { .. }
            | Item::End { .. }
            | Item::Notice { .. }
            | Item::Plan { .. }
            | Item::AgentSession { .. }
            | Item::CommandEdited { .. }
            | Item::RanForReal { .. }
            | Item::ModelChosen { .. }
            | Item::Unknown => 0,
            Item::Surroundings(_) | Item::Retried => 0,
            Item::Shortened { .. } | Item::Reduced => 0,
        }
}
