//! Machines that are not as one would wish: in each, a person's day with co works, or one sentence says what is wrong.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::cli::state::{may_mount, read_only};
use crate::support::BACKEND;
use crate::support::http::Reply;

use super::backend::{PROMPT, stand_in};
use super::scene::{Scene, below, wait_gone};

/// A run of the person, a prompt, a command that only looks, a command that the person allows, and the end.
#[track_caller]
fn day(scene: &mut Scene, what: &str) {
    eprintln!("{what}");
    let replies = [
        Reply::shell("c1", "ls"),
        Reply::shell("c2", "echo made >made"),
        Reply::text("All done."),
    ];
    replies.into_iter().for_each(|it| scene.server.reply(it));
    scene.run("echo o$((0))ne");
    scene.wait_shell("\no0ne");
    scene.co("begin");
    scene.approve();
    scene.wait_chat("All done.");
    scene.wait_turns(1);
    assert_eq!(
        scene.workspace.read("made").as_deref(),
        Some("made\n"),
        "{what}"
    );
    quit(scene);
}

/// Leaves Neovim. Checks that no process of Neovim is left.
#[track_caller]
fn quit(scene: &mut Scene) {
    let mut left = below(scene.pid(), BACKEND);
    left.extend(scene.marked());
    scene.type_keys("<C-\\><C-n>:qa!<CR>");
    scene.wait_exit();
    wait_gone(&left);
}

#[test]
fn other_environments_change_nothing() {
    let big = "x".repeat(120 * 1024);
    let names: Vec<_> = (0..10).map(|number| format!("BIG_{number}")).collect();
    let huge: Vec<_> = names.iter().map(|name| (&**name, &*big)).collect();
    let all: [(&str, &[(&str, &str)]); 4] = [
        ("the locale C", &[("LANG", "C"), ("LC_ALL", "C")]),
        (
            "a locale that is not installed",
            &[("LC_ALL", "xx_YY.UTF-8")],
        ),
        ("TERM=dumb", &[("TERM", "dumb")]),
        ("a huge environment", &huge),
    ];
    for (what, env) in all {
        day(&mut Scene::with(json!({}), env), what);
    }
}

#[test]
fn few_descriptors_are_enough() {
    let (mut scene, _directory) = prepared("ulimit -n 64;");
    day(&mut scene, "64 descriptors");
}

/// Starts Neovim with a backend that a line of shell has prepared.
fn prepared(line: &str) -> (Scene, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let script = format!("set -- '{BACKEND}' \"$@\"; {line} exec \"$@\"");
    let bin = stand_in(directory.path(), &script);
    (Scene::with(json!({ "bin": bin }), &[]), directory)
}

/// Starts Neovim with a backend for which a line of shell has mounted something.
fn mounted(line: &str) -> (Scene, TempDir) {
    prepared(&format!(
        "set -- unshare --map-root-user --mount sh -c '{line} && exec \"$@\"' sh \"$@\";"
    ))
}

#[test]
fn without_a_path_programs_are_found_where_the_shell_looks() {
    let (mut scene, _directory) = prepared("PATH=; export PATH;");
    day(&mut scene, "an empty PATH");
}

#[test]
fn what_cannot_be_read_or_written_is_said() {
    if !may_mount() {
        return;
    }
    for name in ["CACHE", "CONFIG"] {
        let line = read_only(Path::new(&format!("$XDG_{name}_HOME")), "true");
        day(&mut mounted(&line).0, name);
    }
    let no_home = "export HOME=/proc/none; unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME;";
    let no_data = read_only(Path::new("$XDG_DATA_HOME"), "true");
    let refused = [
        (prepared(no_home), "cannot make the directory /proc/none/"),
        (
            mounted(&no_data),
            "data/co-nvim/rules: Read-only file system",
        ),
    ];
    for ((mut scene, _directory), told) in refused {
        scene.run("echo never");
        scene.wait_shell(told);
        scene.co("these words");
        scene.wait_for(PROMPT, "the prompt to come back");
        quit(&mut scene);
    }
}

/// Mounts a small file system over a directory of co and fills it. `rm` of the file `full` there makes room.
fn filled(name: &str) -> String {
    format!(
        "cd $XDG_{name}_HOME && mount -t tmpfs -o size=256k none . && cd . && mkdir -m 700 co-nvim && \
         {{ cat /dev/zero >full 2>/dev/null; true; }}"
    )
}

