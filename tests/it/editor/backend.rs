//! The one process behind a Neovim: how it starts, ends and is brought back.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::http::Reply;
use crate::support::nvim::{Nvim, Options};
use crate::support::{BACKEND, proc};

use crate::cli::state::{may_mount, read_only};
use crate::cli::trial::interrupt_keep;

use super::scene::Scene;

/// A script in place of the backend.
pub(super) fn stand_in(directory: &Path, script: &str) -> String {
    let path = directory.join("co-nvim");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn with_backend(bin: &str) -> Nvim {
    Nvim::start(Options {
        size: (160, 20),
        settings: json!({ "bin": bin }),
        ..Options::default()
    })
}

#[test]
fn a_backend_that_dies_is_said_once_and_the_chat_goes_on() {
    let scene = Scene::scripted([
        Reply::text("Seven it is."),
        Reply::shell("c1", "touch out"),
        Reply::text("Seven, I said."),
    ]);
    scene.co("remember seven");
    scene.wait_chat("Seven it is.");
    scene.wait_turns(1);
    scene.co("make it");
    scene.wait_ask("1/1");
    let first = scene.backend();
    proc::kill9(first);
    scene.wait_text("the backend ended");
    scene.wait_no_text("co 1/1");
    let said = "vim.iter(require('co.ui.log').lines()):filter(function(line)
        return line:find('the backend ended', 1, true)
    end):totable()";
    let count = scene.lua(&format!("return #{said}"), json!([]));
    assert_eq!(count, 1);
    scene.co("which number?");
    scene.wait_chat("Seven, I said.");
    assert_ne!(scene.backend(), first);
    assert!(!scene.workspace.exists("out"));
    let last = scene.server.requests().pop().unwrap();
    assert_eq!(last.last("user").as_deref(), Some("which number?"));
    assert!(
        last.body.to_string().contains("remember seven"),
        "{}",
        last.body
    );
}

#[test]
fn confined_commands_start_after_an_update_replaced_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let exe = dir.path().join("co-nvim");
    // By another process: see `copy_program` of the sandbox's tests.
    let copied = Command::new("cp").args([Path::new(BACKEND), &exe]).status();
    assert!(copied.unwrap().success());
    let scene = Scene::with(json!({ "bin": exe, "sandbox_backend": "landlock" }), &[]);
    scene.run("echo be$((0))fore");
    scene.wait_shell("\nbe0fore");
    std::fs::remove_file(&exe).unwrap();
    std::fs::write(&exe, "of another version").unwrap();
    scene.run("echo af$((0))ter");
    scene.wait_shell("\naf0ter");
}

#[test]
fn another_protocol_is_refused_with_the_fix() {
    for (protocol, fix) in [
        (1, "update co and restart Neovim: "),
        (999, "the plugin 999): run :Co /install"),
    ] {
        let scene = Scene::new();
        scene.lua("require('co.version').protocol = ...", json!([protocol]));
        scene.co("hello");
        scene.wait_text(fix);
        assert!(scene.server.requests().is_empty());
        scene.wait_for("not require('co.backend').status().running", "its end");
    }
}

#[test]
fn a_plugin_that_takes_no_messages_is_said_once() {
    let scene = Scene::new();
    scene.run("echo o$((0))ne");
    scene.wait_shell("\no0ne");
    let breaks = "_G.calls, _G.said = 0, {}
        vim.notify = function(text) table.insert(said, text) end
        require('co.handlers').receive = function() calls = calls + 1; error('no') end";
    scene.lua(breaks, json!([]));
    scene.run("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done");
    scene.wait_for("calls > 4", "some frames");
    let said = scene.eval("said");
    let first = said[0].as_str().unwrap();
    assert!(first.contains("Neovim refuses"), "{said}");
    assert_eq!(said.as_array().unwrap().len(), 1, "{said}");
    let log = scene.home.path().join("state/co-nvim/co.log");
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log.matches("Neovim refuses").count(), 1, "{log}");
}

