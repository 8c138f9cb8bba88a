//! `:Co!`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{DEADLINE, proc};

use super::scene::{Scene, below, gate, open_gate, wait_gone};

#[test]
fn output_is_shown_while_the_command_runs() {
    let scene = Scene::new();
    // One each: a pipe that is opened twice may be at its end at once.
    let gates = ["gate1", "gate2", "gate3"].map(|name| gate(&scene.workspace, name));
    scene.run("for i in 1 2 3; do echo line-$i; read x <gate$i; done");
    let lines = scene.nvim.wait_text("line-1");
    assert!(
        !lines.iter().any(|line| line.contains("line-2")),
        "{lines:#?}"
    );
    open_gate(&gates[0]);
    scene.nvim.wait_text("line-2");
    open_gate(&gates[1]);
    scene.nvim.wait_text("line-3");
    open_gate(&gates[2]);
    scene.nvim.wait_text("exit 0, after");
}

#[test]
fn the_last_line_says_exit_time_and_lines() {
    let scene = Scene::new();
    scene.run("seq 3; exit 4");
    let text = scene.wait_shell("\nexit 4");
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("exit 4, after "), "{last}");
    assert!(last.ends_with(", 3 lines"), "{last}");
    scene.nvim.wait_text("exit 4, after");
    let groups = scene.nvim.groups("exit 4, after").unwrap();
    assert!(
        groups.iter().any(|group| group == "DiagnosticError"),
        "{groups:?}"
    );
}

#[test]
fn ctrl_c_ends_the_run_under_the_cursor() {
    let scene = Scene::new();
    scene.run("echo up; sleep 100");
    scene.wait_shell("\nup");
    let sleeping = proc::wait_until(DEADLINE, "sleep", || {
        let found = below(scene.nvim.pid(), "sleep 100");
        (!found.is_empty()).then_some(found)
    });
    scene.nvim.type_keys("<C-w>b");
    scene
        .nvim
        .wait_for("vim.bo.filetype == 'co-shell'", "the shell's window");
    let begun = Instant::now();
    scene.nvim.type_keys("<C-c>");
    scene.wait_shell("\ncancelled");
    assert!(begun.elapsed() < Duration::from_secs(10));
    wait_gone(&sleeping);
}

#[test]
fn nothing_outlives_a_neovim_that_is_killed() {
    let mut scene = Scene::new();
    scene.run("echo up; (trap '' TERM HUP; sleep 101); sleep 102");
    scene.wait_shell("\nup");
    proc::wait_until(DEADLINE, "sleep", || {
        (!below(scene.nvim.pid(), "sleep 101").is_empty()).then_some(())
    });
    let all = scene.nvim.descendants();
    assert!(all.contains(&scene.backend()));
    scene.nvim.kill9();
    wait_gone(&all);
}

#[test]
fn two_at_once_keep_to_their_blocks() {
    let scene = Scene::new();
    let first = gate(&scene.workspace, "first");
    let second = gate(&scene.workspace, "second");
    scene.run("echo a1; read x <first; echo a2");
    scene.wait_shell("\na1");
    scene.run("echo b1; read x <second; echo b2");
    scene.wait_shell("\nb1");
    open_gate(&first);
    scene.wait_shell("\na2");
    open_gate(&second);
    let text = scene.wait_shell("\nb2");
    let at = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("no {part} in {text}"))
    };
    let order = ["$ echo a1", "\na1", "\na2", "$ echo b1", "\nb1", "\nb2"].map(at);
    assert!(order.is_sorted(), "{text}");
    scene
        .nvim
        .wait_for("(co_seen.CoJobDone or 0) == 2", "two ends");
    assert_eq!(scene.wait_shell("b2").matches("exit 0, after").count(), 2);
}

/// What has no marker any more is the running command's, but for what an earlier one was allowed to keep.
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
        below(scene.nvim.pid(), &format!("sleep {seconds}"))
    };
    let first = left("10802", 1);
    assert_eq!(first.len(), 1);
    scene.nvim.type_keys("<C-w>j");
    scene
        .nvim
        .wait_for("vim.bo.filetype == 'co-shell'", "the shell buffer");
    scene.run("echo n$((0))w; sleep 10803");
    scene.wait_shell("\nn0w");
    scene.nvim.type_keys("G<C-c>");
    scene.wait_shell("\ncancelled");
    assert!(proc::alive(first[0]));
    scene.nvim.type_keys("gg/10802<CR><C-c>");
    scene.nvim.wait_text("co ended what run 2 left running");
    wait_gone(&first);
    let second = left("10804", 2);
    assert_eq!(second.len(), 1);
}

