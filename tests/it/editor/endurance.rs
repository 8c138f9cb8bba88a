//! A long conversation over the whole backend: what is sent stays within the window, and memory within bounds.

use serde_json::json;

use crate::support::http::Reply;
use crate::support::proc;

use super::legal;
use super::scene::Scene;

const STEPS: usize = 200;
/// Bytes of each step's output: five megabytes in all.
const OUTPUT: usize = 26_300;
/// Tokens.
const WINDOW: usize = 64_000;
const GROWTH: u64 = 64 << 20;

/// Lines that differ in their letters, since the model is told in a word of those that do not.
fn output(step: usize) -> String {
    let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
    let line = |number: usize| {
        let name: String = (0..4)
            .map(|place| letter(number / 26_usize.pow(place)))
            .collect();
        format!("{name} of the output of step {step}\n")
    };
    let mut text = String::new();
    let mut number = 0;
    while text.len() < OUTPUT {
        text.push_str(&line(number));
        number += 1;
    }
    text
}

#[test]
fn two_hundred_steps_with_five_megabytes_of_output() {
    let scene = Scene::with(json!({ "max_steps": 0, "context_window": WINDOW }), &[]);
    scene.server.reply(Reply::text("Hello."));
    scene.co("remember the quince");
    scene.wait_turns(1);
    let backend = scene.backend();
    let before = proc::memory(backend).now;
    for step in 0..STEPS {
        scene.workspace.write(&format!("out-{step}"), &output(step));
        let cmd = format!("cat out-{step}");
        scene.server.reply(Reply::shell(&format!("c{step}"), &cmd));
    }
    scene.server.reply(Reply::text("I have read it all."));
    scene.co("read everything");
    // Each has its own deadline.
    for request in 1..=STEPS + 2 {
        scene.server.wait_requests(request);
    }
    scene.wait_turns(2);
    let memory = proc::memory(backend);
    assert_eq!(scene.backend(), backend, "it is the same process");
    let read: usize = scene
        .items()
        .iter()
        .filter(|item| item["item"] == "outcome")
        .map(|item| item["text"].as_str().unwrap().len())
        .sum();
    assert!(read > 5_000_000, "{read} bytes");
    for (number, request) in scene.server.requests().iter().enumerate() {
        let body = &request.body;
        // As the budget counts: two tokens for seven bytes.
        let tokens = body["messages"].to_string().len() * 2 / 7;
        assert!(tokens < WINDOW, "request {number} has {tokens} tokens");
        let messages = body["messages"].as_array().unwrap();
        let first = messages.iter().find(|message| message["role"] == "user");
        let first = first.unwrap()["content"].to_string();
        assert!(
            first.contains("remember the quince"),
            "request {number}: {first}"
        );
        if let Err(why) = legal::openai(body) {
            panic!("request {number}: {why} in {body:#}");
        }
    }
    eprintln!("{before} bytes before, {memory:?} after");
    let grown = memory.peak.saturating_sub(before);
    assert!(
        grown < GROWTH,
        "{before} bytes before, {memory:?} after: {grown} more"
    );
}
