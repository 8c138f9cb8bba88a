//! Quitting while commands run: they are named, and Neovim stays.

use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::support::http::{Gate, Reply};
use crate::support::workspace::Workspace;
use crate::support::{DEADLINE, proc};

use super::scene::{Scene, wait_gone};

/// No trace of the refusal is left: the person is where they were.
const CLEAN: &str = "not vim.iter(vim.api.nvim_list_bufs()):any(function(buf)
        return vim.api.nvim_buf_get_name(buf):find('co://running', 1, true) ~= nil
    end) and #vim.fn.filter(vim.api.nvim_list_wins(), 'nvim_win_get_config(v:val).relative != \"\"') == 0
    and vim.api.nvim_get_mode().mode == 'n'";

/// A run of `sleep` goes on, and one window with some text is all there is.
fn sleeping(seconds: &str) -> (Scene, Vec<i32>) {
    let scene = Scene::new();
    scene.type_keys("isome text<Esc>:set nomodified<CR>");
    scene.run(&format!("sleep {seconds}"));
    scene.wait_shell("running");
    scene.type_keys(":only<CR>");
    let pids = scene.wait_below(&format!("sleep {seconds}"));
    (scene, pids)
}

/// Waits for the sentence that names the command, and for Neovim to be as it was.
#[track_caller]
fn assert_stays(scene: &Scene, command: &str) {
    scene.wait_for(CLEAN, "Neovim to be as it was");
    scene.wait_text(&format!("{command} still runs: :qa! ends it and quits"));
    assert_eq!(scene.eval("vim.fn.getline(1)"), "some text");
}

#[test]
fn every_way_to_quit_names_the_command_and_stops() {
    let (mut scene, pids) = sleeping("3701");
    for (keys, asks) in [
        (":qa<CR>", true),
        (":qa<CR>", true),
        (":q<CR>", true),
        (":x<CR>", true),
        ("ZZ", true),
        (":set nohidden<CR>:q<CR>", true),
        (":set nohidden<CR>:qa<CR>", true),
        (":wqa<CR>", false),
        (":xa<CR>", false),
    ] {
        scene.type_keys(":messages clear<CR>:set hidden<CR>:echo<CR>");
        scene.wait_for(CLEAN, "nothing left of the last time");
        scene.type_keys(keys);
        if asks {
            scene.wait_text("No write since last change for buffer \"co://running: sleep 3701\"");
            scene.type_keys("<CR>");
        }
        assert_stays(&scene, "sleep 3701");
    }
    assert!(pids.iter().all(|pid| proc::alive(*pid)));
    scene.type_keys(":qa!<CR>");
    scene.wait_exit();
    wait_gone(&pids);
}

#[test]
fn a_window_among_others_closes_without_a_word() {
    let (scene, _pids) = sleeping("3702");
    for (opens, windows) in [(":split<CR>", 1), (":tabnew<CR>", 1)] {
        scene.type_keys(&format!("{opens}:messages clear<CR>:q<CR>"));
        let closed = format!("#vim.api.nvim_list_wins() == {windows}");
        scene.wait_for(&closed, "one window");
        scene.wait_for(CLEAN, "nothing else");
        assert_eq!(scene.eval("vim.fn.execute('messages')"), "");
    }
}

#[test]
fn a_confirmed_quit_asks_and_only_a_no_to_saving_ends_it() {
    let (mut scene, pids) = sleeping("3703");
    for keys in ["c", "y"] {
        scene.type_keys(":messages clear<CR>:echo<CR>:confirm qa<CR>");
        scene.wait_text("Save changes to \"co://running: sleep 3703\"?");
        scene.type_keys(keys);
        assert_stays(&scene, "sleep 3703");
    }
    scene.type_keys(":confirm qa<CR>");
    scene.wait_text("Save changes to \"co://running: sleep 3703\"?");
    scene.type_keys("n");
    scene.wait_exit();
    wait_gone(&pids);
}

