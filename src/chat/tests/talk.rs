//! Text, the queue, and what is on disk while it is on the screen.

use std::time::Duration;

use super::chat::{Chat, asks_for, call, calls, done, says, text};
use crate::chat::{Msg, Prompt};
use crate::protocol::{ChatState, ToEditor};
use co_llm::scripted::{Part, Scripted};
use co_llm::transcript::{Context, End, Image, Item, Usage};
use co_llm::{Delta, Stop};

#[tokio::test]
async fn text_then_done() {
    let mut chat = Chat::new([vec![
        text("Hel"),
        text("lo."),
        Delta::Usage(Usage {
            input: 7,
            output: 2,
            cached: 1,
            ..Usage::default()
        })
        .into(),
        done(),
    ]]);
    assert_eq!(chat.turn("hi").await, "done");
    assert_eq!(chat.screen(), "## You\nhi\n\n## Co\nHello.");
    let disk = chat.disk();
    let said: String = disk.iter().filter_map(said).collect();
    assert_eq!(said, "Hello.");
    let Some(Item::End { reason, usage, .. }) = disk.last() else {
        panic!("no end in {disk:?}");
    };
    assert_eq!((*reason, usage.input, usage.output), (End::Done, 7, 2));
    let request = chat.last_request();
    assert_eq!(request.items.len(), 1);
    assert!(request.system.contains(&chat.work.display().to_string()));
    let tools: Vec<_> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert!(tools.contains(&"run_shell_command"), "{tools:?}");
}

fn said(item: &Item) -> Option<&str> {
    match item {
        Item::Text { text } => Some(text),
        _ => None,
    }
}

#[tokio::test]
async fn what_is_on_the_screen_is_on_disk() {
    let mut parts = Vec::new();
    for number in 0..300 {
        parts.push(text(&format!("{number} ")));
        if number % 40 == 0 {
            parts.push(Part::Pause(Duration::from_millis(5)));
        }
    }
    parts.push(done());
    let mut chat = Chat::new([parts]);
    chat.say("count");
    let over = |message: &ToEditor| matches!(message, ToEditor::Event { name, .. } if name == "CoTurnDone");
    let mut frames = 0;
    while !chat.seen.last().is_some_and(over) {
        chat.frame().await;
        frames += 1;
        let screen = chat.screen();
        let Some((_, shown)) = screen.split_once("## Co\n\n") else {
            continue;
        };
        let disk: String = chat.disk().iter().filter_map(said).collect();
        assert!(
            disk.starts_with(shown),
            "{shown:?} is shown, on disk is {disk:?}"
        );
    }
    assert!(
        frames > 2,
        "all came at once, so nothing was seen on the way"
    );
    assert!(chat.screen().ends_with("298 299 "));
}

