//! Commands that multiply: free, each fills the place it is in; at no level does one outlive its end.
//!
//! All of them run where no more than so many processes can be, and for so long.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::hostile::python;
use super::scene::am_root;
use super::user_home::UserHome;
use crate::support::pids::Pids;
use crate::support::{DEADLINE, proc};

/// The most processes at one time.
const MAX_PROCESSES: u32 = 80;
/// The limit of processes for these commands.
const PROCESS_LIMIT: u32 = 30;
/// So many processes show that the command would not have stopped by itself.
const MANY: usize = 20;
/// A user that is neither the tests' own nor that of another test.
const SOMEBODY: u32 = 54_322;
/// The user of the comets, which have a process limit of their own.
const COMETS: u32 = 54_326;
/// The user of the processes that free much memory.
const ENDING: u32 = 54_327;

const BOMBS: [(&str, &str); 5] = [
    ("calls itself twice", "f() { f | f & }; f; sleep 30"),
    ("whose leader is gone", "f() { f | f & }; f"),
    (
        "deaf to TERM",
        "trap '' TERM HUP; f() { f | f & }; f; sleep 30",
    ),
    (
        "each in a session of its own",
        "f() { for i in 1 2; do setsid bash -c \"$(declare -f f); f\" & done; }; f; sleep 30",
    ),
    (
        "without a shell",
        "python3 -c 'import os, time\nwhile True:\n try: os.fork()\n except OSError: time.sleep(.01)'",
    ),
];

/// The words of the system if a process cannot be started. The other processes of a user may fill the place too.
const FULL: &str = "Resource temporarily unavailable";

/// Becomes the parent of all orphans, so that none stays in the tests' own process when it has ended.
const REAPER: &str = "import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
if os.fork() == 0: os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try: os.wait()
    except ChildProcessError: break";

/// Each generation leaves its session, forks and ends, for some seconds.
const COMET: &str = "python3 -c 'import os, time
end = time.monotonic() + 20
while time.monotonic() < end:
    try:
        if os.fork(): os._exit(0)
        os.setsid()
    except OSError: pass' & sleep 0.2";

