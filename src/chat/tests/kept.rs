//! The part of a broken answer that the chat keeps, and the requests after it.

use super::chat::{Chat, call, done, says, text, unread};
use crate::protocol::ToEditor;
use co_llm::scripted::{Part, Scripted};
use co_llm::transcript::Item;
use co_llm::{Delta, Fault, Stop};

fn failing() -> Part {
    Fault::Server {
        provider: "scripted".into(),
        status: 500,
        retry_after: None,
        body: String::new(),
        explained: false,
    }
    .into()
}

fn thought(text: &str) -> Part {
    Delta::Reasoning(text.to_owned()).into()
}

/// Asking again would say it twice.
#[tokio::test]
async fn what_was_shown_or_kept_is_not_asked_for_again() {
    let sealed = Delta::Signature("sealed".into()).into();
    for begun in [vec![text("Half")], vec![thought("hm"), sealed]] {
        let answer = begun.into_iter().chain([failing()]).collect();
        let mut chat = Chat::new([answer, says("never")]);
        assert_eq!(chat.turn("go").await, "failed");
        assert_eq!(chat.model.requests().len(), 1);
        let kept = |item: &Item| matches!(item, Item::Text { .. } | Item::Reasoning { .. });
        assert_eq!(chat.disk().into_iter().filter(kept).count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_thought_that_led_nowhere_yet_is_asked_for_again() {
    let silent = Fault::Stalled(std::time::Duration::from_secs(120));
    for end in [failing(), Fault::Cut.into(), silent.into()] {
        let mut chat = Chat::new([vec![thought("hm"), end], says("Here.")]);
        assert_eq!(chat.turn("go").await, "done");
        assert!(chat.screen().ends_with("Here."));
    }
}

#[tokio::test]
async fn a_thought_of_an_answer_that_broke_off_is_kept() {
    let unreadable = Fault::Malformed { detail: "x".into() };
    let mut chat = Chat::new([vec![thought("hm"), unreadable.into()]]);
    assert_eq!(chat.turn("go").await, "failed");
    let kept = |item: &Item| matches!(item, Item::Reasoning { text, .. } if text == "hm");
    assert!(chat.disk().iter().any(kept), "{:#?}", chat.disk());
}

#[tokio::test]
async fn thoughts_are_shown_where_that_is_set() {
    for show in [false, true] {
        // One that came encrypted has no text.
        let sealed = Delta::Signature("sealed".into()).into();
        let answer = vec![sealed, thought("\nso\nit is"), text("Yes."), done()];
        let mut chat = Chat::with(Scripted::new([answer]), |config| {
            config.show_reasoning = show;
        });
        assert_eq!(chat.turn("go").await, "done");
        let screen = chat.screen();
        assert_eq!(screen.contains("· thinks"), show, "{screen}");
        let thoughts: Vec<_> = chat.seen.iter().filter_map(thought_shown).collect();
        let live = (vec!["so".to_owned(), "it is".to_owned()], false);
        let end = (Vec::new(), true);
        assert_eq!(thoughts, if show { vec![live, end] } else { vec![] });
    }
}

/// Returns the new lines of a thought on the screen, and true if it is complete.
fn thought_shown(message: &ToEditor) -> Option<(Vec<String>, bool)> {
    match message {
        ToEditor::Block { patch, done, .. } => {
            Some((patch.clone().unwrap_or_default().lines, *done))
        }
        _ => None,
    }
}

#[tokio::test]
async fn arguments_that_cannot_be_read_alone_go_back_too() {
    let mut chat = Chat::new([vec![unread("1"), done()], says("ok")]);
    assert_eq!(chat.turn("go").await, "done");
    chat.assert_told("1", "expected `}`");
    assert!(chat.screen().ends_with("ok"));
}

#[tokio::test]
async fn a_summary_at_its_limit_is_taken_and_a_withheld_one_is_not() {
    for (stop, ended) in [(Stop::Length, "done"), (Stop::Refused, "failed")] {
        let summary = vec![text("In short."), Delta::Stop(stop).into()];
        let mut chat = Chat::new([says("A long story."), summary]);
        assert_eq!(chat.turn("tell me").await, "done");
        assert_eq!(chat.command_ends("compact").await, ended, "{stop:?}");
        let summary = |item: &Item| matches!(item, Item::Summary { .. });
        assert_eq!(chat.disk().iter().any(summary), ended == "done");
    }
}

#[tokio::test]
async fn what_a_command_came_to_is_kept_as_it_was() {
    let mut chat = Chat::trusting([
        vec![
            call("1", "true"),
            call("2", "seq 100000"),
            call("3", "exit 3"),
            done(),
        ],
        says("ok"),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    assert_eq!(chat.told("1"), "(no output)");
    let outcomes = chat
        .disk()
        .into_iter()
        .filter_map(pick!(Item::Outcome(outcome) => (outcome.ok, outcome.spill)));
    let outcomes: Vec<_> = outcomes.collect();
    let [(true, None), (true, Some(spill)), (false, None)] = outcomes.as_slice() else {
        panic!("{outcomes:?}");
    };
    let whole = std::fs::read_to_string(spill).unwrap();
    assert!(whole.ends_with("\n100000\n"));
}
