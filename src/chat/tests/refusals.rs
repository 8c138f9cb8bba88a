//! Requests that the provider refuses, for their length or their content. The clock moves only while a test waits.

use serde_json::json;

use super::chat::{Chat, asks_for, calls, says, valid};
use co_llm::scripted::{Part, Scripted};
use co_llm::transcript::{Context, Image, Item, Usage};
use co_llm::{Delta, Fault, ModelRequest, Provider, Stop};

const WORDS: &str = "tool_use without tool_result";

fn refused() -> Vec<Part> {
    let fault = Fault::BadRequest {
        provider: "scripted".into(),
        body: WORDS.into(),
    };
    vec![fault.into()]
}

fn overflow() -> Vec<Part> {
    let body = "maximum context length".to_owned();
    vec![Fault::Overflow { body }.into()]
}

fn too_large() -> Vec<Part> {
    let fault = Fault::TooLarge {
        provider: "scripted".into(),
        body: String::new(),
    };
    vec![fault.into()]
}

fn failed(explained: bool) -> Vec<Part> {
    let fault = Fault::Server {
        provider: "scripted".into(),
        status: 500,
        retry_after: None,
        body: "no".into(),
        explained,
    };
    vec![fault.into()]
}

fn not_found() -> Vec<Part> {
    let fault = Fault::NotFound {
        provider: "scripted".into(),
        model: "m".into(),
        body: "No endpoints found that support image input".into(),
        near: Vec::new(),
    };
    vec![fault.into()]
}

fn page() -> Vec<Part> {
    vec![
        Fault::HtmlPage {
            url: "http://h/".into(),
        }
        .into(),
    ]
}

/// A refusal with these words, which co does not know.
fn refused_with(words: &str) -> Vec<Part> {
    let fault = Fault::BadRequest {
        provider: "scripted".into(),
        body: words.into(),
    };
    vec![fault.into()]
}

/// An answer for which the request leaves no room.
fn no_room(output: u64) -> Vec<Part> {
    let usage = Usage {
        input: 8_000,
        output,
        ..Usage::default()
    };
    vec![Delta::Usage(usage).into(), Delta::Stop(Stop::Length).into()]
}

/// Returns the notes about refusals.
fn refusal_notes(items: &[Item]) -> Vec<&str> {
    let notes = items.iter();
    notes
        .filter_map(pick!(Item::Note { text, .. } if text.contains(WORDS) => text.as_str()))
        .collect()
}

fn summaries(items: &[Item]) -> usize {
    let summary = |item: &&Item| matches!(item, Item::Summary { .. });
    items.iter().filter(summary).count()
}

fn reduced(request: &ModelRequest) -> bool {
    request.items.ends_with(&[Item::Reduced])
}

fn size(request: &ModelRequest) -> usize {
    let items = request.items.iter();
    items
        .map(|item| serde_json::to_string(item).unwrap().len())
        .sum()
}

/// A text of about 9,000 tokens by the estimate of co.
fn long() -> String {
    "A long story. ".repeat(2_250)
}

/// A chat whose model has a window of 20,000 tokens.
fn chat(answers: impl IntoIterator<Item = Vec<Part>>) -> Chat {
    Chat::with(Scripted::with_window(answers, 20_000), |_| {})
}

