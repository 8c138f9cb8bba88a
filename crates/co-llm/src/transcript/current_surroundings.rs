//! Finds the current [`Surroundings`] of a chat among its items: directory, system, confinement and instructions.

use std::borrow::Cow;

use super::item::Item;
use super::summary::last_summary;
use super::surroundings::Surroundings;

/// Returns the index of the last [`Surroundings`] that lack instructions of the surroundings before them. A new system prompt
/// starts there.
fn last_end_of_instructions(items: &[Item]) -> Option<usize> {
    let mut places = items
        .iter()
        .enumerate()
        .filter_map(|(at, item)| of(item).map(|place| (at, place)));
    let (_, mut told) = places.next()?;
    let mut found = None;
    for (at, now) in places {
        if told.ends_instructions(now) {
            found = Some(at);
        }
        told = now;
    }
    found
}

/// Returns the items without notes about old [`Surroundings`]. Such notes may contain instructions that no longer apply.
///
/// Each of these notes is replaced by [`Item::Unknown`], so that the number of items stays the same: a summary counts items.
pub(super) fn without_old_notes(items: &[Item]) -> Cow<'_, [Item]> {
    let Some(end) = last_end_of_instructions(items) else {
        return Cow::Borrowed(items);
    };
    let mut items = items.to_vec();
    for at in 1..end {
        if matches!(items[at], Item::Note { .. }) && of(&items[at - 1]).is_some() {
            items[at] = Item::Unknown;
        }
    }
    Cow::Owned(items)
}

/// Returns the [`Surroundings`] that are in the system prompt of the next request.
///
/// These are the first surroundings of the chat, because each request must begin with the same bytes as the one before it. A new
/// system prompt starts after a summary, and when surroundings lack earlier instructions.
pub fn first_surroundings(items: &[Item]) -> Option<&Surroundings> {
    let kept_from = last_summary(items).map_or(0, |(_, kept_from)| kept_from);
    let end = last_end_of_instructions(items).map_or(0, |at| at + 1);
    let before = &items[..kept_from.max(end)];
    last_surroundings(before).or_else(|| items.iter().find_map(of))
}

/// Returns the most recent [`Surroundings`] of a chat.
pub fn last_surroundings(items: &[Item]) -> Option<&Surroundings> {
    items.iter().rev().find_map(of)
}

fn of(item: &Item) -> Option<&Surroundings> {
    match item {
        Item::Surroundings(surroundings) => Some(surroundings),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::surroundings::InstructionFile;
    use super::super::test_items::{note, summary};
    use super::*;

    fn at(cwd: &str) -> Surroundings {
        Surroundings {
            cwd: cwd.into(),
            date: "2026-11-23".into(),
            ..Surroundings::default()
        }
    }

    fn text_of(surroundings: &Surroundings) -> Option<&str> {
        let mut files = surroundings.instruction_files.iter();
        files.next().map(|file| file.text.as_str())
    }

    #[test]
    fn instructions_that_ended_are_in_neither_the_system_prompt_nor_a_note() {
        let of_text = |text: &str| InstructionFile {
            name: "CO.md".into(),
            text: text.into(),
        };
        let asks = |text: Option<&str>| {
            Item::Surroundings(Surroundings {
                instruction_files: text.map(of_text).into_iter().collect(),
                ..at("/a")
            })
        };
        let note = |text: &str| note(text, false);
        let check = |items: &[Item], first: Option<&str>, notes: &[&str]| {
            let system = first_surroundings(items).unwrap();
            assert_eq!(text_of(system), first, "{items:?}");
            let told = crate::transcript::view(items);
            assert_eq!(
                told,
                notes.iter().map(|text| note(text)).collect::<Vec<_>>()
            );
        };
        let mut items = vec![asks(None), asks(Some("A")), note("A")];
        check(&items, None, &["A"]);
        items.extend([note("steps"), asks(None), note("gone")]);
        check(&items, None, &["steps", "gone"]);
        items.extend([asks(Some("B")), note("B")]);
        check(&items, None, &["steps", "gone", "B"]);
        items.extend([asks(Some("C")), note("changed")]);
        check(&items, Some("C"), &["steps", "changed"]);
        let mut items = vec![asks(Some("A")), asks(None), note("gone")];
        check(&items, None, &["gone"]);
        items.push(summary("s", 3));
        assert_eq!(text_of(first_surroundings(&items).unwrap()), None);
        let items = [asks(Some("A")), note("x"), summary("s", 0), asks(None)];
        assert_eq!(text_of(first_surroundings(&items).unwrap()), None);
    }

    #[test]
    fn the_first_ones_stay_until_a_summary() {
        let mut items = vec![
            Item::Surroundings(at("/a")),
            Item::Notice { text: "x".into() },
            Item::Surroundings(at("/b")),
        ];
        let first = |items: &[Item]| first_surroundings(items).map(|it| it.cwd.clone());
        assert_eq!(first(&items).as_deref(), Some("/a"));
        assert_eq!(last_surroundings(&items).unwrap().cwd, "/b");
        items.push(summary("s", 1));
        items.push(Item::Surroundings(at("/c")));
        assert_eq!(first(&items).as_deref(), Some("/a"), "/b is kept");
        items.push(summary("s", 0));
        assert_eq!(first(&items).as_deref(), Some("/c"));
        assert_eq!(first(&[]), None);
    }
}
