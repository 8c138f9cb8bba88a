//! The question whether a command may run.

use serde_json::json;

use crate::support::http::{Gate, Reply};

use super::scene::Scene;

/// A scene whose model makes `out` and then says that it is through.
fn makes_out() -> Scene {
    let scene = Scene::scripted([Reply::shell("c1", "mkdir out"), Reply::text("All through.")]);
    scene.co("make it");
    scene.wait_ask("1/1");
    scene
}

#[test]
fn yes_runs_it_once_and_the_model_comments_below_the_output() {
    let scene = Scene::scripted([
        Reply::shell("c1", "touch out; echo made"),
        Reply::text("All through."),
    ]);
    scene.co("make it");
    let screen = scene.wait_ask("1/1").join("\n");
    assert!(screen.contains("touch out; echo made"), "{screen}");
    assert!(scene.chat().contains("$ `touch out; echo made`"));
    assert!(!scene.workspace.exists("out"));
    scene.answer("y");
    let text = scene.wait_chat("All through.");
    scene.wait_turns(1);
    assert!(scene.workspace.exists("out"));
    let at = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("no {part} in {text}"))
    };
    let order = [
        "## You",
        "make it",
        "## Co",
        "$ `touch out",
        "*approved*",
        "\nmade\n",
        "All through.",
    ];
    assert!(order.map(at).is_sorted(), "{text}");
    let told = scene.server.requests()[1].last("tool").unwrap();
    assert!(told.contains("made"), "{told}");
    scene.assert_outcomes(1);
    assert_eq!(scene.events("CoApprovalRequested"), 1);
    assert_eq!(scene.events("CoApprovalResolved"), 1);
}

#[test]
fn no_runs_nothing_and_the_turn_goes_on() {
    let scene = makes_out();
    scene.answer("n");
    let text = scene.wait_chat("All through.");
    assert!(text.contains("*denied*"), "{text}");
    assert!(!scene.workspace.exists("out"));
    let told = scene.server.requests()[1].last("tool").unwrap();
    assert_eq!(told, "User denied this action");
    scene.wait_turns(1);
    scene.assert_outcomes(1);
}

#[test]
fn a_reason_reaches_the_model() {
    let scene = makes_out();
    scene.answer("N");
    scene.nvim.wait_text("No, because");
    scene.nvim.wait_mode("i");
    scene.nvim.type_keys("put it below target<CR>");
    scene.wait_chat("All through.");
    let told = scene.server.requests()[1].last("tool").unwrap();
    assert_eq!(told, "User denied this action: put it below target");
    assert!(!scene.workspace.exists("out"));
    assert!(scene.chat().contains("*denied: put it below target*"));
}

#[test]
fn an_edited_command_runs_without_another_question() {
    let scene = makes_out();
    scene.answer("e");
    scene.nvim.wait_text("Run instead");
    scene.nvim.type_keys("cc");
    scene.nvim.type_keys("mkdir other<C-s>");
    scene.wait_chat("All through.");
    assert!(scene.workspace.exists("other") && !scene.workspace.exists("out"));
    assert_eq!(scene.events("CoApprovalRequested"), 1);
}

#[test]
fn always_holds_for_that_command_alone() {
    let scene = Scene::scripted([
        Reply::shell("c1", "touch a b"),
        Reply::shell("c2", "touch a b"),
        Reply::shell("c3", "touch a b c"),
        Reply::text("All through."),
    ]);
    scene.co("make it");
    scene.wait_ask("1/1");
    scene.answer("a");
    scene.nvim.wait_text("Always allow:");
    scene.nvim.type_keys("c");
    scene.nvim.wait_for(
        "(require('co.question').pending()[1] or {}).command == 'touch a b c'",
        "the question about another command",
    );
    let text = scene.chat();
    assert_eq!(text.matches("$ `touch a b`").count(), 2, "{text}");
    assert!(text.contains("*allowed by your rule `"), "{text}");
    assert!(!scene.workspace.exists("c"));
    scene.wait_ask("1/1");
    scene.answer("n");
    scene.wait_chat("All through.");
    assert!(!scene.workspace.exists("c"));
}

#[test]
fn five_at_once_are_answered_one_by_one_in_order() {
    let mut reply = Reply::new();
    for index in 1..=5 {
        let cmd = format!("touch f{index}");
        reply = reply.call(
            &format!("c{index}"),
            "run_shell_command",
            &json!({ "cmd": cmd }),
        );
    }
    let scene = Scene::scripted([reply, Reply::text("All through.")]);
    scene.co("make them");
    for index in 1..=5 {
        let asked =
            format!("(require('co.question').pending()[1] or {{}}).command == 'touch f{index}'");
        scene.nvim.wait_for(&asked, &format!("question {index}"));
        scene.nvim.wait_text(&format!("│touch f{index} "));
        scene.answer(if index == 3 { "n" } else { "y" });
    }
    scene.wait_chat("All through.");
    for index in 1..=5 {
        assert_eq!(
            scene.workspace.exists(&format!("f{index}")),
            index != 3,
            "f{index}"
        );
    }
    scene.wait_turns(1);
    scene.assert_outcomes(5);
}

