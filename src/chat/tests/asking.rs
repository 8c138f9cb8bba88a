//! Questions of the model to the person, by `ask_person`.

use serde_json::json;

use super::chat::{Chat, answered, asks_for, says};
use crate::chat::Msg;
use crate::protocol::{Answer, ChatState, ChosenAnswer, QuestionAnswer, ToEditor};
use co_llm::scripted::Part;

fn asks(id: &str) -> Vec<Part> {
    let choices = json!([{ "label": "SQLite", "advised": true }, { "label": "Post\u{202e}gres" }]);
    let question = json!({ "question": "Which database?", "choices": choices });
    asks_for(id, "ask_person", json!({ "questions": [question] }))
}

fn chosen(id: u64, number: usize) -> Msg {
    Msg::Answer(QuestionAnswer {
        chosen: vec![ChosenAnswer {
            choices: vec![number],
            text: None,
        }],
        ..answered(id, Answer::Chosen)
    })
}

#[tokio::test]
async fn the_model_reads_what_the_person_chose() {
    let mut chat = Chat::new([asks("1"), says("ok")]);
    let question = chat.question("build it").await;
    let offered = &question.choices[0].choices;
    assert!(offered[0].advised && !offered[1].advised);
    assert!(!offered[1].label.contains('\u{202e}'), "{offered:?}");
    chat.send(chosen(question.id, 1));
    assert_eq!(chat.ended().await, "done");
    chat.assert_told("1", "Which database?\n- SQLite");
    chat.assert_shown("asks: Which database?");
}

#[tokio::test]
async fn the_chat_says_that_it_asks_until_it_is_answered() {
    let mut chat = Chat::new([asks("1"), says("ok")]);
    let question = chat.question("build it").await;
    let state = |message: &ToEditor| match message {
        ToEditor::State { state, detail, .. } => Some((*state, detail.clone())),
        _ => None,
    };
    let asks = (ChatState::Asking, String::new());
    assert_eq!(chat.until(state).await, asks);
    chat.send(chosen(question.id, 1));
    assert_ne!(chat.until(state).await, asks);
    assert_eq!(chat.ended().await, "done");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_and_a_yes_are_none() {
    let mut chat = Chat::new([asks("1"), asks("2"), asks("3"), says("ok")]);
    let question = chat.question("build it").await;
    chat.send(chosen(question.id, 3));
    let question = chat.asked().await;
    chat.answer(question.id, Answer::Once);
    let question = chat.asked().await;
    chat.deny(question.id, "I do not know");
    assert_eq!(chat.ended().await, "done");
    chat.assert_told("1", "do not fit");
    chat.assert_told("2", "does not answer");
    chat.assert_told("3", "does not answer: I do not know");
}

#[tokio::test]
async fn a_cancelled_turn_leaves_it_unanswered() {
    let mut chat = Chat::new([asks("1"), says("ok")]);
    let question = chat.question("build it").await;
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    assert!(chat.was_withdrawn(question.id));
    chat.turn("go on").await;
    chat.assert_told("1", "Not answered");
}

#[tokio::test]
async fn it_may_be_asked_in_a_plan_and_approves_no_command() {
    let mut chat = Chat::new([asks("1"), says("1. x")]);
    let question = chat.question("/plan build it").await;
    chat.send(chosen(question.id, 2));
    assert_eq!(chat.ended().await, "done");
    // The answer to a question with choices is no yes to a command.
    let touch = asks_for("2", "run_shell_command", json!({ "cmd": "touch made" }));
    chat.model.push(touch);
    chat.model.push(says("ok"));
    chat.say("make it");
    let question = chat.asked().await;
    chat.send(chosen(question.id, 1));
    assert_eq!(chat.ended().await, "done");
    assert!(!chat.work.join("made").exists());
}
