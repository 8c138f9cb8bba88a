//! The place that a chat works in: directory, system, confinement, instructions.

use serde::{Deserialize, Serialize};

/// The place that a chat works in. The system prompt is made from it.
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
    /// Returns a note for the model about the differences of `now`; none if there are none.
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
                // The system prompt holds the new ones, see `ends_instructions`.
                (Some(_), Some(_)) => "The instructions of the workspace changed.".to_owned(),
            });
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Returns true if `self` has instructions that `now` does not have. The model must not be sent them again.
    pub fn ends_instructions(&self, now: &Self) -> bool {
        self.instructions.is_some() && self.instructions != now.instructions
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
}
