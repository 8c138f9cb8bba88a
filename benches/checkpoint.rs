//! Measures a checkpoint of 10,000 files: `cargo bench --bench checkpoint`. Ends with 1 if a limit is passed.
//!
//! Checkpoints and the programs that look at the same files take turns. Each file has 4 KiB.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops where it cannot"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use co::checkpoint::Checkpoints;
use co::tool::judge::{Judge, JudgeConfig};

const FILES: usize = 10_000;
const ROUNDS: usize = 50;
/// The most time that a checkpoint may take, as a multiple of `git status`.
const TARGET: f64 = 3.0;
/// The time that a checkpoint may take on a machine that does nothing else.
const MOST: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let top = tempfile::tempdir().unwrap();
    let root = top.path().canonicalize().unwrap();
    let work = root.join("work");
    furnish(&work);
    run(&work, "git", &["init", "-q"]);
    run(&work, "git", &["add", "-A"]);
    let (judge, _) = Judge::new(JudgeConfig {
        workspace: work.clone(),
        home: root.clone(),
        path: std::env::var_os("PATH").unwrap_or_default(),
        settings: co_policy::PolicySettings::default(),
        saved: Default::default(),
        own: vec![root.join("state")],
    });
    let checkpoints = Checkpoints::new(root.join("state"));
    let workspace = checkpoints.workspace(&Arc::new(judge)).unwrap();
    let first = time(|| workspace.prepare());
    let missing = workspace.missing();
    assert_eq!(missing, None, "after {first:?}");
    let (mut before, mut after, mut git, mut find) = (vec![], vec![], vec![], vec![]);
    for round in 0..ROUNDS {
        let mut window = None;
        before.push(time(|| window = workspace.begin().ok()));
        for file in 0..10 {
            fs::write(work.join(format!("{file}/1/{round}")), "changed").unwrap();
        }
        let window = window.unwrap();
        after.push(time(|| assert_eq!(window.end().changes.len(), 10)));
        git.push(time(|| run(&work, "git", &["status", "--short"])));
        find.push(time(|| run(&work, "find", &[".", "-size", "+1G"])));
    }
    let (before, after, git, find) = (median(before), median(after), median(git), median(find));
    let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    println!("first {first:?}; git status {git:?}; find {find:?}");
    for (name, time) in [("nothing changed", before), ("10 files changed", after)] {
        let (git, find) = (ratio(time, git), ratio(time, find));
        println!(
            "{name}: {time:?}, {git:.2} x git status, {find:.2} x find, target {TARGET} x git status and {MOST:?}"
        );
    }
    ExitCode::from(u8::from(ratio(after, git) > TARGET))
}

fn furnish(work: &Path) {
    for file in 0..FILES {
        let dir = work.join(format!("{}/{}", file % 50, file / 50 % 4));
        fs::create_dir_all(&dir).unwrap();
        let text = format!("{file}\n").repeat(800);
        fs::write(dir.join(format!("file{}.rs", file / 200)), text).unwrap();
    }
    fs::write(work.join(".gitignore"), "target\n*.o\n").unwrap();
}

fn run(dir: &Path, program: &str, args: &[&str]) {
    let mut command = Command::new(program);
    let command = command.args(args).current_dir(dir).stdout(Stdio::null());
    assert!(command.status().unwrap().success());
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
