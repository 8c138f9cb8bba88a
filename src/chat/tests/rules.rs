//! The rules of `always`: how long they hold, and how a person takes them back.

use serde_json::json;

use super::chat::{Chat, asks_for, calls, says, text};
use super::jobs::job;
use crate::protocol::{ChatState, NoticeLevel, Scope};
use co_llm::scripted::Part;
use co_llm::transcript::{Decision, Item};

#[tokio::test]
async fn everything_holds_for_the_next_turn_until_it_is_taken_back() {
    let mut chat = Chat::new([
        calls(&[("1", "touch a")]),
        says("one"),
        calls(&[("2", "touch b")]),
        says("two"),
        calls(&[("3", "touch c")]),
    ]);
    chat.say("go");
    chat.allow_next(Scope::Everything).await;
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.turn("and on").await, "done");
    assert_eq!(chat.asks(), 1);
    chat.command("rules", "everything:");
    chat.notice("asks again").await;
    chat.say("and now?");
    assert_eq!(chat.asked().await.command, "touch c");
}

/// The turn was given what is no longer allowed.
#[tokio::test]
async fn a_rule_that_is_taken_back_ends_the_turn_that_has_it() {
    let hang = || vec![text("x"), Part::Hang];
    for (scope, value) in [
        (Scope::Command, "chat:= make one"),
        (Scope::PrefixSaved, "saved:make one"),
        (Scope::Everything, "everything:"),
    ] {
        let mut chat = Chat::new([calls(&[("1", "make one")]), hang()]);
        chat.say("go");
        chat.allow_next(scope).await;
        chat.state(ChatState::Streaming).await;
        chat.command("rules", value);
        assert_eq!(chat.ended().await, "cancelled", "{value}");
    }
}

#[tokio::test]
async fn a_job_that_may_no_longer_be_typed_into_asks() {
    let write = |id: &str| asks_for(id, "job_write", json!({"job": 1, "text": "x\n"}));
    let mut chat = Chat::new([
        job("1", "cat"),
        write("2"),
        vec![text("x"), Part::Hang],
        write("3"),
    ]);
    let ask = chat.question("go").await;
    assert_eq!(ask.job, Some(1));
    chat.always(ask.id, Scope::Command);
    chat.state(ChatState::Streaming).await;
    chat.command("rules", "job:1");
    assert_eq!(chat.ended().await, "cancelled");
    chat.say("and now?");
    assert_eq!(chat.asked().await.job, Some(1));
}

#[tokio::test]
async fn a_rule_that_cannot_be_saved_holds_for_the_chat() {
    let mut chat = Chat::new([
        calls(&[("1", "make one")]),
        says("one"),
        calls(&[("2", "make one")]),
        says("two"),
    ]);
    std::fs::write(&chat.services.places.rules, "in the way").unwrap();
    chat.say("go");
    chat.allow_next(Scope::PrefixSaved).await;
    assert_eq!(chat.notice("could not be saved").await, NoticeLevel::Error);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.turn("again").await, "done");
    assert_eq!(chat.asks(), 1);
}

#[tokio::test]
async fn an_edit_to_nothing_is_a_no_and_a_blank_reason_is_none() {
    let mut chat = Chat::new([calls(&[("1", "touch a"), ("2", "touch b")]), says("ok")]);
    let ask = chat.question("go").await;
    chat.edit(ask.id, " \n");
    let ask = chat.asked().await;
    chat.deny(ask.id, "  ");
    assert_eq!(chat.ended().await, "done");
    for id in ["1", "2"] {
        assert_eq!(chat.told(id), "User denied this action");
    }
}

#[tokio::test]
async fn what_is_typed_is_not_edited_and_may_be_all_that_is_allowed() {
    let write = |id: &str, text: &str| asks_for(id, "job_write", json!({"job": 1, "text": text}));
    let mut chat = Chat::new([
        job("1", "cat > typed"),
        write("2", "one\n"),
        write("3", "two\n"),
        calls(&[("4", "touch a")]),
        asks_for("5", "job_write", json!({"job": 1, "close": true})),
        asks_for("6", "job_output", json!({"job": 1, "wait": 60})),
        says("ok"),
    ]);
    chat.say("go");
    chat.approve().await;
    let ask = chat.asked().await;
    chat.edit(ask.id, "three\n");
    chat.allow_next(Scope::Everything).await;
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.asks(), 3);
    assert_eq!(chat.told("2"), "User denied this action");
    let typed = std::fs::read_to_string(chat.work.join("typed")).unwrap();
    assert_eq!(typed, "two\n");
    let by_all = |item: &Item| matches!(item, Item::Decision { call, decision: Decision::AutoConfirm } if call == "4");
    assert!(chat.disk().iter().any(by_all));
}
