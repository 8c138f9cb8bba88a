//! The limits that end a turn which repeats itself.

use super::chat::{Chat, calls, says, valid};
use co_llm::Fault;
use co_llm::scripted::{Part, Scripted};
use co_llm::transcript::Item;

fn endless(count: usize, command: impl Fn(usize) -> String) -> Vec<Vec<Part>> {
    (0..count)
        .map(|number| calls(&[(&format!("c{number}"), &command(number))]))
        .collect()
}

#[tokio::test]
async fn a_cap_of_three_is_three_requests_and_one_that_may_call_nothing() {
    let mut answers = endless(3, |number| format!("echo {number}"));
    answers.push(says("That is how far I came."));
    answers.push(says("never"));
    let mut chat = Chat::with(Scripted::new(answers), |config| config.max_steps = 3);
    assert_eq!(chat.turn("go").await, "guarded");
    let requests = chat.model.requests();
    let may_call: Vec<_> = requests.iter().map(|request| request.may_call).collect();
    assert_eq!(may_call, [true, true, true, false]);
    let [.., before, last] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert_eq!(last.tools, before.tools);
    assert!(last.items.starts_with(&before.items), "the calls are kept");
    let asks = matches!(last.items.last(), Some(Item::Note { text, once: true })
        if text.contains("used up") && text.contains("Sum up"));
    assert!(asks, "{:?}", last.items.last());
    let screen = chat.screen();
    assert!(screen.contains("That is how far I came."), "{screen}");
    assert!(screen.contains("stopped at a limit"), "{screen}");
}

/// Ollama cannot be told to call nothing.
#[tokio::test]
async fn a_call_after_the_last_step_is_not_run() {
    let answers = endless(2, |number| format!("echo {number}"));
    let mut chat = Chat::with(Scripted::new(answers), |config| config.max_steps = 1);
    assert_eq!(chat.turn("go").await, "guarded");
    assert_eq!(chat.turn_with("go on", says("Done.")).await, "done");
    chat.assert_told("c1", "used up");
}

#[tokio::test(start_paused = true)]
async fn where_the_summing_up_fails_the_last_text_stands() {
    let mut chat = Chat::with(
        Scripted::new([
            vec![
                super::chat::text("I try."),
                super::chat::call("1", "echo x"),
                super::chat::done(),
            ],
            vec![
                Fault::Overflow {
                    body: "long".into(),
                }
                .into(),
            ],
        ]),
        |config| config.max_steps = 1,
    );
    // A command would need time to pass by itself.
    tokio::time::resume();
    assert_eq!(chat.turn("go").await, "guarded");
    chat.assert_shown("I try.");
    valid(&chat.kit_items());
}

#[tokio::test]
async fn without_a_cap_it_goes_on() {
    let mut answers = endless(12, |number| format!("echo {number}"));
    answers.push(says("Done."));
    let mut chat = Chat::with(Scripted::new(answers), |config| config.max_steps = 0);
    assert_eq!(chat.turn("go").await, "done");
}

#[tokio::test]
async fn the_same_call_with_the_same_result_is_nudged_then_stopped() {
    let mut chat = Chat::new(endless(9, |_| "echo same".to_owned()));
    assert_eq!(chat.turn("go").await, "guarded");
    assert_eq!(chat.model.requests().len(), 5);
    let nudged = |id: &str| chat.told(id).contains("same result 3 times");
    assert!(!nudged("c1") && nudged("c2") && !nudged("c3"));
    let screen = chat.screen();
    assert!(screen.contains("same result five times"), "{screen}");
    assert!(screen.contains("/continue"), "{screen}");
    // The person says so, and the count begins anew.
    chat.model.push(says("I stop."));
    let mut more = chat.turn("go on").await;
    while more == "guarded" {
        more = chat.turn("go on").await;
    }
    assert_eq!(more, "done");
}

#[tokio::test]
async fn what_differs_is_no_circle() {
    let same = ["echo a", "echo a", "echo b"];
    let mut answers = endless(9, |number| same[number % 3].to_owned());
    answers.truncate(6);
    answers.push(says("Done."));
    let mut chat = Chat::new(answers);
    assert_eq!(chat.turn("go").await, "done");
    assert!((0..6).all(|number| !chat.told(&format!("c{number}")).contains("same result")));
}
