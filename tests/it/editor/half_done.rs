//! Commands of the person that are half done while a command or an edit changes their file.

use serde_json::json;

use crate::support::http::{Gate, Reply};

use super::scene::{Scene, gate, open_gate};

/// The text of the file: numbers, a line each.
fn numbers() -> Vec<String> {
    (1..=30).map(|number| number.to_string()).collect()
}

/// Opens a file of numbers.
fn open(scene: &Scene) {
    scene
        .workspace
        .write("a.txt", &(numbers().join("\n") + "\n"));
    scene.command("edit a.txt");
}

fn lines(scene: &Scene) -> Vec<String> {
    let text = scene.eval("vim.fn.getbufline('a.txt', 1, '$')");
    serde_json::from_value(text).unwrap()
}

#[test]
fn a_command_that_writes_the_file_waits_for_the_answers_of_a_substitution() {
    let scene = Scene::new();
    open(&scene);
    let fifo = gate(&scene.workspace, "fifo");
    scene.run("cat fifo; sed -i '1i z' a.txt");
    scene.wait_shell("$ cat fifo");
    scene.type_keys("<C-w>p:20,22s/2/X/c<CR>");
    scene.wait_mode("r?");
    open_gate(&fifo);
    scene.wait_shell("exit 0");
    scene.type_keys("yyy");
    scene.wait_notice("changed on disk");
    let mut expected = numbers();
    for line in [19, 20, 21] {
        expected[line] = expected[line].replacen('2', "X", 1);
    }
    assert_eq!(lines(&scene), expected);
}

/// A scene in which an allowed edit comes while the person has selected lines.
fn edit_during_a_selection() -> Scene {
    let scene = Scene::with(json!({ "auto_confirm": true }), &[]);
    let reply = Gate::default();
    let edit = json!({ "path": "a.txt", "edits": [{ "old": "1\n2\n", "new": "1\nz\n2\n" }] });
    scene.replies([
        Reply::new().hold(&reply).call("c1", "edit_file", &edit),
        Reply::text("All through."),
    ]);
    open(&scene);
    scene.co("change it");
    scene.wait_chat("change it");
    scene.type_keys("<Esc><C-w>t25GVj");
    scene.wait_mode("V");
    reply.open();
    scene.wait_text("waits for your command: edit_file a.txt");
    assert_eq!(lines(&scene), numbers());
    scene
}

#[test]
fn an_edit_waits_for_the_operator_of_a_selection() {
    let scene = edit_during_a_selection();
    scene.type_keys("d");
    scene.wait_chat("All through.");
    let mut expected = numbers();
    expected.drain(24..26);
    expected.insert(1, "z".to_owned());
    assert_eq!(lines(&scene), expected);
    let told = scene.told(1);
    assert!(told.starts_with("Done: a.txt +1 -0."), "{told}");
}

#[test]
fn a_stop_ends_the_wait_of_an_edit() {
    let scene = edit_during_a_selection();
    scene.type_keys(":<C-u>Co /stop<CR>");
    scene.wait_turns(1);
    scene.wait_chat("cancelled");
    assert_eq!(lines(&scene), numbers());
    let text = scene.workspace.read("a.txt").unwrap();
    assert_eq!(text, numbers().join("\n") + "\n");
    scene.assert_outcomes(1);
    // The second answer is not asked for.
    scene.server.forget();
}
