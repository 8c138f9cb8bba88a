//! Answers that end as they should.

use co_llm::transcript::{Call, Item, Outcome, Usage};
use co_llm::{Delta, Fault, STALL_TIMEOUT, Stop};
use serde_json::{Value, json};

use super::server::{Reply, SHOW, Server};
use super::wire::{Said, WIRES, Wire, ask, request, text, user};

async fn answer(wire: Wire, frames: Vec<Vec<u8>>) -> Vec<Result<Delta, Fault>> {
    let server = Server::always(wire.reply(frames)).await;
    let provider = wire.connect(&server, STALL_TIMEOUT);
    ask(provider.as_ref(), request(vec![user("go")])).await
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
            true => Reply::json(404, &Value::Null),
            false if asked.swap(true, std::sync::atomic::Ordering::Relaxed) => {
                wire.reply(bytes.clone())
            }
            false => wire.reply(vec![whole.clone()]),
        })
        .await;
        let provider = wire.connect(&server, STALL_TIMEOUT);
        let whole = ask(provider.as_ref(), request(vec![user("go")])).await;
        assert_eq!(calls(&whole).len(), 1, "{wire:?}");
        let in_bytes = ask(provider.as_ref(), request(vec![user("go")])).await;
        assert_eq!(in_bytes, whole, "{wire:?}");
    }
}

