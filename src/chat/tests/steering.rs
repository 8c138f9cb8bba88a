//! Prompts that go into a turn that runs.

use super::chat::{Chat, calls, says, valid};
use crate::chat::{Msg, Prompt};
use crate::protocol::{Answer, LineRange, ToEditor};
use co_llm::transcript::Item;

fn steer(chat: &Chat, text: &str) {
    chat.send(Msg::Prompt(Prompt {
        text: text.to_owned(),
        steer: true,
        ..Prompt::default()
    }));
}

/// Waits until the chat shows these numbers of prompts: those that steer the turn, and those that wait for its end.
async fn waiting(chat: &mut Chat, wanted: [usize; 2]) {
    chat.until(
        pick!(ToEditor::State { steering, queued, .. } if [*steering, *queued] == wanted => ()),
    )
    .await;
}

fn prompts(items: &[Item]) -> Vec<&str> {
    let texts = items
        .iter()
        .filter_map(pick!(Item::User { text, .. } => text.as_str()));
    texts.collect()
}

#[tokio::test]
async fn it_goes_with_the_next_request_after_all_results() {
    let step = calls(&[("1", "touch a"), ("2", "touch b")]);
    let mut chat = Chat::new([step, says("One."), says("Two.")]);
    chat.say("go");
    let asked = [chat.asked().await.id, chat.asked().await.id];
    chat.say("later");
    steer(&chat, "not b");
    steer(&chat, "but c");
    waiting(&mut chat, [2, 1]).await;
    chat.answer(asked[0], Answer::Once);
    chat.answer(asked[1], Answer::Deny);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.ended().await, "done");
    let requests = chat.model.requests();
    let items = &requests[1].items;
    valid(items);
    assert_eq!(prompts(items), ["go", "not b", "but c"]);
    let [
        ..,
        Item::Outcome(last),
        Item::User { .. },
        Item::User { .. },
    ] = &items[..]
    else {
        panic!("{items:#?}");
    };
    assert_eq!(last.call, "2");
    assert_eq!(
        prompts(&requests[2].items),
        ["go", "not b", "but c", "later"]
    );
    let screen = chat.screen();
    let end = "## You\nnot b\n\n## You\nbut c\n\n## Co\nOne.\n\n## You\nlater\n\n## Co\nTwo.";
    assert!(screen.ends_with(end), "{screen}");
}

#[tokio::test]
async fn the_newest_queued_prompt_can_still_steer() {
    let mut chat = Chat::new([calls(&[("1", "touch a")]), says("One."), says("Two.")]);
    chat.say("go");
    let asked = chat.asked().await.id;
    chat.command("steer", "");
    chat.notice("no prompt waits").await;
    chat.say("first");
    chat.say("second");
    chat.command("steer", "");
    waiting(&mut chat, [1, 1]).await;
    chat.answer(asked, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.ended().await, "done");
    assert_eq!(prompts(&chat.disk()), ["go", "second", "first"]);
}

#[tokio::test]
async fn it_is_the_next_prompt_if_the_turn_makes_no_request_any_more() {
    let mut chat = Chat::new([calls(&[("1", "touch a")]), says("One."), says("Two.")]);
    chat.say("go");
    chat.asked().await;
    chat.say("later");
    steer(&chat, "not a");
    waiting(&mut chat, [1, 1]).await;
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    chat.command("steer", "");
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.ended().await, "done");
    assert_eq!(prompts(&chat.disk()), ["go", "not a", "later"]);
}

#[tokio::test]
async fn a_prompt_about_a_range_has_a_turn_of_its_own() {
    let mut chat = Chat::new([calls(&[("1", "touch a")]), says("One."), says("Two.")]);
    chat.say("go");
    let asked = chat.asked().await.id;
    chat.send(Msg::Prompt(Prompt {
        text: "these lines".to_owned(),
        range: Some(LineRange {
            file: "a".into(),
            first: 1,
            last: 2,
        }),
        ..Prompt::default()
    }));
    chat.command("steer", "");
    chat.notice("a turn of its own").await;
    chat.answer(asked, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(prompts(&chat.model.requests()[1].items), ["go"]);
    assert_eq!(chat.ended().await, "done");
}