#[test]
fn the_commands_of_a_chat_count_and_the_chat_stays() {
    let mut scene = Scene::scripted([
        Reply::shell("c1", "touch made; sleep 3704"),
        Reply::text("done"),
    ]);
    scene.type_keys(":Co<CR>:only<CR>i!sleep 3705<C-s>");
    scene.wait_chat("  ~ !sleep 3705");
    scene.type_keys("sleep<C-s><Esc>");
    scene.approve();
    scene.wait_text("running: touch made; sleep 3704");
    // The float keeps the focus for a moment, and would be what closes.
    scene.wait_for("vim.bo.filetype == 'co-prompt'", "the chat to be entered");
    scene.type_keys(":q<CR>");
    scene.wait_text("\"co://running: sleep 3705, touch made; sleep 3704\"");
    scene.type_keys("<CR>");
    scene.wait_text("2 commands still run: :qa! ends them and quits");
    scene.wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
    let text = scene.chat();
    assert!(text.contains("  ~ !sleep 3705"), "{text}");
    scene.type_keys("<C-c>");
    scene.wait_turns(1);
    scene.wait_chat("  ✗ !sleep 3705  cancelled");
    scene.type_keys(":qa<CR>");
    scene.wait_exit();
}

#[test]
fn a_job_counts_also_one_that_is_kept() {
    let arguments = json!({ "cmd": "exec sleep 3706", "background": true });
    let mut scene = Scene::scripted([
        Reply::new().call("c1", "run_shell_command", &arguments),
        Reply::text("It serves."),
    ]);
    scene.co("serve");
    scene.approve();
    scene.wait_turns(1);
    scene.type_keys(":Co /jobs<CR>");
    scene.wait_for("vim.bo.filetype == 'co-jobs'", "the list");
    scene.type_keys("K");
    scene.wait_text("running, kept");
    scene.type_keys(":bdelete! co://chat/1/co<CR>:qa<CR>");
    scene.wait_text("\"co://running: exec sleep 3706\"");
    scene.type_keys("<CR>");
    scene.wait_text("exec sleep 3706 still runs");
    scene.type_keys("x");
    scene.wait_text("cancelled");
    scene.type_keys(":qa<CR>");
    scene.wait_exit();
}

#[test]
fn a_session_that_is_saved_at_the_end_knows_nothing_of_it() {
    let (mut scene, _pids) = sleeping("3707");
    let save = "autocmd VimLeavePre * mksession! saved.vim";
    scene.command(save);
    scene.type_keys(":qa!<CR>");
    scene.wait_exit();
    let saved = scene.workspace.read("saved.vim").unwrap();
    assert!(!saved.contains("running"), "{saved}");
}

#[test]
fn a_watched_command_that_a_save_would_run_again_does_not_keep_neovim() {
    let (mut scene, pids) = sleeping("3708");
    scene.type_keys(":Co! ++watch exec sleep 3709<CR>");
    let runs =
        "#vim.tbl_filter(function(run) return run.running end, require('co.run').all()) == 2";
    scene.wait_for(runs, "the watched command");
    scene.type_keys(":write! watched.txt<CR>:qa!<CR>");
    scene.wait_exit();
    wait_gone(&pids);
}

/// Types a draft into the prompt of the chat, and quits.
fn quit_with_draft(scene: &mut Scene, draft: &str) {
    scene.type_keys(":Co<CR>");
    scene.wait_mode("n");
    scene.type_keys(&format!("i{draft}<Esc>"));
    scene.wait_text(draft);
    scene.type_keys(":qa<CR>");
    scene.wait_exit();
}

/// Returns the text of the prompt.
const PROMPT: &str = "table.concat(require('co.chat.registry').current().prompt:lines(), '|')";

#[test]
fn a_draft_comes_back_with_its_chat_and_so_do_its_prompts() {
    let workspace = Workspace::new();
    workspace.write(".env", "TOKEN=correct-horse_battery/staple\n");
    let mut scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.replies([Reply::text("One."), Reply::text("Two.")]);
    for (turn, prompt) in ["first prompt", "second prompt"].into_iter().enumerate() {
        scene.co(prompt);
        scene.wait_turns(turn as u64 + 1);
    }
    let id = scene.chat_id();
    quit_with_draft(&mut scene, "half of correct-horse_battery/staple");
    let file = scene.chats()[0].with_extension("draft");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!std::fs::read_to_string(&file).unwrap().contains("horse"));
    scene.restart();
    scene.co(&format!("/resume {id}"));
    scene.wait_for(
        &format!("{PROMPT}:find('half of [redacted', 1, true)"),
        "the draft",
    );
    scene.type_keys(":Co<CR>");
    scene.wait_mode("n");
    scene.type_keys("cc<Up>");
    scene.wait_for(&format!("{PROMPT} == 'second prompt'"), "the last prompt");
    scene.type_keys("<Up>");
    scene.wait_for(&format!("{PROMPT} == 'first prompt'"), "the first prompt");
    scene.type_keys("<Esc>dd:qa<CR>");
    scene.wait_exit();
    assert!(!file.exists());
}

