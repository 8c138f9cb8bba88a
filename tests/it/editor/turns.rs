//! What a turn does with what a model says, and what is left of it after a crash.

use std::io::Write;

use serde_json::{Value, json};

use crate::support::http::{Reply, Request};
use crate::support::{DEADLINE, proc};

use super::scene::{Scene, below, wait_gone};

fn tool(request: &Request) -> String {
    request.last("tool").unwrap()
}

#[test]
fn steps_end_with_a_summary_without_calls() {
    let scene = Scene::with(json!({ "max_steps": 3 }), &[]);
    for (id, cmd) in [("c1", "pwd"), ("c2", "ls"), ("c3", "ls -a")] {
        scene.server.reply(Reply::shell(id, cmd));
    }
    scene.server.reply(Reply::text("So far I looked around."));
    scene.co("look");
    let text = scene.wait_chat("stopped at a limit");
    assert!(text.contains("So far I looked around."), "{text}");
    scene.wait_turns(1);
    let requests = scene.server.requests();
    let tools: Vec<_> = requests
        .iter()
        .map(|request| {
            request.body["tools"]
                .as_array()
                .is_some_and(|it| !it.is_empty())
        })
        .collect();
    assert_eq!(
        tools, [true; 4],
        "each request begins like the one before it"
    );
    let choices: Vec<_> = requests
        .iter()
        .map(|request| request.body["tool_choice"].clone())
        .collect();
    assert_eq!(
        choices,
        [Value::Null, Value::Null, Value::Null, json!("none")]
    );
    assert!(requests[3].last("user").unwrap().contains("used up"));
    assert_eq!(scene.items().last().unwrap()["reason"], "guarded");
    scene.assert_outcomes(3);
}

#[test]
fn the_same_call_over_and_over_is_nudged_then_stopped() {
    let scene = Scene::scripted((1..=5).map(|n| Reply::shell(&format!("c{n}"), "ls")));
    scene.co("look");
    scene.wait_chat("the same result five times");
    scene.wait_turns(1);
    let requests = scene.server.requests();
    assert!(
        !tool(&requests[2]).contains("the same result"),
        "{}",
        tool(&requests[2])
    );
    assert!(
        tool(&requests[3]).contains("the same result 3 times"),
        "{}",
        tool(&requests[3])
    );
    scene.assert_outcomes(5);
}

#[test]
fn arguments_that_cannot_be_read_go_back_to_the_model() {
    let scene = Scene::scripted([
        Reply::new().call_in_pieces("c1", "run_shell_command", &["{\"cmd\": \"ls\"", "]"]),
        Reply::shell("c2", "pwd"),
        Reply::text("There."),
    ]);
    scene.co("look");
    scene.wait_chat("There.");
    scene.wait_turns(1);
    let requests = scene.server.requests();
    assert!(
        tool(&requests[1]).contains("not a JSON object"),
        "{}",
        tool(&requests[1])
    );
    scene.assert_outcomes(2);
}

#[test]
fn a_directory_outside_the_workspace_is_refused_to_the_model() {
    let outside = json!({ "cmd": "ls", "cwd": "../.." });
    let scene = Scene::scripted([
        Reply::new().call("c1", "run_shell_command", &outside),
        Reply::text("Then not."),
    ]);
    scene.co("look");
    let text = scene.wait_chat("Then not.");
    assert!(text.contains("*not run: "), "{text}");
    assert_eq!(scene.events("CoApprovalRequested"), 0);
    scene.wait_turns(1);
    scene.assert_outcomes(1);
}

#[test]
fn the_model_reads_no_key() {
    let key = "sk-proj-0123456789abcdefghijklmnopqrstuv";
    let scene = Scene::with(json!({}), &[("OPENAI_API_KEY", key)]);
    scene
        .workspace
        .write("notes.txt", &format!("the key is {key} indeed\n"));
    scene.server.reply(Reply::shell("c1", "cat notes.txt"));
    scene.server.reply(Reply::text("I see."));
    scene.co("look");
    scene.wait_chat("I see.");
    scene.wait_turns(1);
    let told = tool(&scene.server.requests()[1]);
    assert!(told.contains("the key is") && !told.contains(key), "{told}");
    let on_disk = format!("{:?}", scene.items());
    assert!(!on_disk.contains(key), "{on_disk}");
}