/// A prompt with an image.
fn image() -> crate::chat::Prompt {
    let image = Image {
        media_type: "image/png".into(),
        data: "QUJD".into(),
    };
    let piece = Context {
        name: "@file:a.png".into(),
        image: Some(image),
        ..Context::default()
    };
    crate::chat::Prompt {
        text: "look".into(),
        context: vec![piece],
        ..crate::chat::Prompt::default()
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_refusal_is_told_to_the_model() {
    let mut chat = Chat::new([refused(), says("Better."), says("More.")]);
    assert_eq!(chat.turn("go").await, "done");
    let second = chat.last_request();
    assert_eq!(refusal_notes(&second.items).len(), 1);
    assert!(!reduced(&second));
    chat.assert_shown("The provider refused the last request");
    assert_eq!(chat.turn("go on").await, "done");
    let third = chat.last_request();
    assert!(third.items.starts_with(&second.items), "{:#?}", third.items);
}

#[tokio::test(start_paused = true)]
async fn the_second_refusal_gets_the_reduced_form_and_the_chat_stays_in_it() {
    let mut chat = Chat::new([
        calls(&[("1", "echo 1")]),
        refused(),
        refused(),
        says("Better."),
        says("More."),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    let requests = chat.model.requests();
    let forms: Vec<_> = requests.iter().map(reduced).collect();
    assert_eq!(forms, [false, false, false, true]);
    assert_eq!(refusal_notes(&requests[3].items).len(), 1);
    chat.assert_shown("in a reduced form only: 1 call is sent as text");
    assert_eq!(chat.turn("go on").await, "done");
    let next = chat.last_request();
    assert!(next.items.starts_with(&requests[3].items));
    assert_eq!(chat.model.requests().len(), 5, "it is not refused again");
}

#[tokio::test(start_paused = true)]
async fn the_third_refusal_ends_the_turn_and_names_the_ways_out() {
    let mut chat = Chat::new([refused(), refused(), refused()]);
    assert_eq!(chat.turn("go").await, "failed");
    assert_eq!(chat.model.requests().len(), 3);
    let screen = chat.screen();
    let at = |word: &str| {
        screen
            .find(word)
            .unwrap_or_else(|| panic!("no {word} in {screen}"))
    };
    assert!(at("HTTP 400") < at("/rewind"), "{screen}");
    assert!(
        at("/rewind") < at("/compact") && at("/compact") < at("/new"),
        "{screen}"
    );
    // Nothing of the refusals stays in the chat.
    assert!(refusal_notes(&chat.disk()).is_empty());
    chat.model.push(says("Here."));
    assert_eq!(chat.command_ends("retry").await, "done");
}

#[tokio::test(start_paused = true)]
async fn no_two_notes_about_refusals_are_the_same() {
    let mut chat = Chat::new((0..6).map(|_| refused()));
    assert_eq!(chat.turn("go").await, "failed");
    assert_eq!(chat.command_ends("retry").await, "failed");
    let requests = chat.model.requests();
    let mut told: Vec<_> = requests
        .iter()
        .flat_map(|it| refusal_notes(&it.items))
        .collect();
    assert_eq!(told.len(), 4);
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), 4, "{told:?}");
}

/// The window was guessed too large.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_long_is_shortened() {
    let mut chat = Chat::new([says(&long()), overflow(), says("In short."), says("Here.")]);
    assert_eq!(chat.turn("tell me").await, "done");
    assert_eq!(chat.turn("go on").await, "done");
    assert!(chat.screen().ends_with("Here."), "{}", chat.screen());
    assert_eq!(summaries(&chat.disk()), 1);
    assert_eq!(summaries(&chat.last_request().items), 1);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_took_and_refused_teaches_the_window() {
    let mut chat = Chat::new([says(&long()), overflow(), says("In short."), says("Here.")]);
    let before = chat.model.window().await;
    assert_eq!(chat.turn("tell me").await, "done");
    assert_eq!(chat.turn("go on").await, "done");
    let learned = chat.model.window().await;
    assert!(learned < before, "{learned}");
    // The next turn does not try the old length.
    chat.model.push(says(&long()));
    chat.model.push(says("In short."));
    chat.model.push(says("Here."));
    assert_eq!(chat.turn("tell me more").await, "done");
    assert_eq!(chat.turn("go on").await, "done");
    assert_eq!(
        chat.model.left(),
        0,
        "it was summed up before it was too long"
    );
    assert_eq!(summaries(&chat.disk()), 2);
}

#[tokio::test(start_paused = true)]
async fn a_window_that_is_much_smaller_is_found_in_steps() {
    let mut chat = Chat::new([
        says(&long()),
        overflow(),
        says("In short."),
        overflow(),
        overflow(),
        says("Here."),
    ]);
    assert_eq!(chat.turn("tell me").await, "done");
    assert_eq!(
        chat.turn(&"and this? ".repeat(1_000)).await,
        "failed",
        "a prompt cannot be cut"
    );
    let sizes: Vec<_> = chat.model.requests().iter().map(size).collect();
    assert!(sizes[2] > sizes[3], "{sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_refusal_of_the_longest_request_is_taken_for_its_length_once() {
    for (refusal, told) in [
        (refused(), "the longest request of this chat so far"),
        (too_large(), "larger than the provider takes"),
    ] {
        let mut chat = chat([says(&long()), refusal, says("In short."), says("Here.")]);
        assert_eq!(chat.turn("tell me").await, "done");
        assert_eq!(chat.turn("go on").await, "done");
        chat.assert_shown(told);
        assert_eq!(summaries(&chat.disk()), 1);
        assert!(refusal_notes(&chat.last_request().items).is_empty());
    }
    // A second one is not.
    let mut chat = chat([
        says(&long()),
        refused(),
        says("In short."),
        refused(),
        says("Here."),
    ]);
    assert_eq!(chat.turn("tell me").await, "done");
    assert_eq!(chat.turn("go on").await, "done");
    assert_eq!(summaries(&chat.disk()), 1);
    assert!(reduced(&chat.last_request()));
}

#[tokio::test(start_paused = true)]
async fn a_request_like_those_that_were_taken_is_not_thought_too_long() {
    let mut chat = chat([says(&long()), says("One."), refused(), says("Two.")]);
    assert_eq!(chat.turn("tell me").await, "done");
    assert_eq!(chat.turn(&"word ".repeat(500)).await, "done");
    assert_eq!(chat.command_ends("retry").await, "done");
    assert_eq!(summaries(&chat.disk()), 0);
    assert_eq!(refusal_notes(&chat.last_request().items).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_repeats_itself_may_be_the_length_if_a_server_explains_it() {
    let mut first = chat([
        says(&long()),
        failed(true),
        failed(true),
        says("In short."),
        says("Here."),
    ]);
    assert_eq!(first.turn("tell me").await, "done");
    assert_eq!(first.turn("go on").await, "done");
    assert_eq!(summaries(&first.disk()), 1);
    // A failure that passes, and the page of a gateway, shorten nothing.
    for failures in [vec![failed(true)], (0..4).map(|_| failed(false)).collect()] {
        let answers = [says(&long())]
            .into_iter()
            .chain(failures)
            .chain([says("Here.")]);
        let mut chat = chat(answers);
        assert_eq!(chat.turn("tell me").await, "done");
        assert_eq!(chat.turn("go on").await, "done");
        assert_eq!(summaries(&chat.disk()), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_request_with_too_many_bytes_goes_without_images_at_once() {
    let mut chat = Chat::new([too_large(), says("I see nothing.")]);
    chat.send(crate::chat::Msg::Prompt(image()));
    assert_eq!(chat.ended().await, "done");
    assert!(reduced(&chat.last_request()));
    chat.assert_shown("in a reduced form only: 1 image is left out");
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_asked_for_in_the_reduced_form_after_a_refusal() {
    let mut chat = Chat::new([
        calls(&[("1", "echo 1")]),
        says("One."),
        refused(),
        says("In short."),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    assert_eq!(chat.command_ends("compact").await, "done");
    let request = chat.last_request();
    assert!(reduced(&request) && request.tools.is_empty());
    assert_eq!(summaries(&chat.disk()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_chat_that_is_much_too_long_can_be_summed_up() {
    let answers = [
        says(&long()),
        overflow(),
        overflow(),
        overflow(),
        says("In short."),
    ];
    let mut chat = Chat::new(answers);
    assert_eq!(chat.turn(&long()).await, "done");
    assert_eq!(chat.command_ends("compact").await, "done");
    let requests = chat.model.requests();
    let sizes: Vec<_> = requests[1..].iter().map(size).collect();
    assert!(sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
    for request in &requests[1..] {
        let mut asked = request.items.iter().rev();
        let asked = asked.find(|item| **item != Item::Reduced);
        assert!(
            matches!(asked, Some(Item::User { text, .. }) if text.starts_with("Sum up")),
            "{asked:?}"
        );
    }
    valid(&requests.last().unwrap().items);
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_is_refused_always_ends_and_names_the_ways_out() {
    let answers = [
        asks_for("1", "read_file", json!({ "path": "none" })),
        says("No."),
    ];
    let mut chat = Chat::new(answers.into_iter().chain((0..9).map(|_| refused())));
    assert_eq!(chat.turn("go").await, "done");
    assert_eq!(chat.command_ends("compact").await, "failed");
    assert!(chat.model.requests().len() <= 8);
    chat.assert_shown("/rewind");
}

/// A template that knows no calls, or a server without its part for images: each request fails in the same way.
#[tokio::test(start_paused = true)]
async fn a_failure_that_does_not_pass_gets_the_reduced_form_once() {
    let failures = || (0..6).map(|_| failed(true));
    let mut chat = Chat::new(
        [calls(&[("1", "echo 1")])]
            .into_iter()
            .chain(failures())
            .chain([says("Better."), says("More.")]),
    );
    assert_eq!(chat.turn("go").await, "done");
    assert!(reduced(&chat.last_request()));
    chat.assert_shown("in a reduced form only: 1 call is sent as text");
    assert_eq!(chat.turn("go on").await, "done");
    assert_eq!(chat.model.requests().len(), 9, "it does not fail again");
    // A failure that speaks of calls is not tried again before that.
    let template = Fault::Server {
        provider: "scripted".into(),
        status: 500,
        retry_after: None,
        body: "Jinja Exception: Only user, system and assistant roles are supported!".into(),
        explained: true,
    };
    let answers = [
        calls(&[("1", "echo 1")]),
        vec![template.into()],
        says("Better."),
    ];
    let mut chat = Chat::new(answers);
    assert_eq!(chat.turn("go").await, "done");
    assert!(reduced(&chat.last_request()));
    // A chat that the reduced form would not change, and the page of a gateway.
    for failure in [failed(true), failed(false)] {
        let mut chat = Chat::new((0..7).map(|_| failure.clone()));
        assert_eq!(chat.turn("go").await, "failed");
        assert_eq!(chat.model.requests().len(), 6);
    }
    // One that also fails in its reduced form.
    let mut chat = Chat::new(
        [calls(&[("1", "echo 1")])]
            .into_iter()
            .chain(failures())
            .chain([failed(true), says("Better.")]),
    );
    assert_eq!(chat.turn("go").await, "failed");
    assert!(!chat.disk().contains(&Item::Reduced));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_with_another_status_gets_the_reduced_form_once() {
    for refusal in [not_found(), page()] {
        let mut chat = Chat::new([refusal, says("I see nothing."), says("More.")]);
        chat.send(crate::chat::Msg::Prompt(image()));
        assert_eq!(chat.ended().await, "done");
        assert!(reduced(&chat.last_request()));
        chat.assert_shown("in a reduced form only: 1 image is left out");
        assert_eq!(chat.turn("go on").await, "done");
        assert_eq!(chat.model.requests().len(), 3);
    }
    let mut chat = Chat::new([not_found(), says("No.")]);
    assert_eq!(chat.turn("go").await, "failed");
    assert_eq!(chat.model.requests().len(), 1, "a wrong name of a model");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_large_without_images_too_is_shortened() {
    let mut chat = Chat::new([
        calls(&[("1", "echo 1")]),
        says(&long()),
        too_large(),
        too_large(),
        says("In short."),
        says("Here."),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    assert_eq!(chat.turn("go on").await, "done");
    assert_eq!(summaries(&chat.disk()), 1);
    chat.assert_shown("larger than the provider takes");
    assert!(chat.screen().ends_with("Here."), "{}", chat.screen());
}

/// The window is guessed much too large, and the words are not known.
#[tokio::test(start_paused = true)]
async fn a_limit_that_a_refusal_names_shortens_the_chat_at_once() {
    let refusal = || refused_with("9500 tokens are more than the 7000 that this host has");
    let mut chat = Chat::with(
        Scripted::with_window(
            [says(&long()), refusal(), says("In short."), says("Here.")],
            200_000,
        ),
        |_| {},
    );
    assert_eq!(chat.turn("tell me").await, "done");
    assert_eq!(chat.turn("go on").await, "done");
    assert_eq!(summaries(&chat.disk()), 1);
    assert_eq!(chat.model.requests().len(), 4);
    assert_eq!(chat.model.window().await, 7_000);
}

#[tokio::test(start_paused = true)]
async fn a_much_smaller_window_is_learned_from_the_words() {
    let words = "This model's maximum context length is 7000 tokens. However, your messages resulted in 90000 tokens.";
    let refusal = || {
        let body = words.to_owned();
        vec![Fault::Overflow { body }.into()]
    };
    let story = || says(&long().repeat(10));
    let mut chat = Chat::with(
        Scripted::with_window(
            [
                story(),
                refusal(),
                refusal(),
                says("In short."),
                says("Here."),
            ],
            1_000_000,
        ),
        |_| {},
    );
    assert_eq!(chat.turn("tell me").await, "done");
    assert_eq!(chat.turn("go on").await, "done");
    assert_eq!(chat.model.window().await, 7_000);
    let sizes: Vec<_> = chat.model.requests().iter().map(size).collect();
    assert!(
        sizes[3] < 7_000 * 7 / 2,
        "the summary fits at its second try: {sizes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_taken_as_it_was_was_not_too_long() {
    let mut chat = Chat::new([overflow(), says("One."), says("Two.")]);
    let before = chat.model.window().await;
    assert_eq!(chat.turn(&"word ".repeat(2_000)).await, "done");
    assert_eq!(chat.model.window().await, before);
    assert_eq!(chat.turn("go on").await, "done");
    assert_eq!(summaries(&chat.disk()), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_room_means_that_the_request_is_too_long() {
    let mut chat = Chat::new([says(&long()), no_room(0), says("In short."), says("Here.")]);
    assert_eq!(chat.turn("tell me").await, "done");
    assert_eq!(chat.turn("go on").await, "done");
    assert_eq!(summaries(&chat.disk()), 1);
    assert!(chat.screen().ends_with("Here."), "{}", chat.screen());
    // A model that used up its limit for thoughts that it does not show.
    let mut chat = Chat::new([says(&long()), no_room(4_000)]);
    assert_eq!(chat.turn("tell me").await, "done");
    assert_eq!(chat.turn("go on").await, "done");
    chat.assert_shown("output limit");
    // The request for a summary is shortened too.
    let mut chat = Chat::new([says(&long()), no_room(0), no_room(0), says("In short.")]);
    assert_eq!(chat.turn("tell me").await, "done");
    assert_eq!(chat.command_ends("compact").await, "done");
    assert_eq!(summaries(&chat.disk()), 1);
}
