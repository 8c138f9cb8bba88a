//! Servers that refuse a request and say how they want it.

use std::sync::Arc;

use co_llm::transcript::{Call, Item};
use co_llm::{
    Delta, Fault, ModelRequest, Provider, ProviderSettings, STALL_TIMEOUT, ServerMemory, Stop,
};
use serde_json::{Value, json};

use super::wire::{WIRES, Wire, ask, go, key, outcome, request, text, user};
use crate::support::http::{Response, SHOW, Server};

fn provider(settings: &ProviderSettings, memory: &ServerMemory) -> Arc<dyn Provider> {
    co_llm::make_provider_with(settings, &key, STALL_TIMEOUT, memory.clone()).expect("a provider")
}

fn refusal(words: &str) -> Response {
    let error = json!({"type": "invalid_request_error", "message": words});
    Response::json(400, &json!({ "error": error }))
}

/// A turn with a call that the model reasoned about.
fn reasoned() -> Vec<Item> {
    vec![
        user("go"),
        Item::Reasoning {
            text: "hmm".into(),
            signature: None,
        },
        Item::Call(Call::new("a", "run", json!({"cmd": "ls"}))),
        outcome("a", "x", false),
    ]
}

fn notices(deltas: &[Result<Delta, Fault>]) -> Vec<&str> {
    let notices = deltas.iter().filter_map(|delta| match delta {
        Ok(Delta::Notice(text)) => Some(text.as_str()),
        _ => None,
    });
    notices.collect()
}

fn reasoning_content(body: &Value) -> Option<&Value> {
    body["messages"][2].get("reasoning_content")
}

#[tokio::test]
async fn reasoning_that_is_refused_is_left_out_in_every_chat_with_the_server() {
    let server = Server::start(|received, _| match reasoning_content(&received.body) {
        Some(_) => refusal("'messages.2': property 'reasoning_content' is unsupported"),
        None => Wire::OpenAi.says("ok"),
    });
    let memory = ServerMemory::default();
    for (chat, requests) in [2, 3, 4].into_iter().enumerate() {
        let settings = ProviderSettings {
            model: Some(format!("model-{chat}")),
            ..Wire::OpenAi.settings(&server.url())
        };
        let deltas = ask(provider(&settings, &memory).as_ref(), request(reasoned())).await;
        assert_eq!(text(&deltas), "ok", "{deltas:?}");
        assert_eq!(
            server.received().len(),
            requests,
            "only the first chat is refused"
        );
    }
}

#[tokio::test]
async fn reasoning_that_is_demanded_is_sent() {
    let server = Server::start(|received, _| match reasoning_content(&received.body) {
        Some(_) => Wire::OpenAi.says("ok"),
        None => {
            refusal("The reasoning_content in the thinking mode must be passed back to the API.")
        }
    });
    // The calls of another model have no reasoning.
    let mut items = reasoned();
    items.remove(1);
    let memory = ServerMemory::default();
    let settings = Wire::OpenAi.settings(&server.url());
    let deltas = ask(provider(&settings, &memory).as_ref(), request(items)).await;
    assert_eq!(text(&deltas), "ok", "{deltas:?}");
    let bodies: Vec<_> = server.received().into_iter().map(|it| it.body).collect();
    let sent: Vec<_> = bodies.iter().map(reasoning_content).collect();
    assert_eq!(sent, [None, Some(&json!(""))]);
}

#[tokio::test]
async fn a_server_that_wants_a_text_beside_calls_gets_an_empty_one() {
    let server = Server::start(
        |received, _| match received.body["messages"][2]["content"] {
            Value::Null => refusal("messages.2.content: Input should be a valid string"),
            _ => Wire::OpenAi.says("ok"),
        },
    );
    let settings = Wire::OpenAi.settings(&server.url());
    let provider = provider(&settings, &ServerMemory::default());
    let deltas = ask(provider.as_ref(), request(reasoned())).await;
    assert_eq!(text(&deltas), "ok", "{deltas:?}");
}

#[tokio::test]
async fn a_model_that_answers_over_the_other_protocol_is_asked_over_it() {
    let server = Server::start(|received, _| match received.path.as_str() {
        "/v1/responses" => Wire::Responses.says("ok"),
        _ => refusal(
            "Function tools with reasoning_effort are not supported for test-model in /v1/chat/completions. \
             To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
        ),
    });
    let memory = ServerMemory::default();
    let settings = Wire::OpenAi.settings(&server.url());
    let first = provider(&settings, &memory);
    let deltas = go(first.as_ref()).await;
    assert_eq!(text(&deltas), "ok", "{deltas:?}");
    assert!(
        matches!(notices(&deltas)[..], [notice] if notice.contains("Responses")),
        "{deltas:?}"
    );
    let deltas = go(first.as_ref()).await;
    assert_eq!(notices(&deltas), [""; 0], "it is said once");
    assert_eq!(server.received().len(), 3);
}

