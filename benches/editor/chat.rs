//! A model's answer into the chat.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Nvim;
use super::server::{LAST, Server};
use super::{median, ms, report, text};

const TOKENS: usize = 5_000;
const LONG: usize = 10_000;
const ROUNDS: usize = 7;
const PACED_ROUNDS: usize = 3;
const PROBE: Duration = Duration::from_micros(500);
/// 200 tokens a second, for five seconds.
const PACE: Duration = Duration::from_millis(5);
const PACED: usize = 1_000;
/// What is done when an answer is complete belongs to it.
const AFTER: Duration = Duration::from_millis(500);

/// One answer, as the person saw it.
struct Answer {
    wall: f64,
    /// The longest that Neovim did not answer; NaN where it was not asked.
    freeze: f64,
    /// The longest between two frames, until the last token was drawn.
    gap: f64,
    /// From the last token's being sent until it was drawn.
    last: f64,
    /// What Neovim computed, in seconds.
    cpu: f64,
}

/// Whether Neovim is asked all the time if it is there, which costs it more than an answer does.
#[derive(Clone, Copy, PartialEq)]
enum Probe {
    On,
    Off,
}

pub(super) fn run() {
    full_speed();
    long();
    let paced = Server::start(PACED, PACE);
    for (lines, wanted) in [(0, f64::INFINITY), (10_000, 0.25)] {
        println!("200 tokens/s for 5 s below {lines} lines:");
        let quiet = answers(&paced, lines, Probe::Off);
        let probed = answers(&paced, lines, Probe::On);
        let (cpu, last) = (pick(&quiet, |it| it.cpu), pick(&quiet, |it| it.last));
        report("  Neovim computes for", cpu, "s", wanted);
        report("  last token drawn after", last, "ms", 40.0);
        report("  longest freeze", pick(&probed, |it| it.freeze), "ms", 8.0);
    }
}

/// As fast as the backend takes it, beside `curl >/dev/null` of the same server.
fn full_speed() {
    let server = Server::start(TOKENS, Duration::ZERO);
    let (mut curls, mut all) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        curls.push(curl(&server.url));
        all.push(answer(&server, 0, Probe::On));
    }
    let (base, wall) = (median(&mut curls), pick(&all, |it| it.wall));
    let what = "5,000 tokens at full speed, to `curl >/dev/null`";
    report(what, wall / base, "x", 2.4);
    println!("  curl takes {base:.0} ms, co {wall:.0} ms");
    report("  longest freeze", pick(&all, |it| it.freeze), "ms", 16.0);
    let last = pick(&all, |it| it.last);
    report("  last token drawn after", last, "ms", 40.0);
}

/// Two answers' worth, into a chat that begins with treesitter on.
fn long() {
    let server = Server::start(LONG, Duration::ZERO);
    let all = answers(&server, 0, Probe::On);
    let gap = pick(&all, |it| it.gap);
    report("10,000 tokens, latest frame", gap, "ms", 100.0);
    report("  longest freeze", pick(&all, |it| it.freeze), "ms", 16.0);
}

fn pick(all: &[Answer], field: fn(&Answer) -> f64) -> f64 {
    median(&mut all.iter().map(field).collect::<Vec<_>>())
}

fn curl(url: &str) -> f64 {
    let began = Instant::now();
    let status = Command::new("curl")
        .args(["-sN", "-d", "{}", url])
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|it| it.success()), "curl is there");
    ms(began.elapsed())
}

fn answers(server: &Server, lines: usize, probe: Probe) -> Vec<Answer> {
    (0..PACED_ROUNDS)
        .map(|_| answer(server, lines, probe))
        .collect()
}

/// Asks below `lines` lines of history.
fn answer(server: &Server, lines: usize, probe: Probe) -> Answer {
    let mut nvim = Nvim::start(&json!({
        "provider": "openai", "model": "scripted", "base_url": server.url,
    }));
    // The window, the backend and the parser are there.
    nvim.lua("require('co').open()", vec![]);
    nvim.lua("require('co.backend').start()", vec![]);
    nvim.until("a backend", |nvim| {
        let ready = nvim.lua("return require('co.backend').status().ready", vec![]);
        ready.as_bool() == Some(true)
    });
    if lines > 0 {
        nvim.lua(
            "require('co.chat').append({ chat = 1, text = ... })",
            vec![text::history(lines).into()],
        );
    }
    nvim.idle(Duration::from_secs(2));
    nvim.watch(LAST);
    let before = seconds(nvim.pid());
    let began = Instant::now();
    nvim.tell("nvim_command", vec!["Co go".into()]);
    let mut freeze = f64::NAN;
    while probe == Probe::On && nvim.shown().is_none_or(|shown| shown.elapsed() < AFTER) {
        let asked = Instant::now();
        nvim.call("nvim_eval", vec!["1".into()]);
        freeze = freeze.max(ms(asked.elapsed()));
        nvim.idle(PROBE);
        let late = began.elapsed() > Duration::from_secs(60);
        assert!(!late, "{}", nvim.screen());
    }
    let shown = nvim.wait_shown();
    if probe == Probe::Off {
        nvim.idle(AFTER);
    }
    Answer {
        wall: ms(shown - began),
        freeze,
        gap: nvim.longest_gap(began, shown),
        last: ms(shown.saturating_duration_since(server.sent())),
        cpu: seconds(nvim.pid()) - before,
    }
}

/// What a process has computed so far.
fn seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |at| fields.split_whitespace().nth(at)?.parse::<f64>().ok();
    let hertz = 100.0;
    (ticks(11).unwrap_or(f64::NAN) + ticks(12).unwrap_or(f64::NAN)) / hertz
}
