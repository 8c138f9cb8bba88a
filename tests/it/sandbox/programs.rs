//! The program that starts confined commands.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use co_exec::sandbox::Launcher;

use super::scene::{Scene, stdout, support};
use crate::support::DEADLINE;

/// Commands that fail at the read-only level, and succeed unconfined.
const FORBIDDEN: &[&str] = &[
    "cat ../home/.ssh/id",
    "cat link-to-key",
    "echo x > ../out/new",
    "echo x > new",
    "chmod 700 one.txt",
    "python3 -c 'import socket; socket.socket()'",
];

/// Replaces the launcher of a scene, by another process: see `copy_program`.
fn replace(scene: &Scene, text: &str) {
    let from = scene.out.join("program");
    fs::write(&from, text).unwrap();
    fs::set_permissions(&from, Permissions::from_mode(0o755)).unwrap();
    let mut cp = Command::new("cp");
    let copied = cp.args(["-f", "-p"]).arg(&from).arg(scene.exe()).status();
    assert!(copied.unwrap().success());
}

#[test]
fn the_launcher_confines() {
    let scene = Scene::new(None).with_probe(DEADLINE);
    assert_eq!(scene.launcher.support(), support());
    let (_, wrapped) = scene.confined(&scene.read_only(), &["true"]);
    assert_eq!(Path::new(&wrapped.argv[0]), scene.exe());

    let each = |line: &&str| format!("( {line} ) 2> /dev/null && echo WENT THROUGH\n");
    let script: String = FORBIDDEN.iter().map(each).collect();
    let script = format!("{script}echo 'AT THE END'");
    let done = scene.bash(&scene.read_only(), &script);
    assert_eq!(stdout(&done), "AT THE END\n", "{done:?}");
    let free = scene.free(&["bash", "-c", &script]).output().unwrap();
    let told = stdout(&free);
    let went_through = told.matches("WENT THROUGH").count();
    assert_eq!(went_through, FORBIDDEN.len(), "{told}");
}

/// Checks that a launcher that fails its probe starts nothing and tells the reason.
#[track_caller]
fn check_failed(scene: &Scene, limit: Duration, reason: &str) {
    let launcher = Launcher::new(scene.exe(), scene.home.clone(), Vec::new()).probe_limit(limit);
    assert!(!launcher.report().is_known());
    for level in [scene.read_only(), scene.workspace()] {
        let refused = launcher
            .wrap(
                level.level().unwrap(),
                vec!["true".into()],
                &mut Vec::new(),
                &scene.ws,
            )
            .unwrap_err();
        assert!(
            refused.to_string().contains("could not be tried"),
            "{refused}"
        );
        assert!(refused.to_string().contains(reason), "{refused}");
        assert_eq!(refused.to_string().lines().count(), 1, "{refused}");
    }
}

#[test]
fn a_probe_that_fails_is_told() {
    let scene = Scene::new(None);
    for (text, reason) in [
        ("garbage", "did not start"),
        ("#!/bin/sh\nexit 0\n", "gave no answer"),
        ("#!/bin/sh\necho '{}'\n", "gave no answer"),
        ("#!/bin/sh\necho no room >&2\nexit 1\n", "failed: no room"),
    ] {
        replace(&scene, text);
        check_failed(&scene, DEADLINE, reason);
    }
    fs::remove_file(scene.exe()).unwrap();
    check_failed(&scene, DEADLINE, "did not start");
}

#[test]
fn a_probe_that_hangs_is_ended_and_told() {
    let scene = Scene::new(None);
    // Nobody writes to the pipe, so it never opens.
    let pipe = scene.out.join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    replace(
        &scene,
        &format!("#!/bin/sh\nread line < '{}'\n", pipe.display()),
    );
    check_failed(&scene, Duration::from_secs(2), "took too long");
}

#[test]
fn only_the_plan_keeps_a_descriptor_open() {
    let scene = Scene::new(None);
    // A long script in the command's arguments is read from descriptor 3.
    let text = "IFS= read -r -d '' -u 3 script; exec 3<&-; eval \"$script\"";
    let open = "{ : <&3; } 2>/dev/null && echo open || echo closed";
    let (_, wrapped) = scene.confined(&scene.read_only(), &["bash", "-c", open, text]);
    let mut command = scene.plain("bash");
    command.args(["-c", "exec \"$@\" 3</dev/null", "bash"]);
    let output = command.args(&wrapped.argv).output().unwrap();
    assert_eq!(stdout(&output), "closed\n", "{output:?}");
}
