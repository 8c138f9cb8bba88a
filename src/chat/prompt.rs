//! The system prompt, and the part of a transcript that fits into a request.
//!
//! It has no I/O. The text is in `prompt/system.md`, that for scouts in `prompt/scout.md`.

mod budget;
mod output_frame;

pub use budget::{Budget, Fit};

use co_llm::transcript::{InstructionFile, Surroundings};
use co_text::start_of;

const TEMPLATE: &str = include_str!("prompt/system.md");
const SCOUT_TEMPLATE: &str = include_str!("prompt/scout.md");

/// The most bytes of an instruction file that co sends: enough for any text that a person would read.
pub(super) const LONGEST_INSTRUCTIONS: usize = 32 * 1024;

/// The part of the system prompt about scouts.
const SCOUTS: &str = "\n- For a broad question about the project, send scouts by explore: they read much, and you read their short reports.";

const INSTRUCTIONS: &str = "# Instructions of the person and the workspace
If two of these files contradict each other, the one in the directory that is nearer to the working directory counts.
";

/// Returns the system prompt, for a model that may send scouts or not.
pub fn system(surroundings: &Surroundings, scouts: bool) -> String {
    let instructions = instructions(&surroundings.instruction_files);
    let values = [
        ("cwd", surroundings.cwd.as_str()),
        ("workspace", &surroundings.workspace),
        ("os", &surroundings.os),
        ("shell", &surroundings.shell),
        ("date", &surroundings.date),
        ("backend", &surroundings.backend),
        ("unasked", &surroundings.unasked),
        ("scouts", if scouts { SCOUTS } else { "" }),
        ("instructions", &instructions),
    ];
    fill(TEMPLATE, &values)
}

/// Returns the system prompt of a scout.
pub fn of_scout(surroundings: &Surroundings) -> String {
    let instructions = instructions(&surroundings.instruction_files);
    let values = [
        ("cwd", surroundings.cwd.as_str()),
        ("workspace", &surroundings.workspace),
        ("os", &surroundings.os),
        ("date", &surroundings.date),
        ("instructions", &instructions),
    ];
    fill(SCOUT_TEMPLATE, &values)
}

/// Returns the part of a system prompt with the texts of instruction files; empty if there are none.
pub(super) fn instructions(files: &[InstructionFile]) -> String {
    match files {
        [] => String::new(),
        files => format!("\n{INSTRUCTIONS}\n{}\n", InstructionFile::sections(files)),
    }
}

/// Returns the start of a file of instructions, which the model gets.
pub(super) fn cut(instructions: &str) -> &str {
    start_of(instructions.trim(), LONGEST_INSTRUCTIONS)
}

/// Fills a template in one pass, so that no value is read as a template.
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
            system(&surroundings, true),
            include_str!("../../tests/fixtures/system_prompt.txt").trim_end()
        );
    }

    #[test]
    fn every_place_in_the_template_is_filled() {
        let text = system(&surroundings(), true);
        assert!(!text.contains("{{") || text.contains("/home/me/{{date}}"));
        assert_eq!(text.matches("{{").count(), 1, "{text}");
        for word in ["Linux", "bash", "2026-01-02", "run at once", "this machine"] {
            assert!(text.contains(word), "{word} is not in {text}");
        }
        assert!(!text.contains("# Instructions"));
        assert!(text.contains("by explore"));
        assert!(!system(&surroundings(), false).contains("explore"));
    }

    #[test]
    fn a_scout_is_told_where_it_is_and_of_no_tool_that_it_has_not() {
        let mut surroundings = surroundings();
        let text = of_scout(&surroundings);
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
        let told = of_scout(&surroundings);
        assert!(told.starts_with(&text), "{told}");
        assert!(told.ends_with("counts.\n\n## CO.md\nA"), "{told}");
    }

    #[test]
    fn a_value_is_no_template() {
        assert!(system(&surroundings(), true).contains("directory: /home/me/{{date}}\n"));
    }

    #[test]
    fn trusted_instructions_are_told() {
        let mut surroundings = surroundings();
        let file = |name: &str, text: &str| InstructionFile {
            name: name.into(),
            text: text.into(),
        };
        surroundings.instruction_files = vec![file("a/CO.md", " Use tabs.\n"), file("CO.md", "B")];
        let text = system(&surroundings, true);
        assert!(
            text.ends_with("counts.\n\n## a/CO.md\nUse tabs.\n\n## CO.md\nB"),
            "{text}"
        );
        let long = "é".repeat(LONGEST_INSTRUCTIONS);
        assert_eq!(cut(&long).len(), LONGEST_INSTRUCTIONS);
    }
}
