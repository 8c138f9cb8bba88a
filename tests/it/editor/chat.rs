//! `:Co`: turns, what is on disk of them, and what goes wrong.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::http::{Gate, Reply};

use super::scene::{Scene, wait_gone};

#[test]
fn an_answer_streams_into_the_chat_and_onto_the_disk() {
    let gate = Gate::default();
    let scene = Scene::scripted([Reply::text("First half,").hold(&gate).say(" second half.")]);
    scene.co("tell me");
    let lines = scene.wait_text("First half,");
    assert!(
        lines.iter().any(|line| line.contains("answering")),
        "{lines:#?}"
    );
    assert!(
        lines.iter().any(|line| line.contains("─ You ─")),
        "{lines:#?}"
    );
    let on_disk = format!("{:?}", scene.items());
    assert!(on_disk.contains("First half,"), "{on_disk}");
    gate.open();
    scene.wait_text("First half, second half.");
    scene.wait_turns(1);
    let items = scene.items();
    let kinds: Vec<_> = items
        .iter()
        .filter_map(|item| item["item"].as_str())
        .collect();
    assert_eq!(kinds.first(), Some(&"user"));
    assert_eq!(kinds.last(), Some(&"end"));
    assert_eq!(items.last().unwrap()["reason"], "done");
    let mode = std::fs::metadata(&scene.chats()[0])
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    scene.wait_text("10 in 5 out");
}

#[test]
fn ctrl_c_ends_a_turn_that_runs_a_command() {
    let both = Reply::shell("c1", "sleep 103; touch out").and_shell("c2", "touch later");
    let scene = Scene::scripted([both, Reply::text("On we go.")]);
    scene.co("wait");
    scene.answer_ask("1/2", "y");
    let sleeping = scene.wait_below("sleep 103");
    scene.interrupt();
    scene.wait_turns(1);
    wait_gone(&sleeping);
    assert!(!scene.workspace.exists("out") && !scene.workspace.exists("later"));
    scene.assert_outcomes(2);
    scene.co("go on");
    scene.wait_chat("On we go.");
    scene.wait_turns(2);
}

/// The first and the last line of the closed folds of the first chat.
const FOLDS: &str = "local found, line = {}, 1
    vim.api.nvim_win_call(vim.fn.win_findbuf(vim.fn.bufnr('^co://chat/1{,/co: *}$'))[1], function()
        while line <= vim.fn.line('$') do
            local last = vim.fn.foldclosedend(line)
            if last > 0 then table.insert(found, { line, last }) end
            line = math.max(line, last) + 1
        end
    end)
    return found";

#[test]
fn a_resumed_chat_looks_as_it_did() {
    let mut scene = Scene::scripted([
        Reply::new()
            .think("A long\nthought")
            .say("I look first.")
            .and_shell("c1", "cat numbers")
            .and_shell("c2", "cat numbers nothing | head -3")
            .and_shell("c3", "mkdir made; ls missing")
            .and_shell("c4", "touch denied")
            .and_shell("c5", "true > empty")
            .call("c6", "read_file", &json!({ "path": "fences.md" }))
            .and_shell("c7", "cat fences.md"),
        Reply::text("All of it."),
        Reply::text("Half an ans")
            .and_shell("c8", "touch later")
            .hold(&Gate::default()),
        Reply::shell("c9", "touch never"),
    ]);
    let numbers: String = (1..=30)
        .map(|number| format!("number {number} {}\n", "x".repeat(number)))
        .collect();
    scene.workspace.write("numbers", &numbers);
    scene.workspace.write("fences.md", "````\n`````lua\n");
    scene.co("tell me");
    for (place, key) in [("1/3", "y"), ("1/2", "n"), ("1/1", "y")] {
        scene.answer_ask(place, key);
    }
    scene.wait_chat("All of it.");
    scene.wait_turns(1);
    scene.co("and this");
    scene.wait_chat("Half an ans");
    scene.type_keys(":Co /stop<CR>");
    scene.wait_turns(2);
    scene.co("and that");
    scene.wait_ask("1/1");
    scene.type_keys(":Co /stop<CR>");
    scene.wait_turns(3);
    let shown = scene.chat();
    assert!(shown.contains("thought\nI look first."), "{shown}");
    let folds = scene.lua(FOLDS, json!([]));
    assert_eq!(folds.as_array().map(Vec::len), Some(3), "{folds}\n{shown}");
    let id = scene.chat_id();
    scene.restart();
    scene.co(&format!("/resume {id}"));
    scene.wait_chat("and that");
    assert_eq!(scene.chat(), shown);
    assert_eq!(scene.lua(FOLDS, json!([])), folds);
}
