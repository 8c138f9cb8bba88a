//! `:Co`: turns, what is on disk of them, and what goes wrong.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::http::{Gate, Reply};
use crate::support::{DEADLINE, proc};

use super::scene::{Scene, below, wait_gone};

/// The roles and texts of what a request tells of the conversation.
fn told(body: &Value) -> Vec<(String, String)> {
    let messages = body["messages"].as_array().unwrap();
    let pair = |message: &Value| {
        let text = message["content"].as_str().map(str::to_owned);
        let text = text.unwrap_or_else(|| message["content"].to_string());
        (message["role"].as_str().unwrap().to_owned(), text)
    };
    messages.iter().map(pair).collect()
}

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
        lines.iter().any(|line| line.contains("## You")),
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
fn ctrl_c_ends_a_turn_that_streams() {
    let scene = Scene::scripted([
        Reply::text("Half an ans")
            .call("c1", "run_shell_command", &json!({ "cmd": "touch out" }))
            .hold(&Gate::default()),
        Reply::text("Whole."),
    ]);
    scene.co("tell me");
    scene.wait_chat("Half an ans");
    scene.type_keys(":Co<CR>");
    scene.wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
    scene.type_keys("<C-c>");
    scene.wait_turns(1);
    scene.server.wait_hangups(1);
    let text = scene.wait_chat("> cancelled");
    assert!(text.contains("Half an ans"), "{text}");
    assert_eq!(scene.items().last().unwrap()["reason"], "cancelled");
    scene.co("again");
    scene.wait_chat("Whole.");
    scene.wait_turns(2);
    let calls = scene
        .items()
        .iter()
        .filter(|item| item["item"] == "call")
        .count();
    scene.assert_outcomes(calls);
    assert!(!scene.workspace.exists("out"));
}

#[test]
fn ctrl_c_ends_a_turn_that_runs_a_command() {
    let both = Reply::shell("c1", "touch begun; sleep 103; touch out").call(
        "c2",
        "run_shell_command",
        &json!({ "cmd": "touch later" }),
    );
    let scene = Scene::scripted([both, Reply::text("On we go.")]);
    scene.co("wait");
    scene.wait_ask("1/2");
    scene.answer("y");
    let sleeping = proc::wait_until(DEADLINE, "sleep", || {
        let found = below(scene.pid(), "sleep 103");
        (!found.is_empty() && scene.workspace.exists("begun")).then_some(found)
    });
    scene.type_keys(":Co<CR>");
    scene.wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
    scene.type_keys("<C-c>");
    scene.wait_turns(1);
    wait_gone(&sleeping);
    assert!(!scene.workspace.exists("out") && !scene.workspace.exists("later"));
    scene.assert_outcomes(2);
    scene.co("go on");
    scene.wait_chat("On we go.");
    scene.wait_turns(2);
}

#[test]
fn ctrl_c_ends_a_turn_that_waits_to_try_again() {
    let scene = Scene::scripted([Reply::status(500, "down").header("retry-after", "200")]);
    scene.co("tell me");
    scene.wait_text("retrying in ");
    scene.type_keys(":Co<CR>");
    scene.wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
    scene.type_keys("<C-c>");
    scene.wait_turns(1);
    scene.wait_no_text("retrying");
    assert_eq!(scene.server.requests().len(), 1);
}

#[test]
fn another_neovim_resumes_the_conversation() {
    let mut scene = Scene::scripted([
        Reply::shell("c1", "mkdir out"),
        Reply::text("The folder is there."),
        Reply::text("Yes, out."),
    ]);
    scene.co("make a folder");
    scene.wait_ask("1/1");
    scene.answer("y");
    scene.wait_chat("The folder is there.");
    scene.wait_turns(1);
    let shown = scene.chat();
    scene.type_keys(":qa!<CR>");
    assert!(scene.wait_exit().success());
    let kept = scene.items();
    scene.restart();
    let id = scene.chat_id();
    scene.co(&format!("/resume {id}"));
    let again = scene.wait_chat("The folder is there.");
    for part in [
        "## You",
        "make a folder",
        "## Co",
        "$ `mkdir out`",
        "*approved*",
    ] {
        assert!(
            again.contains(part),
            "{part} is not in\n{again}\nbut was in\n{shown}"
        );
    }
    scene.co("did you?");
    let text = scene.wait_chat("Yes, out.");
    assert!(
        text.contains("## You\n\ndid you?\n\n## Co\n\nYes, out."),
        "{text}"
    );
    scene.wait_turns(1);
    let items = scene.items();
    assert_eq!(
        items[..kept.len()],
        kept,
        "a line once written is never changed"
    );
    let last = scene.server.requests().pop().unwrap();
    let told = told(&last.body);
    assert!(told.iter().any(|(role, _)| role == "tool"), "{told:?}");
    assert_eq!(told.last().unwrap().1, "did you?");
}

/// The first and the last line of the closed folds of the first chat.
const FOLDS: &str = "local found, line = {}, 1
    vim.api.nvim_win_call(vim.fn.win_findbuf(vim.fn.bufnr('^co://chat/1$'))[1], function()
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
            .call("c1", "run_shell_command", &json!({ "cmd": "cat numbers" }))
            .call(
                "c2",
                "run_shell_command",
                &json!({ "cmd": "cat numbers nothing | head -3" }),
            )
            .call(
                "c3",
                "run_shell_command",
                &json!({ "cmd": "mkdir made; ls missing" }),
            )
            .call("c4", "run_shell_command", &json!({ "cmd": "touch denied" }))
            .call("c5", "run_shell_command", &json!({ "cmd": "true > empty" }))
            .call("c6", "read_file", &json!({ "path": "fences.md" }))
            .call(
                "c7",
                "run_shell_command",
                &json!({ "cmd": "cat fences.md" }),
            ),
        Reply::text("All of it."),
        Reply::text("Half an ans")
            .call("c8", "run_shell_command", &json!({ "cmd": "touch later" }))
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
        scene.wait_ask(place);
        scene.answer(key);
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
    assert!(shown.contains("thought\n````\n\nI look first."), "{shown}");
    let folds = scene.lua(FOLDS, json!([]));
    assert_eq!(folds.as_array().map(Vec::len), Some(2), "{folds}\n{shown}");
    let id = scene.chat_id();
    scene.restart();
    scene.co(&format!("/resume {id}"));
    scene.wait_chat("and that");
    assert_eq!(scene.chat(), shown);
    assert_eq!(scene.lua(FOLDS, json!([])), folds);
}
