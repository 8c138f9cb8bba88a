//! 100 MB in 2.5 million lines: how long it takes, what a key meets meanwhile, and what it leaves in memory.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Client;
use super::support::proc;
use super::{median, ms, report};

const BYTES: usize = 100_000_000;
const LINES: usize = 2_500_000;
const ROUNDS: usize = 7;
/// Between two looks at whether Neovim answers.
const PROBE: Duration = Duration::from_micros(500);

/// One flood into a fresh Neovim.
#[derive(Default)]
struct Flood {
    exit: f64,
    /// From the start until the last line was on the screen.
    shown: f64,
    eval: f64,
    key: f64,
    editor: f64,
    backend: f64,
}

pub(super) fn run() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("flood");
    let mut text = String::with_capacity(BYTES);
    for line in 0..LINES {
        text.push_str(&format!("{line:039}\n"));
    }
    std::fs::write(&file, &text).expect("a file");
    drop(text);
    let command = format!("cat {}", file.display());
    let (mut base, mut quiet, mut spilt, mut jobs) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        base.push(piped(&file));
        let none = json!({ "shell_spill_max": 0 });
        quiet.push(flood(&none, "bench.co(...)", command.as_str().into()));
        spilt.push(flood(&json!({}), "bench.co(...)", command.as_str().into()));
        if round < 3 {
            jobs.push(flood(&none, "bench.job(...)", json!(["cat", file])));
        }
    }
    let pick = |all: &[Flood], field: fn(&Flood) -> f64| {
        median(&mut all.iter().map(field).collect::<Vec<_>>())
    };
    let base = median(&mut base);
    let took = pick(&quiet, |it| it.exit);
    report(
        "100 MB, exit known, to `cmd | cat >/dev/null`",
        took / base,
        "x",
        3.0,
    );
    report(
        "100 MB with spill, the same",
        pick(&spilt, |it| it.exit) / base,
        "x",
        6.0,
    );
    report(
        "100 MB, last line drawn, to jobstart + append",
        pick(&quiet, |it| it.shown) / pick(&jobs, |it| it.shown),
        "x",
        0.1,
    );
    println!(
        "  `cmd | cat` takes {base:.0} ms, co {took:.0} ms, jobstart {:.0} ms",
        pick(&jobs, |it| it.exit)
    );
    for (name, all) in [("no spill", &quiet), ("spill", &spilt)] {
        report(
            &format!("  worst eval meanwhile, {name}"),
            pick(all, |it| it.eval),
            "ms",
            5.0,
        );
        report(
            &format!("  worst key meanwhile, {name}"),
            pick(all, |it| it.key),
            "ms",
            5.0,
        );
        report(
            &format!("  Neovim grows by, {name}"),
            pick(all, |it| it.editor),
            "MB",
            5.0,
        );
        report(
            &format!("  the backend grows by, {name}"),
            pick(all, |it| it.backend),
            "MB",
            16.0,
        );
    }
    println!(
        "  jobstart: worst eval {:.0} ms, worst key {:.0} ms, Neovim + {:.0} MB",
        pick(&jobs, |it| it.eval),
        pick(&jobs, |it| it.key),
        pick(&jobs, |it| it.editor)
    );
}

fn piped(file: &Path) -> f64 {
    let command = format!("cat {} | cat >/dev/null", file.display());
    let began = Instant::now();
    let status = Command::new("/bin/bash")
        .args(["--noprofile", "--norc", "-c", &command])
        .status();
    assert!(status.is_ok_and(|it| it.success()));
    ms(began.elapsed())
}

fn flood(settings: &Value, code: &str, command: Value) -> Flood {
    let nvim = Client::start(settings);
    // The window, the backend and all modules are there; so are the arenas that a first flood needs.
    let warm = if command.is_array() {
        json!(["true"])
    } else {
        "true".into()
    };
    nvim.lua(code, json!([warm]));
    nvim.wait("exit");
    std::thread::sleep(Duration::from_millis(100));
    let guard = nvim.lua("return require('co.backend').status().pid", json!([]));
    // Neovim knows the guard; the backend is its child.
    let backend = guard.as_i64().map(|it| proc::children(it as i32)[0]);
    let pids = [Some(nvim.pid()), backend];
    let before = pids.map(|pid| pid.map_or(0.0, fresh));
    nvim.watch(&format!("{:039}", LINES - 1));
    let began = Instant::now();
    nvim.lua(code, json!([command]));
    let mut told = Flood::default();
    let mut ended = false;
    let mut last = None;
    // Frames may follow the first that shows the last line.
    while last.is_none_or(|at: Instant| at.elapsed() < Duration::from_millis(100)) {
        let asked = Instant::now();
        nvim.call("nvim_eval", json!(["1"]));
        told.eval = told.eval.max(ms(asked.elapsed()));
        let typed = Instant::now();
        nvim.type_keys("<F2>");
        told.key = told.key.max(ms(nvim.wait("key").at - typed));
        if let Some(exit) = nvim.noticed("exit") {
            assert_eq!(
                exit.args[1].as_i64(),
                Some(0),
                "{}",
                nvim.screen().join("\n")
            );
            told.exit = exit.args[0].as_f64().expect("a time") / 1e6;
            ended = true;
        }
        if ended && last.is_none() {
            last = nvim.shown();
        }
        std::thread::sleep(PROBE);
    }
    told.shown = last.map_or(f64::NAN, |at| ms(at - began)).max(told.exit);
    let [editor, backend] =
        [0, 1].map(|at| pids[at].map_or(0.0, |pid| mib(pid, "VmHWM:") - before[at]));
    (told.editor, told.backend) = (editor, backend);
    told
}

/// Counts the peak anew; returns what is resident now.
fn fresh(pid: i32) -> f64 {
    let _ = std::fs::write(format!("/proc/{pid}/clear_refs"), "5");
    mib(pid, "VmRSS:")
}

/// Returns a number of kilobytes that the status of a process names, in MB.
fn mib(pid: i32, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let number = status.lines().find_map(|line| line.strip_prefix(name));
    let number = number.and_then(|it| it.trim().trim_end_matches(" kB").parse::<f64>().ok());
    number.unwrap_or(f64::NAN) / 1024.0
}
