use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::transcript::INTERRUPTED;

fn row(protocol: Protocol) -> &'static ProviderInfo {
    let mut rows = crate::provider_table::PROVIDERS.iter();
    rows.find(|row| row.protocol == protocol).unwrap()
}

fn info(protocol: Protocol) -> RequestInfo {
    RequestInfo {
        provider: row(protocol),
        title: "x".into(),
        url: "http://h/".into(),
        own: false,
        model: "m".into(),
        key_source: "KEY".into(),
        keys: Vec::new(),
        guessed: false,
        thinking: false,
        stall: Duration::from_secs(1),
    }
}

fn user(text: &str) -> Item {
    Item::User {
        text: text.into(),
        context: Vec::new(),
    }
}

fn said(text: &str) -> Item {
    Item::Text { text: text.into() }
}

fn call(id: &str) -> Item {
    Item::Call(Call {
        id: id.into(),
        name: "run".into(),
        arguments: json!({"cmd": "ls"}),
        signature: None,
    })
}

fn outcome(id: &str, text: &str) -> Item {
    Item::Outcome(Outcome {
        call: id.into(),
        text: text.into(),
        ok: true,
        spill: None,
        hidden: 0,
    })
}

fn request(items: Vec<Item>, tools: bool) -> ModelRequest {
    let tool = ToolSpec {
        name: "run".into(),
        description: "Runs.".into(),
        schema: json!({"type": "object"}),
    };
    ModelRequest {
        system: "system".into(),
        items: items.into(),
        tools: if tools {
            Arc::new([tool])
        } else {
            Arc::new([])
        },
        may_call: true,
    }
}

/// Each message as its role and its parts, in short.
fn told(protocol: Protocol, items: Vec<Item>, tools: bool) -> Vec<String> {
    told_over(&info(protocol), items, tools)
}

fn told_over(info: &RequestInfo, items: Vec<Item>, tools: bool) -> Vec<String> {
    chat(info, &request(items, tools))
        .messages
        .iter()
        .map(|message| {
            let parts: Vec<String> = message
                .content
                .parts()
                .iter()
                .map(|part| match part {
                    ContentPart::Text(text) => text.clone(),
                    ContentPart::ToolCall(call) => {
                        let signature = call.thought_signatures.clone().unwrap_or_default();
                        format!("call {}{}", call.call_id, signature.concat())
                    }
                    ContentPart::ToolResponse(response) => {
                        format!("result {}: {}", response.call_id, response.content)
                    }
                    ContentPart::ThoughtSignature(signature) => format!("signature {signature}"),
                    ContentPart::ReasoningContent(text) => format!("thought {text}"),
                    ContentPart::Custom(custom) => format!("custom {}", custom.data),
                    other => format!("{other:?}"),
                })
                .collect();
            format!("{}: {}", message.role, parts.join(" | "))
        })
        .collect()
}

#[test]
fn calls_of_another_model_are_told_to_one_that_thinks_as_text() {
    let thinking = RequestInfo {
        thinking: true,
        ..info(Protocol::Anthropic)
    };
    let own = keep_signature(row(Protocol::Anthropic), "s");
    let items = vec![
        user("x"),
        said("I look."),
        call("1"),
        outcome("1", "there"),
        reasoning("so", Some(own)),
        call("2"),
        outcome("2", "here"),
    ];
    let told = told_over(&thinking, items, true);
    let expected = [
        "User: x",
        "Assistant: I look. | [used run with {\"cmd\":\"ls\"}]",
        "User: [what run came to]\nthere",
        "Assistant: signature s | thought so | call 2",
        "Tool: result 2: here",
    ];
    assert_eq!(told, expected);
}

fn reasoning(text: &str, signature: Option<String>) -> Item {
    Item::Reasoning {
        text: text.into(),
        signature,
    }
}

#[test]
fn calls_of_a_step_stand_together_and_so_do_their_results() {
    let items = vec![
        user("x"),
        said("I look."),
        call("1"),
        call("2"),
        outcome("1", "a"),
        outcome("2", "b"),
        said("Done."),
        user("y"),
    ];
    assert_eq!(
        told(Protocol::OpenAi, items.clone(), true),
        [
            "User: x",
            "Assistant: I look. | call 1 | call 2",
            "Tool: result 1: a | result 2: b",
            "Assistant: Done.",
            "User: y",
        ]
    );
    let ollama = told(Protocol::Ollama, items, true);
    assert_eq!(ollama[2..4], ["Tool: result 1: a", "Tool: result 2: b"]);
}

