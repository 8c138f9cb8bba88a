//! Which program confines: the small one where it is ours and answers, else `co-nvim` itself.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use co_exec::sandbox::Support;

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

/// A scene whose programs are `prepare`d; `by` is which one confines, as people are told it.
#[track_caller]
fn check(prepare: impl FnOnce(&Scene), limit: Duration, by: &str) {
    let scene = Scene::new(None).with_trial(limit);
    prepare(&scene);
    assert_eq!(scene.launcher.support(), support());
    confines(&scene, by);
}

/// Whether the program that people are told of confines.
#[track_caller]
fn confines(scene: &Scene, by: &str) {
    let words = scene.launcher.words();
    assert!(words.contains(&format!(", by {by}")), "{words}");
    assert_eq!(words.lines().count(), 1, "{words}");
    let expected = if by == "co-launch" {
        scene.small()
    } else {
        scene.exe()
    };
    let (_, wrapped) = scene.confined(&scene.read_only(), &["true"]);
    assert_eq!(Path::new(&wrapped.argv[0]), expected);

    let each = |deed: &&str| format!("( {deed} ) 2> /dev/null && echo WENT THROUGH\n");
    let script: String = DEEDS.iter().map(each).collect();
    let script = format!("{script}echo 'AT THE END'");
    let done = scene.bash(&scene.read_only(), &script);
    assert_eq!(stdout(&done), "AT THE END\n", "{done:?}");
    let free = scene.free(&["bash", "-c", &script]).output().unwrap();
    let told = stdout(&free);
    assert_eq!(told.matches("WENT THROUGH").count(), DEEDS.len(), "{told}");
}

/// A program that says this of the kernel, and starts nothing.
fn says(support: &Support) -> String {
    let answer = serde_json::to_string(support).unwrap();
    format!("#!/bin/sh\nprintf '%s' '{answer}'\n")
}

/// A launcher that gets a plan with this stamp, which is what it would find if it were another itself.
fn of(stamp: &str) -> String {
    format!(
        "#!/bin/sh\none=$1 two=$2\nshift 2\nexec '{LAUNCHER}' \"$one\" \"{stamp} ${{two#* }}\" \"$@\"\n"
    )
}

#[test]
fn the_small_one_is_taken_where_it_is_there() {
    check(|_| {}, DEADLINE, "co-launch");
}

#[test]
fn a_script_that_starts_the_small_one_is_as_good() {
    // So what the fakes of the other tests lack is what is said there, and nothing else.
    let same = format!("#!/bin/sh\nexec '{LAUNCHER}' \"$@\"\n");
    check(|scene| replace(scene, &same, 0o755), DEADLINE, "co-launch");
}