#[tokio::test]
async fn no_arguments_are_an_empty_object() {
    for wire in [Wire::OpenAi, Wire::Responses, Wire::Anthropic] {
        let frames = wire.frames(&Said {
            arguments: Some(&[""]),
            ..Said::default()
        });
        let deltas = answer(wire, frames).await;
        assert_eq!(calls(&deltas)[0].arguments, json!({}), "{wire:?}");
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
async fn a_call_cut_by_the_output_limit_is_no_call() {
    for wire in WIRES {
        let frames = wire.frames(&Said {
            texts: &["I run"],
            arguments: Some(&[r#"{"cmd": "rm -r"#]),
            length: true,
        });
        let deltas = answer(wire, frames).await;
        assert_eq!(text(&deltas), "I run", "{wire:?}");
        assert_eq!(calls(&deltas), [], "{wire:?}");
        assert_eq!(
            deltas.last(),
            Some(&Ok(Delta::Stop(Stop::Length))),
            "{wire:?}"
        );
    }
}

#[tokio::test]
async fn ids_are_unique_within_a_session() {
    let server = Server::start(|_, _| {
        Wire::OpenAi.reply(Wire::OpenAi.frames(&Said {
            arguments: Some(&["{}"]),
            ..Said::default()
        }))
    })
    .await;
    let provider = Wire::OpenAi.connect(&server, STALL_TIMEOUT);
    let mut items = vec![user("go")];
    let mut ids = Vec::new();
    for _ in 0..3 {
        let call = calls(&ask(provider.as_ref(), request(items.clone())).await).remove(0);
        ids.push(call.id.clone());
        items.push(Item::Call(call.clone()));
        items.push(Item::Outcome(Outcome {
            call: call.id,
            text: "ok".into(),
            ok: true,
            spill: None,
            hidden: 0,
            shown: None,
        }));
    }
    assert_eq!(ids, ["call_7", "call_7_1", "call_7_2"]);
}

#[tokio::test]
async fn reasoning_is_told_apart_from_text() {
    let openai = |key: &str| {
        let mut delta = json!({"choices": [{"index": 0, "delta": {}}]});
        delta["choices"][0]["delta"][key] = json!("hmm");
        delta
    };
    for (wire, frame) in [
        (Wire::OpenAi, openai("reasoning_content")),
        (Wire::OpenAi, openai("reasoning")),
        (
            Wire::Responses,
            json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hmm"}),
        ),
        (
            Wire::Gemini,
            json!({"candidates": [{"content": {"parts": [{"text": "hmm", "thought": true}]}}]}),
        ),
        (
            Wire::Ollama,
            json!({"message": {"role": "assistant", "content": "", "thinking": "hmm"}, "done": false}),
        ),
    ] {
        let mut frames = wire.frames(&Said {
            texts: &["so"],
            ..Said::default()
        });
        frames.insert(wire.prelude(), wire.frame(&frame));
        let deltas = answer(wire, frames).await;
        assert_eq!(
            deltas[..2],
            [
                Ok(Delta::Reasoning("hmm".into())),
                Ok(Delta::Text("so".into()))
            ],
            "{wire:?} {frame}"
        );
    }
}

#[tokio::test]
async fn thinking_blocks_keep_their_signatures_and_their_order() {
    let wire = Wire::Anthropic;
    let delta = |kind: &str, key: &str, text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": kind, key: text}});
    let start =
        |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
    let stop = json!({"type": "content_block_stop", "index": 0});
    let redacted = json!({"type": "redacted_thinking", "data": "zz"});
    let thinking = [
        start(json!({"type": "thinking", "thinking": ""})),
        delta("thinking_delta", "thinking", "a"),
        delta("signature_delta", "signature", "sig-"),
        delta("signature_delta", "signature", "a"),
        // A kind nobody here knows.
        stop.clone(),
        start(redacted.clone()),
        stop.clone(),
        start(json!({"type": "thinking", "thinking": ""})),
        delta("thinking_delta", "thinking", "b"),
        delta("signature_delta", "signature", "sig-b"),
        stop,
    ];
    let mut frames = wire.frames(&Said {
        texts: &["so"],
        ..Said::default()
    });
    frames.splice(1..1, thinking.iter().map(|frame| wire.frame(frame)));
    let deltas = answer(wire, frames).await;
    let kept = signatures("anthropic", &deltas);
    assert_eq!(kept, ["sig-a", &redacted.to_string(), "sig-b"]);
    let kinds: Vec<&str> = deltas[1..7]
        .iter()
        .map(|delta| match delta {
            Ok(Delta::Reasoning(text) | Delta::Text(text)) => text,
            Ok(Delta::Signature(_)) => "signature",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        ["a", "signature", "signature", "b", "signature", "so"]
    );
}

#[tokio::test]
async fn a_delta_of_an_unknown_kind_is_passed_over() {
    let wire = Wire::Anthropic;
    let mut frames = wire.frames(&Said {
        texts: &["a", "b"],
        ..Said::default()
    });
    let unknown = json!({"type": "content_block_delta", "index": 0,
                         "delta": {"type": "citations_delta", "citation": {}}});
    frames.insert(3, wire.frame(&unknown));
    frames.insert(3, wire.frame(&json!({"type": "ping"})));
    let deltas = answer(wire, frames).await;
    assert_eq!(text(&deltas), "ab");
    assert_eq!(deltas.last(), Some(&Ok(Delta::Stop(Stop::Done))));
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

#[tokio::test]
async fn encrypted_reasoning_of_the_responses_api_comes_before_the_call() {
    let wire = Wire::Responses;
    let mut frames = wire.frames(&Said {
        arguments: Some(&["{}"]),
        ..Said::default()
    });
    let item = json!({"type": "response.output_item.done", "output_index": 0,
                      "item": {"type": "reasoning", "encrypted_content": "blob", "summary": []}});
    frames.insert(1, wire.frame(&item));
    let deltas = answer(wire, frames).await;
    assert_eq!(signatures("openai_responses", &deltas), ["blob"]);
    assert!(matches!(deltas[1], Ok(Delta::Call(_))));
}

#[tokio::test]
async fn a_withheld_answer_is_a_refusal() {
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}});
    let deltas = answer(Wire::Gemini, vec![Wire::Gemini.frame(&blocked)]).await;
    let counted = Usage {
        input: 3,
        ..Usage::default()
    };
    let expected = [Ok(Delta::Usage(counted)), Ok(Delta::Stop(Stop::Refused))];
    assert_eq!(deltas, expected);
    let filtered =
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]});
    let frames = vec![Wire::OpenAi.frame(&filtered), b"data: [DONE]\n\n".to_vec()];
    let deltas = answer(Wire::OpenAi, frames).await;
    assert_eq!(deltas.last(), Some(&Ok(Delta::Stop(Stop::Refused))));
}

#[tokio::test]
async fn a_call_that_is_announced_and_does_not_come_is_said() {
    let nothing = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let frames = vec![Wire::OpenAi.frame(&nothing), b"data: [DONE]\n\n".to_vec()];
    let broken = json!({"candidates": [{"content": {"parts": [{"text": "x"}]},
                                        "finishReason": "MALFORMED_FUNCTION_CALL"}]});
    for (wire, frames) in [
        (Wire::OpenAi, frames),
        (Wire::Gemini, vec![Wire::Gemini.frame(&broken)]),
    ] {
        let deltas = answer(wire, frames).await;
        assert!(
            matches!(deltas.last(), Some(Err(Fault::Malformed { .. }))),
            "{wire:?}: {deltas:?}"
        );
    }
}
