//! The tool `search`.

use serde_json::{Value, json};

use super::Place;
use crate::protocol::BufferText;

#[test]
fn lines_are_found() {
    let place = Place::new(&[
        (".gitignore", "gone\n"),
        ("a.rs", "fn one() {}\n// a\nfn two() {}\n"),
        ("b.md", "fn three\n"),
        ("gone/c.rs", "fn four\n"),
    ]);
    let search = |arguments: Value, text: &str, summary: &str| {
        place.check("search", arguments, text, summary);
    };
    search(
        json!({"pattern": r"fn \w+\("}),
        "a.rs:1:fn one() {}\na.rs:3:fn two() {}\n",
        "2 matching lines in 1 file",
    );
    search(
        json!({"pattern": "FN", "ignore_case": true, "limit": 1}),
        "a.rs:1:fn one() {}\n",
        "3 matching lines in 2 files; 2 of them left out: narrow the search",
    );
    search(
        json!({"pattern": "one()", "literal": true, "context": 1}),
        "a.rs:1:fn one() {}\na.rs-2-// a\n",
        "1 matching line in 1 file",
    );
    search(
        json!({"pattern": "fn", "glob": "*.md"}),
        "b.md:1:fn three\n",
        "1 matching line in 1 file",
    );
    search(
        json!({"pattern": "fn", "glob": "!*.rs"}),
        "b.md:1:fn three\n",
        "1 matching line in 1 file",
    );
    search(
        json!({"pattern": "two", "path": "a.rs"}),
        "a.rs:3:fn two() {}\n",
        "1 matching line in 1 file",
    );
    search(json!({"pattern": "nothing like it"}), "", "no line matches");
    for (arguments, word) in [
        (json!({"pattern": "("}), "pattern"),
        (json!({"pattern": "a\\nb"}), "pattern"),
        (json!({"pattern": "a", "glob": "{"}), "glob"),
    ] {
        let error = place.take("search", arguments).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn unsaved_text_is_searched_instead_of_the_file() {
    let mut place = Place::new(&[
        (".gitignore", "ignored\n"),
        ("a.rs", "saved\n"),
        ("b.rs", "saved\n"),
        ("ignored", "saved\n"),
        ("locked.rs", "saved\n"),
    ]);
    for (name, text, problem) in [
        ("a.rs", "typed\n", None),
        ("ignored", "typed\n", None),
        ("locked.rs", "", Some("it is 'readonly'".to_owned())),
    ] {
        let buffer = BufferText {
            text: text.into(),
            problem,
            ..BufferText::default()
        };
        place.open.insert(place.work.join(name), buffer);
    }
    place.check(
        "search",
        json!({"pattern": "saved|typed"}),
        "a.rs:1:typed\nb.rs:1:saved\nlocked.rs:1:saved\n",
        "3 matching lines in 3 files; 1 searched with unsaved changes",
    );
}

#[test]
fn a_long_line_and_much_that_matches_stay_in_bounds() {
    let mut place = Place::new(&[
        ("long", &format!("{}\n", "y".repeat(5_000))),
        ("many", &"needle\n".repeat(5_000)),
    ]);
    place.bytes = 2_000;
    let seen = place
        .take("search", json!({"pattern": "needle|yyy", "limit": 1_000}))
        .unwrap();
    assert!(seen.text.len() < 2_100, "{}", seen.text.len());
    assert!(seen.text.starts_with("long:1:yyy") && seen.text.contains("[4500 more bytes"));
    assert!(
        seen.summary.starts_with("5001 matching lines in 2 files"),
        "{}",
        seen.summary
    );
}

#[test]
fn matches_in_many_files_are_in_order_and_the_first_ones_are_shown() {
    let names: Vec<_> = (0..400)
        .map(|file| format!("dir{}/file{:02}", file / 100, file % 100))
        .collect();
    let files: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), "needle\nbetween\nneedle\n"))
        .collect();
    let mut place = Place::new(&files);
    for (limit, bytes) in [(1, 30_000), (601, 30_000), (1_000, 30_000), (1_000, 5_000)] {
        let (mut text, mut shown) = (String::new(), 0);
        for (name, line) in names
            .iter()
            .flat_map(|name| [1, 2, 3].map(|line| (name, line)))
        {
            if shown >= limit || text.len() >= bytes {
                break;
            }
            shown += usize::from(line != 2);
            text.push_str(&match line {
                2 => format!("{name}-2-between\n"),
                _ => format!("{name}:{line}:needle\n"),
            });
        }
        let summary = match shown {
            800 => "800 matching lines in 400 files".to_owned(),
            shown => format!(
                "800 matching lines in 400 files; {} of them left out: narrow the search",
                800 - shown
            ),
        };
        place.bytes = bytes;
        let arguments = json!({"pattern": "needle", "context": 1, "limit": limit});
        place.check("search", arguments, &text, &summary);
    }
}