#[test]
fn what_a_run_left_running_is_named_and_ended_by_the_key_that_cancels() {
    let scene = Scene::new();
    scene.run("sleep 10801 & echo u$((0))p");
    scene.wait_shell("; still running: sleep 10801 (pid ");
    let left = below(scene.nvim.pid(), "sleep 10801");
    assert!(!left.is_empty());
    scene.nvim.type_keys("<C-w>j");
    scene
        .nvim
        .wait_for("vim.bo.filetype == 'co-shell'", "the shell buffer");
    scene.nvim.type_keys("<C-c>");
    scene.nvim.wait_text("co ended what run 1 left running");
    wait_gone(&left);
    scene.nvim.type_keys("<C-c>");
    scene.nvim.wait_text("that run has ended already");
    scene.run("echo n$((0))ext");
    scene.wait_shell("\nn0ext\nexit 0");
    scene.nvim.type_keys(":messages clear<CR>G<C-c>");
    scene.nvim.wait_for(
        "vim.fn.execute('messages'):find('ended already')",
        "the sentence",
    );
}

#[test]
fn a_directory_that_is_gone_is_said() {
    let scene = Scene::new();
    let gone = scene.workspace.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    scene.nvim.type_keys(":cd gone<CR>");
    scene
        .nvim
        .wait_for("vim.fn.getcwd():match('gone$')", "the directory");
    std::fs::remove_dir(&gone).unwrap();
    scene.run("pwd");
    scene
        .nvim
        .wait_text("does not exist any more: choose another with :cd");
    scene
        .nvim
        .type_keys(&format!(":cd {}<CR>", scene.workspace.path().display()));
    scene.run("echo h$((0))re");
    scene.wait_shell("\nh0re");
}

#[test]
fn the_windows_and_the_tabs_directory_are_honoured() {
    let scene = Scene::new();
    for name in ["window", "tab"] {
        std::fs::create_dir(scene.workspace.path().join(name)).unwrap();
    }
    let place = |name: &str| format!("\n{}", scene.workspace.path().join(name).display());
    scene.nvim.type_keys(":lcd window<CR>");
    scene.run("pwd");
    scene.wait_shell(&place("window"));
    let tab = scene.workspace.path().join("tab");
    let keys = format!(":tabnew<CR>:tcd {}<CR>", tab.display());
    scene.nvim.type_keys(&keys);
    scene.run("pwd");
    scene.wait_shell(&place("tab"));
    scene.nvim.type_keys(":tabfirst<CR>");
    scene.run("echo first; pwd");
    scene.wait_shell(&format!("\nfirst{}", place("window")));
}

#[test]
fn standard_input_is_empty_or_the_lines_of_a_range() {
    let scene = Scene::new();
    scene.run("cat");
    scene.nvim.wait_text("exit 0, after");
    scene
        .nvim
        .type_keys("ione<CR>two<CR>three<Esc>:1,2Co! tac<CR>");
    scene.wait_shell("$ tac\ntwo\none\nexit 0");
}

