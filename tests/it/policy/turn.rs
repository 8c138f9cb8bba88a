//! Turns of an agent in a real Neovim: what runs unasked, and what becomes of it where that fails.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::chat::Chat;
use crate::support::http::Reply;
use crate::support::proc::wait_until;
use crate::support::workspace::Workspace;
use crate::support::{DEADLINE, ROOT};

/// What an agent does all day, in this project's own files.
const EVERYDAY: [&str; 50] = [
    "ls",
    "ls -la src && cat Cargo.toml",
    "ls -R lua | head -20",
    "pwd",
    "git status",
    "git status --short",
    "git diff --stat && git status -sb",
    "git diff",
    "git diff HEAD~1 -- src/main.rs",
    "git diff --cached --name-only",
    "git log --oneline -20",
    "git log -p -1 -- README.md",
    "git log --since='2 weeks ago' --format='%h %an %s'",
    "git show --stat HEAD",
    "git show HEAD:src/main.rs | head -20",
    "git branch -a",
    "git rev-parse --abbrev-ref HEAD",
    "git ls-files '*.rs' | wc -l",
    "git blame -L 1,5 src/main.rs",
    "git grep -n 'fn main' -- src",
    "grep -rn 'pub fn' src/policy | head -40",
    "grep -rln --include='*.rs' Confinement src",
    "grep -c use src/main.rs",
    "grep -A3 -B3 'fn main' src/main.rs",
    "sed -n '1,120p' src/main.rs",
    "sed -n '/fn main/,/^}/p' src/main.rs",
    "head -50 README.md",
    "tail -n 20 src/lib.rs",
    "head -n 5 src/main.rs src/lib.rs",
    "wc -l src/*.rs",
    "cat src/lib.rs | head -50",
    "cat -n src/main.rs",
    "find . -name '*.rs' | xargs wc -l | tail -1",
    "find . -name '*.lua' -type f | sort | head -5",
    "find src -maxdepth 1 -type d",
    "find . -name '*.rs' -print0 | xargs -0 grep -l 'mod tests' | sort",
    "find . -name '*.rs' -not -path './target/*' -newer Cargo.toml | wc -l",
    "awk '{ print $1 }' Cargo.toml | sort | uniq -c | sort -rn | head -3",
    "awk 'NR>=2 && NR<=4' README.md",
    "cut -d= -f1 Cargo.toml | sort -u",
    "sort src/lib.rs | uniq | wc -l",
    "diff src/main.rs src/lib.rs | head -20",
    "du -sh src && df -h .",
    "stat -c '%s %n' src/main.rs",
    "file README.md",
    "test -f Cargo.toml && echo yes",
    "which git bash",
    "cd src && ls && cat ../README.md | head -3",
    "basename src/main.rs .rs; dirname src/main.rs; date +%F; uname -a",
    "sha256sum Cargo.toml | cut -c1-12; echo \"exit: $?\"",
];

/// At most so many calls are carried out in a step.
const STEP: usize = 8;

/// This project's own files, with a history and something changed.
fn project() -> Workspace {
    let workspace = Workspace::new();
    let parts = ["src", "lua", "docs", "Cargo.toml", "README.md"];
    let mut cp = Command::new("cp");
    cp.arg("-R")
        .args(parts)
        .arg(workspace.path())
        .current_dir(ROOT);
    assert!(cp.status().unwrap().success());
    workspace.commit("first");
    workspace.write("README.md", "# co\n\nAn agent and a shell.\nFor Neovim.\n");
    workspace.commit("a shorter word");
    let main = workspace.read("src/main.rs").unwrap();
    workspace.write("src/main.rs", &format!("{main}\n// the end\n"));
    workspace
}

/// What was decided, in order.
fn decisions(items: &[Value]) -> Vec<&Value> {
    let decided = of(items, "decision").into_iter();
    decided.map(|it| &it["decision"]["decision"]).collect()
}

/// The items of one kind.
fn of<'a>(items: &'a [Value], kind: &str) -> Vec<&'a Value> {
    items.iter().filter(|item| item["item"] == kind).collect()
}

