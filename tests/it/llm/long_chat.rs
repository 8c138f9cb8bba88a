//! A chat of forty steps over each protocol.

use co_llm::transcript::{Call, Cost, Usage};
use co_llm::{AnswerBuilder, Delta, Price, STALL_TIMEOUT};
use serde_json::{Value, json};

use super::wire::{Said, WIRES, Wire, ask, outcome, request, user};
use crate::support::http::{Request, SHOW, Server};

const STEPS: usize = 40;

/// In US dollars per million tokens. The answers have 6 new tokens, 5 cached ones, and 3 of output.
const PRICE: Price = Price {
    input: 2.0,
    cached: 1.0,
    written: 2.5,
    output: 10.0,
};

/// Returns the messages of a request.
fn messages(wire: Wire, body: &Value) -> &[Value] {
    let field = match wire {
        Wire::Responses => "input",
        Wire::Gemini => "contents",
        _ => "messages",
    };
    body[field].as_array().expect("messages")
}

/// Returns the bytes of a request, without the marks that no cache looks at.
fn bytes(received: &Request) -> String {
    let text = String::from_utf8(received.bytes.clone()).expect("text");
    text.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

/// Checks that a request is the one before it, byte for byte, with more messages after its last one.
fn assert_continues(before: &str, after: &str) {
    let same = before.bytes().zip(after.bytes());
    let same = same.take_while(|(old, new)| old == new).count();
    let rest = &before[same..];
    assert!(rest.starts_with(']'), "{before}\n{after}");
    let added = after[same..].strip_suffix(rest);
    assert!(
        added.is_some_and(|added| added.starts_with(",{")),
        "{before}\n{after}"
    );
}

/// Returns the ids of the calls and of the results in a request, in their order.
fn ids(wire: Wire, messages: &[Value]) -> (Vec<String>, Vec<String>) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let mut add = |value: &Value, to_calls: bool| {
        let id = value.as_str().expect("an id").to_owned();
        if to_calls {
            calls.push(id)
        } else {
            results.push(id)
        }
    };
    for message in messages {
        match wire {
            Wire::OpenAi | Wire::OpenRouter => {
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    add(&call["id"], true);
                }
                if message["role"] == "tool" {
                    add(&message["tool_call_id"], false);
                }
            }
            Wire::Responses => match message["type"].as_str() {
                Some("function_call") => add(&message["call_id"], true),
                Some("function_call_output") => add(&message["call_id"], false),
                _ => {}
            },
            Wire::Anthropic => {
                for block in message["content"].as_array().into_iter().flatten() {
                    match block["type"].as_str() {
                        Some("tool_use") => add(&block["id"], true),
                        Some("tool_result") => add(&block["tool_use_id"], false),
                        _ => {}
                    }
                }
            }
            Wire::Gemini => {
                for part in message["parts"].as_array().into_iter().flatten() {
                    if part["functionCall"].is_object() {
                        add(&part["functionCall"]["id"], true);
                    }
                    if part["functionResponse"].is_object() {
                        add(&part["functionResponse"]["id"], false);
                    }
                }
            }
            // It has no ids: the order is all there is.
            Wire::Ollama => {
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    add(&call["function"]["arguments"]["cmd"], true);
                }
                if message["role"] == "tool" {
                    add(&message["content"], false);
                }
            }
        }
    }
    (calls, results)
}

#[tokio::test]
async fn each_request_begins_with_the_one_before_it() {
    for wire in WIRES {
        let server = Server::start(move |received, _| {
            let frames = wire.frames(&Said {
                texts: &["I run it."],
                arguments: (received.path != SHOW).then_some(&["{\"cmd\":\"ls\"}"]),
                length: false,
            });
            wire.reply(frames)
        });
        let provider = wire.connect(&server, STALL_TIMEOUT);
        let mut items = vec![user("go")];
        let mut total = Usage::default();
        for step in 0..STEPS {
            let deltas = ask(provider.as_ref(), request(items.clone())).await;
            let mut answer = AnswerBuilder::new();
            for delta in deltas.iter().flatten() {
                if let Delta::Call(call) = delta {
                    // Each call asks for something else, and each result tells what.
                    let call = Call {
                        arguments: json!({ "cmd": format!("step {step}") }),
                        ..call.clone()
                    };
                    items.extend(answer.push(&Delta::Call(call.clone())));
                    items.push(outcome(&call.id, &format!("step {step}"), step % 2 == 0));
                } else {
                    items.extend(answer.push(delta));
                }
            }
            if let Some(Ok(Delta::Usage(usage))) = deltas.iter().rev().nth(1) {
                let cost = usage.cost.or(Some(PRICE.of(usage)));
                total += Usage { cost, ..*usage };
            }
        }
        let steps = STEPS as u64;
        assert_eq!(
            (total.input, total.cached, total.output),
            (11 * steps, 5 * steps, 3 * steps),
            "{wire:?}"
        );
        assert_eq!(total.cost, Some(Cost(47_000 * steps)), "{wire:?}");
        let received = server.received();
        assert_eq!(received.len(), STEPS, "{wire:?}");
        for pair in received.windows(2) {
            assert_continues(&bytes(&pair[0]), &bytes(&pair[1]));
        }
        let last = messages(wire, &received[STEPS - 1].body);
        let (calls, results) = ids(wire, last);
        assert_eq!(calls.len(), STEPS - 1, "{wire:?}");
        assert_eq!(calls, results, "{wire:?}");
    }
}
