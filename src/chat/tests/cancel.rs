//! `<C-c>` at every point of a turn: it ends, nothing runs on, and the next request is whole.

use serde_json::json;

use super::chat::{Chat, asks_for, call, calls, done, eventually, lives, says, text, valid};
use crate::buffers::BufferReply;
use crate::chat::Msg;
use crate::protocol::{Answer, BufferChanged, BufferText, ChatState, ToEditor};
use co_llm::Fault;
use co_llm::scripted::Part;
use co_llm::transcript::{Decision, Item};

/// Checks a chat after a cancelled turn: the next request is whole, and the chat is read back whole.
async fn goes_on(mut chat: Chat) {
    valid(&chat.kit_items());
    assert_eq!(chat.turn_with("go on", says("Here.")).await, "done");
    valid(&chat.last_request().items);
    chat.assert_shown("> cancelled");
}

#[tokio::test]
async fn while_it_streams() {
    let mut chat = Chat::new([vec![text("I will"), call("1", "mkdir out"), Part::Hang]]);
    chat.say("go");
    chat.state(ChatState::Streaming).await;
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    assert!(!chat.work.join("out").exists());
    assert_eq!(chat.asks(), 0);
    chat.assert_shown("I will");
    goes_on(chat).await;
}

#[tokio::test]
async fn while_it_asks() {
    let mut chat = Chat::new([calls(&[("1", "mkdir out"), ("2", "mkdir two")])]);
    let asked = [chat.question("go").await.id, chat.asked().await.id];
    chat.send(Msg::Cancel);
    for id in asked {
        chat.withdrawn(id).await;
    }
    assert_eq!(chat.ended().await, "cancelled");
    assert_eq!(chat.decisions(), [("1".to_owned(), Decision::Withdrawn)]);
    // As a resumed chat shows it.
    chat.assert_shown("✗ mkdir two  cut off: the turn ended before this call was carried out");
    // Too late.
    chat.answer(asked[0], Answer::Once);
    assert_eq!(chat.asks(), 2);
    goes_on(chat).await;
}

#[tokio::test]
async fn while_it_runs() {
    let mut chat = Chat::trusting([calls(&[
        (
            "1",
            "bash -c 'echo $$ > pid; sleep 600 & echo $! > child; wait'",
        ),
        ("2", "mkdir two"),
    ])]);
    chat.say("go");
    chat.state(ChatState::Running).await;
    let (pid, child) = (chat.work.join("pid"), chat.work.join("child"));
    eventually("it runs", || {
        std::fs::read_to_string(&child).is_ok_and(|pid| pid.ends_with('\n'))
    })
    .await;
    assert!(lives(&pid) && lives(&child));
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    assert!(!lives(&pid) && !lives(&child), "nothing of it runs on");
    assert!(!chat.work.join("two").exists());
    goes_on(chat).await;
}

#[tokio::test]
async fn while_it_runs_several_unasked() {
    let read = "tail -f note";
    let mut chat = Chat::trusting([calls(&[("1", read), ("2", read)])]);
    chat.write("note", "x\n");
    chat.say("go");
    chat.state(ChatState::Running).await;
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    goes_on(chat).await;
}

#[tokio::test(start_paused = true)]
async fn while_it_waits_to_try_again() {
    let busy = Fault::RateLimited {
        provider: "scripted".into(),
        retry_after: Some(std::time::Duration::from_secs(100)),
    };
    let mut chat = Chat::new([vec![busy.into()]]);
    let began = tokio::time::Instant::now();
    chat.say("go");
    chat.state(ChatState::Retrying).await;
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    assert!(began.elapsed().as_secs() < 100);
    goes_on(chat).await;
}

#[tokio::test(start_paused = true)]
async fn while_a_read_waits_for_a_command_of_the_person() {
    let mut chat = Chat::new([asks_for("1", "read_file", json!({ "path": "note" }))]);
    chat.write("note", "x\n");
    chat.open = None;
    chat.say("go");
    let asked = chat.until(pick!(ToEditor::ReadBuffers { request, chat: Some(1), .. } => *request));
    let request = asked.await;
    chat.send(Msg::Cancel);
    let withdrawn = |it: &ToEditor| (*it == ToEditor::WithdrawRequest { request }).then_some(());
    chat.until(withdrawn).await;
    assert_eq!(chat.ended().await, "cancelled");
    chat.open = Some(Vec::new());
    assert_eq!(chat.turn_with("go on", says("Here.")).await, "done");
    chat.assert_told("1", "cancelled");
}

