//! A model's answer into the chat.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Client;
use super::support::http::{Reply, Scripted};
use super::{median, ms, report, text};

const TOKENS: usize = 5_000;
const LONG: usize = 10_000;
const MORE_CHATS: usize = 19;
const ROUNDS: usize = 7;
const PACED_ROUNDS: usize = 3;
const PROBE: Duration = Duration::from_micros(500);
/// 200 tokens a second, for five seconds.
const PACE: Duration = Duration::from_millis(5);
const PACED: usize = 1_000;
/// The time after an answer whose work still counts as the answer's.
const AFTER: Duration = Duration::from_millis(500);

/// The answer's last word.
const LAST: &str = "lastword";

/// A model that answers each request with the same tokens, as fast as they are taken or at a pace.
struct Model {
    server: Scripted,
    reply: Reply,
    /// When the last token was sent.
    sent: Arc<Mutex<Option<Instant>>>,
}

impl Model {
    fn start(tokens: usize, pause: Duration) -> Self {
        let sent = Arc::default();
        let tokens = (0..tokens).map(text::token);
        let reply = tokens.fold(Reply::new(), |reply, token| {
            let reply = reply.say(&token);
            if pause.is_zero() {
                reply
            } else {
                reply.pause(pause)
            }
        });
        Self {
            server: Scripted::start(),
            reply: reply.say(&format!("\n\n{LAST}")).note_time(&sent),
            sent,
        }
    }
}

/// One answer, as the person saw it.
struct Answer {
    wall: f64,
    /// The longest that Neovim did not answer; NaN where it was not asked.
    freeze: f64,
    /// The longest between two frames, until the last token was drawn.
    gap: f64,
    /// From the last token's being sent until it was drawn.
    last: f64,
    /// The seconds that Neovim computed.
    cpu: f64,
}

/// On: Neovim is asked all the time during an answer. This costs it more than the answer does.
#[derive(Clone, Copy, PartialEq)]
enum Probe {
    On,
    Off,
}

pub(super) fn run() {
    full_speed();
    long();
    more_chats();
    let paced = Model::start(PACED, PACE);
    for (lines, wanted) in [(0, f64::INFINITY), (10_000, 0.25), (52_000, 0.25)] {
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
    let model = Model::start(TOKENS, Duration::ZERO);
    let (mut curls, mut all) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        curls.push(curl(&model));
        all.push(answer(&model, 0, Probe::On));
    }
    let (base, wall) = (median(&mut curls), pick(&all, |it| it.wall));
    let what = "5,000 tokens at full speed, to `curl >/dev/null`";
    report(what, wall / base, "x", 2.4);
    println!("  curl takes {base:.0} ms, co {wall:.0} ms");
    report("  longest freeze", pick(&all, |it| it.freeze), "ms", 16.0);
    let last = pick(&all, |it| it.last);
    report("  last token drawn after", last, "ms", 40.0);
}

/// Returns the milliseconds of an answer of 10,000 tokens at full speed, until it is drawn.
pub(super) fn long_answer() -> f64 {
    answer(&Model::start(LONG, Duration::ZERO), 0, Probe::On).wall
}

/// Two answers' worth, into a chat that begins with treesitter on.
fn long() {
    let model = Model::start(LONG, Duration::ZERO);
    let all = answers(&model, 0, Probe::On);
    let gap = pick(&all, |it| it.gap);
    report("10,000 tokens, latest frame", gap, "ms", 100.0);
    report("  longest freeze", pick(&all, |it| it.freeze), "ms", 16.0);
}

/// The memory that chats take in the backend, each with one answer.
fn more_chats() {
    let server = Scripted::start();
    let nvim = Client::start(&json!({
        "provider": "openai", "model": "scripted", "base_url": server.url(),
    }));
    let ask = |number: usize| {
        let answer = format!("answer{number}.");
        server.reply(Reply::new().say(&answer));
        nvim.watch(&answer);
        nvim.command("Co go");
        nvim.wait_shown();
    };
    ask(0);
    let before = nvim.backend_memory();
    for number in 1..=MORE_CHATS {
        nvim.command("Co /new");
        ask(number);
    }
    let more = nvim.backend_memory() - before;
    report("19 more chats, memory of the backend", more, "MB", 4.0);
}

fn pick(all: &[Answer], field: fn(&Answer) -> f64) -> f64 {
    median(&mut all.iter().map(field).collect::<Vec<_>>())
}

fn curl(model: &Model) -> f64 {
    model.server.reply(model.reply.clone());
    let began = Instant::now();
    let status = Command::new("curl")
        .args(["-sN", "-d", "{}", &model.server.url()])
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|it| it.success()), "curl is there");
    ms(began.elapsed())
}

fn answers(model: &Model, lines: usize, probe: Probe) -> Vec<Answer> {
    (0..PACED_ROUNDS)
        .map(|_| answer(model, lines, probe))
        .collect()
}

/// Asks below `lines` lines of history.
fn answer(model: &Model, lines: usize, probe: Probe) -> Answer {
    let nvim = Client::start(&json!({
        "provider": "openai", "model": "scripted", "base_url": model.server.url(),
    }));
    // The window, the backend and the parser are there.
    nvim.lua("require('co').open()", json!([]));
    nvim.lua("require('co.backend').start()", json!([]));
    nvim.wait_for("require('co.backend').status().ready", "a backend");
    if lines > 0 {
        nvim.lua(
            "require('co.chat').append({ chat = 1, text = ... })",
            json!([text::history(lines)]),
        );
    }
    wait_idle(nvim.pid());
    model.server.reply(model.reply.clone());
    nvim.watch(LAST);
    let before = seconds(nvim.pid());
    let began = Instant::now();
    nvim.command("Co go");
    let mut freeze = f64::NAN;
    while probe == Probe::On && nvim.shown().is_none_or(|shown| shown.elapsed() < AFTER) {
        let asked = Instant::now();
        nvim.call("nvim_eval", json!(["1"]));
        freeze = freeze.max(ms(asked.elapsed()));
        std::thread::sleep(PROBE);
        let late = began.elapsed() > Duration::from_secs(60);
        assert!(!late, "{}", nvim.screen().join("\n"));
    }
    let shown = nvim.wait_shown();
    if probe == Probe::Off {
        std::thread::sleep(AFTER);
    }
    Answer {
        wall: ms(shown - began),
        freeze,
        gap: nvim.longest_gap(began, shown),
        last: ms(shown.saturating_duration_since(model.sent.lock().unwrap().unwrap())),
        cpu: seconds(nvim.pid()) - before,
    }
}

/// Waits until Neovim has highlighted the history: it computes nothing for a second.
fn wait_idle(pid: i32) {
    let end = Instant::now() + Duration::from_secs(60);
    let mut before = f64::NAN;
    while seconds(pid) > before || before.is_nan() {
        assert!(Instant::now() < end, "Neovim never rests");
        before = seconds(pid);
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Returns the seconds that a process has computed so far.
fn seconds(pid: i32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |at| fields.split_whitespace().nth(at)?.parse::<f64>().ok();
    let hertz = 100.0;
    (ticks(11).unwrap_or(f64::NAN) + ticks(12).unwrap_or(f64::NAN)) / hertz
}
