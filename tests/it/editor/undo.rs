//! `/undo` and `/changes`.

use serde_json::json;

use crate::support::http::Reply;

use super::scene::Scene;

/// Waits until the question does not say that there is no undo.
pub(super) fn wait_checkpoint(scene: &Scene) {
    let asked = "vim.iter(vim.api.nvim_list_bufs()):find(function(buf) return vim.bo[buf].filetype == 'co-approval' end)";
    let text = format!("table.concat(vim.api.nvim_buf_get_lines({asked}, 0, -1, false))");
    let gone = format!("not {text}:find('no undo', 1, true)");
    scene.wait_for(&gone, "the first checkpoint");
}

#[test]
fn a_turn_is_taken_back_after_a_yes() {
    let edit = json!({ "path": "notes.txt", "edits": [{ "old": "two", "new": "2" }] });
    let scene = Scene::scripted([
        Reply::new().call("c1", "edit_file", &edit),
        Reply::shell("c2", "echo new > new.txt"),
        Reply::text("All through."),
    ]);
    scene.workspace.write("notes.txt", "one\ntwo\nthree\n");
    scene.command("split notes.txt");
    scene.co("change it");
    scene.approve();
    scene.wait_text("echo new");
    wait_checkpoint(&scene);
    scene.answer("y");
    scene.wait_chat("All through.");
    scene.command("Co /undo");
    for text in ["/undo  +1 -2", "of the turn", "- 2", "+ two"] {
        scene.wait_text(text);
    }
    assert!(scene.workspace.read("new.txt").is_some());
    scene.answer("y");
    scene.wait_text("files taken back");
    assert_eq!(
        scene.workspace.read("notes.txt").unwrap(),
        "one\ntwo\nthree\n"
    );
    assert!(scene.workspace.read("new.txt").is_none());
    let shown = "table.concat(vim.fn.getbufline('notes.txt', 1, '$')) == 'onetwothree'";
    scene.wait_for(shown, "the buffer is read again");
    assert_eq!(scene.eval("vim.bo.modified"), false);
}

#[test]
fn a_file_that_is_saved_during_a_command_is_the_persons() {
    let wait = "touch go; until [ -e end ]; do sleep 0.05; done; rm end; echo co > co.txt";
    let scene = Scene::scripted([Reply::shell("c1", wait), Reply::text("All through.")]);
    scene.workspace.write("notes.txt", "one\n");
    scene.command("edit notes.txt");
    scene.co("run it");
    scene.wait_ask("1/1");
    wait_checkpoint(&scene);
    scene.answer("y");
    let runs = "vim.uv.fs_stat(vim.fn.getcwd() .. '/go') ~= nil";
    scene.wait_for(runs, "the command runs");
    let back = "vim.fn.bufname() == 'notes.txt'";
    scene.wait_for(back, "the float gives the focus back");
    scene.command("call setline(1, 'mine')");
    scene.command("write");
    scene.workspace.write("end", "");
    scene.wait_chat("All through.");
    scene.command("Co /undo");
    scene.wait_text("at the same time, and stays: notes.txt");
    scene.answer("y");
    scene.wait_text("files taken back");
    assert_eq!(scene.workspace.read("notes.txt").unwrap(), "mine\n");
    assert!(scene.workspace.read("co.txt").is_none());
}

#[test]
fn what_a_job_changes_after_its_turn_is_taken_back() {
    let wait = "until [ -e end ]; do sleep 0.05; done; rm end; echo job | tee notes.txt > new.txt";
    let job = json!({ "cmd": wait, "background": true });
    let scene = Scene::scripted([
        Reply::new().call("c1", "run_shell_command", &job),
        Reply::text("It runs."),
    ]);
    scene.workspace.write("notes.txt", "one\n");
    scene.co("start it");
    scene.wait_ask("1/1");
    wait_checkpoint(&scene);
    scene.answer("y");
    scene.wait_chat("It runs.");
    scene.wait_turns(1);
    scene.command("Co /undo");
    scene.wait_text("while no command ran stays until the job has ended");
    scene.workspace.write("end", "");
    scene.wait_chat("ended: ");
    scene.command("Co /undo");
    scene.wait_text("of the turn “start it”");
    scene.answer("y");
    scene.wait_text("files taken back");
    assert_eq!(scene.workspace.read("notes.txt").unwrap(), "one\n");
    assert!(scene.workspace.read("new.txt").is_none());
    scene.command("Co /redo");
    scene.wait_text("/redo  +2 -1");
    scene.answer("y");
    scene.wait_text("files brought back");
    for file in ["notes.txt", "new.txt"] {
        assert_eq!(scene.workspace.read(file).unwrap(), "job\n");
    }
    scene.command("Co /changes");
    let entry = "vim.iter(vim.fn.getqflist()):any(function(it) return it.text:find('· job 1: until', 1, true) end)";
    scene.wait_for(entry, "the job's entry");
}

