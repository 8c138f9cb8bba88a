//! The whole way with a real model.

use std::time::Duration;

use serde_json::json;

use crate::support::{model, proc};

use super::scene::Scene;

/// The model reads a thousand words before it answers, on a machine that is busy with other tests.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(240);

const MAKE: &str = "create the file notes.txt with touch notes.txt";

/// A scene with the real model behind a provider's wire format.
fn scene(provider: &str) -> Scene {
    let base = model::shared().trim_end_matches('/');
    Scene::with(
        json!({
            "provider": provider,
            "model": "smollm2",
            "base_url": base,
            "extra_body": { "temperature": 0 },
            "max_output_tokens": 64,
        }),
        &[],
    )
}

/// Waits until the model asks for its command, and checks that nothing has been done yet.
fn wait_ask(scene: &Scene) {
    proc::wait_until(ANSWER_TIMEOUT, "the model's question", || {
        (scene.events("CoApprovalRequested") == 1).then_some(())
    });
    let screen = scene.wait_ask("1/1").join("\n");
    assert!(screen.contains("touch notes.txt"), "{screen}");
    assert!(!scene.workspace.exists("notes.txt"));
}

fn wait_turns(scene: &Scene, count: u64) {
    proc::wait_until(ANSWER_TIMEOUT, "the model to end", || {
        (scene.events("CoTurnDone") >= count).then_some(())
    });
}

/// Returns the model's text after the command.
fn closing(scene: &Scene) -> String {
    let items = scene.items();
    let outcome = items.iter().rposition(|item| item["item"] == "outcome");
    let texts = items[outcome.unwrap()..]
        .iter()
        .filter(|item| item["item"] == "text");
    texts.filter_map(|item| item["text"].as_str()).collect()
}

/// One test, because two at once would take each other's time.
#[test]
fn it_makes_a_file_after_yes_over_both_wire_formats_and_remembers() {
    drop(check_file("anthropic"));
    let scene = check_file("openai");
    scene.co("list the files in this folder with ls -la");
    wait_turns(&scene, 2);
    let text = scene.wait_chat("· ls -la");
    assert!(text.contains(" notes.txt\n"), "{text}");
    assert_eq!(scene.events("CoApprovalRequested"), 1);
    assert_eq!(text.matches("## You").count(), 2, "{text}");
    let users = scene
        .items()
        .iter()
        .filter(|item| item["item"] == "user")
        .count();
    assert_eq!(users, 2);
}

/// Lets the model make a file after a yes.
fn check_file(provider: &str) -> Scene {
    let scene = scene(provider);
    scene.co(MAKE);
    wait_ask(&scene);
    scene.answer("y");
    wait_turns(&scene, 1);
    assert!(scene.workspace.exists("notes.txt"));
    let closing = closing(&scene);
    assert!(!closing.trim().is_empty());
    assert!(scene.chat().contains(closing.trim()), "{}", scene.chat());
    scene
}
