//! The tables: one command a line, in a file named for the verdict it must get.

use std::fmt::Write;

use super::world::Judged;

/// Judges every line of a table; `\n`, `\t`, `\r`, `\u{…}` in a line stand for those characters.
fn check(table: &str, expected: &str, at_least: usize) {
    let judged = Judged::new();
    assert_eq!(judged.problems, [""; 0]);
    let mut wrong = String::new();
    let mut count = 0;
    for line in table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("## "))
    {
        let command = line
            .replace("␤", "\n")
            .replace("␍", "\r")
            .replace("␛", "\u{1b}")
            .replace("␀", "\0");
        let verdict = judged.verdict(&command);
        count += 1;
        if verdict.word() != expected {
            let _infallible = writeln!(wrong, "{line}\n    {verdict:?}");
        }
    }
    assert!(wrong.is_empty(), "these should be {expected}:\n{wrong}");
    assert!(count >= at_least, "the table has {count} lines");
}

/// Commands that only look.
#[test]
fn looks() {
    check(include_str!("../../fixtures/policy/looks.txt"), "auto", 240);
}

/// Commands that try to do more than look, and are sorted as looking: the sandbox holds them.
#[test]
fn held() {
    check(include_str!("../../fixtures/policy/held.txt"), "auto", 300);
}

#[test]
fn asks() {
    check(include_str!("../../fixtures/policy/asks.txt"), "ask", 300);
}

#[test]
fn deny() {
    check(include_str!("../../fixtures/policy/deny.txt"), "deny", 60);
}

/// Commands that fetch packages, which may run as trials with hosts.
#[test]
fn fetches() {
    check_trials(include_str!("../../fixtures/policy/fetches.txt"), true);
}

/// Commands that reach out and never run as trials.
#[test]
fn sends() {
    check_trials(include_str!("../../fixtures/policy/sends.txt"), false);
}

/// Checks that each line of a table is asked about, and that a trial of it is possible, and needs hosts, or is not possible.
#[track_caller]
fn check_trials(table: &str, possible: bool) {
    let judged = Judged::new();
    let lines = table.lines().filter(|line| !line.starts_with("## "));
    let needs_hosts = |line: &str| judged.question(line).trial.map(|it| it.fetches);
    let wrong: Vec<_> = lines
        .filter(|line| needs_hosts(line) != possible.then_some(true))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
