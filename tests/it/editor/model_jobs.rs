//! Jobs that a model started: in the list of jobs, by keys, and gone with what they belong to.

use serde_json::json;

use crate::support::http::Reply;
use crate::support::{DEADLINE, proc};

use super::scene::{Scene, below, wait_gone};

/// The model starts a job, which the person allows, and says so.
fn serving(command: &str) -> Scene {
    let arguments = json!({ "cmd": command, "background": true });
    let scene = Scene::scripted([
        Reply::new().call("c1", "run_shell_command", &arguments),
        Reply::text("It serves."),
    ]);
    scene.co("serve");
    scene.wait_ask("1/1");
    scene.wait_text("how  in the background");
    scene.answer("y");
    scene.wait_chat("It serves.");
    scene.wait_turns(1);
    scene
}

/// Waits for `count` processes with that command line.
fn running(scene: &Scene, command: &str, count: usize) -> Vec<i32> {
    proc::wait_until(DEADLINE, command, || {
        let pids = below(scene.pid(), command);
        (pids.len() >= count).then_some(pids)
    })
}

/// Opens the list and puts the cursor on its first line.
fn list(scene: &Scene) {
    scene.type_keys(":Co /jobs<CR>");
    scene.wait_for("vim.bo.filetype == 'co-jobs'", "the list");
}

#[test]
fn a_models_job_is_gone_to_written_to_and_ended_from_the_list() {
    let scene = serving("echo ready; read -r a; echo \"got $a\"; exec sleep 3603");
    let text = scene.chat();
    assert!(text.contains("  in the background"), "{text}");
    scene.wait_shell("\nready\n");
    list(&scene);
    scene.wait_text("  j1  running");
    scene.wait_text("chat 1   echo ready");
    scene.type_keys("i");
    scene.wait_text("stdin of job 1 of chat 1:");
    scene.type_keys("by hand<CR>");
    scene.wait_shell("\ngot by hand\n");
    scene.type_keys("<CR>");
    scene.wait_for("vim.bo.filetype == 'co-shell'", "its output");
    let line = scene.eval("vim.api.nvim_get_current_line()");
    assert!(line.as_str().unwrap().starts_with("$ echo ready"), "{line}");
    list(&scene);
    let pids = running(&scene, "sleep 3603", 1);
    scene.type_keys("x");
    wait_gone(&pids);
    scene.wait_text("co: job 1 of chat 1: cancelled");
    scene.wait_chat("ended: cancelled");
    scene.wait_text("  j1  cancelled");
    assert_eq!(scene.events("CoJobDone"), 1);
    // The message needed no key: this one is taken at once.
    scene.type_keys("d");
    scene.wait_text("nothing has been run yet");

    scene.server.reply(Reply::text("I see."));
    scene.co("well?");
    scene.wait_chat("I see.");
    let asked = scene.server.requests().pop().unwrap().last("user").unwrap();
    assert!(
        asked.starts_with("[job 1 (") && asked.contains("cancelled"),
        "{asked}"
    );
    assert!(asked.ends_with("well?"), "{asked}");
}

#[test]
fn a_killed_backend_leaves_no_job_and_the_model_is_told() {
    let mut scene = serving("setsid sleep 3606 & exec sleep 3606");
    running(&scene, "sleep 3606", 2);
    let all = scene.descendants();
    proc::kill9(scene.backend());
    scene.kill9();
    wait_gone(&all);
    scene.restart();
    scene.resume();
    scene.wait_chat("ended: interrupted");
    scene.replies([
        Reply::new().call("c2", "job_output", &json!({ "job": 1 })),
        Reply::text("It is gone."),
    ]);
    scene.co("does it run?");
    scene.wait_chat("It is gone.");
    let requests = scene.server.requests();
    let asked = requests[requests.len() - 2].last("user").unwrap();
    assert!(asked.contains("ended: interrupted"), "{asked}");
    let told = requests.last().unwrap().last("tool").unwrap();
    assert!(told.contains("There is no job 1"), "{told}");
}

#[test]
fn what_is_proved_is_held_in_the_background_and_in_a_terminal_too() {
    let run = |id: &str, more: serde_json::Value| {
        let mut arguments = json!({ "cmd": "cat note.txt" });
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        Reply::new().call(id, "run_shell_command", &arguments)
    };
    let scene = Scene::scripted([
        run("c1", json!({})),
        run("c2", json!({ "background": true })),
        run("c3", json!({ "pty": true })),
        run("c4", json!({ "background": true, "pty": true })),
        Reply::text("Read."),
    ]);
    scene.workspace.write("note.txt", "a note\n");
    scene.co("read");
    let text = scene.wait_chat("Read.");
    scene.wait_turns(1);
    assert_eq!(scene.events("CoApprovalRequested"), 0, "{text}");
    let requests = scene.server.requests();
    for request in &requests[1..] {
        let told = request.last("tool").unwrap();
        assert!(told.contains("a note\n"), "{told}");
    }
    let audit = scene.home.path().join("state/co-nvim/audit.jsonl");
    let levels = || -> Vec<String> {
        let text = std::fs::read_to_string(&audit).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let ends = lines.filter(|line: &serde_json::Value| line["outcome"].is_string());
        ends.map(|line| line["confinement"].as_str().unwrap().to_owned())
            .collect()
    };
    proc::wait_until(DEADLINE, "all ends to be audited", || {
        (levels().len() == 4).then_some(())
    });
    let first = levels().remove(0);
    assert_eq!(levels(), vec![first; 4]);
    scene.assert_outcomes(4);
}
