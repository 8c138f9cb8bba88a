//! The question whether a workspace's instructions may be sent to the model.

use serde_json::json;

use crate::support::http::Reply;
use crate::support::workspace::Workspace;

use super::scene::Scene;

const PENDING: &str = "#require('co.question').pending()";

/// Sends a prompt and returns all that the model gets with it.
#[track_caller]
fn told(scene: &Scene, prompt: &str) -> String {
    let before = scene.server.requests().len();
    let turns = scene.events("CoTurnDone");
    scene.co(prompt);
    let requests = scene.server.wait_requests(before + 1);
    scene.wait_turns(turns + 1);
    requests[before].body.to_string()
}

#[test]
fn keys_typed_ahead_of_the_question_trust_nothing() {
    let workspace = Workspace::new();
    workspace.write("AGENTS.md", "Use tabs.\n");
    let mut scene = Scene::in_workspace(workspace, json!({}), &[]);
    for _ in 0..3 {
        scene.server.reply(Reply::text("Aye."));
    }
    scene.workspace.write("notes.txt", "one\ntwo\nthree\n");
    scene.type_keys(":edit notes.txt<CR>");
    scene.wait_text("three");
    scene.type_keys(":Co hi<CR>jja");
    scene.wait_ask("1/1");
    scene.wait_mode("i");
    scene.type_keys("yay<Esc>");
    scene.wait_for(
        "table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '|') == 'one|two|tyayhree'",
        "the keys in the buffer",
    );
    scene.wait_turns(1);
    let asked = scene.server.requests()[0].body.to_string();
    assert!(!asked.contains("Use tabs."), "{asked}");
    assert_eq!(scene.eval(PENDING), 1);
    scene.answer("y");
    scene.wait_text("AGENTS.md is sent to the model from the next prompt on");
    assert!(told(&scene, "and now").contains("Use tabs."));
    scene.restart();
    assert!(told(&scene, "another Neovim").contains("Use tabs."));
    assert_eq!(scene.eval(PENDING), 0);
}

#[test]
fn a_prompt_file_waits_for_its_trust_with_its_range_and_contexts() {
    let workspace = Workspace::new();
    workspace.write(".co/prompts/see.md", "See $1 in @file:notes.txt.\n");
    workspace.write("notes.txt", "one\ntwo\nthree\n");
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.server.reply(Reply::text("Aye."));
    scene.type_keys(":edit notes.txt<CR>");
    scene.wait_text("three");
    scene.type_keys(":2Co /see it<CR>");
    scene.wait_ask("1/1");
    scene.answer("y");
    let request = scene.server.wait_requests(1)[0].body.to_string();
    for part in ["See it in", "one\\ntwo\\nthree", "@selection notes.txt:2"] {
        assert!(request.contains(part), "{part}: {request}");
    }
    scene.wait_turns(1);

    scene.workspace.write(".co/prompts/see.md", "See $1.\n");
    scene.type_keys(":Co<CR>i/see all<C-s><Esc>");
    scene.wait_ask("1/1");
    scene.answer("n");
    scene.wait_buffer("co://chat/1/prompt", "/see all");
    assert_eq!(scene.server.requests().len(), 1);
}
