//! The question whether a command may run.

use crate::support::http::Reply;

use super::scene::Scene;

#[test]
fn quitting_asks_first_and_is_no_denial() {
    let mut scene = Scene::scripted([Reply::shell("c1", "mkdir out")]);
    scene.co("make it");
    scene.wait_ask("1/1");
    let all = scene.descendants();
    scene.type_keys(":qa<CR>");
    scene.wait_text("No write since last change for buffer \"co://unanswered: mkdir out\"");
    scene.type_keys("<CR>");
    scene.wait_text("1 question waits: :qa! quits anyway");
    scene.wait_ask("1/1");
    scene.type_keys(":qa!<CR>");
    assert!(scene.wait_exit().success());
    super::scene::wait_gone(&all);
    assert!(!scene.workspace.exists("out"));
    scene.assert_outcomes(1);
    let items = scene.items();
    let outcome = items.iter().find(|item| item["item"] == "outcome");
    assert_eq!(outcome.unwrap()["text"], "not answered: co was closed");
    let last = items.last().unwrap();
    assert_eq!(last["reason"], "interrupted", "nobody cancelled the turn");
}

#[test]
fn a_written_command_that_is_not_utf_8_is_asked_about_again() {
    let scene = Scene::scripted([Reply::shell("c1", "mkdir out"), Reply::text("All through.")]);
    scene.co("make it");
    scene.command(r#"call setreg('a', "mk\xffdir\xff out")"#);
    scene.answer_ask("1/1", "e");
    scene.wait_for("vim.bo.filetype == 'co-command'", "the command");
    scene.type_keys("\"aP<C-s>");
    scene.wait_text("what you wrote was not run: it is not all UTF-8");
    scene.press("y");
    scene.wait_chat("All through.");
    assert!(scene.workspace.exists("out"));
}

#[test]
fn the_list_approves_nothing_that_opens_a_secret_or_leaves_the_workspace() {
    let away = tempfile::tempdir().unwrap();
    let outside = format!("touch {}", away.path().join("out").display());
    let calls = Reply::shell("c1", "touch f1").and_shell("c2", "cp .env copy");
    let calls = calls.and_shell("c3", &outside);
    let scene = Scene::scripted([calls, Reply::text("All through.")]);
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

#[test]
fn a_text_window_that_moves_to_a_tab_page_crashes_nothing() {
    let scene = Scene::scripted([Reply::shell("1", "touch made"), Reply::text("Done.")]);
    scene.co("go on");
    scene.wait_ask("1/1");
    scene.answer("e");
    scene.wait_for("vim.bo.filetype == 'co-command'", "the text window");
    scene.type_keys("<C-w>T");
    scene.wait_for("vim.fn.tabpagenr('$') == 2", "the tab page");
    scene.wait_ask("1/1");
    scene.type_keys(":q<CR>");
    scene.wait_for("vim.fn.tabpagenr('$') == 1", "the tab page to close");
    scene.wait_text("co://chat/1/prompt");
}
