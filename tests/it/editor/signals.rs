//! Neovim, the backend and its guard receive SIGTERM, SIGKILL or SIGSTOP at a random moment: no process of a command
//! remains, even if it tries to hide.
//!
//! `CO_TEST_ROUNDS` sets the number of rounds; the test prints the longest time.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{DEADLINE, proc};

use super::scene::Scene;

const SIGNALS: [Signal; 3] = [Signal::SIGTERM, Signal::SIGKILL, Signal::SIGSTOP];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Neovim,
    Guard,
    Backend,
}

/// Processes in their own groups and sessions, without their environment, stopped, and orphaned.
fn hiding(seconds: &str) -> String {
    let sleep = format!("sleep {seconds}");
    format!(
        "set -m; (env -i {sleep} &); (setsid {sleep} &); (env -i setsid sh -c '{sleep} & {sleep}' &); \
         {sleep} & kill -STOP $!; echo up; {sleep}"
    )
}

/// Returns the time until all processes had ended.
fn round(target: Target, signal: Signal, number: u32) -> Duration {
    // The test finds its processes by this text, so no other test run may use the same.
    let seconds = format!(
        "37{number:04}{}{}.{}",
        target as u8,
        signal as u8,
        std::process::id()
    );
    let mut scene = Scene::new();
    let editor = scene.pid();
    scene.run("true");
    let guard = proc::wait_until(DEADLINE, "the guard", || {
        proc::children(editor).first().copied()
    });
    let backend = proc::wait_until(DEADLINE, "the backend", || {
        proc::children(guard).first().copied()
    });
    scene.run(&hiding(&seconds));
    std::thread::sleep(Duration::from_millis(fastrand::u64(..400)));
    let hit = match target {
        Target::Neovim => editor,
        Target::Guard => guard,
        Target::Backend => backend,
    };
    kill(Pid::from_raw(hit), signal).unwrap();
    let began = Instant::now();
    if signal == Signal::SIGSTOP {
        // A stopped process kills no other process, and Neovim has not ended.
        scene.kill9();
    }
    let line = format!("sleep\0{seconds}");
    proc::wait_until(DEADLINE, &format!("{target:?} after {signal}"), || {
        let left = proc::holding(&line);
        let runs = [guard, backend].into_iter().any(proc::alive);
        (left.is_empty() && !runs).then_some(())
    });
    began.elapsed()
}

fn check(target: Target) {
    let rounds = std::env::var("CO_TEST_ROUNDS").ok();
    let rounds: u32 = rounds.map_or(1, |rounds| rounds.parse().unwrap());
    for signal in SIGNALS {
        let took = (0..rounds).map(|number| round(target, signal, number));
        let longest = took.max().unwrap_or_default();
        eprintln!("{target:?} after {signal}: {longest:?} at most");
    }
}

#[test]
fn nothing_outlives_neovim() {
    check(Target::Neovim);
}

#[test]
fn nothing_outlives_the_guard() {
    check(Target::Guard);
}

#[test]
fn nothing_outlives_the_backend() {
    check(Target::Backend);
}
