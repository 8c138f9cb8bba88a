//! The limits of an agent: its permissions as questions with a review, the person's rules, and the network.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::agents::{message, scene, scene_in, scene_with, settings};
use super::backend::stand_in;
use super::scene::Scene;
use crate::cli::state::may_mount;
use crate::support::BACKEND;
use crate::support::workspace::Workspace;

/// Returns a step that asks for permission for a call.
fn ask(call: &Value) -> Value {
    let option = |id: &str, kind: &str| json!({ "optionId": id, "name": format!("Option {id}"), "kind": kind });
    json!({ "ask": {
        "toolCall": call,
        "options": [option("once", "allow_once"), option("always", "allow_always"), option("no", "reject_once")],
    } })
}

/// Returns a step that asks for permission to run a command.
fn ask_to_run(command: &str) -> Value {
    ask(
        &json!({ "toolCallId": command, "title": "Run it", "kind": "execute", "status": "in_progress", "rawInput": { "command": command } }),
    )
}

/// Returns a step that asks for permission to change a file of the workspace.
fn ask_to_change(path: &str, before: Option<&str>, after: &str) -> Value {
    ask(&json!({
        "toolCallId": format!("{path} {after}"), "title": format!("Edit {path}"), "kind": "edit", "status": "in_progress",
        "rawInput": { "file_path": format!("PLACE/{path}"), "old_string": before, "new_string": after },
        "content": [{ "type": "diff", "path": format!("PLACE/{path}"), "oldText": before, "newText": after }],
    }))
}

/// Returns a scene whose script names files of the workspace as `PLACE/file`.
fn scene_at(script: &Value) -> Scene {
    let workspace = Workspace::new();
    let place = workspace.path().display().to_string();
    scene_in(
        workspace,
        &script.to_string().replace("PLACE", &place),
        json!({}),
    )
}

#[test]
fn a_permission_for_a_change_opens_its_review() {
    let script = json!({
        // A part of the file.
        "part": [ask_to_change("a.txt", Some("two"), "2"), message("Part.")],
        // Agents tell no old text of a file that they write as a whole.
        "whole": [ask_to_change("a.txt", None, "all new\n"), message("Whole.")],
        "other": [ask_to_change("a.txt", Some("never there\n"), "new\n"), message("Other.")],
    });
    let scene = scene_at(&script);
    let lines = || {
        let lines = scene.nvim.lua(
            "return vim.api.nvim_buf_get_lines(0, 0, -1, false)",
            json!([]),
        );
        serde_json::from_value::<Vec<String>>(lines).unwrap()
    };
    let review = || {
        scene.answer("d");
        let is_open = "vim.api.nvim_buf_get_name(0):match('review: a.txt') ~= nil";
        scene.wait_for(is_open, "the review");
    };
    scene.co("part");
    let screen = scene.nvim.wait_text("a.txt  +1 -1").join("\n");
    assert!(screen.contains("1  Option once"), "{screen}");
    // The chat tells the input, and the difference in the question tells it too.
    assert_eq!(screen.matches("old_string").count(), 1, "{screen}");
    review();
    assert_eq!(lines(), ["one", "── change 1 of 1", "two", "2"]);
    // An agent takes one answer for all of it.
    scene.press("y");
    scene.wait_notice("these changes are answered as a whole: q goes back to the question");
    scene.press("q");
    scene.nvim.wait_text("2  Option always");
    scene.answer("1");
    scene.wait_chat("answered: once");
    scene.wait_turns(1);
    // The buffer has text that the agent does not see.
    scene.command("wincmd t | edit a.txt | call setline(1, 'mine')");
    scene.co("whole");
    scene.nvim.wait_text("a.txt  +1 -2");
    scene
        .nvim
        .wait_text("note its buffer has unsaved changes: the agent does not see them");
    scene.answer("n");
    scene.wait_chat("answered: no");
    scene.wait_turns(2);
    scene.command("wincmd t | edit!");
    scene.co("other");
    scene
        .nvim
        .wait_text("co cannot compare a.txt with the file, so it shows what the agent tells");
    review();
    assert_eq!(lines(), ["── change 1 of 1", "never there", "new"]);
    // The review goes with its question.
    scene.interrupt();
    scene.wait_turns(3);
    scene.wait_for(
        "vim.fn.bufnr('review: a.txt') == -1",
        "the end of the review",
    );
}

