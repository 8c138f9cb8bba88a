//! Measures the tool `search` over 100,000 files beside ripgrep: `cargo bench --bench search`. Ends with 1 if the limit is
//! passed.
//!
//! It takes `rg` in PATH. Both read the same files and print the same number of lines.
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

use co::buffers::OpenBuffers;
use co::tool::query::FileQuery;
use co::workspace::files::{Deadline, FileScope};
use co::workspace::judge::{Judge, JudgeConfig};
use co_llm::transcript::Call;
use co_policy::PolicySettings;
use serde_json::json;
use tokio_util::sync::CancellationToken;

const DIRECTORIES: usize = 1_000;
const FILES: usize = 100;
const ROUNDS: usize = 9;
/// The longest time, in times of ripgrep.
const LIMIT: f64 = 1.2;
const PATTERN: &str = r"needle_\d+";
/// One file in so many has the pattern.
const RARE: usize = 5_000;

fn main() -> ExitCode {
    let top = tempfile::tempdir().unwrap();
    let root = top.path().canonicalize().unwrap();
    write_files(&root);
    let search = searcher(&root);
    if ripgrep(&root).is_none() {
        println!("search is not measured: there is no rg in PATH to compare it with");
        return ExitCode::SUCCESS;
    }
    let (mut ours, mut others, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (co, rg) = (time(&search), time(&|| ripgrep(&root).unwrap()));
        ratios.push(co.as_secs_f64() / rg.as_secs_f64());
        ours.push(co);
        others.push(rg);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let ratio = ratios[ROUNDS / 2];
    println!(
        "search in {} files: {:?}, rg {:?}: {ratio:.2} x, target {LIMIT} x",
        DIRECTORIES * FILES,
        median(ours),
        median(others)
    );
    ExitCode::from(u8::from(ratio > LIMIT))
}

fn write_files(root: &Path) {
    for dir in 0..DIRECTORIES {
        let dir_path = root.join(format!("dir{dir:04}"));
        fs::create_dir(&dir_path).unwrap();
        for file in 0..FILES {
            let number = dir * FILES + file;
            let mut text = "let value = compute(other, more);\n".repeat(60);
            if number.is_multiple_of(RARE) {
                text.push_str(&format!("needle_{number}\n"));
            }
            fs::write(dir_path.join(format!("file{file:02}.rs")), text).unwrap();
        }
    }
}

/// Returns a function that searches as the tool does, and returns the number of matching lines.
fn searcher(root: &Path) -> impl Fn() -> usize {
    let (judge, problems) = Judge::new(JudgeConfig {
        workspace: root.to_owned(),
        home: root.join("home"),
        path: "/usr/bin:/bin".into(),
        settings: PolicySettings::default(),
        saved: Default::default(),
        own: Vec::new(),
    });
    assert!(problems.is_empty(), "{problems:?}");
    let (judge, root) = (Arc::new(judge), root.to_owned());
    move || {
        let call = Call::new("1", "search", json!({ "pattern": PATTERN }));
        let Ok(query @ FileQuery::Search(_)) = FileQuery::parse(&call) else {
            panic!("it is a search");
        };
        let scope = FileScope {
            path: root.clone(),
            open: OpenBuffers::new(),
            editor: None,
            allowed: judge.readable(),
            bytes: 1 << 20,
            end: Deadline::new(CancellationToken::new()),
        };
        query.run(&scope).unwrap().text.lines().count()
    }
}

/// Returns the number of lines that ripgrep prints; none if it is not there.
fn ripgrep(root: &Path) -> Option<usize> {
    let output = Command::new("rg")
        .args(["--hidden", "--line-number", "-e", PATTERN])
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    Some(output.stdout.iter().filter(|byte| **byte == b'\n').count())
}

fn time(run: &dyn Fn() -> usize) -> Duration {
    let began = Instant::now();
    assert_eq!(run(), DIRECTORIES * FILES / RARE);
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