#[test]
fn what_is_typed_while_the_question_opens_stays_typing() {
    let gate = Gate::default();
    let scene = Scene::scripted([
        Reply::new()
            .hold(&gate)
            .call("c1", "run_shell_command", &json!({ "cmd": "touch out" })),
        Reply::text("All through."),
    ]);
    scene.co("make it");
    scene.server.wait_requests(1);
    scene.nvim.type_keys("i");
    scene.nvim.wait_mode("i");
    let before = "yes any y and n typed before, ";
    scene.nvim.type_keys(before);
    gate.open();
    let mut typed = String::from(before);
    // Goes on typing until the question is there, and then some.
    while !scene
        .nvim
        .screen()
        .iter()
        .any(|line| line.contains("co 1/1"))
    {
        scene.nvim.type_keys("yna");
        typed.push_str("yna");
        scene.nvim.wait_for("true", "an answer");
    }
    scene.nvim.type_keys("yyynnnaaa and after");
    typed.push_str("yyynnnaaa and after");
    scene.nvim.wait_for(
        &format!("table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)) == {typed:?}"),
        "every character",
    );
    assert_eq!(scene.nvim.mode().name, "i");
    assert_eq!(
        scene
            .nvim
            .lua("return #require('co.question').pending()", json!([])),
        1
    );
    assert!(!scene.workspace.exists("out"));
    scene.nvim.type_keys("<Esc>");
    scene.answer("n");
    scene.wait_turns(1);
}

#[test]
fn enter_is_not_yes_and_hidden_is_still_pending() {
    let scene = makes_out();
    scene.answer("<CR>q");
    scene.nvim.wait_screen(
        |lines| !lines.iter().any(|line| line.contains("co 1/1")),
        "the question to be put away",
    );
    assert_eq!(
        scene
            .nvim
            .lua("return #require('co.question').pending()", json!([])),
        1
    );
    assert!(!scene.workspace.exists("out"));
    assert_eq!(scene.server.requests().len(), 1);
    scene.answer("<Esc>");
    scene
        .nvim
        .wait_for("vim.bo.filetype ~= 'co-approval'", "the focus to go back");
    assert_eq!(scene.events("CoApprovalResolved"), 0);
    scene.answer("y");
    scene.wait_chat("All through.");
    assert!(scene.workspace.exists("out"));
}

#[test]
fn a_closed_window_is_not_an_answer() {
    let scene = makes_out();
    scene.nvim.type_keys(":only<CR>");
    scene
        .nvim
        .wait_for("#vim.api.nvim_list_wins() == 1", "one window");
    assert_eq!(
        scene
            .nvim
            .lua("return #require('co.question').pending()", json!([])),
        1
    );
    scene.answer("y");
    scene.wait_turns(1);
    assert!(scene.workspace.exists("out"));
}

#[test]
fn a_wiped_chat_denies_and_the_backend_goes_on() {
    let scene = makes_out();
    scene.nvim.type_keys(":bwipeout! co://chat/1<CR>");
    scene
        .nvim
        .wait_for("#require('co.question').pending() == 0", "no question");
    scene.nvim.wait_screen(
        |lines| !lines.iter().any(|line| line.contains("co 1/1")),
        "the question to go",
    );
    scene.run("echo al$((0))ve");
    scene.wait_shell("\nal0ve");
    crate::support::proc::wait_until(crate::support::DEADLINE, "the end on disk", || {
        let items = scene.items();
        items.iter().any(|item| item["item"] == "end").then_some(())
    });
    scene.assert_outcomes(1);
    assert!(!scene.workspace.exists("out"));
}

