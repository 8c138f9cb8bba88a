//! A command that looks takes so little of what all programs of a user share that the others go on.

use std::fs;

use serde_json::Value;

use super::hostile::python;
use super::scene::{SOMEBODY, am_root, support};
use super::user_home::UserHome;

/// The limits of processes and of open files in these tests.
const PROCESSES: u64 = 40;
const FILES: u64 = 100;

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

/// Runs a program at the read-only level, as an ordinary user.
fn run(argv: &[&str], settings: &[(&str, u64)]) -> Value {
    let home = UserHome::new(am_root().then_some(SOMEBODY));
    let mut command = home.exec();
    command
        .args(["--json", "--read-only", "--timeout", "50", "--"])
        .args(argv);
    for (name, value) in settings {
        command.env(name, value.to_string());
    }
    let done = command.output().unwrap();
    let told: Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"));
    assert_eq!(told["level"], "read-only", "{told}");
    told
}

#[test]
fn files_signals_and_pipes_are_few_and_stay_so() {
    let told = run(
        &[python(), "-c", TAKES],
        &[("CO_CLI_UNASKED_OPEN_FILES", FILES)],
    );
    let took: Value = serde_json::from_str(told["output"].as_str().unwrap()).unwrap();
    assert!(took["files"].as_u64().unwrap() < FILES, "{told}");
    assert!(took["timers"].as_u64().unwrap() <= 1024, "{told}");
    assert_eq!(took["pipe"], 0, "{told}");
}

#[test]
fn by_default_their_watches_leave_most_of_the_users() {
    let told = run(&["bash", "-c", "ulimit -Hn"], &[]);
    let files: u64 = told["output"].as_str().unwrap().trim().parse().unwrap();
    let watches = fs::read_to_string("/proc/sys/fs/epoll/max_user_watches").unwrap();
    let watches: u64 = watches.trim().parse().unwrap();
    let processors = std::thread::available_parallelism().unwrap().get() as u64;
    let most = (files / 2).pow(2) * (64 + 2 * processors);
    assert!(
        most < watches / 2,
        "{files} files: {most} of {watches} watches"
    );
}

#[test]
fn the_kernel_refuses_the_threads_above_the_limit() {
    if !support().namespaces {
        eprintln!("without a user namespace, the kernel counts the person's processes too");
        return;
    }
    let told = run(
        &[python(), "-c", MULTIPLIES],
        &[("CO_CLI_UNASKED_PROCESSES", PROCESSES)],
    );
    let output = told["output"].as_str().unwrap();
    let started = output.lines().filter_map(|line| line.parse::<u64>().ok());
    assert!(started.max().unwrap() <= PROCESSES + 16, "{told}");
    assert_eq!(told["limit"]["processes"], PROCESSES, "{told}");
}
