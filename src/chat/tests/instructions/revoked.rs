//! Instructions that the person no longer trusts.

use super::super::chat::{Chat, calls, says};
use super::{
    ANEW, NO_LONGER, answer, asking, question, say, sent, system_of_a_new_chat, told, trusting,
};
use crate::chat::{Msg, Prompt};
use crate::protocol::{Answer, ToEditor};
use crate::shared_file;

/// The choice of `/rules` that takes an answer back.
fn rule(chat: &Chat, name: &str) -> String {
    format!("file:{}", chat.work.join(name).display())
}

async fn take_back(chat: &mut Chat) {
    let told = chat.command_says("rules", &rule(chat, "AGENTS.md")).await.1;
    assert!(told.contains("asks about"), "{told}");
}

#[tokio::test]
async fn a_text_that_is_taken_back_is_not_sent_again() {
    // In a note, then in the system prompt.
    for system in [false, true] {
        let mut chat = trusting().await;
        if system {
            let system = system_of_a_new_chat(&mut chat).await;
            assert!(system.contains("Use tabs."), "{system}");
        }
        take_back(&mut chat).await;
        assert!(!chat.screen().contains(ANEW));
        assert!(sent(&mut chat, NO_LONGER).await);
        assert!(!told(&chat).contains("tabs"), "{}", told(&chat));
        assert_eq!(chat.screen().matches(ANEW).count(), 1);
        let id = chat.id();
        chat.again().await;
        chat.command("resume", &id);
        assert!(!sent(&mut chat, "tabs").await);
        assert!(!told(&chat).contains("tabs"), "{}", told(&chat));
        assert_eq!(
            chat.screen().matches(ANEW).count(),
            1,
            "and as it was resumed"
        );
    }
}

#[tokio::test]
async fn a_text_that_is_taken_back_is_not_summed_up() {
    let mut chat = trusting().await;
    take_back(&mut chat).await;
    chat.model.push(says("a summary"));
    assert_eq!(chat.command_ends("compact").await, "done");
    assert!(!told(&chat).contains("tabs"), "{}", told(&chat));
}

#[tokio::test]
async fn a_turn_that_was_sent_the_text_ends_when_any_chat_takes_it_back() {
    for elsewhere in [false, true] {
        let mut chat = trusting().await;
        chat.model.push(calls(&[("1", "touch a")]));
        chat.say("go");
        chat.asked().await;
        let other = chat.spawn(9);
        match elsewhere {
            true => {
                let (name, args) = ("rules".to_owned(), rule(&chat, "AGENTS.md"));
                other.send(Msg::Command { name, args });
            }
            false => chat.command("rules", &rule(&chat, "AGENTS.md")),
        }
        assert_eq!(chat.ended().await, "cancelled");
        let why =
            "the turn of chat 1 is cancelled: it was sent AGENTS.md; /retry continues without it";
        let said = |message: &ToEditor| matches!(message, ToEditor::Notice { message, .. } if message == why);
        assert!(chat.seen.iter().any(said), "{:?}", chat.seen);
        chat.model.push(says("ok"));
        assert_eq!(chat.command_ends("retry").await, "done");
        assert!(!told(&chat).contains("tabs"), "{}", told(&chat));
    }
}

#[tokio::test]
async fn a_no_to_the_changed_text_ends_the_turn_that_was_sent_the_old_one() {
    let mut chat = trusting().await;
    chat.model.push(calls(&[("1", "touch a")]));
    chat.say("go");
    chat.asked().await;
    chat.write("AGENTS.md", "Use spaces.\n");
    chat.model.push(says("ok"));
    let other = chat.spawn(9);
    other.send(Msg::Prompt(Prompt {
        text: "hello".into(),
        ..Prompt::default()
    }));
    assert_eq!(chat.ended().await, "done", "that of the other chat");
    let asked = question(&mut chat).await;
    assert_eq!(asked.text, "Use spaces.\n");
    assert!(answer(&chat, asked.id, Answer::Deny));
    assert_eq!(chat.ended().await, "cancelled");
}

#[tokio::test]
async fn an_answer_about_another_file_ends_no_turn() {
    let mut chat = trusting().await;
    chat.write("CO.md", "Use spaces.\n");
    assert!(!sent(&mut chat, "spaces").await);
    let asked = question(&mut chat).await;
    say(&mut chat, asked.id, Answer::Deny).await;
    assert!(sent(&mut chat, "Use tabs.").await);
    chat.model.push(calls(&[("1", "touch a")]));
    let command = chat.question("go").await;
    let told = chat.command_says("rules", &rule(&chat, "CO.md")).await.1;
    assert!(told.contains("asks about"), "{told}");
    chat.model.push(says("ok"));
    chat.answer(command.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
}

#[tokio::test]
async fn an_answer_that_is_taken_back_while_it_is_saved_stays_so() {
    let (mut chat, asked) = asking().await;
    let held = shared_file::lock(&chat.services.places.trust).unwrap();
    assert!(answer(&chat, asked.id, Answer::Once));
    chat.command("rules", &rule(&chat, "AGENTS.md"));
    tokio::task::yield_now().await;
    drop(held);
    while !chat.noticed().await.1.contains("asks about") {}
    assert_eq!(
        chat.services
            .trust_answers
            .answers(&[&chat.work])
            .await
            .unwrap(),
        []
    );
    assert!(!sent(&mut chat, "Use tabs.").await);
}
