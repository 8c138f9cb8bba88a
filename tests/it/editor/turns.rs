//! Turns in a real Neovim, and the transcripts after a crash.

use std::io::Write;

use serde_json::json;

use crate::support::http::{Reply, Request};
use crate::support::proc;

use super::scene::{Scene, below, wait_gone};

fn tool(request: &Request) -> String {
    request.last("tool").unwrap()
}

#[test]
fn a_long_output_is_bounded_for_the_model_and_folded_on_the_screen() {
    let scene = Scene::scripted([
        Reply::shell("c1", "cat numbers | cat"),
        Reply::text("Many."),
    ]);
    let numbers: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
    scene.workspace.write("numbers", &numbers);
    scene.co("count");
    let text = scene.wait_chat("Many.");
    assert!(
        text.contains("\n    200000\n") && !text.contains("\n    100\n"),
        "{}",
        text.len()
    );
    assert!(text.contains("190000 earlier lines"));
    let told = tool(&scene.server.requests()[1]);
    assert!(told.len() < 100_000, "{}", told.len());
    assert!(told.contains("200000"));
    // The comment is right below what is folded to a line.
    scene.wait_screen(
        |lines| {
            lines.iter().any(|line| line.contains("Many."))
                && lines.iter().any(|line| line.contains("─ You ─"))
        },
        "the whole conversation on one screen",
    );
}

#[test]
fn a_prompt_that_is_no_text_is_sent_with_its_odd_bytes_escaped() {
    let scene = Scene::scripted([Reply::text("I see.")]);
    std::fs::write(scene.workspace.path().join("odd.txt"), b"r\xe9sum\xe9\n").unwrap();
    scene.lua(r"vim.cmd('Co d\233j\224 with @file:odd.txt')", json!([]));
    scene.wait_chat("I see.");
    scene.wait_turns(1);
    scene.wait_text("was not all UTF-8");
    let asked = scene.server.requests()[0].last("user").unwrap();
    assert!(asked.contains("d\u{fffd}E9j\u{fffd}E0 with"), "{asked}");
    assert!(asked.contains("sum"), "{asked}");
}

#[test]
fn a_crash_during_a_command_is_resumed_from() {
    let mut scene = Scene::scripted([
        Reply::text("I will wait.").and_shell("c1", "echo begun; exec sleep 107"),
        Reply::text("On we go."),
    ]);
    scene.co("wait for it");
    scene.approve();
    scene.wait_chat("\n    begun");
    let all = scene.descendants();
    assert!(!below(scene.pid(), "sleep 107").is_empty());
    proc::kill9(scene.backend());
    scene.kill9();
    wait_gone(&all);
    let kept = scene.items();
    let kinds: Vec<_> = kept
        .iter()
        .filter_map(|item| item["item"].as_str())
        .collect();
    assert_eq!(
        kinds[..5],
        ["user", "surroundings", "text", "call", "decision"]
    );
    scene.restart();
    scene.resume();
    let text = scene.wait_chat("> interrupted");
    for part in [
        "wait for it",
        "I will wait.",
        "  ✗ echo begun; exec sleep 107",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    scene.co("go on");
    scene.wait_chat("On we go.");
    scene.wait_turns(1);
    let last = scene.server.requests().pop().unwrap();
    assert!(tool(&last).starts_with("interrupted"), "{}", tool(&last));
    scene.assert_outcomes(1);
}

#[test]
fn a_torn_last_line_is_skipped_with_a_notice() {
    let mut scene = Scene::scripted([Reply::text("Aye."), Reply::text("Seven.")]);
    scene.co("remember seven");
    scene.wait_turns(1);
    let all = scene.descendants();
    scene.kill9();
    // Then the file is free.
    wait_gone(&all);
    let path = scene.chats()[0].clone();
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    file.write_all(b"{\"item\":\"text\",\"te").unwrap();
    drop(file);
    scene.restart();
    let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
    scene.co(&format!("/resume {id}"));
    scene.wait_chat("Aye.");
    scene.wait_text("Not readable, skipped, and kept in the file");
    scene.co("which?");
    scene.wait_chat("Seven.");
    scene.wait_turns(1);
    let text = std::fs::read_to_string(&path).unwrap();
    let broken = |line: &&str| serde_json::from_str::<serde_json::Value>(line).is_err();
    assert_eq!(text.lines().filter(broken).count(), 1, "{text}");
}

#[test]
fn a_neovim_that_is_killed_leaves_each_call_its_outcome() {
    let mut scene = Scene::scripted([Reply::shell("c1", "echo begun; exec sleep 109")]);
    scene.co("wait for it");
    scene.approve();
    scene.wait_chat("\n    begun");
    let all = scene.descendants();
    scene.kill9();
    wait_gone(&all);
    scene.assert_outcomes(1);
    assert_eq!(scene.items().last().unwrap()["reason"], "interrupted");
}
