//! The place a chat works in, as its model is told.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Item;
use super::view::last_summary;

/// Facts about the place a chat works in. They fill the system prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    pub cwd: String,
    pub workspace: String,
    pub os: String,
    pub shell: String,
    pub date: String,
    /// A sentence about the confinement of approved commands.
    pub backend: String,
    /// A sentence about commands that run without a question.
    pub unasked: String,
    /// The workspace's own instructions, if the person trusts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

impl Surroundings {
    /// Returns a note for the model about everything that differs in `now`; none if nothing does.
    pub fn change(&self, now: &Self) -> Option<String> {
        let mut lines = Vec::new();
        if (&self.cwd, &self.workspace) != (&now.cwd, &now.workspace) {
            lines.push(format!(
                "The working directory is now {}, the workspace {}.",
                now.cwd, now.workspace
            ));
        }
        if self.date != now.date {
            lines.push(format!("Today is {}.", now.date));
        }
        if (&self.os, &self.shell) != (&now.os, &now.shell) {
            lines.push(format!("Commands now run on {} in {}.", now.os, now.shell));
        }
        if (&self.backend, &self.unasked) != (&now.backend, &now.unasked) {
            lines.push(format!("From now on: {} {}", now.backend, now.unasked));
        }
        if self.instructions != now.instructions {
            lines.push(match (&self.instructions, &now.instructions) {
                (None, Some(text)) => {
                    format!("The workspace now asks this of you:\n{}", text.trim())
                }
                (_, None) => "The instructions of the workspace no longer hold.".to_owned(),
                // They are in the system prompt, see `ends_instructions`.
                (Some(_), Some(_)) => "The instructions of the workspace changed.".to_owned(),
            });
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Returns whether the model was sent instructions that `now` does not have. It must not be sent them again.
    pub fn ends_instructions(&self, now: &Self) -> bool {
        self.instructions.is_some() && self.instructions != now.instructions
    }
}

/// Returns the index of the last surroundings that end earlier instructions; the conversation begins anew with them.
fn anew(items: &[Item]) -> Option<usize> {
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

/// Returns the items without the notes about surroundings that no longer count: they may hold instructions that ended.
///
/// An unread item takes the place of such a note, since a summary counts items.
pub(super) fn without_old_notes(items: &[Item]) -> Cow<'_, [Item]> {
    let Some(anew) = anew(items) else {
        return Cow::Borrowed(items);
    };
    let mut items = items.to_vec();
    for at in 1..anew {
        if matches!(items[at], Item::Note { .. }) && of(&items[at - 1]).is_some() {
            items[at] = Item::Unknown;
        }
    }
    Cow::Owned(items)
}

/// Returns the surroundings that the system prompt of the next request is made from.
///
/// They stay the first ones of the conversation, since every request must begin like the one before it. A summary
/// begins a conversation anew, and so does the end of instructions.
pub fn first_surroundings(items: &[Item]) -> Option<&Surroundings> {
    let kept_from = last_summary(items).map_or(0, |(_, kept_from)| kept_from);
    let anew = anew(items).map_or(0, |at| at + 1);
    let before = &items[..kept_from.max(anew)];
    last_surroundings(before).or_else(|| items.iter().find_map(of))
}

/// Returns the surroundings that the model was told of last.
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
    use super::*;

    fn at(cwd: &str) -> Surroundings {
        Surroundings {
            cwd: cwd.into(),
            date: "2026-11-23".into(),
            ..Surroundings::default()
        }
    }

    #[test]
    fn a_change_is_told_in_a_line_each() {
        let old = at("/a");
        assert_eq!(old.change(&at("/a")), None);
        let new = Surroundings {
            date: "2026-11-24".into(),
            instructions: Some(" Use tabs.\n".into()),
            ..at("/b")
        };
        assert_eq!(
            old.change(&new).unwrap(),
            "The working directory is now /b, the workspace .\nToday is 2026-11-24.\n\
             The workspace now asks this of you:\nUse tabs."
        );
        assert!(new.change(&old).unwrap().ends_with("no longer hold."));
    }

    #[test]
    fn instructions_that_ended_are_in_neither_the_system_prompt_nor_a_note() {
        let asks = |text: Option<&str>| {
            Item::Surroundings(Surroundings {
                instructions: text.map(str::to_owned),
                ..at("/a")
            })
        };
        let note = |text: &str| Item::Note {
            text: text.into(),
            once: false,
        };
        let check = |items: &[Item], first: Option<&str>, notes: &[&str]| {
            let system = first_surroundings(items).unwrap();
            assert_eq!(system.instructions.as_deref(), first, "{items:?}");
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
        items.extend([Item::Summary {
            text: "s".into(),
            keep: 3,
        }]);
        assert_eq!(first_surroundings(&items).unwrap().instructions, None);
        let items = [
            asks(Some("A")),
            note("x"),
            Item::Summary {
                text: "s".into(),
                keep: 0,
            },
            asks(None),
        ];
        assert_eq!(first_surroundings(&items).unwrap().instructions, None);
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
        items.push(Item::Summary {
            text: "s".into(),
            keep: 1,
        });
        items.push(Item::Surroundings(at("/c")));
        assert_eq!(first(&items).as_deref(), Some("/a"), "/b is kept");
        items.push(Item::Summary {
            text: "s".into(),
            keep: 0,
        });
        assert_eq!(first(&items).as_deref(), Some("/c"));
        assert_eq!(first(&[]), None);
    }
}