#[test]
fn what_is_broken_is_mended_before_it_is_sent() {
    assert_eq!(
        told(
            Protocol::OpenAi,
            vec![user("x"), call("1"), user("y")],
            true
        ),
        [
            "User: x".to_owned(),
            "Assistant: call 1".to_owned(),
            format!("Tool: result 1: {INTERRUPTED}"),
            "User: y".to_owned(),
        ]
    );
}

#[test]
fn the_end_of_a_job_is_told_unless_it_was_read() {
    let ended = |job: u64, told| Item::JobEnded {
        job,
        text: format!("job {job} (make) ended: exit 1"),
        told,
    };
    let started = Item::JobStarted {
        job: 1,
        call: "1".into(),
        command: "make".into(),
    };
    // The news came while the call was under way.
    let items = vec![
        user("x"),
        call("1"),
        started,
        ended(1, false),
        outcome("1", "a"),
        ended(2, true),
        user("y"),
    ];
    for protocol in [Protocol::OpenAi, Protocol::Gemini, Protocol::Ollama] {
        assert_eq!(
            told(protocol, items.clone(), true),
            [
                "User: x",
                "Assistant: call 1",
                "Tool: result 1: a",
                "User: [job 1 (make) ended: exit 1]\n\ny",
            ]
        );
    }
}

#[test]
fn a_request_never_ends_or_begins_with_the_models_words() {
    assert_eq!(
        told(Protocol::Gemini, vec![said("half")], true),
        [
            format!("User: {BEGIN}"),
            "Assistant: half".into(),
            format!("User: {GO_ON}"),
        ]
    );
}

