//! Which program confines: the small one where it is ours and answers, else `co-nvim` itself.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::scene::{Scene, stdout, support};
use crate::support::workspace::Workspace;
use crate::support::{BACKEND, DEADLINE, LAUNCHER};

/// What must not work at the read-only level, and works free.
const DEEDS: &[&str] = &[
    "cat ../home/.ssh/id",
    "cat link-to-key",
    "echo x > ../out/new",
    "echo x > new",
    "chmod 700 one.txt",
    "python3 -c 'import socket; socket.socket()'",
];

/// Puts a file in the place of the small program, by another process: see `copy_programs`.
fn replace(scene: &Scene, text: &str, mode: u32) {
    let from = scene.out.join("program");
    fs::write(&from, text).unwrap();
    fs::set_permissions(&from, Permissions::from_mode(mode)).unwrap();
    let mut cp = Command::new("cp");
    let copied = cp.args(["-f", "-p"]).arg(&from).arg(scene.small()).status();
    assert!(copied.unwrap().success());
}

/// A scene whose small program is `prepare`d, and what it is tried for.
#[track_caller]
fn check(prepare: impl FnOnce(&Scene), limit: Duration, expected: impl FnOnce(&Scene) -> PathBuf) {
    let scene = Scene::new(None).with_trial(limit);
    prepare(&scene);
    assert_eq!(scene.launcher.support(), support());
    let expected = expected(&scene);
    let (_, wrapped) = scene.confined(&scene.read_only(), &["true"]);
    assert_eq!(Path::new(&wrapped.argv[0]), expected);
    let name = expected.file_name().unwrap().to_str().unwrap();
    let words = scene.launcher.words();
    assert!(words.ends_with(&format!(", by {name}")), "{words}");

    let each = |deed: &&str| format!("( {deed} ) 2> /dev/null && echo WENT THROUGH\n");
    let script: String = DEEDS.iter().map(each).collect();
    let script = format!("{script}echo 'AT THE END'");
    let done = scene.bash(&scene.read_only(), &script);
    assert_eq!(stdout(&done), "AT THE END\n", "{done:?}");
    let free = scene.free(&["bash", "-c", &script]).output().unwrap();
    let told = stdout(&free);
    assert_eq!(told.matches("WENT THROUGH").count(), DEEDS.len(), "{told}");
}

/// A launcher that gets a plan with this stamp, which is what it would find if it were another itself.
fn of(stamp: &str) -> String {
    format!(
        "#!/bin/sh\none=$1 two=$2\nshift 2\nexec '{LAUNCHER}' \"$one\" \"{stamp} ${{two#* }}\" \"$@\"\n"
    )
}

#[test]
fn the_small_one_is_taken_where_it_is_there() {
    check(|_| {}, DEADLINE, Scene::small);
}

#[test]
fn a_script_that_starts_the_small_one_is_as_good() {
    // So what the fakes of the other tests lack is what is said there, and nothing else.
    let same = format!("#!/bin/sh\nexec '{LAUNCHER}' \"$@\"\n");
    check(|scene| replace(scene, &same, 0o755), DEADLINE, Scene::small);
}

#[test]
fn where_there_is_none_the_backend_confines() {
    let remove = |scene: &Scene| fs::remove_file(scene.small()).unwrap();
    check(remove, DEADLINE, Scene::exe);
}

#[test]
fn one_of_another_version_or_build_is_not_taken() {
    let version = env!("CARGO_PKG_VERSION");
    for (stamp, told) in [
        ("9.9.9", "co 9.9.9 "),
        ("9.9.9/0123456789abcdef", "co 9.9.9 "),
        (version, "another build"),
        (&format!("{version}/0123456789abcdef"), "another build"),
    ] {
        let other = of(stamp);
        check(|scene| replace(scene, &other, 0o755), DEADLINE, Scene::exe);
        let scene = Scene::new(None).with_trial(DEADLINE);
        let (mut command, wrapped) = scene.confined(&scene.read_only(), &["echo", "ran"]);
        // It was replaced after the trial, by an update.
        replace(&scene, &other, 0o755);
        let done = command.output().unwrap();
        drop(wrapped);
        assert_eq!(done.status.code(), Some(126), "{done:?}");
        assert!(done.stdout.is_empty(), "{done:?}");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(
            said.contains(told) && said.contains("restart Neovim"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn one_that_is_no_launcher_is_not_taken() {
    let answer = serde_json::to_string(support()).unwrap();
    for (text, mode) in [
        ("garbage".to_owned(), 0o755),
        (String::new(), 0o755),
        ("#!/bin/sh\necho '{}'\n".to_owned(), 0o755),
        ("#!/bin/sh\nexit 0\n".to_owned(), 0o755),
        (format!("#!/bin/sh\necho '{answer}'\nexit 1\n"), 0o755),
        (format!("#!/bin/sh\necho '{answer}'\n"), 0o644),
        (format!("#!/bin/sh\necho '{answer}'\n"), 0o777),
    ] {
        check(|scene| replace(scene, &text, mode), DEADLINE, Scene::exe);
    }
    let directory = |scene: &Scene| {
        fs::remove_file(scene.small()).unwrap();
        fs::create_dir(scene.small()).unwrap();
    };
    check(directory, DEADLINE, Scene::exe);
    let link = |scene: &Scene| {
        fs::remove_file(scene.small()).unwrap();
        std::os::unix::fs::symlink(LAUNCHER, scene.small()).unwrap();
    };
    check(link, DEADLINE, Scene::exe);
}

#[test]
fn one_that_hangs_is_ended_and_not_taken() {
    // Nobody writes to the pipe, so it is never open.
    let hang = |scene: &Scene| {
        let pipe = scene.out.join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let text = format!("#!/bin/sh\nread line < '{}'\n", pipe.display());
        replace(scene, &text, 0o755);
    };
    check(hang, Duration::from_secs(2), Scene::exe);
}

#[test]
fn where_neither_is_ours_nothing_is_confined_and_nothing_runs() {
    let scene = Scene::new(None).with_trial(DEADLINE);
    replace(&scene, "#!/bin/sh\nexit 0\n", 0o755);
    fs::remove_file(scene.exe()).unwrap();
    fs::copy(scene.small(), scene.exe()).unwrap();
    for level in [scene.read_only(), scene.workspace()] {
        let refused = scene
            .launcher
            .wrap(&level, vec!["true".into()], &mut Vec::new(), &scene.ws)
            .unwrap_err();
        assert!(refused.0.contains("cannot confine a command"), "{refused}");
        assert_eq!(refused.0.lines().count(), 1, "{refused}");
    }
}

#[test]
fn the_doctor_says_which_one_it_is() {
    let workspace = Workspace::new();
    let mut doctor = Command::new(BACKEND);
    let done = doctor
        .args(["doctor", "--json"])
        .current_dir(workspace.path())
        .env("HOME", workspace.path())
        .output()
        .unwrap();
    let checks: Vec<serde_json::Value> = serde_json::from_slice(&done.stdout).unwrap();
    let sandbox = checks.iter().find(|check| check["name"] == "sandbox");
    let said = sandbox.unwrap()["message"].as_str().unwrap();
    assert!(said.ends_with(", by co-launch"), "{said}");
}