#[test]
fn a_prompt_that_waits_comes_back_as_a_draft() {
    let mut scene = Scene::scripted([Reply::text("Half").hold(&Gate::default())]);
    scene.co("go");
    scene.wait_chat("Half");
    scene.co("and then this");
    let queued = "require('co.chat.registry').current().state.queued == 1";
    scene.wait_for(queued, "the prompt in the queue");
    let id = scene.chat_id();
    scene.type_keys(":qa<CR>");
    scene.wait_exit();
    scene.restart();
    scene.co(&format!("/resume {id}"));
    scene.wait_for(&format!("{PROMPT} == 'and then this'"), "the draft");
}

#[test]
fn a_draft_of_a_chat_that_has_not_begun_is_a_chat() {
    let mut scene = Scene::new();
    quit_with_draft(&mut scene, "not sent yet");
    let id = scene.chat_id();
    scene.restart();
    scene.co(&format!("/resume {id}"));
    scene.wait_for(&format!("{PROMPT} == 'not sent yet'"), "the draft");
    scene.replies([Reply::text("Sent.")]);
    scene.type_keys(":Co<CR>");
    scene.wait_mode("n");
    scene.type_keys("<CR>");
    scene.wait_turns(1);
    scene.type_keys(":qa<CR>");
    scene.wait_exit();
    assert!(!scene.chats()[0].with_extension("draft").exists());
}

#[test]
fn a_signal_that_ends_neovim_loses_no_draft() {
    let draft = "not sent yet";
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let mut scene = Scene::new();
        scene.type_keys(":Co<CR>");
        scene.wait_mode("n");
        scene.type_keys(&format!("i{draft}<Esc>"));
        scene.wait_text(draft);
        scene.lua("vim.g.typed_at = vim.fn.reltime()", json!([]));
        // A draft is saved after a pause.
        scene.wait_for(
            "vim.fn.reltimefloat(vim.fn.reltime(vim.g.typed_at)) > 1",
            "a pause",
        );
        kill(Pid::from_raw(scene.pid()), signal).unwrap();
        scene.wait_exit();
        let id = scene.chat_id();
        scene.restart();
        scene.co(&format!("/resume {id}"));
        scene.wait_for(&format!("{PROMPT} == 'not sent yet'"), "the draft");
    }
}

#[test]
fn a_killed_neovim_has_saved_the_draft_and_a_restart_keeps_what_is_typed() {
    let mut scene = Scene::scripted([Reply::text("One.")]);
    scene.co("hi");
    scene.wait_turns(1);
    let id = scene.chat_id();
    let file = scene.chats()[0].with_extension("draft");
    scene.type_keys(":Co<CR>");
    scene.wait_mode("n");
    scene.type_keys("ikept");
    proc::wait_until(DEADLINE, "the draft on disk", || {
        file.exists().then_some(())
    });
    scene.type_keys("<Esc>:Co /restart<CR>");
    scene.wait_notice("a new backend runs");
    scene.type_keys(":Co<CR>A too<Esc>");
    scene.wait_for(&format!("{PROMPT} == 'kept too'"), "one draft");
    let saved = || std::fs::read_to_string(&file).is_ok_and(|it| it == "kept too");
    proc::wait_until(DEADLINE, "the new draft on disk", || saved().then_some(()));
    scene.kill9();
    scene.restart();
    scene.co(&format!("/resume {id}"));
    scene.wait_for(&format!("{PROMPT} == 'kept too'"), "the draft");
}

#[test]
fn prompts_of_the_command_line_are_in_the_history() {
    let scene = Scene::scripted([Reply::text("One.")]);
    scene.co("from the command line");
    scene.wait_turns(1);
    scene.type_keys(":Co<CR>");
    scene.wait_mode("n");
    scene.type_keys("i<Up>");
    scene.wait_for(
        &format!("{PROMPT} == 'from the command line'"),
        "the prompt",
    );
}
