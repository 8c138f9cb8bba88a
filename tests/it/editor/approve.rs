//! The question whether a command may run.

use crate::support::assert_order;
use crate::support::http::Reply;

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
    let order = [
        "## You",
        "make it",
        "## Co",
        "$ `touch out",
        "*approved*",
        "\nmade\n",
        "All through.",
    ];
    assert_order(&text, &order);
    let told = scene.told(1);
    assert!(told.contains("made"), "{told}");
    scene.assert_outcomes(1);
    assert_eq!(scene.events("CoApprovalRequested"), 1);
    assert_eq!(scene.events("CoApprovalResolved"), 1);
}

#[test]
fn an_edited_command_runs_without_another_question() {
    let scene = makes_out();
    scene.answer("e");
    scene.wait_text("Run instead");
    scene.type_keys("cc");
    scene.type_keys("mkdir other<C-s>");
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
    scene.answer_ask("1/1", "a");
    scene.wait_text("Always allow:");
    scene.type_keys("c");
    scene.wait_for(
        "(require('co.question').pending()[1] or {}).command == 'touch a b c'",
        "the question about another command",
    );
    let text = scene.chat();
    assert_eq!(text.matches("$ `touch a b`").count(), 2, "{text}");
    assert!(text.contains("*allowed by your rule `"), "{text}");
    assert!(!scene.workspace.exists("c"));
    scene.answer_ask("1/1", "n");
    scene.wait_chat("All through.");
    assert!(!scene.workspace.exists("c"));
}

#[test]
fn enter_is_not_yes_and_hidden_is_still_pending() {
    let scene = makes_out();
    scene.answer("<CR>q");
    scene.wait_no_text("co 1/1");
    assert_eq!(scene.eval("#require('co.question').pending()"), 1);
    assert!(!scene.workspace.exists("out"));
    assert_eq!(scene.server.requests().len(), 1);
    scene.answer("<Esc>");
    scene.wait_for("vim.bo.filetype ~= 'co-approval'", "the focus to go back");
    assert_eq!(scene.events("CoApprovalResolved"), 0);
    scene.answer("y");
    scene.wait_chat("All through.");
    assert!(scene.workspace.exists("out"));
}

#[test]
fn quitting_asks_first_and_is_no_denial() {
    let mut scene = makes_out();
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
fn a_cancelled_turn_takes_its_questions_away() {
    let both = Reply::shell("c1", "touch a").and_shell("c2", "touch b");
    let scene = Scene::scripted([both]);
    scene.co("make them");
    scene.wait_ask("1/2");
    scene.type_keys(":Co /stop<CR>");
    scene.wait_turns(1);
    scene.wait_no_text("co 1/");
    assert!(!scene.workspace.exists("a") && !scene.workspace.exists("b"));
    scene.assert_outcomes(2);
    assert!(scene.chat().contains("> cancelled"));
}
