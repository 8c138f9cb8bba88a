//! The place a chat works in, as its model is told.

use serde::{Deserialize, Serialize};

use super::Item;

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
            lines.push(match &now.instructions {
                Some(text) => format!("The workspace now asks this of you:\n{}", text.trim()),
                None => "The instructions of the workspace no longer hold.".to_owned(),
            });
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// Returns the surroundings that the system prompt of the next request is made from.
///
/// They stay the first ones of the conversation, since every request must begin like the one before it. A summary
/// begins a conversation anew.
pub fn first_surroundings(items: &[Item]) -> Option<&Surroundings> {
    let summary = items.iter().enumerate().rev();
    let kept_from = summary.into_iter().find_map(|(at, item)| match item {
        Item::Summary { keep, .. } => Some(at.saturating_sub(*keep)),
        _ => None,
    });
    let before = &items[..kept_from.unwrap_or(0)];
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