/// Frees much memory at the end of each process. Meanwhile, the kernel hides the files of the process from its own user.
const LARGE_PROCESSES: &str = "python3 -c 'import os, time
files = [open(\"/dev/null\") for _ in range(200)]
end = time.monotonic() + 2
while time.monotonic() < end:
    if not os.fork():
        memory = b\"x\" * (200 << 20)
        os._exit(0)
    os.wait()'";

/// Runs a command after everything that other tests need.
const NICE: [&str; 5] = ["nice", "-n", "19", "bash", "-c"];

const LEVELS: [(&str, &[&str]); 3] = [
    ("none", &[]),
    ("read-only", &["--read-only"]),
    ("workspace", &["--backend", "landlock"]),
];

/// The place of the commands, and their user.
struct Place {
    home: UserHome,
    pids: Pids,
}

impl Place {
    /// None where root cannot be held to a number.
    fn new(user: Option<u32>) -> Option<Self> {
        let pids = Pids::new(MAX_PROCESSES, user)?;
        let home = UserHome::new(user);
        Some(Self { home, pids })
    }

    /// A command in the place; what it starts can be told by `token`.
    fn command(&self, program: &Path, token: &str) -> Command {
        let program = program.to_str().unwrap();
        let mut command = self.home.own(self.pids.command(program));
        // The variable passes to commands.
        command.env("LC_CO_TEST", token);
        command
    }

    /// Checks that a bomb would not stop by itself, and ends it.
    fn free(&self, what: &str, bomb: &str) {
        let token = token();
        let mut command = self.command(Path::new(python()), &token);
        command.args(["-c", REAPER]).args(NICE).arg(bomb);
        let mut reaper = command.stderr(Stdio::null()).spawn().unwrap();
        let mut most = 0;
        let end = Instant::now() + DEADLINE;
        while most < MANY && Instant::now() < end {
            most = most.max(bombs(&token).len());
        }
        // One look may miss those that are just becoming another program: who waits for all of them knows.
        let status = loop {
            if let Some(status) = reaper.try_wait().unwrap() {
                break status;
            }
            end_all(&token);
        };
        // A reaper that had to be killed left processes, which fill the place.
        assert!(status.success(), "{what}: {status}");
        assert!(most >= MANY, "{what}: {most} processes at the most");
    }

    /// Runs a bomb by the backend, checks that nothing of it is left, and returns the outcome.
    fn exec(&self, set: impl Fn(&mut Command), bomb: &str) -> Value {
        let done = proc::wait_until(DEADLINE, "room for the backend", || {
            let token = token();
            let mut command = self.command(&self.home.exe(), &token);
            command.args(["exec", "--json"]);
            set(&mut command);
            let done = command.arg("--").args(NICE).arg(bomb).output().unwrap();
            for _ in 0..10 {
                let left = proc::holding(&token);
                assert!(left.is_empty(), "{command:?}: {left:?}");
            }
            let is_full = done.stdout.is_empty() && text(&done.stderr).contains(FULL);
            (!is_full).then_some(done)
        });
        serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"))
    }

    /// Checks that nothing of a bomb is left when the backend has told its outcome.
    fn ended(&self, what: &str, bomb: &str) {
        for (level, args) in LEVELS {
            let began = Instant::now();
            let set = |exec: &mut Command| {
                exec.args(["--timeout", "1"]).args(args);
            };
            let told = self.exec(set, bomb);
            assert!(began.elapsed() < Duration::from_secs(30), "{what}, {level}");
            assert_eq!(told["level"], level, "{what}: {told}");
        }
    }
}

/// Every generation that runs when the command ends is found and ended. One look would often miss it.
fn no_comet_goes_on(place: &Place) {
    for (level, args) in LEVELS {
        for _ in 0..6 {
            // One that has ended keeps its place until it is reaped.
            proc::wait_until(DEADLINE, "the end of the comets before", || {
                let left = proc::of_user_with_ended(COMETS);
                (!am_root() || left.is_empty()).then_some(())
            });
            let set = |exec: &mut Command| {
                exec.args(args);
            };
            let told = proc::wait_until(DEADLINE, "room for a comet", || {
                let told = place.exec(set, COMET);
                let output = told["output"].as_str();
                let output = output.unwrap_or_else(|| panic!("{told}"));
                let is_full = output.contains(FULL);
                (!is_full).then_some(told)
            });
            let named = told["background"].as_array().map_or(0, Vec::len);
            assert!(named > 0, "{level}: {told}");
        }
    }
}

/// co kills a fork bomb for its number of processes, and the outcome says so.
fn limited(place: &Place) {
    let (what, bomb) = BOMBS[0];
    for (level, args) in LEVELS {
        let set = |exec: &mut Command| {
            exec.env("CO_CLI_SHELL_PROCESSES", PROCESS_LIMIT.to_string());
            exec.args(["--timeout", "50"]).args(args);
        };
        let told = place.exec(set, bomb);
        let limit = &told["limit"]["processes"];
        assert_eq!(*limit, PROCESS_LIMIT, "{what}, {level}: {told}");
    }
}

/// The processes with `token`, without the reaper and the program that limits its time.
fn bombs(token: &str) -> Vec<i32> {
    let mut found = proc::holding(token);
    found.retain(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        !text(&line).contains(REAPER)
    });
    found
}

/// Ends all processes with `token`. Those that are stopped keep their places, so that none of the others can start one
/// more in the place of one that has ended.
fn end_all(token: &str) {
    let mut stopped = Vec::new();
    loop {
        let found = bombs(token);
        if found == stopped {
            break;
        }
        found.iter().copied().for_each(proc::stop);
        stopped = found;
    }
    stopped.into_iter().for_each(proc::kill9);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn token() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("co-test-bomb-{}-{number}.", std::process::id())
}

fn check(user: Option<u32>) {
    let Some(place) = Place::new(user) else {
        eprintln!(
            "root is held to no number of processes here, so nothing that multiplies is started"
        );
        return;
    };
    for (what, bomb) in BOMBS {
        place.free(what, bomb);
        place.ended(what, bomb);
    }
    limited(&place);
}

#[test]
fn a_process_that_frees_its_memory_exceeds_no_limit() {
    let Some(place) = Place::new(am_root().then_some(ENDING)) else {
        return;
    };
    for (level, args) in LEVELS {
        let set = |exec: &mut Command| {
            exec.args(args);
        };
        let told = place.exec(set, LARGE_PROCESSES);
        assert_eq!(told["ok"], true, "{level}: {told}");
    }
}

#[test]
fn no_comet_outlives_its_command() {
    let user = am_root().then_some(COMETS);
    if let Some(place) = Place::new(user) {
        no_comet_goes_on(&place);
    }
}

#[test]
fn as_whoever_runs_the_tests_none_outlives_its_end() {
    check(None);
}

#[test]
fn as_an_ordinary_user_none_outlives_its_end() {
    // Where the tests run as an ordinary user, the other test has shown it.
    if am_root() {
        check(Some(SOMEBODY));
    }
}