#[test]
fn a_turn_of_everyday_commands_asks_nothing() {
    let chat = Chat::start(project(), &json!({}));
    for (step, commands) in EVERYDAY.chunks(STEP).enumerate() {
        let calls = commands.iter().enumerate();
        chat.server
            .reply(calls.fold(Reply::new(), |reply, (index, cmd)| {
                let id = format!("c{step}-{index}");
                reply.call(&id, "run_shell_command", &json!({ "cmd": cmd }))
            }));
    }
    chat.server.reply(Reply::text("That is all there is."));
    chat.co(" look around");
    chat.wait_turns(1);
    assert_eq!(chat.events("CoApprovalRequested"), 0);
    let items = chat.items();
    let decisions = of(&items, "decision");
    assert_eq!(decisions.len(), EVERYDAY.len(), "{decisions:#?}");
    for decision in decisions {
        assert_eq!(decision["decision"]["decision"], "unasked", "{decision:#?}");
    }
    let outcomes = of(&items, "outcome");
    assert_eq!(outcomes.len(), EVERYDAY.len());
    for outcome in outcomes {
        assert_eq!(outcome["ok"], true, "{outcome:#?}");
    }
    assert_eq!(chat.server.left(), 0);
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
    let chat = Chat::start(workspace, &json!({}));
    chat.server.reply(Reply::shell("c1", command));
    chat.server.reply(Reply::shell("c2", command));
    chat.server.reply(Reply::text("There it is."));
    chat.co(" what happened?");
    let screen = chat.answer("read-only sandbox;", "y").join("\n");
    assert!(screen.contains(command), "{screen}");
    chat.wait_turns(1);
    let items = chat.items();
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
    let text = chat.nvim.buffer_text("co://chat/1").unwrap();
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
    let chat = Chat::start(workspace, &json!({}));
    let commands = ["test -e a.txt && diff a.txt b.txt", "cat missing"];
    for (index, command) in commands.iter().flat_map(|it| [it, it]).enumerate() {
        chat.server
            .reply(Reply::shell(&format!("c{index}"), command));
    }
    chat.server.reply(Reply::text("They differ."));
    chat.co(" compare them");
    chat.wait_turns(1);
    let items = chat.items();
    assert_eq!(decisions(&items), ["unasked"; 4]);
    for outcome in of(&items, "outcome") {
        let told = outcome["text"].as_str().unwrap();
        assert!(!told.contains("without write access"), "{told}");
    }
}

#[test]
fn a_question_marks_what_its_reason_speaks_of() {
    let chat = Chat::start(Workspace::new(), &json!({}));
    chat.server
        .reply(Reply::shell("c1", "ls && find . -delete"));
    chat.server.reply(Reply::text("Then not."));
    chat.co(" clean up");
    chat.nvim.wait_text("deletes the files it finds");
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
    assert_eq!(chat.nvim.lua(marks, json!([])), json!(["find . -delete"]));
    chat.answer("co 1/1", "n");
    chat.wait_turns(1);
}

#[test]
fn a_job_that_fails_in_the_sandbox_between_two_requests_is_offered_again_too() {
    let workspace = Workspace::new();
    workspace.write(".env", "KEY=x\n");
    let chat = Chat::start(workspace, &json!({}));
    let arguments = json!({ "cmd": "cat - $(ls -A)", "background": true });
    let job = |id: &str| Reply::new().call(id, "run_shell_command", &arguments);
    chat.server.reply(job("c1"));
    chat.server.reply(Reply::shell("c2", "mkdir out"));
    chat.server.reply(job("c3"));
    chat.server.reply(Reply::text("Then not."));
    chat.co(" follow it");
    chat.nvim.wait_text("co 1/1");
    let close = "local run = require('co.run').all()[1]
        require('co.backend').send_if_running({ type = 'run_input', run = run.id, close = true })";
    chat.nvim.lua(close, json!([]));
    wait_until(DEADLINE, "the job ends", || {
        (chat.events("CoJobDone") == 1).then_some(())
    });
    chat.answer("co 1/1", "y");
    chat.answer("read-only sandbox;", "n");
    chat.wait_turns(1);
    let items = chat.items();
    assert_eq!(decisions(&items), ["unasked", "approved", "denied"]);
}

#[test]
fn a_command_that_runs_unasked_has_a_time_of_its_own() {
    let endless = "awk 'BEGIN { while (1) ; }'";
    let chat = Chat::start(project(), &json!({ "unasked_timeout": 1 }));
    chat.server.reply(Reply::shell("c1", endless));
    chat.server.reply(Reply::shell("c2", endless));
    chat.server.reply(Reply::text("Then not."));
    chat.co(" loop");
    chat.answer("read-only sandbox;", "n");
    chat.wait_turns(1);
    let items = chat.items();
    let told = of(&items, "outcome")[0]["text"].as_str().unwrap();
    assert!(
        told.contains("timed out after 1.") && told.contains("after 1 s, the limit"),
        "{told}"
    );
    let text = chat.nvim.buffer_text("co://chat/1").unwrap();
    assert!(text.contains(": unasked_timeout*"), "{text}");
}
