//! `:Co /sandbox`: the permissions of approved commands, changed while co runs.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::http::Reply;
use crate::support::mounted::Mounted;
use crate::support::runner::am_root;
use crate::support::workspace::Workspace;
use crate::support::{DEADLINE, proc};

use super::scene::{Scene, gate, open_gate};

/// Returns a command that writes a file outside the workspace.
fn outside(scene: &Scene, name: &str) -> String {
    format!("touch {}", scene.home.path().join(name).display())
}

fn made(scene: &Scene, name: &str) -> bool {
    scene.home.path().join(name).exists()
}

#[test]
fn it_holds_the_next_command_of_every_chat_and_of_the_person() {
    let scene = Scene::scripted([Reply::text("Aye.")]);
    scene.co("hello");
    scene.wait_turns(1);
    scene.co("/new");
    scene.wait_for(
        "vim.api.nvim_buf_get_name(0) == 'co://chat/2/prompt'",
        "another chat",
    );
    scene.type_keys("<C-w>p");
    let go = gate(&scene.workspace, "go");
    scene.run(&format!("read x < go; {}", outside(&scene, "before")));
    scene.co("/sandbox landlock");
    scene.wait_notice("approved commands write in the workspace");
    // The running command is not affected.
    open_gate(&go);
    scene.wait_shell("exit 0, after");
    assert!(made(&scene, "before"));
    scene.run(&outside(&scene, "held"));
    scene.wait_shell("cannot touch");
    scene.run("touch inside && echo in$((0))side");
    scene.wait_shell("\nin0side");
    let chat = "require('co.chat.registry').all()[1].state.confinement == 'landlock'";
    scene.wait_for(chat, "the first chat to know");
    scene.co("/sandbox subprocess");
    scene.wait_notice("approved commands run unconfined");
    scene.run(&format!("{} && echo fr$((0))ee", outside(&scene, "free")));
    scene.wait_shell("\nfr0ee");
    assert!(!made(&scene, "held") && made(&scene, "free"));
}

#[test]
fn an_engine_that_does_not_answer_is_named_and_the_wait_can_be_stopped() {
    let workspace = Workspace::new();
    workspace.write("engine", "#!/bin/sh\nexec sleep 300\n");
    let engine = workspace.path().join("engine");
    std::fs::set_permissions(&engine, std::fs::Permissions::from_mode(0o755)).unwrap();
    let settings = json!({ "sandbox_backend": "docker", "container_engine": engine });
    let scene = Scene::in_workspace(workspace, settings, &[]);
    scene.replies([Reply::shell("c1", "touch made")]);
    scene.co("make it");
    scene.wait_notice("co waits for the container engine");
    scene.type_keys(":Co /stop<CR>");
    scene.wait_turns(1);
    assert!(!scene.workspace.exists("made"));
}

/// The words about the confinement, for a command that failed.
const HINT: &str = "confined to the workspace (landlock): no writes outside, no network; `:Co /sandbox subprocess` lifts it";

#[test]
fn a_confined_command_that_fails_says_so_once_in_a_turn() {
    let scene = Scene::new();
    let held = outside(&scene, "held");
    for (id, command) in ["touch in && test -e none", &held, &held]
        .into_iter()
        .enumerate()
    {
        let call = Reply::shell(&format!("c{id}"), &format!(": {id}; {command}"));
        scene.server.reply(call);
    }
    scene.server.reply(Reply::text("Done."));
    scene.co("/sandbox landlock");
    scene.wait_notice("approved commands write in the workspace");
    scene.co("make it");
    for id in 0..3 {
        scene.wait_text(&format!(": {id}; "));
        scene.approve();
    }
    let chat = scene.wait_chat("Done.");
    assert_eq!(chat.matches(HINT).count(), 1, "{chat}");
    let (before, after) = chat.split_once(HINT).unwrap();
    assert!(
        before.contains(": 1; ") && !before.contains(": 2; "),
        "{chat}"
    );
    assert!(after.contains("cannot touch"), "{chat}");
    let told: Vec<_> = (1..=3).map(|request| scene.told(request)).collect();
    let with_hint: Vec<_> = told.iter().map(|told| told.contains(HINT)).collect();
    assert_eq!(with_hint, [false, true, false], "{told:#?}");
}

