//! A confined command takes so little of what all programs of a user share that the others go on.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::hostile::python;
use super::scene::{SOMEBODY, am_root, support};
use super::user_home::UserHome;
use crate::support::runner::OLDER;

/// The limits of processes and of open files in these tests.
const PROCESSES: u64 = 40;
const FILES: u64 = 100;
/// The limit of the memory of a command.
const MEMORY: u64 = 200 << 20;

/// Counts the open files, pending signals and timers that it can get, tries to get more, and says so.
const TAKES: &str = r#"
import ctypes, fcntl, json, os, resource, signal
libc = ctypes.CDLL(None, use_errno=True)

def most(take):
    count = 0
    while count < 20000 and take():
        count += 1
    return count

def open_one():
    try:
        return held.append(os.open("/dev/null", os.O_RDONLY)) is None
    except OSError:
        return False

held = []
for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_SIGPENDING, resource.RLIMIT_NPROC):
    try:
        resource.setrlimit(limit, (20000, 20000))
    except (OSError, ValueError):
        pass
files = most(open_one)
for descriptor in held:
    os.close(descriptor)
timer = ctypes.c_void_p()
timers = most(lambda: libc.timer_create(0, None, ctypes.byref(timer)) == 0)
try:
    pipe = fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)
except OSError:
    pipe = 0
print(json.dumps({"files": files, "timers": timers, "pipe": pipe}), flush=True)
"#;

/// Starts threads while co pauses between two checks, and tells their number as long as it can.
const MULTIPLIES: &str = r"
import threading, time
wait = threading.Event()
threading.stack_size(1 << 16)
time.sleep(0.8)
try:
    for count in range(2, 2000):
        threading.Thread(target=wait.wait, daemon=True).start()
        print(count, flush=True)
except RuntimeError:
    wait.wait()
";

/// Takes a part of what is shared.
const QUOTAS: &str = include_str!("quotas.py");

/// The programs of [`QUOTAS`], the quota that each exceeds, and whether a level must let it write or send messages.
const TAKERS: [(&str, &str, bool); 7] = [
    ("epolls", "epolls", false),
    ("watches_of_one", "watches-of-one", false),
    ("watches", "watches", false),
    ("waiting_epolls", "watches-of-one", true),
    ("waiting_descriptors", "waiting-descriptors", true),
    ("descriptors", "descriptors", true),
    ("unreadable", "epolls", true),
];

const READ_ONLY: &[&str] = &["--read-only"];
const TRIAL: &[&str] = &["--try", "--drop"];
const WORKSPACE: &[&str] = &["--backend", "landlock"];

/// Runs a program of [`QUOTAS`] at a level as a user, on a kernel that seems `older`, and returns the outcome.
fn take(user: Option<u32>, older: &[&str], level: &[&str], program: &str) -> Value {
    // Two of them together would have more of their user's descriptors in sockets than the kernel allows.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let home = UserHome::new(user);
    // Its open files cannot be read by an ordinary user.
    let unreadable = home.work().join("unreadable");
    fs::copy("/usr/bin/sleep", &unreadable).unwrap();
    fs::set_permissions(&unreadable, Permissions::from_mode(0o111)).unwrap();
    home.give(&unreadable);
    let mut command = home.command(python());
    command
        .args(["-c", OLDER])
        .args(older)
        .arg(home.exe())
        .args(["exec", "--json", "--timeout", "50"])
        .args(level)
        .args(["--", python(), "-c", QUOTAS, program]);
    let done = command.output().unwrap();
    serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"))
}

#[track_caller]
fn takes_too_much(user: Option<u32>, older: &[&str], level: &[&str], program: &str, quota: &str) {
    let told = take(user, older, level, program);
    let limit = &told["limit"]["quota"];
    let is_told = limit == quota || !limit[quota].is_null();
    assert!(is_told, "{user:?} {older:?} {level:?} {program}: {told}");
    let output = told["output"].as_str().unwrap();
    assert!(output.starts_with("[ended: it took "), "{told}");
}