#[test]
fn where_there_is_none_the_backend_confines() {
    let remove = |scene: &Scene| fs::remove_file(scene.small()).unwrap();
    let by = "co-nvim, slower: there is no co-launch beside it";
    check(remove, DEADLINE, by);
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
        let by = "co-nvim, slower: the trial of co-launch ended early: ";
        check(|scene| replace(scene, &other, 0o755), DEADLINE, by);
        let scene = Scene::new(None).with_trial(DEADLINE);
        let (mut command, wrapped) = scene.confined(&scene.read_only(), &["echo", "ran"]);
        // It was replaced after it was chosen, by an update.
        replace(&scene, &other, 0o755);
        let done = command.output().unwrap();
        drop(wrapped);
        assert_eq!(done.status.code(), Some(126), "{done:?}");
        assert!(done.stdout.is_empty(), "{done:?}");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.starts_with("co-launch: "), "{said}");
        assert!(
            said.contains(told) && said.contains("restart Neovim"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn one_that_is_no_launcher_is_not_taken() {
    let ended = "the trial of co-launch ended early";
    let mute = "the trial of co-launch gave no answer";
    let answer = says(support());
    for (text, mode, why) in [
        ("garbage", 0o755, ""),
        ("", 0o755, ""),
        ("#!/bin/sh\necho '{}'\n", 0o755, mute),
        ("#!/bin/sh\nexit 0\n", 0o755, mute),
        (&format!("{answer}exit 1\n"), 0o755, ended),
        (&answer, 0o644, ""),
        (&answer, 0o777, "co-launch can be written by others"),
    ] {
        let by = format!("co-nvim, slower: {why}");
        check(|scene| replace(scene, text, mode), DEADLINE, &by);
    }
    let by = "co-nvim, slower: co-launch is no regular file";
    let directory = |scene: &Scene| {
        fs::remove_file(scene.small()).unwrap();
        fs::create_dir(scene.small()).unwrap();
    };
    check(directory, DEADLINE, by);
    let link = |scene: &Scene| {
        fs::remove_file(scene.small()).unwrap();
        std::os::unix::fs::symlink(LAUNCHER, scene.small()).unwrap();
    };
    check(link, DEADLINE, by);
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
    let by = "co-nvim, slower: the trial of co-launch did not come to an end";
    check(hang, Duration::from_secs(2), by);
}

#[test]
fn one_that_holds_less_is_not_taken() {
    let why = Some("no mount\nnamespace: refused here".to_owned());
    let less = |support: Support| {
        says(&Support {
            why: why.clone(),
            ..support
        })
    };
    let all = || support().clone();
    let mut fakes = vec![
        less(Support { abi: None, ..all() }),
        less(Support {
            seccomp: false,
            ..all()
        }),
    ];
    if support().namespaces {
        fakes.push(less(Support {
            namespaces: false,
            ..all()
        }));
    }
    let by = "co-nvim, slower: co-launch holds less here (no mount namespace: refused here)";
    for fake in fakes {
        check(|scene| replace(scene, &fake, 0o755), DEADLINE, by);
    }
}

#[test]
fn one_that_holds_no_less_than_the_backend_is_taken() {
    let scene = Scene::new(None).with_trial(DEADLINE);
    let fewer = Support {
        namespaces: false,
        ..support().clone()
    };
    replace(&scene, &says(&fewer), 0o755);
    fs::remove_file(scene.exe()).unwrap();
    fs::copy(scene.small(), scene.exe()).unwrap();
    assert_eq!(scene.launcher.support(), &fewer);
    let words = scene.launcher.words();
    assert!(words.ends_with(", by co-launch"), "{words}");
}

#[test]
fn one_that_changes_after_its_trial_is_not_run() {
    let changes: [fn(&Scene, &str); 2] = [
        |scene, text| replace(scene, text, 0o755),
        |scene, text| {
            let to = scene.small().with_extension("new");
            fs::rename(scene.small(), &to).unwrap();
            replace(scene, text, 0o755);
        },
    ];
    for change in changes {
        let scene = Scene::new(None).with_trial(DEADLINE);
        confines(&scene, "co-launch");
        let marker = scene.out.join("it-ran");
        let marks = format!(
            "#!/bin/sh\n: > '{}'\nexec '{LAUNCHER}' \"$@\"\n",
            marker.display()
        );
        change(&scene, &marks);
        confines(
            &scene,
            "co-nvim, slower: co-launch was changed after its trial",
        );
        assert!(!marker.exists());
    }
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
        assert!(refused.0.contains("could not be tried"), "{refused}");
        assert_eq!(refused.0.lines().count(), 1, "{refused}");
    }
}

#[test]
fn the_doctor_says_which_one_it_is_and_why() {
    let check = |backend: &Path, by: &str| {
        let workspace = Workspace::new();
        let mut doctor = Command::new(backend);
        let done = doctor
            .args(["doctor", "--json"])
            .current_dir(workspace.path())
            .env("HOME", workspace.path())
            .output()
            .unwrap();
        let checks: Vec<serde_json::Value> = serde_json::from_slice(&done.stdout).unwrap();
        let sandbox = checks.iter().find(|check| check["name"] == "sandbox");
        let said = sandbox.unwrap()["message"].as_str().unwrap();
        assert!(said.ends_with(&format!(", by {by}")), "{said}");
    };
    check(Path::new(BACKEND), "co-launch");
    let scene = Scene::new(None);
    replace(&scene, &says(support()), 0o777);
    let by = "co-nvim, slower: co-launch can be written by others than its owner";
    check(&scene.exe(), by);
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
