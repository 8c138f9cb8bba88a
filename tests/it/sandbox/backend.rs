//! `sandbox_backend = "landlock"` as a person has it: approved commands, `:Co!`, and the command line.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::support::chat::Chat;
use crate::support::http::Reply;
use crate::support::proc;
use crate::support::workspace::Workspace;
use crate::support::{BACKEND, DEADLINE};

fn landlocked() -> Chat {
    Chat::start(Workspace::new(), &json!({ "sandbox_backend": "landlock" }))
}

#[test]
fn an_approved_command_writes_in_the_workspace_alone() {
    let outside = tempfile::tempdir().unwrap();
    let out = outside.path().join("out");
    let chat = landlocked();
    let command = format!("echo in > inside; echo out > {}", out.display());
    chat.server.reply(Reply::shell("c1", &command));
    chat.server.reply(Reply::text("Half of it."));
    chat.co(" write");
    let screen = chat.answer("co 1/1", "y").join("\n");
    assert!(screen.contains("landlock"), "{screen}");
    chat.wait_turns(1);
    let told = chat.server.requests()[1].last("tool").unwrap();
    assert!(told.contains("[exit 1]"), "{told}");
    assert_eq!(chat.workspace.read("inside").as_deref(), Some("in\n"));
    assert!(!out.exists());
}

#[test]
fn a_run_writes_in_the_workspace_alone_and_tells_what_appeared() {
    let outside = tempfile::tempdir().unwrap();
    let out = outside.path().join("out");
    let chat = landlocked();
    chat.co(&format!(
        "! echo in > inside; echo x > .envrc; echo out > {}",
        out.display()
    ));
    let shell = chat.wait_buffer("co://shell", "exit 1");
    assert!(
        shell.contains("made, and run by other programs unasked: "),
        "{shell}"
    );
    assert!(shell.contains("/.envrc"), "{shell}");
    assert_eq!(chat.workspace.read("inside").as_deref(), Some("in\n"));
    assert!(!out.exists());
}

#[test]
fn the_command_line_has_both_levels() {
    let workspace = Workspace::new();
    let outside = tempfile::tempdir().unwrap();
    let out = outside.path().join("out");
    let script = format!(
        "echo in > inside; echo out > {}; echo \"$TMPDIR\"; echo x > $TMPDIR/x",
        out.display()
    );
    for (level, args, wrote) in [
        ("read-only", &["--read-only"][..], false),
        ("workspace", &["--backend", "landlock"], true),
        ("plain", &["--backend", "subprocess"], true),
    ] {
        let done = Command::new(BACKEND)
            .arg("exec")
            .args(args)
            .args(["--json", &script])
            .current_dir(workspace.path())
            .env("HOME", outside.path())
            .output()
            .unwrap();
        let told: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(told["level"], level, "{told}");
        assert_eq!(workspace.exists("inside"), wrote, "{told}");
        assert_eq!(out.exists(), level == "plain", "{told}");
        let _ = fs::remove_file(workspace.path().join("inside"));
    }
}

/// Nobody is left to remove it; it is told by its age, and by that nobody holds it.
#[test]
fn what_a_killed_backend_left_is_removed_by_a_later_one() {
    let tmp = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let exec = |command: &str| {
        let mut exec = Command::new(BACKEND);
        exec.args(["exec", "--read-only", command])
            .env("TMPDIR", tmp.path())
            .env("XDG_STATE_HOME", state.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        exec.spawn().unwrap()
    };
    let mut killed = exec("echo x > $TMPDIR/x; echo up; sleep 30");
    let mut up = [0; 2];
    killed.stdout.take().unwrap().read_exact(&mut up).unwrap();
    let backend = proc::children(i32::try_from(killed.id()).unwrap())[0];
    proc::kill9(backend);
    killed.wait().unwrap();
    let entries = || fs::read_dir(tmp.path()).unwrap().flatten();
    let left: Vec<_> = entries().map(|entry| entry.path()).collect();
    let [left] = &left[..] else {
        panic!("one directory was left: {left:?}");
    };
    let old = SystemTime::now() - Duration::from_secs(3600);
    fs::File::open(left).unwrap().set_modified(old).unwrap();
    proc::wait_until(DEADLINE, "its removal", || {
        assert!(exec("true").wait().unwrap().success());
        (!left.exists()).then_some(())
    });
}