#[test]
fn quitting_asks_first_and_is_no_denial() {
    let mut scene = makes_out();
    let all = scene.nvim.descendants();
    scene.nvim.type_keys(":qa<CR>");
    scene
        .nvim
        .wait_text("No write since last change for buffer \"co://unanswered: mkdir out\"");
    scene.nvim.type_keys("<CR>");
    scene.nvim.wait_text("1 question waits: :qa! quits anyway");
    scene.wait_ask("1/1");
    scene.nvim.type_keys(":qa!<CR>");
    assert!(scene.nvim.wait_exit().success());
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
fn a_restart_is_told_as_such() {
    let scene = makes_out();
    scene.server.reply(Reply::text("All through."));
    scene.co("/restart!");
    scene.nvim.wait_text("co: a new backend runs");
    let text = scene.wait_chat("*not answered; nothing was run*");
    assert!(text.contains("> interrupted; "), "{text}");
    scene.co("go on");
    scene.wait_chat("All through.");
    let told = scene.server.wait_requests(2)[1].last("tool").unwrap();
    assert_eq!(told, "not answered: co was closed");
}

#[test]
fn auto_confirm_runs_unasked_and_a_deny_rule_still_refuses() {
    let scene = Scene::with(
        json!({ "auto_confirm": true, "deny": ["touch forbidden"] }),
        &[],
    );
    scene.server.reply(Reply::shell("c1", "touch out"));
    scene.server.reply(Reply::shell("c2", "touch forbidden"));
    scene.server.reply(Reply::text("All through."));
    scene.co("make it");
    let text = scene.wait_chat("All through.");
    assert!(scene.workspace.exists("out"));
    assert!(!scene.workspace.exists("forbidden"));
    assert!(text.contains("*refused: "), "{text}");
    let told = scene.server.requests()[2].last("tool").unwrap();
    assert!(told.starts_with("Refused by a deny rule"), "{told}");
    assert_eq!(scene.events("CoApprovalRequested"), 0);
    scene.wait_turns(1);
    scene.assert_outcomes(2);
}

#[test]
fn a_cancelled_turn_takes_its_questions_away() {
    let both =
        Reply::shell("c1", "touch a").call("c2", "run_shell_command", &json!({ "cmd": "touch b" }));
    let scene = Scene::scripted([both]);
    scene.co("make them");
    scene.wait_ask("1/2");
    scene.nvim.type_keys(":Co /stop<CR>");
    scene.wait_turns(1);
    scene.nvim.wait_screen(
        |lines| !lines.iter().any(|line| line.contains("co 1/")),
        "the question to go",
    );
    assert!(!scene.workspace.exists("a") && !scene.workspace.exists("b"));
    scene.assert_outcomes(2);
    assert!(scene.chat().contains("> cancelled"));
}

#[test]
fn a_command_line_that_is_being_typed_stays() {
    let gate = Gate::default();
    let scene = Scene::scripted([
        Reply::new()
            .hold(&gate)
            .call("c1", "run_shell_command", &json!({ "cmd": "touch out" })),
        Reply::text("All through."),
    ]);
    scene.co("make it");
    scene.server.wait_requests(1);
    scene.nvim.type_keys(":let g:typed = 'y");
    scene.nvim.wait_mode("c");
    gate.open();
    scene.wait_ask("1/1");
    scene.nvim.type_keys("yna'<CR>");
    scene
        .nvim
        .wait_for("vim.g.typed == 'yyna'", "the command line");
    assert_eq!(
        scene
            .nvim
            .lua("return #require('co.question').pending()", json!([])),
        1
    );
    scene.answer("n");
    scene.wait_turns(1);
    assert!(!scene.workspace.exists("out"));
}

#[test]
fn the_question_follows_into_another_tab() {
    let scene = makes_out();
    scene.nvim.type_keys(":tabnew<CR>");
    scene.nvim.wait_for("vim.fn.tabpagenr() == 2", "the tab");
    scene.wait_ask("1/1");
    scene.answer("y");
    scene.wait_turns(1);
    assert!(scene.workspace.exists("out"));
    assert_eq!(scene.nvim.lua("return vim.fn.tabpagenr()", json!([])), 2);
}

#[test]
fn two_chats_ask_in_order_and_each_gets_its_answer() {
    let scene = Scene::scripted([
        Reply::shell("c1", "touch one"),
        Reply::shell("c2", "touch two"),
    ]);
    scene.co("first");
    scene.wait_ask("1/1");
    scene.co("/new");
    scene.nvim.wait_for(
        "vim.api.nvim_buf_get_name(0) == 'co://chat/2/prompt'",
        "another chat",
    );
    scene.nvim.type_keys("isecond<C-s><Esc>");
    scene.wait_ask("1/2");
    scene.nvim.wait_text("chat 1");
    scene.server.reply(Reply::text("One is through."));
    scene.answer("n");
    scene.wait_chat("One is through.");
    scene.wait_ask("1/1");
    scene.nvim.wait_text("chat 2");
    scene.server.reply(Reply::text("Two is through."));
    scene.answer("y");
    scene.wait_turns(2);
    assert!(!scene.workspace.exists("one") && scene.workspace.exists("two"));
    let second = scene.nvim.buffer_text("co://chat/2").unwrap();
    assert!(second.contains("Two is through."), "{second}");
}
