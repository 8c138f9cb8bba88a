//! The backend killed at random moments of a busy turn: what was shown comes back, each call in the next request
//! has its result, and nothing of the killed turn runs on.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::http::Reply;
use crate::support::{DEADLINE, proc, random};

use super::resumed::LOADED;
use super::scene::{Scene, wait_gone};

const KILLS: u64 = 20;
const WORDS: u64 = 40;
/// The lines of the large file. The transcript has its output as one line.
const LINES: u64 = 1500;

/// The moment of a turn at which the backend is killed. Each has the same share of the kills.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// The time since a new backend was started, which first resumes the conversation.
    Resuming(Duration),
    /// The number of words of the answer on the screen.
    Streaming(u64),
    /// The number of bytes by which the transcript has grown.
    Writing(u64),
    /// The time since the question came.
    Asking(Duration),
    /// The time since the yes.
    Deciding(Duration),
    /// The time since the command's first output was shown.
    Running(Duration),
}

/// Returns the moment of a round.
fn moment(chance: &mut fastrand::Rng, round: u64) -> Moment {
    let time = |ms| Duration::from_millis(ms);
    match round % 6 {
        0 => Moment::Streaming(chance.u64(..WORDS)),
        // The small lines at its beginning, or somewhere in the large one that follows.
        1 => Moment::Writing(match chance.u64(..2) {
            0 => chance.u64(..1_500),
            _ => chance.u64(..LINES * 18),
        }),
        2 => Moment::Asking(time(chance.u64(..60))),
        3 => Moment::Deciding(time(chance.u64(..60))),
        4 => Moment::Resuming(time(chance.u64(..120))),
        _ => Moment::Running(time(chance.u64(..60))),
    }
}

/// Says many words, reads a large file unasked and asks for a command that would run for minutes.
fn busy(round: u64) -> Reply {
    let mut reply = Reply::new();
    for word in 0..WORDS {
        reply = reply
            .say(&format!("w{round}-{word} "))
            .pause(Duration::from_millis(5));
    }
    let read = json!({ "cmd": format!("cat large-{round}") });
    let wait = json!({ "cmd": format!("echo begun-{round}; exec sleep 300") });
    reply
        .call(&format!("a{round}"), "run_shell_command", &read)
        .call(&format!("b{round}"), "run_shell_command", &wait)
}

/// Returns the pieces that may have been shown of a round.
fn pieces(round: u64) -> Vec<String> {
    let mut pieces: Vec<_> = (0..WORDS).map(|word| format!("w{round}-{word} ")).collect();
    pieces.push(format!("go {round}\n"));
    pieces.push(format!(" cat large-{round}"));
    pieces.push(format!(" echo begun-{round}; exec sleep 300"));
    pieces
}

/// Returns the number of commands in a text of which the person's answer is known.
fn approvals(text: &str) -> usize {
    let decided = |line: &&str| line.contains(" echo begun-") && !line.starts_with("  ? ");
    text.lines().filter(decided).count()
}

/// The text of a chat that a person could read, as far as its file must have it.
struct ShownPart {
    pieces: Vec<String>,
    approvals: usize,
    /// Commands whose end was told: their whole output is on the record.
    ends: usize,
}

impl ShownPart {
    fn of(text: &str, rounds: u64) -> Self {
        let all = (0..=rounds).flat_map(pieces);
        Self {
            pieces: all.filter(|piece| text.contains(piece)).collect(),
            approvals: approvals(text),
            ends: text.matches("  ✓ cat ").count() + text.matches("  · cat ").count(),
        }
    }

    /// Adds what a later text shows. It may lack the start, so it may show less.
    fn add(&mut self, later: Self) {
        let new = |piece: &String| !self.pieces.contains(piece);
        let new: Vec<_> = later.pieces.into_iter().filter(new).collect();
        self.pieces.extend(new);
        self.approvals = self.approvals.max(later.approvals);
        self.ends = self.ends.max(later.ends);
    }

    #[track_caller]
    fn assert_in(&self, text: &str, when: &str) {
        for piece in &self.pieces {
            assert!(
                text.contains(piece),
                "{when}: {piece:?} is gone from\n{text}"
            );
        }
        assert!(self.approvals <= approvals(text), "{when}: {text}");
        let ended = (0..KILLS).filter(|round| text.contains(&last_line(*round)));
        assert!(self.ends <= ended.count(), "{when}: {text}");
    }
}

/// Lines that differ in more than digits, of which the model would be told in a word.
fn line(round: u64, number: u64) -> String {
    let letter = |place: u32| char::from(b'a' + (number / 26_u64.pow(place) % 26) as u8);
    let name: String = (0..4).rev().map(letter).collect();
    format!("large {round} line {name}\n")
}

fn last_line(round: u64) -> String {
    line(round, LINES)
}