#[test]
fn the_shell_buffer_names_the_confinement_of_each_run() {
    let scene = Scene::new();
    scene.run("echo fr$((0))ee");
    assert!(!scene.wait_shell("\nfr0ee").contains("confined"));
    scene.co("/sandbox landlock");
    scene.wait_notice("approved commands write in the workspace");
    let go = gate(&scene.workspace, "go");
    scene.run("read x < go");
    scene.wait_shell("… running; confined to the workspace (landlock)");
    open_gate(&go);
    let shell = scene.wait_shell("no output; confined to the workspace (landlock)");
    assert!(!shell.contains(HINT), "{shell}");
    scene.run(&outside(&scene, "held"));
    scene.wait_shell(HINT);
    scene.co("!touch /co-held");
    scene.wait_chat(HINT);
}

#[test]
fn the_choice_outlives_a_backend_that_dies_and_not_a_restart() {
    let scene = Scene::new();
    scene.co("/sandbox landlock");
    scene.wait_notice("approved commands write in the workspace");
    proc::kill9(scene.backend());
    scene.wait_text("the backend ended");
    scene.run(&outside(&scene, "held"));
    scene.wait_shell("cannot touch");
    // A restart is refused while a command runs.
    scene.wait_shell("\nexit 1");
    scene.co("/restart");
    scene.wait_text("a new backend runs");
    scene.run(&format!("{} && echo fr$((0))ee", outside(&scene, "free")));
    scene.wait_shell("\nfr0ee");
    assert!(!made(&scene, "held") && made(&scene, "free"));
}

#[test]
fn another_word_changes_nothing() {
    let scene = Scene::new();
    for word in ["none", "landlock x"] {
        scene.co(&format!("/sandbox {word}"));
        scene.wait_notice(&format!(
            "/sandbox takes landlock, docker, subprocess, auto, build or clean, not \"{word}\""
        ));
    }
    scene.run(&format!("{} && echo fr$((0))ee", outside(&scene, "free")));
    scene.wait_shell("\nfr0ee");
}

/// Prints `.env` without naming it.
const UNNAMED: &str = "python3 -c \"print(open('.e' + 'nv').read())\"";

/// A workspace with a secret file, confined, whose model sends these commands.
fn confined_with_secret(settings: serde_json::Value, commands: &[&str]) -> Scene {
    let workspace = Workspace::new();
    workspace.write(".env", "MODE=of the file\n");
    let scene = Scene::in_workspace(workspace, settings, &[]);
    for (id, command) in commands.iter().enumerate() {
        scene.server.reply(Reply::shell(&format!("c{id}"), command));
    }
    scene.server.reply(Reply::text("Done."));
    scene.co("/sandbox landlock");
    scene.wait_notice("approved commands write in the workspace");
    scene
}

#[test]
fn a_yes_opens_the_secrets_that_a_confined_command_names() {
    let scene = confined_with_secret(
        json!({}),
        &[
            "cat .env",
            UNNAMED,
            ": .env; python3 -c \"print(open('.e' + 'nv').read())\"",
        ],
    );
    scene.co("what is the mode?");
    scene.wait_ask("1/1");
    scene.wait_text("a yes lets it open `.env`");
    scene.answer("y");
    scene.wait_text("python3 -c");
    scene.wait_ask("1/1");
    assert!(scene.told(1).contains("MODE=of the file"));
    let screen = scene.screen().join("\n");
    assert!(!screen.contains("a yes lets it open"), "{screen}");
    scene.answer("y");
    scene.wait_text("a yes lets it open `.env`");
    let refused = scene.told(2);
    assert!(refused.contains("Permission denied"), "{refused}");
    assert!(refused.contains("put `: .env; ` in front"), "{refused}");
    scene.answer("y");
    scene.wait_turns(1);
    assert!(scene.told(3).contains("MODE=of the file"));
}

