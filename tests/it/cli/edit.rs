//! `co-nvim edit` as a person uses it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{BACKEND, output_of};

fn edit(dir: &Path, args: &[&str], request: &str) -> Output {
    let mut command = Command::new(BACKEND);
    command.args(["edit", "--cwd"]).arg(dir).args(args);
    command.env("HOME", dir).env_remove("XDG_CONFIG_HOME");
    output_of(&mut command, request.as_bytes())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const DIFF: &str = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
const REQUEST: &str = r#"{"path": "f", "edits": [{"old": "two", "new": "2"}]}"#;

#[test]
fn the_file_changes_and_the_difference_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f");
    fs::write(&file, "one\ntwo\n").unwrap();
    let dry = edit(dir.path(), &["--dry-run"], REQUEST);
    assert_eq!(
        (dry.status.code(), text(&dry.stdout)),
        (Some(0), DIFF.to_owned())
    );
    assert_eq!(fs::read(&file).unwrap(), b"one\ntwo\n");
    let done = edit(dir.path(), &[], REQUEST);
    assert_eq!(
        (done.status.code(), text(&done.stdout)),
        (Some(0), DIFF.to_owned())
    );
    assert_eq!(fs::read(&file).unwrap(), b"one\n2\n");
}

#[test]
fn json_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f"), "one\n  two  = 2\n").unwrap();
    let request = r#"{"name": "edit_file", "arguments": {"path": "f", "edits": [{"old": "two = 2", "new": "2"}]}}"#;
    let done = edit(dir.path(), &["--json"], request);
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    let told = json!([said["path"], said["added"], said["removed"], said["hash"]]);
    assert_eq!(told, json!(["f", 1, 1, "ad1a95b4bf9b9765"]));
    let note = said["notes"][0].as_str().unwrap();
    assert!(
        note.starts_with("edit 1 replaced line 2, which differs"),
        "{note}"
    );
}

#[test]
fn a_refusal_is_one_sentence_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f");
    fs::write(&file, "two two\n").unwrap();
    let refused = edit(dir.path(), &["--json"], REQUEST);
    assert_eq!(
        (refused.status.code(), text(&refused.stdout)),
        (Some(1), String::new())
    );
    assert_eq!(
        text(&refused.stderr),
        "co-nvim: cannot change f: `old` stands 2 times, at line 1: add lines around the right one, or set `all` \
         to replace every one\n"
    );
    assert_eq!(fs::read(&file).unwrap(), b"two two\n");
    let wrong = edit(dir.path(), &["--what"], REQUEST);
    assert_eq!(wrong.status.code(), Some(2));
}
