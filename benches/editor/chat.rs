//! A model's answer of 5,000 tokens into the chat.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Nvim;
use super::server::{LAST, Server};
use super::{median, ms, report};

const TOKENS: usize = 5_000;
const ROUNDS: usize = 7;
const PROBE: Duration = Duration::from_micros(500);
/// 200 tokens a second, for five seconds.
const PACE: Duration = Duration::from_millis(5);
const PACED: usize = 1_000;

/// One answer, as the person saw it.
struct Answer {
    wall: f64,
    /// The longest that Neovim did not answer.
    freeze: f64,
    /// From the last token's being sent until it was drawn.
    last: f64,
    /// What Neovim computed, in seconds.
    cpu: f64,
}

pub(super) fn run() {
    let server = Server::start(TOKENS, Duration::ZERO);
    let (mut curls, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        curls.push(curl(&server.url));
        answers.push(answer(&server, 0));
    }
    let pick = |all: &[Answer], field: fn(&Answer) -> f64| {
        median(&mut all.iter().map(field).collect::<Vec<_>>())
    };
    let (base, wall) = (median(&mut curls), pick(&answers, |it| it.wall));
    report(
        "5,000 tokens at full speed, to `curl >/dev/null`",
        wall / base,
        "x",
        2.4,
    );
    println!("  curl takes {base:.0} ms, co {wall:.0} ms");
    report(
        "  longest freeze",
        pick(&answers, |it| it.freeze),
        "ms",
        16.0,
    );
    report(
        "  last token drawn after",
        pick(&answers, |it| it.last),
        "ms",
        40.0,
    );
    let paced = Server::start(PACED, PACE);
    for (lines, wanted) in [(0, f64::INFINITY), (10_000, 0.25)] {
        let all: Vec<_> = (0..3).map(|_| answer(&paced, lines)).collect();
        println!("200 tokens/s for 5 s below {lines} lines:");
        report(
            "  Neovim computes for",
            pick(&all, |it| it.cpu),
            "s",
            wanted,
        );
        report("  longest freeze", pick(&all, |it| it.freeze), "ms", 16.0);
        report(
            "  last token drawn after",
            pick(&all, |it| it.last),
            "ms",
            40.0,
        );
    }
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

/// Asks below `lines` lines of history.
fn answer(server: &Server, lines: u64) -> Answer {
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
            "require('co.chat').append({ session = 1, text = ('## Part\\n\\nsome `words` of *history*\\n\\n'):rep(...) })",
            vec![(lines / 4).into()],
        );
        nvim.idle(Duration::from_secs(2));
    }
    nvim.watch(LAST);
    let before = seconds(nvim.pid());
    let began = Instant::now();
    nvim.tell("nvim_command", vec!["Co go".into()]);
    let mut freeze = 0.0_f64;
    while nvim.shown().is_none() {
        let asked = Instant::now();
        nvim.call("nvim_eval", vec!["1".into()]);
        freeze = freeze.max(ms(asked.elapsed()));
        nvim.idle(PROBE);
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{}",
            nvim.screen()
        );
    }
    let shown = nvim.wait_shown();
    Answer {
        wall: ms(shown - began),
        freeze,
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
