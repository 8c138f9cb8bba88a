//! `:Co!`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use crate::support::{DEADLINE, proc};

use super::scene::{Scene, below, gate, open_gate, wait_gone};

#[test]
fn output_is_shown_while_the_command_runs() {
    let scene = Scene::new();
    // One each: a pipe that is opened twice may be at its end at once.
    let gates = ["gate1", "gate2", "gate3"].map(|name| gate(&scene.workspace, name));
    scene.run("for i in 1 2 3; do echo line-$i; read x <gate$i; done");
    let lines = scene.wait_text("line-1");
    assert!(
        !lines.iter().any(|line| line.contains("line-2")),
        "{lines:#?}"
    );
    open_gate(&gates[0]);
    scene.wait_text("line-2");
    open_gate(&gates[1]);
    scene.wait_text("line-3");
    open_gate(&gates[2]);
    scene.wait_text("exit 0, after");
}

/// A process without a marker counts as one of the running command, unless an earlier run was allowed to keep it.
#[test]
fn what_an_earlier_run_left_without_an_environment_is_not_a_later_ones() {
    let scene = Scene::new();
    scene.run("true");
    scene.wait_shell("$ true\nexit 0");
    let left = |seconds: &str, count: usize| {
        // By the time that it is named it is what it becomes.
        let there = "until grep -qs sleep /proc/$!/comm; do :; done";
        scene.run(&format!("env -i setsid sleep {seconds} & {there}"));
        let named = format!("; still running: sleep {seconds} (pid ");
        let text = scene.wait_shell(&named);
        assert_eq!(text.matches("; still running: ").count(), count);
        below(scene.pid(), &format!("sleep {seconds}"))
    };
    let first = left("10802", 1);
    assert_eq!(first.len(), 1);
    scene.type_keys("<C-w>j");
    scene.wait_for("vim.bo.filetype == 'co-shell'", "the shell buffer");
    scene.run("echo n$((0))w; sleep 10803");
    scene.wait_shell("\nn0w");
    scene.type_keys("G<C-c>");
    scene.wait_shell("\ncancelled");
    assert!(proc::alive(first[0]));
    scene.type_keys("gg/10802<CR><C-c>");
    scene.wait_text("co ended what run 2 left running");
    wait_gone(&first);
    scene.wait_shell("; co ended what it left running: sleep 10802 (pid ");
    scene.type_keys("<C-c>");
    scene.wait_text("run 2 has ended, and nothing of it runs");
    let second = left("10804", 1);
    assert_eq!(second.len(), 1);
}

#[test]
fn bytes_that_are_no_text_reach_a_command_or_are_refused() {
    let scene = Scene::new();
    let odd = scene.workspace.path().join(OsStr::from_bytes(b"d\xe9"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join("bytes"), b"a\xff\0b\n").unwrap();
    let lua = |code: &str| scene.lua(code, json!([]));
    lua(r"vim.cmd('lcd d\233 | edit ++bin bytes')");
    lua("vim.cmd('%Co! od -An -tx1; touch made')");
    scene.wait_shell(" 61 ff 00 62 0a\nexit 0, after");
    std::fs::remove_file(odd.join("made")).unwrap();
    lua("vim.cmd('Co!')");
    proc::wait_until(DEADLINE, "the same directory", || {
        odd.join("made").exists().then_some(())
    });
    lua(r"vim.cmd('Co! touch d\233j\224')");
    scene.wait_shell("\nnot run: the command is not all UTF-8");
    assert_eq!(std::fs::read_dir(&odd).unwrap().count(), 2);
}

#[test]
fn typing_goes_on_while_a_command_prints() {
    let scene = Scene::new();
    let gate = gate(&scene.workspace, "gate");
    scene.run("read x <gate; seq 1 50000");
    scene.wait_shell("running");
    scene.type_keys("i");
    open_gate(&gate);
    let text = "not a character is lost. ".repeat(20);
    scene.type_keys(&text);
    scene.wait_for("(co_seen.CoJobDone or 0) == 1", "its end");
    scene.wait_for(
        &format!("vim.api.nvim_get_current_line() == {text:?}"),
        "all characters",
    );
    assert_eq!(scene.mode().name, "i");
}

#[test]
fn a_command_that_wanted_a_terminal_gets_a_hint() {
    let scene = Scene::new();
    let hint = "; python3 may want a terminal: :Co! ++pty gives it one";
    scene.run("python3");
    scene.wait_shell(hint);
    scene.type_keys(":Co<CR>i!python3<C-s>");
    scene.wait_chat(hint);
}

#[test]
fn a_program_for_the_screen_gets_a_hint_while_it_runs() {
    let scene = Scene::new();
    let go = gate(&scene.workspace, "go");
    scene.workspace.write("nvim", "#!/bin/sh\nread x < go\n");
    scene.run("chmod +x nvim");
    scene.wait_shell("exit 0");
    let hint = "nvim may want a terminal: :Co! ++pty gives it one";
    scene.run("./nvim a.txt");
    scene.wait_shell(&format!("… running; {hint}"));
    open_gate(&go);
    scene.wait_shell("$ ./nvim a.txt\nexit 0");
    scene.type_keys(":Co<CR>i!./nvim a.txt<C-s>");
    scene.wait_chat(hint);
    open_gate(&go);
    scene.wait_chat("  ✓ !./nvim a.txt");
}

#[test]
fn every_statusline_counts_a_run_until_its_end() {
    let scene = Scene::new();
    let statusline =
        "vim.o.laststatus, vim.o.statusline = 2, \"[%{v:lua.require'co'.statusline()}]\"";
    scene.lua(statusline, json!([]));
    scene.type_keys(":split<CR>");
    let gate = gate(&scene.workspace, "gate");
    scene.run("cat gate");
    let counts = |lines: &[String]| lines.iter().filter(|it| it.contains("[co !1]")).count();
    let screen = scene.wait_screen(|lines| counts(lines) == 3, "three counts");
    assert!(screen.iter().any(|line| line.contains("$ cat gate")));
    open_gate(&gate);
    scene.wait_screen(|lines| counts(lines) == 0, "no count");
}
