//! Turns of `/plan`, which only look, and `/go`, which starts the work with the plan.

use serde_json::json;

use super::chat::{Chat, asks_for, done, says, tool};
use crate::chat::Msg;
use crate::protocol::{Answer, NoticeLevel, PlanProgress, ToEditor};
use co_llm::scripted::Part;

/// Returns a call of the shell tool, as the only part of an answer.
fn command(id: &str, cmd: &str) -> Vec<Part> {
    asks_for(id, "run_shell_command", json!({ "cmd": cmd }))
}

/// Opens the buffer of the plan, and returns the plan.
async fn plan_of(chat: &mut Chat) -> String {
    chat.command("plan", "");
    chat.until(pick!(ToEditor::Plan { text, open: true, .. } => text.clone()))
        .await
}

#[tokio::test]
async fn a_plan_is_made_by_looking_and_carried_out_after_go() {
    let mut chat = Chat::new([
        command("1", "touch made"),
        asks_for("2", "read_file", json!({ "path": "a.txt" })),
        says("1. Make `made`.\n2. Check it."),
    ]);
    std::fs::write(chat.work.join("a.txt"), "text\n").unwrap();
    assert_eq!(chat.turn("/plan make it").await, "done");
    assert_eq!(chat.asks(), 0);
    chat.assert_told("1", "/plan only looks");
    chat.assert_told("2", "text");
    assert!(!chat.work.join("made").exists());
    assert_eq!(plan_of(&mut chat).await, "1. Make `made`.\n2. Check it.");
    let kept = chat.services.store.list(Some(&chat.work));
    assert_eq!(kept[0].title, "make it");
    chat.send(Msg::KeepPlan {
        text: "1. Make `made`.".to_owned(),
    });
    assert_eq!(plan_of(&mut chat).await, "1. Make `made`.");
    chat.model.push(command("3", "touch made"));
    chat.model.push(says("Made."));
    chat.say("/go");
    let question = chat.asked().await;
    let progress = chat
        .seen
        .iter()
        .rev()
        .find_map(pick!(ToEditor::State { plan, .. } => *plan));
    assert_eq!(progress.unwrap(), Some(PlanProgress { done: 0, steps: 1 }));
    chat.answer(question.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert!(chat.work.join("made").exists());
    let request = format!("{:?}", chat.last_request().items);
    assert!(request.contains("/go\\n\\n1. Make `made`."), "{request}");
}

#[tokio::test]
async fn a_turn_that_is_asked_for_again_plans_too() {
    let mut chat = Chat::trusting([says("1. x")]);
    chat.turn("/plan make it").await;
    for (id, name) in [("1", "retry"), ("2", "continue")] {
        chat.model.push(command(id, "touch made"));
        chat.model.push(says("1. y"));
        chat.command_ends(name).await;
        chat.assert_told(id, "only looks");
    }
    chat.resumed().await;
    chat.model.push(command("3", "touch made"));
    chat.model.push(says("1. z"));
    chat.command_ends("retry").await;
    chat.assert_told("3", "only looks");
    assert!(!chat.work.join("made").exists());
    // The next prompt is one as always.
    chat.model.push(command("4", "touch made"));
    chat.turn_with("now make it", says("Made.")).await;
    assert!(chat.work.join("made").exists());
}

#[tokio::test]
async fn go_needs_a_plan() {
    let mut chat = Chat::new([]);
    chat.say("/go");
    assert_eq!(chat.notice("no plan yet").await, NoticeLevel::Error);
    assert_eq!(chat.unsent().await, "/go");
    chat.command_works("plan", "", "no plan yet").await;
}

#[tokio::test]
async fn a_turn_that_fails_or_answers_nothing_leaves_the_plan_as_it_was() {
    let mut chat = Chat::new([says("1. x"), says("")]);
    chat.turn("/plan a").await;
    chat.turn("/plan b").await;
    assert_eq!(plan_of(&mut chat).await, "1. x");
}

#[tokio::test]
async fn no_tool_but_those_that_look_is_carried_out() {
    let wanted = [
        ("write_file", json!({ "path": "made", "text": "x" })),
        (
            "edit_file",
            json!({ "path": "a.txt", "edits": [{ "old": "text", "new": "x" }] }),
        ),
        (
            "rename_symbol",
            json!({ "path": "a.txt", "name": "text", "new_name": "x" }),
        ),
        ("job_write", json!({ "job": 1, "text": "x" })),
        ("job_cancel", json!({ "job": 1 })),
        ("run_shell_command", json!({ "argv": ["touch", "made"] })),
        (
            "run_shell_command",
            json!({ "cmd": "touch made", "background": true }),
        ),
        (
            "run_shell_command",
            json!({ "cmd": "touch made", "pty": true, "real": true }),
        ),
    ];
    let asked = wanted.iter().enumerate();
    let asked = asked.map(|(at, (name, arguments))| tool(&at.to_string(), name, arguments.clone()));
    let mut chat = Chat::trusting([asked.chain([done()]).collect(), says("1. x")]);
    std::fs::write(chat.work.join("a.txt"), "text\n").unwrap();
    assert_eq!(chat.turn("/plan make it").await, "done");
    for (at, (name, _)) in wanted.iter().enumerate() {
        let told = chat.told(&at.to_string());
        // The rename has nothing to change.
        let refused = ["Not run: ", "Refused: cannot rename"];
        assert!(
            refused.iter().any(|it| told.starts_with(it)),
            "{name}: {told}"
        );
    }
    assert_eq!(chat.asks(), 0);
    assert!(!chat.work.join("made").exists());
    assert_eq!(
        std::fs::read_to_string(chat.work.join("a.txt")).unwrap(),
        "text\n"
    );
}