#[tokio::test]
async fn a_refusal_that_repeats_itself_ends_the_tries() {
    let server = Server::always(refusal("cache_control: Extra inputs are not permitted"));
    let settings = Wire::Anthropic.settings(&server.url());
    let provider = provider(&settings, &ServerMemory::default());
    let deltas = go(provider.as_ref()).await;
    assert!(
        matches!(deltas[..], [Err(Fault::BadRequest { .. })]),
        "{deltas:?}"
    );
    let received = server.received();
    let marked = received
        .iter()
        .map(|it| it.body.to_string().contains("cache_control"));
    assert_eq!(marked.collect::<Vec<_>>(), [true, false]);
}

#[tokio::test]
async fn an_unknown_model_is_answered_with_the_nearest_names() {
    let server = Server::start(|received, _| match received.method.as_str() {
        "GET" => Response::json(
            200,
            &json!({"data": [{"id": "test-models"}, {"id": "other"}]}),
        ),
        _ => Response::json(404, &json!({"error": {"message": "no such model"}})),
    });
    let settings = Wire::OpenAi.settings(&server.url());
    let provider = provider(&settings, &ServerMemory::default());
    let deltas = go(provider.as_ref()).await;
    let [Err(Fault::NotFound { near, .. })] = &deltas[..] else {
        panic!("{deltas:?}");
    };
    assert_eq!(near, &["test-models"]);
}

