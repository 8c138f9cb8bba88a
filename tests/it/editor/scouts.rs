//! Scouts: turns below a turn, which only look, ask nothing and report.

use serde_json::json;

use crate::support::http::Reply;
use crate::support::{DEADLINE, proc};

use super::plans::{commands, files, hostile_scene, hostile_step};
use super::scene::{Scene, below, wait_gone};

/// The calls of a step, and the steps of a scout.
const CALLS: usize = 16;
const STEPS: usize = 29;

fn sends(id: &str, task: &str) -> Reply {
    Reply::new().call(id, "explore", &json!({ "task": task }))
}

#[test]
fn a_thousand_commands_of_scouts_change_nothing_and_none_asks() {
    let settings = json!({ "context_window": 100_000_000, "auto_confirm": true });
    let scene = hostile_scene(settings);
    let before = files(scene.workspace.path());
    let commands = commands();
    let steps: Vec<_> = commands.chunks(CALLS).enumerate().collect();
    let mut refused = 0;
    for (number, scout) in steps.chunks(STEPS).enumerate() {
        scene.replies([sends(&format!("x{number}"), &format!("part {number}"))]);
        for (step, commands) in scout {
            scene.replies([hostile_step(*step, commands)]);
        }
        scene.replies([Reply::text("Nothing."), Reply::text("All through.")]);
        scene.co(&format!("look at part {number}"));
        scene.wait_turns(number as u64 + 1);
        let requests = scene.server.requests();
        let last = &requests[requests.len() - 2].body["messages"];
        let told = last.as_array().unwrap().iter();
        let told = told.filter_map(|message| message["content"].as_str());
        let is_refused = |text: &&str| {
            text.starts_with("Not run: ") || text.starts_with("Refused by a deny rule")
        };
        refused += told.filter(is_refused).count();
    }
    assert_eq!(scene.events("CoApprovalRequested"), 0);
    assert_eq!(files(scene.workspace.path()), before);
    // A few of them look in a workspace that has not what they are about.
    assert!(refused * 100 >= commands.len() * 97, "{refused} refused");
    let audit = std::fs::read_to_string(scene.home.path().join("state/co-nvim/audit.jsonl"));
    for line in audit.unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let decided = line["decided"].as_str().unwrap();
        assert!(["policy", "rule"].contains(&decided), "{line}");
        assert!(line["call"].as_str().unwrap().starts_with('x'), "{line}");
    }
}

#[test]
fn scouts_are_one_line_each_and_c_c_ends_all_their_processes() {
    let mut scene = Scene::scripted([
        sends("x1", "first").call("x2", "explore", &json!({ "task": "second" })),
        Reply::shell("c1", "sleep 777"),
        Reply::shell("c1", "sleep 777"),
    ]);
    scene.co("look");
    scene.wait_chat("explore first");
    scene.wait_chat("explore second");
    let sleeps = proc::wait_until(DEADLINE, "both commands", || {
        let found = below(scene.pid(), "sleep 777");
        (found.len() >= 2).then_some(found)
    });
    scene.interrupt();
    scene.wait_turns(1);
    wait_gone(&sleeps);
    scene.wait_chat("Cancelled: the scout was ended");
    scene.assert_outcomes(2);
    // The chat can be resumed.
    scene.restart();
    scene.co("");
    scene.wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
    scene.resume();
    scene.wait_chat("explore second");
}

#[test]
fn a_person_sends_a_scout_by_a_slash_command() {
    let scene = Scene::scripted([
        Reply::shell("c1", "grep -n text a.txt"),
        Reply::text("It is in `a.txt:1`."),
    ]);
    scene.workspace.write("a.txt", "text\n");
    scene.co("/explore");
    scene.wait_notice("/explore takes a task");
    scene.co("/explore where is the text?");
    scene.wait_turns(1);
    let chat = scene.wait_chat("It is in `a.txt:1`.");
    assert!(chat.contains("explore where is the text?"), "{chat}");
    assert!(chat.contains("$ grep -n text a.txt"), "{chat}");
}
