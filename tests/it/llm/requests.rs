//! The requests that servers get.

use std::time::Duration;

use co_llm::transcript::{Call, Item};
use co_llm::{Delta, Fault, ModelRequest, ProviderSettings, STALL_TIMEOUT};
use futures::StreamExt;
use serde_json::{Value, json};

use super::wire::{Said, WIRES, Wire, ask, assert_whole, go, key, outcome, request, user};
use crate::support::http::{Ending, Request, Response, SHOW, Server};

pub(super) async fn sent(
    wire: Wire,
    items: Vec<Item>,
    adapt: fn(&mut ProviderSettings),
) -> Request {
    sent_to(wire, |_| items, adapt).await
}

/// Does the same with items that depend on the host and port of the server.
async fn sent_to(
    wire: Wire,
    items: impl FnOnce(&str) -> Vec<Item>,
    adapt: fn(&mut ProviderSettings),
) -> Request {
    let server = Server::always(wire.says("ok"));
    let url = server.url();
    let items = items(url.trim_start_matches("http://"));
    let mut settings = wire.settings(&server.url());
    adapt(&mut settings);
    let provider = co_llm::make_provider(&settings, &key).expect("a provider");
    let deltas = ask(provider.as_ref(), request(items)).await;
    assert_whole(&deltas, wire);
    server.received().remove(0)
}

/// A turn that this model at this server reasoned about.
fn signed_turn(host: &str) -> Vec<Item> {
    let mark =
        |protocol: &str, signature: &str| Some(format!("{protocol}|{host}|test-model|{signature}"));
    let reasoning = |protocol: &str| Item::Reasoning {
        text: "hmm".into(),
        signature: mark(protocol, "sig"),
    };
    let call = |id: &str| {
        Item::Call(Call {
            id: id.into(),
            name: "run".into(),
            arguments: json!({"cmd": "ls"}),
            signature: mark("gemini", "call-sig"),
        })
    };
    let outcome = |id: &str| outcome(id, &format!("result of {id}"), id != "b");
    vec![
        user("go"),
        reasoning("anthropic"),
        reasoning("openai_responses"),
        call("a#0"),
        call("b"),
        outcome("a#0"),
        outcome("b"),
    ]
}

#[tokio::test]
async fn anthropic_gets_signed_thoughts_and_results_in_one_message() {
    let body = sent_to(Wire::Anthropic, signed_turn, |_| ()).await.body;
    // A gateway finds the places to cache by their marks.
    let mark = json!({"type": "ephemeral"});
    let system = json!({"type": "text", "text": "You are a test.", "cache_control": mark});
    assert_eq!(body["system"], json!([system]));
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3, "{body}");
    let blocks = &messages[1]["content"];
    assert_eq!(
        blocks[0],
        json!({"type": "thinking", "thinking": "hmm", "signature": "sig"})
    );
    // The other thought has no signature of this model. It is sent back as such.
    assert_eq!(blocks[1], json!({"type": "thinking", "thinking": "hmm"}));
    assert_eq!(blocks[2]["id"], "a_0");
    assert_eq!(blocks[3]["id"], "b");
    let results = messages[2]["content"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0]["tool_use_id"], "a_0");
    assert_eq!(results[1]["cache_control"], mark);
    let failed = results.iter().map(|result| result.get("is_error"));
    assert_eq!(Vec::from_iter(failed), [None, Some(&json!(true))]);
    assert_eq!(body["tools"][0]["description"], "Runs a command.");
    assert!(body["max_tokens"].is_u64());
}

#[tokio::test]
async fn responses_gets_its_encrypted_reasoning_before_the_calls() {
    let body = sent_to(Wire::Responses, signed_turn, |_| ()).await.body;
    let input = body["input"].as_array().unwrap();
    let kinds: Vec<&str> = input
        .iter()
        .map(|item| {
            item["role"]
                .as_str()
                .or(item["type"].as_str())
                .unwrap_or("?")
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "user",
            "reasoning",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output"
        ]
    );
    assert_eq!(input[1]["encrypted_content"], "sig");
    assert_eq!(body["store"], false);
    assert_eq!(body["instructions"], "You are a test.");
}

#[tokio::test]
async fn gemini_gets_the_signature_with_the_call() {
    let body = sent_to(Wire::Gemini, signed_turn, |_| ()).await.body;
    let part = &body["contents"][1]["parts"][0];
    assert_eq!(part["thoughtSignature"], "call-sig", "{body}");
    assert_eq!(part["functionCall"]["args"], json!({"cmd": "ls"}));
    let results = &body["contents"][2]["parts"];
    assert_eq!(results[0]["functionResponse"]["name"], "run");
    assert_eq!(results.as_array().unwrap().len(), 2);
    let response = |at: usize| &results[at]["functionResponse"]["response"];
    assert_eq!(response(0), &json!({"output": "result of a#0"}));
    assert_eq!(response(1), &json!({"error": "result of b"}));
}

#[tokio::test]
async fn ollama_gets_every_result() {
    let body = sent_to(Wire::Ollama, signed_turn, |_| ()).await.body;
    let results: Vec<&Value> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| &message["content"])
        .collect();
    assert_eq!(results, ["result of a#0", "result of b"]);
}