/// A scene with two turns that each changed a file.
fn two_turns() -> Scene {
    let write = |path: &str| json!({ "path": path, "text": "by co\n" });
    let scene = Scene::scripted([
        Reply::new().call("c1", "write_file", &write("one.txt")),
        Reply::text("First done."),
        Reply::new().call("c2", "write_file", &write("two.txt")),
        Reply::text("Second done."),
    ]);
    for (prompt, end) in [("make one", "First done."), ("make two", "Second done.")] {
        scene.co(prompt);
        scene.wait_ask("1/1");
        wait_checkpoint(&scene);
        scene.answer("y");
        scene.wait_chat(end);
    }
    scene.wait_turns(2);
    scene
}

fn has(scene: &Scene, one: bool, two: bool) {
    let found = ["one.txt", "two.txt"].map(|file| scene.workspace.exists(file));
    assert_eq!(found, [one, two]);
}

#[test]
fn a_rewind_takes_the_files_of_all_later_turns_back_and_then_the_chat() {
    let scene = two_turns();
    scene.co("/rewind");
    scene.wait_text("1: make two");
    scene.press("2<CR>");
    scene.wait_text("1: the chat and the files");
    scene.press("1<CR>");
    scene.wait_text("of the turn “make one” and all later ones");
    has(&scene, true, true);
    scene.answer("y");
    // The screen may show only the other notice, about the original.
    scene.wait_notice("2 files taken back");
    has(&scene, false, false);
    let draft = "vim.fn.getbufline('co://chat/1/prompt', 1, '$')[1] == 'make one'";
    scene.wait_for(draft, "the prompt is the draft");
    let text = scene.chat();
    assert!(
        !text.contains("make one") && !text.contains("done."),
        "{text}"
    );
    // The original has all of it, and brings the files back.
    let original = scene
        .chats()
        .into_iter()
        .find(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("Second done.")));
    let id = original
        .unwrap()
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    scene.co(&format!("/resume {id}"));
    scene.wait_chat("Second done.");
    scene.co("/redo");
    scene.wait_text("/redo  +2 -0");
    scene.answer("y");
    scene.wait_text("2 files brought back");
    has(&scene, true, true);
    scene.co("/changes");
    // The review may hide the list at once.
    let listed = |text: &str| {
        format!(
            "vim.iter(vim.fn.getqflist()):any(function(it) return it.text:find('{text}', 1, true) ~= nil end)"
        )
    };
    let approved = listed("write_file two.txt · approved");
    scene.wait_for(&approved, "the changes in the list");
    let back = listed("taken back");
    scene.wait_for(&format!("not {back}"), "nothing is taken back");
}

#[test]
fn a_rewind_that_can_take_no_file_back_leaves_the_chat() {
    let scene = two_turns();
    scene.workspace.write("two.txt", "mine\n");
    scene.co("/rewind 2 both");
    scene.wait_text("nothing was changed");
    assert_eq!(scene.workspace.read("two.txt").unwrap(), "mine\n");
    assert!(scene.chat().contains("make two"));
    assert_eq!(scene.chats().len(), 1);
}

#[test]
fn turns_that_were_brought_back_together_are_taken_back_together() {
    let scene = two_turns();
    for (command, end) in [
        ("/rewind 1 files", "2 files taken back"),
        ("/redo", "2 files brought back"),
    ] {
        scene.co(command);
        scene.approve();
        scene.wait_text(end);
    }
    scene.co("/rewind 2 files");
    scene.wait_text("take all of them back with /undo");
    has(&scene, true, true);
}

#[test]
fn a_rewind_takes_the_files_or_the_chat_back_alone() {
    let scene = two_turns();
    scene.co("/rewind 2 files");
    scene.wait_text("/rewind  +0 -1");
    scene.answer("y");
    scene.wait_text("1 file taken back");
    has(&scene, true, false);
    scene.wait_chat("Second done.");
    scene.co("/redo");
    scene.wait_text("/redo  +1 -0");
    scene.answer("y");
    scene.wait_text("1 file brought back");
    scene.co("/rewind 2 chat");
    scene.wait_text("finds the original");
    has(&scene, true, true);
    let text = scene.chat();
    assert!(
        text.contains("First done.") && !text.contains("make two"),
        "{text}"
    );
    // The copy knows nothing of the second turn.
    scene.co("/undo");
    scene.wait_text("of the turn “make one”");
    scene.answer("y");
    scene.wait_text("1 file taken back");
    has(&scene, false, true);
    scene.server.reply(Reply::text("Another way."));
    scene.co("make two otherwise");
    scene.wait_chat("Another way.");
    assert_eq!(scene.chats().len(), 2);
}
