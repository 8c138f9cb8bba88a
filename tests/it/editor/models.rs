//! `/model` by keys: a name means the provider that answers, and nothing goes to another one without its name on the screen.

use serde_json::{Value, json};

use super::scene::Scene;
use crate::support::http::{Reply, Response, Server};

/// A server whose models have names that mean another vendor.
fn serve() -> Server {
    Server::start(|received, _| match received.method.as_str() {
        "GET" => {
            let models = ["gpt-oss:20b", "qwen3", "claude-like"].map(|id| json!({ "id": id }));
            Response::json(200, &json!({ "data": models }))
        }
        _ => crate::llm::wire::Wire::OpenAi.says("At home."),
    })
}

/// Returns the models of the requests for an answer.
fn asked(server: &Server) -> Vec<Value> {
    let mut received = server.received();
    received.retain(|it| it.method == "POST");
    received
        .into_iter()
        .map(|it| it.body["model"].clone())
        .collect()
}

/// A scene whose model is the profile `home` at this server, and whose environment has keys of vendors.
fn at_home(home: &Server) -> Scene {
    let url = format!("{}/v1", home.url());
    Scene::with(
        json!({
            "model": "home",
            "providers": { "home": { "provider": "openai", "base_url": url, "model": "qwen3", "api_key_env": "HOME_KEY" } },
        }),
        &[
            ("HOME_KEY", "x"),
            ("OPENAI_API_KEY", "y"),
            ("ANTHROPIC_API_KEY", "z"),
        ],
    )
}

#[test]
fn a_bare_name_is_one_of_the_provider_that_answers() {
    let home = serve();
    let scene = at_home(&home);
    for (turn, model) in ["claude-like", "gpt-oss:20b", "home/gpt-oss:20b", "home"]
        .iter()
        .enumerate()
    {
        scene.co(&format!("/model {model}"));
        let label = match *model {
            "home" => "home/qwen3".to_owned(),
            bare if !bare.contains('/') => format!("home/{bare}"),
            full => full.to_owned(),
        };
        scene.wait_text(&format!("{label} answers from now on"));
        scene.co("hello");
        scene.wait_turns(turn as u64 + 1);
    }
    assert_eq!(
        asked(&home),
        ["claude-like", "gpt-oss:20b", "gpt-oss:20b", "qwen3"]
    );
    assert!(scene.server.requests().is_empty());
}

#[test]
fn a_name_that_the_provider_does_not_list_asks_whom_it_means() {
    let home = serve();
    let scene = at_home(&home);
    scene.server.reply(Reply::text("Elsewhere."));
    scene.co("/model other");
    scene.wait_text("home does not list other. Ask");
    scene.wait_text("1: home/other");
    scene.wait_text("2: openai/other");
    assert!(asked(&home).is_empty() && scene.server.requests().is_empty());
    scene.press("2<CR>");
    scene.wait_text("openai/other answers from now on");
    scene.co("hello");
    scene.wait_chat("Elsewhere.");
    assert_eq!(scene.server.requests()[0].body["model"], "other");
    assert!(asked(&home).is_empty());
}

#[test]
fn the_list_names_the_provider() {
    let home = serve();
    let scene = at_home(&home);
    scene.co("/model");
    scene.wait_text("home/gpt-oss:20b");
    scene.press("1<CR>");
    scene.wait_text("home/gpt-oss:20b answers from now on");
    scene.co("hello");
    scene.wait_chat("At home.");
    assert_eq!(asked(&home), ["gpt-oss:20b"]);
}

#[test]
fn a_chat_records_the_provider_that_was_chosen_with_a_model() {
    let home = serve();
    let settings = |url: &str| json!({ "provider": null, "model": null, "base_url": url });
    let url = format!("{}/v1", home.url());
    let scene = Scene::with(settings(&url), &[("OPENAI_API_KEY", "y")]);
    scene.co("/model gpt-oss:20b");
    scene.wait_text("gpt-oss:20b answers from now on");
    scene.co("hello");
    scene.wait_turns(1);
    let chosen = scene
        .items()
        .into_iter()
        .find(|item| item["item"] == "model_chosen");
    let chosen = chosen.unwrap();
    assert_eq!(chosen["provider"], "openai", "{chosen}");
    assert_eq!(chosen["model"], "gpt-oss:20b", "{chosen}");
}

#[test]
fn a_model_and_an_effort_are_completed() {
    let home = serve();
    let scene = at_home(&home);
    scene.type_keys(":Co /model home/q<Tab>");
    scene.wait_text(":Co /model home/qwen3");
    scene.type_keys("<C-u>Co /model g<Tab>");
    scene.wait_text(":Co /model gpt-oss:20b");
    scene.type_keys("<C-u>Co /model ho<Tab>");
    scene.wait_text(":Co /model home/");
    scene.type_keys("<C-u>Co /effort h<Tab>");
    scene.wait_text(":Co /effort high");
    assert!(asked(&home).is_empty());
}
