//! Conversations that outgrow the model's window.

use super::chat::{Chat, done, says, text, tool, valid};
use crate::protocol::ToEditor;
use co_llm::scripted::Scripted;
use co_llm::transcript::{Cost, Item, Usage};
use co_llm::{Delta, Prices};

const WINDOW: u64 = 10_000;

fn estimate(items: &[Item]) -> usize {
    items
        .iter()
        .map(|item| serde_json::to_string(item).unwrap().len() / 4)
        .sum()
}

#[tokio::test]
async fn what_no_longer_fits_is_summed_up() {
    let long = "word ".repeat(1_200);
    let mut chat = Chat::with(
        Scripted::with_window((0..20).map(|_| says(&long)), WINDOW),
        |_| {},
    );
    let mut turns = 0;
    let summed_up = |disk: &[Item]| {
        let summaries = disk.iter();
        summaries
            .filter(|item| matches!(item, Item::Summary { .. }))
            .count()
    };
    while turns == 0 || summed_up(&chat.disk()) == 0 {
        assert_eq!(chat.turn(&format!("words, please, {turns}")).await, "done");
        turns += 1;
    }
    assert!(turns > 1);
    let disk = chat.disk();
    assert_eq!(summed_up(&disk), 1);
    let request = chat.last_request();
    assert!(estimate(&request.items) < WINDOW as usize * 4 / 5);
    // Only what is kept beside the summary went out with it.
    let told = |item: &&Item| matches!(item, Item::Text { .. });
    let told = request.items.iter().filter(told).count();
    assert!(told < turns - 1, "{told} answers are told of {turns}");
    let summary = |item: &Item| matches!(item, Item::Summary { .. });
    assert!(request.items.iter().any(summary));
    let first = &request.items[0];
    assert!(
        matches!(first, Item::User { text, .. } if text == "words, please, 0"),
        "the first words are told: {first:?}"
    );
    let last = request.items.last().unwrap();
    assert!(matches!(last, Item::User { text, .. } if text.ends_with(&format!("{}", turns - 1))));
    valid(&request.items);
    let said = disk.iter().filter(|item| matches!(item, Item::Text { .. }));
    assert_eq!(said.count(), turns, "all of it stays in the file");
    chat.assert_shown("summed up");
}

/// The tokens of a compaction are counted even if its summary is unusable. The compacted items stay in the file and on the screen.
#[tokio::test]
async fn compacting_by_hand_is_counted_and_takes_nothing_away() {
    let used = |input| {
        let usage = Usage {
            input,
            output: 1,
            ..Usage::default()
        };
        Delta::Usage(usage).into()
    };
    let answer = |said: &str, input| vec![text(said), used(input), done()];
    let mut chat = Chat::with(
        Scripted::new([
            answer("A long story.", 100),
            vec![used(20), done()],
            answer("In short.", 30),
        ]),
        |config| {
            let price = serde_json::from_str(r#"{"input": 2, "output": 1000000}"#).unwrap();
            config.prices = Prices(vec![("scripted".to_owned(), price)]);
        },
    );
    assert_eq!(chat.turn("tell me").await, "done");
    assert_eq!(
        chat.command_ends("compact").await,
        "failed",
        "nothing was said"
    );
    assert_eq!(chat.command_ends("compact").await, "done");
    let ends = chat
        .disk()
        .into_iter()
        .filter_map(pick!(Item::End { usage, .. } => (usage.input, usage.cost)));
    let cost = |input: u64| Some(Cost(input * 2_000 + 1_000_000_000));
    let expected = [(100, cost(100)), (20, cost(20)), (30, cost(30))];
    assert_eq!(ends.collect::<Vec<_>>(), expected);
    let told = chat
        .seen
        .iter()
        .rev()
        .find_map(pick!(ToEditor::State { used, turn, .. } => (*used, **turn)));
    let (used, turn) = told.unwrap();
    assert_eq!((used.input, used.output, turn.input), (150, 3, 30));
    assert_eq!(used.cost, Some(3.0003));
    let (_, said) = chat.command_says("usage", "").await;
    assert!(
        said.contains("150 tokens in") && said.contains("$3.00"),
        "{said}"
    );
    assert!(said.contains("last turn 30 tokens in"), "{said}");
    for kept in ["tell me", "A long story."] {
        assert!(chat.screen().contains(kept), "{}", chat.screen());
    }
    let live = chat.screen();
    let resumed = chat.resumed().await;
    assert!(live.contains("> earlier turns were summed up"), "{live}");
    // The transcript does not have the reason of a failure.
    let fails = |line: &&str| !line.contains("could not be read") && !line.contains("turn failed");
    let lines = |text: &str| text.lines().filter(fails).collect::<Vec<_>>().join("\n");
    assert_eq!(lines(&resumed), lines(&live));
    let (_, said) = chat.command_says("usage", "").await;
    assert!(
        said.contains("150 tokens in") && said.contains("$3.00"),
        "{said}"
    );
}

#[tokio::test(start_paused = true)]
async fn summing_up_is_tried_again_too() {
    let busy = co_llm::Fault::Server {
        provider: "scripted".into(),
        status: 503,
        retry_after: None,
        body: String::new(),
        explained: false,
    };
    let mut chat = Chat::new([says("A long story."), vec![busy.into()], says("In short.")]);
    assert_eq!(chat.turn("tell me").await, "done");
    assert_eq!(chat.command_ends("compact").await, "done");
    assert!(
        chat.disk()
            .iter()
            .any(|item| matches!(item, Item::Summary { .. }))
    );
}

/// A provider finds in its cache only what starts with the same bytes.
#[tokio::test]
async fn the_request_for_a_summary_starts_like_the_one_before() {
    let mut chat = Chat::new([says("A long story."), says("In short: a story.")]);
    assert_eq!(chat.turn("tell me").await, "done");
    let before = chat.last_request();
    assert_eq!(chat.command_ends("compact").await, "done");
    let summary = chat.last_request();
    assert_eq!(summary.system, before.system);
    assert_eq!(summary.tools, before.tools);
    assert_eq!(summary.cache_key, before.cache_key);
    assert!(summary.items.starts_with(&before.items));
    assert!(before.may_call && !summary.may_call);
}

#[tokio::test]
async fn compact_needs_something_to_sum_up() {
    let mut chat = Chat::new([]);
    let (_, said) = chat.command_says("compact", "").await;
    assert!(said.contains("nothing was said"), "{said}");
}

/// Many steps with a lot of output, in one turn.
#[tokio::test]
async fn much_output_stays_under_the_budget() {
    let big = "line of some length\n".repeat(400);
    let mut answers: Vec<_> = (0..12)
        .map(|number| {
            let call = tool(
                &format!("c{number}"),
                "run_shell_command",
                serde_json::json!({"cmd": format!("cat big {number}")}),
            );
            vec![call, done()]
        })
        .collect();
    answers.push(says("Done."));
    let mut chat = Chat::with(Scripted::with_window(answers, 20_000), |_| {});
    chat.write("big", &big);
    for number in 0..12 {
        chat.write(&number.to_string(), format!("file {number}\n"));
    }
    assert_eq!(chat.turn("read everything").await, "done");
    for request in chat.model.requests() {
        assert!(estimate(&request.items) < 20_000);
        valid(&request.items);
        let first = &request.items[0];
        assert!(matches!(first, Item::User { text, .. } if text == "read everything"));
    }
}