#[test]
fn the_persons_rules_hold_on_commands_in_requests() {
    let script = json!({
        "deny": [ask_to_run("ls && git push origin"), message("Denied.")],
        "ask": [ask_to_run("ls"), message("Asked.")],
        "allow": [ask_to_run("touch made"), message("Allowed.")],
    });
    let rules = |workspace: &Workspace, confinement: &str| {
        let mut all = settings(workspace, json!({ "confinement": confinement }));
        all["deny"] = json!(["git push"]);
        all["ask"] = json!(["ls"]);
        all["allow"] = json!(["touch"]);
        all
    };
    for confinement in ["workspace", "none"] {
        let workspace = Workspace::new();
        workspace.write("script.json", &script.to_string());
        let all = rules(&workspace, confinement);
        let scene = Scene::in_workspace(workspace, all, &[]);
        scene.co("/agent scripted");
        scene.wait_notice("scripted works in this chat");
        // Nobody is asked.
        scene.co("deny");
        let chat = scene.wait_chat("Denied.");
        scene.wait_turns(1);
        assert!(chat.contains("answered: no"), "{chat}");
        assert!(chat.contains("a deny rule refuses it"), "{chat}");
        // It only looks.
        scene.co("ask");
        scene.nvim.wait_text("asks to run this command: ls");
        scene.answer("1");
        scene.wait_chat("Asked.");
        scene.wait_turns(2);
        // The kernel does not hold an agent that is not confined, so its yes is the person's.
        scene.co("allow");
        if confinement == "none" {
            scene.nvim.wait_text("asks to run this command: touch made");
            scene.answer("1");
        }
        let chat = scene.wait_chat("Allowed.");
        scene.wait_turns(3);
        let by_rule = chat.contains("your rule touch allows it");
        assert_eq!(by_rule, confinement == "workspace", "{chat}");
        let audit = scene.home.path().join("state/co-nvim/audit.jsonl");
        let audit = std::fs::read_to_string(audit).unwrap_or_default();
        assert!(audit.contains("git push") || audit.is_empty(), "{audit}");
    }
}

#[test]
fn without_a_network_of_its_own_the_person_decides() {
    if !may_mount() {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let reach = format!(
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port})); print('reached')\""
    );
    let script = json!({
        "hi": [{ "sh": reach }, message("Hello.")],
        "more": [message("More.")],
    });
    let workspace = Workspace::new();
    workspace.write("script.json", &script.to_string());
    let directory = tempfile::tempdir().unwrap();
    let none = "echo 0 > /proc/sys/user/max_net_namespaces";
    let bin = stand_in(
        directory.path(),
        &format!(
            "exec unshare --map-root-user sh -c '{none} && exec \"$0\" \"$@\"' '{BACKEND}' \"$@\""
        ),
    );
    let mut all = settings(&workspace, json!({}));
    all["bin"] = json!(bin);
    let scene = Scene::in_workspace(workspace, all, &[]);
    scene.co("/agent scripted");
    scene.wait_notice("scripted works in this chat");
    let asks = "scripted cannot have a network of its own";
    scene.co("hi");
    let screen = scene.nvim.wait_text(asks).join("\n");
    assert!(screen.contains("A yes gives it every host"), "{screen}");
    scene.answer("n");
    scene.wait_chat("scripted was not started");
    scene.wait_turns(1);
    scene.co("hi");
    scene.nvim.wait_text("#2");
    // No answer holds for a later start.
    scene.answer("a");
    scene.wait_notice("no answer holds for later calls here");
    scene.press("y");
    let chat = scene.wait_chat("Hello.");
    scene.wait_turns(2);
    assert!(chat.contains("reached"), "{chat}");
    // The same process is not asked about again.
    scene.co("more");
    scene.wait_chat("More.");
    scene.wait_turns(3);
}

#[test]
fn the_winbar_tells_that_an_agent_is_not_confined() {
    let script = json!({ "hi": [message("Hello.")] });
    for (more, tells) in [(json!({ "confinement": "none" }), true), (json!({}), false)] {
        let scene = scene_with(&script, more);
        scene.co("hi");
        scene.wait_chat("Hello.");
        scene.wait_turns(1);
        let winbar = "AGENT NOT CONFINED";
        match tells {
            true => drop(scene.nvim.wait_text(winbar)),
            false => scene.nvim.wait_no_text(winbar),
        }
    }
}

#[test]
fn only_what_is_shown_is_offered() {
    let script = json!({
        "log": "requests",
        "hi": [
            { "request": "fs/read_text_file", "id": "read", "params": { "sessionId": "s1", "path": "/etc/passwd" } },
            { "request": "fs/write_text_file", "id": "write", "params": { "sessionId": "s1", "path": "/tmp/x", "content": "x" } },
            { "request": "terminal/create", "id": "run", "params": { "sessionId": "s1", "command": "true" } },
            message("Hello."),
        ],
        "more": [message("More.")],
    });
    let scene = scene(&script);
    scene.co("hi");
    scene.wait_chat("Hello.");
    scene.wait_turns(1);
    scene.co("more");
    scene.wait_turns(2);
    let log = scene.workspace.read("requests").unwrap();
    let all: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(all[0]["method"], "initialize");
    assert_eq!(all[0]["params"]["protocolVersion"], 1);
    let offered = json!({
        "fs": { "readTextFile": false, "writeTextFile": false },
        "terminal": false,
        "auth": { "terminal": true },
        "session": { "configOptions": { "boolean": {} }, "notices": {}, "compaction": {} },
        "subagents": {},
        "plan": {},
        "elicitation": { "form": {}, "url": {} },
    });
    assert_eq!(all[0]["params"]["clientCapabilities"], offered);
    for id in ["read", "write", "run"] {
        let answer = all.iter().find(|it| it["id"] == id);
        let code = answer.map(|it| it["error"]["code"].clone());
        assert_eq!(code, Some(json!(-32601)), "{id}: {log}");
    }
}
