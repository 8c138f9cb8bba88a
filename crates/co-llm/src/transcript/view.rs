//! Selects the items of a chat that are sent to a model.

use super::current_surroundings::without_old_notes;
use super::item::Item;
use super::summary::last_summary;

/// Returns the items to send in a request: all items, or those since the last summary.
///
/// The first and the last prompt of the person are always included. Items that only the person sees are left out. Adjacent pieces
/// of text are joined (see [`joined`]).
pub fn view(items: &[Item]) -> Vec<Item> {
    let mut told: Vec<Item> = Vec::new();
    let items = without_old_notes(items);
    for item in after_summary(&items) {
        if *item == Item::Retried {
            let tail = told.split_off(asked_at(&told));
            told.extend(tail.into_iter().filter(|item| !is_answer(item)));
        } else if is_told(item) {
            told.push(item.clone());
        }
    }
    joined(&told)
}

/// Returns true if the model has written text or reasoning since the last prompt or result.
pub fn has_answer(items: &[Item]) -> bool {
    is_answered(&view(items))
}

/// The note that asks a model to continue its answer.
pub const GO_ON: &str = "Go on from where you stopped. You can call tools.";

/// Returns true if the model can continue: it has written something since the last prompt, or its last call has a result.
pub fn may_go_on(items: &[Item]) -> bool {
    let told = view(items);
    is_answered(&told) || matches!(told[..asked_at(&told)].last(), Some(Item::Outcome(_)))
}

fn is_answered(told: &[Item]) -> bool {
    let text = |item: &Item| matches!(item, Item::Text { .. } | Item::Reasoning { .. });
    told[asked_at(told)..].iter().any(text)
}

/// Returns the index after the last prompt, summary or result. The model's answer begins there or later.
fn asked_at(told: &[Item]) -> usize {
    let asked = told.iter().rposition(|item| {
        matches!(
            item,
            Item::User { .. } | Item::Outcome(_) | Item::Summary { .. }
        )
    });
    asked.map_or(0, |at| at + 1)
}

/// Returns true if the item belongs to an answer of the model. Items that co adds between answers, about jobs or about the
/// surroundings, do not.
fn is_answer(item: &Item) -> bool {
    matches!(
        item,
        Item::Text { .. }
            | Item::Reasoning { .. }
            | Item::End { .. }
            | Item::Note { once: true, .. }
    )
}

/// Returns the items with adjacent texts joined into one item.
///
/// A chat writes an answer to its file while the answer streams in, so the file has the text in pieces.
pub fn joined<'a>(items: impl IntoIterator<Item = &'a Item>) -> Vec<Item> {
    let mut whole: Vec<Item> = Vec::new();
    for item in items {
        match (whole.last_mut(), item) {
            (Some(Item::Text { text }), Item::Text { text: more }) => text.push_str(more),
            _ => whole.push(item.clone()),
        }
    }
    whole
}

/// Returns true if the item is sent to the model.
fn is_told(item: &Item) -> bool {
    match item {
        Item::User { .. }
        | Item::Text { .. }
        | Item::Reasoning { .. }
        | Item::Call(_)
        | Item::Outcome(_)
        | Item::JobEnded { told: false, .. }
        | Item::End { .. }
        | Item::Note { .. }
        | Item::Reduced
        | Item::Summary { .. } => true,
        Item::Decision { .. }
        | Item::JobStarted { .. }
        | Item::JobEnded { .. }
        | Item::Notice { .. }
        | Item::Plan { .. }
        | Item::AgentSession { .. }
        | Item::CommandEdited { .. }
        | Item::RanForReal { .. }
        | Item::ModelChosen { .. }
        | Item::Surroundings(_)
        | Item::Retried
        | Item::Shortened { .. }
        | Item::Unknown => false,
    }
}

fn after_summary(items: &[Item]) -> Box<dyn Iterator<Item = &Item> + '_> {
    let Some((at, kept_from)) = last_summary(items) else {
        return Box::new(items.iter());
    };
    let is_user = |item: &&Item| matches!(item, Item::User { .. });
    let first = items[..kept_from].iter().position(|item| is_user(&item));
    // The prompt that the kept items answer, if it is not one of them.
    let last = items[..kept_from]
        .iter()
        .rposition(|item| is_user(&item))
        .filter(|at| first != Some(*at))
        .filter(|_| !items[kept_from..].iter().any(|item| is_user(&item)));
    // The newer summary also replaces an older one.
    let kept = items[kept_from..at]
        .iter()
        .filter(|item| !matches!(item, Item::Summary { .. }));
    let reduced = items[..kept_from]
        .iter()
        .rposition(|item| *item == Item::Reduced);
    let one = |at: usize| std::iter::once(&items[at]);
    Box::new(
        first
            .into_iter()
            .flat_map(one)
            .chain(one(at))
            .chain(last.into_iter().flat_map(one))
            .chain(reduced.into_iter().flat_map(one))
            .chain(kept)
            .chain(&items[at + 1..]),
    )
}

#[cfg(test)]
mod tests {
    use super::super::test_items::{end, note, said, summary, user};
    use super::*;

    #[test]
    fn without_a_summary_everything() {
        let items = [user("a"), said("b")];
        assert_eq!(view(&items), items);
    }

    #[test]
    fn pieces_of_a_text_are_one_text() {
        let notice = Item::Notice { text: "n".into() };
        let items = [
            user("a"),
            said("Hel"),
            said("lo wor"),
            notice,
            said("\n\n\tld"),
            user("b"),
            said("x"),
        ];
        assert_eq!(
            view(&items),
            [user("a"), said("Hello wor\n\n\tld"), user("b"), said("x")]
        );
    }

    #[test]
    fn a_retried_answer_is_not_told_but_what_led_to_it_is() {
        let ended = Item::JobEnded {
            job: 1,
            text: "job 1 ended".into(),
            told: false,
        };
        let items = [
            user("a"),
            note("elsewhere", false),
            note("steps used up", true),
            said("one"),
            note("go on", true),
            note("elsewhere again", false),
            said("half"),
            end(),
            ended.clone(),
            Item::Retried,
            said("two"),
            Item::Retried,
            said("three"),
        ];
        let asked = [
            user("a"),
            note("elsewhere", false),
            note("elsewhere again", false),
            ended,
        ];
        let told = view(&items);
        assert_eq!(told[..4], asked);
        assert_eq!(told[4..], [said("three")]);
        assert!(has_answer(&items) && !has_answer(&items[..12]) && !has_answer(&[]));
        // Without an answer the same request is made again.
        assert_eq!(view(&[user("a"), end(), Item::Retried]), [user("a")]);
    }

    #[test]
    fn an_answer_that_a_summary_kept_can_be_retried() {
        let mut items = vec![
            user("first"),
            said("old"),
            user("second"),
            said("kept"),
            summary("s", 2),
            end(),
        ];
        assert!(has_answer(&items));
        items.push(Item::Retried);
        assert_eq!(
            view(&items),
            [user("first"), summary("s", 2), user("second")]
        );
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
    fn prompts_from_before_a_summary_stay_reduced() {
        let items = [
            user("first"),
            said("x"),
            Item::Reduced,
            user("last"),
            said("y"),
            summary("s", 1),
        ];
        let told = [
            user("first"),
            summary("s", 1),
            user("last"),
            Item::Reduced,
            said("y"),
        ];
        assert_eq!(view(&items), told);
        let items = [
            user("first"),
            Item::Reduced,
            said("y"),
            summary("s", 2),
            user("z"),
        ];
        let told = [
            user("first"),
            summary("s", 2),
            Item::Reduced,
            said("y"),
            user("z"),
        ];
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
