//! Commands that the person types at the prompt: shown apart from what the model says, kept with the conversation.

use std::time::Duration;

use super::chat::{Chat, done, says, text};
use crate::chat::Msg;
use crate::protocol::ToEditor;
use co_llm::scripted::Part;
use co_llm::transcript::Item;

const WAITS: &str = "until test -e go; do sleep 0.05; done; exit 3";

fn notices(items: &[Item]) -> Vec<String> {
    let notices = items
        .iter()
        .filter_map(pick!(Item::Notice { text } => text.clone()));
    notices.collect()
}

#[tokio::test]
async fn its_end_tears_no_sentence_and_is_kept() {
    let pause = Part::Pause(Duration::from_secs(1));
    let mut chat = Chat::new([
        vec![text("One "), pause, text("sentence."), done()],
        says("ok"),
    ]);
    chat.run(WAITS);
    chat.shown("!until").await;
    chat.say("go");
    chat.shown("One ").await;
    chat.write("go", "");
    assert_eq!(chat.ended().await, "done");
    let screen = chat.screen();
    assert!(screen.contains("One sentence."), "{screen}");
    assert!(screen.contains("exit 3"), "{screen}");
    let kept = notices(&chat.disk());
    assert!(
        kept.len() == 1 && kept[0].contains(WAITS) && kept[0].contains("exit 3"),
        "{kept:?}"
    );
    assert_eq!(chat.turn("and?").await, "done");
}

#[tokio::test]
async fn what_was_typed_before_the_first_prompt_runs_without_the_model_and_is_kept_with_it() {
    let mut chat = Chat::new([says("ok")]);
    chat.run("echo typed");
    chat.until(pick!(ToEditor::Call { line, .. } if line.kept.is_some() => ()))
        .await;
    assert!(chat.blocks().concat().contains("typed"));
    assert!(chat.model.requests().is_empty());
    assert_eq!(chat.turn("go").await, "done");
    assert_eq!(notices(&chat.disk()).len(), 1);
}

#[tokio::test]
async fn another_conversation_waits_for_its_end() {
    let mut chat = Chat::new([says("ok")]);
    assert_eq!(chat.turn("go").await, "done");
    let first = chat.id();
    chat.again().await;
    chat.run(WAITS);
    chat.command_fails("resume", &first, "<C-c>").await;
    chat.send(Msg::Cancel);
    chat.shown("  cancelled").await;
    chat.resume(&first).await;
}

#[tokio::test]
async fn its_end_is_kept_also_where_the_chat_is_closed() {
    let mut chat = Chat::new([says("ok")]);
    assert_eq!(chat.turn("go").await, "done");
    chat.run(WAITS);
    chat.shown("!until").await;
    chat.close().await;
    let kept = notices(&chat.disk());
    assert!(
        kept.len() == 1 && kept[0].contains("ended: cancelled"),
        "{kept:?}"
    );
}

#[tokio::test]
async fn nothing_is_no_command() {
    let chat = &mut Chat::new([]);
    chat.run("");
    let (_, said) = chat.noticed().await;
    assert!(said.contains("type a command"), "{said}");
}
