//! Turns of an agent in a real Neovim: what runs unasked, and what becomes of it where that fails.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::DEADLINE;
use crate::support::http::Reply;
use crate::support::proc::wait_until;
use crate::support::scene::Scene;
use crate::support::workspace::Workspace;

/// Returns the decisions in their order.
fn decisions(items: &[Value]) -> Vec<&Value> {
    let decided = of(items, "decision").into_iter();
    decided.map(|it| &it["decision"]["decision"]).collect()
}

/// The items of one kind.
fn of<'a>(items: &'a [Value], kind: &str) -> Vec<&'a Value> {
    items.iter().filter(|item| item["item"] == kind).collect()
}

#[test]
fn what_fails_in_the_sandbox_is_offered_again_outside_of_it() {
    if !rustix::process::geteuid().is_root() {
        eprintln!(
            "only root reads what the sandbox, which has no capabilities, does not let a command read"
        );
        return;
    }
    let workspace = Workspace::new();
    let file = workspace.write("a.txt", "of another user\n");
    std::os::unix::fs::chown(&file, Some(54_321), Some(54_321)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let command = "cat a.txt";
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.replies([
        Reply::shell("c1", command),
        Reply::shell("c2", command),
        Reply::text("There it is."),
    ]);
    scene.co("what happened?");
    let screen = scene.answer_text("read-only sandbox;", "y").join("\n");
    assert!(screen.contains(command), "{screen}");
    scene.wait_turns(1);
    let items = scene.items();
    assert_eq!(decisions(&items), ["unasked", "approved"]);
    let outcomes = of(&items, "outcome");
    let first = outcomes[0]["text"].as_str().unwrap();
    assert!(
        first.contains("Permission denied") && first.contains("without write access"),
        "{first}"
    );
    assert_eq!(outcomes[0]["ok"], false);
    let second = outcomes[1]["text"].as_str().unwrap();
    assert!(second.contains("of another user"), "{second}");
    // What it printed the first time stays on the screen.
    let text = scene.buffer_text("co://chat/1").unwrap();
    assert!(
        text.contains("Permission denied") && text.contains("of another user"),
        "{text}"
    );
}

#[test]
fn a_command_that_fails_for_its_own_reason_runs_again_without_a_question() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    workspace.write("b.txt", "two\n");
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    let commands = ["test -e a.txt && diff a.txt b.txt", "cat missing"];
    for (index, command) in commands.iter().flat_map(|it| [it, it]).enumerate() {
        scene
            .server
            .reply(Reply::shell(&format!("c{index}"), command));
    }
    scene.server.reply(Reply::text("They differ."));
    scene.co("compare them");
    scene.wait_turns(1);
    let items = scene.items();
    assert_eq!(decisions(&items), ["unasked"; 4]);
    for outcome in of(&items, "outcome") {
        let told = outcome["text"].as_str().unwrap();
        assert!(!told.contains("without write access"), "{told}");
    }
}

#[test]
fn a_question_marks_what_its_reason_speaks_of() {
    let scene = Scene::in_workspace(Workspace::new(), json!({}), &[]);
    scene.replies([
        Reply::shell("c1", "ls && find . -delete"),
        Reply::text("Then not."),
    ]);
    scene.co("clean up");
    scene.wait_text("deletes the files it finds");
    let marks = "local found = {}
        for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
            local space = vim.api.nvim_get_namespaces()['co.approval']
            for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, space, 0, -1, { details = true })) do
                if mark[4].hl_group == 'CoApprovalSpan' then
                    local to = { mark[4].end_row or mark[2], mark[4].end_col }
                    vim.list_extend(found, vim.api.nvim_buf_get_text(buffer, mark[2], mark[3], to[1], to[2], {}))
                end
            end
        end
        return found";
    assert_eq!(scene.lua(marks, json!([])), json!(["find . -delete"]));
    scene.answer_text("co 1/1", "n");
    scene.wait_turns(1);
}

#[test]
fn a_job_that_fails_in_the_sandbox_between_two_requests_is_offered_again_too() {
    let workspace = Workspace::new();
    workspace.write(".env", "KEY=x\n");
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    let arguments = json!({ "cmd": "cat - $(ls -A)", "background": true });
    let job = |id: &str| Reply::new().call(id, "run_shell_command", &arguments);
    scene.replies([
        job("c1"),
        Reply::shell("c2", "mkdir out"),
        job("c3"),
        Reply::text("Then not."),
    ]);
    scene.co("follow it");
    scene.wait_text("co 1/1");
    let close = "local run = require('co.run').all()[1]
        require('co.backend').send_if_running({ type = 'run_input', run = run.id, close = true })";
    scene.lua(close, json!([]));
    wait_until(DEADLINE, "the job ends", || {
        (scene.events("CoJobDone") == 1).then_some(())
    });
    scene.approve();
    scene.answer_text("read-only sandbox;", "n");
    scene.wait_turns(1);
    let items = scene.items();
    assert_eq!(decisions(&items), ["unasked", "approved", "denied"]);
}

#[test]
fn a_command_that_runs_unasked_has_a_time_of_its_own() {
    let endless = "awk 'BEGIN { while (1) ; }'";
    let scene = Scene::in_workspace(Workspace::new(), json!({ "unasked_timeout": 1 }), &[]);
    scene.replies([
        Reply::shell("c1", endless),
        Reply::shell("c2", endless),
        Reply::text("Then not."),
    ]);
    scene.co("loop");
    scene.answer_text("read-only sandbox;", "n");
    scene.wait_turns(1);
    let items = scene.items();
    let told = of(&items, "outcome")[0]["text"].as_str().unwrap();
    assert!(
        told.contains("timed out after 1.") && told.contains("after 1 s, the limit"),
        "{told}"
    );
    let text = scene.buffer_text("co://chat/1").unwrap();
    assert!(text.contains(": unasked_timeout\n"), "{text}");
}
