//! The backend killed at any moment, and commands that will not end.

use std::process::{Command, Output, Stdio};

use super::{BACKEND, holding};

/// `nohup`, and `&` in a script, start programs that ignore signals.
#[test]
fn a_command_ignores_nothing_that_the_backend_was_started_to_ignore() {
    let mut bash = Command::new("bash");
    let line = "trap '' HUP INT QUIT TERM; exec \"$0\" exec 'grep SigIgn: /proc/self/status'";
    let done = ran(bash.args(["-c", line, BACKEND]));
    assert_eq!(mask(&done, "SigIgn:") & 0x4007, 0, "{done:?}");
}

/// A program may start the backend while it blocks signals.
#[test]
fn a_command_is_deaf_to_nothing_that_the_backend_was_started_to_be_deaf_to() {
    let mut env = Command::new("env");
    let line = "grep SigBlk: /proc/self/status";
    let done = ran(env.args(["--block-signal=USR1,TERM,CHLD", BACKEND, "exec", line]));
    assert_eq!(mask(&done, "SigBlk:"), 0, "{done:?}");
}

/// A service that never waits for its children ignores SIGCHLD. Its children inherit this and cannot wait either.
#[test]
fn an_exit_is_known_where_the_parent_does_not_care_for_its_children() {
    // One that ends before the watchdog looks, and one that ends after that.
    for (command, code) in [("exit 3", 3), ("sleep 0.3; exit 4", 4)] {
        let mut env = Command::new("env");
        let done = ran(env.args(["--ignore-signal=CHLD", BACKEND, "exec", command]));
        assert_eq!(done.status.code(), Some(code), "{done:?}");
    }
}

fn ran(command: &mut Command) -> Output {
    let state = tempfile::tempdir().unwrap();
    command.env("XDG_STATE_HOME", state.path());
    command.output().unwrap()
}

/// Returns the signals that a line of `/proc/self/status` names.
fn mask(done: &Output, name: &str) -> u64 {
    let told = String::from_utf8_lossy(&done.stdout);
    let mask = told.trim().strip_prefix(name).map(str::trim);
    u64::from_str_radix(mask.unwrap_or_else(|| panic!("{done:?}")), 16).unwrap()
}

/// A shell that entered a pid namespace leads its own group, in a session whose leader is not there.
#[test]
fn it_runs_where_its_session_has_no_id() {
    let state = tempfile::tempdir().unwrap();
    let unshare = |line: &str| {
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--map-root-user", "--pid", "--fork", "--mount-proc"])
            .args(["bash", "-c", line, BACKEND]);
        unshare.env("XDG_STATE_HOME", state.path());
        unshare.stdin(Stdio::null()).output().unwrap()
    };
    if !unshare("true").status.success() {
        eprintln!("no pid namespace to be had here");
        return;
    }
    let done = unshare("set -m; ps -o sid= -p $$; \"$0\" exec 'sleep 3508 & echo hi'; exit $?");
    let told = String::from_utf8_lossy(&done.stdout);
    let (session, output) = told.split_once('\n').unwrap();
    assert_eq!(session.trim(), "0", "{done:?}");
    assert!(output.starts_with("hi\n"), "{done:?}");
    assert!(done.status.success(), "{done:?}");
    assert!(holding("sleep\x003508").is_empty());
}
