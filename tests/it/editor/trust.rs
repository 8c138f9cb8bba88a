//! The question whether a workspace's instructions may be sent to the model.

use serde_json::json;

use crate::support::http::Reply;
use crate::support::workspace::Workspace;

use super::scene::Scene;

/// A scene whose workspace has instructions, and whose model answers that often.
fn with_instructions(answers: usize) -> Scene {
    let workspace = Workspace::new();
    workspace.write("AGENTS.md", "Use tabs.\n");
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    for _ in 0..answers {
        scene.server.reply(Reply::text("Aye."));
    }
    scene
}

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

#[track_caller]
fn pending(scene: &Scene) -> u64 {
    let count = scene.eval("#require('co.question').pending()");
    count.as_u64().unwrap()
}

#[test]
fn keys_typed_ahead_of_the_question_trust_nothing() {
    let mut scene = with_instructions(5);
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
    assert_eq!(pending(&scene), 1);
    assert!(
        !scene
            .home
            .path()
            .join("state/co-nvim/trust/files.toml")
            .exists()
    );
    let screen = scene.wait_text("Use tabs.").join("\n");
    for part in ["co 1/1 · AGENTS.md", "AGENTS.md · 10 bytes"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    scene.wait_chat("> AGENTS.md is not sent to the model until you trust it");

    // It still waits after it was put away, and a prompt is sent without the text meanwhile.
    scene.answer("q");
    let screen = scene.wait_screen(|lines| !lines.concat().contains("co 1/1"), "no question");
    assert!(screen.concat().contains("tyayhree"));
    assert!(!told(&scene, "again").contains("Use tabs."));
    assert_eq!(pending(&scene), 1);

    scene.answer("y");
    scene.wait_text("AGENTS.md is sent to the model from the next prompt on");
    assert!(told(&scene, "and now").contains("Use tabs."));
    scene.wait_chat("> co told the model: These instructions hold from now on");

    scene.restart();
    assert!(told(&scene, "another Neovim").contains("Use tabs."));
    assert_eq!(pending(&scene), 0);

    scene.workspace.write("AGENTS.md", "Use spaces.\n");
    let asked = told(&scene, "changed");
    assert!(!asked.contains("Use spaces."), "{asked}");
    assert!(asked.contains("no longer hold"), "{asked}");
    let screen = scene.wait_ask("1/1").join("\n");
    assert!(screen.contains("Use spaces."), "{screen}");
    assert!(screen.contains("its text changed since"), "{screen}");
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
