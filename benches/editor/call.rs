//! A call of the model that runs unasked.

use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use serde_json::json;

use super::client::Client;
use super::support::http::{Reply, Scripted};
use super::{median, ms, report};

const ROUNDS: usize = 31;
/// Milliseconds.
const WANTED: f64 = 3.0;
/// Prints its own time in nanoseconds since 1970.
const COMMAND: &str = "date +%s%N";

/// Measures the time from the last byte of a call in the answer until the command has started. The command prints the time at
/// which it runs, so its shell and its program are included.
pub(super) fn run() {
    let server = Scripted::start();
    let nvim = Client::start(&json!({
        "provider": "openai", "model": "scripted", "base_url": server.url(),
    }));
    // Nothing runs confined in the home directory itself.
    let enter = "local dir = vim.env.HOME .. '/work'; vim.fn.mkdir(dir); vim.cmd.cd(dir)";
    nvim.lua(enter, json!([]));
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let sent = Arc::new(Mutex::new(None));
        let call = Reply::shell(&format!("call{round}"), COMMAND);
        server.reply(call.note_time(&sent));
        server.reply(Reply::text(&format!("answer{round}.")));
        nvim.watch(&format!("answer{round}."));
        nvim.command("Co go");
        nvim.wait_shown();
        let sent: Instant = sent.lock().unwrap().expect("the call was sent");
        let result = server.requests().last().and_then(|it| it.last("tool"));
        let result = result.expect("the result of the call");
        let clock = result
            .lines()
            .find_map(|line| line.trim().parse::<u64>().ok());
        let ran = clock.unwrap_or_else(|| panic!("{result}")) as f64 / 1e6;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let sent = ms(now.unwrap()) - ms(sent.elapsed());
        // The first one makes what the others use again.
        if round > 0 {
            times.push(ran - sent);
        }
    }
    let what = "from a call to its command's own clock, unasked";
    report(what, median(&mut times), "ms", WANTED);
}
