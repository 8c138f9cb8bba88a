//! A long chat that is opened again.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use co::store::{Meta, Store};
use co_llm::transcript::{End, Item, Usage};
use serde_json::json;

use super::client::Client;
use super::{median, ms, report, text};

const BYTES: usize = 50_000_000;
const ROUNDS: usize = 5;
/// The lines of one answer in the transcript.
const LINES: usize = 400;
/// The end of the last answer.
const LAST: &str = "lastword";
/// The lines of the chat in Neovim.
const LINES_NOW: &str =
    "return vim.api.nvim_buf_line_count(require('co.chat.registry').current().buf)";
const PROBE: Duration = Duration::from_micros(500);
/// Milliseconds.
const WANTED: f64 = 500.0;
const FREEZE_WANTED: f64 = 16.0;

pub(super) fn run() {
    let (mut wall, mut whole, mut freeze) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let nvim = Client::start(&json!({ "provider": "openai", "model": "scripted" }));
        let data = nvim.lua("return vim.env.XDG_DATA_HOME", json!([]));
        let data = Path::new(data.as_str().expect("a path")).join("co-nvim");
        let (id, lines) = write(&data);
        nvim.lua("require('co').open()", json!([]));
        nvim.lua("require('co.backend').start()", json!([]));
        nvim.wait_for("require('co.backend').status().ready", "a backend");
        nvim.watch(LAST);
        let began = Instant::now();
        nvim.command(&format!("Co /resume {id}"));
        let mut longest = 0.0_f64;
        while nvim.shown().is_none() || nvim.lua(LINES_NOW, json!([])).as_u64() < Some(lines) {
            let asked = Instant::now();
            nvim.call("nvim_eval", json!(["1"]));
            longest = longest.max(ms(asked.elapsed()));
            std::thread::sleep(PROBE);
            let late = began.elapsed() > Duration::from_secs(120);
            assert!(!late, "{}", nvim.screen().join("\n"));
        }
        wall.push(ms(nvim.wait_shown() - began));
        whole.push(ms(began.elapsed()));
        freeze.push(longest);
    }
    report(
        "a chat of 50 MB resumed, until its end is on the screen",
        median(&mut wall),
        "ms",
        WANTED,
    );
    println!(
        "  until the whole text is there: {:.0} ms",
        median(&mut whole)
    );
    report(
        "  longest freeze until then",
        median(&mut freeze),
        "ms",
        FREEZE_WANTED,
    );
}

/// Writes a transcript of 50 MB. Returns its id, and the least number of lines of its text.
fn write(data: &Path) -> (String, u64) {
    let meta = Meta {
        workspace: data.to_owned(),
        cwd: data.to_owned(),
        title: "long".to_owned(),
    };
    let writer = Store::new(data.to_owned())
        .create(meta, &[])
        .expect("a transcript");
    // The writer waits for the disk after each line.
    let mut file = OpenOptions::new()
        .append(true)
        .open(writer.path())
        .expect("its file");
    let answer = text::history(LINES);
    let turn = [
        Item::user("and then?"),
        Item::Text {
            text: answer.clone(),
        },
        Item::End {
            reason: End::Done,
            usage: Usage::default(),
            explained: false,
        },
    ];
    let last = [
        Item::user("and at last?"),
        Item::Text {
            text: format!("{answer}\n\n{LAST}"),
        },
        Item::End {
            reason: End::Done,
            usage: Usage::default(),
            explained: false,
        },
    ];
    let lines = |items: &[Item]| {
        let line = |item| serde_json::to_string(item).expect("JSON") + "\n";
        items.iter().map(line).collect::<String>()
    };
    let turn = lines(&turn);
    let turns = BYTES / turn.len();
    let all = turn.repeat(turns) + &lines(&last);
    file.write_all(all.as_bytes()).expect("it is written");
    let written = (turns + 1) * answer.lines().count();
    (writer.id().to_owned(), written as u64)
}
