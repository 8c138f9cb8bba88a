//! Finds the summary that replaces the older items of a chat.

use super::item::Item;

/// Returns the index of the last summary, and the index of the first item that the summary does not replace.
pub(super) fn last_summary(items: &[Item]) -> Option<(usize, usize)> {
    let mut backwards = items.iter().enumerate().rev();
    backwards.find_map(|(at, item)| match item {
        Item::Summary { keep, .. } => Some((at, at.saturating_sub(*keep))),
        _ => None,
    })
}