#[test]
fn the_log_leads_to_the_backends_own_file() {
    let scene = Scene::new();
    scene.run("echo o$((0))k");
    scene.wait_shell("\no0k");
    scene.type_keys(":Co /log<CR>");
    scene.wait_for("vim.bo.filetype == 'co-log'", "the log");
    let file = scene.home.path().join("state/co-nvim/co.log");
    assert!(file.is_file());
    scene.type_keys("G:set nowrap<CR>gf");
    scene.wait_for(
        &format!("vim.fn.expand('%:p') == {:?}", file.display().to_string()),
        "the file",
    );
}

#[test]
fn a_log_filter_that_cannot_be_read_is_said() {
    let scene = Scene::with(json!({}), &[("CO_CLI_LOG", "co=loud")]);
    scene.run("echo o$((0))k");
    scene.wait_shell("\no0k");
    scene.wait_notice("CO_CLI_LOG is not a log filter");
}

#[test]
fn what_a_killed_process_was_keeping_is_finished_and_said() {
    let scene = Scene::new();
    let (state, place) = (
        scene.home.path().join("state/co-nvim"),
        tempfile::tempdir().unwrap(),
    );
    interrupt_keep(&state, place.path());
    scene.run("echo o$((0))k");
    scene.wait_notice("while it kept what `make links` changed");
    let link = std::fs::read_link(place.path().join("second")).unwrap();
    assert_eq!(link, Path::new("a"));
}

/// A Lua expression that is true if the prompt holds the text that was sent.
pub(super) const PROMPT: &str = "vim.api.nvim_buf_get_lines(require('co.chat.registry').current().prompt.buf, -2, -1, false)[1] == 'these words'";

/// Waits until the text is in the prompt again. Without the file that is in the way, the next backend works.
fn comes_back(scene: &Scene, in_the_way: &Path) {
    scene.wait_for(PROMPT, "the prompt to come back");
    scene.wait_for("not require('co.backend').status().running", "its end");
    std::fs::remove_file(in_the_way).unwrap();
    scene.run("echo o$((0))k");
    scene.wait_shell("\no0k");
}

#[test]
fn a_file_that_hangs_is_said_and_the_prompt_comes_back() {
    let scene = Scene::new();
    let state = scene.home.path().join("state/co-nvim");
    std::fs::create_dir_all(&state).unwrap();
    let fifo = state.join("co.log");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    scene.co("!true");
    scene.co("these words");
    // It has greeted: that waits for no file.
    scene.wait_for("require('co.backend').status().ready", "the greeting");
    scene.wait_text("waited 8 s for its settings, its state or its data");
    comes_back(&scene, &fifo);
    let all = "table.concat(vim.api.nvim_buf_get_lines(require('co.chat.registry').current().prompt.buf, 0, -1, false), '|')";
    let all = scene.lua(&format!("return {all}"), json!([]));
    assert_eq!(all, "!true|these words");
}

#[test]
fn a_state_directory_that_cannot_be_written_is_said_once() {
    if !may_mount() {
        return;
    }
    for made in [
        "true",
        "mkdir -m 700 -p co-nvim co-nvim/output co-nvim/trust",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let before = read_only(Path::new("$XDG_STATE_HOME"), made);
        let script = format!(
            "exec unshare --map-root-user --mount sh -c '{before} && exec \"$0\"' '{BACKEND}'"
        );
        let nvim = with_backend(&stand_in(directory.path(), &script));
        nvim.type_keys(":Co! echo never<CR>");
        nvim.wait_text("state/co-nvim/output: Read-only");
        let told = "return vim.tbl_filter(function(line)
            return line:find('notice: ', 1, true) ~= nil
        end, require('co.ui.log').lines())";
        let told = nvim.lua(told, json!([]));
        assert_eq!(told.as_array().unwrap().len(), 1, "{made}: {told}");
    }
}

#[test]
fn what_it_cannot_make_after_its_greeting_is_said() {
    let scene = Scene::new();
    let state = scene.home.path().join("state/co-nvim");
    std::fs::create_dir_all(state.parent().unwrap()).unwrap();
    std::fs::write(&state, "in the way").unwrap();
    scene.run("echo never");
    scene.wait_shell("\ncannot make the directory");
    scene.co("these words");
    comes_back(&scene, &state);
}