#[test]
fn a_command_of_the_person_opens_the_secrets_that_it_names() {
    let scene = confined_with_secret(json!({}), &[]);
    scene.run(UNNAMED);
    scene.wait_shell("Permission denied");
    scene.run("cat .env");
    scene.wait_shell("\nMODE=of the file");
    scene.co("!cat < .env");
    scene.wait_chat("\n    MODE=of the file");
}

#[test]
fn a_setting_shows_all_secrets_to_confined_commands() {
    let scene = confined_with_secret(json!({ "hide_secrets": false }), &[UNNAMED]);
    scene.co("what is the mode?");
    scene.approve();
    scene.wait_turns(1);
    assert!(scene.told(1).contains("MODE=of the file"));
}

#[test]
fn a_secret_that_an_approved_command_makes_and_prints_is_hidden() {
    let command = "echo API_TOKEN=violet-harbor-lamp > .env; echo it is violet-harbor-lamp";
    let scene = Scene::with(json!({ "auto_confirm": true }), &[]);
    // co does not watch a workspace in which another file system is mounted.
    let place = scene.workspace.path().join("mounted");
    std::fs::create_dir(&place).unwrap();
    let _mounted = am_root().then(|| Mounted::new(&place));
    scene.server.reply(Reply::shell("1", command));
    scene.server.reply(Reply::text("Done."));
    scene.co("go on");
    scene.wait_turns(1);
    let told = scene.told(1);
    assert!(told.contains("it is "), "{told}");
    assert!(!told.contains("it is violet-harbor-lamp"), "{told}");
}

#[test]
fn no_command_runs_while_it_is_unknown_how_to_confine_it() {
    let scene = Scene::with(json!({ "sandbox_backend": "landlok" }), &[]);
    scene.run("touch inside");
    scene.wait_shell("no command runs, because the setting sandbox_backend is wrong");
    scene.co("/sandbox landlock");
    scene.wait_notice("approved commands write in the workspace");
    scene.run("touch chosen && echo ch$((0))osen");
    scene.wait_shell("\nch0osen");
    assert!(!scene.workspace.exists("inside"));
}

#[test]
fn an_environment_that_turns_questions_off_is_told_at_the_first_chat() {
    let environment = [("CO_CLI_AUTO_CONFIRM", "1")];
    let scene = Scene::with(json!({}), &environment);
    scene.server.reply(Reply::text("Aye."));
    scene.co("hello");
    scene.wait_notice("CO_CLI_AUTO_CONFIRM in the environment is on");
}

/// Returns whether a process has an inotify descriptor.
fn watches(pid: i32) -> bool {
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    let mut targets = fds.filter_map(|fd| fd.ok()?.path().read_link().ok());
    targets.any(|target| target.to_string_lossy().contains("inotify"))
}

#[test]
fn a_chat_watches_its_workspace_from_the_first_call_and_no_command_reaches_the_watcher() {
    let scene = Scene::scripted([
        Reply::text("Hello."),
        Reply::shell("c1", "ls"),
        Reply::text("One."),
        Reply::shell(
            "c2",
            "for it in /proc/[0-9]*/fd/*; do readlink \"$it\"; done | grep -c inotify; ls",
        ),
        Reply::text("Two."),
    ]);
    scene.workspace.write("one", "x");
    scene.co("hello");
    scene.wait_chat("Hello.");
    let backend = scene.backend();
    assert!(!watches(backend), "no call was made yet");
    scene.co("look");
    scene.wait_chat("One.");
    proc::wait_until(DEADLINE, "the watcher", || watches(backend).then_some(()));
    scene.co("look again");
    scene.wait_chat("Two.");
    let told = scene.server.requests()[4].last("tool").unwrap();
    assert!(told.contains("0\n") && told.contains("one"), "{told}");
}
