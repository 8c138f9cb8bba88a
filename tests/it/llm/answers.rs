//! Answers that end as they should.

use co_llm::transcript::{Call, Item, Usage};
use co_llm::{Delta, Fault, STALL_TIMEOUT, Stop};
use serde_json::Value;

use super::wire::{Said, WIRES, Wire, ask, go, outcome, request, user};
use crate::support::http::{Response, SHOW, Server};

async fn answer(wire: Wire, frames: Vec<Vec<u8>>) -> Vec<Result<Delta, Fault>> {
    let server = Server::always(wire.reply(frames));
    let provider = wire.connect(&server, STALL_TIMEOUT);
    go(provider.as_ref()).await
}

/// Returns the signatures without their mark: the server and the model that made them.
fn signatures(protocol: &str, deltas: &[Result<Delta, Fault>]) -> Vec<String> {
    let prefix = format!("{protocol}|127.0.0.1:");
    let signature = |delta: &Result<Delta, Fault>| match delta {
        Ok(Delta::Signature(signature)) => Some(signature.clone()),
        Ok(Delta::Call(call)) => call.signature.clone(),
        _ => None,
    };
    let unmarked = deltas.iter().filter_map(signature).map(|kept| {
        let rest = kept.strip_prefix(&prefix).expect("the mark of the server");
        let (_, signature) = rest.split_once("|test-model|").expect("the model");
        signature.to_owned()
    });
    unmarked.collect()
}

fn calls(deltas: &[Result<Delta, Fault>]) -> Vec<Call> {
    deltas
        .iter()
        .filter_map(|delta| match delta {
            Ok(Delta::Call(call)) => Some(call.clone()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn text_usage_and_stop() {
    for wire in WIRES {
        let frames = wire.frames(&Said {
            texts: &["Hel", "lo — ", "✓"],
            ..Said::default()
        });
        let mut deltas = answer(wire, frames).await;
        if wire == Wire::Anthropic {
            // The input is counted at once.
            let Ok(Delta::Usage(begun)) = deltas.remove(0) else {
                panic!("{deltas:?}");
            };
            assert_eq!((begun.input, begun.cached), (11, 5));
        }
        let expected = [
            Ok(Delta::Text("Hel".into())),
            Ok(Delta::Text("lo — ".into())),
            Ok(Delta::Text("✓".into())),
            Ok(Delta::Usage(Usage {
                input: 11,
                output: 3,
                cached: 5,
                ..Usage::default()
            })),
            Ok(Delta::Stop(Stop::Done)),
        ];
        assert_eq!(deltas, expected, "{wire:?}");
    }
}

#[tokio::test]
async fn arguments_split_at_every_byte_are_the_same_call() {
    let arguments = r#"{"cmd": "echo \"é\" \\n", "timeout": 5}"#;
    let expected: Value = serde_json::from_str(arguments).unwrap();
    for wire in WIRES {
        for at in (0..=arguments.len()).filter(|at| arguments.is_char_boundary(*at)) {
            let (head, tail) = arguments.split_at(at);
            let frames = wire.frames(&Said {
                texts: &["I run it."],
                arguments: Some(&[head, tail]),
                length: false,
            });
            let deltas = answer(wire, frames).await;
            let calls = calls(&deltas);
            assert_eq!(calls.len(), 1, "{wire:?} at {at}: {deltas:?}");
            assert_eq!(calls[0].id, "call_7");
            assert_eq!(calls[0].name, "run");
            assert_eq!(calls[0].arguments, expected, "{wire:?} at {at}");
            assert_eq!(
                deltas.last(),
                Some(&Ok(Delta::Stop(Stop::Done))),
                "{wire:?} at {at}"
            );
        }
    }
}

#[tokio::test]
async fn bytes_split_anywhere_are_the_same_answer() {
    for wire in WIRES {
        let whole = wire
            .frames(&Said {
                texts: &["añ✓"],
                arguments: Some(&[r#"{"cmd":"#, r#""l✓s"}"#]),
                length: false,
            })
            .concat();
        // One chunk a byte: every boundary at once.
        let bytes: Vec<_> = whole.iter().map(|byte| vec![*byte]).collect();
        let asked = std::sync::atomic::AtomicBool::new(false);
        let server = Server::start(move |received, _| match received.path == SHOW {
            true => Response::json(404, &Value::Null),
            false if asked.swap(true, std::sync::atomic::Ordering::Relaxed) => {
                wire.reply(bytes.clone())
            }
            false => wire.reply(vec![whole.clone()]),
        });
        let provider = wire.connect(&server, STALL_TIMEOUT);
        let whole = go(provider.as_ref()).await;
        assert_eq!(calls(&whole).len(), 1, "{wire:?}");
        let in_bytes = go(provider.as_ref()).await;
        assert_eq!(in_bytes, whole, "{wire:?}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_are_no_call() {
    for wire in WIRES {
        for arguments in [
            "[1]",
            "7",
            r#""{\"cmd\": \"rm\"}""#,
            r#"{"cmd": "rm"}}"#,
            r#"{"cmd": "rm"#,
        ] {
            let frames = wire.frames(&Said {
                texts: &["x"],
                arguments: Some(&[arguments]),
                length: false,
            });
            let deltas = answer(wire, frames).await;
            assert_eq!(calls(&deltas), [], "{wire:?} {arguments}");
            assert!(
                deltas.iter().any(|delta| {
                    matches!(delta, Ok(Delta::BadCall { call, .. }) if call.name == "run")
                }),
                "{wire:?} {arguments}: {deltas:?}"
            );
        }
    }
}

#[tokio::test]
async fn ids_are_unique_within_a_session() {
    let server = Server::start(|_, _| {
        Wire::OpenAi.reply(Wire::OpenAi.frames(&Said {
            arguments: Some(&["{}"]),
            ..Said::default()
        }))
    });
    let provider = Wire::OpenAi.connect(&server, STALL_TIMEOUT);
    let mut items = vec![user("go")];
    let mut ids = Vec::new();
    for _ in 0..3 {
        let call = calls(&ask(provider.as_ref(), request(items.clone())).await).remove(0);
        ids.push(call.id.clone());
        items.push(Item::Call(call.clone()));
        items.push(outcome(&call.id, "ok", true));
    }
    assert_eq!(ids, ["call_7", "call_7_1", "call_7_2"]);
}

#[tokio::test]
async fn gemini_calls_carry_their_signature() {
    let frames = Wire::Gemini.frames(&Said {
        arguments: Some(&["{}"]),
        ..Said::default()
    });
    let deltas = answer(Wire::Gemini, frames).await;
    assert_eq!(signatures("gemini", &deltas), ["c2ln"]);
    let alone = |delta: &Result<Delta, Fault>| matches!(delta, Ok(Delta::Signature(_)));
    assert!(!deltas.iter().any(alone), "{deltas:?}");
}