#[tokio::test]
async fn thoughts_are_kept_in_their_order_with_every_signature() {
    let mut chat = Chat::new([
        vec![
            Delta::Reasoning("First".into()).into(),
            Delta::Signature("s1".into()).into(),
            Delta::Signature("sealed".into()).into(),
            text("I look."),
            Delta::Reasoning("then".into()).into(),
            Delta::Signature("s2".into()).into(),
            call("1", "ls"),
            done(),
        ],
        says("ok"),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    let thought = |text: &str, signature: &str| Item::Reasoning {
        text: text.into(),
        signature: Some(signature.into()),
    };
    let items = chat.last_request().items;
    assert_eq!(
        items[1..5],
        [
            thought("First", "s1"),
            thought("", "sealed"),
            Item::Text {
                text: "I look.".into()
            },
            thought("then", "s2"),
        ]
    );
    assert!(matches!(items[5], Item::Call(_)), "{items:?}");
}

#[tokio::test]
async fn prompts_typed_during_a_turn_wait_their_turn() {
    let mut chat = Chat::new([
        vec![text("one"), Part::Pause(Duration::from_millis(300)), done()],
        says("two"),
        says("three"),
    ]);
    chat.say("first");
    chat.state(ChatState::Streaming).await;
    chat.say("second");
    chat.say("third");
    chat.until(|message| {
        matches!(
            message,
            ToEditor::State {
                queued: 2,
                taken_prompts: 1,
                ..
            }
        )
        .then_some(())
    })
    .await;
    for _ in 0..3 {
        assert_eq!(chat.ended().await, "done");
    }
    assert_eq!(
        chat.screen(),
        "## You\nfirst\n\n## Co\none\n\n## You\nsecond\n\n## Co\ntwo\n\n## You\nthird\n\n## Co\nthree"
    );
}

/// The count of the provider takes the place of the estimate.
#[tokio::test]
async fn the_state_says_how_full_the_window_is() {
    let counted = Usage {
        input: 6_000,
        output: 1_000,
        ..Usage::default()
    };
    let answer = vec![text("yes"), Delta::Usage(counted).into(), done()];
    let answers = [vec![Part::Hang], answer];
    let mut chat = Chat::with(Scripted::with_window(answers, 10_000), |_| {});
    let window_used = |message: &ToEditor| match message {
        ToEditor::State { window_used, .. } => *window_used,
        _ => None,
    };
    // A newer state takes the place of one that waits, so the model waits until the estimate was seen.
    chat.say(&"x".repeat(4_000));
    let estimated = chat.until(window_used).await;
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    assert_eq!(chat.turn("go on").await, "done");
    let counted = chat.seen.iter().rev().find_map(window_used);
    assert_eq!(counted, Some(70));
    assert!((20..60).contains(&estimated), "{estimated}");
}

#[tokio::test]
async fn a_second_cancel_drops_the_queue() {
    let mut chat = held([]).await;
    chat.send(Msg::Cancel);
    chat.until(pick!(ToEditor::State {
        state: ChatState::Idle,
        queued: 0,
        taken_prompts: 3,
        ..
    } => ()))
        .await;
    assert_eq!(chat.model.requests().len(), 1);
    assert!(!chat.screen().contains("second"));
    // A new prompt begins anew.
    chat.model.push(says("here"));
    chat.say("fourth");
    chat.state(ChatState::Streaming).await;
}

/// Cancels a turn while two prompts wait.
async fn held(answers: impl IntoIterator<Item = Vec<Part>>) -> Chat {
    let hang = vec![text("one"), Part::Hang];
    let mut chat = Chat::new(std::iter::once(hang).chain(answers));
    chat.say("first");
    chat.state(ChatState::Streaming).await;
    chat.say("second");
    chat.say("third");
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    chat.notice("prompts wait").await;
    assert_eq!(chat.model.requests().len(), 1);
    chat
}

#[tokio::test]
async fn after_a_cancel_a_new_prompt_goes_before_those_that_wait() {
    let mut chat = held([says("two"), says("three"), says("four")]).await;
    chat.say("not so");
    for _ in 0..3 {
        assert_eq!(chat.ended().await, "done");
    }
    let screen = chat.screen();
    let prompts: Vec<_> = screen.split("## You\n").skip(1).collect();
    let firsts = prompts.iter().filter_map(|it| it.lines().next());
    assert_eq!(
        firsts.collect::<Vec<_>>(),
        ["first", "not so", "second", "third"]
    );
}

#[tokio::test]
async fn after_a_cancel_the_prompts_that_wait_go_on_by_a_command() {
    let mut chat = held([says("two"), says("three")]).await;
    chat.command("steer", "");
    for _ in 0..2 {
        assert_eq!(chat.ended().await, "done");
    }
    assert!(
        chat.screen()
            .ends_with("second\n\n## Co\ntwo\n\n## You\nthird\n\n## Co\nthree")
    );
    // So they do after another turn.
    let mut chat = held([says("one"), says("two"), says("three")]).await;
    chat.command("retry", "");
    for _ in 0..3 {
        assert_eq!(chat.ended().await, "done");
    }
    assert!(chat.screen().ends_with("third\n\n## Co\nthree"));
}

#[tokio::test]
async fn an_answer_that_is_not_whole_says_so() {
    for (answer, expected) in [
        (
            vec![text("half a"), Delta::Stop(Stop::Length).into()],
            "output limit",
        ),
        (
            vec![text("I"), Delta::Stop(Stop::Refused).into()],
            "withheld the rest",
        ),
        (
            vec![Delta::Reasoning("hm".into()).into(), done()],
            "> the model answered with nothing; ",
        ),
    ] {
        let mut chat = Chat::new([calls(&[("1", "echo out")]), answer]);
        assert_eq!(chat.turn("go").await, "done");
        chat.assert_shown(expected);
    }
}

#[tokio::test]
async fn a_chat_is_resumed_as_it_was_seen() {
    let mut chat = Chat::new([calls(&[("1", "echo out")]), says("It says out.")]);
    assert_eq!(chat.turn("say out").await, "done");
    let shown = chat.resumed().await;
    for piece in ["## You\nsay out", "· echo out", "out\n", "It says out."] {
        assert!(shown.contains(piece), "{piece:?} is not in {shown}");
    }
    assert_eq!(chat.turn_with("and again", says("Yes.")).await, "done");
    let items = chat.last_request().items;
    assert!(matches!(&items[0], Item::User { text, .. } if text == "say out"));
    assert_eq!(chat.files().len(), 1, "it goes on in the same file");
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_said_to_the_model() {
    let mut chat = Chat::new([asks_for("1", "fly", serde_json::json!({})), says("ok")]);
    assert_eq!(chat.turn("fly").await, "done");
    chat.assert_told("1", "no tool called fly");
}

#[tokio::test]
async fn each_message_is_announced() {
    let mut chat = Chat::new([says("I say:\n\n## You\n\nno."), says("Yes.")]);
    assert_eq!(chat.turn("hi").await, "done");
    assert_eq!(chat.turn("again").await, "done");
    let pairs = chat.seen.windows(2);
    let begun: Vec<_> = pairs
        .filter_map(|pair| match pair {
            [
                ToEditor::MessageBegins { .. },
                ToEditor::Append { text, .. },
            ] => text.get(..6),
            _ => None,
        })
        .collect();
    assert_eq!(begun, ["## You", "## Co\n", "## You", "## Co\n"]);
}

/// A chat whose backend was killed is resumed by the last id that the editor got.
#[tokio::test]
async fn where_it_is_kept_is_known_before_anything_is_shown() {
    fn kept_before(seen: &[ToEditor]) -> Option<String> {
        let shown = |message: &ToEditor| {
            matches!(
                message,
                ToEditor::Append { .. } | ToEditor::Replace { .. } | ToEditor::Notice { .. }
            )
        };
        let first = seen.iter().position(shown).unwrap();
        seen[..first]
            .iter()
            .rev()
            .find_map(|message| match message {
                ToEditor::State { transcript, .. } => transcript.clone(),
                _ => None,
            })
    }
    let mut chat = Chat::new([says("Hello.")]);
    assert_eq!(chat.turn("hi").await, "done");
    let first = kept_before(&chat.seen).expect("it is told of the file");
    let from = chat.seen.len();
    chat.command_says("fork", "").await;
    let copy = kept_before(&chat.seen[from..]).expect("it is told of the copy");
    assert_ne!(copy, first);
    let from = chat.seen.len();
    chat.resume(&first).await;
    assert_eq!(kept_before(&chat.seen[from..]), Some(first));
}

#[tokio::test]
async fn an_image_that_the_model_cannot_see_is_named() {
    let mut chat = Chat::new([says("Hello."), says("A picture."), says("Yes.")]);
    assert_eq!(chat.turn("hi").await, "done");
    let image = Image {
        media_type: "image/png".into(),
        data: "SU1BR0U=".into(),
    };
    chat.send(Msg::Prompt(Prompt {
        text: "what is this?".into(),
        context: vec![Context {
            name: "@file:shot.png".into(),
            image: Some(image),
            ..Context::default()
        }],
        ..Prompt::default()
    }));
    assert_eq!(chat.ended().await, "done");
    let screen = chat.screen();
    assert!(
        screen.contains("*with @file:shot.png, an image*"),
        "{screen}"
    );
    assert!(
        screen.contains("left out: @file:shot.png; scripted is not known"),
        "{screen}"
    );
    assert_eq!(chat.turn("sure?").await, "done");
    assert_eq!(chat.screen().matches("left out:").count(), 1);
    let screen = chat.screen();
    assert_eq!(chat.resumed().await, screen);
}
