//! Four scouts beside an answer: what a key meets meanwhile, and the memory that they take.

use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Client;
use super::support::http::{Gate, Reply, Scripted};
use super::{ms, report, text};

const SCOUTS: usize = 4;
const STEPS: usize = 30;
/// 200 tokens a second, for ten seconds.
const PACE: Duration = Duration::from_millis(5);
const TOKENS: usize = 2_000;
/// The time of the model for a step of a scout.
const STEP: Duration = Duration::from_millis(200);
const PROBE: Duration = Duration::from_micros(500);
const LAST: &str = "lastword";
const FILES: usize = 40;
const LINES: usize = 2_000;

/// Four scouts of a hidden chat read files, while the answer of another chat streams into the window.
pub(super) fn run() {
    let server = Scripted::start();
    let nvim = Client::start(&json!({
        "provider": "openai", "model": "scripted", "base_url": server.url(),
    }));
    let enter =
        "local dir = vim.env.HOME .. '/work'; vim.fn.mkdir(dir); vim.cmd.cd(dir); return dir";
    let dir = nvim.lua(enter, json!([]));
    let dir = std::path::Path::new(dir.as_str().expect("a path"));
    for file in 0..FILES {
        let lines: String = (0..LINES)
            .map(|line| format!("line {line} of file {file}\n"))
            .collect();
        std::fs::write(dir.join(format!("file{file}.txt")), lines).expect("a file");
    }
    let notify = "vim.api.nvim_create_autocmd('User', {
        pattern = 'CoTurnDone',
        callback = function() vim.rpcnotify(1, 'turn') end,
    })";
    nvim.lua(notify, json!([]));
    let gate = Gate::default();
    let send = |reply: Reply, scout: usize| {
        let task = json!({ "task": format!("find {scout}") });
        reply.call(&format!("x{scout}"), "explore", &task)
    };
    server.reply((0..SCOUTS).fold(Reply::new(), send));
    let look = |step: usize| {
        let path = format!("file{}.txt", step % FILES);
        let query = json!({ "pattern": format!("line 1{step}"), "path": path });
        let read = json!({ "path": path, "offset": step * 10 + 1, "limit": 200 });
        let reply = Reply::new().hold(&gate).pause(STEP);
        let reply = reply.call(&format!("r{step}"), "read_file", &read);
        let reply = reply.call(&format!("s{step}"), "search", &query);
        reply.and_shell(&format!("c{step}"), &format!("grep -c {step} {path}"))
    };
    for step in 0..SCOUTS {
        server.reply(look(step));
    }
    nvim.watch(&format!("find {}", SCOUTS - 1));
    nvim.command("Co look");
    nvim.wait_shown();
    server.wait_requests(1 + SCOUTS);
    nvim.command("Co /new");
    let tokens = (0..TOKENS).map(text::token);
    let answer = tokens.fold(Reply::new(), |reply, token| reply.say(&token).pause(PACE));
    server.reply(answer.say(&format!("\n\n{LAST}")));
    nvim.watch(LAST);
    nvim.command("Co go");
    server.wait_requests(2 + SCOUTS);
    for step in SCOUTS..SCOUTS * STEPS {
        server.reply(look(step));
    }
    for _ in 0..SCOUTS {
        server.reply(Reply::text("Nothing."));
    }
    server.reply(Reply::text("ready."));
    gate.open();
    let (mut key, mut eval, mut memory) = (0.0_f64, Vec::new(), 0.0_f64);
    let mut measured = Instant::now();
    // That of the scouts, and the answer. The server takes requests as they come, so a scout may have more steps than another.
    let mut turns = 2;
    while turns > 0 {
        turns -= usize::from(nvim.noticed("turn").is_some());
        let asked = Instant::now();
        nvim.call("nvim_eval", json!(["1"]));
        eval.push(ms(asked.elapsed()));
        let typed = Instant::now();
        nvim.type_keys("<F2>");
        key = key.max(ms(nvim.wait("key").at - typed));
        if measured.elapsed() > Duration::from_millis(500) {
            memory = memory.max(nvim.backend_memory());
            measured = Instant::now();
        }
        std::thread::sleep(PROBE);
    }
    println!("{SCOUTS} scouts of {STEPS} steps beside an answer of 200 tokens/s:");
    report("  worst key meanwhile", key, "ms", 5.0);
    let worst = eval.iter().copied().fold(0.0, f64::max);
    report("  worst eval meanwhile", worst, "ms", 5.0);
    report("  memory of the backend", memory, "MB", 60.0);
}
