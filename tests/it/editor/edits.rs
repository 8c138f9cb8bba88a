//! Changes of files by the model's tools.

use serde_json::json;

use crate::support::http::Reply;

use super::scene::Scene;

/// A scene whose model changes a file and then says that it is through.
fn changes_a_file() -> Scene {
    let edit = json!({ "path": "notes.txt", "edits": [{ "old": "two", "new": "2\n3" }] });
    let scene = Scene::scripted([
        Reply::new().call("c1", "edit_file", &edit),
        Reply::text("All through."),
    ]);
    scene.workspace.write("notes.txt", "one\r\ntwo\r\n");
    scene.co("change it");
    scene.wait_ask("1/1");
    scene
}

#[test]
fn yes_makes_the_change_that_the_float_shows() {
    let scene = changes_a_file();
    for text in ["edit_file notes.txt  +2 -1", "-two", "+2", "+3"] {
        scene.nvim.wait_text(text);
    }
    assert_eq!(scene.workspace.read("notes.txt").unwrap(), "one\r\ntwo\r\n");
    scene.answer("y");
    let text = scene.wait_chat("All through.");
    assert_eq!(
        scene.workspace.read("notes.txt").unwrap(),
        "one\r\n2\r\n3\r\n"
    );
    let at = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("no {part} in {text}"))
    };
    let order = [
        "`edit_file notes.txt`",
        "*approved*",
        "-two",
        "*+2 -1*",
        "All through.",
    ];
    assert!(order.map(at).is_sorted(), "{text}");
    let told = scene.server.requests()[1].last("tool").unwrap();
    assert!(told.starts_with("Done: notes.txt +2 -1."), "{told}");
}

#[test]
fn no_changes_nothing() {
    let scene = changes_a_file();
    scene.answer("n");
    scene.wait_chat("All through.");
    assert_eq!(scene.workspace.read("notes.txt").unwrap(), "one\r\ntwo\r\n");
    let told = scene.server.requests()[1].last("tool").unwrap();
    assert_eq!(told, "User denied this action");
}

#[test]
fn a_clean_buffer_shows_the_new_text() {
    let scene = changes_a_file();
    scene.nvim.command("split notes.txt");
    scene.answer("y");
    scene.wait_chat("All through.");
    let shown = "table.concat(vim.fn.getbufline('notes.txt', 1, '$'), '|') == 'one|2|3'";
    scene.nvim.wait_for(shown, "the buffer is read again");
}
