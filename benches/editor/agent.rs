//! An agent in the place of a model: the scripted one of the tests.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Client;
use super::{chat, median, ms, report, text};

const ROUNDS: usize = 7;

/// The time that a person needs at least to type the first prompt after they have chosen the agent.
const TYPING: Duration = Duration::from_secs(1);

const UPDATES: usize = 10_000;

/// A prompt, and the last word of its answer.
type Question = (&'static str, &'static str);

const FIRST: Question = ("first", "firstword");
const MANY: Question = ("many", "lastword");

const IS_IDLE: &str = "require('co.chat.registry').current().state.state == 'idle'";

pub(super) fn run() {
    // The agent may read its workspace alone, so its script is there.
    let dir = tempfile::tempdir().expect("a workspace");
    let script = dir.path().join("script.json");
    let init = Command::new("git").arg("init").arg(dir.path()).output();
    assert!(init.is_ok_and(|it| it.status.success()), "git is there");
    let say = |text: &str| {
        json!({ "update": {
            "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text },
        } })
    };
    let tokens = (0..UPDATES).map(|number| say(&text::token(number)));
    let many: Vec<_> = tokens.chain([say(&format!("\n\n{}", MANY.1))]).collect();
    let steps = json!({ FIRST.0: [say(FIRST.1)], MANY.0: many });
    std::fs::write(&script, steps.to_string()).expect("the script");
    let command = agent_command(&script);
    let (mut alone, mut shown, mut at_once, mut updates) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut by_agent, mut by_model) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let mut agent = AgentAlone::start(&command);
        agent.ask(FIRST.0, 1);
        alone.push(ms(began.elapsed()));
        let began = Instant::now();
        agent.ask(MANY.0, UPDATES + 1);
        let written = ms(began.elapsed());
        let [first] = answers(dir.path(), &command, Duration::ZERO, [FIRST]);
        at_once.push(first.wall);
        let [first, many] = answers(dir.path(), &command, TYPING, [FIRST, MANY]);
        shown.push(first.wall);
        by_agent.push(many.wall / written);
        by_model.push(many.wall / chat::long_answer());
        updates.push(many);
    }
    let (alone, shown) = (median(&mut alone), median(&mut shown));
    let what = "first prompt, typed for a second, to first update, over the agent's own time";
    report(what, shown - alone, "ms", 30.0);
    println!("  the agent alone takes {alone:.0} ms, with co {shown:.0} ms");
    let at_once = median(&mut at_once);
    println!("  a prompt at once after /agent: {at_once:.0} ms");
    let pick =
        |field: fn(&Answer) -> f64| median(&mut updates.iter().map(field).collect::<Vec<_>>());
    let what = "10,000 updates, to 10,000 tokens of a model";
    report(what, median(&mut by_model), "x", 1.2);
    let (to_agent, wall) = (median(&mut by_agent), pick(|it| it.wall));
    println!("  {wall:.0} ms; {to_agent:.2} x the agent alone");
    report("  longest freeze", pick(|it| it.freeze), "ms", 16.0);
    report("  latest frame", pick(|it| it.gap), "ms", 100.0);
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

/// The agent without co.
struct AgentAlone {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl AgentAlone {
    /// Starts the agent, with a session.
    fn start([program, arguments @ ..]: &[String; 3]) -> Self {
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is there");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let mut agent = Self { process, lines };
        agent.send("initialize", &json!({ "protocolVersion": 1 }));
        agent.line();
        agent.send("session/new", &json!({ "cwd": "/", "mcpServers": [] }));
        agent.line();
        agent
    }

    /// Sends a prompt, and reads its updates.
    fn ask(&mut self, prompt: &str, updates: usize) {
        let prompt = json!([{ "type": "text", "text": prompt }]);
        self.send(
            "session/prompt",
            &json!({ "sessionId": "s1", "prompt": prompt }),
        );
        for _ in 0..updates {
            while self.line()["method"] != "session/update" {}
        }
    }

    fn send(&mut self, method: &str, params: &Value) {
        let request = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        let input = self.process.stdin.as_mut().expect("a pipe");
        writeln!(input, "{request}").expect("the agent reads");
    }

    fn line(&mut self) -> Value {
        let line = self.lines.next().expect("an answer").expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for AgentAlone {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // The end of its input ends it.
        self.process.wait().ok();
    }
}

/// An answer as the person saw it, in milliseconds.
struct Answer {
    /// From the prompt until the last word was drawn.
    wall: f64,
    /// The longest that Neovim did not answer.
    freeze: f64,
    /// The longest between two frames.
    gap: f64,
}

/// Asks the agent in a new Neovim, one prompt after the other. Sends the first prompt the time `typing` after the choice of the agent.
fn answers<const COUNT: usize>(
    workspace: &Path,
    command: &[String; 3],
    typing: Duration,
    prompts: [Question; COUNT],
) -> [Answer; COUNT] {
    let agents = json!({ "scripted": { "cmd": command } });
    let nvim = Client::start(&json!({ "agents": agents }));
    nvim.lua("vim.cmd.cd(...)", json!([workspace]));
    nvim.lua("require('co').open()", json!([]));
    nvim.command("Co /agent scripted");
    nvim.wait_for(
        "require('co.chat.registry').current().state.chosen",
        "the agent",
    );
    std::thread::sleep(typing);
    prompts.map(|prompt| {
        let answer = answer(&nvim, prompt);
        nvim.wait_for(IS_IDLE, "the end of the turn");
        answer
    })
}

fn answer(nvim: &Client, (prompt, last): Question) -> Answer {
    nvim.watch(last);
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
    Answer {
        wall: ms(shown - began),
        freeze,
        gap: nvim.longest_gap(began, shown),
    }
}