#[test]
fn what_a_trial_takes_of_all_programs_files_is_counted() {
    for (program, quota, _) in TAKERS {
        takes_too_much(am_root().then_some(SOMEBODY), &["0"], TRIAL, program, quota);
        // Root can read all files.
        if am_root() && program != "unreadable" {
            takes_too_much(None, &["1"], TRIAL, program, quota);
        }
    }
}

#[test]
fn what_other_levels_take_of_all_programs_files_is_counted() {
    let user = am_root().then_some(SOMEBODY);
    for (program, quota, works) in TAKERS {
        takes_too_much(user, &["--no-namespaces", "1"], WORKSPACE, program, quota);
        if !works {
            takes_too_much(user, &["0"], READ_ONLY, program, quota);
        }
    }
}

#[test]
fn the_buffers_of_connections_are_counted_also_if_nobody_has_them_open() {
    let user = am_root().then_some(SOMEBODY);
    takes_too_much(user, &["0"], TRIAL, "network_buffers", "network-buffers");
}

#[test]
fn a_command_that_works_takes_no_more_than_it_needs() {
    for level in [TRIAL, WORKSPACE] {
        let told = take(am_root().then_some(SOMEBODY), &["0"], level, "wishes");
        let got: Value = serde_json::from_str(told["output"].as_str().unwrap())
            .unwrap_or_else(|error| panic!("{error}: {told}"));
        let wanted =
            json!({"files": 1024, "pipe": 1, "buffer": 0, "huge": 12, "allocated": 100_000});
        assert_eq!(got, wanted, "{level:?}: {told}");
    }
}

/// Runs a program at a level, as an ordinary user.
fn run(level: &[&str], argv: &[&str], settings: &[(&str, u64)]) -> Value {
    let home = UserHome::new(am_root().then_some(SOMEBODY));
    let mut command = home.exec();
    command
        .args(["--json", "--timeout", "50"])
        .args(level)
        .arg("--")
        .args(argv);
    for (name, value) in settings {
        command.env(name, value.to_string());
    }
    let done = command.output().unwrap();
    serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"))
}

#[test]
fn files_signals_and_pipes_are_few_and_stay_so() {
    let told = run(
        READ_ONLY,
        &[python(), "-c", TAKES],
        &[("CO_CLI_UNASKED_OPEN_FILES", FILES)],
    );
    let took: Value = serde_json::from_str(told["output"].as_str().unwrap()).unwrap();
    assert!(took["files"].as_u64().unwrap() < FILES, "{told}");
    assert!(took["timers"].as_u64().unwrap() <= 1024, "{told}");
    assert_eq!(took["pipe"], 0, "{told}");
}

#[test]
fn the_kernel_refuses_the_threads_above_the_limit() {
    if !support().namespaces {
        eprintln!("without a user namespace, the kernel counts the person's processes too");
        return;
    }
    let told = run(
        READ_ONLY,
        &[python(), "-c", MULTIPLIES],
        &[("CO_CLI_UNASKED_PROCESSES", PROCESSES)],
    );
    let output = told["output"].as_str().unwrap();
    let started = output.lines().filter_map(|line| line.parse::<u64>().ok());
    assert!(started.max().unwrap() <= PROCESSES + 16, "{told}");
    assert_eq!(told["limit"]["processes"], PROCESSES, "{told}");
}

#[test]
fn files_in_memory_are_counted_without_a_cgroup() {
    // An ordinary user has no cgroup here.
    for level in [TRIAL, WORKSPACE] {
        let told = run(
            level,
            &[python(), "-c", QUOTAS, "files_in_memory"],
            &[("CO_CLI_SHELL_MEMORY", MEMORY)],
        );
        assert_eq!(told["limit"]["memory"], MEMORY, "{level:?}: {told}");
    }
}