#[test]
fn bytes_that_are_no_text_reach_a_command_or_are_refused() {
    let scene = Scene::new();
    let odd = scene.workspace.path().join(OsStr::from_bytes(b"d\xe9"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join("bytes"), b"a\xff\0b\n").unwrap();
    let lua = |code: &str| scene.nvim.lua(code, json!([]));
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
fn a_child_has_no_descriptor_of_the_editors() {
    let scene = Scene::new();
    scene.run("ls -l /proc/self/fd; ls -l /proc/$$/fd");
    let text = scene.wait_shell("exit 0, after");
    let backend = scene.backend();
    let entries = std::fs::read_dir(format!("/proc/{backend}/fd")).unwrap();
    let links = entries
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let channels: Vec<_> = links
        .map(|link| link.display().to_string())
        .filter(|link| link.starts_with("pipe:") || link.starts_with("socket:"))
        .collect();
    assert!(channels.len() >= 2, "{channels:?}");
    for channel in &channels {
        assert!(!text.contains(channel.as_str()), "{channel} is in\n{text}");
    }
    assert!(!text.contains("socket:"), "{text}");
    assert!(text.contains("0 -> /dev/null"), "{text}");
}

#[test]
fn a_flood_ends_with_its_last_line_and_a_count() {
    let scene = Scene::new();
    scene.run("seq 1 300000");
    let text = scene.wait_shell("exit 0, after");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "$ seq 1 300000");
    assert_eq!(lines[1], "… 290000 earlier lines");
    assert_eq!(lines[2], "290001");
    assert_eq!(lines[lines.len() - 2], "300000");
    assert!(lines[lines.len() - 1].ends_with(", 300000 lines"));
    assert_eq!(lines.len(), 10_003);
    // The whole of it is where the note leads.
    scene.nvim.type_keys("<C-w>b:2<CR>zR");
    scene.nvim.type_keys("gf");
    scene.nvim.wait_for(
        "vim.api.nvim_buf_line_count(0) == 300000",
        "the whole output",
    );
}

#[test]
fn the_file_of_a_longer_flood_has_its_beginning_and_its_end() {
    let scene = Scene::with(json!({ "shell_spill_max": "200KB" }), &[]);
    scene.run("seq 1 300000");
    let text = scene.wait_shell("exit 0, after");
    let last = text.lines().last().unwrap();
    let (_, gap) = last
        .split_once(", 300000 lines; its file leaves out ")
        .expect(last);
    assert!(
        gap.ends_with(" MB in the middle: shell_spill_max sets the limit"),
        "{last}"
    );
    scene.nvim.type_keys("<C-w>b:2<CR>zRgf");
    scene
        .nvim
        .wait_for("vim.fn.getline('$') == '300000'", "the file");
    let lines = scene.nvim.lua("return vim.fn.getline(1, '$')", json!([]));
    let lines: Vec<_> = lines
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    assert_eq!(lines[0], "1");
    let missing = 300_000 - (lines.len() - 1);
    let notes: Vec<_> = lines.iter().filter(|it| it.starts_with("[co: ")).collect();
    assert!(matches!(notes[..], [note] if note.contains(&format!(": {missing} lines, "))));
}

#[test]
fn without_a_command_the_last_one_runs_again_where_it_ran() {
    let scene = Scene::new();
    std::fs::create_dir(scene.workspace.path().join("sub")).unwrap();
    scene.nvim.type_keys(":Co!<CR>");
    scene.nvim.wait_text("nothing has been run yet");
    scene.run("pwd; echo n$((40 + 2))");
    scene.wait_shell("\nn42");
    scene.nvim.type_keys(":cd sub<CR>:Co!<CR>");
    scene
        .nvim
        .wait_for("(co_seen.CoJobDone or 0) == 2", "two ends");
    let text = scene.wait_shell("n42");
    let there = format!("\n{}\nn42\n", scene.workspace.path().display());
    assert_eq!(text.matches(&there).count(), 2, "{text}");
}

#[test]
fn colours_become_highlights_and_leave_no_codes() {
    let scene = Scene::new();
    scene.run(r"printf '\033[1;31mr\145d\033[0m pl\141in\n'");
    let text = scene.wait_shell("red plain\n");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    scene.nvim.wait_text("red plain");
    let red = scene.nvim.groups("red plain").unwrap();
    assert!(
        red.iter().any(|group| group.starts_with("CoSgr")),
        "{red:?}"
    );
    let plain = scene.nvim.groups("plain").unwrap();
    assert!(
        !plain.iter().any(|group| group.starts_with("CoSgr")),
        "{plain:?}"
    );
}

#[test]
fn typing_goes_on_while_a_command_prints() {
    let scene = Scene::new();
    let gate = gate(&scene.workspace, "gate");
    scene.run("read x <gate; seq 1 50000");
    scene.wait_shell("running");
    scene.nvim.type_keys("i");
    open_gate(&gate);
    let text = "not a character is lost. ".repeat(20);
    scene.nvim.type_keys(&text);
    scene
        .nvim
        .wait_for("(co_seen.CoJobDone or 0) == 1", "its end");
    scene.nvim.wait_for(
        &format!("vim.api.nvim_get_current_line() == {text:?}"),
        "all characters",
    );
    assert_eq!(scene.nvim.mode().name, "i");
}

#[test]
fn the_name_of_the_file_is_put_in() {
    let scene = Scene::new();
    scene.workspace.write("notes one.txt", "kept\n");
    scene.nvim.type_keys(":edit notes\\ one.txt<CR>");
    scene.run("cat '%'; date -d @0 +%F");
    scene.wait_shell("$ cat 'notes one.txt'; date -d @0 +%F\nkept\n1970-01-01\nexit 0");
    scene.nvim.type_keys(":Co<CR>i!wc -l '%' #one<C-s>");
    scene.wait_chat("1 notes one.txt");
}

#[test]
fn a_command_that_wanted_a_terminal_gets_a_hint() {
    let scene = Scene::new();
    let hint = "; python3 may want a terminal: :Co! ++pty gives it one";
    scene.run("python3");
    scene.wait_shell(hint);
    scene.nvim.type_keys(":Co<CR>i!python3<C-s>");
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
    scene.nvim.type_keys(":Co<CR>i!./nvim a.txt<C-s>");
    scene.wait_chat(hint);
    open_gate(&go);
    scene.wait_chat("ended: exit 0");
}

#[test]
fn every_statusline_counts_a_run_until_its_end() {
    let scene = Scene::new();
    let statusline =
        "vim.o.laststatus, vim.o.statusline = 2, \"[%{v:lua.require'co'.statusline()}]\"";
    scene.nvim.lua(statusline, json!([]));
    scene.nvim.type_keys(":split<CR>");
    let gate = gate(&scene.workspace, "gate");
    scene.run("cat gate");
    let counts = |lines: &[String]| lines.iter().filter(|it| it.contains("[co !1]")).count();
    let screen = scene
        .nvim
        .wait_screen(|lines| counts(lines) == 3, "three counts");
    assert!(screen.iter().any(|line| line.contains("$ cat gate")));
    open_gate(&gate);
    scene
        .nvim
        .wait_screen(|lines| counts(lines) == 0, "no count");
}
