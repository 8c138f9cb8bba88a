//! Servers that refuse what their vendors refuse, in the vendors' words, and answers that are out of order.

use co_llm::transcript::{Call, Item};
use co_llm::{Delta, Stop};
use serde_json::{Value, json};

use super::requests::sent;
use super::wire::{WIRES, Wire, ask, go, key, outcome, request, text, user};
use crate::support::http::{Response, Server};

fn refusal(words: &str) -> Response {
    Response::json(
        400,
        &json!({"object": "error", "message": words, "code": "3230"}),
    )
}

/// Returns the words with which Mistral's server refuses the order of the roles, or the id of a call.
pub(crate) fn refused_by_mistral(body: &Value) -> Option<String> {
    let messages = body["messages"].as_array().expect("messages");
    let role = |message: &Value| message["role"].as_str().unwrap_or_default().to_owned();
    for pair in messages.windows(2) {
        let (before, after) = (role(&pair[0]), role(&pair[1]));
        if after == "user" && (before == "tool" || before == "user") {
            return Some(format!("Unexpected role '{after}' after role '{before}'"));
        }
    }
    let calls = messages
        .iter()
        .flat_map(|it| it["tool_calls"].as_array().into_iter().flatten());
    let results = messages.iter().filter_map(|it| it["tool_call_id"].as_str());
    for id in calls.filter_map(|it| it["id"].as_str()).chain(results) {
        if id.len() != 9 || !id.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Some(format!(
                "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."
            ));
        }
    }
    None
}

#[tokio::test]
async fn mistral_takes_each_order_of_prompts_and_each_id() {
    let call = |id: &str| Item::Call(Call::new(id, "run", json!({"cmd": "ls"})));
    let end = Item::End {
        reason: co_llm::transcript::End::Cancelled,
        usage: co_llm::transcript::Usage::default(),
        explained: false,
    };
    let long = "x".repeat(100);
    for items in [
        // A prompt of `/steer`.
        vec![
            user("go"),
            call("a:1"),
            outcome("a:1", "x", true),
            user("faster"),
        ],
        // A prompt after `/stop`, after an error, and after an empty answer.
        vec![
            user("go"),
            call("a_1"),
            outcome("a_1", "x", true),
            end.clone(),
            user("on"),
        ],
        vec![
            user("go"),
            end.clone(),
            user("again"),
            end,
            user("and again"),
        ],
        vec![user("go"), Item::Text { text: " \n".into() }, user("again")],
        vec![
            user("go"),
            call(&long),
            call("a:1"),
            call("a_1"),
            user("on"),
        ],
    ] {
        let server = Server::start(|received, _| {
            let words = refused_by_mistral(&received.body);
            words.map_or_else(|| Wire::OpenAi.says("ok"), |words| refusal(&words))
        });
        let mut settings = Wire::OpenAi.settings(&server.url());
        settings.model = Some("devstral-small-2".into());
        let provider = co_llm::make_provider(&settings, &key).expect("a provider");
        let deltas = ask(provider.as_ref(), request(items.clone())).await;
        assert_eq!(text(&deltas), "ok", "{items:?}: {deltas:?}");
    }
}

#[tokio::test]
async fn a_call_with_a_name_that_no_server_takes_is_told_as_text() {
    for name in [
        "run<|channel|>commentary",
        "",
        "functions.run",
        "run it",
        &"n".repeat(200),
    ] {
        for wire in WIRES {
            let items = vec![
                user("go"),
                Item::Call(Call::new("a", name, json!({"cmd": "ls"}))),
                outcome("a", "there is no such tool", false),
            ];
            let body = sent(wire, items, |_| ()).await.body.to_string();
            for field in [
                "tool_calls",
                "tool_use",
                "function_call\"",
                "functionCall\"",
            ] {
                assert!(!body.contains(field), "{wire:?} {name}: {body}");
            }
            assert!(body.contains("there is no such tool"), "{wire:?}: {body}");
            assert!(!body.contains("<|"), "{wire:?}: {body}");
        }
    }
}

