//! Edits of public test suites, as data: see `cases/README.md`.

use std::fs;
use std::path::Path;

use co_edit::{Edit, FileText, Refusal, apply};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    file: String,
    edits: Vec<Edit>,
    /// The file after the edits.
    result: Option<String>,
    /// A place differs in white space.
    #[serde(default)]
    white_space: bool,
    /// The refusal in words.
    refused: Option<String>,
}

/// Returns a refusal in words, with its lines.
fn words(refusal: &Refusal) -> String {
    let list = |lines: &[usize]| {
        let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
        lines.join(", ")
    };
    match refusal {
        Refusal::NoEdits => "no edits".to_owned(),
        Refusal::EmptyOld => "empty".to_owned(),
        Refusal::NothingToDo => "nothing to do".to_owned(),
        Refusal::Unchanged => "unchanged".to_owned(),
        Refusal::Several(lines) => format!("several at {}", list(lines)),
        Refusal::SeveralLoose(lines) => format!("several with other space at {}", list(lines)),
        Refusal::Overlap { earlier, line } => format!("overlap with {earlier} at {line}"),
        Refusal::Indentation(nearest) => format!("indentation at {}", nearest.first),
        Refusal::Absent(nearest) => format!("absent at {}", nearest.first),
        Refusal::NothingNear => "nothing near".to_owned(),
    }
}

#[test]
fn edits_of_public_test_suites() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut count = 0;
    let mut wrong = Vec::new();
    for suite in [
        "codex",
        "roo-code",
        "continue",
        "gemini-cli",
        "opencode",
        "codecompanion",
    ] {
        let text = fs::read_to_string(dir.join(suite).with_extension("json")).unwrap();
        let cases: Vec<Case> = serde_json::from_str(&text).unwrap();
        for case in cases {
            count += 1;
            let file = FileText::decode(case.file.as_bytes()).unwrap();
            let found = match apply(&file, &case.edits) {
                Ok(edited) => Ok((
                    String::from_utf8(edited.file.encode().unwrap()).unwrap(),
                    !edited.notes.is_empty(),
                )),
                Err(error) => Err(words(&error.refusal)),
            };
            let expected = match (case.result, case.refused) {
                (Some(result), None) => Ok((result, case.white_space)),
                (None, Some(refused)) => Err(refused),
                _ => panic!("{suite}, {}: it has one of result and refused", case.name),
            };
            if found != expected {
                wrong.push(format!(
                    "{suite}, {}:\n  {found:?}\n  {expected:?}",
                    case.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 80, "only {count} cases were found");
}
