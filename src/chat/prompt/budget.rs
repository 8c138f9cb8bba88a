//! Fits a transcript into a model's context window.

mod estimate;
mod texts;

use std::collections::HashSet;

use self::estimate::{item_tokens, tokens, tool_tokens};
use self::texts::LongTexts;
use super::output_frame::framed;
use crate::tool::plan::WorkPlan;
use co_llm::ToolSpec;
use co_llm::transcript::{self, Item, Shortened};

/// The number of newest outputs and contexts that stay whole if it is enough to shorten the older ones.
const RECENT_TEXTS: usize = 4;

/// The context window of a model, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub window: u64,
}

/// The items that a request sends, after they were made to fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedItems {
    pub items: Vec<Item>,
    /// The estimated number of tokens of the whole request.
    pub tokens: u64,
    /// The texts that this request shortens for the first time. The turn records them as [`Item::Shortened`], so that later
    /// requests shorten them in the same way.
    pub shortened: Vec<Shortened>,
    /// Set if the request is still too large, so that the model must first write a summary. The value is the number of items at
    /// the end of the transcript that the summary ([`Item::Summary`]) does not replace.
    pub summarise: Option<usize>,
}

impl Budget {
    /// Returns the items to send. If they would fill more than four fifths of the window, leaves out or shortens outputs and
    /// contexts, beginning with the oldest.
    ///
    /// `items` is the whole transcript. This function applies the summaries in it, and gives each call exactly one result.
    pub fn fit(&self, system: &str, tools: &[ToolSpec], items: &[Item]) -> FittedItems {
        let (whole, _) = transcript::repair(with_plan(transcript::view(items), items));
        let mut texts = LongTexts::new(framed(whole), items);
        let fixed = tokens(system) + tools.iter().map(tool_tokens).sum::<u64>();
        let mut used = fixed + texts.told.iter().map(item_tokens).sum::<u64>();
        let limit = self.window / 5 * 4;
        if used > limit {
            // In steps of a fifth: else each request would shorten a little more, and the provider's cache would never
            // match.
            let step = (self.window / 5).max(1);
            let aim = limit.saturating_sub((used - limit).div_ceil(step) * step - (used - limit));
            texts.leave_out(&mut used, aim, RECENT_TEXTS);
        }
        if used > limit {
            texts.leave_out(&mut used, limit, 1);
        }
        if used > limit {
            texts.shorten_largest(&mut used, limit);
        }
        FittedItems {
            summarise: (used > limit && may_shrink(items)).then(|| self.keep(items, fixed)),
            items: texts.told,
            tokens: used,
            shortened: texts.shortened,
        }
    }

    /// Returns the items of a request, shortened to fit into the window. It is for a request that has no tools and that the
    /// provider refused as too long. Cuts long texts in their middle, then leaves out older items. The first and the last item
    /// stay.
    pub fn squeeze(&self, system: &str, items: &[Item]) -> Vec<Item> {
        let room = self.window.saturating_sub(tokens(system));
        let mut told: Vec<Item> = items.to_vec();
        let used = |told: &[Item]| told.iter().map(item_tokens).sum::<u64>();
        if used(&told) > room {
            let each = usize::try_from(room / 8).unwrap_or(usize::MAX);
            told.iter_mut().for_each(|item| texts::cut(item, each));
        }
        let (mut left_out, mut total) = (0, used(&told));
        while total > room && told.len() > 2 {
            total -= item_tokens(&told.remove(1));
            left_out += 1;
        }
        if left_out > 0 {
            let text =
                format!("co left out {left_out} items of the chat here, because it is too long");
            told.insert(1, Item::Note { text, once: true });
        }
        told
    }

    /// Returns the number of items at the end of the transcript that fill at most a third of the window. The first of them begins
    /// a turn or a step, so that no call is separated from its result.
    fn keep(&self, items: &[Item], fixed: u64) -> usize {
        let mut room = (self.window / 3).saturating_sub(fixed);
        let mut keep = 0;
        let mut open: HashSet<&str> = HashSet::new();
        for (at, item) in items.iter().enumerate().rev() {
            let cost = item_tokens(item);
            if cost > room || matches!(item, Item::Summary { .. }) {
                break;
            }
            room -= cost;
            match item {
                Item::Outcome(outcome) => {
                    open.insert(&outcome.call);
                }
                Item::Call(call) => {
                    open.remove(call.id.as_str());
                }
                // A text stands in pieces: what is kept begins with its first one.
                Item::Text { .. } if matches!(items[..at].last(), Some(Item::Text { .. })) => {}
                Item::User { .. } | Item::Text { .. } if open.is_empty() => keep = items.len() - at,
                _ => {}
            }
        }
        keep
    }
}

/// Adds the model's plan to the summary, if the items that the summary replaces contain the plan.
fn with_plan(mut told: Vec<Item>, items: &[Item]) -> Vec<Item> {
    let plan = WorkPlan::summed_up(items, &told);
    let summary = told.iter_mut().find_map(|item| match item {
        Item::Summary { text, .. } => Some(text),
        _ => None,
    });
    if let (Some(plan), Some(text)) = (plan, summary) {
        text.push_str(&format!("\n\nYour plan then:\n{}", plan.lines().join("\n")));
    }
    told
}

/// Returns true if a summary can make the items shorter: the model wrote, thought or called something since the last summary.
fn may_shrink(items: &[Item]) -> bool {
    items
        .iter()
        .rev()
        .find_map(|item| match item {
            Item::Summary { .. } => Some(false),
            Item::Text { .. } | Item::Reasoning { .. } | Item::Call(_) | Item::Outcome(_) => {
                Some(true)
            }
            _ => None,
        })
        .unwrap_or(false)
}

#[cfg(test)]
mod tests;
