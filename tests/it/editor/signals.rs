//! Neovim, the backend and its guard, each told to end, killed or stopped at a random moment: nothing of a command is
//! left, whatever it did to hide.
//!
//! `CO_TEST_ROUNDS` says how often; the longest time that it took is printed.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::exec::holding;
use crate::support::{DEADLINE, proc};

use super::scene::Scene;

const SIGNALS: [Signal; 3] = [Signal::SIGTERM, Signal::SIGKILL, Signal::SIGSTOP];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Neovim,
    Guard,
    Backend,
}

/// In groups and sessions of their own, without their environment, stopped, and nobody's children.
fn hiding(seconds: &str) -> String {
    let sleep = format!("sleep {seconds}");
    format!(
        "set -m; (env -i {sleep} &); (setsid {sleep} &); (env -i setsid sh -c '{sleep} & {sleep}' &); \
         {sleep} & kill -STOP $!; echo up; {sleep}"
    )
}

/// Below a second, as the clock has it.
fn random() -> Duration {
    use std::hash::{BuildHasher, Hasher};
    let number = std::hash::RandomState::new().build_hasher().finish();
    Duration::from_millis(number % 400)
}

/// Returns how long it took until all had ended.
fn round(target: Target, signal: Signal, number: u32) -> Duration {
    // Found by it: no other run of the tests may have the same.
    let seconds = format!(
        "37{number:04}{}{}.{}",
        target as u8,
        signal as u8,
        std::process::id()
    );
    let mut scene = Scene::new();
    let editor = scene.nvim.pid();
    scene.run("true");
    let guard = proc::wait_until(DEADLINE, "the guard", || {
        proc::children(editor).first().copied()
    });
    let backend = proc::wait_until(DEADLINE, "the backend", || {
        proc::children(guard).first().copied()
    });
    scene.run(&hiding(&seconds));
    std::thread::sleep(random());
    let hit = match target {
        Target::Neovim => editor,
        Target::Guard => guard,
        Target::Backend => backend,
    };
    kill(Pid::from_raw(hit), signal).unwrap();
    let began = Instant::now();
    if signal == Signal::SIGSTOP {
        // What is stopped ends nothing by itself, and neither has Neovim ended.
        scene.nvim.kill9();
    }
    let line = format!("sleep\0{seconds}");
    proc::wait_until(DEADLINE, &format!("{target:?} after {signal}"), || {
        let left = holding(&line);
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