#[tokio::test]
async fn compatible_servers_get_nothing_they_do_not_know() {
    let body = sent_to(Wire::OpenAi, signed_turn, |_| ()).await.body;
    let told = body.to_string();
    for word in [
        "cache_control",
        "prompt_cache",
        "reasoning_effort",
        "signature",
    ] {
        assert!(!told.contains(word), "{word} in {told}");
    }
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
}

#[tokio::test]
async fn a_models_name_is_sent_as_it_is_written() {
    for wire in [Wire::OpenAi, Wire::Responses] {
        let body = sent(wire, vec![user("go")], |settings| {
            settings.model = Some("qwen-max".into());
        })
        .await
        .body;
        assert_eq!(body["model"], "qwen-max", "{wire:?}");
        assert!(!body.to_string().contains("effort"), "{body}");
    }
}

#[tokio::test]
async fn keys_go_where_each_provider_wants_them() {
    for (wire, header, value) in [
        (Wire::OpenAi, "authorization", "Bearer test-key"),
        (Wire::Responses, "authorization", "Bearer test-key"),
        (Wire::Anthropic, "x-api-key", "test-key"),
        (Wire::Gemini, "x-goog-api-key", "test-key"),
    ] {
        let received = sent(wire, vec![user("go")], |_| ()).await;
        assert_eq!(received.header(header), Some(value), "{wire:?}");
        assert!(!received.path.contains("test-key"), "{}", received.path);
    }
    let received = sent(Wire::Ollama, vec![user("go")], |settings| {
        settings.key_env = Some("MY_API_KEY".into());
    })
    .await;
    assert_eq!(received.header("authorization"), Some("Bearer test-key"));
}

#[tokio::test]
async fn headers_and_body_of_the_person_win() {
    for wire in WIRES {
        let received = sent(wire, vec![user("go")], |settings| {
            settings.headers = vec![
                ("authorization".into(), "Mine 1".into()),
                ("X-Team".into(), "seven".into()),
            ];
            settings.extra_body = Some(json!({"top_k": 4}));
        })
        .await;
        assert_eq!(received.header("x-team"), Some("seven"), "{wire:?}");
        let authorizations: Vec<_> = received
            .headers
            .iter()
            .filter(|(name, _)| name == "authorization")
            .collect();
        assert_eq!(authorizations.len(), 1, "{wire:?}: {authorizations:?}");
        assert_eq!(authorizations[0].1, "Mine 1");
        assert_eq!(received.body["top_k"], 4, "{wire:?}");
    }
}

#[tokio::test]
async fn the_length_of_an_answer_is_asked_for_where_it_is_set() {
    for (wire, path) in [
        (Wire::Anthropic, "/max_tokens"),
        (Wire::Responses, "/max_output_tokens"),
        (Wire::Gemini, "/generationConfig/maxOutputTokens"),
        (Wire::Ollama, "/options/num_predict"),
    ] {
        let limit = |settings: &mut ProviderSettings| settings.max_output_tokens = Some(77);
        let body = sent(wire, vec![user("go")], limit).await.body;
        assert_eq!(body.pointer(path), Some(&json!(77)), "{wire:?}: {body}");
    }
}

#[tokio::test]
async fn models_are_listed_and_the_first_is_taken_where_none_is_set() {
    for wire in WIRES {
        let server = Server::start(move |received, _| {
            if received.method != "GET" {
                return wire.says("ok");
            }
            Response::json(
                200,
                &match wire {
                    Wire::Gemini => {
                        json!({"models": [{"name": "models/first"}, {"name": "models/second"}]})
                    }
                    Wire::Ollama => json!({"models": [{"name": "first"}, {"name": "second"}]}),
                    _ => json!({"data": [{"id": "first"}, {"id": "second"}]}),
                },
            )
        });
        let mut settings = wire.settings(&server.url());
        settings.model = None;
        let provider = co_llm::make_provider(&settings, &key).unwrap();
        assert_eq!(provider.label(), wire.provider());
        assert_eq!(
            provider.models().await.unwrap(),
            ["first", "second"],
            "{wire:?}"
        );
        let deltas = go(provider.as_ref()).await;
        assert_whole(&deltas, wire);
        assert_eq!(provider.label(), format!("{}/first", wire.provider()));
        let asked = server.received();
        let last = asked.last().unwrap();
        assert!(
            last.body["model"] == "first" || last.path.contains("models/first:"),
            "{wire:?}: {last:?}"
        );
    }
}