#[tokio::test]
async fn the_window_is_what_the_server_reports_and_it_is_asked_once() {
    let server = Server::start(|_, _| {
        let list = json!({"data": [{"id": "test-model", "context_length": 12_345}]});
        Response::json(200, &list)
    });
    let memory = ServerMemory::default();
    for _ in 0..2 {
        let settings = Wire::OpenAi.settings(&server.url());
        assert_eq!(provider(&settings, &memory).window().await, 12_345);
    }
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn profiles_of_one_server_have_lists_of_their_own() {
    let server = Server::start(|received, _| {
        let window = match received.header("x-team") {
            Some("work") => 12_345,
            _ => 6_789,
        };
        let list = json!({"data": [{"id": "test-model", "context_length": window}]});
        Response::json(200, &list)
    });
    let memory = ServerMemory::default();
    for (name, window) in [("work", 12_345), ("home", 6_789)] {
        let settings = ProviderSettings {
            name: Some(name.into()),
            headers: vec![("x-team".into(), name.into())],
            ..Wire::OpenAi.settings(&server.url())
        };
        assert_eq!(provider(&settings, &memory).window().await, window);
    }
}

#[tokio::test]
async fn a_list_that_failed_is_asked_for_again_unless_there_is_none() {
    for (status, window) in [(503, 12_345), (401, 12_345), (404, 32_768)] {
        let server = Server::start(move |_, before| match before {
            0 => Response::json(status, &json!({"error": {"message": "no"}})),
            _ => Response::json(
                200,
                &json!({"data": [{"id": "test-model", "context_length": 12_345}]}),
            ),
        });
        let provider = provider(
            &Wire::OpenAi.settings(&server.url()),
            &ServerMemory::default(),
        );
        assert_eq!(provider.window().await, 32_768, "{status}");
        assert_eq!(provider.window().await, window, "{status}");
    }
}

#[tokio::test]
async fn the_chosen_model_is_named() {
    let server = Server::start(|received, _| match received.method.as_str() {
        "GET" => Response::json(
            200,
            &json!({"data": [{"id": "claude-sonnet-4-5"}, {"id": "claude-sonnet-5-5"}]}),
        ),
        _ => Wire::OpenAi.says("ok"),
    });
    let settings = ProviderSettings {
        model: None,
        ..Wire::OpenAi.settings(&server.url())
    };
    let provider = provider(&settings, &ServerMemory::default());
    let deltas = go(provider.as_ref()).await;
    assert!(
        matches!(notices(&deltas)[..], [notice] if notice.starts_with("claude-sonnet-5-5 answers")),
        "{deltas:?}"
    );
    assert_eq!(deltas.last(), Some(&Ok(Delta::Stop(Stop::Done))));
    let deltas = go(provider.as_ref()).await;
    assert_eq!(notices(&deltas), [""; 0]);
}

#[tokio::test]
async fn a_request_that_was_refused_is_not_sent_again() {
    let refused = |status| match status {
        413 => Response::new(413, "text/html", vec!["<html>too large</html>".into()]),
        _ => Response::json(
            status,
            &json!({"error": {"message": "tool_use without tool_result"}}),
        ),
    };
    for wire in WIRES {
        for status in [400, 413, 422] {
            let server = Server::always(refused(status));
            let memory = ServerMemory::default();
            let settings = wire.settings(&server.url());
            let mut sent = Vec::new();
            for chat in [provider(&settings, &memory), provider(&settings, &memory)] {
                for said in ["go", "go", "go on"] {
                    let deltas = ask(chat.as_ref(), request(vec![user(said)])).await;
                    assert!(
                        matches!(&deltas[..], [Err(fault)] if fault.is_refusal()),
                        "{deltas:?}"
                    );
                }
                sent = server.received();
                sent.retain(|it| it.method == "POST" && it.path != SHOW);
            }
            assert_eq!(sent.len(), 2, "{wire:?} {status}: one for each text");
        }
    }
}

#[tokio::test]
async fn a_request_that_was_refused_inside_of_an_answer_is_not_sent_again() {
    let error = json!({"error": {"message": "tool_use without tool_result", "code": 400}});
    let server = Server::always(Wire::OpenAi.reply(vec![Wire::OpenAi.frame(&error)]));
    let settings = Wire::OpenAi.settings(&server.url());
    let provider = provider(&settings, &ServerMemory::default());
    for _ in 0..2 {
        let deltas = go(provider.as_ref()).await;
        assert!(
            matches!(deltas[..], [Err(Fault::BadRequest { .. })]),
            "{deltas:?}"
        );
    }
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn a_window_that_was_learned_holds_for_each_chat_with_the_model() {
    let server = Server::always(Response::json(404, &json!({})));
    let memory = ServerMemory::default();
    let settings = Wire::OpenAi.settings(&server.url());
    provider(&settings, &memory).learn_window(Some(5_000));
    assert_eq!(provider(&settings, &memory).window().await, 5_000);
    let other = ProviderSettings {
        model: Some("other".into()),
        ..settings
    };
    assert_eq!(provider(&other, &memory).window().await, 32_768);
}

/// Anthropic refuses a limit of the answer that the window has no room for.
#[tokio::test]
async fn the_limit_of_an_answer_is_cut_to_the_room_in_a_known_window() {
    let limit = async |model: &str, context_window| {
        let server = Server::always(Wire::Anthropic.says("ok"));
        let settings = ProviderSettings {
            model: Some(model.into()),
            context_window,
            ..Wire::Anthropic.settings(&server.url())
        };
        let asked = ModelRequest {
            room: Some(9_000),
            ..request(vec![user("go")])
        };
        ask(
            provider(&settings, &ServerMemory::default()).as_ref(),
            asked,
        )
        .await;
        let mut received = server.received();
        received.retain(|it| it.method == "POST");
        received[0].body["max_tokens"].clone()
    };
    assert_eq!(limit("claude-sonnet-4-5", None).await, 9_000);
    assert_eq!(limit("mystery", Some(20_000)).await, 9_000);
    assert_eq!(limit("mystery", None).await, 64_000, "a guess cuts nothing");
}

/// Returns the requests for an answer.
fn asked(server: &Server) -> Vec<Value> {
    let received = server.received().into_iter();
    let posts = received.filter(|it| it.method == "POST" && it.path != SHOW);
    posts.map(|it| it.body).collect()
}

#[tokio::test]
async fn a_model_without_tools_gets_calls_as_text() {
    let server = Server::start(|received, _| match received.body["tools"].is_array() {
        true => Response::json(
            404,
            &json!({"error": {"message": "No endpoints found that support tool use", "code": 404}}),
        ),
        false => Wire::OpenAi.says("ok"),
    });
    let memory = ServerMemory::default();
    let settings = Wire::OpenAi.settings(&server.url());
    for _ in 0..2 {
        let deltas = ask(provider(&settings, &memory).as_ref(), request(reasoned())).await;
        assert_eq!(text(&deltas), "ok", "{deltas:?}");
    }
    let sent = asked(&server);
    assert_eq!(sent.len(), 3);
    for body in &sent[1..] {
        let body = body.to_string();
        assert!(
            !body.contains("tool_calls") && !body.contains("tool_choice"),
            "{body}"
        );
        assert!(body.contains("[used run with"), "{body}");
    }
}

#[tokio::test]
async fn a_template_without_a_system_role_gets_the_system_prompt_in_the_first_prompt() {
    let server = Server::start(|received, _| {
        match received.body["messages"][0]["role"] == "system" {
            true => Response::json(
                500,
                &json!({"error": {"code": 500, "message": "Jinja Exception: System role not supported"}}),
            ),
            false => Wire::OpenAi.says("ok"),
        }
    });
    let settings = Wire::OpenAi.settings(&server.url());
    let provider = provider(&settings, &ServerMemory::default());
    let deltas = ask(provider.as_ref(), request(reasoned())).await;
    assert_eq!(text(&deltas), "ok", "{deltas:?}");
    let asked = asked(&server);
    let (system, first) = (&asked[0]["messages"][0], &asked[1]["messages"][0]);
    assert_eq!(first["role"], "user");
    let system = system["content"].as_str().unwrap();
    assert_eq!(first["content"], format!("{system}\n\ngo"));
    assert_eq!(asked[1]["messages"][1], asked[0]["messages"][2]);
}

/// A server whose window co does not know, and which refuses an answer that does not fit.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_shorter_and_the_window_is_learned() {
    const WINDOW: u64 = 20_000;
    const USED: u64 = 2_000;
    let server = Server::start(|received, _| {
        let limit = received.body["max_tokens"].as_u64().unwrap_or_default();
        match limit > WINDOW - USED {
            true => refusal(&format!(
                "'max_tokens' is too large: {limit}. This model's maximum context length is {WINDOW} tokens and your request has \
                 {USED} input tokens ({limit} > {WINDOW} - {USED})."
            )),
            false => Wire::Anthropic.says("ok"),
        }
    });
    let memory = ServerMemory::default();
    let settings = Wire::Anthropic.settings(&server.url());
    let provider = provider(&settings, &memory);
    let window = provider.window().await;
    let of_room = |room| ModelRequest {
        room: Some(room),
        ..request(vec![user("go")])
    };
    let deltas = ask(provider.as_ref(), of_room(window - 3_000)).await;
    assert_eq!(text(&deltas), "ok", "{deltas:?}");
    assert_eq!(provider.window().await, WINDOW);
    ask(provider.as_ref(), of_room(WINDOW - 3_000)).await;
    let limits: Vec<_> = asked(&server)
        .iter()
        .map(|it| it["max_tokens"].clone())
        .collect();
    assert_eq!(limits, [64_000, 17_000, 17_000]);
}

#[tokio::test]
async fn the_longest_answer_that_a_server_names_is_asked_for() {
    let server =
        Server::start(
            |received, _| match received.body["max_tokens"].as_u64() > Some(8_192) {
                true => {
                    refusal("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]")
                }
                false => Wire::Anthropic.says("ok"),
            },
        );
    let memory = ServerMemory::default();
    let settings = Wire::Anthropic.settings(&server.url());
    for _ in 0..2 {
        let deltas = go(provider(&settings, &memory).as_ref()).await;
        assert_eq!(text(&deltas), "ok", "{deltas:?}");
    }
    let limits: Vec<_> = asked(&server)
        .iter()
        .map(|it| it["max_tokens"].clone())
        .collect();
    assert_eq!(limits, [64_000, 8_192, 8_192]);
}

/// A refusal may repeat the request, with words of the chat.
#[tokio::test]
async fn what_a_refusal_repeats_of_the_chat_changes_nothing() {
    let server = Server::start(|received, _| {
        let said = received.last("user").unwrap_or_default();
        let fault = json!({"loc": ["body", "messages", 1, "content"], "msg": "value is not valid", "input": said});
        Response::json(422, &json!({ "detail": [fault] }))
    });
    let settings = Wire::OpenAi.settings(&server.url());
    let provider = provider(&settings, &ServerMemory::default());
    let said = "call /v1/responses without reasoning_content, cache_control, stream_options and tools: they are not supported";
    let deltas = ask(provider.as_ref(), request(vec![user(said)])).await;
    let [Err(Fault::BadRequest { body, .. })] = &deltas[..] else {
        panic!("{deltas:?}");
    };
    assert_eq!(body, "body.messages.1.content: value is not valid");
    assert_eq!(asked(&server).len(), 1);
}
