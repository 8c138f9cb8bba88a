//! How much of a conversation is sent to a model.

use std::collections::HashSet;

use crate::llm::ToolSpec;
use crate::transcript::{self, Item, Outcome};

/// What an item costs beside its text: roles, names, braces.
const FRAME: u64 = 8;
/// An output this short is not worth the line that would stand for it.
const SHORT: usize = 400;
/// The outputs a model is working with.
const RECENT: usize = 4;

/// A model's window, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub window: u64,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    pub items: Vec<Item>,
    /// Tokens of the whole request, estimated.
    pub tokens: u64,
    /// Outputs of which only a line is sent.
    pub pruned: usize,
    /// Set where even that is too much: the model should sum up, and the summary should keep so many of the
    /// last items ([`Item::Summary`]).
    pub summarise: Option<usize>,
}

impl Budget {
    /// Returns the items to send, with old tool outputs replaced by a line where they fill the window.
    ///
    /// The items are those of the transcript; summaries are applied and what is broken is repaired here.
    pub fn fit(&self, system: &str, tools: &[ToolSpec], items: &[Item]) -> Fit {
        let (mut told, _) = transcript::repair(transcript::view(items));
        let fixed = tokens(system) + tools.iter().map(tool_tokens).sum::<u64>();
        let mut used = fixed + told.iter().map(item_tokens).sum::<u64>();
        let limit = self.window / 5 * 4;
        let mut pruned = 0;
        if used > limit {
            // In steps of a fifth: else each request would prune a little more, and nothing stayed cached.
            let step = (self.window / 5).max(1);
            let aim = limit.saturating_sub((used - limit).div_ceil(step) * step - (used - limit));
            pruned += prune(&mut told, &mut used, aim, RECENT);
        }
        if used > limit {
            pruned += prune(&mut told, &mut used, limit, 1);
        }
        if used > limit {
            shorten_largest(&mut told, &mut used, limit);
        }
        Fit {
            summarise: (used > limit && may_shrink(items)).then(|| self.keep(items, fixed)),
            items: told,
            tokens: used,
            pruned,
        }
    }

    /// Returns how many of the last items fill at most a third of the window, beginning where a turn or
    /// a step begins, so that no call is parted from its result.
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

/// Returns whether anything was said since the last summary: summing that up again gains nothing.
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

/// Returns about how many tokens a text comes to; rather too many than too few.
fn tokens(text: &str) -> u64 {
    (text.len() as u64 * 2).div_ceil(7)
}

fn tool_tokens(tool: &ToolSpec) -> u64 {
    FRAME + tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.schema.to_string())
}

fn item_tokens(item: &Item) -> u64 {
    FRAME
        + match item {
            Item::User { text, context } => {
                tokens(text)
                    + context
                        .iter()
                        .map(|piece| FRAME + tokens(&piece.name) + tokens(&piece.text))
                        .sum::<u64>()
            }
            Item::Text { text } | Item::Summary { text, .. } => tokens(text),
            Item::Reasoning { text, signature } => {
                tokens(text) + signature.as_deref().map_or(0, tokens)
            }
            Item::Call(call) => {
                tokens(&call.name)
                    + tokens(&call.arguments.to_string())
                    + call.signature.as_deref().map_or(0, tokens)
            }
            Item::Outcome(outcome) => tokens(&outcome.text),
            Item::JobEnded {
                text, told: false, ..
            } => tokens(text),
            Item::JobStarted { .. } | Item::JobEnded { .. } => 0,
            Item::Decision { .. } | Item::End { .. } | Item::Notice { .. } | Item::Unknown => 0,
        }
}

/// Replaces outputs by a line, oldest first, until no more than `aim` is used; the last `spare` stay.
fn prune(items: &mut [Item], used: &mut u64, aim: u64, spare: usize) -> usize {
    let outcomes: Vec<usize> = (0..items.len())
        .filter(|at| matches!(items[*at], Item::Outcome(_)))
        .collect();
    let old = outcomes.len().saturating_sub(spare);
    let mut pruned = 0;
    for at in &outcomes[..old] {
        if *used <= aim {
            break;
        }
        let before = item_tokens(&items[*at]);
        if let Item::Outcome(outcome) = &mut items[*at]
            && outcome.text.len() > SHORT
        {
            outcome.text = stand_in(outcome);
            *used -= before.saturating_sub(item_tokens(&items[*at]));
            pruned += 1;
        }
    }
    pruned
}

fn stand_in(outcome: &Outcome) -> String {
    let size = outcome.text.len();
    let ended = if outcome.ok {
        ""
    } else {
        " of a call that failed"
    };
    match &outcome.spill {
        Some(path) => format!(
            "[{size} bytes of output{ended}, left out to save room; kept in {}]",
            path.display()
        ),
        None => format!(
            "[{size} bytes of output{ended}, left out to save room; call again if you need it]"
        ),
    }
}

/// Cuts the largest outputs in their middle until they fit or are small.
fn shorten_largest(items: &mut [Item], used: &mut u64, limit: u64) {
    while *used > limit {
        let largest = items
            .iter_mut()
            .filter_map(|item| match item {
                Item::Outcome(outcome) if outcome.text.len() > SHORT * 4 => Some(outcome),
                _ => None,
            })
            .max_by_key(|outcome| outcome.text.len());
        let Some(outcome) = largest else {
            return;
        };
        let before = tokens(&outcome.text);
        outcome.text = halves(&outcome.text, outcome.text.len() / 3);
        *used -= before.saturating_sub(tokens(&outcome.text));
    }
}

/// Returns the first and the last bytes of a text, cut between characters, and a line between them.
fn halves(text: &str, each: usize) -> String {
    let head = (0..=each.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let tail = (text.len().saturating_sub(each)..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len());
    let left_out = tail.saturating_sub(head);
    format!(
        "{}\n[{left_out} bytes left out]\n{}",
        &text[..head],
        &text[tail..]
    )
}

#[cfg(test)]
mod tests;
