//! The review of all open changes of a chat.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Client;
use super::support::http::{Reply, Scripted};
use super::{median, ms, report};

const FILES: usize = 60;
const LINES: usize = 300;
/// The changed lines of a file lie so many lines apart.
const STEP: usize = 35;
const ROUNDS: usize = 11;
/// Milliseconds.
const WANTED: f64 = 100.0;
const KEY_WANTED: f64 = 10.0;
/// After this pause, keys in a review that has just opened count.
const PAUSE: Duration = Duration::from_millis(700);

/// Measures the time from `/review` until the review is on the screen, and from a key until the next file is.
pub(super) fn run() {
    let server = Scripted::start();
    let nvim = Client::start(&json!({
        "provider": "openai", "model": "scripted", "base_url": server.url(), "auto_confirm": true,
    }));
    let enter =
        "local dir = vim.env.HOME .. '/work'; vim.fn.mkdir(dir); vim.cmd.cd(dir); return dir";
    let dir = nvim.lua(enter, json!([]));
    let dir = Path::new(dir.as_str().expect("a path"));
    for file in 0..FILES {
        write(dir, file);
    }
    server.reply(Reply::shell("1", "true"));
    server.reply(Reply::text("ready."));
    nvim.watch("ready.");
    nvim.command("Co go");
    nvim.wait_shown();
    let command = format!("sed -i 's/^old/new/' {}", names().join(" "));
    server.reply(Reply::shell("2", &command));
    server.reply(Reply::text("changed."));
    let hunks = FILES * LINES.div_ceil(STEP);
    let open = format!("{hunks} changes in {FILES} files");
    nvim.watch(&open);
    nvim.command("Co change them");
    nvim.wait_shown();
    let (mut opened, mut keys) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        nvim.watch(&format!("file 1 of {FILES}"));
        let began = Instant::now();
        nvim.command("Co /review");
        opened.push(ms(nvim.wait_shown() - began));
        std::thread::sleep(PAUSE);
        nvim.watch(&format!("file 2 of {FILES}"));
        let began = Instant::now();
        nvim.call("nvim_input", json!(["]f"]));
        keys.push(ms(nvim.wait_shown() - began));
        nvim.watch(&open);
        nvim.command("quit");
        nvim.wait_shown();
    }
    let what = format!("/review of {hunks} changes in {FILES} files, until it is drawn");
    report(&what, median(&mut opened), "ms", WANTED);
    let what = "a key in it, until the next file is drawn";
    report(what, median(&mut keys), "ms", KEY_WANTED);
}

fn names() -> Vec<String> {
    (0..FILES).map(|it| format!("file{it}.txt")).collect()
}

fn write(dir: &Path, file: usize) {
    let mut text = String::new();
    for line in 0..LINES {
        let word = if line % STEP == 0 { "old" } else { "stays" };
        writeln!(text, "{word} line {line} of file {file}").expect("a string");
    }
    std::fs::write(dir.join(&names()[file]), text).expect("a file");
}