/// Commands that work in the scene's directory, with the environment of the executor.
fn commands(scene: &Scene) -> Vec<i32> {
    let here = scene.workspace.path();
    let works_here = |pid: &i32| {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(here))
    };
    proc::holding("PYTHONUNBUFFERED=")
        .into_iter()
        .filter(works_here)
        .collect()
}

struct Drill {
    scene: Scene,
    record: PathBuf,
}

impl Drill {
    fn new() -> Self {
        let scene = Scene::scripted([Reply::text("Hello.")]);
        scene.co("hello");
        scene.wait_turns(1);
        let record = scene.chats().pop().unwrap();
        Self { record, scene }
    }

    fn recorded(&self) -> u64 {
        self.record.metadata().unwrap().len()
    }

    /// Lets a turn run up to its moment and kills the backend there.
    fn kill_at(&self, round: u64, moment: Moment) {
        let size = self.recorded();
        let asked = self.scene.events("CoApprovalRequested");
        self.scene.server.forget();
        self.scene.server.reply(busy(round));
        let requests = self.scene.server.requests().len();
        self.scene.co(&format!("go {round}"));
        if !matches!(moment, Moment::Resuming(_)) {
            self.scene.server.wait_requests(requests + 1);
        }
        let backend = self.scene.backend();
        let wait_ask = || {
            let more = format!("(co_seen.CoApprovalRequested or 0) > {asked}");
            self.scene.wait_for(&more, "the question");
        };
        match moment {
            Moment::Resuming(time) => proc::pass(time),
            Moment::Streaming(word) => {
                self.scene.wait_chat(&format!("w{round}-{word} "));
            }
            Moment::Writing(bytes) => {
                let end = Instant::now() + DEADLINE;
                while self.recorded() < size + bytes {
                    let chat = || self.scene.chat();
                    assert!(
                        Instant::now() < end,
                        "the record does not grow by {bytes}\n{}",
                        chat()
                    );
                    std::thread::yield_now();
                }
            }
            Moment::Asking(time) => {
                wait_ask();
                proc::pass(time);
            }
            Moment::Deciding(time) => {
                wait_ask();
                self.scene.answer("y");
                proc::pass(time);
            }
            Moment::Running(time) => {
                wait_ask();
                self.scene.answer("y");
                self.scene.wait_chat(&format!("\n    begun-{round}"));
                proc::pass(time);
            }
        }
        let mut all = proc::descendants(backend);
        proc::kill9(backend);
        all.push(backend);
        wait_gone(&all);
        proc::wait_until(DEADLINE, "the end of the commands", || {
            commands(&self.scene).is_empty().then_some(())
        });
        let gone = "not require('co.backend').status().running";
        self.scene.wait_for(gone, "Neovim to notice");
    }
}

/// Checks that each call in a request has its result, once.
#[track_caller]
fn assert_answered(body: &serde_json::Value, when: &str) {
    let messages = body["messages"].as_array().unwrap();
    let calls = messages.iter().filter_map(|it| it["tool_calls"].as_array());
    let mut calls: Vec<_> = calls.flatten().map(|call| &call["id"]).collect();
    let results = messages.iter().filter(|it| it["role"] == "tool");
    let mut results: Vec<_> = results.map(|result| &result["tool_call_id"]).collect();
    calls.sort_by_key(|id| id.as_str());
    results.sort_by_key(|id| id.as_str());
    assert_eq!(calls, results, "{when}: {body:#}");
}

#[test]
fn killed_at_any_moment() {
    let mut chance = random(fastrand::u64(..));
    let drill = Drill::new();
    for round in 0..KILLS {
        let large: String = (1..=LINES).map(|number| line(round, number)).collect();
        drill
            .scene
            .workspace
            .write(&format!("large-{round}"), &large);
    }
    let mut shown = ShownPart::of("", 0);
    let mut when = "at first".to_owned();
    for round in 0..KILLS {
        let moment = moment(&mut chance, round);
        let requests = drill.scene.server.requests().len();
        drill.kill_at(round, moment);
        // A kill may come before all of the text above is there. Asked for first, as parts of it may still come.
        let is_loaded = drill.scene.eval(LOADED) == true;
        // The turn's beginning showed what the one before had come to.
        let text = drill.scene.chat();
        if is_loaded {
            shown.assert_in(&text, &when);
        }
        for request in &drill.scene.server.requests()[requests..] {
            assert_answered(&request.body, &when);
        }
        when = format!("round {round}, {moment:?}");
        shown.add(ShownPart::of(&text, round));
    }
    drill.scene.server.forget();
    drill.scene.server.reply(Reply::text("Over."));
    drill.scene.co("go home");
    drill.scene.wait_chat("Over.");
    drill.scene.wait_for(LOADED, "the whole text");
    shown.assert_in(&drill.scene.chat(), &when);
    assert_eq!(drill.scene.chats().len(), 1);
}