/// Joined with the next prompt, the first one would not be the bytes that were sent.
#[test]
fn a_prompt_without_an_answer_stays_as_it_was_sent() {
    let failed = Item::End {
        reason: crate::transcript::End::Failed,
        usage: crate::transcript::Usage::default(),
    };
    let summary = Item::Summary {
        text: "s".into(),
        keep: 0,
    };
    let items = vec![user("x"), failed.clone(), user("y")];
    assert_eq!(
        told(Protocol::OpenAi, items, true),
        ["User: x", "Assistant: (no answer)", "User: y"]
    );
    let items = vec![
        user("x"),
        said("a"),
        failed.clone(),
        summary,
        failed,
        user("y"),
    ];
    let told = told(Protocol::OpenAi, items, true);
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn without_tools_calls_of_the_past_are_text() {
    let items = vec![user("x"), call("1"), outcome("1", "a")];
    assert_eq!(
        told(Protocol::OpenAi, items, false),
        [
            "User: x",
            "Assistant: [used run with {\"cmd\":\"ls\"}]",
            "User: [what run came to]\na",
        ]
    );
}

#[test]
fn anthropic_gets_its_thoughts_back_with_their_signatures_in_order() {
    let mine = |text: &str| Some(keep_signature(row(Protocol::Anthropic), text));
    let items = vec![
        user("x"),
        reasoning("a", mine("sig-a")),
        reasoning("", mine(r#"{"type":"redacted_thinking","data":"zz"}"#)),
        reasoning("b", mine("sig-b")),
        reasoning("unsigned", None),
        reasoning("foreign", Some(keep_signature(row(Protocol::Gemini), "g"))),
        call("call#run#0"),
        outcome("call#run#0", "ok"),
    ];
    assert_eq!(
        told(Protocol::Anthropic, items, true),
        [
            "User: x",
            "Assistant: signature sig-a | thought a | custom {\"type\":\"redacted_thinking\",\"data\":\"zz\"} \
             | signature sig-b | thought b | call call_run_0",
            "Tool: result call_run_0: ok",
        ]
    );
}

#[test]
fn gemini_gets_the_signatures_of_its_calls() {
    let mut signed = Call {
        id: "call#run#0".into(),
        name: "run".into(),
        arguments: json!({}),
        signature: Some(keep_signature(row(Protocol::Gemini), "/sig")),
    };
    let items = vec![
        user("x"),
        Item::Call(signed.clone()),
        outcome("call#run#0", "ok"),
    ];
    assert_eq!(
        told(Protocol::Gemini, items, true)[1],
        "Assistant: call call#run#0/sig"
    );
    signed.signature = Some(keep_signature(row(Protocol::Responses), "/sig"));
    let items = vec![user("x"), Item::Call(signed), outcome("call#run#0", "ok")];
    assert_eq!(
        told(Protocol::Gemini, items, true)[1],
        "Assistant: call call#run#0"
    );
}

#[test]
fn a_compatible_server_gets_back_the_thoughts_that_led_to_calls() {
    let items = vec![
        user("x"),
        reasoning("so", None),
        call("1"),
        outcome("1", "ok"),
        reasoning("idle", None),
        said("a"),
        user("y"),
    ];
    assert_eq!(
        told(Protocol::OpenAi, items.clone(), true),
        [
            "User: x",
            "Assistant: thought so | call 1",
            "Tool: result 1: ok",
            "Assistant: a",
            "User: y",
        ]
    );
    let own = RequestInfo {
        own: true,
        ..info(Protocol::OpenAi)
    };
    let chat = chat(&own, &request(items, true));
    assert!(
        !chat
            .messages
            .iter()
            .any(|message| message.content.contains_reasoning_content())
    );
}

#[test]
fn context_is_told_with_its_name() {
    let item = Item::User {
        text: "mend this".into(),
        context: vec![Context {
            name: "@selection".into(),
            text: "let x = 1;\n".into(),
        }],
    };
    assert_eq!(
        told(Protocol::OpenAi, vec![item], true),
        ["User: mend this\n\n<context name=\"@selection\">\nlet x = 1;\n</context>"]
    );
}

/// Holds for every request a provider takes.
fn assert_valid(protocol: Protocol, items: Vec<Item>, tools: bool) {
    let chat = chat(&info(protocol), &request(items, tools));
    let messages: Vec<&ChatMessage> = chat
        .messages
        .iter()
        .filter(|message| !matches!(message.role, ChatRole::System))
        .collect();
    assert!(matches!(messages[0].role, ChatRole::User));
    assert!(!matches!(
        messages[messages.len() - 1].role,
        ChatRole::Assistant
    ));
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        if !matches!(message.role, ChatRole::Tool) {
            assert_eq!(open, Vec::<String>::new(), "calls without results");
        }
        assert!(!message.content.is_empty());
        for part in message.content.parts() {
            match part {
                ContentPart::Text(text) => assert!(!text.trim().is_empty()),
                ContentPart::ToolCall(call) => open.push(call.call_id.clone()),
                ContentPart::ToolResponse(response) => {
                    let at = open.iter().position(|id| *id == response.call_id);
                    open.remove(at.expect("a result answers an open call"));
                }
                _ => {}
            }
        }
    }
    assert_eq!(open, Vec::<String>::new(), "calls without results");
    assert_eq!(chat.tools.is_some(), tools);
}

fn any_item() -> impl proptest::strategy::Strategy<Value = Item> {
    use proptest::prelude::*;
    let id = prop_oneof![Just("1"), Just("2"), Just("call#run#0")];
    let text = prop_oneof![Just(""), Just(" \n"), Just("words")];
    prop_oneof![
        Just(user("u")),
        text.clone().prop_map(said),
        (text, any::<bool>()).prop_map(|(text, signed)| {
            reasoning(text, signed.then(|| "anthropic:sig".to_owned()))
        }),
        Just(Item::Summary {
            text: "s".into(),
            keep: 2
        }),
        id.clone().prop_map(call),
        id.prop_map(|id| outcome(id, "o")),
    ]
}

proptest::proptest! {
    #[test]
    fn whatever_is_in_a_transcript_the_request_is_valid(
        items in proptest::collection::vec(any_item(), 0..30), tools: bool
    ) {
        let mut items = items;
        items.insert(0, user("first"));
        for protocol in [
            Protocol::Anthropic, Protocol::OpenAi, Protocol::Responses, Protocol::Gemini, Protocol::Ollama,
        ] {
            assert_valid(protocol, items.clone(), tools);
        }
    }
}

/// Pieces of an answer with everything that a careless joint would change.
const ANSWER: &str = "Three\n\nfour  five:\n\n```rust\n\tfn f() {}\n\n\n}\n```\n  \n- é 👩‍👩‍👧 \n\n";

proptest::proptest! {
    #[test]
    fn any_cut_of_an_answer_makes_the_same_request(
        cuts in proptest::collection::vec(0..ANSWER.chars().count(), 0..12)
    ) {
        let around = |mut texts: Vec<Item>| {
            texts.insert(0, user("x"));
            texts.extend([call("1"), outcome("1", "a"), said("Done."), user("y")]);
            texts
        };
        let bytes = |protocol, items| {
            serde_json::to_string(&chat(&info(protocol), &request(items, true))).unwrap()
        };
        let whole = around(vec![said(ANSWER)]);
        let pieces = around(crate::transcript::cut(ANSWER, &cuts));
        for protocol in [
            Protocol::Anthropic, Protocol::OpenAi, Protocol::Responses, Protocol::Gemini, Protocol::Ollama,
        ] {
            proptest::prop_assert_eq!(
                bytes(protocol, pieces.clone()), bytes(protocol, whole.clone())
            );
        }
    }
}