#[tokio::test]
async fn a_request_that_may_call_nothing_has_its_tools_all_the_same() {
    for (wire, place, choice) in [
        (Wire::OpenAi, "/tool_choice", Some("none")),
        (Wire::OpenRouter, "/tool_choice", Some("none")),
        (Wire::Responses, "/tool_choice", Some("none")),
        (Wire::Anthropic, "/tool_choice/type", Some("none")),
        (
            Wire::Gemini,
            "/toolConfig/functionCallingConfig/mode",
            Some("NONE"),
        ),
        (Wire::Ollama, "/tool_choice", None),
    ] {
        let server = Server::always(wire.reply(wire.frames(&Said::default())));
        let provider = wire.connect(&server, STALL_TIMEOUT);
        let last = ModelRequest {
            may_call: false,
            ..request(vec![user("go")])
        };
        ask(provider.as_ref(), last).await;
        let body = server.received().remove(0).body;
        assert!(body["tools"].is_array(), "{wire:?}: {body}");
        let found = body.pointer(place).and_then(Value::as_str);
        assert_eq!(found, choice, "{wire:?}: {body}");
    }
}

/// Without a window in the request, Ollama cuts a long request off at its start, without a word.
#[tokio::test]
async fn ollama_is_asked_for_the_window_that_is_counted_with() {
    async fn check(shown: Value, adapt: fn(&mut ProviderSettings), expected: u64) {
        let server = Server::start(move |received, _| match received.path == SHOW {
            true => {
                assert_eq!(received.body["model"], "test-model");
                Response::json(200, &shown)
            }
            false => Wire::Ollama.says("ok"),
        });
        let mut settings = Wire::Ollama.settings(&server.url());
        adapt(&mut settings);
        let provider = co_llm::make_provider(&settings, &key).unwrap();
        for _ in 0..2 {
            let answer = go(provider.as_ref()).await;
            assert_whole(&answer, Wire::Ollama);
        }
        assert_eq!(provider.window().await, expected);
        for received in server.received() {
            assert_eq!(received.body["options"]["num_ctx"], expected);
        }
        assert_eq!(server.shows(), 1, "it is asked once");
    }
    let holds = |tokens: u64| json!({"model_info": {"llama.context_length": tokens}});
    check(holds(131_072), |_| (), 8_192).await;
    check(holds(4_096), |_| (), 4_096).await;
    check(json!({}), |_| (), 8_192).await;
    check(json!({"parameters": "num_ctx 16384"}), |_| (), 16_384).await;
    let wanted = |settings: &mut ProviderSettings| settings.context_window = Some(50_000);
    check(holds(131_072), wanted, 50_000).await;
    check(holds(32_768), wanted, 32_768).await;
    let by_hand = |settings: &mut ProviderSettings| {
        settings.extra_body = Some(json!({"options": {"num_ctx": 12_000, "temperature": 0}}));
    };
    check(holds(131_072), by_hand, 12_000).await;
}

#[tokio::test]
async fn a_list_that_is_a_page_is_said_to_be_one() {
    let server = Server::always(Response::new(
        200,
        "text/html",
        vec![b"<html></html>".to_vec()],
    ));
    for wire in WIRES {
        let listed = wire.connect(&server, STALL_TIMEOUT).models().await;
        assert!(
            matches!(listed, Err(Fault::HtmlPage { .. })),
            "{wire:?}: {listed:?}"
        );
    }
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_request() {
    let server = Server::always(Response::nothing(Ending::Cut));
    for wire in WIRES {
        drop(wire.connect(&server, STALL_TIMEOUT));
    }
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let said = Said {
        texts: &["half"],
        ..Said::default()
    };
    let frames = Wire::OpenAi.frames(&said)[..1].to_vec();
    let server = Server::always(Wire::OpenAi.reply(frames).ending(Ending::Hang));
    let provider = Wire::OpenAi.connect(&server, STALL_TIMEOUT);
    let mut stream = provider.stream(request(vec![user("go")])).await.unwrap();
    assert_eq!(stream.next().await, Some(Ok(Delta::Text("half".into()))));
    assert_eq!(server.hangups(), 0);
    drop(stream);
    let hangup = async {
        while server.hangups() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let end = tokio::time::timeout(Duration::from_secs(20), hangup).await;
    assert!(end.is_ok(), "the connection is still open");
}

/// The key may be a token that is valid for an hour.
#[tokio::test]
async fn a_key_that_ran_out_is_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    let print = ["cat", key.to_str().unwrap()].map(str::to_owned);
    for wire in WIRES {
        let server = Server::start(move |received, _| {
            let mut headers = received.headers.iter();
            match headers.any(|(_, value)| value.ends_with("good")) {
                true => wire.says("ok"),
                false => Response::json(401, &json!({"error": {"message": "expired"}})),
            }
        });
        let settings = ProviderSettings {
            key_env: None,
            key_cmd: Some(print.to_vec()),
            ..wire.settings(&server.url())
        };
        let provider = co_llm::make_provider(&settings, &|_| None).expect("a provider");
        let answer = async || go(provider.as_ref()).await;
        std::fs::write(&key, "ran-out").unwrap();
        let refused = answer().await;
        assert!(
            matches!(refused.last(), Some(Err(Fault::Unauthorized { .. }))),
            "{wire:?}: {refused:?}"
        );
        std::fs::write(&key, "good").unwrap();
        let taken = answer().await;
        assert_whole(&taken, wire);
        // One that is taken is kept.
        std::fs::write(&key, "never printed").unwrap();
        let kept = answer().await;
        assert_whole(&kept, wire);
    }
}
