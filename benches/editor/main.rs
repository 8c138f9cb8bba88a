//! Speed as the person feels it: in a real Neovim with a screen, beside the least it could take and beside
//! what a plugin in Lua would do. Contestants take turns in one run; the ratios are what counts.
//!
//! `make bench`, or `CO_TEST_NVIM=… cargo bench --bench editor [-- PART…]`.
#![allow(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::unwrap_used,
    reason = "a measurement prints and rounds, and stops where it cannot go on"
)]

mod agent;
mod call;
mod chat;
mod client;
mod flood;
mod hosts;
mod least;
mod repository;
mod resume;
mod review;
mod scouts;
mod spawn;
mod start;
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
#[path = "../../tests/it/support/mod.rs"]
mod support;
mod text;

use std::time::Duration;

fn main() {
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| it != "--bench")
        .collect();
    if asked.iter().any(|it| it == least::ARGUMENT) {
        return least::serve();
    }
    let parts: [(&str, fn()); 13] = [
        ("start", start::run),
        ("spawn", spawn::run),
        ("flood", flood::run),
        ("hosts", hosts::run),
        ("chat", chat::run),
        ("agent", agent::run),
        ("call", call::run),
        ("resume", resume::run),
        ("review", review::run),
        ("scouts", scouts::run),
        ("repository-first", repository::run_first),
        ("repository", repository::run),
        ("repository-trial", repository::run_trials),
    ];
    for (name, run) in parts {
        if asked.is_empty() || asked.iter().any(|it| it == name) {
            run();
        }
    }
}

/// Prints what was reached beside what is wanted; less is better.
fn report(what: &str, reached: f64, unit: &str, wanted: f64) {
    let verdict = if reached <= wanted {
        "reached"
    } else {
        "MISSED"
    };
    println!("{what:<64} {reached:>9.2} {unit:<3} wanted {wanted:>6} {verdict}");
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
