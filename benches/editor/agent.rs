//! An agent in the place of a model: the scripted one of the tests.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::client::Client;
use super::{median, ms, report, text};

const ROUNDS: usize = 7;
const UPDATES: usize = 10_000;

/// The last word of an answer.
const LAST: &str = "lastword";

/// The words of a prompt, and of the first update after it.
const FIRST: &str = "first";
const MANY: &str = "many";

pub(super) fn run() {
    // The agent may read its workspace alone, so its script is there.
    let dir = tempfile::tempdir().expect("a workspace");
    let script = dir.path().join("script.json");
    let say = |text: &str| {
        json!({ "update": {
            "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text },
        } })
    };
    let last = say(&format!("\n\n{LAST}"));
    let tokens = (0..UPDATES).map(|number| say(&text::token(number)));
    let many: Vec<_> = tokens.chain([last.clone()]).collect();
    let steps = json!({ FIRST: [last], MANY: many });
    std::fs::write(&script, steps.to_string()).expect("the script");
    let (mut alone, mut shown) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(agent_alone(&script));
        shown.push(answer(&script, FIRST).0);
    }
    let (alone, shown) = (median(&mut alone), median(&mut shown));
    let what = "first prompt to first update, over the agent's own time";
    report(what, shown - alone, "ms", 30.0);
    println!("  the agent alone takes {alone:.0} ms, with co {shown:.0} ms");
    let all: Vec<_> = (0..ROUNDS).map(|_| answer(&script, MANY)).collect();
    let pick =
        |field: fn(&(f64, f64, f64)) -> f64| median(&mut all.iter().map(field).collect::<Vec<_>>());
    println!("10,000 updates take {:.0} ms", pick(|it| it.0));
    report("  longest freeze", pick(|it| it.1), "ms", 16.0);
    report("  latest frame", pick(|it| it.2), "ms", 100.0);
}

/// Returns the command of the agent. It names the interpreter's own file: `python3` may be a script that starts several programs.
fn agent_command(script: &Path) -> [String; 3] {
    let found = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .expect("python3 is there");
    let python = String::from_utf8(found.stdout).expect("a path");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/editor/agent.py");
    let script = script.display().to_string();
    [python.trim().to_owned(), program.to_owned(), script]
}

/// Returns the milliseconds from the start of the agent until its first update, without co.
fn agent_alone(script: &Path) -> f64 {
    let began = Instant::now();
    let [program, arguments @ ..] = agent_command(script);
    let mut agent = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there");
    let mut input = agent.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(agent.stdout.take().expect("a pipe")).lines();
    let prompt = json!([{ "type": "text", "text": FIRST }]);
    for (method, params) in [
        ("initialize", json!({ "protocolVersion": 1 })),
        ("session/new", json!({ "cwd": "/", "mcpServers": [] })),
        (
            "session/prompt",
            json!({ "sessionId": "s1", "prompt": prompt }),
        ),
    ] {
        let request = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        writeln!(input, "{request}").expect("the agent reads");
        let line = lines.next().expect("an answer").expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        let is_update = answer["method"] == "session/update";
        assert_eq!(is_update, method == "session/prompt", "{answer}");
    }
    let took = ms(began.elapsed());
    drop(input);
    agent.wait().expect("the agent ends");
    took
}

/// Asks the agent in a new Neovim. Returns the milliseconds from the prompt until the last word is drawn, the longest that Neovim
/// did not answer, and the longest between two frames.
fn answer(script: &Path, prompt: &str) -> (f64, f64, f64) {
    let agents = json!({ "scripted": { "cmd": agent_command(script) } });
    let nvim = Client::start(&json!({ "agents": agents }));
    nvim.lua("vim.cmd.cd(...)", json!([script.parent()]));
    nvim.lua("require('co').open()", json!([]));
    nvim.command("Co /agent scripted");
    nvim.wait_for(
        "require('co.chat.registry').current().state.chosen",
        "the agent",
    );
    nvim.watch(LAST);
    let began = Instant::now();
    nvim.command(&format!("Co {prompt}"));
    let mut freeze = 0.0_f64;
    while nvim.shown().is_none() {
        let asked = Instant::now();
        nvim.call("nvim_eval", json!(["1"]));
        freeze = freeze.max(ms(asked.elapsed()));
        assert!(
            began.elapsed().as_secs() < 60,
            "{}",
            nvim.screen().join("\n")
        );
    }
    let shown = nvim.wait_shown();
    (ms(shown - began), freeze, nvim.longest_gap(began, shown))
}
