//! Makes the system prompt, and the part of a transcript that fits into a request.
//!
//! This module does no I/O. The text of the system prompt is in `prompt/system.md`, and the text for scouts is in
//! `prompt/scout.md`.

mod budget;
mod output_frame;

pub use budget::{Budget, FittedItems};

use co_llm::transcript::{InstructionFile, Surroundings};
use co_text::start_of;

const TEMPLATE: &str = include_str!("prompt/system.md");
const SCOUT_TEMPLATE: &str = include_str!("prompt/scout.md");

/// The largest number of bytes that co sends of an instruction file. A person who must decide whether to trust the file would not
/// read a longer text.
pub(super) const LONGEST_INSTRUCTIONS: usize = 32 * 1024;

const INSTRUCTIONS: &str = "# Instructions of the person and the workspace
If two of these files contradict each other, the one in the directory that is nearer to the working directory counts.
";

/// Returns the system prompt. It does not mention the tools in `absent`.
pub fn system(surroundings: &Surroundings, absent: &[String]) -> String {
    filled(TEMPLATE, surroundings, absent)
}

/// Returns the system prompt of a scout. It does not mention the tools in `absent`.
pub fn of_scout(surroundings: &Surroundings, absent: &[String]) -> String {
    filled(SCOUT_TEMPLATE, surroundings, absent)
}

fn filled(template: &str, surroundings: &Surroundings, absent: &[String]) -> String {
    let instructions = instructions(&surroundings.instruction_files);
    let values = [
        ("cwd", surroundings.cwd.as_str()),
        ("workspace", &surroundings.workspace),
        ("os", &surroundings.os),
        ("shell", &surroundings.shell),
        ("date", &surroundings.date),
        ("backend", &surroundings.backend),
        ("unasked", &surroundings.unasked),
        ("instructions", &instructions),
    ];
    fill(&without(template, absent), &values)
}

/// Returns the part of a system prompt that contains the texts of instruction files; empty if there are no files.
pub(super) fn instructions(files: &[InstructionFile]) -> String {
    match files {
        [] => String::new(),
        files => format!("\n{INSTRUCTIONS}\n{}\n", InstructionFile::sections(files)),
    }
}

/// Returns the start of an instruction file, at most [`LONGEST_INSTRUCTIONS`] bytes.
pub(super) fn cut(instructions: &str) -> &str {
    start_of(instructions.trim(), LONGEST_INSTRUCTIONS)
}

/// Returns a template without the sentences that name one of these tools. A list item in which no sentence remains is removed
/// too.
fn without(template: &str, tools: &[String]) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let names_one = |sentence: &&str| {
        let mut words = sentence.split(|c| !is_word(c));
        words.any(|word| tools.iter().any(|tool| tool == word))
    };
    let line = |line: &str| {
        let sentences = line.split_inclusive(". ");
        let left: String = sentences.filter(|it| !names_one(it)).collect();
        if !line.starts_with("- ") || left == line {
            return Some(left);
        }
        let text = left.strip_prefix("- ").unwrap_or(&left).trim_end();
        (!text.is_empty()).then(|| format!("- {text}"))
    };
    let lines = template.lines().filter_map(line);
    lines.map(|line| line + "\n").collect()
}

/// Replaces the placeholders of a template in one pass. A placeholder inside of a value stays as it is.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let Some((name, after)) = after.split_once("}}") else {
            text.push_str("{{");
            rest = after;
            continue;
        };
        let value = values.iter().find(|(key, _)| *key == name);
        text.push_str(value.map_or("", |(_, value)| value));
        rest = after;
    }
    text.push_str(rest);
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings() -> Surroundings {
        Surroundings {
            cwd: "/home/me/{{date}}".into(),
            workspace: "/home/me".into(),
            os: "Linux".into(),
            shell: "bash".into(),
            date: "2026-01-02".into(),
            backend: "Approved commands run on this machine.".into(),
            unasked: "Commands that only read run at once.".into(),
            instruction_files: Vec::new(),
        }
    }

    /// If you change the text on purpose, read it aloud, then copy the left side of the failure into the file.
    #[test]
    fn a_model_is_told_this() {
        let mut surroundings = surroundings();
        surroundings.cwd = "/home/me/src".into();
        assert_eq!(
            system(&surroundings, &[]),
            include_str!("../../tests/fixtures/system_prompt.txt").trim_end()
        );
    }

    #[test]
    fn every_place_in_the_template_is_filled() {
        let text = system(&surroundings(), &[]);
        assert!(!text.contains("{{") || text.contains("/home/me/{{date}}"));
        assert_eq!(text.matches("{{").count(), 1, "{text}");
        for word in ["Linux", "bash", "2026-01-02", "run at once", "this machine"] {
            assert!(text.contains(word), "{word} is not in {text}");
        }
        assert!(!text.contains("# Instructions"));
        assert!(text.contains("by explore"));
        let absent = ["explore", "editor_context", "search"].map(str::to_owned);
        let text = system(&surroundings(), &absent);
        for name in ["explore", "editor_context", "scouts", "search"] {
            assert!(!text.contains(name), "{name} is in {text}");
        }
        assert!(
            text.contains("\n- A <context> block in a message holds"),
            "{text}"
        );
        assert!(text.contains("# How to work\n- You change files"), "{text}");
    }

    #[test]
    fn a_scout_is_told_where_it_is_and_of_no_tool_that_it_has_not() {
        let mut surroundings = surroundings();
        let text = of_scout(&surroundings, &[]);
        assert!(text.contains("directory: /home/me/{{date}}\n"), "{text}");
        for word in ["Linux", "2026-01-02", "Workspace: /home/me\n"] {
            assert!(text.contains(word), "{word} is not in {text}");
        }
        for name in [
            "edit_file",
            "write_file",
            "job_output",
            "ask_person",
            "explore",
        ] {
            assert!(!text.contains(name), "{name} is in {text}");
        }
        surroundings.instruction_files = vec![InstructionFile {
            name: "CO.md".into(),
            text: "A".into(),
        }];
        let told = of_scout(&surroundings, &[]);
        assert!(told.starts_with(&text), "{told}");
        assert!(told.ends_with("counts.\n\n## CO.md\nA"), "{told}");
    }

    #[test]
    fn a_value_is_no_template() {
        assert!(system(&surroundings(), &[]).contains("directory: /home/me/{{date}}\n"));
    }

    #[test]
    fn trusted_instructions_are_told() {
        let mut surroundings = surroundings();
        let file = |name: &str, text: &str| InstructionFile {
            name: name.into(),
            text: text.into(),
        };
        surroundings.instruction_files = vec![file("a/CO.md", " Use tabs.\n"), file("CO.md", "B")];
        let text = system(&surroundings, &[]);
        assert!(
            text.ends_with("counts.\n\n## a/CO.md\nUse tabs.\n\n## CO.md\nB"),
            "{text}"
        );
        let long = "é".repeat(LONGEST_INSTRUCTIONS);
        assert_eq!(cut(&long).len(), LONGEST_INSTRUCTIONS);
    }
}
