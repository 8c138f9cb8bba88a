//! Measures a checkpoint of 10,000 files: `cargo bench --bench checkpoint`. Ends with 1 if a limit is passed.
//!
//! Checkpoints and the programs that look at the same files take turns. Each file has 4 KiB. Then it measures how long it takes
//! to keep 100 files of a trial.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops where it cannot"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use co::buffers::OpenBuffers;
use co::checkpoint::{Change, ChangeCause, Checkpoints, Entry, Store, Undo};
use co::workspace::judge::{Judge, JudgeConfig};
use co_llm::transcript::Decision;

const FILES: usize = 10_000;
const ROUNDS: usize = 50;
/// The most time that a checkpoint may take, as a multiple of `git status`.
const TARGET: f64 = 3.0;
/// The time that a checkpoint may take on a machine that does nothing else.
const MOST: Duration = Duration::from_millis(100);
/// The files of a trial that is kept: half are new, and half are changed.
const KEPT: usize = 100;
/// The time that keeping them may take on a machine that does nothing else.
const MOST_KEEP: Duration = Duration::from_millis(50);

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
    let keeps = (0..ROUNDS).map(|round| keep(&checkpoints, &work, round));
    let keep = median(keeps.collect());
    println!("{KEPT} files of a trial kept: {keep:?}, target {MOST_KEEP:?}");
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

/// Keeps the changes of a trial.
fn keep(checkpoints: &Checkpoints, work: &Path, round: usize) -> Duration {
    let store = checkpoints.store().unwrap();
    let path = |file: usize| match file % 2 {
        0 => format!("{}/2/file0.rs", file / 2),
        _ => format!("{}/2/new{round}.rs", file / 2),
    };
    let change = |path: PathBuf| Change {
        before: entry(&work.join(&path), &store),
        after: Some(Entry::File {
            mode: 0o644,
            blob: Some(store.put(format!("{path:?} {round}\n").as_bytes()).unwrap()),
        }),
        path,
    };
    let changes: Vec<_> = (0..KEPT).map(|file| change(path(file).into())).collect();
    let by = ChangeCause::Call {
        what: "make".to_owned(),
        decision: Decision::Approved,
        command: false,
    };
    time(|| {
        let plan = Undo::making(&changes, work, &store, &OpenBuffers::new());
        let done = checkpoints.make(plan, work, by).unwrap();
        assert_eq!(done.changes.len(), KEPT, "{:?}", done.failed);
    })
}

fn entry(path: &Path, store: &Store) -> Option<Entry> {
    let bytes = fs::read(path).ok()?;
    let mode = fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let blob = Some(store.put(&bytes).unwrap());
    Some(Entry::File { mode, blob })
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
