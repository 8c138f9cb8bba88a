//! Faults of providers and of the disk, in a turn. The clock moves only while a test waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::chat::{Chat, calls, done, says, text, told, valid};
use crate::chat;
use crate::chat::turn::TurnEnd;
use crate::protocol::{ChatState, ToEditor};
use co_llm::Fault;
use co_llm::scripted::Part;
use co_llm::transcript::{self, Call, Decision, End, Item};

fn limited(seconds: u64) -> Vec<Part> {
    let fault = Fault::RateLimited {
        provider: "scripted".into(),
        retry_after: Some(Duration::from_secs(seconds)),
    };
    vec![fault.into()]
}

fn failing() -> Vec<Part> {
    let fault = Fault::Server {
        provider: "scripted".into(),
        status: 500,
        retry_after: None,
        body: String::new(),
        explained: false,
    };
    vec![fault.into()]
}

fn countdown(chat: &Chat) -> Vec<String> {
    let seen = chat.seen.iter();
    seen.filter_map(
        pick!(ToEditor::State { state: ChatState::Retrying, detail, .. } => detail.clone()),
    )
    .collect()
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_asks_to_slow_down_gets_its_time() {
    let mut chat = Chat::new([limited(5), says("Here.")]);
    let began = Instant::now();
    assert_eq!(chat.turn("go").await, "done");
    let waited = began.elapsed().as_secs_f64();
    assert!((5.0..5.5).contains(&waited), "{waited} s");
    let shown = countdown(&chat);
    let expected: Vec<_> = (1..=5)
        .rev()
        .map(|left| format!("in {left} s: scripted asks to slow down (HTTP 429)"))
        .collect();
    assert_eq!(shown, expected);
    assert!(chat.screen().ends_with("Here."));
}

#[tokio::test(start_paused = true)]
async fn a_failing_server_is_tried_five_times_more() {
    let mut chat = Chat::new((0..6).map(|_| failing()));
    let began = Instant::now();
    assert_eq!(chat.turn("go").await, "failed");
    let waited = began.elapsed().as_secs_f64();
    assert!(
        (0.8 * 15.5..1.2 * 15.5 + 0.5).contains(&waited),
        "{waited} s"
    );
    assert_eq!(chat.model.requests().len(), 6);
    chat.assert_shown("/retry");
    chat.model.push(says("Here."));
    assert_eq!(chat.command_ends("retry").await, "done");
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_not_waited_for() {
    let mut chat = Chat::new([limited(3_600)]);
    let began = Instant::now();
    assert_eq!(chat.turn("go").await, "failed");
    assert!(began.elapsed().as_secs() < 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_tried_again_is_one_sentence_that_says_what_to_do() {
    let used_up = Fault::QuotaUsedUp {
        provider: "OpenAI".into(),
        status: 429,
        body: String::new(),
    };
    let refused = Fault::Unauthorized {
        provider: "openai".into(),
        status: 401,
        source_name: "OPENAI_API_KEY".into(),
        body: "Incorrect API key provided".into(),
    };
    for (fault, words) in [
        (used_up, ["OpenAI", "add credit"]),
        (refused, ["OPENAI_API_KEY", "Incorrect API key provided"]),
    ] {
        let mut chat = Chat::new([vec![fault.into()]]);
        assert_eq!(chat.turn("go").await, "failed");
        assert_eq!(chat.model.requests().len(), 1);
        let screen = chat.screen();
        let said = |line: &&str| words.iter().all(|word| line.contains(word));
        assert_eq!(screen.lines().filter(said).count(), 1, "{screen}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_kept_and_goes_on_by_hand() {
    for end in [vec![Part::from(Fault::Cut)], Vec::new()] {
        let mut cut = vec![text("The first half")];
        cut.extend(end);
        let mut chat = Chat::new([cut]);
        assert_eq!(chat.turn("go").await, "failed");
        let screen = chat.screen();
        assert!(
            screen.contains("The first half") && screen.contains("/continue"),
            "{screen}"
        );
        chat.model.push(says(" and the second."));
        assert_eq!(chat.command_ends("continue").await, "done");
        let items = chat.last_request().items;
        let said = Item::Text {
            text: "The first half".into(),
        };
        let note = Item::Note {
            text: "Go on from where you stopped. You can call tools.".into(),
            once: true,
        };
        assert!(
            items.contains(&said) && items.ends_with(&[note]),
            "{items:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_is_kept_up_to_the_limit() {
    let endless = vec![text(&"word ".repeat(1 << 20)), Part::Hang];
    let mut chat = Chat::new([endless]);
    assert_eq!(chat.turn("go").await, "failed");
    let screen = chat.screen();
    let end = &screen[screen.len() - 200..];
    assert!(
        end.contains("**the answer is longer than 4 MiB**") && end.contains("/continue"),
        "{end}"
    );
    let disk = chat.disk();
    let kept = disk.iter().filter_map(|item| match item {
        Item::Text { text } => Some(text.len()),
        _ => None,
    });
    assert_eq!(kept.sum::<usize>(), 4 << 20);
}

#[tokio::test(start_paused = true)]
async fn calls_of_an_answer_that_broke_off_are_not_run() {
    let mut answer = calls(&[("1", "mkdir out")]);
    answer.pop();
    answer.push(Fault::Cut.into());
    let mut chat = Chat::new([answer]);
    assert_eq!(chat.turn("go").await, "failed");
    assert_eq!(chat.asks(), 0);
    chat.model.push(says("ok"));
    assert_eq!(chat.command_ends("retry").await, "done");
    valid(&chat.last_request().items);
}

#[tokio::test(start_paused = true)]
async fn without_a_provider_the_turn_says_what_to_do() {
    let mut chat = Chat::new([]);
    let (_, said) = chat.command_says("model", "unheard-of").await;
    assert!(said.contains("no provider is set up"), "{said}");
    // The model it had goes on.
    assert_eq!(chat.turn_with("go", vec![text("ok"), done()]).await, "done");
}

#[tokio::test]
async fn a_prompt_that_cannot_be_written_down_comes_back() {
    let mut chat = Chat::new([says("Here.")]);
    let chats = chat.work.parent().unwrap().join("data/chats");
    std::fs::write(&chats, "in the way").unwrap();
    chat.say("a long\nprompt");
    let (_, why) = chat.noticed().await;
    assert!(why.contains("could not be written"), "{why}");
    assert_eq!(chat.unsent().await, "a long\nprompt");
    assert_eq!(chat.screen(), "", "nothing is shown that is not on disk");
    std::fs::remove_file(&chats).unwrap();
    assert_eq!(chat.turn("a long\nprompt").await, "done");
}

#[tokio::test]
async fn a_conversation_that_could_not_be_resumed_is_not_replaced_unsaid() {
    let mut chat = Chat::new([says("Hello.")]);
    chat.command_says("resume", "gone").await;
    chat.say("go on");
    let (_, why) = chat.noticed().await;
    assert!(why.contains("could not be resumed"), "{why}");
    assert_eq!(chat.unsent().await, "go on");
    assert!(chat.model.requests().is_empty());
    assert_eq!(
        chat.turn("go on").await,
        "done",
        "the second time is meant so"
    );
}

#[tokio::test]
async fn what_could_be_resumed_or_goes_on_is_not_held_back() {
    let mut chat = Chat::new([says("one"), says("two"), says("three")]);
    assert_eq!(chat.turn("first").await, "done");
    chat.command_says("resume", "gone").await;
    assert_eq!(chat.turn("it goes on").await, "done");
    let id = chat.id();
    chat.again().await;
    chat.command_says("resume", "gone").await;
    chat.resume(&id).await;
    assert_eq!(chat.turn("so does this").await, "done");
}

/// Returns a chat that no task runs.
fn without_task(test: &Chat) -> chat::Chat {
    chat::Chat::new(
        7,
        test.front_end(7),
        Arc::clone(&test.services),
        test.place(),
        test.app.clone(),
    )
}

#[tokio::test]
async fn a_turn_whose_end_the_full_disk_lost_has_ended() {
    let test = Chat::new([]);
    let mut chat = without_task(&test);
    assert!(chat.recorder.ready(&test.place(), "fix it").await);
    assert!(chat.recorder.record(Item::user("fix it")).await);
    let log = chat.recorder.log().unwrap();
    let full = std::fs::File::options().write(true).open("/dev/full");
    let file = log.lock().replace_file(full.unwrap());
    let done = TurnEnd {
        end: End::Done,
        ..TurnEnd::failed(None)
    };
    chat.end_turn(done).await;
    assert!(!chat.recorder.record(Item::user("/plan x")).await);
    log.lock().replace_file(file);
    assert!(chat.recorder.record(Item::user("/plan it")).await);
    assert!(transcript::is_planning(chat.recorder.items()));
    assert_eq!(chat.recorder.turns_ended(), 1);
    let id = chat.recorder.id().unwrap();
    drop((chat, log));
    let (_, loaded) = test.services.store.open(&id).unwrap();
    assert!(transcript::is_planning(&loaded.items));
}

/// If the outcome of a call cannot be written, or the turn breaks, the model is not told that the call did not run.
#[tokio::test]
async fn of_a_call_that_was_let_run_nobody_says_that_it_did_not() {
    let test = Chat::new([]);
    let mut chat = without_task(&test);
    let decisions = [
        ("1", None),
        ("2", Some(Decision::Approved)),
        ("3", Some(Decision::Denied { reason: None })),
        ("4", Some(Decision::Unasked)),
    ];
    for (id, decision) in decisions {
        let call = Call::new(id, "run_shell_command", serde_json::json!({"cmd": "make"}));
        assert!(chat.recorder.record(Item::Call(call)).await);
        if let Some(decision) = decision {
            let call = id.to_owned();
            let item = Item::Decision { call, decision };
            assert!(chat.recorder.record(item).await);
        }
    }
    chat.answer_calls(&[]).await;
    let items = chat.recorder.items();
    valid(items);
    for (id, expected) in [
        ("1", "before this call was carried out"),
        ("2", "is not known"),
        ("3", "before this call was carried out"),
        ("4", "is not known"),
    ] {
        let told = told(items, id);
        assert!(told.contains(expected), "{id}: {told}");
    }
}
