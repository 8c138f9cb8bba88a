//! A plugin that uses co's functions for other plugins.

use serde_json::json;

use crate::support::http::{Gate, Reply};

use super::scene::Scene;

/// Loads the plugin as `plugin`.
fn load(scene: &Scene) {
    let text = include_str!("plugin.lua");
    scene.lua("_G.plugin = loadstring(...)()", json!([text]));
}

#[test]
fn a_plugin_asks_answers_and_lists() {
    let held = Gate::default();
    let scene = Scene::scripted([
        Reply::shell("c1", "touch out"),
        Reply::text("It counts").hold(&held).say(" coins."),
        Reply::text("In **cents**."),
    ]);
    load(&scene);
    let ask = |text: &str| scene.lua("return plugin.explain(...)", json!([text]));
    assert_eq!(ask("explain it"), true);
    scene.server.wait_requests(2);
    // This one waits until the first turn has ended.
    assert_eq!(ask("in what?"), true);
    held.open();
    scene.wait_for("#plugin.answers == 2", "two answers");
    let answers = scene.eval("plugin.answers");
    assert_eq!(answers[0]["reason"], "done");
    let first = answers[0]["text"].as_str().unwrap();
    assert!(first.ends_with("It counts coins."), "{first}");
    assert_eq!(
        answers[1],
        json!({ "chat": 1, "reason": "done", "text": "In **cents**." })
    );
    let asked = scene.eval("plugin.asked");
    assert_eq!(asked[0]["command"], "touch out");
    assert_eq!(asked[0]["chat"], 1);
    assert!(!scene.workspace.exists("out"));
    let told = scene.told(1);
    assert!(told.contains("only explain"), "{told}");
    scene.run("echo hi");
    scene.wait_shell("exit 0");
    let lists = scene.eval("plugin.lists()");
    assert_eq!(lists["chats"][0]["state"], "idle");
    assert_eq!(lists["runs"][0]["command"], "echo hi");
    assert_eq!(lists["runs"][0]["running"], false);
    assert_eq!(lists["questions"], json!([]));
}

#[test]
fn two_plugins_that_ask_the_same_get_an_answer_each() {
    let held = Gate::default();
    let scene = Scene::scripted([Reply::text("One.").hold(&held), Reply::text("Two.")]);
    load(&scene);
    scene.lua("plugin.explain('explain it')", json!([]));
    scene.server.wait_requests(1);
    scene.lua("plugin.explain('explain it')", json!([]));
    held.open();
    scene.wait_for("#plugin.answers == 2", "two answers");
    let answers = scene.eval("plugin.answers");
    assert_eq!(answers[0]["text"], "One.");
    assert_eq!(answers[1]["text"], "Two.");
}

#[test]
fn hooks_refuse_commands_and_see_edits() {
    let file = json!({ "path": "notes.txt", "text": "new\n" });
    let scene = Scene::scripted([
        Reply::shell("c1", "touch private"),
        Reply::new().call("c2", "write_file", &file),
        Reply::text("Done."),
        Reply::shell("c3", "touch private"),
        Reply::text("Done again."),
    ]);
    load(&scene);
    scene.lua("plugin.hook()", json!([]));
    scene.co("go");
    scene.wait_chat("not run: a plugin refuses it: not that one");
    scene.wait_chat("Done.");
    assert!(!scene.workspace.exists("private"));
    let told = scene.told(1);
    assert_eq!(told, "a plugin refuses it: not that one");
    let seen = scene.eval("{ plugin.planned, plugin.edited }");
    assert_eq!(seen[0][0]["command"], "touch private");
    assert_eq!(seen[0][0]["unasked"], false);
    assert_eq!(seen[1], json!(["notes.txt"]));
    scene.lua("plugin.unhook()", json!([]));
    scene.co("again");
    scene.wait_chat("Done again.");
    assert!(scene.workspace.exists("private"));
}

#[test]
fn the_person_sees_what_a_plugin_does() {
    let file = json!({ "path": "notes.txt", "text": "new\n" });
    let scene = Scene::scripted([
        Reply::shell("c1", "touch out"),
        Reply::text("It counts **coins**."),
        Reply::shell("c2", "touch private"),
        Reply::new().call("c3", "write_file", &file),
        Reply::text("Done."),
    ]);
    load(&scene);
    scene.type_keys(":lua plugin.explain('explain it')<CR>");
    for text in ["explain it", "only explain", "It counts **coins**. (done)"] {
        scene.wait_text(text);
    }
    scene.wait_no_text("co 1/1");
    scene.run("echo hi");
    scene.wait_text("exit 0");
    scene
        .type_keys(":lua print(plugin.lists().chats[1].state, plugin.lists().runs[1].command)<CR>");
    scene.wait_text("idle echo hi");
    scene.type_keys(":lua plugin.hook()<CR>");
    scene.co("go on");
    scene.wait_text("not run: a plugin refuses it: not that one");
    scene.wait_text("my hook: notes.txt");
    scene.wait_text("Done.");
}