#[test]
fn a_long_output_is_bounded_for_the_model_and_folded_on_the_screen() {
    let scene = Scene::scripted([
        Reply::shell("c1", "cat numbers | cat"),
        Reply::text("Many."),
    ]);
    let numbers: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
    scene.workspace.write("numbers", &numbers);
    scene.co("count");
    let text = scene.wait_chat("Many.");
    assert!(
        text.contains("\n200000\n") && !text.contains("\n100\n"),
        "{}",
        text.len()
    );
    assert!(text.contains("190000 earlier lines"));
    let told = tool(&scene.server.requests()[1]);
    assert!(told.len() < 100_000, "{}", told.len());
    assert!(told.contains("200000"));
    // The comment is right below what is folded to a line.
    scene.nvim.wait_screen(
        |lines| {
            lines.iter().any(|line| line.contains("Many."))
                && lines.iter().any(|line| line.contains("## You"))
        },
        "the whole conversation on one screen",
    );
}

#[test]
fn lines_of_a_buffer_go_along() {
    let scene = Scene::scripted([Reply::text("I see."), Reply::text("And these.")]);
    scene.workspace.write("notes.txt", "alpha\nbeta\ngamma\n");
    scene
        .nvim
        .type_keys(":edit notes.txt<CR>:1,2Co what are these?<CR>");
    let text = scene.wait_chat("I see.");
    assert!(
        text.contains("*with @selection notes.txt:1-2, 2 lines*"),
        "{text}"
    );
    scene.wait_turns(1);
    let asked = scene.server.requests()[0].last("user").unwrap();
    assert!(asked.contains("what are these?"), "{asked}");
    assert!(asked.contains("alpha") && asked.contains("beta"), "{asked}");
    assert!(!asked.contains("gamma"), "{asked}");
    scene.co("and @file:notes.txt");
    scene.wait_turns(2);
    let asked = scene.server.requests()[1].last("user").unwrap();
    assert!(asked.contains("gamma"), "{asked}");
}

#[test]
fn a_prompt_sends_the_buffer_that_the_person_moved_to() {
    let scene = Scene::scripted([Reply::text("One."), Reply::text("Two.")]);
    scene.workspace.write("src/app.py", "alpha\nbeta\n");
    scene.workspace.write("one.txt", "gamma\n");
    scene.nvim.type_keys(":edit one.txt<CR>:Co<CR>");
    scene
        .nvim
        .wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
    scene.nvim.type_keys("<C-w>p:edit src/app.py<CR><C-w>p");
    scene.nvim.type_keys("isee @buffer<Esc><CR>");
    let text = scene.wait_chat("One.");
    assert!(
        text.contains("*with @buffer src/app.py, 2 lines*"),
        "{text}"
    );
    scene.wait_turns(1);
    let asked = scene.server.requests()[0].last("user").unwrap();
    assert!(asked.contains("alpha\nbeta"), "{asked}");
    assert!(asked.contains("src/app.py"), "{asked}");
    assert!(!asked.contains("gamma"), "{asked}");
    scene.nvim.type_keys("<C-w>p:edit one.txt<CR><C-w>p");
    scene.nvim.type_keys("isee @buffer<Esc><CR>");
    let text = scene.wait_chat("Two.");
    assert!(text.contains("*with @buffer one.txt, 1 line*"), "{text}");
}

#[test]
fn a_prompt_that_is_no_text_is_sent_with_its_odd_bytes_replaced() {
    let scene = Scene::scripted([Reply::text("I see.")]);
    std::fs::write(scene.workspace.path().join("odd.txt"), b"r\xe9sum\xe9\n").unwrap();
    scene
        .nvim
        .lua(r"vim.cmd('Co d\233j\224 with @file:odd.txt')", json!([]));
    scene.wait_chat("I see.");
    scene.wait_turns(1);
    scene.nvim.wait_text("was not all UTF-8");
    let asked = scene.server.requests()[0].last("user").unwrap();
    assert!(asked.contains("d\u{fffd}j\u{fffd} with"), "{asked}");
    assert!(asked.contains("sum"), "{asked}");
}