#[test]
fn a_full_disk_loses_nothing() {
    if !may_mount() {
        return;
    }
    // Where chats are kept, a prompt comes back and works later.
    let (mut scene, _directory) = mounted(&filled("DATA"));
    scene.co("these words");
    scene.wait_for(PROMPT, "the prompt to come back");
    scene.wait_notice("No space left on device");
    let full = scene.home.path().join("data/full");
    scene.run(&format!("rm {}", full.display()));
    scene.wait_shell("\nexit 0");
    scene.command("call win_gotoid(bufwinid('co://chat/1/prompt'))");
    scene.type_keys("<Esc>Go<Esc>ggdG");
    day(&mut scene, "room for chats again");
    // Where output and the audit file are kept, only these are cut, and the person is told.
    let (mut scene, _directory) = mounted(&filled("STATE"));
    scene.command("set columns=300");
    scene.run("seq 100000");
    scene.wait_shell("\n100000\nexit 0");
    day(&mut scene, "no room for the audit file");
}

#[test]
fn a_deleted_directory_is_said() {
    let mut scene = Scene::new();
    std::fs::remove_dir_all(scene.workspace.path()).unwrap();
    scene.run("echo never");
    scene.wait_text("the working directory does not exist any more: choose another with :cd");
    scene.command("cd /");
    scene.run("echo o$((0))ne");
    scene.wait_shell("\no0ne");
    quit(&mut scene);
}

#[test]
fn a_trial_is_kept_whole_or_not_at_all_on_a_full_disk() {
    if !may_mount() {
        return;
    }
    let state = "cd $XDG_STATE_HOME && mount -t tmpfs -o size=2m none . && cd . && mkdir -m 700 -p co-nvim co-nvim/output";
    let (scene, _directory) = mounted(state);
    let full = scene.home.path().join("state/full");
    let full = full.display();
    let run = |command: &str, expected: &str| {
        scene.run(command);
        scene.wait_shell(expected);
    };
    let try_and_keep = |filled: bool, turns: u64| {
        let tried = "echo two > a.txt; echo two > b.txt";
        scene.server.reply(Reply::shell("c1", tried));
        scene.server.reply(Reply::text("All done."));
        scene.co("begin");
        scene.wait_ask("1/1");
        scene.answer("t");
        scene.nvim.wait_text("+ two");
        if filled {
            run(
                &format!("cat /dev/zero > {full}; echo fil$((0))led"),
                "fil0led",
            );
        }
        scene.answer("y");
        scene.wait_turns(turns);
    };
    scene.workspace.write("a.txt", "one\n");
    try_and_keep(true, 1);
    let told = scene.wait_chat("its changes were not kept: cannot write in ");
    assert!(
        told.contains("state/co-nvim/checkpoints/chats: No space left on device"),
        "{told}"
    );
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\n");
    assert!(!scene.workspace.exists("b.txt"));
    run(&format!("rm {full}; echo emp$((0))tied"), "emp0tied");
    try_and_keep(false, 2);
    scene.wait_chat("kept: 2 files");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "two\n");
    scene.co("/undo");
    scene.nvim.wait_text("/undo  +");
    scene.answer("y");
    scene.nvim.wait_text("taken back");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\n");
    assert!(!scene.workspace.exists("b.txt"));
}

#[test]
fn where_overlays_are_refused_commands_are_asked_about_and_the_reason_is_told() {
    if !may_mount() {
        return;
    }
    // The kernel refuses a third overlay, as it refuses one over a directory that ignores case.
    let overlay = |name: &str| {
        format!(
            "mkdir -p $HOME/tmp/{name}/up $HOME/tmp/{name}/work && mount -t overlay \
             -o userxattr,lowerdir=$PWD,upperdir=$HOME/tmp/{name}/up,workdir=$HOME/tmp/{name}/work none $PWD && cd $PWD"
        )
    };
    let (one, two) = (overlay("one"), overlay("two"));
    let two_overlays =
        format!("mkdir $HOME/tmp && mount -t tmpfs none $HOME/tmp && {one} && {two}");
    let (scene, _directory) = mounted(&two_overlays);
    scene.command("set columns=300");
    scene.replies([
        Reply::shell("c1", "echo two > a.txt; cat a.txt"),
        Reply::text("All done."),
    ]);
    scene.co("begin");
    scene.wait_ask("1/1");
    let next = "require('co.question').pending()[1]";
    scene.wait_for(
        &format!("{next} and not {next}.may_try"),
        "a question without t",
    );
    scene.answer("y");
    scene.wait_chat("All done.");
    let told = scene.outcome(1, "c1");
    assert!(
        told.contains("\ntwo\n") && !told.contains("trial"),
        "{told}"
    );
    scene.co("/sandbox");
    scene.wait_notice("; commands cannot run as trials here: an overlay over the file system of ");
}
