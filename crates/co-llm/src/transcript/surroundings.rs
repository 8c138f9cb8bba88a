//! The surroundings in which a chat works: directory, system, confinement and instructions.

use serde::{Deserialize, Serialize};

/// The surroundings in which a chat works. The system prompt describes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    pub cwd: String,
    pub workspace: String,
    pub os: String,
    pub shell: String,
    pub date: String,
    /// A sentence about the confinement of approved commands.
    pub backend: String,
    /// A sentence about commands that run without approval.
    pub unasked: String,
    /// The instruction files that the person trusts, sorted by precedence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instruction_files: Vec<InstructionFile>,
}

/// An instruction file with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionFile {
    pub name: String,
    pub text: String,
}

impl InstructionFile {
    /// Returns the texts of the files for the model, each below its name.
    pub fn sections<'a>(files: impl IntoIterator<Item = &'a Self>) -> String {
        let sections = files.into_iter();
        let sections = sections.map(|file| format!("## {}\n{}", file.name, file.text.trim()));
        sections.collect::<Vec<_>>().join("\n\n")
    }
}

impl Surroundings {
    /// Returns a note for the model about the differences between `self` and `now`, or `None` if they are equal.
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
        if self.ends_instructions(now) {
            // The system prompt holds those that are left.
            lines.push(match now.instruction_files.as_slice() {
                [] => "The instructions no longer hold.".to_owned(),
                _ => "The instructions changed.".to_owned(),
            });
        } else {
            let known = &self.instruction_files;
            let new: Vec<_> = (now.instruction_files.iter())
                .filter(|file| !known.contains(file))
                .collect();
            if !new.is_empty() {
                let sections = InstructionFile::sections(new);
                lines.push(format!("These instructions hold from now on:\n{sections}"));
            }
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Returns true if `self` has instructions that `now` lacks. These instructions must not be sent to the model again.
    pub fn ends_instructions(&self, now: &Self) -> bool {
        let mut files = self.instruction_files.iter();
        files.any(|file| !now.instruction_files.contains(file))
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

    fn file(name: &str, text: &str) -> InstructionFile {
        InstructionFile {
            name: name.into(),
            text: text.into(),
        }
    }

    #[test]
    fn a_change_is_told_in_a_line_each() {
        let old = at("/a");
        assert_eq!(old.change(&at("/a")), None);
        let new = Surroundings {
            date: "2026-11-24".into(),
            instruction_files: vec![file("CO.md", " Use tabs.\n")],
            ..at("/b")
        };
        assert_eq!(
            old.change(&new).unwrap(),
            "The working directory is now /b, the workspace .\nToday is 2026-11-24.\n\
             These instructions hold from now on:\n## CO.md\nUse tabs."
        );
        assert!(new.change(&old).unwrap().ends_with("no longer hold."));
    }

    #[test]
    fn another_file_of_instructions_is_told_in_a_note_and_ends_none() {
        let with = |files: &[InstructionFile]| Surroundings {
            instruction_files: files.to_vec(),
            ..at("/a")
        };
        let (near, far) = (file("a/CO.md", "near"), file("CO.md", "far"));
        let (one, both) = (
            with(std::slice::from_ref(&far)),
            with(&[near.clone(), far.clone()]),
        );
        assert!(!one.ends_instructions(&both));
        assert_eq!(
            one.change(&both).unwrap(),
            "These instructions hold from now on:\n## a/CO.md\nnear"
        );
        assert!(both.ends_instructions(&one));
        assert_eq!(both.change(&one).unwrap(), "The instructions changed.");
        assert_eq!(both.change(&with(&[far, near])), None);
    }
}