#[tokio::test]
async fn while_a_change_waits_for_a_command_of_the_person() {
    let edits = json!([{ "old": "x", "new": "y" }]);
    let edit = json!({ "path": "note", "edits": edits });
    let mut chat = Chat::new([asks_for("1", "edit_file", edit)]);
    chat.write("note", "x\n");
    chat.open = Some(vec![BufferText {
        file: chat.work.join("note").display().to_string(),
        text: b"x\n".to_vec(),
        tick: 1,
        encoding: String::new(),
        modified: false,
        problem: None,
    }]);
    let question = chat.question("go").await.id;
    chat.answer(question, Answer::Once);
    let asked =
        chat.until(pick!(ToEditor::ChangeBuffer { request, chat: Some(1), .. } => *request));
    let request = asked.await;
    chat.send(Msg::Cancel);
    let withdrawn = |it: &ToEditor| (*it == ToEditor::WithdrawRequest { request }).then_some(());
    chat.until(withdrawn).await;
    // The turn knows what became of the change before it ends.
    let changed = BufferChanged {
        problem: Some("the turn was cancelled".to_owned()),
        ..BufferChanged::default()
    };
    let reply = BufferReply::Changed(changed);
    chat.services.buffers.reply(request, reply);
    assert_eq!(chat.ended().await, "cancelled");
    assert_eq!(chat.turn_with("go on", says("Here.")).await, "done");
    let told = "Nothing was changed: cannot change note: the turn was cancelled.";
    chat.assert_told("1", told);
}

#[tokio::test]
async fn while_nothing_comes_at_all() {
    let mut chat = Chat::new([vec![Part::Hang]]);
    chat.say("go");
    eventually("the model is asked", || chat.model.requests().len() == 1).await;
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    goes_on(chat).await;
}

#[tokio::test]
async fn where_nothing_runs_it_does_nothing() {
    let mut chat = Chat::new([vec![text("ok"), done()]]);
    chat.send(Msg::Cancel);
    assert_eq!(chat.turn("go").await, "done");
}

#[tokio::test]
async fn a_chat_that_is_let_go_of_ends_its_turn() {
    let mut chat = Chat::new([vec![text("I"), Part::Hang]]);
    chat.say("go");
    chat.state(ChatState::Streaming).await;
    chat.leave();
    assert_eq!(chat.ended().await, "cancelled");
}

#[tokio::test]
async fn what_waits_is_not_begun_in_a_chat_that_is_closed() {
    let mut chat = Chat::new([vec![text("I"), Part::Hang], says("never")]);
    chat.say("first");
    chat.state(ChatState::Streaming).await;
    chat.say("second");
    chat.close().await;
    let begun = |item: &Item| matches!(item, Item::User { .. });
    assert_eq!(chat.disk().into_iter().filter(begun).count(), 1);
}

#[tokio::test]
async fn after_a_new_prompt_a_cancel_means_the_turn_alone() {
    let hang = || vec![text("one"), Part::Hang];
    let mut chat = Chat::new([hang(), hang(), says("three")]);
    chat.say("first");
    chat.state(ChatState::Streaming).await;
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    chat.say("second");
    chat.state(ChatState::Streaming).await;
    chat.say("third");
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    chat.command("steer", "");
    assert_eq!(chat.ended().await, "done", "the third was not given up");
}

#[tokio::test]
async fn a_prompt_that_waits_goes_to_no_other_chat() {
    let mut chat = Chat::new([says("earlier"), vec![text("I"), Part::Hang]]);
    assert_eq!(chat.turn("the earlier chat").await, "done");
    let earlier = chat.id();
    chat.again().await;
    chat.say("first");
    chat.state(ChatState::Streaming).await;
    chat.say("second");
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    let (_, said) = chat.noticed().await;
    assert!(said.starts_with("queued prompts wait"), "{said}");
    let waits = "prompts of this chat wait";
    chat.command_fails("resume", &earlier, waits).await;
    chat.send(Msg::Cancel);
    chat.resume(&earlier).await;
}
