//! Settings that are given after the first `:Co`, and `/restart`.

use crate::support::http::{Gate, Reply};
use crate::support::proc;

use super::scene::{Scene, below, wait_gone};

/// Types `:lua require('co').setup(...)`.
#[track_caller]
fn setup(scene: &Scene, settings: &str) {
    let keys = format!(":lua require('co').setup({settings})<CR>");
    scene.type_keys(&keys);
}

/// Starts a new backend, and returns the old and the new one.
#[track_caller]
fn restart(scene: &Scene, command: &str) -> (i32, i32) {
    let old = scene.backend();
    scene.co(command);
    scene.wait_notice("a new backend runs");
    (old, scene.backend())
}

#[track_caller]
fn begun(replies: impl IntoIterator<Item = Reply>) -> Scene {
    let scene = Scene::scripted([Reply::text("Aye.")]);
    replies
        .into_iter()
        .for_each(|reply| scene.server.reply(reply));
    scene.co("hello");
    scene.wait_turns(1);
    scene
}

#[test]
fn a_model_given_late_is_that_of_the_next_chat() {
    let scene = begun([Reply::text("Same."), Reply::text("Other.")]);
    setup(&scene, "{ model = 'another' }");
    scene.wait_text("model applies from the next chat (:Co /new)");
    scene.co("again");
    scene.wait_turns(2);
    scene.co("/new");
    scene.type_keys("ihello<C-s>");
    scene.wait_turns(3);
    let models: Vec<_> = scene
        .server
        .requests()
        .iter()
        .map(|it| it.body["model"].clone())
        .collect();
    assert_eq!(models, ["scripted", "scripted", "another"]);
}

#[test]
fn a_run_has_the_time_limit_that_was_given_last() {
    let scene = Scene::new();
    scene.run("echo o$((0))k");
    scene.wait_shell("\no0k");
    setup(&scene, "{ shell_max_timeout = 1 }");
    scene.run("sleep 107");
    scene.wait_shell("timed out");
}

#[test]
fn what_needs_a_new_backend_is_said_and_a_restart_applies_it() {
    let scene = begun([Reply::shell("c1", "touch out"), Reply::text("Made.")]);
    setup(
        &scene,
        "{ sandbox_backend = 'docker', container_engine = '/nonexistent' }",
    );
    scene.wait_text("sandbox_backend, container_engine need a new backend");
    let (old, new) = restart(&scene, "/restart");
    assert_ne!(old, new);
    // The chat goes on, as the new backend has it.
    scene.wait_text("approved: container");
    scene.co("make it");
    scene.wait_chat("Made.");
    assert!(!scene.workspace.exists("out"));
    let last = scene.server.requests().pop().unwrap();
    assert!(last.body.to_string().contains("hello"), "{}", last.body);
    assert_eq!(scene.chats().len(), 1);
}

#[test]
fn a_restart_ends_nothing_that_runs_unless_it_is_told_to() {
    let scene = Scene::new();
    scene.run("echo up; sleep 108");
    scene.wait_shell("\nup");
    let sleeping = scene.wait_below("sleep 108");
    let first = scene.backend();
    scene.co("/restart");
    scene.wait_text("not restarted: run 1 (echo up; sleep 108) would end; :Co /restart! ends");
    assert_eq!(scene.backend(), first);
    assert!(sleeping.iter().all(|pid| proc::alive(*pid)));
    let (_, new) = restart(&scene, "/restart!");
    assert_ne!(first, new);
    wait_gone(&sleeping);
    scene.wait_shell("\nthe backend was restarted");
}

#[test]
fn a_restart_knows_what_a_run_left_running_and_a_command_of_a_chat() {
    let scene = Scene::new();
    scene.run("sleep 109 & echo u$((0))p");
    scene.wait_shell("\nu0p");
    scene.wait_shell("exit 0");
    scene.co("/restart");
    scene.wait_text("not restarted: the processes that run 1 left running would end");
    for pid in below(scene.pid(), "sleep 109") {
        proc::kill9(pid);
    }
    scene.wait_for(
        "not require('co.run').all()[1].left",
        "what was left to be gone",
    );
    scene.co("!echo s$((0))tarted; sleep 110");
    scene.wait_chat("s0tarted");
    scene.co("/restart");
    scene.wait_text("not restarted: the ! command of chat 1 would end");
    restart(&scene, "/restart!");
}

#[test]
fn a_restart_in_a_turn_loses_no_draft_and_no_queued_prompt() {
    let gate = Gate::default();
    let scene = Scene::scripted([Reply::text("One.").hold(&gate).say(" Two.")]);
    scene.co("the first");
    scene.wait_chat("One.");
    scene.co("the second");
    scene.wait_for(
        "require('co.chat.registry').current().state.queued == 1",
        "a queue",
    );
    scene.co("");
    scene.type_keys("ia draft<Esc>");
    scene.co("/restart");
    scene.wait_text("not restarted: the turn of chat 1 would end");
    restart(&scene, "/restart!");
    gate.open();
    scene.wait_buffer("co://chat/1/prompt", "the second\na draft");
    let text = scene.chat();
    assert!(text.contains("the first"), "{text}");
    scene.server.reply(Reply::text("Three."));
    scene.type_keys("<CR>");
    scene.wait_chat("Three.");
    let last = scene.server.requests().pop().unwrap();
    assert_eq!(last.last("user").as_deref(), Some("the second\na draft"));
    assert!(last.body.to_string().contains("the first"), "{}", last.body);
}

#[test]
fn a_prompt_and_a_command_sent_during_a_restart_reach_the_new_backend() {
    let scene = begun([Reply::text("Still here.")]);
    let old = scene.backend();
    let keys = [
        ":Co /restart<CR>",
        ":Co /restart<CR>",
        ":Co again<CR>",
        ":Co /usage<CR>",
    ];
    scene.type_keys(&keys.concat());
    scene.wait_chat("Still here.");
    scene.wait_notice("the last turn");
    assert_ne!(old, scene.backend());
    let last = scene.server.requests().pop().unwrap();
    assert_eq!(last.last("user").as_deref(), Some("again"));
    assert!(last.body.to_string().contains("hello"), "{}", last.body);
    assert_eq!(scene.chats().len(), 1);
    let chat = scene.chat();
    assert_eq!(
        chat.matches("again").count(),
        1,
        "nothing is given back: {chat}"
    );
}

#[test]
fn without_a_backend_a_restart_says_so() {
    let scene = Scene::new();
    scene.co("/restart");
    scene.wait_text("no backend runs: the next :Co starts one");
    assert!(below(scene.pid(), crate::support::BACKEND).is_empty());
}
