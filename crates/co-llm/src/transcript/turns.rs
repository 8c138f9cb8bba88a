//! Adds up the token counts of the turns of a chat.

use super::item::Item;
use super::usage::Usage;

/// Returns the sum of the usage of all turns.
pub fn used(items: &[Item]) -> Usage {
    let mut total = Usage::default();
    for item in items {
        if let Item::End { usage, .. } = item {
            total += *usage;
        }
    }
    total
}

/// Returns the usage of the last turn that ended.
pub fn used_last(items: &[Item]) -> Usage {
    let last = items.iter().rev().find_map(|item| match item {
        Item::End { usage, .. } => Some(*usage),
        _ => None,
    });
    last.unwrap_or_default()
}
