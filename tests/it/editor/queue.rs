//! Several calls of one step: their order, and their questions as one queue.

use serde_json::json;

use crate::support::http::Reply;

use super::scene::Scene;

/// Keys that yank a line and put it below, where they reach a buffer that may be changed.
const STRAY: &str = "yyp";

/// A scene whose model asks for these commands in one step, and a buffer of the person's own.
fn step(commands: &[&str]) -> Scene {
    let calls = commands.iter().enumerate();
    let reply = calls.fold(Reply::new(), |reply, (index, cmd)| {
        let id = format!("c{}", index + 1);
        reply.call(&id, "run_shell_command", &json!({ "cmd": cmd }))
    });
    let scene = Scene::scripted([reply, Reply::text("All through.")]);
    scene.type_keys("imine<Esc>");
    scene
}

/// Waits until the person is back in their own buffer, and checks that no key changed it.
#[track_caller]
fn assert_home(scene: &Scene) {
    let home = "vim.api.nvim_buf_get_name(0) == '' and vim.bo.filetype == ''";
    scene.wait_for(home, "the person's own window");
    scene.wait_mode("n");
    assert_eq!(scene.buffer_text("").as_deref(), Some("mine"));
    let yanked = scene.eval("vim.fn.getreg('0')");
    assert_eq!(yanked, "", "a key yanked something");
}

#[test]
fn the_float_keeps_the_focus_until_the_last_answer_and_no_key_after_it_reaches_a_buffer() {
    let scene = step(&["touch f1", "touch f2", "touch f3"]);
    scene.co("make them");
    scene.answer_ask("1/3", "yyy");
    scene.wait_ask("1/2");
    scene.wait_text("│touch f2 ");
    scene.press("n");
    scene.wait_ask("1/1");
    scene.wait_text("│touch f3 ");
    scene.press(&format!("y{STRAY}"));
    scene.type_keys(STRAY);
    scene.wait_chat("All through.");
    assert_home(&scene);
    let made = ["f1", "f2", "f3"].map(|name| scene.workspace.exists(name));
    assert_eq!(made, [true, false, true]);
    scene.assert_outcomes(3);
}

#[test]
fn the_list_approves_nothing_that_opens_a_secret_or_leaves_the_workspace() {
    let away = tempfile::tempdir().unwrap();
    let outside = format!("touch {}", away.path().join("out").display());
    let scene = step(&["touch f1", "cp .env copy", &outside]);
    scene.workspace.write(".env", "KEY=value\n");
    scene.co("make them");
    scene.answer_ask("1/3", "Y");
    scene.wait_text("y approves 1 of these 3");
    scene.wait_text("`.env` looks like a secret");
    scene.wait_text("is outside the workspace");
    scene.press("y");
    scene.wait_ask("1/2");
    scene.press("gN");
    scene.wait_chat("All through.");
    assert!(scene.workspace.exists("f1") && !scene.workspace.exists("copy"));
    assert!(!away.path().join("out").exists());
}
