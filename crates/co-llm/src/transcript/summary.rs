//! Finds the summary that stands for the older items of a chat.

use super::item::Item;

/// Returns the index of the last summary, and of the first item that it keeps.
pub(super) fn last_summary(items: &[Item]) -> Option<(usize, usize)> {
    let mut backwards = items.iter().enumerate().rev();
    backwards.find_map(|(at, item)| match item {
        Item::Summary { keep, .. } => Some((at, at.saturating_sub(*keep))),
        _ => None,
    })
}