/// Returns the answer to chunks with these pieces of calls.
async fn answer(pieces: &[Value]) -> Vec<Delta> {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        Wire::OpenAi.frame(&json!({"choices": [choice]}))
    };
    let pieces = pieces.iter();
    let mut frames: Vec<_> = pieces
        .map(|piece| chunk(json!({"tool_calls": [piece]}), Value::Null))
        .collect();
    frames.push(chunk(json!({}), json!("tool_calls")));
    let server = Server::always(Wire::OpenAi.reply(frames));
    let provider = Wire::OpenAi.connect(&server, co_llm::STALL_TIMEOUT);
    let deltas = go(provider.as_ref()).await;
    deltas.into_iter().map(|it| it.expect("no fault")).collect()
}

fn piece(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
}

#[tokio::test]
async fn calls_whose_pieces_are_out_of_order_are_whole() {
    let cases: [(&[Value], &[&str]); 6] = [
        (
            &[
                piece(0, "a", "run", "{\"cmd\":"),
                piece(1, "a", "run", "{\"cmd\":\"pwd\"}"),
                piece(0, "a", "", "\"ls\"}"),
            ],
            &["ls", "pwd"],
        ),
        (
            &[
                piece(0, "a", "run", "{}"),
                piece(0, "", "", "{\"cmd\":\"ls\"}"),
            ],
            &["ls"],
        ),
        (
            &[
                piece(0, "a", "run", "{\"cmd\":\"l"),
                piece(0, "", "", "s\"}"),
                piece(0, "", "", "{\"cmd\":\"ls\"}"),
            ],
            &["ls"],
        ),
        (
            &[
                piece(0, "a", "r", ""),
                piece(0, "", "un", "{\"cmd\":\"ls\"}"),
            ],
            &["ls"],
        ),
        (
            &[piece(0, "a", "functions.run", "{\"cmd\":\"ls\"}")],
            &["ls"],
        ),
        (
            &[piece(
                0,
                "a",
                "run<|channel|>commentary",
                "{\"cmd\":\"ls\"}",
            )],
            &["ls"],
        ),
    ];
    for (pieces, commands) in cases {
        let deltas = answer(pieces).await;
        let calls: Vec<&Call> = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::Call(call) => Some(call),
                _ => None,
            })
            .collect();
        let found: Vec<_> = calls.iter().map(|it| it.arguments["cmd"].clone()).collect();
        assert_eq!(found, commands, "{pieces:?}: {deltas:?}");
        assert!(calls.iter().all(|call| call.name == "run"), "{deltas:?}");
        let ids: std::collections::HashSet<_> = calls.iter().map(|call| &call.id).collect();
        assert_eq!(ids.len(), commands.len(), "{deltas:?}");
    }
}

#[tokio::test]
async fn a_call_that_comes_as_text_is_named_once() {
    let call = "<tool_call>\n{\"name\": \"run\", \"arguments\": {\"cmd\": \"ls\"}}\n</tool_call>";
    let cases = [
        (call, "wrote a call as text"),
        ("hm\n</think>\n\nFour.", "wrote its reasoning as text"),
        ("Four.", ""),
    ];
    for (said, words) in cases {
        for wire in WIRES {
            let server = Server::always(wire.says(said));
            let provider = wire.connect(&server, co_llm::STALL_TIMEOUT);
            let deltas = go(provider.as_ref()).await;
            assert_eq!(text(&deltas), said, "{wire:?}: {deltas:?}");
            let notices: Vec<&str> = deltas
                .iter()
                .filter_map(|delta| match delta {
                    Ok(Delta::Notice(notice)) => Some(notice.as_str()),
                    _ => None,
                })
                .collect();
            match words {
                "" => assert_eq!(notices, [""; 0], "{wire:?}"),
                _ => assert!(
                    matches!(notices[..], [notice] if notice.contains(words)),
                    "{wire:?}: {notices:?}"
                ),
            }
            assert_eq!(deltas.last(), Some(&Ok(Delta::Stop(Stop::Done))));
        }
    }
}