#[test]
fn a_crash_during_a_command_is_resumed_from() {
    let mut scene = Scene::scripted([
        Reply::text("I will wait.").call(
            "c1",
            "run_shell_command",
            &json!({ "cmd": "echo begun; exec sleep 107" }),
        ),
        Reply::text("On we go."),
    ]);
    scene.co("wait for it");
    scene.wait_ask("1/1");
    scene.answer("y");
    scene.wait_chat("\nbegun");
    let all = scene.nvim.descendants();
    assert!(!below(scene.nvim.pid(), "sleep 107").is_empty());
    proc::kill9(scene.backend());
    scene.nvim.kill9();
    wait_gone(&all);
    let kept = scene.items();
    let kinds: Vec<_> = kept
        .iter()
        .filter_map(|item| item["item"].as_str())
        .collect();
    assert_eq!(
        kinds[..5],
        ["user", "surroundings", "text", "call", "decision"]
    );
    scene.restart();
    let id = scene.chats()[0]
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    scene.co(&format!("/resume {id}"));
    let text = scene.wait_chat("> interrupted");
    for part in [
        "wait for it",
        "I will wait.",
        "$ `echo begun; exec sleep 107`",
        "*approved*",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    scene.co("go on");
    scene.wait_chat("On we go.");
    scene.wait_turns(1);
    let last = scene.server.requests().pop().unwrap();
    assert!(tool(&last).starts_with("interrupted"), "{}", tool(&last));
    scene.assert_outcomes(1);
}

#[test]
fn a_torn_last_line_is_skipped_with_a_notice() {
    let mut scene = Scene::scripted([Reply::text("Aye."), Reply::text("Seven.")]);
    scene.co("remember seven");
    scene.wait_turns(1);
    let all = scene.nvim.descendants();
    scene.nvim.kill9();
    // Then the file is free.
    wait_gone(&all);
    let path = scene.chats()[0].clone();
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    file.write_all(b"{\"item\":\"text\",\"te").unwrap();
    drop(file);
    scene.restart();
    let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
    scene.co(&format!("/resume {id}"));
    scene.wait_chat("Aye.");
    scene
        .nvim
        .wait_text("Not readable, skipped, and kept in the file");
    scene.co("which?");
    scene.wait_chat("Seven.");
    scene.wait_turns(1);
    let text = std::fs::read_to_string(&path).unwrap();
    let broken = |line: &&str| serde_json::from_str::<serde_json::Value>(line).is_err();
    assert_eq!(text.lines().filter(broken).count(), 1, "{text}");
}

#[test]
fn a_backend_that_dies_during_a_turn_leaves_a_chat_that_goes_on() {
    let scene = Scene::scripted([
        Reply::shell("c1", "echo begun; exec sleep 108"),
        Reply::text("On we go."),
    ]);
    scene.co("wait for it");
    scene.wait_ask("1/1");
    scene.answer("y");
    scene.wait_chat("\nbegun");
    let sleeping = below(scene.nvim.pid(), "sleep 108");
    proc::kill9(scene.backend());
    scene.wait_chat("the backend ended");
    scene.nvim.wait_text(" ready");
    wait_gone(&sleeping);
    scene.co("go on");
    let text = scene.wait_chat("On we go.");
    assert!(text.contains("wait for it"), "{text}");
    scene.wait_turns(1);
    scene.assert_outcomes(1);
}

#[test]
fn a_neovim_that_is_killed_leaves_each_call_its_outcome() {
    let mut scene = Scene::scripted([Reply::shell("c1", "echo begun; exec sleep 109")]);
    scene.co("wait for it");
    scene.wait_ask("1/1");
    scene.answer("y");
    scene.wait_chat("\nbegun");
    let all = scene.nvim.descendants();
    scene.nvim.kill9();
    wait_gone(&all);
    scene.assert_outcomes(1);
    assert_eq!(scene.items().last().unwrap()["reason"], "interrupted");
}

#[test]
fn what_a_chat_costs_is_said_where_the_price_is_known() {
    let prices = json!({ "openai/scripted": { "input": 2000, "output": 4000 } });
    let scene = Scene::with(json!({ "prices": prices }), &[]);
    scene.server.reply(Reply::text("Dear.").usage(10, 5));
    scene.server.reply(Reply::text("Dearer.").usage(20, 5));
    scene.co("what will it cost?");
    scene.nvim.wait_text("10 in 5 out $0.04");
    scene.co("and now?");
    scene.nvim.wait_text("30 in 10 out $0.10");
    scene.wait_turns(2);
    scene.co("/export told.md");
    let told = proc::wait_until(DEADLINE, "the export", || scene.workspace.read("told.md"));
    for part in [
        "_10 tokens in (0 cached), 5 out, $0.0400_",
        "---\n30 tokens in (0 cached), 10 out, $0.1000\n",
    ] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
}
