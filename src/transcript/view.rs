//! What a model is told of a conversation.

use super::Item;

/// Returns the items a model is told: all of them, or what follows the last summary.
///
/// The person's first words are told as they were, whatever was summarised since; so are their last.
pub fn view(items: &[Item]) -> Vec<Item> {
    let Some((at, keep)) = items.iter().enumerate().rev().find_map(|(at, item)| {
        let Item::Summary { keep, .. } = item else {
            return None;
        };
        Some((at, *keep))
    }) else {
        return items.to_vec();
    };
    let kept_from = at.saturating_sub(keep);
    let is_user = |item: &&Item| matches!(item, Item::User { .. });
    let first = items[..kept_from].iter().position(|item| is_user(&item));
    // What the kept ones answer, unless that is among them.
    let last = items[..kept_from]
        .iter()
        .rposition(|item| is_user(&item))
        .filter(|at| first != Some(*at))
        .filter(|_| !items[kept_from..].iter().any(|item| is_user(&item)));
    // An older summary's `keep` counted items that are told by the newer one.
    let kept = items[kept_from..at]
        .iter()
        .filter(|item| !matches!(item, Item::Summary { .. }));
    let one = |at: usize| std::iter::once(&items[at]);
    first
        .into_iter()
        .flat_map(one)
        .chain(one(at))
        .chain(last.into_iter().flat_map(one))
        .chain(kept)
        .chain(&items[at + 1..])
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Item {
        Item::User {
            text: text.into(),
            context: Vec::new(),
        }
    }

    fn said(text: &str) -> Item {
        Item::Text { text: text.into() }
    }

    fn summary(text: &str, keep: usize) -> Item {
        Item::Summary {
            text: text.into(),
            keep,
        }
    }

    #[test]
    fn without_a_summary_everything() {
        let items = [user("a"), said("b")];
        assert_eq!(view(&items), items);
    }

    #[test]
    fn the_first_words_the_summary_what_was_kept_and_what_followed() {
        let items = [
            user("first"),
            said("old"),
            user("second"),
            said("kept"),
            summary("s", 2),
            user("third"),
        ];
        assert_eq!(
            view(&items),
            [
                user("first"),
                summary("s", 2),
                user("second"),
                said("kept"),
                user("third")
            ]
        );
    }

    #[test]
    fn what_was_asked_last_is_told_with_the_answer_to_it() {
        let items = [
            user("first"),
            user("second"),
            user("last"),
            said("old"),
            said("kept"),
            summary("s", 1),
        ];
        let told = [user("first"), summary("s", 1), user("last"), said("kept")];
        assert_eq!(view(&items), told);
    }

    #[test]
    fn the_last_summary_counts() {
        let items = [user("first"), summary("1", 0), said("x"), summary("2", 0)];
        assert_eq!(view(&items), [user("first"), summary("2", 0)]);
        let items = [user("first"), said("x"), summary("1", 1), summary("2", 9)];
        assert_eq!(view(&items), [summary("2", 9), user("first"), said("x")]);
    }
}
