//! The backend is killed while it makes a change: the file is whole, and `/undo` takes the change back.

use std::time::Duration;

use serde_json::json;

use crate::support::http::Reply;
use crate::support::{DEADLINE, proc};

use super::scene::Scene;
use super::undo::wait_checkpoint;

/// The times between the yes and the kill, in milliseconds. How far the change is by then depends on the machine.
const TIMES: [u64; 10] = [0, 2, 4, 6, 9, 12, 16, 22, 30, 45];
const LINES: usize = 20_000;

fn text(first: &str) -> String {
    let rest: String = (1..LINES).map(|line| format!("line {line}\n")).collect();
    format!("{first}\n{rest}")
}

/// The moment of the kill.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// The time since the yes.
    After(Duration),
    /// As soon as the file is changed.
    Changed,
}

/// Answers yes, kills the backend at `moment` and returns whether the change was made.
fn kill_at(moment: Moment, open: bool) -> bool {
    let edit = json!({ "path": "notes.txt", "edits": [{ "old": "before\n", "new": "after\n" }] });
    let scene = Scene::scripted([
        Reply::new().call("c1", "edit_file", &edit),
        Reply::text("All through."),
    ]);
    let (old, new) = (text("before"), text("after"));
    let read = || scene.workspace.read("notes.txt");
    scene.workspace.write("notes.txt", &old);
    if open {
        scene.nvim.command("edit notes.txt");
    }
    scene.co("change it");
    scene.wait_ask("1/1");
    wait_checkpoint(&scene);
    let backend = scene.backend();
    scene.answer("y");
    match moment {
        Moment::After(time) => proc::pass(time),
        Moment::Changed => proc::wait_until(DEADLINE, "the change", || {
            (read().as_deref() == Some(&*new)).then_some(())
        }),
    }
    proc::kill9(backend);
    scene
        .nvim
        .wait_for("not require('co.backend').status().running", "the end");
    let now = read().unwrap();
    assert!(now == old || now == new, "half a file at {moment:?}");
    if now == new {
        scene.nvim.command("Co /undo");
        scene.nvim.wait_text("/undo  +1 -1");
        scene.answer("y");
        scene.nvim.wait_text("1 file taken back");
        assert_eq!(read().unwrap(), old);
    }
    now == new
}

#[test]
fn a_file_is_whole_and_undo_works_after_a_kill_at_any_moment() {
    for open in [false, true] {
        for time in TIMES {
            kill_at(Moment::After(Duration::from_millis(time)), open);
        }
        assert!(kill_at(Moment::Changed, open));
    }
}

/// Kills the backend as soon as a call has changed its file, and takes the change back.
fn kill_when_changed(tool: &str, arguments: &serde_json::Value, changed: impl Fn(&Scene) -> bool) {
    let scene = Scene::scripted([
        Reply::new().call("c1", tool, arguments),
        Reply::text("All through."),
    ]);
    scene.workspace.write("notes.txt", "before\n");
    scene.co("change it");
    scene.wait_ask("1/1");
    wait_checkpoint(&scene);
    let backend = scene.backend();
    scene.answer("y");
    proc::wait_until(DEADLINE, "the change", || changed(&scene).then_some(()));
    proc::kill9(backend);
    scene
        .nvim
        .wait_for("not require('co.backend').status().running", "the end");
    scene.nvim.command("Co /undo");
    scene.nvim.wait_text("/undo  +");
    scene.answer("y");
    scene.nvim.wait_text("taken back");
    assert_eq!(scene.workspace.read("notes.txt").unwrap(), "before\n");
    assert!(!scene.workspace.exists("dir"));
}

#[test]
fn files_that_are_made_deleted_and_moved_come_back_after_a_kill() {
    let new = json!({ "path": "dir/new.txt", "text": "co\n" });
    kill_when_changed("write_file", &new, |it| it.workspace.exists("dir/new.txt"));
    let old = json!({ "path": "notes.txt" });
    kill_when_changed("delete_file", &old, |it| !it.workspace.exists("notes.txt"));
    let both = json!({ "from": "notes.txt", "to": "dir/new.txt" });
    kill_when_changed("move_file", &both, |it| it.workspace.exists("dir/new.txt"));
}
