//! Short commands: until their end is known in Neovim, until their output is on the screen.

use std::ffi::CString;
use std::time::{Duration, Instant};

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
use serde_json::{Value, json};

use super::client::Client;
use super::{least, median, ms, report};

const CONTESTANTS: usize = 5;
const ROUNDS: usize = 200;
/// So many commands make a row.
const ROW: usize = 25;
const ROW_ROUNDS: usize = 20;
pub(super) const SHELL: [&str; 4] = ["/bin/bash", "--noprofile", "--norc", "-c"];
/// For what the last command left to be drawn, so that nobody pays for the one before.
const REST: Duration = Duration::from_millis(25);

pub(super) fn run() {
    for megabytes in [0_u64, 300] {
        let all = Neovims::start(megabytes);
        exit_known(&all, Pace::InARow, megabytes);
        exit_known(&all, Pace::Rested, megabytes);
        on_screen(&all, megabytes);
    }
}

/// One Neovim for each contestant: `jobstart` forks its Neovim, and what that writes to next is slower for it.
struct Neovims {
    co: Client,
    job: Client,
    system: Client,
    least: Client,
    environment: Vec<CString>,
}

impl Neovims {
    fn start(megabytes: u64) -> Self {
        let start = || {
            let nvim = Client::start(&json!({}));
            if megabytes > 0 {
                nvim.lua("bench.grow(...)", json!([megabytes]));
            }
            nvim
        };
        let co = start();
        Self {
            environment: co.environment(),
            co,
            job: start(),
            system: start(),
            least: start(),
        }
    }

    /// Runs one command of a contestant: co, `jobstart`, `vim.system`, `posix_spawn` alone, the minimal backend.
    fn time(&self, which: usize) -> f64 {
        match which {
            0 => ended(&self.co, "bench.co(...)", "true".into()),
            1 => ended(&self.job, "bench.job(...)", argv("true")),
            2 => ended(&self.system, "bench.system(...)", argv("true")),
            3 => posix(&self.environment),
            _ => ended(&self.least, "bench.least(...)", least::argv()),
        }
    }
}

/// The pace of the commands.
#[derive(Clone, Copy)]
enum Pace {
    /// Each contestant some commands at once, as a script would: caches are warm and no core sleeps.
    InARow,
    /// One command after a rest, as a person would.
    Rested,
}

/// `true`, from the wish to the knowledge of its end.
fn exit_known(all: &Neovims, pace: Pace, megabytes: u64) {
    let (rounds, each) = match pace {
        Pace::InARow => (ROW_ROUNDS, ROW),
        Pace::Rested => (ROUNDS, 1),
    };
    let mut times: [Vec<f64>; CONTESTANTS] = Default::default();
    for round in 0..rounds + rounds / 20 {
        let mut row = [0.0; CONTESTANTS];
        for turn in 0..CONTESTANTS {
            let which = (round + turn) % CONTESTANTS;
            std::thread::sleep(REST);
            let mut taken: Vec<f64> = (0..each).map(|_| all.time(which)).collect();
            row[which] = median(&mut taken);
        }
        // The first ones start the backend and warm caches up.
        if round >= rounds / 20 {
            times
                .iter_mut()
                .zip(row)
                .for_each(|(all, one)| all.push(one));
        }
    }
    let mut ratios: Vec<f64> = times[0]
        .iter()
        .zip(&times[1])
        .map(|(co, job)| co / job)
        .collect();
    let [co, job, system, bare, least] = times.map(|mut all| median(&mut all));
    let pace = match pace {
        Pace::InARow => "in a row",
        Pace::Rested => "after a rest",
    };
    report(
        &format!("`:Co! true` to exit known, {pace}, + {megabytes} MB, to jobstart"),
        median(&mut ratios),
        "x",
        1.0,
    );
    println!(
        "  co {co:.2} ms, jobstart {job:.2}, vim.system {system:.2}, posix_spawn {bare:.2}, the minimal backend {least:.2}"
    );
}

pub(super) fn ended(nvim: &Client, code: &str, command: Value) -> f64 {
    nvim.lua(code, json!([command]));
    let notice = nvim.wait("exit");
    assert_eq!(
        notice.args[1].as_i64(),
        Some(0),
        "{}",
        nvim.screen().join("\n")
    );
    notice.args[0].as_f64().expect("a time") / 1e6
}

/// The same argv by posix_spawn alone, with Neovim's environment: a shell reads a locale at its start and looks up
/// what it has no `SHELL` for, which takes it as long as the rest.
pub(super) fn posix(environment: &[CString]) -> f64 {
    let word = |text: &str| CString::new(text).expect("no NUL");
    let argv: Vec<CString> = SHELL.into_iter().chain(["true"]).map(word).collect();
    let actions = PosixSpawnFileActions::init().expect("actions");
    let attributes = PosixSpawnAttr::init().expect("attributes");
    let began = Instant::now();
    let pid =
        posix_spawn(c"/bin/bash", &actions, &attributes, &argv, environment).expect("it starts");
    nix::sys::wait::waitpid(pid, None).expect("it ends");
    ms(began.elapsed())
}

/// A word that only the output holds, from the wish until it is drawn.
fn on_screen(all: &Neovims, megabytes: u64) {
    let (mut co, mut job, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let mut times = [0.0; 2];
        for turn in 0..2 {
            let which = (round + turn) % 2;
            std::thread::sleep(REST);
            let nvim = if which == 0 { &all.co } else { &all.job };
            let number = round * 2 + which;
            // The command line itself is on the screen too.
            let command = format!("echo 'w'{number:05}");
            nvim.watch(&format!("w{number:05}"));
            let began = Instant::now();
            if which == 0 {
                nvim.command(&format!("Co! {command}"));
            } else {
                nvim.lua("bench.job(...)", json!([argv(&command)]));
            }
            times[which] = ms(nvim.wait_shown() - began);
        }
        co.push(times[0]);
        job.push(times[1]);
        ratios.push(times[0] / times[1]);
    }
    println!(
        "`echo` on the screen, + {megabytes} MB: co {:.2} ms, jobstart and append {:.2} ms ({:.2} x)",
        median(&mut co),
        median(&mut job),
        median(&mut ratios)
    );
}

fn argv(command: &str) -> Value {
    SHELL.into_iter().chain([command]).collect()
}
