//! `/retry` asks for another answer to the last prompt; `/continue` goes on.

use super::chat::{Chat, calls, says};
use crate::protocol::ToEditor;
use co_llm::Fault;
use co_llm::scripted::Scripted;
use co_llm::transcript::Item;

fn texts(items: &[Item]) -> Vec<&str> {
    let texts = items
        .iter()
        .filter_map(pick!(Item::Text { text } => text.as_str()));
    texts.collect()
}

fn folds(chat: &Chat) -> usize {
    let fold = |message: &&ToEditor| matches!(message, ToEditor::FoldAnswer { .. });
    chat.seen.iter().filter(fold).count()
}

#[tokio::test]
async fn the_text_is_made_again_and_carried_out_calls_stay() {
    let mut chat = Chat::new([
        calls(&[("1", "echo out")]),
        says("It says out."),
        says("It prints out."),
    ]);
    assert_eq!(chat.turn("say out").await, "done");
    let before = chat.last_request();
    assert_eq!(chat.command_ends("retry").await, "done");
    let again = chat.last_request();
    assert_eq!(again.items, before.items, "the same question once more");
    assert_eq!(again.system, before.system);
    let disk = chat.disk();
    assert_eq!(texts(&disk), ["It says out.", "It prints out."]);
    assert!(disk.contains(&Item::Retried));
    assert_eq!(folds(&chat), 1);
    chat.assert_shown("asked again");
    // The old answer is never told again.
    assert_eq!(chat.turn_with("sure?", says("Yes.")).await, "done");
    assert_eq!(texts(&chat.last_request().items), ["It prints out."]);
}

#[tokio::test]
async fn a_resumed_chat_is_asked_again_and_shows_the_old_answer_folded() {
    let mut chat = Chat::new([says("One."), says("Two."), says("Three.")]);
    assert_eq!(chat.turn("count").await, "done");
    let id = chat.id();
    for expected in [0, 1] {
        chat.again().await;
        chat.command("resume", &id);
        let (folds, answer) = chat
            .until(pick!(ToEditor::Replace { part, .. } => (part.folds.len(), part.answer)))
            .await;
        assert!(folds == expected && answer.is_some(), "{folds} {answer:?}");
        assert_eq!(chat.command_ends("retry").await, "done");
        assert_eq!(texts(&chat.last_request().items), [""; 0]);
    }
    assert_eq!(folds(&chat), 2);
    assert_eq!(texts(&chat.disk()), ["One.", "Two.", "Three."]);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_the_same_request_goes_out_again() {
    let fault = Fault::Unauthorized {
        provider: "openai".into(),
        status: 401,
        source_name: "KEY".into(),
        body: String::new(),
    };
    let mut chat = Chat::new([vec![fault.into()], says("Here.")]);
    assert_eq!(chat.turn("go").await, "failed");
    let before = chat.last_request();
    assert_eq!(chat.command_ends("retry").await, "done");
    assert_eq!(chat.last_request().items, before.items);
    assert_eq!(folds(&chat), 0);
    assert!(!chat.screen().contains("asked again"));
}

#[tokio::test]
async fn going_on_keeps_the_answer_and_says_so_to_the_model() {
    let mut chat = Chat::new([says("Half"), says(" and half."), says("Anew.")]);
    assert_eq!(chat.turn("go").await, "done");
    let before = chat.last_request().items;
    assert_eq!(chat.command_ends("continue").await, "done");
    let items = chat.last_request().items;
    assert!(items.starts_with(&before));
    assert_eq!(texts(&items), ["Half"]);
    assert!(matches!(items.last(), Some(Item::Note { .. })), "{items:?}");
    // Both halves are one answer.
    assert_eq!(chat.command_ends("retry").await, "done");
    assert_eq!(chat.last_request().items, before);
}

/// The notes about the surroundings stay, and a note about one answer is dropped with the answer.
#[tokio::test]
async fn notes_about_the_place_stay_and_those_about_an_answer_go() {
    let mut chat = Chat::new([says("Half"), says(" and half."), says("Anew.")]);
    assert_eq!(chat.turn("go").await, "done");
    std::fs::create_dir(chat.work.join("sub")).unwrap();
    chat.command("cd", "sub");
    assert_eq!(chat.command_ends("continue").await, "done");
    assert_eq!(chat.command_ends("retry").await, "done");
    let items = chat.last_request().items;
    assert_eq!(texts(&items), [""; 0]);
    let notes: Vec<_> = items
        .iter()
        .filter_map(pick!(Item::Note { text, .. } => text.as_str()))
        .collect();
    assert!(
        matches!(notes[..], [note] if note.contains("/sub")),
        "{notes:?}"
    );
}

#[tokio::test]
async fn after_the_last_step_the_summing_up_is_asked_for_with_tools_again() {
    let scripted = Scripted::new([calls(&[("1", "echo 1")]), says("So far."), says("More.")]);
    let mut chat = Chat::with(scripted, |config| config.max_steps = 1);
    assert_eq!(chat.turn("go").await, "guarded");
    assert_eq!(chat.command_ends("retry").await, "done");
    let request = chat.last_request();
    assert!(request.may_call);
    let note = |item: &&Item| matches!(item, Item::Note { .. });
    assert_eq!(request.items.iter().find(note), None);
}

/// The last request of the turn forbade calls; the next request must not end with that.
#[tokio::test]
async fn going_on_after_the_last_step_says_that_tools_can_be_called() {
    let answers = [
        calls(&[("1", "echo 1")]),
        calls(&[("2", "echo 2")]),
        says("Done."),
    ];
    let mut chat = Chat::with(Scripted::new(answers), |config| config.max_steps = 1);
    assert_eq!(chat.turn("go").await, "guarded");
    assert_eq!(chat.command_ends("continue").await, "done");
    let items = chat.last_request().items;
    let Some(Item::Note { text, .. }) = items.last() else {
        panic!("{items:?}");
    };
    assert!(text.contains("You can call tools"), "{text}");
}
