//! The backend killed at any moment, and commands that will not end.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{BINARY, eventually, holding};
use crate::support::pids::Pids;
use crate::support::proc;

/// Everything that leaves a group, ignores signals or multiplies.
const MIXED: &str = "
    sleep 3501 &
    setsid sleep 3502 &
    nohup sleep 3503 >/dev/null 2>&1 &
    (setsid sh -c 'sleep 3504 & sleep 3504' &)
    (trap '' TERM HUP; sleep 3505) &
    (setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 0.05; done' &)
    env -i sleep 3506 &
    (env -i setsid sh -c 'sleep 3509 & sleep 3509' &)
    for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.05; setsid sleep 3507 &' &); sleep 0.02; done
    wait";

fn pid_of(child: &std::process::Child) -> i32 {
    i32::try_from(child.id()).unwrap()
}

/// Returns a number below `most`, as the clock has it.
fn random(most: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish() % most
}

#[tokio::test]
async fn a_killed_backend_leaves_nothing() {
    let state = tempfile::tempdir().unwrap();
    let mut killed = Vec::new();
    let token = format!("co-test-fault-{}", std::process::id());
    // Found by their names: no other run of the tests may have the same.
    let own = std::process::id();
    let mixed = MIXED.replace("3506", &format!("3506.{own}"));
    let mixed = mixed.replace("3509", &format!("3509.{own}"));
    for round in 0..20 {
        let mut backend = Command::new(BINARY)
            .args(["exec", "--keep", "--json", &mixed])
            // It passes to commands.
            .env("LC_CO_TEST", &token)
            .env("XDG_STATE_HOME", state.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(random(400))).await;
        // Either of the two that the backend is: the other one sees to the rest.
        match proc::children(pid_of(&backend)).first() {
            Some(supervised) if round % 2 == 0 => proc::kill9(*supervised),
            _ => backend.kill().unwrap(),
        }
        killed.push(tokio::task::spawn_blocking(move || backend.wait()));
    }
    for backend in killed {
        backend.await.unwrap().unwrap();
    }
    eventually("no process with the token lives", || {
        holding(&token).is_empty()
    })
    .await;
    // Without their environment, and in a session of their own.
    for escaped in [3506, 3509] {
        let line = format!("sleep\0{escaped}.{own}");
        eventually("nor one without it", || holding(&line).is_empty()).await;
    }
}

/// As `nohup` starts it, and `&` in a script.
#[test]
fn a_command_ignores_nothing_that_the_backend_was_started_to_ignore() {
    let mut bash = Command::new("bash");
    let line = "trap '' HUP INT QUIT TERM; exec \"$0\" exec 'grep SigIgn: /proc/self/status'";
    let done = ran(bash.args(["-c", line, BINARY]));
    assert_eq!(mask(&done, "SigIgn:") & 0x4007, 0, "{done:?}");
}

/// As a program starts it that does so between blocking signals and hearing them.
#[test]
fn a_command_is_deaf_to_nothing_that_the_backend_was_started_to_be_deaf_to() {
    let mut env = Command::new("env");
    let line = "grep SigBlk: /proc/self/status";
    let done = ran(env.args(["--block-signal=USR1,TERM,CHLD", BINARY, "exec", line]));
    assert_eq!(mask(&done, "SigBlk:"), 0, "{done:?}");
}

/// As a service does that never waits for what it starts: whose parent ignores that signal cannot wait either.
#[test]
fn an_exit_is_known_where_the_parent_does_not_care_for_its_children() {
    // One that ends before the watchdog looks, and one that ends after that.
    for (command, code) in [("exit 3", 3), ("sleep 0.3; exit 4", 4)] {
        let mut env = Command::new("env");
        let done = ran(env.args(["--ignore-signal=CHLD", BINARY, "exec", command]));
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
    let unshare = |line: &str| {
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--map-root-user", "--pid", "--fork", "--mount-proc"])
            .args(["bash", "-c", line, BINARY]);
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

/// Runs `command` in the backend, where no more than 300 processes can be; returns its JSON.
async fn bomb(pids: &Pids, command: &str) -> (serde_json::Value, Duration) {
    let state = tempfile::tempdir().expect("a directory");
    let mut backend = pids.command(BINARY);
    backend
        .env("XDG_STATE_HOME", state.path())
        .args(["exec", "--json", "--timeout", "2", command])
        .stderr(Stdio::null());
    let began = Instant::now();
    let output = tokio::task::spawn_blocking(move || backend.output()).await;
    let took = began.elapsed();
    let output = output.expect("it ran").expect("it ran");
    let value = serde_json::from_slice(&output.stdout);
    (
        value.unwrap_or_else(|error| panic!("{error}: {output:?}")),
        took,
    )
}

#[tokio::test]
async fn a_fork_loop_is_ended() {
    let Some(pids) = Pids::new(300, None) else {
        eprintln!("root is held to no number of processes here");
        return;
    };
    for command in [
        "f() { f | f & }; f",
        "f() { f | f & }; f; sleep 30",
        "f() { (trap '' TERM; f | f) & }; f; sleep 1",
    ] {
        // It is found by that: another test has the same bomb.
        let mark = "# in plain runs";
        let (value, took) = bomb(&pids, &format!("{command} {mark}")).await;
        assert!(took < Duration::from_secs(12), "{command}: {took:?}");
        assert!(holding(mark).is_empty(), "{command}: {value}");
    }
}
